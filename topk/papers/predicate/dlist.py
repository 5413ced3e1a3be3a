"""Direct lists, Dlist (IBM 2004, section 5.1): at every grid position, the list of all predicates that cover it.

O(1) search before the answer, O(n·w) space for intervals w positions long: the fast and hungry extreme.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.catalogue import Ints
from topk.papers.interval.contract import Entries
from topk.papers.predicate.contract import (
    END,
    PredicateIndex,
    list_bytes,
    new_lists,
    prepend,
    room_for,
    unlink,
    with_cells,
)
from topk.papers.predicate.pieces import load_known


@kernel
def _link(lists: Any, row: int, x: int, y: int) -> None:
    for z in range(x, y + 1):
        prepend(lists, z, row)


@kernel
def _load(lists: Any, rows: Any, x: Any, y: Any) -> None:
    for i in range(len(rows)):
        _link(lists, rows[i], x[i], y[i])


@kernel
def _unlink(lists: Any, row: int, x: int, y: int) -> None:
    for z in range(x, y + 1):
        unlink(lists, z, row)


@kernel
def _search(lists: Any, known: Any, value: float, where: float, work: Any) -> Any:
    found = np.empty(64, np.int64)
    size = 0
    work[0] += 1
    cell = lists.head[np.int64(np.floor(where))]  # an interval with a value behind j, before j+1, covers j
    while cell != END:
        row = lists.row[cell]
        work[1] += 1
        if known.lo[row] <= value and value <= known.hi[row]:
            found = room_for(found, size)
            found[size] = row
            size += 1
        cell = lists.next[cell]
    return found[:size]


@kernel
def _meeting(lists: Any, known: Any, low: float, high: float, first: int, last: int, work: Any) -> Any:
    """Rows that meet [low, high]: those of the first position, and of the others what starts there."""
    found = np.empty(64, np.int64)
    size = 0
    for z in range(first, last + 1):
        work[0] += 1
        cell = lists.head[z]
        while cell != END:
            row = lists.row[cell]
            work[1] += 1
            new = z == first or known.left[row] == z
            if new and known.lo[row] <= high and low <= known.hi[row]:
                found = room_for(found, size)
                found[size] = row
                size += 1
            cell = lists.next[cell]
    return found[:size]


class DirectList(PredicateIndex):
    name = "dlist"

    def _allocate(self, expected: int) -> None:
        self._lists = new_lists(self.cells, 2 * expected)

    def _load(self, entries: Entries) -> None:
        x, y = load_known(self, entries)
        self._lists = with_cells(self._lists, int((y - x + 1).sum()))
        _load(self._lists, entries.rows, x, y)

    def _link(self, row: int, x: int, y: int) -> None:
        self._lists = with_cells(self._lists, y - x + 1)
        _link(self._lists, row, x, y)

    def _unlink(self, row: int, x: int, y: int) -> None:
        _unlink(self._lists, row, x, y)

    def stabbed(self, value: float) -> Ints:
        return _search(self._lists, self._known, value, self.position(value), self.work)

    def meeting(self, low: float, high: float) -> Ints:
        first, last = int(self.position(low)), int(self.position(high))
        return _meeting(self._lists, self._known, low, high, first, last, self.work)

    def locate(self, value: float) -> Ints:
        return np.array([int(self.position(value))])

    @property
    def nbytes(self) -> int:
        return list_bytes(self._lists) + self._known_bytes

    def check(self) -> None:
        for z in range(self.cells):
            cell, held = int(self._lists.head[z]), []
            while cell != END:
                held.append(int(self._lists.row[cell]))
                cell = int(self._lists.next[cell])
            expected = []
            for row in self._rows():
                x, y = self.span(self._known.lo[row], self._known.hi[row])
                if x <= z <= y:
                    expected.append(row)
            assert sorted(held) == expected, f"the list of position {z}"
