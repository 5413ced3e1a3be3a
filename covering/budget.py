"""Approximate covering by a budget: only the B largest stored boxes are looked at, in packed words.

Boxes are ranked by their volume within the domain, ties by id. Large boxes cover most of what is covered at all, so a
few of them find most covers, at a price that does not grow with the number of entries. What a search can miss:

1. *Nothing, if the query is larger than the B-th largest box.* A cover has at least the query's volume, so every box
   left out is too small. "No cover" is then exact; otherwise, while boxes are left out, it counts as `capped`.
2. *At most a share Σ v_i of the checks*, if queries are placed uniformly; i runs over the boxes left out, and v_i is
   the share of the domain that box i fills. A query of width w_j lies in a side of width a_j with probability
   (a_j − w_j)⁺ / (1 − w_j) ≤ a_j, hence in box i with at most v_i, and in any box left out with at most their sum.

`budget_for` turns the second around: the least B that misses at most ε. It needs all boxes, so it is a function and not
an option of an index, whose boxes change.

Structure: the front holds the B largest boxes, largest first: slots in `_slot_at`, with points and words beside. A
search ends at the first block of 64 whose largest box is smaller than the query, as in `packed`. `_waiting` has the
volumes of all other boxes by slot, for when a box of the front is removed.

Cost: at most B words a check (0.3 ns each); an addition O(1), or a move of O(B) words if it is among the largest; a
removal from the front a pass over n volumes. A probe is an entry whose words were looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covering.contract import NO_SLOT, CoveringIndex, Slots
from covering.given import Floats, check_limit, checked_domain
from covering.packed import find_largest_first, volumes
from covering.packed_words import SCAN_BLOCK, Fields, pack_stored
from covering.slot_table import Id
from coverlay import Key

BUDGET = 1024
_ELSEWHERE = -1.0  # volume of a slot that does not wait: in the front, or empty


def budget_for(boxes: ArrayLike, domain: ArrayLike, epsilon: float) -> int:
    """The least budget that misses at most a share ε of uniformly placed queries over these boxes (see 2 above)."""
    bounds, held = checked_domain(domain), np.asarray(boxes, np.float64)
    widths = bounds[:, 1] - bounds[:, 0]
    points = np.stack([-held[:, :, 0], held[:, :, 1]], axis=2).reshape(len(held), -1)
    shares = _sizes(points, bounds) / np.prod(widths[widths > 0.0])
    left_out = np.cumsum(np.sort(shares))  # shares of the smallest 1, 2, … boxes together
    return max(1, len(held) - int(np.searchsorted(left_out, epsilon, side="right")))


def _sizes(points: Floats, domain: Floats) -> Floats:
    """Clipped volumes; an overflow counts as infinite, so that no box left out is larger than one in the front."""
    sizes = volumes(points, domain)
    return np.where(np.isnan(sizes), np.inf, sizes)


class BudgetIndex(CoveringIndex):
    """Looks at the largest boxes only.

    >>> from covering.budget import BudgetIndex
    >>> index = BudgetIndex((0, 100), budget=1)
    >>> index.add_many(["wide", "narrow"], [(0, 90), (80, 95)])
    >>> index.find_cover((10, 20)), index.find_cover((85, 95))  # the second cover is overlooked
    ('wide', None)
    """

    name = "budget"
    touches = "words"
    compiled_with = ("budget",)
    always_gives_up = True

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        budget: Annotated[int, Key("the largest boxes that are looked at", "boxes")] = BUDGET,
    ) -> None:
        super().__init__(domain, epsilon)
        check_limit("budget", budget)
        self.budget = budget
        self._fields = Fields.of(self.domain)
        self._waiting: Floats = np.empty(0)
        self._lay_out(np.empty(0, np.int64))

    def _lay_out(self, slots: Slots) -> None:
        """Make these slots, in this order, the front, with room for a few more."""
        fields, held = self._fields, len(slots)
        room = min(self.budget, held + max(16, held // 4))
        self._held = held
        self._slot_at = np.full(room, NO_SLOT)
        self._volumes = np.full(room, _ELSEWHERE)
        self._front = np.full((room, 2 * self.attributes), np.nan)
        self._words: NDArray[Any] = np.zeros((fields.words, room), fields.guards.dtype)
        if held:  # every settings check makes an empty index, which must compile nothing
            self._slot_at[:held], self._front[:held] = slots, self.points[slots]
            self._volumes[:held] = _sizes(self._front[:held], self.domain)
            pack_stored(self._front, 0, held, fields.kernel, self._words)
        self._changed()

    def _changed(self) -> None:
        """Renew what kernels are given; the volume of the first box of each block tells where a search may end."""
        arrays = (self._front, self._words, self._fields.grid, self._fields.guards)
        self._state = (*arrays, self.domain, self._volumes[: self._held : SCAN_BLOCK].copy())

    def _place(self, volume: float, slot: int) -> int:
        """Where this box belongs in the front: all boxes before it are larger, ties by id."""
        rank = (-volume, _tie(self._ids.at(slot)))

        def rank_at(place: int) -> tuple[float, tuple[bool, int, str]]:
            return (-float(self._volumes[place]), _tie(self._ids.at(int(self._slot_at[place]))))

        return bisect_left(range(self._held), rank, key=rank_at)

    def _wait(self, slot: int, volume: float) -> None:
        if slot >= len(self._waiting):
            self._waiting = np.append(self._waiting, np.full(len(self.points) - len(self._waiting), _ELSEWHERE))
        self._waiting[slot] = volume

    def insert(self, slot: int) -> None:
        volume = float(_sizes(self.points[slot : slot + 1], self.domain)[0])
        full = self._held == self.budget
        place = self.budget if full and volume < self._volumes[-1] else self._place(volume, slot)
        if place == self.budget:
            self._wait(slot, volume)
            return
        if full:
            self._wait(int(self._slot_at[-1]), float(self._volumes[-1]))
            self._held -= 1
        self._put(slot, volume, place)

    def _put(self, slot: int, volume: float, place: int) -> None:
        """Put a box into the front at this place; the boxes from there on move up by one."""
        if self._held == len(self._slot_at):
            self._lay_out(self._slot_at.copy())
        held = self._held
        for array in (self._slot_at, self._volumes, self._front, self._words.T):
            array[place + 1 : held + 1] = array[place:held]
        self._slot_at[place], self._volumes[place], self._front[place] = slot, volume, self.points[slot]
        pack_stored(self._front, place, place + 1, self._fields.kernel, self._words)
        self._held += 1
        self._changed()

    def insert_many(self, first: int, count: int) -> None:
        """Rank all boxes anew."""
        slots = np.array(self._ids.slots(), np.int64)
        sizes = _sizes(self.points[slots], self.domain)
        self._waiting = np.full(len(self.points), _ELSEWHERE)
        self._waiting[slots] = sizes
        if len(slots) > self.budget:  # those at least as large as the last that fits
            slots = slots[sizes >= np.partition(sizes, len(slots) - self.budget)[len(slots) - self.budget]]
        ids = self._ids.at_all(slots)
        ranked = sorted((-self._waiting[slot], _tie(id), slot) for id, slot in zip(ids, slots.tolist(), strict=True))
        front = np.array([slot for _, _, slot in ranked[: self.budget]], np.int64)
        self._waiting[front] = _ELSEWHERE
        self._lay_out(front)

    def delete(self, slot: int) -> None:
        if slot < len(self._waiting) and self._waiting[slot] != _ELSEWHERE:
            self._waiting[slot] = _ELSEWHERE
            return
        place, held = int(np.flatnonzero(self._slot_at[: self._held] == slot)[0]), self._held
        for array in (self._slot_at, self._volumes, self._front, self._words.T):
            array[place : held - 1] = array[place + 1 : held]
        self._held -= 1
        self._changed()
        volume = float(self._waiting.max(initial=_ELSEWHERE))
        if volume != _ELSEWHERE:
            following = min(np.flatnonzero(self._waiting == volume).tolist(), key=lambda at: _tie(self._ids.at(at)))
            self._waiting[following] = _ELSEWHERE
            self._put(following, volume, self._held)

    def search_into(self, queries: Floats, found: Slots) -> None:
        _, probes = find_largest_first(self._state, self._held, self._held, queries, found)
        capped = 0
        if self._held < len(self):
            missed = np.flatnonzero(found < 0)
            # Not a sum of `<=`: the volume of a query may be NaN, and then the miss counts as capped.
            capped = len(missed) - int((volumes(queries[missed], self.domain) > self._volumes[-1]).sum())
        self.stats.probes += probes
        self.stats.capped += capped
        self.stats.volume += len(queries) - capped
        found[:] = np.where(found < 0, NO_SLOT, self._slot_at[found])

    def structure_bytes(self) -> int:
        return sum(a.nbytes for a in (self._slot_at, self._volumes, self._front, self._words, self._waiting))

    def check_structure(self) -> None:
        slots, held = np.array(self._ids.slots(), np.int64), self._held
        sizes, ids = _sizes(self.points[slots], self.domain).tolist(), self._ids.at_all(slots)
        ranked = sorted((-size, _tie(id), slot) for size, id, slot in zip(sizes, ids, slots.tolist(), strict=True))
        assert held == min(self.budget, len(self))
        assert self._slot_at[:held].tolist() == [slot for _, _, slot in ranked[:held]]
        assert self._volumes[:held].tolist() == [-size for size, _, _ in ranked[:held]]
        waiting = {slot: -size for size, _, slot in ranked[held:]}
        assert waiting == {s: v for s, v in enumerate(self._waiting.tolist()) if v != _ELSEWHERE}
        assert np.array_equal(self._front[:held], self.points[self._slot_at[:held]])
        expected = np.zeros_like(self._words)
        pack_stored(self._front, 0, held, self._fields.kernel, expected)
        assert (self._words[:, :held] == expected[:, :held]).all()
        assert self._state[-1].tolist() == self._volumes[:held:SCAN_BLOCK].tolist()


def _tie(id: Id) -> tuple[bool, int, str]:
    """A sort key: whole numbers by value, then all other ids by their repr, since not all ids compare."""
    whole = isinstance(id, int)
    return (not whole, id, "") if whole else (True, 0, repr(id))
