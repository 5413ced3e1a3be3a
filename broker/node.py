"""A broker: tables towards every neighbour, a ledger per link, and a server that does one thing at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from broker.messages import Control, Message, Publication
from broker.tables import LinkTable, LocalTable
from broker.trace import CLIENT, NOBODY
from broker.transport import Link, Server, service_model
from routing.ledger import Decision, Kind, LinkLedger
from routing.strategies import make_ledger, strategy

if TYPE_CHECKING:
    from broker.network import Network


KIND_NAMES = {kind: kind.name.lower() for kind in Kind}  # as the trace spells them


class Broker:
    """One broker of a network. Messages come in through `server`, and leave through `links`."""

    def __init__(self, network: Network, number: int, neighbours: list[int]) -> None:
        settings, dimensions = network.settings, len(network.settings.routing.domain)
        self.network = network
        self.number = number
        self.neighbours = neighbours
        self.links: dict[int, Link[Message]] = {}  # filled by the network once all brokers exist
        self.tables = {n: LinkTable(dimensions, settings.semantics) for n in neighbours}
        self.local = LocalTable(
            dimensions, settings.matcher, settings.semantics, dict(settings.matcher_options)
        )
        # Who learns of our subscriptions, and who never tells us of theirs and so gets every event.
        parent = network.towards_root(number)
        learn, silent = {"all": (neighbours, []), "root": (parent, parent), "nobody": ([], neighbours)}[
            strategy(settings.strategy).sends_to
        ]
        self.ledgers = {n: self._ledger(n) for n in learn}
        self.gets_everything = set(silent)
        self.server: Server[Message] = Server(
            network.env,
            self.process,
            service_model(settings.service, self.entries, network.stream(f"service/{number}")),
            settings.queue_capacity,
            droppable=lambda message: isinstance(message, Publication),
            drop=self._drop,
        )
        self._operation = 0  # the client request whose messages are being handled, for the trace

    def entries(self) -> int:
        return len(self.local) + sum(len(table) for table in self.tables.values())

    def process(self, message: Message) -> None:
        if isinstance(message, Control):
            self._control(message)
        else:
            self._publication(message)

    # ── subscriptions ──────────────────────────────────────────────────────────────────────────────────

    def _control(self, message: Control) -> None:
        network, now = self.network, self.network.env.now
        network.recorder.rows["control"].append(
            (network.recorder.step(), now, message.sent, message.source, self.number, KIND_NAMES[message.kind],
             message.subscription, message.operation, message.sequence, message.hop)
        )  # fmt: skip
        table = self.local if message.source == CLIENT else self.tables[message.source]
        if message.kind is Kind.SUBSCRIBE:
            table.add(message.subscription, message.filter)
        else:
            table.remove(message.subscription)
        self._operation = message.operation
        for neighbour, ledger in self.ledgers.items():
            if neighbour == message.source:
                continue  # what came from there needs not go back
            if message.kind is Kind.SUBSCRIBE:
                answers = ledger.subscribe(message.subscription, message.filter)
            else:
                answers = ledger.unsubscribe(message.subscription)
            link = self.links[neighbour]
            for kind, subscription, filter in answers:
                network.operation_sends(message.operation)
                link.send(
                    Control(
                        kind,
                        subscription,
                        filter,
                        message.operation,
                        self.number,
                        now,
                        link.sent,
                        message.hop + 1,
                    )
                )
        network.operation_processed(message.operation)

    def _ledger(self, neighbour: int) -> LinkLedger:
        settings, rows = self.network.settings, self.network.recorder.rows["decisions"]

        def record(decision: Decision) -> None:
            search = decision.search
            rows.append(
                (self.network.env.now, self.number, neighbour, decision.subscription, self._operation,
                 decision.outcome, NOBODY if search.witness is None else search.witness, search.probes,
                 search.cubes, search.runs, search.volume, search.capped, decision.exact)
            )  # fmt: skip

        return make_ledger(
            settings.strategy,
            self.network.routing_on(self.number, neighbour),
            settings.exact_routing if settings.ask_exact else None,
            self.network.new_merger,
            active=settings.active,
            on_decision=record,
        )

    # ── events ─────────────────────────────────────────────────────────────────────────────────────────

    def _publication(self, message: Publication) -> None:
        network, now, values = self.network, self.network.env.now, message.values
        best = self.local.top(values, network.settings.k)
        for rank, (subscription, score) in enumerate(best, 1):
            network.recorder.rows["deliveries"].append(
                (
                    message.event,
                    subscription,
                    self.number,
                    now,
                    message.hop,
                    now - message.published,
                    rank,
                    score,
                )
            )
        interested = [n for n in self.neighbours if n != message.source and self._wanted_by(n, values)]
        rows = network.recorder.rows["publications"]
        rows.append(
            (network.recorder.step(), message.event, now, message.sent, message.source, self.number, message.hop,
             message.published, len(best), len(interested), False)
        )  # fmt: skip
        network.recorder.parents.append(message.parent)
        for neighbour in interested:
            self.links[neighbour].send(
                Publication(
                    message.event, values, message.published, self.number, now, message.hop + 1, len(rows) - 1
                )
            )

    def _wanted_by(self, neighbour: int, values: NDArray[np.float64]) -> bool:
        return neighbour in self.gets_everything or self.tables[neighbour].matches(values)

    def _drop(self, message: Message) -> None:
        assert isinstance(message, Publication)
        self.network.recorder.rows["faults"].append(
            (self.network.env.now, "queue-full", self.number, message.source, message.event)
        )

    def check(self) -> None:
        """Raise AssertionError when a table or ledger contradicts itself or another."""
        self.local.check()
        for table in self.tables.values():
            table.check()
        for neighbour, ledger in self.ledgers.items():
            ledger.check()
            known = set(self.local.subscriptions)
            known.update(*(self.tables[n].subscriptions for n in self.neighbours if n != neighbour))
            decided = (ledger.sent.keys() - ledger.invented()) | ledger.suppressed.keys()
            assert known == decided, "a subscription without a decision, or a decision about nobody"
