"""Positions made uniform: a monotone map from values to integer codes, learned from a sample of the endpoints.

Cells of equal width in codes then hold about equal shares of the endpoints, however skewed those are. Half
of the codes stay uniform in value, so that sparse regions keep some resolution: events may fall there although
few endpoints do.

The map is piecewise linear over 4096 equal buckets of the value range, 256 for few endpoints and few codes. A
bucket that holds far more than its share is cut into 256 of its own, and so on, so that a cluster of a millionth
of the range is resolved like any other; other buckets pay nothing for that. All tables lie in one (rows, 2) array.
The row of a bucket is (code at its start, codes across it), or (first row of its own table, −1); a table starts
with the rows (low, buckets per unit) and (buckets, 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Floats

_SAMPLE = 1 << 16  # endpoints that the map is learned from
_TAIL = 1e-3  # share of the sample on either side that the map's range leaves out, against outliers
_BUCKETS = 1 << 12  # of the outermost table: 64 kB, stays in the second-level cache
_NESTED = 1 << 8  # of the others, and of the outermost for few endpoints and codes: many such maps are in use at once
_FEW_ENDPOINTS = 1 << 13
_UNIFORM, _UNIFORM_NESTED = 1 / 2, 1 / 8  # share of the codes that stays uniform in value; nested ones multiply
_HEAVY = 16  # times the fair share of the sample that makes a bucket worth its own table …
_FEW = 64  # … if that is at least this many of the sample
_DEEPEST = 5  # tables within tables: 4096·256⁴ resolves what a float64 does


@kernel
def encode(table: Any, value: float) -> Any:
    """The monotone map: value → code in 0 … 2^B − 1."""
    if table[0, 1] == 0.0:
        return np.int64(0)  # all endpoints are the same
    row: Any = 0
    while True:
        at = min(max((value - table[row, 0]) * table[row, 1], 0.0), table[row + 1, 0])
        bucket: Any = min(np.int64(at), np.int64(table[row + 1, 0]) - 1)
        row += 2 + bucket
        if table[row, 1] >= 0.0:
            return np.int64(table[row, 0] + (at - bucket) * table[row, 1])
        row = np.int64(table[row, 0])


def position_map(lo: Floats, hi: Floats, bits: int) -> Floats:
    """Learn the map to 2^bits codes from the finite endpoints of intervals."""
    step = max(1, 2 * len(lo) // _SAMPLE)
    sample = np.concatenate((lo[::step], hi[::step]))
    sample = np.sort(sample[np.isfinite(sample)])
    if len(sample) == 0:
        sample = np.zeros(1)
    cut = int(len(sample) * _TAIL)
    low, high = float(sample[cut]), float(sample[-1 - cut])
    rows: list[Floats] = []
    coarse = len(sample) <= _FEW_ENDPOINTS and 1 << bits <= _NESTED
    buckets = _NESTED if coarse else _BUCKETS
    _table(rows, sample, low, high, (0.0, float((1 << bits) - 1)), buckets, 1)
    return np.concatenate(rows)


def _table(
    rows: list[Floats], sample: Floats, low: float, high: float, codes: tuple[float, float], buckets: int, depth: int
) -> None:
    """Append the table of [low, high], which spans `codes`, and after it the tables of its heavy buckets."""
    share = np.arange(buckets + 1) / buckets
    edges = low * (1 - share) + high * share  # not low + share·(high − low), which may overflow
    below = np.searchsorted(sample, edges)
    below[0], below[-1] = 0, len(sample)
    uniform = _UNIFORM if depth == 1 else _UNIFORM_NESTED
    reached = (1 - uniform) * below / max(len(sample), 1) + uniform * share
    at = np.floor(codes[0] + reached * (codes[1] - codes[0]))
    span = high / buckets - low / buckets
    scale = 1.0 / span if span > 0 else 0.0
    table = np.zeros((buckets + 2, 2))
    table[0], table[1, 0] = (low, scale if np.isfinite(scale) else 0.0), buckets
    table[2:, 0], table[2:, 1] = at[:-1], np.diff(at)
    rows.append(table)
    if depth == _DEEPEST or table[0, 1] == 0.0:
        return
    counts = np.diff(below)
    for b in np.flatnonzero(counts >= max(_FEW, _HEAVY * len(sample) / buckets)).tolist():
        part = sample[below[b] : below[b + 1]]
        inner = 1.0 / (edges[b + 1] / _NESTED - edges[b] / _NESTED) if edges[b] < edges[b + 1] else np.inf
        if part[0] < part[-1] and np.isfinite(inner):  # a single value cannot be cut
            start = sum(len(p) for p in rows)
            _table(rows, part, float(edges[b]), float(edges[b + 1]), (at[b], at[b + 1]), _NESTED, depth + 1)
            table[2 + b] = start, -1.0
