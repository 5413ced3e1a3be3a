"""Packed copies of expressions: 16 bytes per predicate in one run of memory per expression.

A value becomes a 32-bit code by one monotone map per attribute (its range in the data onto 0 … 2³²−1, clamped at the
ends), so lo ≤ v ≤ hi implies code(lo) ≤ code(v) ≤ code(hi): a filter on codes loses nothing. Weights are
rounded up to multiples of a common step, so a (monotone) score from codes is an upper bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.rows import fitted, with_room
from topk.kernels.threads import in_parts
from topk.predicates import Int32s
from topk.sparse.rows import ExpressionStore, Rows
from topk.sparse.scores import Scoring, combine, raised

_TOP = 2.0**32 - 1.0
_LEAST_STEP, _NARROWEST = 1e-300, 1e-290  # of weights, and of a range: below, scales are not finite
MAY_MATCH, TOO_LOW = 0, -1  # what `compare` finds


class Packed(NamedTuple):
    """What kernels receive. A block is a header (row, number of predicates) and (attribute, low, high, weight)."""

    blocks: NDArray[np.uint32]  # (arena, 4)
    scale: Floats  # (d, 2) value of code 0, codes per unit
    step: Floats  # (1,) weight per unit of a weight code


@kernel(inline="always")
def code(scale: Any, a: int, value: float) -> Any:
    scaled = (value - scale[a, 0]) * scale[a, 1]
    # ±inf minus the origin is ±inf; inf · 0 cannot happen, codes per unit are positive.
    return np.uint32(min(max(scaled, 0.0), _TOP))


@kernel(inner=True)
def pack_codes(packed: Packed, columns: Any, codes: Any) -> None:
    scale = packed.scale
    for i in range(len(columns[0])):
        a = columns[0][i]
        codes[a, 0] = code(scale, a, columns[1][i])
        codes[a, 1] = code(scale, a, columns[2][i])


@kernel(inner=True)
def compare(blocks: Any, step: float, at: int, codes: Any, event: Any, score: Scoring, least: float) -> int:
    """MAY_MATCH if the block may match (its attributes being present) and score at least `least`.

    Otherwise how many predicates it took to see that it does not match, or TOO_LOW.
    """
    total = score.start
    for j in range(at + 1, at + 1 + blocks[at, 1]):
        a = blocks[j, 0]
        if blocks[j, 1] > codes[a, 1] or codes[a, 0] > blocks[j, 2]:
            return j - at
        total = combine(score, total, blocks[j, 3] * step, event[2, a])
    # NaN (an attribute is missing) goes on to verification.
    return TOO_LOW if raised(total) < least else MAY_MATCH


@kernel(inline="always")
def weight_code(weight: float, step: float) -> Any:
    """The least number of steps that is not below the weight, also where the quotient was rounded down."""
    steps = np.ceil(weight / step)
    return np.uint32(min(steps + 1.0 if steps * step < weight else steps, _TOP))


@kernel
def write_blocks(rows: Rows, packed: Packed, which: Any, at: Any) -> None:
    # Arrays by name: taking them out of the tuples in the loop would count references at every access.
    start, length, attribute, lo, hi, weight = rows.start, rows.length, rows.attribute, rows.lo, rows.hi, rows.weight
    blocks, scale, step = packed.blocks, packed.scale, packed.step[0]
    for i in range(len(which)):
        row, target = which[i], at[i]
        blocks[target, 0] = row
        blocks[target, 1] = length[row]
        for j in range(length[row]):
            p, to = start[row] + j, target + 1 + j
            a = attribute[p]
            blocks[to, 0] = a
            blocks[to, 1] = code(scale, a, lo[p])
            blocks[to, 2] = code(scale, a, hi[p])
            blocks[to, 3] = weight_code(weight[p], step)


class Codes:
    """The arena of blocks of a store."""

    def __init__(self, store: ExpressionStore, order: Ints) -> None:
        """Blocks of the given rows, in this order."""
        self._store = store
        rows = store.rows
        lengths = rows.length[order].astype(np.int64)
        ends = np.cumsum(lengths + 1)
        self.used = int(ends[-1]) if len(order) else 0
        self.wasted = 0
        self.at = np.full(len(rows.ids), -1, np.int32)
        self.at[order] = ends - lengths - 1
        heaviest = float(rows.weight.max(initial=0.0))
        scale = _scales(rows, store.dimensions)
        self.packed = Packed(np.zeros((self.used, 4), np.uint32), scale, np.array([_step(heaviest)]))
        packed = self.packed
        in_parts(lambda *own: write_blocks(rows, packed, *own), len(order), order, self.at[order])

    @property
    def nbytes(self) -> int:
        return int(self.at.nbytes) + sum(int(column.nbytes) for column in self.packed)

    @property
    def mostly_waste(self) -> bool:
        return 2 * self.wasted > max(self.used, 1024)

    def add(self, row: int) -> int:
        rows = self._store.rows
        size = int(rows.length[row]) + 1
        self.packed = self.packed._replace(blocks=with_room(self.packed.blocks, self.used, size))
        if row >= len(self.at):
            self.at = fitted(self.at, len(rows.ids), -1)
        self._keep_weights(row)
        at = self.used
        write_blocks(rows, self.packed, np.array([row]), np.array([at], np.int32))
        self.at[row] = at
        self.used += size
        return at

    def _keep_weights(self, row: int) -> None:
        """For a weight beyond the largest code, take a coarser step and write all blocks again."""
        rows = self._store.rows
        begin = int(rows.start[row])
        heaviest = float(rows.weight[begin : begin + int(rows.length[row])].max(initial=0.0))
        if heaviest <= self.packed.step[0] * (_TOP - 1.0):
            return
        self.packed.step[0] = _step(heaviest)
        live = np.flatnonzero(self.at >= 0)
        write_blocks(rows, self.packed, live, self.at[live])

    def remove(self, row: int) -> None:
        self.wasted += int(self._store.rows.length[row]) + 1
        self.at[row] = -1

    def check(self) -> None:
        rows, blocks = self._store.rows, self.packed.blocks
        for id, row in self._store.row_of.items():
            at = int(self.at[row])
            assert blocks[at, :2].tolist() == [row, rows.length[row]], f"subscription {id} has its block"
            begin = int(rows.start[row])
            for j in range(int(rows.length[row])):
                attribute, low, high, weight = blocks[at + 1 + j].tolist()
                assert attribute == rows.attribute[begin + j], f"block of {id} has its attributes"
                assert low <= high, "codes keep the order"
                assert weight * self.packed.step[0] >= rows.weight[begin + j], "weights are rounded up"


def _step(heaviest: float) -> float:
    """The weight of one code unit: twice the heaviest weight still has a code, and the step has all its bits."""
    return max(heaviest / _TOP * 2.0, _LEAST_STEP)


def _scales(rows: Rows, dimensions: int) -> Floats:
    low, high = np.full(dimensions, np.inf), np.full(dimensions, -np.inf)
    _extremes(rows.attribute, rows.lo, rows.hi, low, high)
    known = low <= high
    origin = np.where(known, low, 0.0)
    with np.errstate(over="ignore"):
        width = np.where(known & (high > low), high - low, 1.0)
    usable = np.isfinite(width) & (width > _NARROWEST)
    return np.stack([origin, _TOP / np.where(usable, width, 1.0)], axis=1)


@kernel
def _extremes(attribute: Int32s, lo: Floats, hi: Floats, low: Floats, high: Floats) -> None:
    """The least and the largest finite bound per attribute."""
    for i in range(len(attribute)):
        a = attribute[i]
        for bound in (lo[i], hi[i]):
            if np.isfinite(bound):
                low[a] = min(low[a], bound)
                high[a] = max(high[a], bound)
