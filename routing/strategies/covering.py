"""Routing by covering: a subscription is not forwarded if one already sent contains it.

SIENA (Carzaniga, Rosenblum, Wolf, 2001) does so in every direction; JEDI (Cugola, Di Nitto, Fuggetta, 2001)
only towards the root of a tree, and sends every event to the root.
"""

from __future__ import annotations

import covering
from covering.filters import FilterIndex
from routing.contract import LinkStrategy, RoutingOptions, Search, group_of
from routing.filter import Filter


class Covering(LinkStrategy):
    """Subscriptions that a sent one contains are held back (SIENA), found by any covering method."""

    searches = True

    def __init__(self, options: RoutingOptions) -> None:
        super().__init__(options)
        self.index = FilterIndex(
            options.method, options.domain, options.epsilon, options.integral, **options.method_options
        )
        self.approximate = covering.may_miss(options.method, options.epsilon, options.method_options)

    def add(self, subscription: int, filter: Filter) -> None:
        self.index.add(subscription, filter.box, filter.residue, group_of(self.options, filter))

    def remove(self, subscription: int, filter: Filter) -> None:
        self.index.remove(subscription)

    def find_cover(self, filter: Filter) -> Search:
        stats = self.index.stats
        before = (stats.probes, stats.cubes, stats.runs, stats.volume, stats.capped, stats.checks)
        witness = self.index.find_cover(filter.box, filter.residue, group_of(self.options, filter))
        stats = self.index.stats
        # Several partitions may have been asked; the volume of the decision is their mean.
        checks = stats.checks - before[5]
        return Search(
            witness,
            stats.probes - before[0],
            stats.cubes - before[1],
            stats.runs - before[2],
            (stats.volume - before[3]) / checks if checks else 1.0,
            stats.capped > before[4],
        )

    def find_covered(self, filter: Filter) -> list[int]:
        return self.index.find_covered(filter.box, filter.residue, group_of(self.options, filter))

    def check(self) -> None:
        self.index.check()


class Hierarchical(Covering):
    """Subscriptions travel only towards the root; events go to the root, and down where they match."""

    sends_to = "root"
