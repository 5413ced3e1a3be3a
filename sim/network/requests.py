"""All that is asked of a network: rows of a workload, and what is done in order.

A subscription is a row until it leaves or changes; the row that begins with a change has the next number. Only where
the k best of the whole network are served, a change of rank keeps the number that the trace knows (`traced`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np

from broker.language.schema import Schema
from broker.trace.schema import CRASH, CUT
from routing.filter import Filter
from sim.experiment.agenda import Kind
from sim.experiment.faults import Fault
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, RERANK, SUBSCRIBE, Timeline
from sim.workloads.contract import Floats, filter_of, from_filters


@dataclass(eq=False)
class Row:
    """A subscription, until it leaves or changes."""

    number: int
    broker: int
    filter: Filter
    id: str | None = None
    changes: Row | None = None  # the row before it, if only its rank differs
    came: float | None = None  # None: not yet
    left: float = math.inf
    came_order: int = 0  # places among all that was done
    left_order: int = 0

    @property
    def traced(self) -> int:
        """What the trace calls it."""
        return self.number if self.changes is None else self.changes.traced

    @property
    def in_force(self) -> bool:
        return self.came is not None and self.left == math.inf


@dataclass(eq=False)
class Published:
    """An event."""

    broker: int
    values: Floats
    weights: Floats | None
    number: int | None = None  # None: not yet
    time: float | None = None
    order: int = 0


@dataclass(frozen=True)
class Done:
    """Something that is done to a network: by which method of Acts, and with what."""

    time: float
    kind: Kind
    act: str
    given: tuple[Any, ...]
    after: int = 0  # messages that had been processed, if it was done


@dataclass
class Requests:
    """Everything that was asked for."""

    schema: Schema
    rows: list[Row] = field(default_factory=list)
    events: list[Published] = field(default_factory=list)  # that were published
    faults: list[Fault] = field(default_factory=list)  # that happened; `until` is inf as long as they last
    done: list[Done] = field(default_factory=list)

    def new_row(self, broker: int, filter: Filter, id: str | None = None, changes: Row | None = None) -> Row:
        self.rows.append(Row(len(self.rows), broker, filter, id, changes))
        return self.rows[-1]

    def failed(self, time: float, kind: str, broker: int, neighbour: int = -1, keep_state: bool = False) -> Fault:
        self.faults.append(Fault(time, kind, broker, neighbour, math.inf, keep_state))
        return self.faults[-1]

    def repaired(self, time: float, order: int, broker: int, neighbour: int = -1) -> Fault:
        """The last fault of a broker or link ends."""
        kind = CRASH if neighbour < 0 else CUT
        target = Fault(time, kind, broker, neighbour, time, False).target
        last = max(place for place, fault in enumerate(self.faults) if fault.target == target)
        self.faults[last] = replace(self.faults[last], until=time, until_order=float(order))
        return self.faults[last]

    def workload(self) -> Workload:
        """What clients did so far. A row that has not come yet comes after everything else."""
        events = np.array([event.values for event in self.events]).reshape(-1, len(self.schema))
        weighted = any(event.weights is not None for event in self.events)
        ones = np.ones(len(self.schema))
        weights = [ones if event.weights is None else event.weights for event in self.events]
        reranks = np.array([-1 if row.changes is None else row.changes.number for row in self.rows], np.int64)
        return replace(
            from_filters(self.schema, [row.filter for row in self.rows], events),
            homes=np.array([row.broker for row in self.rows], np.int64),
            publishers=np.array([event.broker for event in self.events], np.int64),
            times=np.array([event.time for event in self.events], np.float64),
            came=np.array([math.inf if row.came is None else row.came for row in self.rows]),
            left=np.array([row.left for row in self.rows]),
            came_order=np.array([row.came_order for row in self.rows], np.float64),
            left_order=np.array([row.left_order for row in self.rows], np.float64),
            published_order=np.array([event.order for event in self.events], np.float64),
            ids=tuple(row.id or "" for row in self.rows) if any(row.id for row in self.rows) else None,
            reranks=reranks if (reranks >= 0).any() else None,
            event_weights=np.array(weights).reshape(events.shape) if weighted else None,
        )


def rows_of(requests: Requests, workload: Workload, homes: Iterable[int]) -> list[Row]:
    """New rows for the subscriptions of a workload."""
    rows: list[Row] = []
    reranks = [-1] * len(workload.lo) if workload.reranks is None else workload.reranks.tolist()
    ids = workload.ids or [None] * len(workload.lo)
    for number, (home, id, before) in enumerate(zip(homes, ids, reranks, strict=True)):
        changes = rows[before] if before >= 0 else None
        rows.append(requests.new_row(home, filter_of(workload, number), id, changes))
    return rows


def steps_of(rows: list[Row], workload: Workload, timeline: Timeline) -> Iterator[Done]:
    """What clients do by a timeline; `rows` are its subscriptions."""
    latest = {row.traced: row for row in rows if row.changes is None}
    columns = (column.tolist() for column in (timeline.time, timeline.kind, timeline.index, timeline.broker))
    for time, kind, index, broker in zip(*columns, strict=True):
        if kind == PUBLISH:
            weights = None if workload.event_weights is None else workload.event_weights[index]
            yield Done(time, Kind.REQUEST, "publish", (Published(broker, workload.events[index], weights),))
        elif kind == SUBSCRIBE:
            yield Done(time, Kind.REQUEST, "join", (rows[index],))
        elif kind == RERANK:
            latest[rows[index].traced] = rows[index]
            yield Done(time, Kind.REQUEST, "rerank", (rows[index],))
        else:
            yield Done(time, Kind.REQUEST, "leave", (latest[rows[index].traced],))


def faults_as_steps(faults: Iterable[Fault]) -> Iterator[Done]:
    repairs: list[tuple[float, Done]] = []
    for fault in faults:
        crash = fault.kind == CRASH
        which: tuple[Any, ...] = (fault.broker,) if crash else fault.ends
        fails = ("crash", (*which, fault.keep_state)) if crash else ("cut", which)
        yield Done(fault.time, Kind.FAILURE, *fails)
        if fault.until < math.inf:
            repairs.append((fault.until_order, Done(fault.until, Kind.REPAIR, "restart" if crash else "heal", which)))
    yield from (repair for _, repair in sorted(repairs, key=itemgetter(0)))
