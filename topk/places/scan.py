"""SCAN: ψ of every subscription. The yardstick of the paper; O(n) per event."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.contract import Found
from topk.kernels.heaps import offer
from topk.places.contract import ALL, NOTHING, Placed, PlacedIndex, Scratch, nearness, similarity
from topk.sparse.rows import clear, spread


@kernel
def scan_all(
    placed: Placed, used: int, columns: Any, event: Any, x: float, y: float, far: float, k: int, need: int
) -> Any:
    spread(event, *columns)
    ids, scores, size = np.empty(k, np.int64), np.empty(k), 0
    # Arrays by name: taking them out of the tuple in the loop would count references for every row.
    rows, place = placed.rows, placed.place
    attribute, lo, hi, weight, start, length = rows.attribute, rows.lo, rows.hi, rows.weight, rows.start, rows.length
    odd, numbers = rows.odd, rows.ids
    low, high = event[0], event[1]
    for row in range(used):
        if length[row] < 0:
            continue
        if odd[row] >= 0:
            score = similarity(placed, row, event, x, y, far, need)
        else:
            text, held = 0.0, 0
            for p in range(start[row], start[row] + length[row]):
                a = attribute[p]
                if lo[p] <= high[a] and low[a] <= hi[p]:
                    text += weight[p]
                    held += 1
            if need != NOTHING and not (held == length[row] if need == ALL else held > 0):
                continue
            alpha = place[row, 2]
            near = nearness(place[row, 0] - x, place[row, 1] - y, far)
            score = (1.0 - alpha) * text + alpha * near
        if score >= 0.0 and (size < k or score >= scores[0]):
            size = offer(scores, ids, size, score, numbers[row])
    clear(event, columns[0])
    return ids[:size], scores[:size]


class PlacedScan(PlacedIndex):
    """Every subscription, every event."""

    name = "scan"

    def _search(self, columns: Any, x: float, y: float, k: int, scratch: Scratch) -> Found:
        scratch.counts[0] += self._store.used
        ids, scores = scan_all(
            self.placed, self._store.used, columns, scratch.event, x, y, self.max_distance, k, self._need
        )
        return ids, scores

    @property
    def overhead(self) -> int:
        return 0

    def check(self) -> None:
        self._store.check()
