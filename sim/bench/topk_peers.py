"""Top-k stabbing with what one would otherwise use: each peer finds the matches, the same code then takes the k best.

A peer gets intervals in descending score order, so that a smaller position is a better score, and returns
the positions of the k best. The bench's coordinates are multiples of 2⁻³⁰, so that integer libraries see
exactly the same intervals (closed ends become half-open by adding one); all must return the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel

Floats = NDArray[np.float64]
Search = Callable[[float, int], Any]

_CHUNK = 4096  # rows a numpy scan looks at between two tests whether it has enough
GRID = 1 << 30  # coordinates are multiples of 2⁻³⁰ in [−4, 4): exact as floats and as integers


def snap(values: Floats) -> Floats:
    """Round to the grid, so that integer and floating-point peers see the same intervals."""
    return np.rint(values * GRID) / GRID


def numpy_scan(lo: Floats, hi: Floats) -> Search:
    def search(value: float, k: int) -> Any:
        found: list[Any] = []
        count = 0
        for start in range(0, len(lo), _CHUNK):
            part = slice(start, start + _CHUNK)
            hits = np.flatnonzero((lo[part] <= value) & (value <= hi[part])) + start
            found.append(hits)
            count += len(hits)
            if count >= k:
                break
        return np.concatenate(found)[:k] if found else np.empty(0, np.int64)

    return search


@kernel
def _early_exit(lo: Any, hi: Any, value: float, k: int) -> Any:
    out = np.empty(k, np.int64)
    found = 0
    for r in range(len(lo)):
        if lo[r] <= value and value <= hi[r]:
            out[found] = r
            found += 1
            if found == k:
                break
    return out[:found]


@kernel
def _branch_free(lo: Any, hi: Any, value: float, k: int) -> Any:
    """Blocks of 64: count hits without a branch, and look for them only in blocks that have some."""
    out = np.empty(k, np.int64)
    found = 0
    for start in range(0, len(lo), 64):
        stop = min(start + 64, len(lo))
        hits = np.int64(0)
        for r in range(start, stop):
            hits += np.int64(lo[r] <= value) & np.int64(value <= hi[r])
        if hits == 0:
            continue
        for r in range(start, stop):
            if lo[r] <= value and value <= hi[r]:
                out[found] = r
                found += 1
                if found == k:
                    return out
    return out[:found]


def _smallest(positions: Any, k: int) -> Any:
    if len(positions) > k:
        positions = np.partition(positions, k - 1)[:k]
    return np.sort(positions)


def ncls(lo: Floats, hi: Floats) -> Search:
    from ncls import NCLS  # type: ignore[import-not-found, import-untyped, unused-ignore]

    shift = 4 * GRID  # it takes no negative coordinates
    tree = NCLS(_integer(lo) + shift, _integer(hi) + shift + 1, np.arange(len(lo), dtype=np.int64))
    zero = np.zeros(1, np.int64)

    def search(value: float, k: int) -> Any:
        at = np.array([round(value * GRID) + shift], np.int64)
        return _smallest(tree.all_overlaps_both(at, at + 1, zero)[1], k)

    return search


def superintervals(lo: Floats, hi: Floats) -> Search:
    from superintervals import IntervalMap  # type: ignore[import-not-found, import-untyped, unused-ignore]

    # 32-bit coordinates: one in four steps of the grid; candidates are checked against the true bounds.
    shift = 4 * GRID >> 30
    starts, ends = _integer(lo) // shift, _integer(hi) // shift
    tree = IntervalMap.from_arrays(starts.astype(np.int32), ends.astype(np.int32), range(len(lo)))

    def search(value: float, k: int) -> Any:
        at = round(value * GRID) // shift
        rows = np.array(tree.search_values(at, at), dtype=np.int64)
        return _smallest(rows[(lo[rows] <= value) & (value <= hi[rows])], k)

    return search


def duckdb(lo: Floats, hi: Floats) -> Search:
    import duckdb as db
    import pyarrow as pa

    connection = db.connect()
    connection.execute("SET threads TO 2")
    connection.register("given", pa.table({"lo": lo, "hi": hi, "position": np.arange(len(lo))}))
    connection.execute("CREATE TABLE intervals AS SELECT * FROM given")
    query = "SELECT position FROM intervals WHERE lo <= $1 AND hi >= $1 ORDER BY position LIMIT $2"

    def search(value: float, k: int) -> Any:
        return connection.execute(query, [value, k]).fetchnumpy()["position"]

    return search


def _integer(values: Floats) -> NDArray[np.int64]:
    return np.rint(values * GRID).astype(np.int64)


PEERS: dict[str, Callable[[Floats, Floats], Search]] = {
    "numpy scan, score order": numpy_scan,
    "numba scan, score order": lambda lo, hi: partial(_early_exit, lo, hi),
    "branch-free scan, score order": lambda lo, hi: partial(_branch_free, lo, hi),
    "ncls": ncls,
    "superintervals": superintervals,
    "duckdb": duckdb,
}
