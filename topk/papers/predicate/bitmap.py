"""VCI indexing with bitmap vectors: SCI, SCI-BC, LCI and LCI-BC (IBM 2004, sections 2 and 3).

On top of the lists of `pieces.py`, bit c of the vector of position j says that construct interval c covers
j and has a non-empty list. A search walks the set bits of one vector, so its time does not depend on n
beyond the answer. Clipping keeps only the covering segment of each vector: L·(per start)+1 bits instead of
R·(per start).

The paper's search looks at all N bits of a full vector, 625 words at R = 5,000 and L = 128. Only those of the covering
segment can be set: with `segment` a search looks at their words alone, and a full vector is read like a clipped one.

Ours: a value between two positions needs the intervals set in both vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.bits import ONE, ZERO, lowest_bit
from topk.papers.interval.contract import NODES, PROBED, Entries, array_bytes
from topk.papers.predicate.construct import covering_segment, decode
from topk.papers.predicate.contract import room_for
from topk.papers.predicate.pieces import Bitmaps, ConstructIndex, first_bit


@kernel
def _is_set(s: Any, bitmaps: Any, j: int, c: int) -> Any:
    bit = c - first_bit(s, bitmaps.clipped, j)
    if bit < 0 or bit >= 64 * bitmaps.words.shape[1]:
        return False
    return (bitmaps.words[j, bit >> 6] >> np.uint64(bit & 63)) & ONE != 0


@kernel
def _set_at(s: Any, bitmaps: Any, c: int) -> Any:
    """Per position: does its vector have the bit of a coordinate?"""
    found = np.empty(bitmaps.words.shape[0], np.bool_)
    for j in range(len(found)):
        found[j] = _is_set(s, bitmaps, j, c)
    return found


@kernel
def _locate(s: Any, bitmaps: Any, where: float, work: Any) -> Any:
    """The coordinates of the active construct intervals that cover a position, or the gap after it."""
    words, j = bitmaps.words, np.int64(np.floor(where))
    between = where != j
    found, size = np.empty(64, np.int64), 0
    first = first_bit(s, bitmaps.clipped, j)
    begin, end = 0, words.shape[1]
    if bitmaps.segment:
        low, high = covering_segment(s, j, False)
        begin, end = max(low, 0) >> 6, min((high >> 6) + 1, end)
    work[PROBED] += end - begin
    for w in range(begin, end):
        word = words[j, w]
        while word != ZERO:
            c = first + 64 * w + lowest_bit(word)
            word &= word - ONE
            if between and not _is_set(s, bitmaps, j + 1, c):
                continue
            if size == len(found):
                found = room_for(found, size)
            found[size] = c
            size += 1
    work[NODES] += size
    return found[:size]


class BitmapIndex(ConstructIndex):
    """SCI and LCI with a vector per position."""

    clipped: bool
    segment = False

    def _allocate(self, expected: int) -> None:
        super()._allocate(expected)
        coordinates = self.cells * self.shape.per_start
        bits = self.shape.longest * self.shape.per_start + 1 if self.clipped else coordinates
        self._bitmaps = Bitmaps(np.zeros((self.cells, -(-bits // 64)), np.uint64), self.clipped, self.segment)

    def locate(self, value: float) -> Ints:
        return _locate(self.shape, self._bitmaps, self.position(value), self.work)

    @property
    def nbytes(self) -> int:
        return super().nbytes + array_bytes(self._bitmaps.words)

    @property
    def allocated_bytes(self) -> int:
        return super().allocated_bytes + array_bytes(self._bitmaps.words)

    def check(self) -> None:
        super().check()
        for c, rows in self._pieces().items():
            a, b = decode(self.shape, c)
            covers = np.zeros(self.cells, np.bool_)
            covers[a : b + 1] = bool(rows)
            assert np.array_equal(_set_at(self.shape, self._bitmaps, c), covers), f"bit {c} of some vector"


class FullBitmapIndex(BitmapIndex):
    options = {  # noqa: RUF012
        **BitmapIndex.options,
        "segment": "look at the words of the covering segment only; false: at all of a vector, as the paper has it",
    }

    def __init__(self, entries: Entries, segment: bool = False, **rest: Any) -> None:
        self.segment = bool(segment)
        super().__init__(entries, **rest)


class Sci(FullBitmapIndex):
    name, logarithmic, clipped = "sci", False, False


class SciClipped(BitmapIndex):
    name, logarithmic, clipped = "sci-bc", False, True


class Lci(FullBitmapIndex):
    name, logarithmic, clipped = "lci", True, False


class LciClipped(BitmapIndex):
    name, logarithmic, clipped = "lci-bc", True, True
