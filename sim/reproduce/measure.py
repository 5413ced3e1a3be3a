"""Measuring one point of a figure: what methods take to answer the same events, in operations and in time.

Times are CPU times of this process, so that other programs on the machine hardly count. They are net of the call
overhead: the time of the same call where there is nothing to do, on an index as good as empty. That is what Python and
numba's dispatch take, which no paper measured. As in the papers, some events warm up and a thousand others are
measured. Methods too slow to answer them within PATIENCE answer fewer, at least LEAST, all of them the same ones.
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

CLOCK = time.process_time
_BETWEEN = 200e-6  # seconds between two readings of it, at least: one takes 1 to 2 µs
WARM_UP = 100  # events, as in Table 1 of the VLDB paper
PATIENCE = 10.0  # seconds that the timing of one method may take
LEAST = 20
_ROUNDS, _MOST_ROUNDS = 3, 15  # of timing; the least counts
# Seconds of timing that more rounds than _ROUNDS may fill. A virtual machine may be slow for seconds: in three rounds a
# call that takes 24 µs was measured as 28 to 57 µs, in fifteen as 21 to 28 µs.
_ENOUGH = 10.0
_IDLE = "idle: "
_NO_TIME = 1e-8  # seconds: the least time, also where no call overhead was measured
_UNSEEN = 0.05  # share of the call overhead: an answer that takes less cannot be told from none


@dataclass(frozen=True)
class Bout:
    """Methods that answer the same events."""

    asks: Mapping[str, Ask]
    events: Any  # to be measured: a sequence or an array
    warm_up: Any = ()
    empty: Mapping[str, Ask] = field(default_factory=dict)  # the same calls where there is nothing to do
    work: Mapping[str, Callable[[], float]] = field(default_factory=dict)  # operations that an index has counted so far


def measure(bout: Bout, share: float = 1.0) -> dict[str, dict[str, float]]:
    """Per event: seconds less the call overhead, the overhead, operations, and how many events were counted.

    `share`: of the time that rounds beyond the first few may take.
    """
    asked, counts, seconds = {}, {}, {}
    for name, ask in bout.asks.items():
        ask(bout.events[0])  # it may compile
        counted = bout.work.get(name)
        before, started = counted() if counted else 0.0, CLOCK()
        asked[name] = _patiently(ask, bout.events)
        seconds[name] = (CLOCK() - started) / asked[name]
        if counted:
            counts[name] = (counted() - before) / asked[name]
    # Calls with nothing to do take turns with the others, so that the machine is as busy for both.
    idle = {_IDLE + name: ask for name, ask in bout.empty.items()}
    slow = {name for name in bout.asks if asked[name] < len(bout.events)}
    few = min(asked.values())  # the same for all of these
    quick = {name: ask for name, ask in bout.asks.items() if name not in slow}
    one = sum(seconds[name] for name in quick) * len(bout.events)  # seconds of a round
    rounds = max(_ROUNDS, min(_MOST_ROUNDS, int(share * _ENOUGH / max(one, 1e-9))))
    timed = partial(mean_least, warm_up=bout.warm_up, clock=CLOCK, between=_BETWEEN)
    times = timed({**quick, **idle}, bout.events, rounds)
    times |= timed({name: bout.asks[name] for name in slow}, bout.events[:few], _ROUNDS)
    overhead = {name: times[_IDLE + name] for name in bout.empty}
    found = {
        TIME: {name: times[name] - overhead.get(name, 0.0) for name in bout.asks},
        "overhead": overhead,
        "asked": {name: float(n) for name, n in asked.items()},
    }
    return {**found, COUNTS: counts} if counts else found


def net(point: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Seconds of every method in a measured point, without the call; never less than can be seen beside the call."""
    overhead = point["overhead"]
    return {name: max(seconds, _UNSEEN * overhead.get(name, 0.0), _NO_TIME) for name, seconds in point[TIME].items()}


def _patiently(ask: Ask, events: Any) -> int:
    """Ask events until a round's share of PATIENCE runs out; returns how many were asked."""
    until = CLOCK() + PATIENCE / _ROUNDS
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
