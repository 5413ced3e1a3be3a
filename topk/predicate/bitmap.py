"""VCI indexing with bitmap vectors: SCI, SCI-BC, LCI and LCI-BC (IBM 2004, sections 2 and 3).

A predicate is decomposed into construct intervals and its row goes into the list of each. Bit c of the
vector of position j says that construct interval c covers j and has a non-empty list. A search walks the
set bits of one vector, so its time does not depend on n beyond the answer. Clipping keeps only the covering
segment of each vector: L·(per start)+1 bits instead of R·(per start).

Ours: neighbouring pieces of a predicate share an end, where the paper would report it twice; a row is
reported by the left piece only. A value between two positions needs the intervals set in both vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from topk.bits import ONE, ZERO, lowest_bit
from topk.catalogue import Ints
from topk.interval.base import Entries, array_bytes
from topk.predicate.base import END, PredicateIndex, new_lists, prepend, room_for, unlink, with_cells
from topk.predicate.construct import Shape, covering_segment, find_coordinate, piece, shape


class Bitmaps(NamedTuple):
    words: NDArray[np.uint64]  # (R, words per vector)
    clipped: bool


@njit(cache=True)
def _first_bit(s: Any, clipped: bool, j: int) -> int:
    """The coordinate of bit 0 of vector j."""
    return covering_segment(s, j, False)[0] if clipped else 0


@njit(cache=True)
def _mark(s: Any, bitmaps: Any, a: int, b: int, c: int, on: bool) -> None:
    """set_bitmap and reset_bitmap: bit c of the vectors a … b."""
    for j in range(a, min(b + 1, bitmaps.words.shape[0])):
        bit = c - _first_bit(s, bitmaps.clipped, j)
        if on:
            bitmaps.words[j, bit >> 6] |= ONE << np.uint64(bit & 63)
        else:
            bitmaps.words[j, bit >> 6] &= ~(ONE << np.uint64(bit & 63))


@njit(cache=True)
def _link(s: Any, bitmaps: Any, lists: Any, row: int, x: int, y: int) -> None:
    while x < y:
        end = piece(s, x, y)
        c = find_coordinate(s, x, end)
        if lists.head[c] == END:
            _mark(s, bitmaps, x, end, c, True)
        prepend(lists, c, row)
        x = end


@njit(cache=True)
def _unlink(s: Any, bitmaps: Any, lists: Any, row: int, x: int, y: int) -> None:
    while x < y:
        end = piece(s, x, y)
        c = find_coordinate(s, x, end)
        unlink(lists, c, row)
        if lists.head[c] == END:
            _mark(s, bitmaps, x, end, c, False)
        x = end


@njit(cache=True)
def _load(s: Any, bitmaps: Any, lists: Any, rows: Any, x: Any, y: Any) -> None:
    for i in range(len(rows)):
        _link(s, bitmaps, lists, rows[i], x[i], y[i])


@njit(cache=True)
def _is_set(s: Any, bitmaps: Any, j: int, c: int) -> Any:
    bit = c - _first_bit(s, bitmaps.clipped, j)
    if bit < 0 or bit >= 64 * bitmaps.words.shape[1]:
        return False
    return (bitmaps.words[j, bit >> 6] >> np.uint64(bit & 63)) & ONE != 0


@njit(cache=True)
def read_lists(s: Any, lists: Any, known: Any, located: Any, value: float, where: float, work: Any) -> Any:
    """The rows in the lists of these coordinates whose true bounds hold, each once.

    Neighbouring pieces of a predicate share a position: there the right piece is silent.
    """
    head, row_at, following = lists.head, lists.row, lists.next
    lo, hi, left = known.lo, known.hi, known.left
    j = np.int64(np.floor(where))
    between = where != j
    found = np.empty(64, np.int64)
    size = 0
    for t in range(len(located)):
        joint = (not between) and located[t] // s.per_start == j
        cell = head[located[t]]
        while cell != END:
            row = row_at[cell]
            work[1] += 1
            if lo[row] <= value and value <= hi[row] and not (joint and left[row] != j):
                if size == len(found):
                    found = room_for(found, size)
                found[size] = row
                size += 1
            cell = following[cell]
    return found[:size]


@njit(cache=True)
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


@njit(cache=True)
def _search(s: Any, bitmaps: Any, lists: Any, known: Any, value: float, where: float, work: Any) -> Any:
    return read_lists(s, lists, known, _locate(s, bitmaps, where, work), value, where, work)


class BitmapIndex(PredicateIndex):
    """SCI and LCI with a vector per position."""

    logarithmic: bool
    clipped: bool
    options = {**PredicateIndex.options, "length": "longest construct interval L"}  # noqa: RUF012

    def __init__(self, entries: Entries, length: int = 16, **grid: Any) -> None:
        self.shape: Shape = shape(self.logarithmic, length)
        super().__init__(entries, **grid)

    def _allocate(self, expected: int) -> None:
        coordinates = self.cells * self.shape.per_start
        bits = self.shape.longest * self.shape.per_start + 1 if self.clipped else coordinates
        self._bitmaps = Bitmaps(np.zeros((self.cells, -(-bits // 64)), np.uint64), self.clipped)
        self._lists = new_lists(coordinates, 2 * expected)

    def _pieces(self, width: int) -> int:
        """An upper bound on the construct intervals of a predicate that is `width` positions long."""
        return width // self.shape.longest + self.shape.per_start + 1

    def _load(self, entries: Entries) -> None:
        x, y = load_known(self, entries)
        self._lists = with_cells(self._lists, int(self._pieces(0) * len(x) + ((y - x) // self.shape.longest).sum()))
        _load(self.shape, self._bitmaps, self._lists, entries.rows, x, y)

    def _link(self, row: int, x: int, y: int) -> None:
        self._lists = with_cells(self._lists, self._pieces(y - x))
        _link(self.shape, self._bitmaps, self._lists, row, x, y)

    def _unlink(self, row: int, x: int, y: int) -> None:
        _unlink(self.shape, self._bitmaps, self._lists, row, x, y)

    def stabbed(self, value: float) -> Ints:
        where = self.position(value)
        return _search(self.shape, self._bitmaps, self._lists, self._known, value, where, self.work)

    def locate(self, value: float) -> Ints:
        return _locate(self.shape, self._bitmaps, self.position(value), self.work)

    @property
    def nbytes(self) -> int:
        used = self._lists.meta[0]
        lists = array_bytes(self._lists.head, self._lists.row[:used], self._lists.next[:used])
        return lists + array_bytes(self._bitmaps.words) + self._known_bytes

    def check(self) -> None:
        expected = check_lists(self)
        for c, rows in expected.items():
            for j in range(self.cells):
                a = c // self.shape.per_start
                b = a + (c % self.shape.per_start + 1 if not self.logarithmic else 1 << (c % self.shape.per_start))
                covers = bool(rows) and a <= j <= b
                assert bool(_is_set(self.shape, self._bitmaps, j, c)) == covers, f"bit {c} of vector {j}"


def load_known(index: Any, entries: Entries) -> tuple[Ints, Ints]:
    """Fill the row columns for a bulk load; returns the expanded spans."""
    k, rows = index._known, entries.rows
    last = index.cells - 1
    x = np.floor(np.clip((entries.lo - index.low) / index.step, 0, last)).astype(np.int64)
    y = np.ceil(np.clip((entries.hi - index.low) / index.step, 0, last)).astype(np.int64)
    y = np.where((x == y) & (y < last), y + 1, y)  # a point takes a neighbour in, as in `span`
    x = np.where(x == y, x - 1, x)
    k.lo[rows], k.hi[rows], k.left[rows] = entries.lo, entries.hi, x
    k.scores[rows], k.ids[rows] = entries.scores, entries.ids
    index._live = len(rows)
    return x, y


def check_lists(index: Any) -> dict[int, set[int]]:
    """Every row is in the lists of exactly its pieces; returns what each list must hold."""
    expected: dict[int, set[int]] = {c: set() for c in range(len(index._lists.head))}
    for row in index._rows():
        x, y = index.span(index._known.lo[row], index._known.hi[row])
        while x < y:
            end = int(piece(index.shape, x, y))
            expected[int(find_coordinate(index.shape, x, end))].add(row)
            x = end
    for c, rows in expected.items():
        cell, held = int(index._lists.head[c]), []
        while cell != END:
            held.append(int(index._lists.row[cell]))
            cell = int(index._lists.next[cell])
        assert sorted(held) == sorted(rows), f"the list of construct interval {c}"
    return expected


class Sci(BitmapIndex):
    name, logarithmic, clipped = "sci", False, False


class SciClipped(BitmapIndex):
    name, logarithmic, clipped = "sci-bc", False, True


class Lci(BitmapIndex):
    name, logarithmic, clipped = "lci", True, False


class LciClipped(BitmapIndex):
    name, logarithmic, clipped = "lci-bc", True, True
