"""Base of the methods on a space filling curve: quantised points in the dynamic SFC array."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import CoveringIndex, Slots
from covering.curve.hilbert_keys import key_rows
from covering.curve.keys import Codes, Words, mirror
from covering.curve.resolution import Bits, full_bits
from covering.curve.sfc_array import SfcArray
from covering.given import Floats
from covering.quantiser import Quantiser
from coverlay import CoverlayError

MAX_ATTRIBUTES = 32  # the state of a coordinate is a bit of one word, two coordinates per attribute


class CurveIndex(CoveringIndex):
    """Base of the curve methods; `hilbert` picks the curve."""

    touches = "keys"
    hilbert = False

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        bits: int | None = None,
        default: Callable[[int], int] = full_bits,
    ) -> None:
        super().__init__(domain, epsilon)
        if self.attributes > MAX_ATTRIBUTES:
            raise CoverlayError(f"{self.attributes} attributes are too many for {self.name}: {MAX_ATTRIBUTES} at most")
        self._quantiser = Quantiser.of(self.domain, default(2 * self.attributes) if bits is None else bits)
        self.bits = self._quantiser.bits
        self._array = SfcArray(self._quantiser.words)

    def _give_new_keys(self, bits: int) -> None:
        """Give all stored points keys of so many bits per coordinate."""
        slots = np.sort(self._array.rows()[:, -1].astype(np.int64))
        self._quantiser = Quantiser.of(self.domain, bits)
        self.bits = bits
        self._array = SfcArray(self._quantiser.words)
        self._array.insert_many(self._rows(0, self.used)[slots])

    def _rows(self, first: int, count: int) -> Words:
        q = self._quantiser
        return key_rows(self.points[first : first + count], first, q.offset, q.scale, q.bits, self.hilbert)

    def insert(self, slot: int) -> None:
        self._array.insert(self._rows(slot, 1)[0])

    def insert_many(self, first: int, count: int) -> None:
        self._array.insert_many(self._rows(first, count))

    def delete(self, slot: int) -> None:
        self._array.delete(self._rows(slot, 1)[0])

    def lengths_of(self, query: Floats) -> Codes:
        """Side lengths of the query's search region, in cells: the mirrored codes of its far corner, plus 1."""
        q, codes = self._quantiser, np.empty(2 * self.attributes, np.int64)
        mirror(query, q.offset, q.scale, q.bits, codes)
        return codes + 1

    def check_structure(self) -> None:
        self._array.check()
        held = {int(row[-1]): row.tolist() for row in self._array.rows()}
        assert sorted(held) == self._ids.slots()
        for slot, row in held.items():
            assert self._rows(slot, 1)[0].tolist() == row

    def structure_bytes(self) -> int:
        return self._array.nbytes


class ExactCurveIndex(CurveIndex):
    """A curve method with an exact kernel, which fills in the slots of many queries and returns its probes."""

    find: ClassVar[Callable[..., int]]

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0, *, bits: Bits = None) -> None:
        super().__init__(domain, epsilon, bits)

    def search_into(self, queries: Floats, found: Slots) -> None:
        q = self._quantiser
        self.stats.probes += self.find(self._array.arrays, self.points, q.offset, q.scale, q.bits, queries, found)
        self.stats.volume += len(queries)
