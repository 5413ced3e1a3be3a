"""Where an index of subscriptions is: which searches for covers can be compared there, and what one costs.

- *In memory*: any index, as a broker would have it (k-d tree, packed words). A search costs time, by the profile of the
  runs; without a profile it costs probes.
- *On disk*: any index, in pages of 4 KB; a profile charges for each page that a search reads.
- *Sorted keys only*: a key-value store or a switch keeps the keys of a space filling curve and runs no code of ours. A
  search costs its lookups: the records that it reads, failed candidates included, whatever the time of each. Only
  methods that can live there compete (`CoveringIndex.store`), in three stores:
    next key      it returns the first record at or after a key, so it also answers what the other stores do;
    yes or no     it says whether a range of keys has a record, and returns those of the range one by one;
    given bits    the slides' model: yes or no, and the resolution of the keys is given, not chosen. Only searches whose
                  bits are set (`covering.bits`) compete there, each with exact searches of as many bits.

An index on another machine that runs our code takes one round trip, whatever the search: it is any index. One that does
not is sorted keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from coverlay import CoverlayError

BITS = "covering.bits"
IN_PROBES = "in probes"  # the column of costs if nothing takes time
LOOKUPS = "lookups"


@dataclass(frozen=True)
class Price:
    """What a profile charges for searches, in µs: a page, a round trip, and by method a check and a probe."""

    page: float = 0.0
    round_trip: float = 0.0
    covering: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def instead_of(self, charged: Price, method: str, runs: pd.DataFrame) -> pd.Series[float]:
        """The mean time of a check under this profile, for runs that were charged by another.

        Time is linear in the counts. A check may search several partitions, or none; their number follows from what was
        charged. `auto` mixes several methods, so for it profiles may differ only in what they charge for storage.
        """
        pages, trips = (runs[f"{name}_per_check"].fillna(0.0) for name in ("pages", "round_trips"))
        time = runs["check_time"] + (self.page - charged.page) * pages
        time = time + (self.round_trip - charged.round_trip) * trips
        if self.covering == charged.covering:
            return time
        if method not in self.covering or method not in charged.covering:
            known = ", ".join(sorted({*self.covering} & {*charged.covering}))
            raise CoverlayError(
                f"costs under another profile cannot be worked out for covering method {method!r}: both profiles must "
                f"have its coefficients; both have: {known}"
            )
        old, new = charged.covering[method], self.covering[method]
        counted = ("probe", runs["probes_per_check"]), ("candidate", runs["candidates_per_check"].fillna(0.0))
        stored = charged.page * pages + charged.round_trip * trips
        compared = sum(old.get(name, 0.0) * counts for name, counts in counted)
        searches = (runs["check_time"] - compared - stored) / old["check"]
        changed = sum((new.get(name, 0.0) - old.get(name, 0.0)) * counts for name, counts in counted)
        return time + (new["check"] - old["check"]) * searches + changed


@dataclass(frozen=True)
class Place:
    """Where an index is, in words, and what is compared there."""

    title: str  # above a column: next-key store
    said: str  # in a sentence: in a store that returns the next key
    column: str  # of what a search costs there: the name of a profile, IN_PROBES or LOOKUPS
    unit: str = "µs"
    stores: tuple[str, ...] = ()  # what a method must be able to live in; empty: any index
    given_bits: bool = False  # only searches with a resolution of their own, compared at equal resolution
    # Methods of exact searches that one would use there, without one of which there is no verdict; empty: any.
    usual: tuple[str, ...] = ("auto", "kdtree", "packed")
    lacking: str = 'covering.method = "auto"'  # what to add to a sweep that has none of these

    def admits(self, labels: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
        """Whether a search with these labels and swept keys can be made there."""
        lives = not self.stores or labels["store"] in self.stores
        return lives and not (self.given_bits and keys.get(BITS) is None)

    def comparable(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether searches with these swept keys may be compared there."""
        return not self.given_bits or one.get(BITS) == other.get(BITS)

    def is_usual(self, method: str) -> bool:
        return not self.usual or method in self.usual


IN_MEMORY = Place("in memory", "in memory", IN_PROBES, "probes")
# What answers yes or no only is searched exactly by the curve exhaustively, whatever the method's name.
STORES = (
    Place(
        "next-key store",
        "in a store that returns the next key",
        LOOKUPS,
        LOOKUPS,
        ("yes or no", "next key"),
        usual=("bigmin", "density"),
        lacking='covering.method = "bigmin"',
    ),
    Place(
        "yes-or-no store",
        "in a store that says yes or no of a range",
        LOOKUPS,
        LOOKUPS,
        ("yes or no",),
        usual=(),
        lacking="covering.epsilon = 0",
    ),
    Place(
        "slides’ model",
        "in the slides’ model",
        LOOKUPS,
        LOOKUPS,
        ("yes or no",),
        given_bits=True,
        usual=(),
        lacking="covering.epsilon = 0 with the same covering.bits",
    ),
)
ABOUT_STORES = (
    "Stores have sorted keys only: in one a search asks for the first key at or after another (a key-value store), in "
    "the other whether a range has any (a switch). A search costs its lookups there, and only methods that can live in "
    "a store compete. In the slides’ model the resolution of the keys is given; elsewhere a search chooses it."
)


def places(prices: Mapping[str, Price], timed: bool) -> list[Place]:
    """Memory, disk or another machine by what profiles charge, then the stores of sorted keys."""
    if not timed:
        return [IN_MEMORY, *STORES]
    said = {name: _of_price(price) for name, price in prices.items()}
    names = {
        name: where if list(said.values()).count(where) == 1 else f"{where} ({name})" for name, where in said.items()
    }
    return [*(Place(where, where, name) for name, where in names.items()), *STORES]


def _of_price(price: Price) -> str:
    if price.round_trip > 0:
        return "on another machine"
    return "on disk" if price.page > 0 else "in memory"
