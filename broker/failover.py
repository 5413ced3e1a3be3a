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

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from broker.around import NetworkAround
from broker.messages import Sync
from broker.node import Broker
from broker.recovery import SUBSCRIPTIONS
from broker.settings import Failover
from broker.trace.schema import CLIENT, DETECTED, NOBODY, REJOINED, SWITCHED
from routing.overlay.failover import alike, named, tree_around
from routing.overlay.graph import Overlay
from routing.overlay.trees import SHARED, links_of

Target = tuple[int, int]  # a broker and NOBODY, or the two ends of a link, the smaller one first
HELD, DOWN = 1, 2  # back, but not to be used yet; known to be down
REPAIRS = ("switch", "reconnect", "restart", "resubscribe")  # operations that must end before a version takes over


class FailingNetwork(NetworkAround, Protocol):
    overlay: Overlay
    published: int

    @property
    def brokers(self) -> Sequence[Broker]: ...


@dataclass(slots=True, eq=False)
class Version:
    """One version of a tree; the first is the tree that the network began with.

    The tree itself is among those of the network until the version is retired; what is told here is kept for the trace.
    """

    name: int
    source: int  # whose tree it is: SHARED, or the publisher
    number: int = 0  # of the versions of this tree
    before: int = NOBODY  # the version that it takes over from
    began: float = 0.0
    serves: float | None = None  # since when events follow it
    first: int | None = None  # how many events had been published by then
    retired: float | None = None
    following: int = 0  # messages about events on their way in it
    changed: tuple[tuple[int, int, bool], ...] = ()  # links that only it has (True), or only the version before

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Of the trace."""
        life = self.name, self.source, self.before, self.began, self.serves, self.first, self.retired
        yield from ((*life, *change) for change in self.changed)


class Versions:
    """The versions of the trees of one network.

    Of each tree some are alive: at least the current one, which events follow that are published now, and the newest.
    """

    def __init__(self, network: FailingNetwork, failover: Failover) -> None:
        self.network, self.settings = network, failover
        self._alive = {source: [Version(source, source)] for source in network.trees}  # oldest first
        self._original = dict(network.trees)
        self._current = {source: first for source, (first,) in self._alive.items()}
        self._called = {version.name: version for version in self._current.values()}
        self._begun: list[Version] = []  # all but the first of each tree
        self._known: dict[Target, int] = {}  # what is not to be used → HELD or DOWN
        self.repairing = 0  # messages of repairs on their way

    def current(self, broker: int) -> int:
        """The version that events follow that are published at a broker now."""
        return self._current[SHARED if SHARED in self._current else broker].name

    @property
    def newest(self) -> dict[int, int]:
        """The name of the newest version of each tree."""
        return {source: alive[-1].name for source, alive in self._alive.items()}

    @property
    def followed(self) -> int:
        """Messages about events on their way."""
        return sum(version.following for version in self._called.values())

    def rows(self) -> list[tuple[Any, ...]]:
        """Of the trace."""
        return [row for version in self._begun for row in version.rows()]

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
        newest = all(alive[-1] is self._current[source] for source, alive in self._alive.items())
        return newest and {t for t, state in self._known.items() if state == DOWN} == {*targets}

    def _avoid(self, a: int, b: int) -> int:
        ends = (a, NOBODY), (b, NOBODY), (min(a, b), max(a, b))
        return max(self._known.get(target, 0) for target in ends)

    # ── a version begins, takes over and is retired ────────────────────────────────────────────────────

    def _switch(self, target: Target) -> None:
        network, operation = self.network, -1
        self.repairing += 1  # all trees together, also where a new version needs no message
        for source, original in self._original.items():
            newest = self._alive[source][-1]
            now, number = network.trees[newest.name], newest.number + 1
            name = named(source, number, len(network.brokers))
            tree = tree_around(network.overlay, self.settings.how, original, now, name, self._avoid)
            links, before = links_of([tree]), links_of([now])
            if links == before:
                continue
            if operation < 0:
                operation = network.new_operation("switch", NOBODY, target[0])
            changed = tuple((*link, link in links) for link in sorted({*links} ^ {*before}))
            version = Version(name, source, number, now.name, network.env.now, changed=changed)
            self._alive[source].append(version)
            self._begun.append(version)
            self._called[name] = version
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
        """Every broker that is up begins or forgets a version when it comes to it."""
        for broker in self.network.brokers:
            if self.network.outages.is_up(broker.number):
                self.network.operation_sends(operation)
                now = self.network.env.now
                broker.server.arrive(Sync(kind, SUBSCRIPTIONS, (), (), operation, CLIENT, now, 0, name))

    def served(self) -> None:
        """Once all repairs are done events follow the newest versions."""
        if self.repairing:
            return
        later = [alive[-1] for source, alive in self._alive.items() if alive[-1] is not self._current[source]]
        for version in later:
            self._current[version.source] = version
            version.serves, version.first = self.network.env.now, self.network.published
            self._retire_soon(version.source)
        if later:
            self.network.outages.record(SWITCHED, NOBODY, NOBODY)

    def _retire_soon(self, source: int) -> None:
        self.network.env.after(0.0, lambda _: self._retire(source))  # not while a broker is at work

    def _retire(self, source: int) -> None:
        alive = self._alive[source]
        if self._current[source] is not alive[-1]:
            return  # a newer one is about to take over
        for version in [version for version in alive[:-1] if not version.following]:
            alive.remove(version)
            version.retired, name = self.network.env.now, version.name
            del self._called[name], self.network.trees[name]
            self._mark("retire", self.network.new_operation("retire", NOBODY, NOBODY), name)

    def sent(self, name: int) -> None:
        """A message about an event is on its way in a version."""
        self._called[name].following += 1

    def arrived(self, name: int) -> None:
        """It was processed, or is lost."""
        version = self._called[name]
        version.following -= 1
        if not version.following and len(self._alive[version.source]) > 1:
            self._retire_soon(version.source)
