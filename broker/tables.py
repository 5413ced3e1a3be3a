"""What a broker knows: the subscriptions behind each neighbour, and those of its own clients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from broker.matchers import Answer, Matcher
from broker.ranking import Ranking
from covering.widest_first import sizes
from routing.filter import Filter, FilterTable
from routing.ledger import Kind
from topk.first_matches import FirstMatches

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Looked = tuple[int, int, int]  # tables asked, entries compared in them, nodes that their matchers looked at

NOTHING: Answer = (np.empty(0, np.int64), np.empty(0), 0, 0)


class LinkTable(FilterTable):
    """The routing-table entries that one neighbour sent us: is anybody behind this link interested?"""

    def __init__(self, semantics: str, domain: Floats) -> None:
        super().__init__()

        def widest_first(filters: Sequence[Filter]) -> Iterable[tuple[float, float]]:
            sides, size = sizes(np.array([filter.box for filter in filters]).reshape(-1, *domain.shape), domain)
            return zip((-sides).tolist(), (-size).tolist(), strict=True)

        self._rows = FirstMatches(len(domain), semantics, widest_first)

    def add(self, subscription: int, filter: Filter) -> None:
        super().add(subscription, filter)
        self._rows.add(subscription, filter)

    def remove(self, subscription: int) -> None:
        super().remove(subscription)
        self._rows.remove(subscription)

    def matches(self, event: Floats) -> tuple[bool, int]:
        """Does any entry match? And how many were compared to find out."""
        ids, _, compared = self._rows.first(event, 1)
        return len(ids) > 0, compared

    @property
    def pruned(self) -> int:
        """Entries that the neighbour sent but events are not compared with (see pruning.py)."""
        return 0

    def pruned_by(self) -> Mapping[int, tuple[int, ...]]:
        """Each pruned entry, and the entries that cover it."""
        return {}

    def best_score(self, score: Callable[[Filter], float | None]) -> float:
        """The highest score that any entry gets, a pruned one included; −inf if none gets one."""
        return max((s for s in map(score, self.filters.values()) if s is not None), default=-math.inf)

    def check(self) -> None:
        """Raise AssertionError unless the rows are the entries."""
        self._rows.check()
        assert self._rows.rows == self._filters


class _Matched(FilterTable):
    """A table whose entries are also in a matcher."""

    _matcher: Matcher

    def add(self, subscription: int, filter: Filter) -> None:
        super().add(subscription, filter)
        self._matcher.add(subscription, filter)

    def remove(self, subscription: int) -> None:
        super().remove(subscription)
        self._matcher.remove(subscription)

    def top(self, event: Floats, k: int | None, weights: Floats | None = None) -> Answer:
        """The best matches, best first, all of them when k is None: ids and scores; entries compared, nodes."""
        return self._matcher.top(event, k, weights) if self._filters else NOTHING

    def check(self) -> None:
        self._matcher.check()
        assert len(self._matcher) == len(self._filters)


class RankedTable(_Matched, LinkTable):
    """A neighbour's table that also answers "which k of them match best?", for the k best of the whole network."""

    def __init__(self, semantics: str, domain: Floats, ranking: Ranking) -> None:
        super().__init__(semantics, domain)
        self._matcher = ranking.new_matcher()

    def check(self) -> None:
        LinkTable.check(self)
        _Matched.check(self)


class LocalTable(_Matched):
    """The subscriptions of a broker's own clients, ranked by any matcher of `topk`."""

    def __init__(self, ranking: Ranking) -> None:
        super().__init__()
        self._matcher = ranking.new_matcher()


def takes_in(table: FilterTable, kind: Kind, subscription: int, filter: Filter) -> bool:
    """Change a table as a message says; False if it says nothing new, which happens during recovery."""
    known = subscription in table
    if kind is Kind.RERANK:
        if not known or table.filters[subscription].digest == filter.digest:
            return False
        table.remove(subscription)
    elif (kind is Kind.SUBSCRIBE) == known:
        return False
    if kind is Kind.UNSUBSCRIBE:
        table.remove(subscription)
    else:
        table.add(subscription, filter)
    return True
