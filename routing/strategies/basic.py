"""Routing without a search for covers: send all subscriptions, none, or equal ones once."""

from __future__ import annotations

from covering.stats import Asked
from routing.contract import LinkStrategy, RoutingOptions, Search, group_of
from routing.filter import Filter


class Simple(LinkStrategy):
    """Every subscription is sent to every broker: the baseline that table reductions are measured against."""

    name = "simple"
    keeps_ranks = True
    compiled_as = "simple"


class Flooding(Simple):
    """Subscriptions stay at their broker and every event is sent to every broker."""

    name = "flooding"
    sends_to = "nobody"
    keeps_ranks = False
    compiled_as = "simple"


class Identity(LinkStrategy):
    """Equal subscriptions are sent once. The ledger never sends a second one while the first is there."""

    name = "identity"
    charged_as = ("identity",)
    compiled_as = "identity"

    def __init__(self, options: RoutingOptions) -> None:
        super().__init__(options)
        self._by_key: dict[object, int] = {}

    def add(self, subscription: int, filter: Filter) -> None:
        self._by_key[self._key(filter)] = subscription

    def remove(self, subscription: int, filter: Filter) -> None:
        del self._by_key[self._key(filter)]

    def find_cover(self, subscription: int, filter: Filter) -> Search:
        return Search(self._by_key.get(self._key(filter)), probes=1, asked=(Asked(*self.charged_as, 1, 1, 1),))

    def _key(self, filter: Filter) -> object:
        return (filter.key, group_of(self.options, filter))
