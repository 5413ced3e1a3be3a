"""Approximate covering by a budget: only the B largest stored boxes are looked at, in packed words.

Largest by volume clipped to the domain, ties by id. Large boxes cover most of what is covered at all, so few of them
find most covers, at a price that does not grow with the number of entries. What it can miss:

1. *Never a query larger than the B-th largest box.* A cover has at least the query's volume, so all that is left out is
   too small. Such a miss is exact; any other while boxes were left out counts as `capped`.
2. *At most Σ v_i of the checks*, over the boxes i that were left out, v_i their shares of the domain, where queries lie
   anywhere with the same chance: a query of width w_j lies in a side of width a_j with chance
   (a_j − w_j)⁺ / (1 − w_j) ≤ a_j, in box i hence with at most v_i, in any of those left out with at most their sum.

`budget_for` turns the second around: the least B that misses at most ε. It needs all boxes at hand, so it is a function
for who knows them and no option of an index that changes.

Structure: `_ranked` lists the largest boxes in order, more than B of them, so that one that leaves is replaced by the
next. It is filled again from the whole store when fewer than B are left. The first B of it lie in arrays of their own
(the front), each at a fixed place, in no order.

Cost: B words a check (0.3 ns each); updates O(log B) and a move of O(B) references, a refill of O(n) at most once in B
removals. A probe is an entry whose words were looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covering.contract import NO_SLOT, CoveringIndex, Floats, Id, Slots, checked_domain
from covering.packed import find_largest_first, volumes
from covering.packed_words import Fields, pack_stored
from coverlay import CoverlayError, Key

BUDGET = 1024
_RESERVE = 2  # times the budget are ranked: refilling costs a pass over all, which B removals then pay for
_NOTHING_BUILT = 0  # of the static part that `find_largest_first` has and the front has not

Rank = tuple[float, tuple[bool, int, str], int]  # −volume, id, slot: ascending is largest first


def budget_for(boxes: ArrayLike, domain: ArrayLike, epsilon: float) -> int:
    """The least budget that misses at most a share ε of uniformly placed queries over these boxes (see 2 above)."""
    bounds, held = checked_domain(domain), np.asarray(boxes, np.float64)
    widths = bounds[:, 1] - bounds[:, 0]
    points = np.stack([-held[:, :, 0], held[:, :, 1]], axis=2).reshape(len(held), -1)
    shares = _sizes(points, bounds) / np.prod(widths[widths > 0.0])
    left_out = np.cumsum(np.sort(shares))  # by the smallest 1, 2, …
    return len(held) - int(np.searchsorted(left_out, epsilon, side="right"))


def _sizes(points: Floats, domain: Floats) -> Floats:
    """Clipped volumes; what overflows counts as large, so that nothing that is left out is larger than what is not."""
    sizes = volumes(points, domain)
    return np.where(np.isnan(sizes), np.inf, sizes)


class BudgetIndex(CoveringIndex):
    name = "budget"
    always_gives_up = True

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        budget: Annotated[int, Key("the largest boxes that are looked at", "boxes")] = BUDGET,
    ) -> None:
        super().__init__(domain, epsilon)
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
            raise CoverlayError(f"budget {budget!r} must be a whole number of at least 1")
        self.budget = budget
        self._fields = Fields.of(self.domain)
        self._one = np.empty(1, np.int64)
        self._ranked: list[Rank] = []
        self._place: dict[int, int] = {}  # slot → place in the front
        self._front(np.empty(0, np.int64))

    def _front(self, slots: Slots) -> None:
        """Lay these slots out as the front, with room for a few more."""
        fields, held = self._fields, len(slots)
        room = min(self.budget, held + max(16, held // 4))
        self._slot_at = np.full(room, NO_SLOT)
        self._front_points = np.full((room, 2 * self.attributes), np.nan)
        self._words: NDArray[Any] = np.zeros((fields.words, room), fields.guards.dtype)
        self._slot_at[:held], self._front_points[:held] = slots, self._points[slots]
        pack_stored(self._front_points, 0, held, fields.kernel, self._words)
        self._place = {slot: place for place, slot in enumerate(slots.tolist())}
        arrays = (self._front_points, self._words, fields.grid, fields.guards)
        self._state = (*arrays, self.domain, np.empty(0))

    def _rank_all(self, slots: Slots) -> list[Rank]:
        sizes, ids = _sizes(self._points[slots], self.domain).tolist(), self._ids.at_all(slots)
        return [(-size, _tie(id), slot) for size, id, slot in zip(sizes, ids, slots.tolist(), strict=True)]

    def _rank(self, slot: int) -> Rank:
        return self._rank_all(np.array([slot]))[0]

    def _insert(self, slot: int) -> None:
        rank, ranked = self._rank(slot), self._ranked
        if len(ranked) < len(self) - 1 and rank > ranked[-1]:
            return  # there are larger ones that are not ranked
        at = bisect_left(ranked, rank)
        ranked.insert(at, rank)
        if at < self.budget and len(ranked) > self.budget:
            self._put(slot, self._place.pop(ranked[self.budget][2]))
        elif at < self.budget:
            self._put(slot, len(self._place))
        del ranked[_RESERVE * self.budget :]

    def _insert_many(self, first: int, count: int) -> None:
        self._refill()

    def _delete(self, slot: int) -> None:
        rank, ranked = self._rank(slot), self._ranked
        at = bisect_left(ranked, rank)
        if at == len(ranked) or ranked[at] != rank:
            return
        del ranked[at]
        if at < self.budget:
            place = self._place.pop(slot)
            if len(ranked) >= self.budget:
                self._put(ranked[self.budget - 1][2], place)
            elif place < len(self._place):  # the last place moves into the hole
                self._put(int(self._slot_at[len(self._place)]), place)
        if len(ranked) < min(self.budget, len(self) - 1):
            self._refill(leaving=slot)

    def _put(self, slot: int, place: int) -> None:
        if place == len(self._slot_at):
            self._front(self._slot_at.copy())
        self._place[slot] = place
        self._slot_at[place], self._front_points[place] = slot, self._points[slot]
        pack_stored(self._front_points, place, place + 1, self._fields.kernel, self._words)

    def _refill(self, leaving: int = NO_SLOT) -> None:
        """Rank the largest of the whole store anew."""
        slots = np.array([slot for slot in self._ids.slots() if slot != leaving], np.int64)
        most = _RESERVE * self.budget
        if len(slots) > most:
            sizes = _sizes(self._points[slots], self.domain)
            slots = slots[sizes >= np.partition(sizes, len(slots) - most)[len(slots) - most]]
        self._ranked = sorted(self._rank_all(slots))[:most]
        self._front(np.array([slot for _, _, slot in self._ranked[: self.budget]], np.int64))

    def _search(self, query: Floats) -> int:
        return int(self._search_into(query.reshape(1, -1), self._one)[0])

    def _search_many(self, queries: Floats) -> Slots:
        return self._search_into(queries, np.empty(len(queries), np.int64))

    def _search_into(self, queries: Floats, found: Slots) -> Slots:
        _, probes = find_largest_first(self._state, _NOTHING_BUILT, len(self._place), queries, found)
        capped = 0
        if len(self._place) < len(self):
            least = -self._ranked[self.budget - 1][0]
            missed = np.flatnonzero(found < 0)
            # Not `<=`: the volume of a query may be no number, and nothing is known then.
            capped = len(missed) - int((volumes(queries[missed], self.domain) > least).sum())
        self.stats.probes += probes
        self.stats.capped += capped
        self.stats.volume += len(queries) - capped
        return np.where(found < 0, NO_SLOT, self._slot_at[found])

    def _structure_bytes(self) -> int:
        arrays = self._slot_at.nbytes + self._front_points.nbytes + self._words.nbytes
        ranks = sum(rank.__sizeof__() + rank[1].__sizeof__() for rank in self._ranked)
        return arrays + ranks + self._ranked.__sizeof__() + self._place.__sizeof__()

    def _check(self) -> None:
        everything = sorted(self._rank_all(np.array(self._ids.slots(), np.int64)))
        assert min(self.budget, len(self)) <= len(self._ranked) <= _RESERVE * self.budget
        assert self._ranked == everything[: len(self._ranked)]
        held = len(self._place)
        assert set(self._place) == {slot for _, _, slot in everything[: self.budget]}
        assert all(self._slot_at[place] == slot for slot, place in self._place.items())
        assert sorted(self._place.values()) == list(range(held))
        assert np.array_equal(self._front_points[:held], self._points[self._slot_at[:held]])
        expected = np.zeros_like(self._words)
        pack_stored(self._front_points, 0, held, self._fields.kernel, expected)
        assert (self._words[:, :held] == expected[:, :held]).all()


def _tie(id: Id) -> tuple[bool, int, str]:
    """Whole numbers by value, then everything else by how it is written, since not all ids compare."""
    whole = isinstance(id, int)
    return (not whole, id, "") if whole else (True, 0, repr(id))
