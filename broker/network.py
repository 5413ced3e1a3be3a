"""A network of brokers on an overlay, in SimPy: the reference engine.

network = Network(overlay, settings, stream)
network.subscribe(broker, subscription, filter)
network.publish(broker, event, values)
network.run()              # until nothing is under way
tables = network.tables()  # the trace
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.failover import REPAIRS, Versions
from broker.loading import link_by_link, one_by_one
from broker.messages import Control, Message, Publication, Reply
from broker.node import Broker
from broker.outages import Outages
from broker.settings import Settings
from broker.trace.recorder import Recorder
from broker.trace.schema import CLIENT, NOBODY, PUBLISHER_DOWN
from broker.transport import Clock, Link
from broker.tree_part import TreePart
from coverlay import CoverlayError
from routing.filter import Filter
from routing.ledger import Kind, LedgerMessage
from routing.overlay.graph import Overlay
from routing.overlay.trees import SHARED, links_of, trees_of
from routing.strategies import strategy


@dataclass(slots=True)
class _Operation:
    kind: str
    subscription: int
    broker: int
    time: float
    repairs: bool
    finished: float  # when its last message so far was processed
    outstanding: int = 0  # messages not yet processed
    messages: int = 0


class Network:
    def __init__(self, overlay: Overlay, settings: Settings, stream: Callable[[str], np.random.Generator]) -> None:
        self.env = Clock()
        self.overlay = overlay
        self.settings = settings
        self.stream = stream
        self.recorder = Recorder()
        self.trees = trees_of(overlay, settings.trees, settings.root)
        self._mergers = 0
        self.published = 0  # events that clients tried to publish
        self.loading = False  # while subscriptions from before time 0 spread, untraced
        self.under_way = 0  # control messages sent and not yet processed or lost
        self.on_finished: Callable[[int], None] = lambda operation: None  # called when no message of it is under way
        self._copies: dict[int, int] = {}  # event → its messages under way, where brokers remember events
        self._visited: dict[int, list[int]] = {}  # event → brokers that remember it
        self._operations: list[_Operation] = []
        self._last_request: dict[int, int] = {}  # subscription → operation
        self._home: dict[int, tuple[int, Filter]] = {}
        self._advertised: dict[int, tuple[int, Filter]] = {}
        self.outages = Outages(self)
        self.versions = None if settings.failover is None else Versions(self, settings.failover)
        self.brokers = [Broker(self, number) for number in range(overlay.brokers)]
        for a, b in sorted((min(link), max(link)) for link in overlay.graph.edges):
            self._connect(a, b, overlay.latency(a, b))
            self._connect(b, a, overlay.latency(a, b))
        settings.check_links(self.links)
        settings.check_failover()

    @cached_property
    def links(self) -> list[tuple[int, int]]:
        """The links that some tree uses, the smaller broker first."""
        return links_of(self.trees.values())

    def tree_from(self, broker: int) -> int:
        """The tree that events published at `broker` follow."""
        if self.versions is not None:
            return self.versions.current(broker)
        return SHARED if SHARED in self.trees else broker

    def newest_parts(self, broker: int) -> dict[int, TreePart]:
        """A broker's part in the newest version of each tree, by the name of its first."""
        parts = self.brokers[broker].parts
        return parts if self.versions is None else {base: parts[name] for base, name in self.versions.newest.items()}

    def new_merger(self) -> int:
        """An id for a subscription that a broker invents: below NOBODY, where no client has one."""
        self._mergers += 1
        return NOBODY - self._mergers

    def _connect(self, source: int, target: int, latency: float) -> None:
        self.brokers[source].links[target] = Link[Message](
            self.env,
            self.brokers[target].server.arrive,
            latency,
            self.settings.links,
            self.stream(f"link/{source}/{target}") if self.settings.links.is_random else None,
            partial(self.outages.lost_on_link, source, target),
            self.brokers[target].server.wait,
        )

    # ── what clients do, at the present simulated time ─────────────────────────────────────────────────

    def subscribe(self, broker: int, subscription: int, filter: Filter) -> None:
        if subscription in self._home:
            raise CoverlayError(f"subscription {subscription} is subscribed already")
        self._home[subscription] = (broker, filter)
        self._request(Kind.SUBSCRIBE, subscription, broker, filter)

    def preload(self, homes: Sequence[int], filters: Sequence[Filter]) -> None:
        """Add subscriptions 0, 1, … before time 0, as if each had spread completely before the next.

        The trace has the requests and how many messages they took, but not the messages and decisions.
        """
        heard: list[list[tuple[int, LedgerMessage]]] = [[] for _ in self.brokers]  # from clients
        for subscription, (broker, filter) in enumerate(zip(homes, filters, strict=True)):
            self._home[subscription] = (broker, filter)
            operation = self.new_operation("preload", subscription, broker)
            request = Control(
                Kind.SUBSCRIBE, subscription, filter, operation, CLIENT, self.env.now, operation, 0, SHARED
            )
            self.brokers[broker].record_control(request, self.recorder.step(), 0.0)
            self.brokers[broker].local.add(subscription, filter)
            heard[broker].append((operation, (Kind.SUBSCRIBE, subscription, filter)))
        self.loading = True
        if strategy(self.settings.strategy).merges:
            spread = one_by_one(self.brokers, heard)
        else:
            at_once = self.settings.ranked is not None  # else one by one, as the compiled engine does
            spread = chain.from_iterable(
                link_by_link(self.brokers, tree, heard, at_once) for tree in self.trees.values()
            )
        for operation in spread:
            self._operations[operation].messages += 1
        self.loading = False

    def unsubscribe(self, subscription: int) -> None:
        if subscription not in self._home:
            raise CoverlayError(f"subscription {subscription} is not subscribed, so it cannot leave")
        broker, filter = self._home.pop(subscription)
        self._request(Kind.UNSUBSCRIBE, subscription, broker, filter)

    def rerank(self, subscription: int, filter: Filter) -> None:
        """Ask for the same as before, and rank by another score, other weights or another place from now on."""
        if subscription not in self._home:
            raise CoverlayError(f"subscription {subscription} is not subscribed, so it cannot change how it ranks")
        broker, before = self._home[subscription]
        if before.key != filter.key:
            raise CoverlayError(f"subscription {subscription} can change how it ranks, not what it asks for")
        self._home[subscription] = (broker, filter)
        self._request(Kind.RERANK, subscription, broker, filter)

    def advertise(self, broker: int, advertisement: int, filter: Filter) -> None:
        """Announce that events within `filter` will be published at `broker`."""
        if self.settings.advertisements == "none":
            raise CoverlayError('advertisements are "none" in this network; they can be "simple" or "covering"')
        if advertisement in self._advertised:
            raise CoverlayError(f"advertisement {advertisement} is in force already")
        self._advertised[advertisement] = (broker, filter)
        self._request(Kind.ADVERTISE, advertisement, broker, filter)

    def unadvertise(self, advertisement: int) -> None:
        if advertisement not in self._advertised:
            raise CoverlayError(f"advertisement {advertisement} is not in force, so it cannot end")
        broker, filter = self._advertised.pop(advertisement)
        self._request(Kind.UNADVERTISE, advertisement, broker, filter)

    def publish(
        self, broker: int, event: int, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> None:
        now = self.env.acted = self.env.now
        self.recorder.rows["published"].append((event, broker, now, self.recorder.steps))
        self.published += 1
        message = Publication(event, values, now, CLIENT, now, 0, -1, self.tree_from(broker), weights)
        self.event_sends(message)
        self._offer(broker, message)

    def _offer(self, broker: int, message: Publication) -> None:
        """Publish now; a publisher whose broker has no room waits until it has."""
        server = self.brokers[broker].server
        if not self.outages.is_up(broker):
            self.outages.record(PUBLISHER_DOWN, broker, CLIENT, message.event)
            self.event_processed(message)
        elif not server.arrive(message):
            server.wait(partial(self._offer, broker, message))

    def clients_return(self, broker: int, asking: set[int]) -> None:
        """After a broker lost its memory, its clients repeat what is in force, except what they ask for anyway."""
        for known, kind in ((self._advertised, Kind.ADVERTISE), (self._home, Kind.SUBSCRIBE)):
            for name, (home, filter) in known.items():
                if home == broker and not (kind is Kind.SUBSCRIBE and name in asking):
                    self._request(kind, name, broker, filter, again=True)

    def _request(self, kind: Kind, subscription: int, broker: int, filter: Filter, again: bool = False) -> None:
        name = f"re{kind.name.lower()}" if again else kind.name.lower()
        operation = self.new_operation(name, subscription, broker)
        if kind not in (Kind.ADVERTISE, Kind.UNADVERTISE):
            self._last_request[subscription] = operation
        self._operations[operation].outstanding += 1
        self.wait(operation, 1)
        tree = self.tree_from(broker) if kind in (Kind.ADVERTISE, Kind.UNADVERTISE) else SHARED
        request = Control(kind, subscription, filter, operation, CLIENT, self.env.now, operation, 0, tree)
        if self.outages.is_up(broker):
            self.brokers[broker].server.arrive(request)
        else:
            self.outages.repeat_later(broker, request)

    # ── bookkeeping that the brokers call ──────────────────────────────────────────────────────────────

    def new_operation(self, kind: str, subscription: int, broker: int) -> int:
        now = self.env.acted = self.env.now
        self._operations.append(_Operation(kind, subscription, broker, now, kind in REPAIRS, finished=now))
        return len(self._operations) - 1

    def operation_sends(self, operation: int) -> None:
        record = self._operations[operation]
        record.outstanding += 1
        record.messages += 1
        self.wait(operation, 1)

    def operation_processed(self, operation: int) -> None:
        """A message of the operation was processed, or never will be."""
        record = self._operations[operation]
        record.outstanding -= 1
        if record.outstanding == 0:
            record.finished = self.env.now
            self.on_finished(operation)
        self.wait(operation, -1)

    def wait(self, operation: int, messages: int) -> None:
        """More or fewer messages of an operation are under way, or wait for a broker that is up."""
        self.under_way += messages
        if self.versions is not None and self._operations[operation].repairs:
            self.versions.repairing += messages
            self.versions.served()
        if self.under_way == 0:
            self.outages.note_progress()

    def event_sends(self, message: Publication | Reply) -> None:
        if self.settings.ranked is not None:
            self._copies[message.event] = self._copies.get(message.event, 0) + 1
        elif self.versions is not None:
            self.versions.sent(message.tree)

    def event_lost(self, message: Publication | Reply) -> None:
        if self.settings.ranked is not None:
            self._copies[message.event] -= 1
        elif self.versions is not None:
            self.versions.arrived(message.tree)

    def event_processed(self, message: Publication | Reply) -> None:
        """A message about the event was processed, or was lost and is not awaited."""
        self.event_lost(message)
        if self.settings.ranked is not None:
            self.close_if_over(message.event)

    def opened(self, event: int, broker: int) -> None:
        self._visited.setdefault(event, []).append(broker)

    def close_if_over(self, event: int) -> None:
        """Make brokers forget an event that is over. The simulation knows when; a real broker would use a timeout."""
        if self._copies.get(event) == 0:
            del self._copies[event]
            for broker in self._visited.pop(event, ()):
                visits = self.brokers[broker].visits
                visit = None if visits is None else visits.open.pop(event, None)
                assert visit is None or not visit.waiting, f"broker {broker} still waits for answers to event {event}"

    # ── running ────────────────────────────────────────────────────────────────────────────────────────

    def run(self, until: float | None = None) -> None:
        """Advance to `until`, or until nothing is under way."""
        self.env.run(until)

    def sample_tables(self) -> None:
        """Add the present size of every table to the trace."""
        self.recorder.rows["tables"] += self._sizes(self.env.now, final=False)

    def _sizes(self, time: float, final: bool) -> Iterator[tuple[Any, ...]]:
        for broker in self.brokers:
            yield time, broker.number, CLIENT, len(broker.local), 0, final
            for neighbour in broker.links:
                there = broker.tables_of(neighbour)
                if not there:
                    continue  # a spare link
                entries, pruned = sum(map(len, there)), sum(table.pruned for table in there)
                yield time, broker.number, neighbour, entries, pruned, final

    def tables(self) -> dict[str, pa.Table]:
        """The trace so far, without the run record: what happened, the present sizes of tables, the overlay itself."""
        operations = [
            (number, o.kind, o.subscription, o.broker, o.time, o.finished, o.messages)
            for number, o in enumerate(self._operations)
        ]
        sizes = self._sizes(self.env.finished, final=True)
        versions = [] if self.versions is None else self.versions.rows()
        last = {"tables": list(sizes), "operations": operations, "versions": versions}
        return self.recorder.tables({**last, **overlay_rows(self.overlay, self.links)})

    def is_spreading(self, subscription: int) -> bool:
        """Is a message of the last request about a subscription under way, or does the request wait for its broker?"""
        operation = self._last_request.get(subscription)
        return operation is None or self._operations[operation].outstanding > 0

    def coverers(self, subscription: int) -> set[int]:
        """Whoever stands for a subscription somewhere, because it was held back there."""
        parts = (part for broker in self.brokers for part in broker.parts.values())
        ledgers = (ledger for part in parts for ledger in part.ledgers.values())
        held_back = (ledger.suppressed.get(subscription, (None, ())) for ledger in ledgers)
        return {coverer for _, coverers in held_back for coverer in coverers}

    @property
    def active_subscriptions(self) -> int:
        return len(self._home)

    def check(self) -> None:
        """At a quiet moment: every broker that is up is consistent, and both ends of each link that is up agree."""
        assert not self._copies, "an event counts as under way although no message is"
        for broker in self.brokers:
            if self.outages.is_up(broker.number):
                assert self.versions is None or broker.parts.keys() == self.trees.keys(), "a version was not retired"
                broker.check()


def overlay_rows(overlay: Overlay, links: list[tuple[int, int]]) -> dict[str, list[tuple[Any, ...]]]:
    """The trace rows that describe the overlay; `links`: those that some tree uses."""
    graph, routed = overlay.graph, set(links)
    return {
        "links": [
            (min(a, b), max(a, b), latency, (min(a, b), max(a, b)) in routed)
            for a, b, latency in sorted(graph.edges(data="latency"), key=lambda e: (min(e[:2]), max(e[:2])))
        ],
        "brokers": [
            (b, str(graph.nodes[b]["name"]), float(graph.nodes[b]["x"]), float(graph.nodes[b]["y"]))
            for b in sorted(graph.nodes)
        ],
    }
