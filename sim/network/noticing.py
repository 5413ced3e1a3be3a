"""What a network with fail-over notices of its failures, as they happen; sim/experiment/detection.py says when."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial

from broker.network import Network
from sim.experiment.agenda import Agenda, Kind
from sim.experiment.detection import noticed, waits
from sim.experiment.faults import Fault

Target = tuple[int, int]


class Noticing:
    """Plans on the agenda what follows from a failure or repair, unless the next one of its target comes first."""

    def __init__(self, network: Network, agenda: Agenda) -> None:
        self._network, self._agenda = network, agenda
        self._turns: Counter[Target] = Counter()  # failures and repairs
        self._returns: Counter[Target] = Counter()
        self._known: set[Target] = set()  # to have been down, and not used again since

    def failed(self, fault: Fault) -> None:
        versions, target = self._network.versions, fault.target
        if versions is None:
            return

        def detect() -> None:
            self._returns[target] += 1
            self._known.add(target)
            versions.detect(target)

        self._turns[target] += 1
        self._plan(noticed(self._network.overlay, versions.settings, fault), target, detect)

    def repaired(self, target: Target) -> None:
        versions = self._network.versions
        if versions is None:
            return

        def rejoin() -> None:
            self._known.remove(target)
            versions.rejoin(target)

        self._turns[target] += 1
        if target in self._known:
            now, wait = self._network.env.now, waits(versions.settings, self._returns[target])
            if wait:
                self._plan(now, target, partial(versions.hold, target))
            if wait < math.inf:
                self._plan(now + wait, target, rejoin)

    def _plan(self, time: float, target: Target, act: Callable[[], object]) -> None:
        turn = self._turns[target]

        def unless_changed() -> None:
            if self._turns[target] == turn:
                act()

        self._agenda.add(time, Kind.DETECTION, unless_changed)
