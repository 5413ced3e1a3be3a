"""Direct lists, Dlist (IBM 2004, section 5.1): at every grid position, the list of all predicates that cover it.

O(1) search before the answer, O(n·w) space for intervals w positions long: the fast and hungry extreme.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.papers.interval.contract import COMPARED, NODES
from topk.papers.predicate.contract import END, PredicateIndex, listed, new_lists, prepend, room_for, unlink


@kernel
def _link(lists: Any, rows: Any, x: Any, y: Any) -> None:
    for i in range(len(rows)):
        for z in range(x[i], y[i] + 1):
            prepend(lists, z, rows[i])


@kernel
def _unlink(lists: Any, row: int, x: int, y: int) -> None:
    for z in range(x, y + 1):
        unlink(lists, z, row)


@kernel
def _meeting(lists: Any, known: Any, event: Any, first: int, last: int, exact: bool, work: Any) -> Any:
    """Rows that meet the event (low, high): those listed at the first position, and those that start at a later one.

    With `exact`, all rows listed at the first position meet it.
    """
    (low, high), found, size = event, np.empty(64, np.int64), 0
    for z in range(first, last + 1):
        work[NODES] += 1
        cell = lists.head[z]
        while cell != END:
            row = lists.row[cell]
            work[COMPARED] += 1
            new = z == first or known.left[row] == z
            if exact or (new and known.lo[row] <= high and low <= known.hi[row]):
                found = room_for(found, size)
                found[size] = row
                size += 1
            cell = lists.next[cell]
    return found[:size]


class DirectList(PredicateIndex):
    name = "dlist"

    def _allocate(self, expected: int) -> None:
        self._lists = new_lists(self.cells, 2 * expected)

    def _most_cells(self, width: Any) -> Any:
        return width + 1

    def _link(self, rows: Ints, x: Ints, y: Ints) -> None:
        _link(self._lists, rows, x, y)

    def _unlink(self, row: int, x: int, y: int) -> None:
        _unlink(self._lists, row, x, y)

    def stabbed(self, value: float) -> Ints:
        return self.meeting(value, value)  # an interval with a value between j and j+1 covers j

    def meeting(self, low: float, high: float) -> Ints:
        first, last = int(self.position(low)), int(self.position(high))
        exact = low == high and self._listed_match(low)
        return _meeting(self._lists, self._known, (low, high), first, last, exact, self.work)

    def locate(self, value: float) -> Ints:
        return np.array([int(self.position(value))])

    def check(self) -> None:
        spans = {row: self.span(self._known.lo[row], self._known.hi[row]) for row in self._live_rows()}
        for z in range(self.cells):
            expected = [row for row, (x, y) in spans.items() if x <= z <= y]
            assert listed(self._lists, z) == expected, f"the list of position {z}"
