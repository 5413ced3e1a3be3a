"""How an overflowing bucket is split in three (BE*-Tree §V-A3): left, overlapping, right; left and right never meet.

`exhaustive` tries every number I of leftmost (and of rightmost) expressions and takes the split whose overlapping
bucket is shortest, the smallest coverage among equals. `approximate` fills left and right in turns. Both fail when
left or right would get less than α of the expressions; then `halve` cuts the space in the middle.
Labels: 0 left, 1 overlapping, 2 right.

Ours changes one thing: above _TRY_ALL expressions (only batch construction gets there) I is tried at evenly spaced
ranks, which keeps the cost at O(n log n) instead of O(n²).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.heaps import heapify, in_order
from topk.kernels.rows import fill, floats, ints

_TRY_ALL = 64
_TRIES = 32
_FAR = 1e150  # in place of ±inf, so that lengths can be compared


@kernel(inner=True)
def ascending(values: Any, sign: float) -> Any:
    """The order of sign · values. numba's sort of an array takes a second to compile, this heap is needed anyway."""
    keys, order = floats(len(values)), ints(len(values))
    for i in range(len(values)):
        keys[i], order[i] = -sign * values[i], i
    heapify(keys, order, len(values))
    in_order(keys, order, len(values))
    return order


@kernel(inner=True)
def exhaustive(lo: Any, hi: Any, alpha: float, label: Any) -> bool:
    """split_opt: best of Ω_up and Ω_low. False if no split satisfies α; `label` is then undefined."""
    n = len(lo)
    least = max(1, int(np.ceil(alpha * n)))
    by_hi, by_lo = ascending(hi, 1.0), ascending(lo, -1.0)
    best_overlap, best_coverage, best_cut, best_side = np.inf, np.inf, 0.0, -1
    step = 1 if n <= _TRY_ALL else max(1, n // _TRIES)
    for side in range(2):
        for taken in range(least, n - least + 1, step):
            cut = hi[by_hi[taken - 1]] if side == 0 else lo[by_lo[taken - 1]]
            valid, overlap, coverage = _judge(lo, hi, cut, side, least)
            if valid and (overlap < best_overlap or (overlap == best_overlap and coverage < best_coverage)):
                best_overlap, best_coverage, best_cut, best_side = overlap, coverage, cut, side
    if best_side < 0:
        return False
    for i in range(n):
        label[i] = _label(lo[i], hi[i], best_cut, best_side)
    return True


@kernel(inline="always")
def _label(lo: float, hi: float, cut: float, side: int) -> Any:
    """Side 0: all that ends by the cut is left, all that begins after it right; side 1 mirrored."""
    if side == 0:
        return 0 if hi <= cut else (2 if lo > cut else 1)
    return 2 if lo >= cut else (0 if hi < cut else 1)


@kernel(inner=True)
def _judge(lo: Any, hi: Any, cut: float, side: int, least: int) -> Any:
    """Whether left and right get enough, length of the overlapping bucket, length covered by the three."""
    low, high, count = floats(3), floats(3), ints(3)
    fill(low, _FAR)
    fill(high, -_FAR)
    fill(count, 0)
    for i in range(len(lo)):
        which = _label(lo[i], hi[i], cut, side)
        count[which] += 1
        low[which] = min(low[which], max(lo[i], -_FAR))
        high[which] = max(high[which], min(hi[i], _FAR))
    if count[0] < least or count[2] < least:
        return False, 0.0, 0.0
    sides = (high[0] - low[0]) + (high[2] - low[2])
    if count[1] == 0:
        return True, 0.0, sides
    overlap = high[1] - low[1]
    with_left = max(0.0, min(high[0], high[1]) - max(low[0], low[1]))
    with_right = max(0.0, min(high[2], high[1]) - max(low[2], low[1]))
    return True, overlap, sides + overlap - with_left - with_right


@kernel(inner=True)
def approximate(lo: Any, hi: Any, alpha: float, label: Any) -> bool:
    """split_apx: leftmost to the left, rightmost to the right, in turns; what meets the other side overlaps."""
    n = len(lo)
    by_hi, by_lo = ascending(hi, 1.0), ascending(lo, -1.0)
    fill(label, -1)
    left_end, right_begin = -np.inf, np.inf
    lefts, rights = 0, 0
    for i in range(n):
        a, b = by_hi[i], by_lo[i]
        if label[a] < 0 and hi[a] < right_begin:
            label[a] = 0
            left_end = max(left_end, hi[a])
            lefts += 1
        if label[b] < 0 and lo[b] > left_end:
            label[b] = 2
            right_begin = min(right_begin, lo[b])
            rights += 1
    for i in range(n):
        if label[i] < 0:
            label[i] = 1
    return lefts >= max(1.0, alpha * n) and rights >= max(1.0, alpha * n)


@kernel(inner=True)
def halve(lo: Any, hi: Any, middle: float, label: Any) -> None:
    """Space clustering: cut at the middle of the bucket."""
    for i in range(len(lo)):
        label[i] = 0 if hi[i] < middle else (2 if lo[i] > middle else 1)


@kernel(inner=True)
def centre(lo: Any, hi: Any) -> float:
    """Middle of the hull; of the finite bounds where it is unbounded. Never outside: no side may get all rows."""
    low, high = np.inf, -np.inf
    for i in range(len(lo)):
        if np.isfinite(lo[i]):
            low, high = min(low, lo[i]), max(high, lo[i])
        if np.isfinite(hi[i]):
            low, high = min(low, hi[i]), max(high, hi[i])
    return 0.0 if low > high else min(max(low / 2.0 + high / 2.0, low), high)
