"""When failures are noticed, and when what is back is used again: heartbeats, worked out instead of simulated.

Neighbours send each other a heartbeat every `routing.heartbeat` ms, from time 0 on, over every link of the graph. What
has not been heard of for `routing.detect_after` ms counts as down: a link when the last of its ends notices, a broker
when the last of its neighbours does, for until then it could be only a link. What was down for less is never noticed.

What is back is used again at once, after a hold-down, or never. Whoever fails again and again has to wait longer: the
hold-down doubles with each return, and `at-once` holds for the first return only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest

from broker.failover import Versions
from broker.network import Network
from broker.settings import Failover
from broker.trace.schema import CRASH
from routing.overlay.graph import Overlay
from sim.experiment.agenda import Item, Kind
from sim.experiment.faults import Fault


def noticed(overlay: Overlay, failover: Failover, fault: Fault) -> float:
    """When a failure is noticed if it lasts."""
    if fault.kind == CRASH:
        latencies = [overlay.latency(fault.broker, neighbour) for neighbour in overlay.graph[fault.broker]]
    else:
        latencies = [overlay.latency(*fault.ends)]
    beat = failover.heartbeat
    # The last heartbeat that arrived before the failure; at first, silence counts from time 0.
    heard = [max(math.ceil((fault.time - latency) / beat) - 1, 0) * beat + latency for latency in latencies]
    last = max((at for at in heard if at < fault.time), default=0.0)
    return max(last + failover.detect_after, fault.time)


def waits(failover: Failover, returns: int) -> float:
    """How long something that is back for the n-th time has to wait until it is used again."""
    if failover.rejoin == "never":
        return math.inf
    if failover.rejoin == "at-once":
        return 0.0 if returns <= 1 else failover.hold_down * 2.0 ** (returns - 2)
    return failover.hold_down * 2.0 ** (returns - 1)


def detections(network: Network, faults: Sequence[Fault]) -> Iterator[Item]:
    """What a network notices of its faults, and when."""
    if network.versions is not None:
        found: dict[tuple[int, int], list[Fault]] = {}
        for fault in sorted(faults, key=lambda fault: fault.time):
            found.setdefault(fault.target, []).append(fault)
        for target, its in found.items():
            yield from _of_target(network, network.versions, target, its)


def _of_target(network: Network, versions: Versions, target: tuple[int, int], faults: list[Fault]) -> Iterator[Item]:
    """`faults`: those of one broker or link, in order."""
    returns, known = 0, False  # is it known to have been down, and not used again since?
    for fault, following in zip_longest(faults, faults[1:]):
        at = noticed(network.overlay, versions.settings, fault)
        if at < fault.until:
            returns, known = returns + 1, True
            yield at, Kind.DETECTION, partial(versions.detect, target)
        wait = waits(versions.settings, returns)
        again = fault.until + wait
        if known and wait and fault.until < math.inf:
            yield fault.until, Kind.DETECTION, partial(versions.hold, target)
        if known and again < (math.inf if following is None else following.time):
            known = False
            yield again, Kind.DETECTION, partial(versions.rejoin, target)
