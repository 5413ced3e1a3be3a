"""How an overflowing bucket is split in three (BE*-Tree §V-A3): left, overlapping, right; left and right never meet.

`exhaustive` tries every number I of leftmost (and of rightmost) expressions and takes the split whose overlapping
bucket is shortest, the smallest coverage among equals. `approximate` fills left and right in turns. Both fail when
left or right would get less than α of the expressions; then `halve` cuts the space in the middle.
Labels: 0 left, 1 overlapping, 2 right.

Both cost O(n log n): the paper judges each of the n cuts by a look at all expressions, ours by prefixes of their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.rows import ascending, fill, floats

_FAR = 1e150  # in place of ±inf, so that lengths can be compared


@kernel(inner=True)
def exhaustive(lo: Any, hi: Any, alpha: float, label: Any) -> bool:
    """split_opt: best of Ω_up and Ω_low. False if no split satisfies α; `label` is then undefined."""
    n = len(lo)
    least = max(1, int(np.ceil(alpha * n)))
    overlap, coverage, cut = best_cut(lo, hi, least)
    from_right_lo, from_right_hi = floats(n), floats(n)  # Ω_low: the same, seen in a mirror
    for i in range(n):
        from_right_lo[i], from_right_hi[i] = -hi[i], -lo[i]
    other_overlap, other_coverage, other_cut = best_cut(from_right_lo, from_right_hi, least)
    if overlap == np.inf and other_overlap == np.inf:
        return False
    mirrored = other_overlap < overlap or (other_overlap == overlap and other_coverage < coverage)
    for i in range(n):
        if mirrored:
            label[i] = 2 - _label(from_right_lo[i], from_right_hi[i], other_cut)
        else:
            label[i] = _label(lo[i], hi[i], cut)
    return True


@kernel(inline="always")
def _label(lo: float, hi: float, cut: float) -> Any:
    """All that ends by the cut is left, all that begins after it right."""
    return 0 if hi <= cut else (2 if lo > cut else 1)


@kernel(inner=True)
def best_cut(lo: Any, hi: Any, least: int) -> Any:
    """The best end of an expression to cut at. Returns the length of the overlapping bucket (∞ if no cut leaves both
    sides enough), the length covered by all three, and the cut. With prefixes of both orders each cut takes one step.
    """
    n = len(lo)
    by_hi, by_lo = ascending(hi, 1.0), ascending(lo, 1.0)
    # Where the first i by end begin, where the others do; how far the first i by begin reach, how far the others do.
    left_lo, rest_lo, left_hi, rest_hi = floats(n + 1), floats(n + 1), floats(n + 1), floats(n + 1)
    left_lo[0] = rest_lo[n] = _FAR
    left_hi[0] = rest_hi[n] = -_FAR
    for i in range(n):
        left_lo[i + 1] = min(left_lo[i], within(lo[by_hi[i]]))
        left_hi[i + 1] = max(left_hi[i], within(hi[by_lo[i]]))
    for i in range(n - 1, -1, -1):
        rest_lo[i] = min(rest_lo[i + 1], within(lo[by_hi[i]]))
        rest_hi[i] = max(rest_hi[i + 1], within(hi[by_lo[i]]))
    best_overlap, best_coverage, best, begun = np.inf, np.inf, 0.0, 0
    for i in range(least, n - least + 1):  # how many are left, and `begun` how many do not begin after the cut
        cut = hi[by_hi[i - 1]]
        if hi[by_hi[i]] == cut:
            continue
        while begun < n and lo[by_lo[begun]] <= cut:
            begun += 1
        if n - begun < least:
            break
        overlap, coverage = 0.0, (within(cut) - left_lo[i]) + (rest_hi[begun] - within(lo[by_lo[begun]]))
        if begun > i:
            overlap = left_hi[begun] - rest_lo[i]
            coverage += overlap - max(0.0, within(cut) - max(left_lo[i], rest_lo[i]))
            coverage -= max(0.0, min(rest_hi[begun], left_hi[begun]) - within(lo[by_lo[begun]]))
        if overlap < best_overlap or (overlap == best_overlap and coverage < best_coverage):
            best_overlap, best_coverage, best = overlap, coverage, cut
    return best_overlap, best_coverage, best


@kernel(inline="always")
def within(bound: float) -> Any:
    """A bound as a number from which lengths can be computed."""
    return min(max(bound, -_FAR), _FAR)


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
