"""What happens to a network from outside: repairs, failures, what clients ask for, samples of table sizes.

The rule of one moment (docs/design.md): at equal times repairs come first, then failures, then what is noticed of them,
then requests, each in the order given, then samples; messages and ends of service come after all of these, in the order
of scheduling.

`env.run(until=t)` stops before anything that happens at t. So the agenda runs the network up to each of its moments,
acts there, and goes on. Anything may be added while it runs. What has no time waits until the network is at rest, one
act after the other. It happens a moment after the last message or act, so that a file can say when it happened: at the
time of that message, it would precede it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter

import simpy

from broker.network import Network
from broker.trace.schema import CRASH
from broker.transport import Clock
from coverlay import CoverlayError
from sim.experiment.faults import Fault
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, RERANK, SUBSCRIBE, Timeline
from sim.workloads.contract import filter_of

MOMENT = 2.0**-30  # ms, a picosecond; whole numbers of it and of milliseconds add up without rounding for hours
Act = Callable[[], object]


class Kind(IntEnum):
    """What comes first at equal times."""

    REPAIR, FAILURE, DETECTION, REQUEST, SAMPLE = range(5)


Item = tuple[float, Kind, Act]  # when, and what to do
_Entry = tuple[float, Kind, int, Act]


class _ThereIsMore(Exception):
    """Leave SimPy: something was added that comes before the moment up to which it runs."""


class Agenda:
    """What is still to happen to a network, by time."""

    def __init__(self, env: Clock) -> None:
        self.env = env
        self._items: list[_Entry] = []
        self._waiting: deque[tuple[Kind, int, Act]] = deque()  # for rest
        self._places = count()
        self._running_to = -math.inf  # the moment up to which SimPy runs now

    def next_place(self) -> int:
        """The place of an act among those of its moment and kind."""
        return next(self._places)

    def add(self, time: float, kind: Kind, act: Act, place: int | None = None) -> None:
        """Act at a time; at equal times acts of one kind are in the order of their places (default: of adding)."""
        heappush(self._items, (time, kind, self.next_place() if place is None else place, act))
        if time < self._running_to:
            self.env.timeout(0).callbacks.append(_leave)

    def wait(self, kind: Kind, act: Act) -> None:
        """Act when the network is at rest after all that waited before."""
        self._waiting.append((kind, self.next_place(), act))

    def add_all(self, items: Iterable[Item]) -> None:
        for item in items:
            self.add(*item)

    @property
    def next(self) -> float:
        """When something happens next, as far as is known now; inf: never."""
        return self._first()[0] if self._items or self._waiting else math.inf

    @property
    def waiting(self) -> int:
        """How many acts wait for the network to be at rest."""
        return len(self._waiting)

    def _first(self) -> _Entry:
        """What comes first of the acts with a time and the next one without."""
        resting = [(self._rest, *self._waiting[0])] if self._waiting else []
        return min(self._items[:1] + resting)

    @property
    def _rest(self) -> float:
        """When the network will be at rest if it sends nothing more: at a moment at which nothing has happened."""
        now, last = self.env.now, max(self.env.busy_until, self.env.acted)
        return now if last < now else max((last // MOMENT + 1) * MOMENT, math.nextafter(last, math.inf))

    def _act(self) -> None:
        first = self._first()
        if self._items and first is self._items[0]:
            heappop(self._items)
        else:
            self._waiting.popleft()
        first[-1]()

    def run(self, until: float = math.inf, tell: Callable[[float], None] | None = None) -> None:
        """Run up to a time, without what happens then, or until nothing is left to happen; `tell` hears the times."""
        while self.env.now < until and self._go_on(until):
            if tell is not None:
                tell(self.env.now)

    def run_until(self, event: simpy.Event) -> None:
        """Run until an event of SimPy has happened."""
        if not event.processed:  # after all that it calls
            event.callbacks.append(lambda _: self.env.timeout(0).callbacks.append(_leave))
        while not event.processed:
            if not self._go_on():
                raise CoverlayError("nothing is left to happen, and the event has not happened")

    def run_to_rest(self) -> None:
        """Run until nothing is left to happen, and beyond the moment of the last message."""
        self.run()
        self.settle()

    def settle(self) -> None:
        """Run until nothing waits and the network is at rest; processes may have more to do later."""
        while self._waiting or self._rest > self.env.now:
            self._go_on(self._rest)

    def _go_on(self, until: float = math.inf) -> bool:
        """Do what comes next, or let SimPy run up to it; False if nothing is left."""
        stop = min(self.next, until)
        if stop <= self.env.now:
            self._act()
        elif stop == self.env.peek() == math.inf:
            return False
        else:
            self._advance(stop)
        return True

    def _advance(self, stop: float) -> None:
        """Let SimPy run up to a later time, or less far."""
        env = self.env
        # SimPy goes to now + (stop − now), which rounding can make another number unless now is 0 or half of it.
        exact = env.now == 0.0 or 2.0 * env.now >= stop
        self._running_to = stop if exact else 0.75 * stop
        try:
            env.run(None if stop == math.inf else self._running_to)
        except _ThereIsMore:
            pass
        finally:
            self._running_to = -math.inf


def _leave(_: simpy.Event) -> None:
    raise _ThereIsMore


def repairs_and_failures(network: Network, faults: Sequence[Fault]) -> Iterator[Item]:
    """Repairs come first, so that a target may fail again at the moment it is back."""
    outages = network.outages
    repairs: list[tuple[float, Item]] = []
    for fault in faults:
        if fault.kind == CRASH:
            fails = partial(outages.crash, fault.broker, fault.keep_state)
            returns = partial(outages.restart, fault.broker)
        else:
            fails, returns = partial(outages.cut, *fault.ends), partial(outages.heal, *fault.ends)
        yield fault.time, Kind.FAILURE, fails
        if fault.until < math.inf:
            repairs.append((fault.until_order, (fault.until, Kind.REPAIR, returns)))
    yield from (repair for _, repair in sorted(repairs, key=itemgetter(0)))


def requests(network: Network, workload: Workload, timeline: Timeline) -> Iterator[Item]:
    """What clients ask for."""
    first = len(timeline.preloaded)
    filters = [filter_of(workload, row) for row in range(first, len(workload.lo))]
    first_rows = workload.first_rows.tolist()
    steps = (column.tolist() for column in (timeline.time, timeline.kind, timeline.index, timeline.broker))
    for when, kind, index, broker in zip(*steps, strict=True):
        if kind == SUBSCRIBE:
            act = partial(network.subscribe, broker, index, filters[index - first])
        elif kind == PUBLISH:
            weights = None if workload.event_weights is None else workload.event_weights[index]
            act = partial(network.publish, broker, index, workload.events[index], weights)
        elif kind == RERANK:
            act = partial(network.rerank, first_rows[index], filters[index - first])
        else:
            act = partial(network.unsubscribe, index)
        yield when, Kind.REQUEST, act


def samples(network: Network, timeline: Timeline, count: int) -> Iterator[Item]:
    """Record table sizes at even intervals, up to the last action of a client."""
    for time in timeline.sample_times(count):
        yield time, Kind.SAMPLE, network.sample_tables
