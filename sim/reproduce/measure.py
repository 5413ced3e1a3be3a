"""Measuring one point of a figure: what methods take to answer the same events, in operations and in time.

Times are the processor's for this process, so that other programs on the machine hardly count. They are net of the call
overhead: the same call where there is nothing to do, on an index as good as empty. That is
what Python and numba's dispatch take and no paper measured. As in the papers, some events warm up and a thousand others
are measured; a method so slow that these would take longer than PATIENCE answers fewer of them, at least LEAST.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sim.bench.timing import mean_least
from sim.reproduce.rules import COUNTS, TIME

Ask = Callable[[Any], Any]  # an event → the answer
Series = Mapping[str, Mapping[float, float]]  # method → x → amount per event

CLOCK = time.process_time
_BETWEEN = 200e-6  # seconds between two readings of it, at least: one takes 1 to 2 µs
WARM_UP = 100  # events, as in Table 1 of the VLDB paper
PATIENCE = 10.0  # seconds that one method's events may take
LEAST = 20
_ROUNDS = 3  # of timing, the least counts; a method that takes a third of PATIENCE for one has this one
_NO_TIME = 1e-8  # seconds; what is left of an answer that takes no longer than the call


@dataclass(frozen=True)
class Bout:
    """Methods that answer the same events."""

    asks: Mapping[str, Ask]
    events: Any  # those to measure: a sequence or an array
    warm_up: Any = ()
    empty: Mapping[str, Ask] = field(default_factory=dict)  # the same calls where there is nothing to do
    work: Mapping[str, Callable[[], float]] = field(default_factory=dict)  # operations that an index has counted so far


def measure(bout: Bout) -> dict[str, dict[str, float]]:
    """Per event: seconds less the call overhead, the overhead, operations, and how many events were asked."""
    asked, counts, seconds = {}, {}, {}
    for name, ask in bout.asks.items():
        counted = bout.work.get(name)
        before, started = counted() if counted else 0.0, CLOCK()
        asked[name] = _patiently(ask, bout.events)
        seconds[name] = (CLOCK() - started) / asked[name]
        if counted:
            counts[name] = (counted() - before) / asked[name]
    quick = {name: ask for name, ask in bout.asks.items() if seconds[name] * asked[name] < PATIENCE / _ROUNDS}
    timed = partial(mean_least, rounds=_ROUNDS, warm_up=bout.warm_up, clock=CLOCK, between=_BETWEEN)
    seconds |= timed(quick, bout.events)
    overhead = timed(bout.empty, bout.events[:WARM_UP]) if bout.empty else {}
    found = {
        TIME: {name: max(seconds[name] - overhead.get(name, 0.0), _NO_TIME) for name in bout.asks},
        "overhead": overhead,
        "asked": {name: float(n) for name, n in asked.items()},
    }
    return {**found, COUNTS: counts} if counts else found


def _patiently(ask: Ask, events: Any) -> int:
    """How many of the events were asked until patience ran out."""
    until = CLOCK() + PATIENCE
    for number, event in enumerate(events, 1):
        ask(event)
        if number >= LEAST and CLOCK() > until:
            return number
    return len(events)


def counter(index: Any, total: Callable[[Any], float]) -> Callable[[], float]:
    """What `total` says of an index now: a running sum, for `Bout.work`."""
    return lambda: float(total(index))


def operations(index: Any) -> Callable[[], float]:
    """The operations that a matcher has counted so far: comparisons, nodes, and keys met in queues.

    A structure over one attribute compares an interval at a time, so its entries are its comparisons.
    """
    return counter(index, lambda ix: max(ix.stats.comparisons, ix.stats.entries) + ix.stats.nodes + ix.stats.queued)
