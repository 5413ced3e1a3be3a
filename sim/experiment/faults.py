"""Which brokers crash and which links are cut, when, and for how long: drawn from rates or read from a file.

A file of faults is a CSV table, one fault per row:

    time,kind,broker,neighbour,until,state
    1200,crash,3,,1500,lost
    1300,cut,Frankfurt,Prague,1350,

Brokers are called by number or name. `state` is lost (default) or kept: whether a crashed broker still has its tables
when it restarts. An empty `until` means that it stays down to the end.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from broker.network import Network
from broker.trace.schema import CRASH, CUT, FAILURES
from coverlay import CoverlayError, quoted
from sim.random_streams import Stream

COLUMNS = ("time", "kind", "broker", "neighbour", "until", "state")
REQUIRED = ("time", "kind", "broker")


@dataclass(frozen=True)
class Fault:
    time: float
    kind: str  # CRASH or CUT
    broker: int
    neighbour: int  # −1 for a crash
    until: float  # inf: never repaired
    keep_state: bool

    @property
    def target(self) -> tuple[int, int]:
        return (self.broker, -1) if self.kind == CRASH else (min(self.ends), max(self.ends))

    @property
    def ends(self) -> tuple[int, int]:
        return self.broker, self.neighbour


def draw_faults(
    stream: Stream,
    brokers: int,
    links: list[tuple[int, int]],
    period: tuple[float, float],
    *,
    crash_fraction: float,
    cut_fraction: float,
    downtime: float,
    state: str,
) -> list[Fault]:
    """A share of the brokers crashes, and a share of the links is cut, once each at a random time in `period`."""
    faults: list[Fault] = []
    for kind, targets, share in (
        (CRASH, [(b, -1) for b in range(brokers)], crash_fraction),
        (CUT, links, cut_fraction),
    ):
        rng = stream(f"faults.{kind}")
        chosen = rng.permutation(len(targets))[: round(share * len(targets))]
        times = period[0] + (period[1] - period[0]) * rng.random(len(chosen))
        durations = downtime * rng.standard_exponential(len(chosen))
        for index, time, duration in zip(chosen.tolist(), times.tolist(), durations.tolist(), strict=True):
            broker, neighbour = targets[index]
            faults.append(Fault(time, kind, broker, neighbour, time + duration, state == "kept"))
    return sorted(faults, key=lambda fault: (fault.time, fault.kind, fault.target))


def read_faults(file: str, called: Callable[[object], int] = lambda _: 0) -> list[Fault]:
    """The faults of a CSV file, in order of time; mistakes are named with their line.

    `called` knows the brokers by name and number; without it everything else about the file is checked.
    """
    path = Path(file)
    if not path.is_file():
        raise CoverlayError(f"faults.file {file} is not there")
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            names = reader.fieldnames or []
            unknown = [name for name in names if name not in COLUMNS]
            missing = [name for name in REQUIRED if name not in names]
            if unknown or missing:
                said = f"has no column {missing[0]!r}" if missing else f"has an unknown column {quoted(unknown[0])}"
                raise CoverlayError(f"{file} {said}; the columns are: {', '.join(COLUMNS)}")
            faults = [_fault(row, f"{file}, line {reader.line_num}", called) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise CoverlayError(f"{file} is not a CSV file: {error}") from None
    return sorted(faults, key=lambda fault: (fault.time, fault.kind, fault.target))


def _fault(row: dict[str, Any], where: str, called: Callable[[object], int]) -> Fault:
    kind = row["kind"]
    if kind not in FAILURES:
        raise CoverlayError(f"{where}: kind is {quoted(kind)}; it must be {' or '.join(FAILURES)}")
    state = row.get("state") or "lost"
    if state not in ("lost", "kept"):
        raise CoverlayError(f"{where}: state is {quoted(state)}; it must be lost or kept")
    time = _number(row["time"], where, "time")
    until = _number(row["until"], where, "until") if row.get("until") else math.inf
    if until <= time:
        raise CoverlayError(f"{where}: until is {until:g}; it must be after time, {time:g}")
    neighbour = _broker(row.get("neighbour"), f"{where}: neighbour", called) if kind == CUT else -1
    return Fault(time, kind, _broker(row["broker"], f"{where}: broker", called), neighbour, until, state == "kept")


def _number(text: str | None, where: str, column: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise CoverlayError(f"{where}: {column} is {quoted(text)}; it must be a number of milliseconds, 0 or more")
    return value


def _broker(text: str | None, where: str, called: Callable[[object], int]) -> int:
    if not (text or "").strip():
        raise CoverlayError(f"{where} is empty; it must be the name or number of a broker")
    try:
        return called(text)
    except CoverlayError as error:
        raise CoverlayError(f"{where}: {error}") from None


def check_faults(network: Network, faults: list[Fault]) -> None:
    """Refuse faults on what is not there, and a second fault before the first is repaired."""
    down: dict[tuple[int, int], float] = {}
    for fault in faults:
        if fault.kind == CRASH:
            network.outages.must_exist(fault.broker)
        else:
            network.outages.must_be_linked(*fault.ends)
        if fault.time <= down.get(fault.target, -1.0):
            what = f"broker {fault.broker}" if fault.kind == CRASH else f"link {fault.broker}-{fault.neighbour}"
            raise CoverlayError(f"{what} fails at {fault.time:g} ms while it is still down from an earlier fault")
        down[fault.target] = fault.until


def cause(network: Network, faults: list[Fault]) -> Iterator[Any]:
    """A SimPy process that lets the faults happen, and be repaired, at their times."""
    repairs = [(fault.until, 0, fault) for fault in faults if fault.until < math.inf]
    # At equal times repairs come first, so that a target may fail again at the moment it is back.
    schedule = sorted([*repairs, *((fault.time, 1, fault) for fault in faults)], key=lambda item: item[:2])
    outages = network.outages
    for time, begins, fault in schedule:
        if time > network.env.now:
            yield network.env.timeout(time - network.env.now)
        if fault.kind == CRASH:
            outages.crash(fault.broker, fault.keep_state) if begins else outages.restart(fault.broker)
        elif begins:
            outages.cut(*fault.ends)
        else:
            outages.heal(*fault.ends)


def publishing_period(times: np.ndarray[Any, Any], window: tuple[float, float]) -> tuple[float, float]:
    """The part of the time between the first and the last event in which faults may begin."""
    if not len(times):
        return 0.0, 0.0
    first, last = float(times.min()), float(times.max())
    return first + window[0] * (last - first), first + window[1] * (last - first)
