"""The inner loops of `threshold_merge.py`, and what they write to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.heaps import offer

FIRST_BLOCK = 16  # results asked of an iterator at first; k (relaxed: k + 1) where that is more


class Marks(NamedTuple):
    """What one search notes about rows."""

    counts: NDArray[np.int32]  # iterators that a row has come out of, zero between searches
    seen: NDArray[np.uint8]  # zero between searches
    hits: Ints

    @classmethod
    def of(cls, capacity: int) -> Marks:
        hits = np.empty(capacity + FIRST_BLOCK, np.int64)
        return cls(np.zeros(capacity, np.int32), np.zeros(capacity, np.uint8), hits)


@kernel
def absorb(block: Any, counts: Any, needs: Any, hits: Any, size: int) -> int:
    """Count the rows of a block; those that are complete become hits."""
    for t in range(len(block)):
        row = block[t]
        counts[row] += 1
        if counts[row] == needs[row]:
            hits[size] = row
            size += 1
    return size


@kernel
def within(hits: Any, scores: Any, ids: Any, score: float, id: int) -> int:
    """How many hits are not worse than (score, id)."""
    count = 0
    for t in range(len(hits)):
        s = scores[hits[t]]
        count += s > score or (s == score and ids[hits[t]] <= id)
    return count


@kernel
def threshold_rounds(
    rows: Any, largest: bool, buffers: Any, lengths: Any, begin: int, stop: int, box: Any, state: Any
) -> Any:
    """Rounds begin … stop−1 of the Threshold Algorithm over the columns of `buffers`.

    rows[r] holds (lo, hi, weight) per attribute, an empty interval where not mentioned. Returns the rounds done and
    whether the threshold has been passed.
    """
    attributes, seen, ids, best_scores, best_ids, counts = state  # counts: candidates kept, candidates offered
    low, high = box
    for p in range(begin, stop):
        threshold = 0.0
        for s in range(len(lengths)):
            if p >= lengths[s]:
                continue  # exhausted: unseen subscriptions hold nothing here
            row = buffers[s, p]
            weight = rows[row, attributes[s], 2]
            threshold = max(threshold, weight) if largest else threshold + weight
            if seen[row]:
                continue
            seen[row] = 1
            score = 0.0
            for j in range(len(low)):
                if rows[row, j, 0] <= high[j] and low[j] <= rows[row, j, 1]:
                    w = rows[row, j, 2]
                    score = max(score, w) if largest else score + w
            counts[0] = offer(best_scores, best_ids, counts[0], score, ids[row])
            counts[1] += 1
        if counts[0] == len(best_ids) and best_scores[0] > threshold:
            return p + 1, True
    return stop, False
