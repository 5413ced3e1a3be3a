"""Value cells per attribute, for filing predicates: a 16-ary hierarchy of up to two levels below the whole domain.

Cuts are at quantiles of the predicates' low bounds. cell(v), the number of cuts ≤ v, is monotone: at every level where
a predicate that contains v lies in a single cell, that cell is on v's path. Rare attributes get one cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.checks import Floats
from topk.kernels.segments import cuts_below
from topk.sparse.rows import Rows
from topk.sparse.scores import LARGEST_USUAL

FAN_BITS = 4  # 16 children per cell: three lists to look at for 256 cells
MAX_LEVELS = 2
_SPLIT_AT = 64  # predicates on an attribute that are worth 16 cells; 16 times as many for the next level
_SAMPLE = 4096  # bounds that are enough for 256 quantiles

ATTRIBUTE = np.dtype([
    ("first_cut", "i4"),  # first cut; an attribute with L levels has 16**L − 1
    ("first_list", "i4"),  # first list; level 0 first, then its children, …
    ("bit", "u8"),  # one of 64
    ("reference", "f8"),  # usual weight of a predicate on it
    ("frequency", "f4"),  # predicates on it when the cells were cut, at least 1
    ("levels", "i4"),
])  # fmt: skip


class Grid(NamedTuple):
    """What kernels receive."""

    attribute: Any  # (d,) records
    cuts: Floats


@kernel(inner=True)
def cell_of(attribute: Any, cuts: Any, a: int, value: float, low: int) -> int:
    """The number of cuts ≤ value, known to be `low` or more. Equal values get equal cells, and order is kept."""
    first = attribute[a].first_cut
    high = (1 << (FAN_BITS * attribute[a].levels)) - 1
    if low < high and not cuts[first + low] <= value:
        return low  # usual for the end of a range, where `low` is the cell of its begin
    return cuts_below(cuts, first, low, high, value)


@kernel(inline="always")
def cell_bit(a: int, cell: int) -> Any:
    """The bit of a value cell among 64; multiplicative hashing spreads neighbours."""
    mixed = np.uint64(a * 4096 + cell + 1) * np.uint64(0x9E3779B97F4A7C15)
    return np.uint64(1) << (mixed >> np.uint64(58))


@kernel(inline="always")
def list_at(attribute: Any, a: int, level: int, cell: int) -> int:
    """The list of a leaf cell's ancestor at `level`."""
    before = ((1 << (FAN_BITS * level)) - 1) // ((1 << FAN_BITS) - 1)
    return attribute[a].first_list + before + (cell >> (FAN_BITS * (attribute[a].levels - level)))


def lists_of(levels: int) -> int:
    """How many cells an attribute has at all its levels."""
    return (int((1 << (FAN_BITS * (levels + 1))) - 1)) // ((1 << FAN_BITS) - 1)


def number_of_lists(grid: Grid) -> int:
    if not len(grid.attribute):
        return 1
    return int(grid.attribute[-1].first_list) + lists_of(int(grid.attribute[-1].levels))


def cut_cells(rows: Rows, used: int, dimensions: int) -> Grid:
    """Cells at quantiles of the bounds; list 0 belongs to no attribute."""
    frequency, weights = np.zeros(dimensions, np.int64), np.zeros(dimensions)
    tally(rows, used, frequency, weights)
    grid = np.zeros(dimensions, ATTRIBUTE).view(np.recarray)
    usual = np.divide(weights, frequency, out=np.ones(dimensions), where=frequency > 0)
    grid.reference = np.minimum(usual, LARGEST_USUAL)
    grid.frequency = np.maximum(frequency, 1)
    step = np.maximum(1, frequency // _SAMPLE)
    begins = np.concatenate([[0], np.cumsum(-(-frequency // step))]).astype(np.int64)
    bounds = np.empty(int(begins[-1]))
    sample(rows, used, step, begins, bounds)
    cuts: list[Floats] = []
    next_list, next_cut = 1, 0
    for a in range(dimensions):
        wanted, levels = int(frequency[a]) // _SPLIT_AT, 0
        while levels < MAX_LEVELS and wanted >= 1 << (FAN_BITS * levels):
            levels += 1
        grid[a].levels, grid[a].first_list, grid[a].first_cut = levels, next_list, next_cut
        if levels:
            own = _quantiles(bounds[begins[a] : begins[a + 1]], 1 << (FAN_BITS * levels))
            cuts.append(own)
            next_cut += len(own)
        next_list += lists_of(levels)
    rank = np.empty(dimensions, np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(dimensions)
    grid.bit = np.uint64(1) << (rank % 64).astype(np.uint64)
    return Grid(grid, np.concatenate(cuts) if cuts else np.empty(0))


@kernel
def tally(rows: Rows, used: int, frequency: Any, weights: Any) -> None:
    """Predicates per attribute and the sum of their weights, of all rows that are not gaps."""
    start, length, attribute, weight = rows.start, rows.length, rows.attribute, rows.weight
    for row in range(used):
        for p in range(start[row], start[row] + length[row]):
            frequency[attribute[p]] += 1
            weights[attribute[p]] += weight[p]


@kernel
def sample(rows: Rows, used: int, step: Any, begins: Any, out: Any) -> None:
    """A bound of every step-th predicate of each attribute: the low one where that is finite."""
    start, length, attribute, lo, hi = rows.start, rows.length, rows.attribute, rows.lo, rows.hi
    following, until = begins[:-1].copy(), np.zeros(len(step), np.int64)
    for row in range(used):
        for p in range(start[row], start[row] + length[row]):
            a = attribute[p]
            if until[a] == 0:
                out[following[a]] = lo[p] if np.isfinite(lo[p]) else hi[p]
                following[a] += 1
                until[a] = step[a]
            until[a] -= 1


def _quantiles(bounds: Floats, cells: int) -> Floats:
    """Cuts between predicates: low bounds at equal ranks, so that a predicate starts its cell."""
    bounds = np.sort(bounds[np.isfinite(bounds)])
    if not len(bounds):
        return np.zeros(cells - 1)
    return bounds[np.arange(1, cells) * len(bounds) // cells]
