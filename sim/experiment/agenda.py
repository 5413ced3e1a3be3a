"""What happens to a network from outside: repairs, failures, what clients ask for, samples of table sizes.

The rule of one moment (docs/design.md): at equal times repairs come first, then failures, then requests, each in the
order given, then samples; messages and ends of service come after all of these, in the order of scheduling.

All of it is scheduled before time 0. SimPy processes events of one time in the order in which they were scheduled, so
the agenda precedes every message; and a delay that begins at 0 is the time itself, with nothing to round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

from broker.network import Network
from broker.trace.schema import CRASH
from sim.experiment.faults import Fault
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, RERANK, SUBSCRIBE, Timeline
from sim.workloads.contract import filter_of

Item = tuple[float, Callable[[], object]]  # when, and what to do


def keep(network: Network, agenda: Sequence[Item], tell: Callable[[float], None]) -> None:
    """Schedule an agenda in a network that nothing has happened in; `tell` is given the share of it that is done."""
    env = network.env
    assert env.now == 0.0
    in_order = sorted(agenda, key=itemgetter(0))  # stable: at one moment as given
    last = in_order[-1][0] if in_order else 0.0

    def moment(acts: list[Callable[[], object]]) -> None:
        tell(env.now / last if last else 1.0)
        for act in acts:
            act()

    for time, items in groupby(in_order, key=itemgetter(0)):
        acts = [act for _, act in items]
        env.timeout(time).callbacks.append(lambda _, acts=acts: moment(acts))


def repairs_and_failures(network: Network, faults: Sequence[Fault]) -> list[Item]:
    """Repairs come first, so that a target may fail again at the moment it is back."""
    outages = network.outages
    repairs: list[Item] = []
    failures: list[Item] = []
    for fault in faults:
        if fault.kind == CRASH:
            failures.append((fault.time, partial(outages.crash, fault.broker, fault.keep_state)))
            repairs.append((fault.until, partial(outages.restart, fault.broker)))
        else:
            failures.append((fault.time, partial(outages.cut, *fault.ends)))
            repairs.append((fault.until, partial(outages.heal, *fault.ends)))
    return [*((time, act) for time, act in repairs if time < math.inf), *failures]


def requests(network: Network, workload: Workload, timeline: Timeline) -> Iterator[Item]:
    """What clients ask for."""
    first = len(timeline.preloaded)
    filters = [filter_of(workload, row) for row in range(first, len(workload.lo))]
    first_rows = workload.first_rows.tolist()
    steps = (column.tolist() for column in (timeline.time, timeline.kind, timeline.index, timeline.broker))
    for when, kind, index, broker in zip(*steps, strict=True):
        if kind == SUBSCRIBE:
            yield when, partial(network.subscribe, broker, index, filters[index - first])
        elif kind == PUBLISH:
            weights = None if workload.event_weights is None else workload.event_weights[index]
            yield when, partial(network.publish, broker, index, workload.events[index], weights)
        elif kind == RERANK:
            yield when, partial(network.rerank, first_rows[index], filters[index - first])
        else:
            yield when, partial(network.unsubscribe, index)


def samples(network: Network, timeline: Timeline, count: int) -> list[Item]:
    """Record table sizes at even intervals, up to the last action of a client."""
    last = float(timeline.time[-1]) if len(timeline) else 0.0
    dues = [last * (sample + 1) / count for sample in range(count)] if len(timeline) else []
    return [(due, network.sample_tables) for due in dues]
