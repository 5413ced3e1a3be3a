"""The k-skyband of what is known on one side of a link (`routing.rank = "skyband"`), see docs/ranked.md.

A subscription is held back only by k sent ones that contain and outrank it. Whoever is among the k best for any event
has fewer than k of these, so all possible winners of one side of a link are sent over it. Containing and outranking is
dominance of points (−lo, hi, coordinates of the rank); covering/dominators.py finds the first k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covering.dominators import DominatingPoints
from covering.scan import ScanIndex
from covering.stats import Asked, footprint, pages_and_trips
from routing.contract import LinkStrategy, RoutingOptions, Search, group_of
from routing.filter import Filter
from routing.rank import Rank
from routing.strategies.ranked import OutrankingLedger

EXACT_SCAN = ScanIndex.name  # what the search of a skyband is charged as


class Skyband(LinkStrategy):
    """What was sent, as points."""

    searches = True

    def __init__(self, options: RoutingOptions, rank: Rank, k: int) -> None:
        super().__init__(options)
        self.rank = rank
        self.k = k
        self._sent = DominatingPoints(2 * len(options.domain) + len(rank.lowest))
        self._groups: dict[object, int] = {}
        self._partial: dict[int, Filter] = {}  # sent filters that have a residue
        self._per_page = footprint(ScanIndex.touches, len(options.domain) + len(rank.lowest))

    def add(self, subscription: int, filter: Filter) -> None:
        self._sent.add(subscription, self._point(subscription, filter), self._group(filter))
        if not filter.plain:
            self._partial[subscription] = filter

    def remove(self, subscription: int, filter: Filter) -> None:
        self._sent.remove(subscription)
        self._partial.pop(subscription, None)

    def find_cover(self, subscription: int, filter: Filter) -> Search:
        """The first k that contain and outrank it, or no witness."""
        point, group, found, looked = self._point(subscription, filter), self._group(filter), list[int](), 0
        while len(found) < self.k and looked < len(self._sent):
            more, looked = self._sent.first(subscription, point, group, self.k - len(found), looked)
            found += more if not self._partial else [s for s in more if self._implied(s, filter)]
        work = (Asked(EXACT_SCAN, looked, *pages_and_trips(looked, 0, *self._per_page)),)
        if len(found) < self.k:
            return Search(None, probes=looked, asked=work)
        return Search(found[0], probes=looked, asked=work, others=tuple(found[1:]))

    def _implied(self, other: int, filter: Filter) -> bool:
        known = self._partial.get(other)
        return known is None or known.residue.implied_by(filter.box, filter.residue, self.options.integral)

    def _group(self, filter: Filter) -> int:
        return self._groups.setdefault(group_of(self.options, filter), len(self._groups))

    def _point(self, subscription: int, filter: Filter) -> NDArray[np.float64]:
        return np.concatenate([-filter.box[:, 0], filter.box[:, 1], self.rank.coordinates(subscription, filter)])

    def check(self) -> None:
        self._sent.check()
        assert self._partial.keys() <= self._sent.rows.keys()


class SkybandLedger(OutrankingLedger):
    """A subscription is held back only by k that contain and outrank it."""

    strategy: Skyband

    def __init__(self, options: RoutingOptions, rank: Rank, k: int, **ledger_options: Any) -> None:
        super().__init__(Skyband(options, rank, k), rank, **ledger_options)

    def _stand_for(self, coverers: tuple[int, ...], subscription: int, filter: Filter) -> bool:
        return len(set(coverers)) == self.strategy.k and super()._stand_for(coverers, subscription, filter)
