"""A broker: its own clients' subscriptions, its part in every routing tree, and one server for all of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from broker.messages import Control, Message, Publication, Sync
from broker.tables import LocalTable
from broker.trace.schema import CLIENT, NOBODY, QUEUE_FULL
from broker.transport import Link, Server, service_model
from broker.tree_state import Plane
from routing.filter import Filter
from routing.ledger import Kind

if TYPE_CHECKING:
    from broker.network import Network

KIND_NAMES = {kind: kind.name.lower() for kind in Kind}  # as the trace spells them


class Broker:
    """One broker of a network. Messages come in through `server`, and leave through `links`."""

    def __init__(self, network: Network, number: int) -> None:
        settings = network.settings
        self.network = network
        self.number = number
        self.links: dict[int, Link[Message]] = {}  # filled by the network once all brokers exist
        self.operation = 0  # the request whose messages are being handled, for the trace
        self.nothing = Filter.of_box(settings.routing.domain)  # where a message needs a filter that nobody reads
        self.local = self._empty_table()
        self.planes = {name: Plane(self, tree) for name, tree in network.trees.items()}
        self.server: Server[Message] = Server(
            network.env,
            self.process,
            service_model(settings.service, self.entries, network.stream(f"service/{number}")),
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
        for plane in self.planes.values():
            plane.forget()

    def entries(self) -> int:
        return len(self.local) + sum(len(table) for plane in self.planes.values() for table in plane.tables.values())

    def process(self, message: Message) -> None:
        if isinstance(message, Publication):
            self._publication(message)
            return
        self.operation = message.operation
        if isinstance(message, Control):
            self._record_control(message, KIND_NAMES[message.kind], message.subscription, message.hop)
            self._control(message)
        else:
            self._record_control(message, message.kind, NOBODY, 0)
            self._sync(message)
        self.network.operation_processed(message.operation)

    def record_request(self, message: Control) -> None:
        """Write down what a client asked before time 0."""
        self._record_control(message, KIND_NAMES[message.kind], message.subscription, message.hop)

    def _record_control(self, message: Control | Sync, kind: str, subscription: int, hop: int) -> None:
        recorder = self.network.recorder
        recorder.rows["control"].append(
            (
                recorder.step(),
                self.network.env.now,
                message.sent,
                message.source,
                self.number,
                message.tree,
                kind,
                subscription,
                message.operation,
                message.sequence,
                hop,
            )
        )

    def _control(self, message: Control) -> None:
        if message.kind in (Kind.ADVERTISE, Kind.UNADVERTISE):
            self.planes[message.tree].advertisement(message)
        elif message.source != CLIENT:
            self.planes[message.tree].subscription(message)
        elif (message.kind is Kind.SUBSCRIBE) != (message.subscription in self.local):
            if message.kind is Kind.SUBSCRIBE:
                self.local.add(message.subscription, message.filter)
            else:
                self.local.remove(message.subscription)
            for plane in self.planes.values():
                plane.pass_on(message)

    def _sync(self, message: Sync) -> None:
        if message.kind == "start":
            for plane in self.planes.values():
                plane.recovery.start()
        else:
            self.planes[message.tree].recovery.receive(message)

    def _publication(self, message: Publication) -> None:
        network, now = self.network, self.network.env.now
        entries, nodes = self.local.work
        best = self.local.top(message.values, network.settings.k, message.weights)
        matcher = self.local.work
        latency = now - message.published
        network.recorder.rows["deliveries"].extend(
            (message.event, subscription, self.number, now, message.hop, latency, rank, score)
            for rank, (subscription, score) in enumerate(best, 1)
        )
        interested, asked, compared = self.planes[message.tree].wants(message.source, message.values)
        number = network.recorder.publication(
            (
                network.recorder.step(),
                message.event,
                now,
                message.sent,
                message.source,
                self.number,
                message.hop,
                message.published,
                self._waited(message),
                len(best),
                len(interested),
                matcher[0] - entries,
                matcher[1] - nodes,
                asked,
                compared,
            ),
            message.parent,
        )
        for neighbour in interested:
            self.links[neighbour].send(
                Publication(
                    message.event,
                    message.values,
                    message.published,
                    self.number,
                    now,
                    message.hop + 1,
                    number,
                    message.tree,
                    message.weights,
                )
            )

    def _waited(self, message: Publication) -> float:
        """How long after the earliest moment possible the message is processed now; 0 up to the last bit."""
        wire = 0.0 if message.source == CLIENT else self.links[message.source].latency
        return max(0.0, self.network.env.now - (message.sent + wire))

    def _worth(self, message: Message) -> float:
        """The best score among the subscriptions, here or behind a neighbour, that an event would serve."""
        assert isinstance(message, Publication)
        best = [score for _, score in self.local.top(message.values, 1, message.weights)]
        ranking, tables = self.network.settings.ranking, self.planes[message.tree].tables

        def score(filter: Filter) -> float | None:
            return ranking.score(filter, message.values, message.weights)

        for neighbour in self.planes[message.tree].wants(message.source, message.values)[0]:
            best.append(tables[neighbour].best_score(score))
        return max(best, default=-math.inf)

    def _drop(self, message: Message) -> None:
        assert isinstance(message, Publication)
        self.network.outages.record(QUEUE_FULL, self.number, message.source, message.event)

    def check(self) -> None:
        """Raise AssertionError when a table or ledger contradicts itself or another."""
        self.local.check()
        for plane in self.planes.values():
            plane.check()
