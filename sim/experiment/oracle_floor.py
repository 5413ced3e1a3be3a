"""The floor: which brokers an event would have reached if every broker had flooded it over every link of the graph.

A broker sends its first copy on at once, over all its links. A link is crossed only while it is up, from the sending
to the arrival; nothing is stored. What this does not reach no routing could have reached: such a loss is *unavoidable*.

Repairs precede failures, and both precede messages (docs/design.md), so a link that fails at the moment of an arrival
loses the copy, and one that is mended at the moment of sending carries it. Brokers take no time here and nothing waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from broker.trace.schema import CRASH, CUT, HEAL, RESTART
from sim.experiment.oracle_truth import Floats, Ints

Interval = tuple[float, float]  # down from the first time on, and up again from the second on


class Floor:
    """Flooding over the graph of one run, with its faults."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._brokers = tables["brokers"].num_rows
        crashed = down_times(tables["faults"], CRASH, RESTART)
        cut = down_times(tables["faults"], CUT, HEAL)
        self._crashed = {broker: intervals for (broker, _), intervals in crashed.items()}
        ends = sorted({time for intervals in (*crashed.values(), *cut.values()) for pair in intervals for time in pair})
        self._changes: Floats = np.array([*ends, np.inf])
        self._links: list[list[tuple[int, float, list[Interval]]]] = [[] for _ in range(self._brokers)]
        rows = (tables["links"].column(name).to_pylist() for name in ("broker", "neighbour", "latency"))
        for one, other, latency in zip(*rows, strict=True):
            down = [*cut.get((one, other), ()), *self._crashed.get(one, ()), *self._crashed.get(other, ())]
            self._links[one].append((other, latency, down))
            self._links[other].append((one, latency, down))
        # Between two changes all events of a publisher reach the same brokers, after the same times.
        self._known: dict[tuple[int, int], tuple[Floats, float]] = {}

    def arrival(self, publisher: Ints, since: Floats, broker: Ints) -> Floats:
        """When events that were published at brokers at times arrive at others; ∞: never."""
        pairs = zip(publisher.tolist(), since.tolist(), broker.tolist(), strict=True)
        return np.array([at + self.takes(of, at)[to] for of, at, to in pairs], dtype=np.float64)

    def takes(self, publisher: int, since: float) -> Floats:
        """How long a flood from this publisher takes to each broker; ∞: it does not come there."""
        epoch = int(np.searchsorted(self._changes, since, side="right"))
        until = float(self._changes[epoch])
        known = self._known.get((epoch, publisher))
        if known is not None and since + known[1] < until:
            return known[0]
        arrival, last = self._flood(publisher, since)
        takes = arrival - since
        if last < until:
            self._known[epoch, publisher] = takes, last - since
        return takes

    def _flood(self, publisher: int, since: float) -> tuple[Floats, float]:
        """When the first copy arrives at each broker, and the last one anywhere, or would over a link that is down."""
        arrival, last = np.full(self._brokers, np.inf), since
        if any(begin <= since < end for begin, end in self._crashed.get(publisher, ())):
            return arrival, last
        waiting = [(since, publisher)]
        while waiting:
            now, broker = heappop(waiting)
            if now >= arrival[broker]:
                continue
            arrival[broker] = now
            for other, latency, down in self._links[broker]:
                there = now + latency
                last = max(last, there)
                if there < arrival[other] and not any(begin <= there and now < end for begin, end in down):
                    heappush(waiting, (there, other))
        return arrival, last


def down_times(faults: pa.Table, fails: str, repaired: str) -> dict[tuple[int, int], list[Interval]]:
    """When each broker (with −1) or link, the smaller broker first, was down."""
    found: dict[tuple[int, int], list[Interval]] = {}
    names = ("time", "kind", "broker", "neighbour")
    for time, kind, *target in zip(*(faults.column(name).to_pylist() for name in names), strict=True):
        place = target[0], target[1]
        if kind == fails:
            found.setdefault(place, []).append((time, np.inf))
        elif kind == repaired:
            found[place][-1] = found[place][-1][0], time
    return found
