"""Fail-over: another tree takes over when something is known to be down, and again when it is back.

At the moment of detection every broker learns which tree takes over (routing/overlay/failover.py); how such news
travels is not simulated. A switch-over begins a new *version* of the tree. Links that keep their tables share them with
the version before; the others start empty, and each broker tells over them what it knows from elsewhere, with the usual
covering decisions. Until that is done, and all other repairs are, events follow the version before. An event follows
the version that it was published in to the end; a version that no event follows any more is retired, and what only its
tables had asked for is taken back.

Broker by broker this is work like any other: a marker waits in the broker's queue (`switch`, `retire`). A broker that
is down finds out when it is back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol

from broker.around import NetworkAround
from broker.messages import Sync
from broker.node import Broker
from broker.recovery import SUBSCRIPTIONS
from broker.settings import Failover
from broker.trace.schema import CLIENT, DETECTED, NOBODY, REJOINED, SWITCHED
from routing.overlay.failover import alike, named, tree_around
from routing.overlay.graph import Overlay
from routing.overlay.trees import SHARED

Target = tuple[int, int]  # a broker and NOBODY, or the two ends of a link, the smaller one first
HELD, DOWN = 1, 2  # back, but not to be used yet; known to be down
REPAIRS = (
    "switch",
    "reconnect",
    "restart",
    "resubscribe",
)  # requests that no version takes over before they are served


class FailingNetwork(NetworkAround, Protocol):
    overlay: Overlay

    @property
    def brokers(self) -> Sequence[Broker]: ...


class Versions:
    """The versions of the trees of one network."""

    def __init__(self, network: FailingNetwork, failover: Failover) -> None:
        self.network, self.settings = network, failover
        self._original = dict(network.trees)
        self._live = {base: [base] for base in network.trees}  # the names of the versions of each tree, oldest first
        self._made = Counter[int]()
        self._current = {base: base for base in network.trees}
        self._following = Counter[int]()  # version → messages about events on their way in it
        self._known: dict[Target, int] = {}
        self.repairing = 0  # messages of repairs on their way

    def current(self, broker: int) -> int:
        """The version that events follow that are published at a broker now."""
        return self._current.get(SHARED, self._current.get(broker, SHARED))

    @property
    def newest(self) -> dict[int, int]:
        """The name of the newest version of each tree."""
        return {base: names[-1] for base, names in self._live.items()}

    # ── what is known ──────────────────────────────────────────────────────────────────────────────────

    def detect(self, target: Target) -> None:
        """Neighbours have not heard of a broker or over a link for too long."""
        if target in self.network.outages.down:
            self._known[target] = DOWN
            self.network.outages.record(DETECTED, *target)
            self._switch(target)

    def hold(self, target: Target) -> None:
        """Something is heard of again, but may be used only where nothing else leads."""
        if target in self._known and target not in self.network.outages.down:
            self._known[target] = HELD
            self._switch(target)

    def rejoin(self, target: Target) -> None:
        """What is back may be used again."""
        if target in self._known and target not in self.network.outages.down:
            del self._known[target]
            self.network.outages.record(REJOINED, *target)
            self._switch(target)

    def avoids(self, targets: Collection[Target]) -> bool:
        """Is just this known to be down, and do events follow the newest versions, which avoid it?"""
        return self.newest == self._current and {t for t, state in self._known.items() if state == DOWN} == {*targets}

    def _avoid(self, a: int, b: int) -> int:
        ends = (a, NOBODY), (b, NOBODY), (min(a, b), max(a, b))
        return max(self._known.get(target, 0) for target in ends)

    # ── versions ───────────────────────────────────────────────────────────────────────────────────────

    def _switch(self, target: Target) -> None:
        network, operation = self.network, -1
        self.repairing += 1  # all trees together, also where a new version needs no message
        for base, original in self._original.items():
            now = network.trees[self._live[base][-1]]
            name = named(base, self._made[base] + 1, len(network.brokers))
            tree = tree_around(network.overlay, self.settings.how, original, now, name, self._avoid)
            if {*map(frozenset, tree.graph.edges)} == {*map(frozenset, now.graph.edges)}:
                continue
            if operation < 0:
                operation = network.new_operation("switch", NOBODY, target[0])
            self._made[base] += 1
            self._live[base].append(name)
            network.trees[name] = tree
            kept = alike(now, tree)
            for broker in network.brokers:
                broker.begin_version(tree, now.name, kept)
            self._mark("switch", operation, name)
        self.repairing -= 1
        self.served()
        if not network.under_way:
            network.outages.note_progress()

    def _mark(self, kind: str, operation: int, name: int) -> None:
        for broker in self.network.brokers:
            if self.network.outages.is_up(broker.number):
                self.network.operation_sends(operation)
                now = self.network.env.now
                broker.server.arrive(Sync(kind, SUBSCRIPTIONS, (), (), operation, CLIENT, now, 0, name))

    def served(self) -> None:
        """Once all repairs are done events follow the newest versions."""
        if self.repairing:
            return
        later = {base: name for base, name in self.newest.items() if name != self._current[base]}
        self._current |= later
        for base in later:
            self._retire_soon(base)
        if later:
            self.network.outages.record(SWITCHED, NOBODY, NOBODY)

    def _retire_soon(self, base: int) -> None:
        self.network.env.after(0.0, lambda _: self._retire(base))  # not while a broker is at work

    def _retire(self, base: int) -> None:
        names = self._live[base]
        if self._current[base] != names[-1]:
            return  # a newer one is about to take over
        for name in [name for name in names[:-1] if not self._following[name]]:
            names.remove(name)
            del self.network.trees[name]
            self._mark("retire", self.network.new_operation("retire", NOBODY, NOBODY), name)

    def sent(self, name: int) -> None:
        """A message about an event is on its way in a version."""
        self._following[name] += 1

    def arrived(self, name: int) -> None:
        """It was processed, or is lost."""
        self._following[name] -= 1
        if not self._following[name]:
            del self._following[name]
            base = SHARED if name < 0 else name % len(self.network.brokers)
            if len(self._live[base]) > 1:
                self._retire_soon(base)
