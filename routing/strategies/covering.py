"""Routing by covering: a subscription is not forwarded if one already sent contains it.

SIENA (Carzaniga, Rosenblum, Wolf, 2001) does so in every direction; JEDI (Cugola, Di Nitto, Fuggetta, 2001)
only towards the root of a tree, and sends every event to the root.

With `cover = "union"` it is not forwarded either if several already sent contain it together (Ouksel, Jurca, Podnar,
Aberer, Middleware 2006). The paper samples, which may lose events; here the sent boxes are subtracted one by one, and a
search that gives up finds no cover.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import covering
from covering.filters import FilterIndex
from covering.subtraction import PIECES, left_over
from routing.contract import LinkStrategy, RoutingOptions, Search, group_of
from routing.filter import Filter, takes_no_more

MOST_TOGETHER = 64  # most sent ones tried together: whenever one of them leaves, what they hold back is exposed


class Covering(LinkStrategy):
    """Subscriptions that a sent one contains are held back (SIENA), found by any covering method."""

    name = "covering"
    searches = True
    keeps_ranks = True
    compiled_as = "covering"

    def __init__(self, options: RoutingOptions) -> None:
        super().__init__(options)
        self.index = FilterIndex(
            options.method, options.domain, options.epsilon, options.integral, **options.method_options
        )
        self.approximate = covering.may_miss(options.method, options.epsilon, options.method_options)

    def add(self, subscription: int, filter: Filter) -> None:
        self.index.add(subscription, filter.box, filter.residue, group_of(self.options, filter))

    def add_uncovered(self, subscriptions: Sequence[int], filters: Sequence[Filter]) -> list[int | None] | None:
        if self.approximate or self.options.cover == "union" or not all(filter.plain for filter in filters):
            return None
        groups: dict[object, list[int]] = {}
        for place, filter in enumerate(filters):
            groups.setdefault(group_of(self.options, filter), []).append(place)
        covers: list[int | None] = [None] * len(filters)
        for group, places in groups.items():
            ids, boxes = [subscriptions[place] for place in places], np.array([filters[place].box for place in places])
            for place, cover in zip(places, self.index.add_uncovered(ids, boxes, group), strict=True):
                covers[place] = cover
        return covers

    def remove(self, subscription: int, filter: Filter) -> None:
        self.index.remove(subscription)

    def find_cover(self, subscription: int, filter: Filter) -> Search:
        stats = self.index.stats
        before = (stats.probes, stats.cubes, stats.runs, stats.volume, stats.capped, stats.checks)
        witness = self.index.find_cover(filter.box, filter.residue, group_of(self.options, filter))
        together, compared = [] if witness is None else [witness], 0
        if witness is None and self.options.cover == "union":
            together, compared = self._find_union(filter), len(self.index)
        stats = self.index.stats
        # Several partitions may have been asked; the volume of the decision is their mean.
        checks = stats.checks - before[5]
        return Search(
            together[0] if together else None,
            stats.probes - before[0] + compared,
            stats.cubes - before[1],
            stats.runs - before[2],
            (stats.volume - before[3]) / checks if checks else 1.0,
            stats.capped > before[4],
            tuple(self.index.asked),
            self.held() if compared else (),
            others=tuple(together[1:]),
        )

    def _find_union(self, filter: Filter) -> list[int]:
        """Sent subscriptions that together contain the filter, by exact subtraction; none if it gives up."""
        ids, boxes = self.index.overlapping(filter.box, filter.residue, group_of(self.options, filter))
        fitting = np.flatnonzero(takes_no_more(boxes, filter.box))
        # Large parts first: fewer are needed. Equal ones by id, so that it does not matter how they are stored.
        within, domain = filter.box, self.options.domain
        low = np.maximum(boxes[fitting, :, 0], np.maximum(within[:, 0], domain[:, 0]))
        high = np.minimum(boxes[fitting, :, 1], np.minimum(within[:, 1], domain[:, 1]))
        sizes = np.maximum(high - low, 0.0).prod(axis=1)
        largest = fitting[np.lexsort((np.array(ids)[fitting], -sizes))[:MOST_TOGETHER]]
        count, _, used = left_over(filter.box, boxes[largest], PIECES)
        return [ids[i] for i in largest[used]] if count == 0 else []

    def find_covered(self, filter: Filter) -> list[int]:
        return self.index.find_covered(filter.box, filter.residue, group_of(self.options, filter))

    def held(self) -> tuple[tuple[str, int, int], ...]:
        return tuple(self.index.held)

    def check(self) -> None:
        self.index.check()


class Hierarchical(Covering):
    """Subscriptions travel only towards the root; events go to the root, and down where they match."""

    name = "hierarchical"
    sends_to = "root"
    keeps_ranks = False
    compiled_as = "covering"
