"""A broker: its own clients' subscriptions, its part in every routing tree, and one server for all of it.

Tables and ledgers change when the service of a message begins. What the message makes the broker send waits in the
outbox until the service ends. Trace rows are written when it begins, with the times of its end.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal

from broker.around import NetworkAround
from broker.messages import ABOUT_EVENTS, Control, Message, Publication, Reply, Sync
from broker.ranked_visit import Visits
from broker.tables import LinkTable, LocalTable, takes_in
from broker.trace.schema import CLIENT, NOBODY, QUEUE_FULL
from broker.transport import Link, Server, Work, service_model
from broker.tree_part import TreePart
from broker.work import control_time, event_time, matching_time, tables_time
from routing.contract import Search
from routing.filter import Filter
from routing.ledger import Kind
from routing.overlay.trees import Tree

KIND_NAMES = {kind: kind.name.lower() for kind in Kind}  # as the trace spells them


class Broker:
    """One broker of a network. Messages come in through `server`, and leave through `links`."""

    def __init__(self, network: NetworkAround, number: int) -> None:
        settings = network.settings
        self.network = network
        self._env, self._recorder, self._k = network.env, network.recorder, settings.k
        self.number = number
        self.links: dict[int, Link[Message]] = {}  # filled by the network once all brokers exist
        self.operation = 0  # the request whose messages are being handled, for the trace
        self.nothing = Filter.of_box(settings.routing.domain)  # for messages that need a filter which nobody reads
        self.local = self._empty_table()
        self.parts: dict[int, TreePart] = {}
        for name, tree in network.trees.items():
            self.parts[name] = TreePart(self, tree)
        self._follows_events = settings.ranked is not None or settings.failover is not None
        self._service = service_model(settings.service, network.stream(f"service/{number}"))
        self._prices = settings.prices
        self._searching = 0.0  # time spent on searches for the current message
        self._processing = False
        self._outbox: list[tuple[int, Message]] = []
        self._row = 0  # trace row of the event in service
        self.visits = None if settings.ranked is None else Visits(self, settings.ranked)
        self.server: Server[Message] = Server(
            network.env,
            self.begin,
            self.end,
            self._service is None and self._prices is None,
            settings.queue_capacity,
            droppable=lambda message: isinstance(message, Publication),
            drop=self._drop,
            overflow=settings.overflow,
            worth=self._worth,
        )

    def _empty_table(self) -> LocalTable:
        return LocalTable(self.network.settings.ranking)

    def forget(self) -> None:
        """Lose everything that was in memory."""
        self.local = self._empty_table()
        renewed: list[TreePart] = []
        for part in self.parts.values():
            part.forget(renewed)
            renewed.append(part)

    def begin_version(self, tree: Tree, before: int, kept: Collection[tuple[int, int]]) -> None:
        """Take part in a new version of a tree, with the tables that the one before had of the links that are kept."""
        since = {n: v for n, v in self.parts[before].since.items() if (self.number, n) in kept}
        self.parts[tree.name] = TreePart(self, tree, since)

    def tables_of(self, neighbour: int) -> list[LinkTable]:
        """What a neighbour asked for, in each tree."""
        found = (part.tables[neighbour] for part in self.parts.values() if neighbour in part.tables)
        return list({id(table): table for table in found}.values())  # versions of a tree share tables

    def entries(self) -> int:
        return len(self.local) + sum(len(table) for neighbour in self.links for table in self.tables_of(neighbour))

    # ── service ────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, message: Message) -> float:
        """Process a message, but do not send yet what it causes; returns how long its service takes."""
        self._processing = True
        if isinstance(message, Publication):  # first: most messages are events
            took = self._publication(message) if self.visits is None else self.visits.event(message)
        elif isinstance(message, Reply):
            assert self.visits is not None
            took = self.visits.reply(message)
        else:
            took = self._request(message)
        self._processing = False
        return took

    def end(self, message: Message) -> None:
        """Send what a message caused. A request counts as processed only now, when what it caused is under way."""
        if self._outbox:
            outbox, self._outbox = self._outbox, []
            for neighbour, caused in outbox:
                self._hand_over(neighbour, caused)
        if not isinstance(message, ABOUT_EVENTS):
            self.network.operation_processed(message.operation)
        elif self._follows_events:
            if self.visits is not None:
                self.visits.end()
            self.network.event_processed(message)

    def send(self, neighbour: int, message: Message) -> None:
        """While a message is processed, what it causes waits for the end of its service; anything else leaves now."""
        if self._processing:
            self._outbox.append((neighbour, message))
        else:
            self._hand_over(neighbour, message)

    def _hand_over(self, neighbour: int, message: Message) -> None:
        link = self.links[neighbour]
        message.sent = self._env.now
        if not isinstance(message, ABOUT_EVENTS):
            message.sequence = link.sent
            self.network.operation_sends(message.operation)
        elif self._follows_events:
            self.network.event_sends(message)
        link.send(message)

    def crash(self) -> list[Message]:
        """Lose the message in service, with what it would have sent and served, and the queue; returns the messages."""
        if isinstance(self.server.served, Publication):
            self.network.recorder.cut_off.append(self._row)
        self._outbox.clear()
        if self.visits is not None:
            self.visits.crash()
        return self.server.clear()

    def charge(self, search: Search) -> float:
        """Charge a search for covers to the current message; returns how long it takes."""
        if self._prices is None:
            return 0.0
        took = self._prices.searching(search)
        self._searching += took
        return took

    @property
    def outgoing_bytes(self) -> int:
        """Bytes that the current message has caused to be sent so far."""
        return sum(caused.size for _, caused in self._outbox)

    @property
    def outgoing_events(self) -> int:
        """Copies of events that the current message has caused to be sent so far."""
        return sum(isinstance(caused, Publication) for _, caused in self._outbox)

    def took(self, message: Message) -> float:
        """How long a message is served, where that does not follow from its counted work."""
        if self._service is None:
            return 0.0
        kind: Literal["event", "request"] = "event" if isinstance(message, ABOUT_EVENTS) else "request"
        return self._service(Work(kind, message.size, self._env.now, self.entries))

    # ── requests and recovery ──────────────────────────────────────────────────────────────────────────

    def _request(self, message: Control | Sync) -> float:
        self.operation, self._searching = message.operation, 0.0
        step = self.network.recorder.step()
        if isinstance(message, Control):
            self._control(message)
        else:
            self._sync(message)
        took = self.took(message)
        if self._prices is not None:
            took = control_time(self._prices, self._searching, self.outgoing_bytes)
        self.record_control(message, step, took)
        return took

    def record_control(self, message: Control | Sync, step: int, took: float) -> None:
        if isinstance(message, Control):
            kind, subscription, hop = KIND_NAMES[message.kind], message.subscription, message.hop
        else:
            kind, subscription, hop = message.kind, NOBODY, 0
        way = message.sent, message.source, self.number, message.tree
        about = kind, subscription, message.operation, message.sequence, hop
        times = self._waited(message), took, self._searching
        self._recorder.rows["control"].append((step, self._env.now, *way, *about, *times))

    def _control(self, message: Control) -> None:
        if message.kind in (Kind.ADVERTISE, Kind.UNADVERTISE):
            self.parts[message.tree].advertisement(message)
        elif message.source != CLIENT:
            sharing = self._parts_with_table(message.source, message.tree)
            if sharing and sharing[0].takes_in(message.source, message.kind, message.subscription, message.filter):
                for part in sharing:
                    part.pass_on(message)
        elif takes_in(self.local, message.kind, message.subscription, message.filter):
            for part in self.parts.values():
                part.pass_on(message)

    def _parts_with_table(self, neighbour: int, begun: int) -> list[TreePart]:
        """The versions of a tree that share the table of a neighbour; none if all of them were retired."""
        if self.network.versions is None:
            return [self.parts[begun]]
        return [part for part in self.parts.values() if part.since.get(neighbour) == begun]

    def _sync(self, message: Sync) -> None:
        if message.kind == "start":
            for name in [name for name in self.parts if name not in self.network.trees]:
                self._retire(name, message.operation)  # while the broker was down
            for part in self.parts.values():
                part.introduce(message.operation)
                part.recovery.start()
        elif message.tree in self.parts:  # not retired meanwhile, which a restart may do while the marker waits
            part = self.parts[message.tree]
            if message.kind == "retire":
                self._retire(message.tree, message.operation)
            elif message.kind == "switch":
                part.introduce(message.operation)
            else:
                part.recovery.receive(message)

    def _retire(self, name: int, operation: int) -> None:
        self.parts.pop(name).withdraw(operation)

    # ── events ─────────────────────────────────────────────────────────────────────────────────────────

    def _publication(self, message: Publication) -> float:
        event, values, tree, weights = message.event, message.values, message.tree, message.weights
        recorder, now, published, hop = self._recorder, self._env.now, message.published, message.hop
        ids, scores, entries, nodes = self.local.top(values, self._k, weights)
        interested, looked = self.parts[tree].wants(message.source, values)
        took, on_tables, on_matching = self.took(message), 0.0, 0.0
        if self._prices is not None:
            on_tables = tables_time(self._prices, *looked[:2])
            on_matching = matching_time(self._prices, entries, nodes) if len(self.local) else 0.0
            took = event_time(self._prices, on_tables, on_matching, len(ids), len(interested) * message.size)
        if len(ids):
            recorder.delivered(ids, scores, event, self.number, now + took, hop, now + took - published)
        counts, times = (entries, nodes, *looked), (took, on_tables, on_matching)
        number = self.record_publication(message, len(ids), len(interested), counts, times)
        if interested:
            copy = Publication(event, values, published, self.number, now, hop + 1, number, tree, weights)
            self._outbox += [(neighbour, copy) for neighbour in interested]
        return took

    def record_publication(
        self,
        message: Publication,
        served: int,
        forwarded: int,
        counts: tuple[int, int, int, int, int],
        times: tuple[float, float, float],
    ) -> int:
        """Record an event message; returns the number of its row.

        `counts`: entries and nodes of the matcher, tables asked, entries and nodes in them; `times`: as in the schema.
        """
        entries, nodes, asked, compared, blocks = counts
        step, now, waited = self._recorder.step(), self._env.now, self._waited(message)
        way = message.sent, message.source, self.number, message.hop, message.published, waited
        outcome = served, forwarded, entries, nodes, asked, 0, compared, blocks, *times
        self._row = self._recorder.publication(message.parent, step, message.event, now, *way, *outcome)
        return self._row

    def record_ranked(self, message: Publication | Reply, kind: str, took: float) -> None:
        """Record a message about the k best of the whole network."""
        if isinstance(message, Publication):
            step, winners, limit = self._recorder.steps - 1, message.winners, message.limit
        else:
            step, winners, limit = self._recorder.step(), message.found, None
        way = message.sent, message.source, self.number
        says = kind, isinstance(message, Publication), len(winners), None if limit is None else -limit[0], message.size
        row = step, message.event, self._env.now, *way, *says, self._waited(message), took
        self._recorder.rows["ranked"].append(row)

    def _waited(self, message: Message) -> float:
        """How long the message has waited beyond the latency of its link; rounding must not make it negative."""
        wire = 0.0 if message.source == CLIENT else self.links[message.source].latency
        return max(0.0, self._env.now - (message.sent + wire))

    def _worth(self, message: Message) -> float:
        """The best score that an event would get from a subscription here or behind a neighbour."""
        assert isinstance(message, Publication)
        if self.visits is not None and self.visits.settings.rank != "none":
            return self.visits.worth(message)
        part, ranking = self.parts[message.tree], self.network.settings.ranking

        def score(filter: Filter) -> float | None:
            return ranking.score(filter, message.values, message.weights)

        behind = [part.tables[n].best_score(score) for n in part.wants(message.source, message.values)[0]]
        return max([*self.local.top(message.values, 1, message.weights)[1].tolist(), *behind], default=-math.inf)

    def _drop(self, message: Message) -> None:
        assert isinstance(message, Publication)
        self.network.outages.record(QUEUE_FULL, self.number, message.source, message.event)
        if self.visits is not None:
            self.visits.refuse(message)
        self.network.event_processed(message)

    def check(self) -> None:
        """Raise AssertionError when a table or ledger contradicts itself or another."""
        self.local.check()
        for part in self.parts.values():
            part.check()
