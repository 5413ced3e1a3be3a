"""Two ways to tell a network about ranks (`routing.rank`), see routing/rank.py and docs/ranked.md.

*cover* (rank-covering; Zhang et al., ICDCS 2017): a subscription is held back by one sent that contains and outranks
it. *skyband*: only by k of them. Whoever is among the k best for any event has fewer than k that contain and outrank
it, so all possible winners of one side of a link are sent over it.

Both are ledgers that show their filters to the search with rows for the rank. Where scores are equal an index may find
one with a larger id, which does not outrank. Then it is asked once more, for higher scores alone. What that misses is
sent, like anything that an approximate search misses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from covering.stats import footprint, pages_and_trips
from routing.contract import LinkStrategy, RoutingOptions, Search, group_of
from routing.filter import Filter
from routing.ledger import LinkLedger
from routing.rank import Rank

EXACT_SCAN = "scan"  # what the search of a skyband is charged as


def with_rows(options: RoutingOptions) -> RoutingOptions:
    """The options of a search among filters with rows for the rank."""
    assert options.rank is not None
    rows = len(options.rank.lowest)
    integral = None if options.integral is None else (*options.integral, *[False] * rows)
    return replace(options, domain=options.rank.domain(options.domain), integral=integral)


class RankedLedger(LinkLedger):
    """A subscription is held back only by one that contains and outranks it."""

    def __init__(self, strategy: LinkStrategy, rank: Rank, **options: Any) -> None:
        super().__init__(strategy, **options)
        self.rank = rank

    def _structures_add(self, subscription: int, filter: Filter) -> None:
        super()._structures_add(subscription, self.rank.ranked(subscription, filter))

    def _structures_remove(self, subscription: int, filter: Filter) -> None:
        super()._structures_remove(subscription, self.rank.ranked(subscription, filter))

    def _find_cover(self, strategy: LinkStrategy, subscription: int, filter: Filter) -> Search:
        found = strategy.find_cover(self.rank.ranked(subscription, filter))
        if found.witness is None or self._outranks(found.witness, subscription, filter):
            return found
        again = strategy.find_cover(self.rank.ranked(subscription, filter, above=True))
        return replace(
            again,
            probes=found.probes + again.probes,
            cubes=found.cubes + again.cubes,
            runs=found.runs + again.runs,
            capped=found.capped or again.capped,
            asked=(*found.asked, *again.asked),
        )

    def _find_covered(self, subscription: int, filter: Filter) -> list[int]:
        inside = self.strategy.find_covered(self.rank.ranked(subscription, filter))
        return [s for s in inside if self.rank.outranks(subscription, filter, s, self.sent[s])]

    def _outranks(self, coverer: int, subscription: int, filter: Filter) -> bool:
        return self.rank.outranks(coverer, self.sent[coverer], subscription, filter)

    def _stand_for(self, coverers: tuple[int, ...], subscription: int, filter: Filter) -> bool:
        integral = None if (whole := self.strategy.options.integral) is None else whole[: len(filter.box)]
        return all(
            self.sent[c].contains(filter, integral) and self._outranks(c, subscription, filter) for c in coverers
        )


class Skyband(LinkStrategy):
    """What was sent, as points: k of them that contain a filter are found by an exact scan."""

    searches = True

    def __init__(self, options: RoutingOptions, k: int) -> None:
        super().__init__(options)
        self.k = k
        self._rows: dict[int, int] = {}
        self._ids: list[int] = []
        self._filters: list[Filter] = []
        self._points = np.empty((2 * len(options.domain), 16))  # a column each: −lo and hi of every row of the box

    def add(self, subscription: int, filter: Filter) -> None:
        row = len(self._ids)
        if row == self._points.shape[1]:
            self._points = np.concatenate([self._points, np.empty_like(self._points)], axis=1)
        self._points[:, row] = _point(filter)
        self._rows[subscription] = row
        self._ids.append(subscription)
        self._filters.append(filter)

    def remove(self, subscription: int, filter: Filter) -> None:
        row, last = self._rows.pop(subscription), len(self._ids) - 1
        moved, its_filter = self._ids.pop(), self._filters.pop()
        if row != last:
            self._ids[row], self._filters[row], self._rows[moved] = moved, its_filter, row
            self._points[:, row] = self._points[:, last]

    def find_cover(self, filter: Filter, fits: Callable[[int], bool] = lambda subscription: True) -> Search:
        """The first k that contain the filter and fit, or no witness."""
        size, found = len(self._ids), list[int]()
        for row in self._containing(filter):
            if fits(self._ids[row]):
                found.append(self._ids[row])
                if len(found) == self.k:
                    break
        pages, trips = pages_and_trips(size, *footprint(EXACT_SCAN, len(self.options.domain)))
        work = ((EXACT_SCAN, size, pages, trips),)
        if len(found) < self.k:
            return Search(None, probes=size, asked=work)
        return Search(found[0], probes=size, asked=work, others=tuple(found[1:]))

    def _containing(self, filter: Filter) -> Iterator[int]:
        """The rows that contain the filter; none where boxes alone say that there are fewer than k."""
        rows = np.arange(len(self._ids))
        for values, least in zip(self._points, _point(filter).tolist(), strict=True):
            rows = rows[values[rows] >= least]
            if len(rows) < self.k:
                return
        group, integral = group_of(self.options, filter), self.options.integral
        for row in rows.tolist():
            other = self._filters[row]
            alike = group_of(self.options, other) == group
            if alike and other.residue.implied_by(filter.box, filter.residue, integral):
                yield row

    def check(self) -> None:
        assert [self._ids[row] for row in self._rows.values()] == list(self._rows)
        for row, filter in enumerate(self._filters):
            assert np.array_equal(self._points[:, row], _point(filter))


class SkybandLedger(RankedLedger):
    """A subscription is held back only by k that contain and outrank it."""

    strategy: Skyband

    def _find_cover(self, strategy: LinkStrategy, subscription: int, filter: Filter) -> Search:
        assert isinstance(strategy, Skyband)
        ranked = self.rank.ranked(subscription, filter)
        return strategy.find_cover(ranked, lambda other: self._outranks(other, subscription, filter))

    def _stand_for(self, coverers: tuple[int, ...], subscription: int, filter: Filter) -> bool:
        return len(set(coverers)) == self.strategy.k and super()._stand_for(coverers, subscription, filter)


def _point(filter: Filter) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([-filter.box[:, 0], filter.box[:, 1]])
