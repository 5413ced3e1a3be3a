"""A static part in an order that suits the method, and a packed tail for later additions.

Slots 0 … built−1 are the static part: points and packed words lie physically in the method's order, so no
permutation is stored. Slots built … used−1 are the tail, scanned by packed words. An addition goes to the
tail; a removal leaves a NaN tombstone in the static part, or frees a tail slot. When the tail or the
tombstones pass a limit, everything is rebuilt.

The tail limit balances scanning it at every query (0.16 ns per entry) against rebuilding (about 0.3 µs per
entry, spread over the insertions): t·0.16 ns = n·0.3 µs / t gives t ≈ 43 √n.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import Slots
from covering.given import Floats
from covering.packed_points import PackedPoints

TAIL_LEAST = 1024  # entries below which scanning all costs less than any structure saves
TAIL_FACTOR = 43.0  # see above
DEAD_SHARE = 0.25  # of the static part may be tombstones


class StaticWithTail(PackedPoints, ABC):
    """Base of the methods that keep a rebuilt static part and a packed tail."""

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0) -> None:
        super().__init__(domain, epsilon)
        self._built = 0
        self._dead = 0  # tombstones in the static part

    @abstractmethod
    def _arranged(self, points: Floats) -> Slots:
        """The order in which to store these points; may keep what `_arrange_done` needs."""

    def _arrange_done(self) -> None:
        """The static part now lies in that order in `points[:_built]`: build what goes on top of it."""

    def tail_limit(self) -> int:
        return max(TAIL_LEAST, int(TAIL_FACTOR * math.sqrt(self._built)))

    def insert(self, slot: int) -> None:
        self._pack(slot, slot + 1)
        if self.used - self._built > self.tail_limit():
            self._rebuild()

    def insert_many(self, first: int, count: int) -> None:
        if self.used - self._built > self.tail_limit():
            self._rebuild()
        else:
            self._pack(first, first + count)

    def _release(self, slot: int) -> None:
        if slot >= self._built:
            self._free.append(slot)
            return
        self._dead += 1
        if self._dead > max(TAIL_LEAST, DEAD_SHARE * self._built):
            self._rebuild()

    def _room(self, needed: int) -> int:
        # The tail fills up next: make room for a quarter of its limit at a time.
        return needed + max(16, self.tail_limit() // 4) if self.used else needed

    def _rebuild(self) -> None:
        live = np.array(self._ids.slots(), np.int64)
        order = live[self._arranged(self.points[live])]
        self.points = self.points[order]
        self._ids.permute(order, len(order))
        self._free.clear()
        self.used = self._built = len(order)
        self._dead = 0
        self._words = np.empty((self._fields.words, len(order)), self._words.dtype)
        self._pack(0, len(order))
        self._arrange_done()
        self._arrays_moved()

    def check_structure(self) -> None:
        super().check_structure()
        in_use = self._ids.slots()
        assert self._built <= self.used <= len(self.points) == self._words.shape[1]
        assert self._dead == self._built - sum(slot < self._built for slot in in_use)
        assert all(slot >= self._built for slot in self._free)
        assert len(in_use) + self._dead + len(self._free) == self.used
