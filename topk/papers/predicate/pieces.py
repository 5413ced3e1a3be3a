"""What all indexes of virtual construct intervals share: a list of rows per coordinate, filled by decomposition.

A predicate is decomposed into construct intervals and its row goes into the list of each. The four with
bitmap vectors (`bitmap.py`) and the four without (`virtual.py`) differ only in how a search finds the
coordinates whose lists it must read.

Ours: neighbouring pieces of a predicate share an end, where the paper would report it twice; a row is
reported by the left piece only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.bits import ONE
from topk.papers.interval.contract import COMPARED, NODES, PROBED, Entries
from topk.papers.predicate.construct import Shape, covering_segment, decode, find_coordinate, piece, shape
from topk.papers.predicate.contract import END, PredicateIndex, listed, new_lists, prepend, room_for, unlink


class Bitmaps(NamedTuple):
    words: NDArray[np.uint64]  # (R, words per vector); (0, 0) where there are none
    clipped: bool
    segment: bool  # a search looks at the words of the covering segment only


@kernel(inner=True)
def first_bit(s: Any, clipped: bool, j: int) -> int:
    """The coordinate of bit 0 of vector j."""
    return covering_segment(s, j, False)[0] if clipped else 0


@kernel(inner=True)
def _mark(s: Any, bitmaps: Any, a: int, b: int, c: int, on: bool) -> None:
    """set_bitmap and reset_bitmap: bit c of the vectors a … b."""
    for j in range(a, min(b + 1, bitmaps.words.shape[0])):
        bit = c - first_bit(s, bitmaps.clipped, j)
        if on:
            bitmaps.words[j, bit >> 6] |= ONE << np.uint64(bit & 63)
        else:
            bitmaps.words[j, bit >> 6] &= ~(ONE << np.uint64(bit & 63))


@kernel
def _link(s: Any, bitmaps: Any, lists: Any, rows: Any, lefts: Any, rights: Any) -> None:
    for i in range(len(rows)):
        x, y = lefts[i], rights[i]
        while x < y:
            end = piece(s, x, y)
            c = find_coordinate(s, x, end)
            if lists.head[c] == END:
                _mark(s, bitmaps, x, end, c, True)
            prepend(lists, c, rows[i])
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
def read_lists(s: Any, lists: Any, known: Any, located: Any, value: float, where: float, exact: bool, work: Any) -> Any:
    """The rows in the lists of these coordinates whose true bounds hold, each once.

    Neighbouring pieces of a predicate share a position: there only the left piece counts. With `exact`, bounds hold.
    """
    head, row_at, following = lists.head, lists.row, lists.next
    lo, hi, left = known.lo, known.hi, known.left
    j = np.int64(np.floor(where))
    found, size = np.empty(64, np.int64), 0
    for t in range(len(located)):
        joint = where == j and located[t] // s.per_start == j
        cell = head[located[t]]
        while cell != END:
            row = row_at[cell]
            work[COMPARED] += 1
            if (exact or (lo[row] <= value and value <= hi[row])) and not (joint and left[row] != j):
                if size == len(found):
                    found = room_for(found, size)
                found[size] = row
                size += 1
            cell = following[cell]
    return found[:size]


@kernel
def read_range(s: Any, lists: Any, known: Any, event: Any, where: float, last: int, work: Any) -> Any:
    """The rows that meet the event (low, high), each once; `where` is the position of low, `last` that before high.

    Headers are looked at from the covering segment of low to the last start before high. A row counts with the piece
    that low lies in, or else with its first.
    """
    low, high = event
    head, row_at, following = lists.head, lists.row, lists.next
    lo, hi, left = known.lo, known.hi, known.left
    j = np.int64(np.floor(where))
    found, size = np.empty(64, np.int64), 0
    for c in range(max(covering_segment(s, j, where != j)[0], 0), (last + 1) * s.per_start):
        cell = head[c]
        work[PROBED] += 1
        if cell == END:
            continue
        a, b = decode(s, c)
        if b < where:
            continue
        work[NODES] += 1
        while cell != END:
            row = row_at[cell]
            work[COMPARED] += 1
            new = a < j or a == left[row] or (a == j and where > j)
            if new and lo[row] <= high and low <= hi[row]:
                found = room_for(found, size)
                found[size] = row
                size += 1
            cell = following[cell]
    return found[:size]


class ConstructIndex(PredicateIndex):
    """SCI or LCI with construct intervals of up to `length` positions."""

    logarithmic: bool
    options = {**PredicateIndex.options, "length": "longest construct interval L"}  # noqa: RUF012

    def __init__(self, entries: Entries, length: int = 16, **grid: Any) -> None:
        self.shape: Shape = shape(self.logarithmic, length)
        super().__init__(entries, **grid)

    def _allocate(self, expected: int) -> None:
        self._lists = new_lists(self.cells * self.shape.per_start, 2 * expected)
        self._bitmaps = Bitmaps(np.zeros((0, 0), np.uint64), False, False)

    def _most_cells(self, width: Any) -> Any:
        return width // self.shape.longest + self.shape.per_start + 1

    def _link(self, rows: Ints, x: Ints, y: Ints) -> None:
        _link(self.shape, self._bitmaps, self._lists, rows, x, y)

    def _unlink(self, row: int, x: int, y: int) -> None:
        _unlink(self.shape, self._bitmaps, self._lists, row, x, y)

    def stabbed(self, value: float) -> Ints:
        located, where = self.locate(value), self.position(value)
        exact = self._listed_match(value)
        return read_lists(self.shape, self._lists, self._known, located, value, where, exact, self.work)

    def meeting(self, low: float, high: float) -> Ints:
        where, last = self.position(low), int(self.position(high))
        return read_range(self.shape, self._lists, self._known, (low, high), where, last, self.work)

    def _pieces(self) -> dict[int, list[int]]:
        """What the list of each construct interval must hold."""
        expected: dict[int, list[int]] = {c: [] for c in range(len(self._lists.head))}
        for row in self._live_rows():
            x, y = self.span(self._known.lo[row], self._known.hi[row])
            while x < y:
                end = int(piece(self.shape, x, y))
                expected[int(find_coordinate(self.shape, x, end))].append(row)
                x = end
        return expected

    def check(self) -> None:
        for c, rows in self._pieces().items():
            assert listed(self._lists, c) == rows, f"the list of construct interval {c}"
