"""Base of the methods that scan packed words: the words of every stored point, beside the points (packed_words.py).

Invariant: `_words[:, slot]` are the words of `points[slot]`. A removed entry has only its guards: no query finds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covering.contract import CoveringIndex, Slots
from covering.given import Floats
from covering.packed_words import Fields, covered_by_fields, pack_stored


class PackedPoints(CoveringIndex):
    def __init__(self, domain: ArrayLike, epsilon: float = 0.0) -> None:
        super().__init__(domain, epsilon)
        self._fields = Fields.of(self.domain)
        self._words: NDArray[Any] = np.zeros((self._fields.words, 0), self._fields.guards.dtype)

    def _pack(self, first: int, stop: int) -> None:
        """Write the words of slots first … stop−1; `_words` gets the capacity of `points`."""
        if self._words.shape[1] != len(self.points):
            words = np.zeros((self._fields.words, len(self.points)), self._words.dtype)
            words[:, : self._words.shape[1]] = self._words
            self._words = words
            self._arrays_moved()
        pack_stored(self.points, first, stop, self._fields.kernel, self._words)

    def _arrays_moved(self) -> None:
        """`points`, `_words` or what a method builds from them was replaced: renew what kernels are given."""

    def insert(self, slot: int) -> None:
        self._pack(slot, slot + 1)

    def insert_many(self, first: int, count: int) -> None:
        self._pack(first, first + count)

    def delete(self, slot: int) -> None:
        self._words[:, slot] = self._fields.guards

    def search_covered(self, query: Floats) -> Slots:
        return covered_by_fields(self.points, self._words, self.used, self._fields.kernel, query)

    def structure_bytes(self) -> int:
        return self._words.nbytes

    def check_structure(self) -> None:
        in_use = self._ids.slots()
        expected = np.zeros_like(self._words)
        pack_stored(self.points, 0, self._words.shape[1], self._fields.kernel, expected)
        assert (self._words[:, in_use] == expected[:, in_use]).all()
