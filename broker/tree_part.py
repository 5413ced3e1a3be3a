"""A broker's part in one routing tree: what each neighbour wants, and what each neighbour was told.

A network on one spanning tree has one part per broker; with a tree per source of events, every broker takes part
in every tree, and nothing crosses from one tree to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from broker.around import BrokerAround, PartAround
from broker.messages import Control
from broker.pruning import PrunedTable
from broker.recovery import Recovery
from broker.tables import Floats, LinkTable, Looked, RankedTable, takes_in
from broker.trace.schema import CLIENT, NOBODY
from broker.work import MOST
from routing.advertisements import AdvertTable
from routing.contract import LinkStrategy
from routing.filter import Filter
from routing.ledger import Decision, Kind, LedgerMessage, LinkLedger
from routing.overlay.trees import Tree, reaches
from routing.strategies import make_ledger, strategy
from routing.strategies.basic import Simple
from routing.strategies.covering import Covering

AS_ADVERT = {Kind.SUBSCRIBE: Kind.ADVERTISE, Kind.UNSUBSCRIBE: Kind.UNADVERTISE}


class TreePart:
    """Tables and ledgers of one broker in one tree."""

    def __init__(self, broker: BrokerAround, tree: Tree, since: Mapping[int, int] = MappingProxyType({})) -> None:
        """`since`: the version of the tree in which tables and ledgers of a link were begun, if not this one."""
        self.broker = broker
        self.tree = tree
        self.neighbours = tree.neighbours(broker.number)
        self.since = {neighbour: since.get(neighbour, tree.name) for neighbour in self.neighbours}
        self.learn, silent = reaches(tree, broker.number, strategy(broker.network.settings.strategy).sends_to)
        self.gets_everything = set(silent)
        self.recovery = Recovery(self)
        self.forget(broker.parts.values())

    def forget(self, others: Iterable[PartAround]) -> None:
        """Start with empty tables and ledgers: at first, and after a crash that took the memory.

        What began in the same version is shared with `others`.
        """
        settings, dimensions = self.broker.network.settings, len(self.broker.network.settings.routing.domain)
        older = {n: begun for n, begun in self.since.items() if begun != self.tree.name}
        sharing = {n: part for part in (others if older else ()) for n in older if part.since.get(n) == older[n]}
        self.tables = {n: sharing[n].tables[n] if n in sharing else self._table() for n in self.neighbours}
        self.adverts = {n: AdvertTable(dimensions, settings.routing.semantics) for n in [CLIENT, *self.neighbours]}
        self.ledgers = {n: sharing[n].ledgers[n] if n in sharing else self._ledger(n) for n in self.learn}
        self.advert_ledgers = {n: self._advert_ledger() for n in self.neighbours}

    def wants(self, source: int, values: Floats) -> tuple[list[int], Looked]:
        """The neighbours that an event from `source` is sent on to, and the work of finding them."""
        interested, asked, compared = [], 0, 0
        for neighbour, table in self.tables.items():
            if neighbour == source:
                continue
            wanted = neighbour in self.gets_everything
            if not wanted and len(table):
                wanted, entries = table.matches(values)
                asked, compared = asked + 1, compared + entries
            if wanted:
                interested.append(neighbour)
        return interested, (asked, compared, 0)

    # ── subscriptions ──────────────────────────────────────────────────────────────────────────────────

    def takes_in(self, source: int, kind: Kind, subscription: int, filter: Filter) -> bool:
        """Change the table of a neighbour as it says; False if it says nothing new."""
        return takes_in(self.tables[source], kind, subscription, filter)

    def pass_on(self, message: Control) -> None:
        """Tell the neighbours that need to know that a subscription came, left or ranks differently."""
        for neighbour, ledger in self.ledgers.items():
            if neighbour != message.source:  # do not send it back
                for news in self._news(neighbour, ledger, (message.kind, message.subscription, message.filter)):
                    self.send_control(neighbour, ledger.tell(*news), message.operation, message.hop + 1)

    # ── versions of a tree (failover.py) ───────────────────────────────────────────────────────────────

    def _news(self, neighbour: int, ledger: LinkLedger, said: LedgerMessage) -> list[LedgerMessage]:
        """What a ledger has not heard yet: in another version the broker may have heard it from another neighbour."""
        if self.broker.network.versions is None:
            return [said]
        kind, subscription, filter = said
        known = ledger.known_as(subscription)
        if kind is Kind.SUBSCRIBE:
            if known is None:
                return [said]
            return [] if known.digest == filter.digest else [(Kind.UNSUBSCRIBE, subscription, known), said]
        return [] if known is None or self._still_asked_for(neighbour, ledger, subscription) else [said]

    def _still_asked_for(self, neighbour: int, ledger: LinkLedger, subscription: int) -> bool:
        """Does any version that has this ledger know the subscription from elsewhere than the neighbour?"""
        having = [part for part in self.broker.parts.values() if part.ledgers.get(neighbour) is ledger]
        tables = (table for part in having for other, table in part.tables.items() if other != neighbour)
        return subscription in self.broker.local or any(subscription in table for table in tables)

    def introduce(self, operation: int) -> None:
        """Tell over links that are new what the broker knows from elsewhere."""
        for neighbour, ledger in self.ledgers.items():
            known = self._known_from_elsewhere(neighbour)
            new = {s: filter for s, filter in known.items() if ledger.known_as(s) is None}
            self.send_control(neighbour, ledger.introduce(new), operation, 1)

    def _known_from_elsewhere(self, neighbour: int) -> dict[int, Filter]:
        others = (self.tables[other].filters for other in self.neighbours if other != neighbour)
        return {s: f for filters in (self.broker.local.filters, *others) for s, f in filters.items()}

    def withdraw(self, operation: int) -> None:
        """The broker has retired this version: take back what only its tables asked for."""
        parts = self.broker.parts.values()
        gone = [n for n in self.neighbours if not any(part.since.get(n) == self.since[n] for part in parts)]
        for neighbour, ledger in self.ledgers.items():
            for other in gone:
                if neighbour not in gone and other != neighbour:
                    for subscription, filter in self.tables[other].filters.items():
                        for news in self._news(neighbour, ledger, (Kind.UNSUBSCRIBE, subscription, filter)):
                            self.send_control(neighbour, ledger.tell(*news), operation, 1)

    # ── advertisements ─────────────────────────────────────────────────────────────────────────────────

    def advertisement(self, message: Control) -> None:
        """Pass an advertisement on, and let subscriptions follow it back to where it came from."""
        told = Kind.SUBSCRIBE if message.kind is Kind.ADVERTISE else Kind.UNSUBSCRIBE  # ledgers know no advertisements
        if not takes_in(self.adverts[message.source], told, message.subscription, message.filter):
            return
        for neighbour, ledger in self.advert_ledgers.items():
            if neighbour != message.source:
                answers = ledger.tell(told, message.subscription, message.filter)
                adverts = [(AS_ADVERT[kind], id, filter) for kind, id, filter in answers]
                self.send_control(neighbour, adverts, message.operation, message.hop + 1)
        if message.source in self.ledgers:
            followers = self.ledgers[message.source].reconsider()
            self.send_control(message.source, followers, message.operation, message.hop + 1)

    def send_control(self, neighbour: int, answers: list[LedgerMessage], operation: int, hop: int) -> None:
        here, now = self.broker, self.broker.network.env.now
        for kind, subscription, filter in answers:
            message = Control(kind, subscription, filter, operation, here.number, now, 0, hop, self.since[neighbour])
            here.send(neighbour, message)

    # ── construction and checks ────────────────────────────────────────────────────────────────────────

    def _table(self) -> LinkTable:
        settings = self.broker.network.settings
        if settings.mode == "prune":
            return PrunedTable(settings.pruning, self._charge)
        semantics, domain = settings.routing.semantics, settings.routing.domain
        if settings.ranked is not None and settings.ranked.rank != "none":
            return RankedTable(semantics, domain, settings.ranking)
        return LinkTable(semantics, domain)

    def _ledger(self, neighbour: int) -> LinkLedger:
        broker, network = self.broker, self.broker.network
        settings, rows = network.settings, network.recorder.rows["decisions"]

        def record(decision: Decision) -> None:
            if network.loading:
                return
            search = decision.search
            took, witness = broker.charge(search), NOBODY if search.witness is None else search.witness
            where = network.env.now, broker.number, neighbour, self.since[neighbour]
            what = decision.subscription, broker.operation, decision.outcome, witness
            counts = (min(count, MOST) for count in (search.probes, search.cubes, search.runs))
            compared = search.candidates, search.bits, search.audited, search.past_stop
            known = search.volume, search.capped, decision.exact, decision.subscription in broker.local
            on_disk = min(search.pages, MOST), min(search.round_trips, MOST)
            rows.append((*where, *what, *counts, *compared, *known, *on_disk, took))

        return make_ledger(
            settings.strategy,
            settings.routing_on(self.tree, broker.number, neighbour),
            settings.exact_routing if settings.ask_exact else None,
            network.new_merger,
            active=settings.mode == "active",
            on_decision=record,
            wanted=self.adverts[neighbour].overlaps if settings.advertisements != "none" else None,
        )

    def _advert_ledger(self) -> LinkLedger:
        settings = self.broker.network.settings
        options = replace(settings.exact_routing, cover="single")
        chosen: LinkStrategy = (Covering if settings.advertisements == "covering" else Simple)(options)
        return LinkLedger(chosen, on_decision=self._charge)

    def _charge(self, decision: Decision) -> None:
        """Charge a search that decides nothing about a link, but takes time all the same."""
        self.broker.charge(decision.search)

    def check(self) -> None:
        """Raise AssertionError when a table or ledger contradicts itself or another."""
        self.recovery.check()
        for table in self.tables.values():
            table.check()
        for neighbour, ledger in self.ledgers.items():
            ledger.check()
            same = _digests(self._known_from_elsewhere(neighbour)) == _digests(ledger.known)
            assert same, "a subscription without a decision, or a decision about nobody or about another filter"
            self._check_agreement(neighbour, ledger, self.at(neighbour).tables)
        for neighbour, ledger in self.advert_ledgers.items():
            ledger.check()
            self._check_agreement(neighbour, ledger, self.at(neighbour).adverts)

    def at(self, neighbour: int) -> PartAround:
        """The other end of a link, in the same tree."""
        return self.broker.network.brokers[neighbour].parts[self.tree.name]

    def _check_agreement(
        self, neighbour: int, ledger: LinkLedger, tables: dict[int, LinkTable] | dict[int, AdvertTable]
    ) -> None:
        here = self.broker.number
        if not self.broker.links[neighbour].up:
            return  # they cannot agree before they meet again
        same = _digests(ledger.sent) == _digests(tables[here].filters)
        assert same, f"link {here}→{neighbour}, tree {self.tree.name} disagrees"


def _digests(filters: Mapping[int, Filter]) -> dict[int, int]:
    return {subscription: filter.digest for subscription, filter in filters.items()}
