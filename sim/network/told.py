"""A network in memory as a trace: for explanations, the oracle, and frames with the user's nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from broker.trace.schema import CRASH, empty
from routing.overlay.trees import SHARED
from sim.experiment.config import Experiment
from sim.experiment.faults import Fault
from sim.experiment.plan import PlannedRun
from sim.network.parts import Brokers
from sim.tell.run_trace import Trace
from sim.tell.tables import Tables

BROKERS = ("broker", "neighbour", "source", "target", "tree")  # columns that name brokers


class LiveTrace(Trace):
    """The trace of a network so far."""

    def __init__(
        self,
        experiment: Experiment,
        seed: int,
        tables: Mapping[str, pa.Table],
        ids: tuple[str, ...] | None,
        faults: list[Fault],
    ) -> None:
        self._run, self._ids, self._faults = PlannedRun(experiment, seed, {}), ids or (), faults
        super().__init__(experiment.name, lambda name: tables.get(name, empty(name)), experiment.parameters())

    called_as = "subscription"

    @property
    def which(self) -> str:
        return self.run_id

    @property
    def look_closer(self) -> str:
        return "net.explain(event, subscription) with one of these follows the event towards it"

    def look_at_tables(self, subscription: int) -> str:
        return f"net.tables, where subscription is {subscription}"

    @property
    def ids(self) -> tuple[str, ...]:
        return self._ids

    @property
    def forgetful(self) -> list[tuple[float, int]]:
        crashes = (fault for fault in self._faults if fault.kind == CRASH and not fault.keep_state)
        return [(fault.until, fault.broker) for fault in crashes]

    def planned(self) -> PlannedRun:
        return self._run


def with_nodes(table: pa.Table, brokers: Brokers) -> pd.DataFrame:
    """A table of the trace with the user's nodes for the numbers of brokers; None: a client, or nobody."""
    frame = table.to_pandas()
    for column in frame.columns:
        if column in BROKERS:
            frame[column] = named(frame[column], brokers)
        elif isinstance(frame[column].dtype, pd.CategoricalDtype):
            frame[column] = frame[column].astype(str)
    return frame


def named(numbers: Iterable[int], brokers: Brokers) -> pd.Series[Any]:
    """The nodes of brokers as a column; it has objects where one is no whole number."""
    nodes: list[Any] = [brokers[number] for number in numbers]
    whole = all(isinstance(node, int) and not isinstance(node, bool) for node in nodes)
    return pd.Series(nodes, dtype="int64" if whole else object)


def frame_of(tables: Tables, brokers: Brokers) -> pd.DataFrame:
    """Routing tables: a row for each subscription that a broker holds, or that a neighbour keeps from it."""
    columns = ["broker", "neighbour", "tree", "subscription", "state", "because"]
    frame = pd.DataFrame(tables.rows(), columns=columns)
    if (frame["tree"] == SHARED).all():
        frame = frame.drop(columns="tree")
    return frame.assign(**{name: named(frame[name], brokers) for name in frame.columns if name in BROKERS})
