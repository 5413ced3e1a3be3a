"""What all indexes of virtual construct intervals share: a list of rows per coordinate, filled by decomposition.

A predicate is decomposed into construct intervals and its row goes into the list of each. The four with
bitmap vectors (`bitmap.py`) and the two without (`virtual.py`) differ only in how a search finds the
coordinates whose lists it must read.

Ours: neighbouring pieces of a predicate share an end, where the paper would report it twice; a row is
reported by the left piece only.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from coverlay import kernel
from topk.catalogue import Ints
from topk.papers.interval.contract import Entries
from topk.papers.predicate.construct import Shape, covering_segment, decode, find_coordinate, piece, shape
from topk.papers.predicate.contract import END, PredicateIndex, list_bytes, new_lists, room_for, with_cells


@kernel
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
    found = np.empty(64, np.int64)
    size = 0
    for c in range(max(covering_segment(s, j, where != j)[0], 0), (last + 1) * s.per_start):
        cell = head[c]
        if cell == END:
            continue
        a, b = decode(s, c)
        if b < where:
            continue
        work[0] += 1
        while cell != END:
            row = row_at[cell]
            work[1] += 1
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

    def _pieces(self, width: Any) -> Any:
        """An upper bound on the construct intervals of a predicate that is `width` positions long."""
        return width // self.shape.longest + self.shape.per_start + 1

    def _load(self, entries: Entries) -> None:
        x, y = load_known(self, entries)
        self._lists = with_cells(self._lists, int(self._pieces(y - x).sum()))
        self._link_all(entries.rows, x, y)

    @abstractmethod
    def _link_all(self, rows: Ints, x: Ints, y: Ints) -> None:
        """`_link` for many rows; the lists have room."""

    def _link(self, row: int, x: int, y: int) -> None:
        self._lists = with_cells(self._lists, self._pieces(y - x))
        self._link_all(np.array([row]), np.array([x]), np.array([y]))

    def stabbed(self, value: float) -> Ints:
        located, where = self.locate(value), self.position(value)
        return read_lists(self.shape, self._lists, self._known, located, value, where, self.work)

    def meeting(self, low: float, high: float) -> Ints:
        where, last = self.position(low), int(self.position(high))
        return read_range(self.shape, self._lists, self._known, (low, high), where, last, self.work)

    @property
    def nbytes(self) -> int:
        return list_bytes(self._lists) + self._known_bytes

    def check(self) -> None:
        check_lists(self)


def load_known(index: Any, entries: Entries) -> tuple[Ints, Ints]:
    """Fill the row columns for a bulk load; returns the expanded spans."""
    k, rows = index._known, entries.rows
    last = index.cells - 1
    with np.errstate(over="ignore"):  # beyond the largest float is beyond the grid
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
