"""What a routing strategy is asked: does something already sent over a link make a subscription needless?

A strategy keeps the set of subscriptions sent over one link and answers two questions about it: which entry
covers a new filter, and which entries a new filter covers. The ledger (ledger.py) does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from covering.stats import Asked
from routing.filter import Filter
from routing.rank import Rank

SendsTo = Literal["all", "root", "nobody"]
Mode = Literal["lazy", "active", "prune"]  # what becomes of sent entries that a later one covers
Cover = Literal["single", "union"]


@dataclass(frozen=True, slots=True)
class Search:
    """The answer to one covering check and the work it took."""

    witness: int | None
    others: tuple[int, ...] = field(default=(), kw_only=True)  # entries that cover it only together with the witness
    probes: int = 0
    cubes: int = 0
    runs: int = 0
    volume: float = 1.0
    capped: bool = False
    asked: tuple[Asked, ...] = ()  # the work in each index searched
    held: tuple[tuple[str, int, int], ...] = ()  # (method, entries, pages) of each index searched for covered ones

    @property
    def pages(self) -> int:
        return sum(work.pages for work in self.asked)

    @property
    def round_trips(self) -> int:
        return sum(work.round_trips for work in self.asked)

    @property
    def candidates(self) -> int:
        return sum(work.candidates for work in self.asked)

    @property
    def bits(self) -> int:
        """Of a coordinate on the curve, where it was finest; 0 off the curve."""
        return max((work.bits for work in self.asked), default=0)

    @property
    def audited(self) -> int:
        """How many of these searches were audits (covering/audit.py)."""
        return sum(work.audited for work in self.asked)

    @property
    def past_stop(self) -> int:
        return sum(work.past_stop for work in self.asked)


@dataclass(frozen=True)
class RoutingOptions:
    """What a strategy needs to know; one object for the whole network."""

    domain: NDArray[np.float64]
    semantics: Literal["exact", "relaxed"] = "exact"  # relaxed: a narrower notion of covering, see group_of
    method: str = "auto"
    epsilon: float = 0.0
    method_options: Mapping[str, Any] = field(default_factory=dict)
    integral: tuple[bool, ...] | None = None  # attributes with whole values only: more residues imply each other
    cover: Cover = "single"  # union: several sent ones may hold one back together
    merge_waste: float = 0.0  # imperfect merging: the largest share of a merger that nobody asked for
    rank: Rank | None = None  # whoever holds a subscription back must outrank it, see routing/rank.py
    skyband: int | None = None  # with a rank: how many it takes to hold one back; None: one
    strategy_options: Mapping[str, Any] = field(default_factory=dict)  # keyword-only parameters of the strategy


class LinkStrategy:
    """The subscriptions sent over one link, and what they make needless: nothing, unless a strategy knows better."""

    # What others need to know of a strategy. They read these facts and know no names.
    name: ClassVar[str]
    sends_to: ClassVar[SendsTo] = "all"  # the neighbours that learn of subscriptions; others get every event
    searches: ClassVar[bool] = False  # for covers, so settings of the search and the mode have an effect
    merges: ClassVar[bool] = False  # several subscriptions may be sent as one that nobody asked for
    modes: ClassVar[tuple[Mode, ...]] = get_args(Mode)
    covers: ClassVar[tuple[Cover, ...]] = get_args(Cover)
    keeps_ranks: ClassVar[bool] = False  # sends subscriptions as they are, in all directions, so `routing.rank` works
    charged_as: ClassVar[tuple[str, ...]] = ()  # names in a profile of searches that no covering method does
    priced_like: ClassVar[str | None] = None  # what its own searches cost where a profile does not say it
    ledger: ClassVar[Any] = None  # the kind of LinkLedger that decides for it; None: the usual one
    # How the compiled engine decides for it; None: it cannot. A subclass does not inherit this.
    compiled_as: ClassVar[Literal["simple", "identity", "covering"] | None] = None
    approximate: bool = False  # may miss covers that exist

    def __init__(self, options: RoutingOptions) -> None:
        self.options = options

    @classmethod
    def holds_back(cls) -> bool:
        """Can something that was sent make a subscription needless?"""
        return cls.find_cover is not LinkStrategy.find_cover

    def add(self, subscription: int, filter: Filter) -> None:
        """A subscription was sent."""

    def add_uncovered(self, subscriptions: Sequence[int], filters: Sequence[Filter]) -> list[int | None] | None:
        """Add, in order, each filter that no earlier one covers; returns for each the cover, or None.

        The same as one by one, but faster; where several cover a filter it may name another. Returns None in place of a
        list, and adds nothing, where this can only be done one by one.
        """
        return None

    def remove(self, subscription: int, filter: Filter) -> None:
        """A subscription was taken back."""

    def find_cover(self, subscription: int, filter: Filter) -> Search:
        """What was sent that makes `subscription` needless; its id decides where entries rank alike."""
        return Search(None)

    def find_covered(self, filter: Filter) -> list[int]:
        """Entries that `filter` makes needless, ascending."""
        return []

    def held(self) -> tuple[tuple[str, int, int], ...]:
        """The work of the last `find_covered`: (method, entries, pages) of each index searched."""
        return ()

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""

    def contains(self, one: Filter, other: Filter) -> bool:
        """Does whatever matches `other` match `one`, as this network matches?"""
        same = group_of(self.options, one) == group_of(self.options, other)
        return same and one.contains(other, self.options.integral)


def group_of(options: RoutingOptions, filter: Filter) -> object:
    """Subscriptions of different groups never cover each other.

    Exact matching: one group. Relaxed matching: a wider range on an attribute helps only if the cover has a
    predicate on that attribute at all, so covers are looked for among the same set of mentioned attributes.
    """
    group = None if options.semantics == "exact" else filter.mentioned
    return group if options.rank is None else (group, options.rank.group(filter))
