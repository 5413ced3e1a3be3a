"""One run: its tables as pandas frames, the names of brokers and subscriptions, the paths of events.

`RunTrace` is a run on disk; a network in memory has a `Trace` too (sim/network/told.py).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.spark.traces import open_run
from broker.trace.sampling import SAMPLED, is_kept
from broker.trace.schema import CRASH, RESTART
from coverlay import CoverlayError, did_you_mean, quoted
from routing.overlay.graph import MOST_DIGITS, Overlay, broker_called
from routing.overlay.trees import SHARED, shortest_paths, spanning
from sim.experiment.config import parse
from sim.experiment.effects import input_digests
from sim.experiment.faults import read_faults
from sim.experiment.plan import EXPERIMENT, PlannedRun, load
from sim.tell.versions import Version, versions
from sim.workloads.files import ids_in


class Published(NamedTuple):
    """Where an event was published, when, and at which step."""

    broker: int
    time: float
    step: int


class Trace(ABC):
    """The parameters of a run, and its tables, as pandas frames or `arrow` tables."""

    def __init__(self, run_id: str, arrow: Callable[[str], pa.Table], parameters: Mapping[str, Any]) -> None:
        self.run_id, self.arrow, self.parameters = run_id, arrow, parameters
        self._frames: dict[str, pd.DataFrame] = {}
        self._of_event: dict[str, Any] = {}  # table → event → its rows
        self._versions: dict[int, list[Version]] = {}  # source of a tree, or SHARED → see `versions`
        self.names = dict(zip(*[self.read("brokers")[c] for c in ("broker", "name")], strict=True))

    @property
    @abstractmethod
    def which(self) -> str:
        """Which run it is, in words."""

    called_as = "--subscription"  # how a subscription is given

    @property
    @abstractmethod
    def look_closer(self) -> str:
        """How to follow one of some subscriptions that an event did not reach, in words."""

    @abstractmethod
    def look_at_tables(self, subscription: int) -> str:
        """How to see which brokers hold a subscription, in words."""

    @property
    @abstractmethod
    def ids(self) -> tuple[str, ...]:
        """What the user calls the subscriptions, by number; empty where they are not called."""

    @abstractmethod
    def planned(self) -> PlannedRun:
        """The run, to draw its workload or simulate it again."""

    @property
    @abstractmethod
    def forgetful(self) -> list[tuple[float, int]]:
        """When brokers restarted without their memory; (time, broker)."""

    def read(self, table: str) -> pd.DataFrame:
        """A table, read once; nobody changes it."""
        if table not in self._frames:
            self._frames[table] = self.arrow(table).to_pandas()
        return self._frames[table]

    def about(self, event: int, table: str) -> pd.DataFrame:
        """The rows of a table that are about an event."""
        rows = self.read(table)
        if table not in self._of_event:
            self._of_event[table] = rows.groupby("event").indices
        return rows.iloc[self._of_event[table].get(event, [])]

    @property
    def network_wide(self) -> int | None:
        """k, where the k best of the whole network were served."""
        matching = self.parameters.get("matching", {})
        k: int | None = matching.get("k") if matching.get("scope") == "network" else None
        return k

    def called(self, given: str) -> int:
        """The broker of that name or number."""
        return broker_called(given, {name: broker for broker, name in self.names.items()})

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
        raise CoverlayError(f"{self.called_as} is {quoted(given)}; subscriptions are numbered from 0{ids}")

    @cached_property
    def homes(self) -> dict[int, int]:
        """The broker of each subscription; advertisements have numbers of their own, which mean other things."""
        made = self.read("operations")
        made = made[made["kind"].isin(["preload", "subscribe"])]
        return dict(zip(made["subscription"].tolist(), made["broker"].tolist(), strict=True))

    @cached_property
    def published(self) -> dict[int, Published]:
        """Where and when each event was published, in order, also where its broker never took it in."""
        names, rows = ("event", "broker", "time", "step"), self.read("published")
        if rows.empty:  # a trace of an earlier version: all that its brokers took in
            names, rows = ("event", "target", "published", "step"), self.read("publications").query("hop == 0")
        return {event: Published(*at) for event, *at in zip(*(rows[name].tolist() for name in names), strict=True)}

    @cached_property
    def forgot(self) -> dict[int, list[int]]:
        """The steps from which on a broker began anew with empty tables: a crash had taken its memory."""
        restarts = self.forgetful
        found: dict[int, list[int]] = {}
        if restarts:
            served = pd.concat([self.read(name)[["target", "time", "step"]] for name in ("control", "publications")])
        for time, broker in restarts:
            steps = served.loc[(served["target"] == broker) & (served["time"] >= time), "step"]
            if len(steps):
                found.setdefault(broker, []).append(int(steps.min()))
        return found

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

    @property
    def per_source(self) -> bool:
        return bool(self.parameters.get("routing", {}).get("trees") == "per-source")

    def versions(self, publisher: int) -> list[Version]:
        """The trees that the events of a broker travelled on, in order."""
        source = publisher if self.per_source else SHARED
        if source not in self._versions:
            overlay = Overlay(self.routed, self.routed, "trace")
            root = self.parameters.get("routing", {}).get("root")
            first = shortest_paths(overlay, source) if self.per_source else spanning(overlay, root)
            self._versions[source] = list(versions(first, self.read("versions").query(f"source == {source}")))
        return self._versions[source]

    def followed(self, event: int) -> Version:
        """The version of its tree that an event travelled on."""
        place = self._place[event]
        return [v for v in self.versions(self.published[event].broker) if v.first <= place][-1]

    def newest(self, publisher: int, at: float) -> Version:
        """The version whose tables brokers have, or fill, at a time."""
        return [version for version in self.versions(publisher) if version.began <= at][-1]

    @cached_property
    def _place(self) -> dict[int, int]:
        """How many events had been published before each."""
        return {event: place for place, event in enumerate(self.published)}


class RunTrace(Trace):
    """One run on disk, with its record."""

    def __init__(self, folder: Path, run_id: str | None) -> None:
        runs = sorted(path.name.removeprefix("run=") for path in (folder / "runs").glob("run=*"))
        if not runs:
            raise CoverlayError(f"{folder} holds no runs; give the --out folder of `coverlay run`")
        if run_id is not None and run_id not in runs:
            raise CoverlayError(f"there is no run {quoted(run_id)} in {folder}; there are: {', '.join(runs)}")
        self.folder, self.others = folder, len(runs) - 1
        run = open_run(folder / "runs" / f"run={run_id or runs[0]}")
        self.record = run.record
        super().__init__(run_id or runs[0], run.read, run.parameters)

    @property
    def which(self) -> str:
        others = f" (one of {self.others + 1}; choose with --run)" if self.others else ""
        return f"run {self.run_id}{others}"

    @property
    def look_closer(self) -> str:
        return "--subscription with one of these follows the event towards it"

    def look_at_tables(self, subscription: int) -> str:
        return f"`coverlay tables {self.folder} --subscription {subscription}`"

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the subscriptions in the user's file, by number; empty if it has none, or has changed since."""
        file = self.parameters.get("workload", {}).get("subscriptions_file")
        with suppress(CoverlayError):
            if file is not None:
                self.planned()
                return ids_in(file)
        return ()

    @property
    def forgetful(self) -> list[tuple[float, int]]:
        faults, section = self.read("faults"), self.parameters.get("faults", {})
        rows: list[Any] = list(faults[faults["kind"] == RESTART].itertuples())
        if rows and section.get("file") is not None:
            self.planned()  # raises if the file has changed
            drawn = read_faults(section["file"], lambda given: self.called(str(given)))
            return [(fault.until, fault.broker) for fault in drawn if fault.kind == CRASH and not fault.keep_state]
        return [] if section.get("state") == "kept" else [(row.time, row.broker) for row in rows]

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
