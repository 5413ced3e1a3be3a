"""Which brokers crash and which links are cut, when, and for how long: drawn from rates or read from a file.

A file of faults is a table (CSV, Parquet or JSON lines), one fault per row:

    time,kind,broker,neighbour,until,state
    1200,crash,3,,1500,lost
    1300,cut,Frankfurt,Prague,1350,

Brokers are given by number or name. `state` is lost (default) or kept: whether a crashed broker still has its tables
when it restarts. Without `until`, the broker or link stays down to the end. `until_order` may say which of the repairs
of one moment comes first, the smaller number; else it is that of the earlier fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from broker.trace.schema import CRASH, CUT, FAILURES
from coverlay import CoverlayError, quoted
from routing.overlay.graph import Overlay
from sim.random_streams import Stream
from sim.workloads.tables import Table, not_negative

Floats = NDArray[np.float64]
COLUMNS = ("time", "kind", "broker", "neighbour", "until", "state", "until_order")
REQUIRED = ("time", "kind", "broker")


class Rates(Protocol):
    """What faults are drawn from: the keys of [faults]."""

    crash_fraction: float
    cut_fraction: float
    window: list[float]
    downtime: float
    state: Any


@dataclass(frozen=True)
class Fault:
    time: float
    kind: str  # CRASH or CUT
    broker: int
    neighbour: int  # −1 for a crash
    until: float  # inf: never repaired
    keep_state: bool
    place: str = ""  # file and line, for messages
    until_order: float = 0.0  # which repair of a moment comes first

    @property
    def target(self) -> tuple[int, int]:
        return (self.broker, -1) if self.kind == CRASH else (min(self.ends), max(self.ends))

    @property
    def ends(self) -> tuple[int, int]:
        return self.broker, self.neighbour


def draw_faults(
    stream: Stream, brokers: int, links: list[tuple[int, int]], published: Floats, section: Rates
) -> list[Fault]:
    """Crash a share of the brokers and cut a share of the links, once each, at random times within the window, which is
    part of the time between the first and the last event.
    """
    first, last = (float(published.min()), float(published.max())) if len(published) else (0.0, 0.0)
    start, end = (first + share * (last - first) for share in section.window)
    crashes = CRASH, [(broker, -1) for broker in range(brokers)], section.crash_fraction
    faults: list[Fault] = []
    for kind, targets, share in (crashes, (CUT, links, section.cut_fraction)):
        rng = stream(f"faults.{kind}")
        chosen = rng.permutation(len(targets))[: round(share * len(targets))]
        times = start + (end - start) * rng.random(len(chosen))
        durations = section.downtime * rng.standard_exponential(len(chosen))
        for index, time, duration in zip(chosen.tolist(), times.tolist(), durations.tolist(), strict=True):
            broker, neighbour = targets[index]
            faults.append(Fault(time, kind, broker, neighbour, time + duration, section.state == "kept"))
    return sorted(faults, key=lambda fault: (fault.time, fault.kind, fault.target))


def read_faults(file: Any, called: Callable[[object], int] = lambda _: 0) -> list[Fault]:
    """The faults of a file or frame, in order of time; mistakes are named with their line.

    `called` finds a broker by name or number; without it, everything but the brokers is checked.
    """
    table = Table.of("faults.file", file)
    table.only(list(COLUMNS))
    missing = [name for name in REQUIRED if name not in table.columns]
    if missing:
        raise CoverlayError(f"{table.path} has no column {missing[0]!r}; the columns are: {', '.join(COLUMNS)}")
    empty = [None] * len(table)
    cells = zip(*(table.columns.get(name, empty) for name in COLUMNS), strict=True)
    faults = [_fault(table, row, called, *fault) for row, fault in enumerate(cells)]
    return sorted(faults, key=lambda fault: fault.time)  # at equal times as in the file


def _fault(
    table: Table,
    row: int,
    called: Callable[[object], int],
    time: Any,
    kind: Any,
    broker: Any,
    neighbour: Any,
    until: Any,
    state: Any,
    until_order: Any,
) -> Fault:
    def read(column: str, how: Callable[[Any], Any], given: Any) -> Any:
        if given is None:
            raise table.error(row, column, f"the cell is empty; a {kind} needs a {column}")
        try:
            return how(given)
        except CoverlayError as error:
            raise table.error(row, column, str(error)) from None

    if kind not in FAILURES:
        raise table.error(row, "kind", f"{quoted(kind)} is not {' or '.join(FAILURES)}")
    if state not in (None, "lost", "kept"):
        raise table.error(row, "state", f"{quoted(state)} is not lost or kept")
    begins = read("time", not_negative, time)
    ends = math.inf if until is None else read("until", not_negative, until)
    if ends <= begins:
        raise table.error(row, "until", f"{ends:g} is not after time, {begins:g}")
    if kind == CRASH and neighbour is not None:
        raise table.error(row, "neighbour", f"{quoted(neighbour)} has no effect: a crash affects one broker")
    other = read("neighbour", called, neighbour) if kind == CUT else -1
    order = 0.0 if until_order is None else read("until_order", not_negative, until_order)
    place = f"{table.path}, {table.place(row)}"
    return Fault(begins, kind, read("broker", called, broker), other, ends, state == "kept", place, order)


def check_faults(overlay: Overlay, faults: list[Fault]) -> None:
    """Refuse cuts of links that do not exist, and a second fault before the first is repaired."""
    down: dict[tuple[int, int], float] = {}
    for fault in faults:
        where = f"{fault.place}: " if fault.place else ""
        if fault.kind == CUT:
            _check_linked(overlay, fault, where)
        if fault.time < down.get(fault.target, -1.0):
            called = "–".join(overlay.name(broker) for broker in fault.target if broker >= 0)
            raise CoverlayError(
                f"{where}{called} fails at {fault.time:g} ms while it is still down from an earlier fault"
            )
        down[fault.target] = fault.until


def _check_linked(overlay: Overlay, fault: Fault, where: str) -> None:
    broker, neighbour = (overlay.name(end) for end in fault.ends)
    if not overlay.graph.has_edge(*fault.ends):
        near = ", ".join(overlay.name(other) for other in sorted(overlay.graph[fault.broker]))
        raise CoverlayError(f"{where}there is no link {broker}–{neighbour}; {broker} has links to: {near}")
