"""One run on disk: its tables as pandas frames, the names of brokers and subscriptions, the paths of events."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from analysis.spark.traces import open_run
from broker.trace.sampling import SAMPLED, is_kept
from coverlay import CoverlayError, did_you_mean, quoted
from routing.overlay.graph import MOST_DIGITS, Overlay, broker_called
from routing.overlay.trees import shortest_paths
from sim.experiment.config import parse
from sim.experiment.effects import input_digests
from sim.experiment.plan import EXPERIMENT, PlannedRun, load
from sim.workloads.files import ids_in


class RunTrace:
    """One run on disk: its record, parameters and tables, these as pandas frames or `arrow` tables."""

    def __init__(self, folder: Path, run_id: str | None) -> None:
        runs = sorted(path.name.removeprefix("run=") for path in (folder / "runs").glob("run=*"))
        if not runs:
            raise CoverlayError(f"{folder} holds no runs; give the --out folder of `coverlay run`")
        if run_id is not None and run_id not in runs:
            raise CoverlayError(f"there is no run {quoted(run_id)} in {folder}; there are: {', '.join(runs)}")
        self.folder, self.run_id = folder, run_id or runs[0]
        self.others = len(runs) - 1
        run = open_run(folder / "runs" / f"run={self.run_id}")
        self.arrow, self.record, self.parameters = run.read, run.record, run.parameters
        self.names = dict(zip(*[self.read("brokers")[c] for c in ("broker", "name")], strict=True))

    def read(self, table: str) -> pd.DataFrame:
        return self.arrow(table).to_pandas()

    def about(self, event: int, table: str) -> pd.DataFrame:
        """The rows of a table that are about an event."""
        rows = self.read(table)
        return rows[rows["event"] == event]

    @property
    def network_wide(self) -> int | None:
        """k, where the k best of the whole network were served."""
        matching = self.parameters.get("matching", {})
        k: int | None = matching.get("k") if matching.get("scope") == "network" else None
        return k

    def called(self, given: str) -> int:
        """The broker of that name or number."""
        return broker_called(given, {name: broker for broker, name in self.names.items()})

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the subscriptions in the user's file, by number; empty if it has none, or has changed since."""
        file = self.parameters.get("workload", {}).get("subscriptions_file")
        with suppress(CoverlayError):
            if file is not None:
                self.planned()
                return ids_in(file)
        return ()

    def subscription(self, number: int) -> str:
        return f"{self.ids[number]} #{number}" if 0 <= number < len(self.ids) else str(number)

    def subscription_called(self, given: str | int, at: float) -> int:
        """The subscription of that number or id; of several with an id, the one that is in force at a time."""
        made = self.read("operations")
        made = made[made["kind"].isin(["preload", "subscribe"])].drop_duplicates("subscription")
        times = dict(zip(made["subscription"].tolist(), made["time"].tolist(), strict=True))
        mine = [number for number, name in enumerate(self.ids) if name == str(given) and number in times]
        if mine:
            return max(mine, key=lambda number: (times[number] <= at, times[number] if times[number] <= at else 0.0))
        text = str(given)
        if text.isdecimal() and len(text) < MOST_DIGITS:
            return int(text)
        ids = f", or called by id, e.g. {quoted(self.ids[0])}{did_you_mean(given, self.ids)}" if self.ids else ""
        raise CoverlayError(f"--subscription is {quoted(given)}; subscriptions are numbered from 0{ids}")

    @property
    def which(self) -> str:
        others = f" (one of {self.others + 1}; choose with --run)" if self.others else ""
        return f"run {self.run_id}{others}"

    def refuse_left_out(self, table: str, number: int) -> None:
        """Raise if a table was sampled and the rows of this subscription or event are missing."""
        by, _ = SAMPLED[table]
        share = self.parameters.get("run", {}).get(f"sample_{table}", 1.0)
        if not is_kept(np.array([number]), share)[0]:
            raise CoverlayError(
                f"run {self.run_id} kept the {table} of {100 * share:g} % of the {by}s in its trace, and {by} {number} "
                f"is not among them; repeat it with --set run.sample_{table}=1.0"
            )

    @cached_property
    def routed(self) -> nx.Graph:
        """The brokers, and the links that messages take."""
        graph: Any = nx.Graph()
        graph.add_nodes_from(sorted(self.names))
        links = self.read("links")
        for link in links[links["routed"]].itertuples():
            graph.add_edge(link.broker, link.neighbour, latency=link.latency)
        return graph

    def path(self, publisher: int, home: int) -> list[int]:
        """The brokers that an event passes from its publisher to a subscriber's broker."""
        graph = self.routed
        if self.parameters.get("routing", {}).get("trees") == "per-source":
            graph = shortest_paths(Overlay(graph, graph, "trace"), publisher).graph
        found: list[int] = nx.shortest_path(graph, publisher, home)
        return found

    def planned(self) -> PlannedRun:
        """The run as the experiment in its folder plans it, to draw its workload or simulate it again."""
        file = self.folder / EXPERIMENT
        if not file.is_file():  # the run was copied without its experiment
            return self._as_recorded()
        for run in load(str(file)).runs:
            if run.run_id == self.run_id:  # which depends on the content of input files too
                return run
        raise CoverlayError(f"{file} does not give run {self.run_id}: it or an input file has changed since it was run")

    def _as_recorded(self) -> PlannedRun:
        """The run by its own record, which has all settings but does not say which were given."""
        experiment = parse({"name": self.record["experiment"], **self.parameters}, f"run {self.run_id}")
        if input_digests(experiment) != json.loads(self.record["inputs"]):
            raise CoverlayError(f"an input file of run {self.run_id} has changed since it was run")
        return PlannedRun(experiment, int(self.record["seed"]), {})
