"""Which of many points dominate a given point: the first k in row order, by a branch-free scan of blocks.

t dominates s iff every coordinate of t is at least as large, both are of the same group and, where their last
coordinates are equal, the number of t is smaller (so no two points dominate each other). A k-d tree answers whether one
such t exists; here k are wanted, many points have fewer, and then every structure looks at nearly everything. Cost:
n · D comparisons, vectorised; a block of 64 rows is left as soon as none of its rows can dominate. Used for the
k-skyband of ranked routing (docs/ranked.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 64  # rows that are compared together
FEW = 64  # rows allocated at first


@kernel
def first_dominating(
    points: Any, numbers: Any, groups: Any, start: int, used: int, point: Any, number: int, group: int, found: Any
) -> Any:
    """Fill `found` with rows from `start` on that dominate a point: (their number, the row to continue from)."""
    count, wanted, last = 0, len(found), len(point) - 1
    inside = np.empty(BLOCK, np.uint8)
    for begin in range(start, used, BLOCK):
        size = min(BLOCK, used - begin)
        for i in range(size):
            inside[i] = groups[begin + i] == group
        for coordinate in range(last + 1):
            least, left = point[coordinate], 0
            for i in range(size):
                inside[i] &= points[coordinate, begin + i] >= least
                left += inside[i]
            if left == 0:
                break
        else:
            for row in range(begin, begin + size):
                outranks = points[last, row] > point[last] or numbers[row] < number
                if inside[row - begin] and outranks:
                    found[count] = row
                    count += 1
                    if count == wanted:
                        return count, row + 1
    return count, used


class DominatingPoints:
    """Numbered points, a column of `_points` each; when one is removed, the last takes its row."""

    def __init__(self, dimensions: int) -> None:
        self.rows: dict[int, int] = {}  # number → row
        self._points = np.empty((dimensions, FEW))
        self.numbers = np.empty(FEW, np.int64)
        self._groups = np.empty(FEW, np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, number: int, point: Floats, group: int) -> None:
        row = len(self.rows)
        if row == len(self.numbers):
            self._points = np.concatenate([self._points, np.empty_like(self._points)], axis=1)
            self.numbers = np.concatenate([self.numbers, np.empty_like(self.numbers)])
            self._groups = np.concatenate([self._groups, np.empty_like(self._groups)])
        self._points[:, row], self.numbers[row], self._groups[row] = point, number, group
        self.rows[number] = row

    def remove(self, number: int) -> None:
        row, last = self.rows.pop(number), len(self.rows)
        if row != last:
            self._points[:, row], self._groups[row] = self._points[:, last], self._groups[last]
            self.numbers[row] = self.numbers[last]
            self.rows[int(self.numbers[row])] = row

    def first(self, number: int, point: Floats, group: int, wanted: int, start: int = 0) -> tuple[list[int], int]:
        """Numbers of the first `wanted` points from row `start` on that dominate `point`; the row to continue from."""
        found, rows = np.empty(wanted, np.int64), (self._points, self.numbers, self._groups)
        count, after = first_dominating(*rows, start, len(self.rows), point, number, group, found)
        return self.numbers[found[:count]].tolist(), after

    def check(self) -> None:
        """Raise AssertionError unless `rows` and `numbers` agree."""
        assert sorted(self.rows.values()) == list(range(len(self.rows)))
        assert all(self.numbers[row] == number for number, row in self.rows.items())
