"""SCAN: ψ of every subscription. The yardstick of the paper; O(n) per event."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.base import Found
from topk.places.base import Placed, PlacedIndex, similarity
from topk.select import push
from topk.sparse.store import clear, spread


@njit(cache=True, nogil=True)
def scan_all(placed: Placed, used: int, columns: Any, event: Any, x: float, y: float, far: float, k: int) -> Any:
    spread(event, *columns)
    ids, scores, size = np.empty(k, np.int64), np.empty(k), 0
    for row in range(used):
        if placed.rows.length[row] >= 0:
            score = similarity(placed, row, event, x, y, far)
            if size < k or score >= scores[0]:
                size = push(scores, ids, size, score, placed.rows.ids[row])
    clear(event, columns[0])
    return ids[:size], scores[:size]


class PlacedScan(PlacedIndex):
    """Every subscription, every event."""

    name = "scan"

    def _search(self, columns: Any, x: float, y: float, k: int) -> Found:
        self._counts[0] += self._store.used
        ids, scores = scan_all(self.placed, self._store.used, columns, self._event, x, y, self.max_distance, k)
        return ids, scores

    @property
    def overhead(self) -> int:
        return 0

    def check(self) -> None:
        self._store.check()
