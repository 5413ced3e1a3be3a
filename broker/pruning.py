"""A neighbour's table that leaves out what a wider entry of the same neighbour covers (`routing.mode = "prune"`).

Lazy covering leaves entries in place that a later, wider one covers. They never change an answer: every event that
matches them also matches the wider one. The receiver can see this by itself, without a message.

Only the table that events are compared with gets smaller. A pruned entry keeps its id and filter, is known to recovery
and to the ledgers of other links, and comes back when its cover leaves. A ledger in active mode decides which entries
are pruned, and because of which: what it sends is added to the rows, what it retracts is removed. Its search is exact,
whatever method links use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.tables import LinkTable
from routing.contract import RoutingOptions, group_of
from routing.filter import Filter
from routing.ledger import Decision, Kind, LedgerMessage, LinkLedger
from routing.strategies.covering import Covering


class PrunedTable(LinkTable):
    """The entries that one neighbour sent us; only those that no other covers have rows."""

    def __init__(self, exact: RoutingOptions, on_decision: Callable[[Decision], None] | None = None) -> None:
        super().__init__(exact.semantics, exact.domain)
        self._known: dict[int, Filter] = {}
        self._ledger = LinkLedger(Covering(exact), active=True, on_decision=on_decision)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._known

    @property
    def filters(self) -> Mapping[int, Filter]:
        return self._known

    @property
    def pruned(self) -> int:
        return len(self._ledger.suppressed)

    def pruned_by(self) -> Mapping[int, tuple[int, ...]]:
        return {subscription: coverers for subscription, (_, coverers) in self._ledger.suppressed.items()}

    def add(self, subscription: int, filter: Filter) -> None:
        self._known[subscription] = filter
        self._change_rows(self._ledger.subscribe(subscription, filter))

    def remove(self, subscription: int) -> None:
        self._change_rows(self._ledger.unsubscribe(subscription))
        del self._known[subscription]

    def _change_rows(self, messages: list[LedgerMessage]) -> None:
        for kind, subscription, filter in messages:
            if kind is Kind.SUBSCRIBE:
                super().add(subscription, filter)
            else:
                super().remove(subscription)

    def check(self) -> None:
        super().check()
        self._ledger.check()
        assert self._ledger.known == self._known, "an entry is neither active nor pruned"
        assert super().filters == self._ledger.sent, "the rows are not the active entries"
        options = self._ledger.strategy.options
        for subscription, filter in self._ledger.sent.items():
            others = (f for other, f in self._ledger.sent.items() if other != subscription)
            alike = (f for f in others if group_of(options, f) == group_of(options, filter))
            assert not any(f.contains(filter, options.integral) for f in alike), (
                f"{subscription} is covered and not pruned"
            )
