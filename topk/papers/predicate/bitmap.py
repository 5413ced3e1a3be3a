"""VCI indexing with bitmap vectors: SCI, SCI-BC, LCI and LCI-BC (IBM 2004, sections 2 and 3).

On top of the lists of `pieces.py`, bit c of the vector of position j says that construct interval c covers
j and has a non-empty list. A search walks the set bits of one vector, so its time does not depend on n
beyond the answer. Clipping keeps only the covering segment of each vector: L·(per start)+1 bits instead of
R·(per start).

Ours: a value between two positions needs the intervals set in both vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.catalogue import Ints
from topk.kernels.bits import ONE, ZERO, lowest_bit
from topk.papers.interval.contract import array_bytes
from topk.papers.predicate.construct import covering_segment, decode, find_coordinate, piece
from topk.papers.predicate.contract import END, prepend, room_for, unlink
from topk.papers.predicate.pieces import ConstructIndex, check_lists


class Bitmaps(NamedTuple):
    words: NDArray[np.uint64]  # (R, words per vector)
    clipped: bool


@kernel(inner=True)
def _first_bit(s: Any, clipped: bool, j: int) -> int:
    """The coordinate of bit 0 of vector j."""
    return covering_segment(s, j, False)[0] if clipped else 0


@kernel(inner=True)
def _mark(s: Any, bitmaps: Any, a: int, b: int, c: int, on: bool) -> None:
    """set_bitmap and reset_bitmap: bit c of the vectors a … b."""
    for j in range(a, min(b + 1, bitmaps.words.shape[0])):
        bit = c - _first_bit(s, bitmaps.clipped, j)
        if on:
            bitmaps.words[j, bit >> 6] |= ONE << np.uint64(bit & 63)
        else:
            bitmaps.words[j, bit >> 6] &= ~(ONE << np.uint64(bit & 63))


@kernel(inner=True)
def _link(s: Any, bitmaps: Any, lists: Any, row: int, x: int, y: int) -> None:
    while x < y:
        end = piece(s, x, y)
        c = find_coordinate(s, x, end)
        if lists.head[c] == END:
            _mark(s, bitmaps, x, end, c, True)
        prepend(lists, c, row)
        x = end


@kernel
def _unlink(s: Any, bitmaps: Any, lists: Any, row: int, x: int, y: int) -> None:
    while x < y:
        end = piece(s, x, y)
        c = find_coordinate(s, x, end)
        unlink(lists, c, row)
        if lists.head[c] == END:
            _mark(s, bitmaps, x, end, c, False)
        x = end


@kernel
def _load(s: Any, bitmaps: Any, lists: Any, rows: Any, x: Any, y: Any) -> None:
    for i in range(len(rows)):
        _link(s, bitmaps, lists, rows[i], x[i], y[i])


@kernel
def _is_set(s: Any, bitmaps: Any, j: int, c: int) -> Any:
    bit = c - _first_bit(s, bitmaps.clipped, j)
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
    """The coordinates of the active construct intervals that cover a position, or the gap behind it."""
    words = bitmaps.words
    j = np.int64(np.floor(where))
    between = where != j
    found = np.empty(64, np.int64)
    size = 0
    first = _first_bit(s, bitmaps.clipped, j)
    for w in range(words.shape[1]):
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
    work[0] += size
    return found[:size]


class BitmapIndex(ConstructIndex):
    """SCI and LCI with a vector per position."""

    clipped: bool

    def _allocate(self, expected: int) -> None:
        super()._allocate(expected)
        coordinates = self.cells * self.shape.per_start
        bits = self.shape.longest * self.shape.per_start + 1 if self.clipped else coordinates
        self._bitmaps = Bitmaps(np.zeros((self.cells, -(-bits // 64)), np.uint64), self.clipped)

    def _link_all(self, rows: Ints, x: Ints, y: Ints) -> None:
        _load(self.shape, self._bitmaps, self._lists, rows, x, y)

    def _unlink(self, row: int, x: int, y: int) -> None:
        _unlink(self.shape, self._bitmaps, self._lists, row, x, y)

    def locate(self, value: float) -> Ints:
        return _locate(self.shape, self._bitmaps, self.position(value), self.work)

    @property
    def nbytes(self) -> int:
        return super().nbytes + array_bytes(self._bitmaps.words)

    def check(self) -> None:
        for c, rows in check_lists(self).items():
            a, b = decode(self.shape, c)
            covers = np.zeros(self.cells, np.bool_)
            covers[a : b + 1] = bool(rows)
            assert np.array_equal(_set_at(self.shape, self._bitmaps, c), covers), f"bit {c} of some vector"


class Sci(BitmapIndex):
    name, logarithmic, clipped = "sci", False, False


class SciClipped(BitmapIndex):
    name, logarithmic, clipped = "sci-bc", False, True


class Lci(BitmapIndex):
    name, logarithmic, clipped = "lci", True, False


class LciClipped(BitmapIndex):
    name, logarithmic, clipped = "lci-bc", True, True
