"""Three ways to keep an SFC array sorted under insertions, with what a search then costs.

- `tiered`: covering/sfc_array.py, blocks of 256 rows under a directory;
- `sorted`: one array, everything above the new key moves;
- `log-structured`: a sorted buffer of 256 keys and runs of doubling sizes, merged as they fill; a search looks
  into the buffer and every run.

The rivals are here to be measured and keep bare one-word keys without slots, which flatters them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covering.sfc_array import SfcArray
from covering.sfc_array import insert as tiered_insert
from covering.sfc_array import locate as tiered_locate
from coverlay import kernel

Keys = NDArray[np.uint64]
BUFFER = 256
_INSERTIONS, _SEARCHES = 4000, 4000


@kernel
def _sorted_insert(keys: Keys, held: int, fresh: Keys) -> int:
    for key in fresh:
        at = np.searchsorted(keys[:held], key)
        keys[at + 1 : held + 1] = keys[at:held].copy()
        keys[at] = key
        held += 1
    return held


@kernel
def _sorted_search(keys: Keys, held: int, wanted: Keys) -> int:
    total = 0
    for key in wanted:
        total += np.searchsorted(keys[:held], key)
    return total


@kernel
def _log_insert(runs: Keys, sizes: NDArray[np.int64], fresh: Keys) -> None:
    """Level i of `runs` holds up to BUFFER·2^i keys; level 0 is the buffer."""
    levels = sizes.shape[0]
    for key in fresh:
        buffer = runs[0]
        at = np.searchsorted(buffer[: sizes[0]], key)
        for i in range(sizes[0], at, -1):
            buffer[i] = buffer[i - 1]
        buffer[at] = key
        sizes[0] += 1
        level = 0
        while sizes[level] >= BUFFER << level and level + 1 < levels:
            low, high = runs[level], runs[level + 1]
            i, j = sizes[level] - 1, sizes[level + 1] - 1
            for k in range(sizes[level] + sizes[level + 1] - 1, -1, -1):  # merge from the end, in place
                if j < 0 or (i >= 0 and low[i] > high[j]):
                    high[k] = low[i]
                    i -= 1
                else:
                    high[k] = high[j]
                    j -= 1
            sizes[level + 1] += sizes[level]
            sizes[level] = 0
            level += 1


@kernel
def _log_search(runs: Keys, sizes: NDArray[np.int64], wanted: Keys) -> int:
    total = 0
    for key in wanted:
        for level in range(sizes.shape[0]):
            if sizes[level]:
                total += np.searchsorted(runs[level][: sizes[level]], key)
    return total


@kernel
def _tiered_insert(arrays: Any, rows: Keys) -> int:
    """Insert rows until there is no room; how many were inserted."""
    for i in range(rows.shape[0]):
        if tiered_insert(arrays, rows[i]) != 0:
            return i
    return rows.shape[0]


@kernel
def _tiered_search(arrays: Any, rows: Keys) -> int:
    total = 0
    for i in range(rows.shape[0]):
        at, inside = tiered_locate(arrays, rows[i])
        total += at + inside
    return total


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(n: int, repeats: int = 3) -> list[dict[str, object]]:
    """µs per insertion and per search with n keys held, one row per way; the least of the repeats."""
    rounds = [_measure_once(n, seed) for seed in range(repeats)]
    return [
        {
            "case": "sfc-upkeep",
            "workload": "random keys",
            "n": n,
            "method": name,
            "us_insert": min(measured[name][0] for measured in rounds) / _INSERTIONS * 1e6,
            "us_search": min(measured[name][1] for measured in rounds) / _SEARCHES * 1e6,
        }
        for name in rounds[0]
    ]


def _measure_once(n: int, seed: int) -> dict[str, tuple[float, float]]:
    """Seconds for all insertions and for all searches, per way."""
    rng = np.random.default_rng(seed)
    held = np.sort(rng.integers(0, 2**63, n).astype(np.uint64))
    fresh = rng.integers(0, 2**63, _INSERTIONS).astype(np.uint64)
    wanted = rng.integers(0, 2**63, _SEARCHES).astype(np.uint64)

    plain = np.zeros(n + 2 * _INSERTIONS, np.uint64)
    plain[:n] = held
    _sorted_insert(plain.copy(), n, fresh[:2])
    _sorted_search(plain, n, wanted[:2])
    plain_in = _seconds(lambda: _sorted_insert(plain, n, fresh))
    plain_find = _seconds(lambda: _sorted_search(plain, n + _INSERTIONS, wanted))

    levels = max(2, int(np.ceil(np.log2(max(2, 2 * n / BUFFER)))) + 1)
    runs = np.zeros((levels, BUFFER << (levels - 1)), np.uint64)
    sizes = np.zeros(levels, np.int64)
    _log_insert(runs, sizes, rng.permutation(held))
    _log_search(runs, sizes, wanted[:2])
    log_in = _seconds(lambda: _log_insert(runs, sizes, fresh))
    log_find = _seconds(lambda: _log_search(runs, sizes, wanted))

    tiered = SfcArray(1)
    tiered.insert_many(np.stack([held, np.arange(n, dtype=np.uint64)], axis=1))
    rows = np.stack([fresh, np.arange(n, n + _INSERTIONS, dtype=np.uint64)], axis=1)
    asked = np.stack([wanted, np.zeros(_SEARCHES, np.uint64)], axis=1)
    _tiered_search(tiered.arrays, asked[:2])
    _tiered_insert(tiered.arrays, rows[:0])

    def fill() -> None:
        done = 0
        while done < _INSERTIONS:
            done += _tiered_insert(tiered.arrays, rows[done:])
            if done < _INSERTIONS:
                tiered._enlarge()

    tiered_in = _seconds(fill)
    tiered_find = _seconds(lambda: _tiered_search(tiered.arrays, asked))
    return {
        "tiered": (tiered_in, tiered_find),
        "sorted": (plain_in, plain_find),
        "log-structured": (log_in, log_find),
    }
