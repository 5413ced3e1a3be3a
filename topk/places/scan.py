"""SCAN: ψ of every subscription. The yardstick of the paper; O(n) per event."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.answers import Found
from topk.kernels.heaps import offer
from topk.places.contract import Ask, Placed, PlacedIndex, Scratch, Workspace, arrays_of, similarity
from topk.sparse.rows import clear, spread
from topk.sparse.upkeep import COMPARISONS, ENTRIES, QUEUED


@kernel
def scan_all(placed: Placed, used: int, columns: Any, ask: Ask, k: int, space: Workspace) -> Any:
    event, counts = space.event, space.counts
    spread(event, *columns)
    ids, scores, size = np.empty(k, np.int64), np.empty(k), np.int64(0)
    numbers = placed.rows.ids
    odd, attribute, lo, hi, weight, start, length, place = arrays_of(placed)
    for row in range(used):
        if length[row] >= 0:
            counts[COMPARISONS] += length[row]
            score = similarity(placed, odd, attribute, lo, hi, weight, start, length, place, row, event, ask)
            if score >= 0.0 and (size < k or score >= scores[0]):
                size = offer(scores, ids, size, score, numbers[row])
                counts[QUEUED] += 1
    clear(event, columns[0])
    return ids[:size], scores[:size]


class PlacedScan(PlacedIndex):
    """Every subscription, every event.

    >>> import topk
    >>> near, far = ([(0, "<", 5, 1.0)], (1.0, 1.0), 0.5), ([(0, "<", 9, 1.0)], (1.0, 6.0), 0.5)
    >>> index = topk.create("scan", topk.places.from_located([near, far], max_distance=10.0))
    >>> index.top({0: 2}, place=(1.0, 1.0), k=2)
    [(0, 1.0), (1, 0.75)]
    """

    name = "scan"
    calibrated = True

    def search(self, columns: Any, ask: Ask, k: int, scratch: Scratch) -> Found:
        scratch.counts[ENTRIES] += self.store.used
        return scan_all(self.placed, self.store.used, columns, ask, k, scratch.workspace)
