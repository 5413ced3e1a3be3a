"""A broker: tables towards every neighbour, a ledger per link, and a server that does one thing at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from broker.messages import Control, Message, Publication, Sync
from broker.recovery import Recovery
from broker.tables import LinkTable, LocalTable
from broker.trace import CLIENT, NOBODY
from broker.transport import Link, Server, service_model
from routing.advertisements import AdvertTable
from routing.basic import Simple
from routing.covering_strategy import Covering
from routing.filter import Filter
from routing.ledger import Decision, Kind, LinkLedger
from routing.ledger import Message as LedgerMessage
from routing.link_strategy import LinkStrategy
from routing.strategies import make_ledger, strategy

if TYPE_CHECKING:
    from broker.network import Network


AS_ADVERT = {Kind.SUBSCRIBE: Kind.ADVERTISE, Kind.UNSUBSCRIBE: Kind.UNADVERTISE}  # one ledger serves both
KIND_NAMES = {kind: kind.name.lower() for kind in Kind}  # as the trace spells them


class Broker:
    """One broker of a network. Messages come in through `server`, and leave through `links`."""

    def __init__(self, network: Network, number: int, neighbours: list[int]) -> None:
        settings = network.settings
        self.network = network
        self.number = number
        self.neighbours = neighbours
        self.links: dict[int, Link[Message]] = {}  # filled by the network once all brokers exist
        # Who learns of our subscriptions, and who never tells us of theirs and so gets every event.
        parent = network.towards_root(number)
        self._learn, silent = {"all": (neighbours, []), "root": (parent, parent), "nobody": ([], neighbours)}[
            strategy(settings.strategy).sends_to
        ]
        self.gets_everything = set(silent)
        self.nothing = Filter.of_box(settings.routing.domain)  # where a message needs a filter but nobody reads it
        self.recovery = Recovery(self)
        self.server: Server[Message] = Server(
            network.env,
            self.process,
            service_model(settings.service, self.entries, network.stream(f"service/{number}")),
            settings.queue_capacity,
            droppable=lambda message: isinstance(message, Publication),
            drop=self._drop,
        )
        self._operation = 0  # the client request whose messages are being handled, for the trace
        self.forget()

    def forget(self) -> None:
        """Start with empty tables and ledgers: at first, and after a crash that took the memory."""
        settings, dimensions = self.network.settings, len(self.network.settings.routing.domain)
        self.tables = {n: LinkTable(dimensions, settings.semantics) for n in self.neighbours}
        self.local = LocalTable(dimensions, settings.matcher, settings.semantics, dict(settings.matcher_options))
        self.adverts = {n: AdvertTable(dimensions, settings.semantics) for n in [CLIENT, *self.neighbours]}
        self.ledgers = {n: self._ledger(n) for n in self._learn}
        self.advert_ledgers = {n: LinkLedger(self._advert_strategy()) for n in self.neighbours}

    def entries(self) -> int:
        return len(self.local) + sum(len(table) for table in self.tables.values())

    def process(self, message: Message) -> None:
        if isinstance(message, Publication):
            self._publication(message)
            return
        self._operation = message.operation
        if isinstance(message, Control):
            self._record_control(message, KIND_NAMES[message.kind], message.subscription, message.hop)
            if message.kind in (Kind.ADVERTISE, Kind.UNADVERTISE):
                self._advertisement(message)
            else:
                self._subscription(message)
        else:
            self._record_control(message, message.kind, NOBODY, 0)
            self.recovery.receive(message)
        self.network.operation_processed(message.operation)

    def _record_control(self, message: Control | Sync, kind: str, subscription: int, hop: int) -> None:
        recorder = self.network.recorder
        recorder.rows["control"].append(
            (recorder.step(), self.network.env.now, message.sent, message.source, self.number, kind, subscription,
             message.operation, message.sequence, hop)
        )  # fmt: skip

    # ── subscriptions ──────────────────────────────────────────────────────────────────────────────────

    def _subscription(self, message: Control) -> None:
        table = self.local if message.source == CLIENT else self.tables[message.source]
        joins = message.kind is Kind.SUBSCRIBE
        if joins == (message.subscription in table):
            return  # known already, or gone already: repeated while two brokers agree again
        if joins:
            table.add(message.subscription, message.filter)
        else:
            table.remove(message.subscription)
        for neighbour, ledger in self.ledgers.items():
            if neighbour == message.source:
                continue  # what came from there needs not go back
            if joins:
                answers = ledger.subscribe(message.subscription, message.filter)
            else:
                answers = ledger.unsubscribe(message.subscription)
            self.send_control(neighbour, answers, message.operation, message.hop + 1)

    def _advertisement(self, message: Control) -> None:
        """Pass an advertisement on, and let subscriptions follow it back to where it came from."""
        begins = message.kind is Kind.ADVERTISE
        table = self.adverts[message.source]
        if begins == (message.subscription in table):
            return
        if begins:
            table.add(message.subscription, message.filter)
        else:
            table.remove(message.subscription)
        for neighbour, ledger in self.advert_ledgers.items():
            if neighbour == message.source:
                continue
            if begins:
                answers = ledger.subscribe(message.subscription, message.filter)
            else:
                answers = ledger.unsubscribe(message.subscription)
            adverts = [(AS_ADVERT[kind], id, filter) for kind, id, filter in answers]
            self.send_control(neighbour, adverts, message.operation, message.hop + 1)
        if message.source in self.ledgers:
            followers = self.ledgers[message.source].reconsider()
            self.send_control(message.source, followers, message.operation, message.hop + 1)

    def send_control(self, neighbour: int, answers: list[LedgerMessage], operation: int, hop: int) -> None:
        network, link = self.network, self.links[neighbour]
        for kind, subscription, filter in answers:
            network.operation_sends(operation)
            link.send(
                Control(kind, subscription, filter, operation, self.number, network.env.now, link.sent, hop)
            )

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
            wanted=self.adverts[neighbour].overlaps if settings.advertisements != "none" else None,
        )

    def _advert_strategy(self) -> LinkStrategy:
        settings = self.network.settings
        return (Covering if settings.advertisements == "covering" else Simple)(settings.exact_routing)

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
                Publication(message.event, values, message.published, self.number, now, message.hop + 1, len(rows) - 1)
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
        self.recovery.check()
        self.local.check()
        for table in self.tables.values():
            table.check()
        for neighbour, ledger in self.ledgers.items():
            ledger.check()
            known = set(self.local.subscriptions)
            known.update(*(self.tables[n].subscriptions for n in self.neighbours if n != neighbour))
            assert known == ledger.known, "a subscription without a decision, or a decision about nobody"
        for ledger in self.advert_ledgers.values():
            ledger.check()
