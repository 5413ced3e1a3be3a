"""The block scan: compare the event with every subscription, branch-free, 256 rows at a time.

No structure, so nothing to maintain: adding is an append and removing moves the last row into the gap. Cost
per event is O(n·d) whatever k is, but at about a nanosecond per row and attribute; below a few thousand
rows nothing beats it, and where almost everything matches nothing does at any size. A row's tests are
combined with & on bytes, never with a branch, so the compiler vectorises each attribute's pass over a
block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.answers import Found
from topk.catalogue import Catalogue
from topk.checks import Floats
from topk.contract import TopKIndex
from topk.kernels.heaps import best_first, offer
from topk.store import Store

BLOCK = 256  # rows per pass: the mask and the partial scores of a block stay in the first-level cache


@kernel
def block_exact(columns: Any, low: Any, high: Any, start: int, stop: int, mask: Any) -> None:
    """mask[i] = 1 where row start+i matches exactly. NaN, a missing value, matches only where not mentioned."""
    for i in range(stop - start):
        mask[i] = 1
    for j in range(len(low)):
        v, w = low[j], high[j]
        if np.isnan(v):
            named = columns.mentioned[j, start:stop]
            for i in range(stop - start):
                mask[i] &= np.uint8(1) - named[i]
        else:
            lo = columns.lo[j, start:stop]
            hi = columns.hi[j, start:stop]
            for i in range(stop - start):
                mask[i] &= np.uint8(lo[i] <= w) & np.uint8(v <= hi[i])


@kernel
def block_relaxed(columns: Any, low: Any, high: Any, start: int, stop: int, mask: Any, total: Any) -> None:
    """mask[i] = 1 where a predicate of row start+i holds; total[i] = the weights of those that do."""
    for i in range(stop - start):
        mask[i] = 0
        total[i] = 0.0
    for j in range(len(low)):
        v, w = low[j], high[j]
        if np.isnan(v):
            continue
        lo = columns.lo[j, start:stop]
        hi = columns.hi[j, start:stop]
        named = columns.mentioned[j, start:stop]
        weight = columns.weights[j, start:stop]
        for i in range(stop - start):
            held = np.uint8(lo[i] <= w) & np.uint8(v <= hi[i]) & named[i]
            mask[i] |= held
            total[i] += weight[i] if held else 0.0


@kernel
def scan_top(columns: Any, used: int, low: Any, high: Any, k: int, relaxed: bool) -> Any:
    """The k best, unsorted, as (ids, scores).

    An event is a box from low to high; a point event has them equal. A predicate holds where it meets the box.
    """
    ids, scores, size = np.empty(k, np.int64), np.empty(k, np.float64), np.int64(0)
    mask, total = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.float64)
    for start in range(0, used, BLOCK):
        stop = min(start + BLOCK, used)
        if relaxed:
            block_relaxed(columns, low, high, start, stop, mask, total)
        else:
            block_exact(columns, low, high, start, stop, mask)
        hits = 0
        for i in range(stop - start):
            hits += mask[i]
        if hits == 0:
            continue
        for i in range(stop - start):
            if mask[i]:
                score = total[i] if relaxed else columns.scores[start + i]
                if size < k or score >= scores[0]:
                    size = offer(scores, ids, size, score, columns.ids[start + i])
    return ids[:size], scores[:size]


class Scan(TopKIndex):
    """Every row, every event.

    >>> import topk
    >>> index = topk.create("scan", topk.Catalogue.from_boxes([[0, 0], [2, 2]], [[5, 5], [9, 9]], scores=[1.0, 4.0]))
    >>> index.top([3, 4], k=2)
    [(1, 4.0), (0, 1.0)]
    """

    name = "scan"
    calibrated = True
    dynamic = True

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        super().__init__(catalogue, semantics)
        self.store = Store(catalogue)

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, id: object) -> bool:
        return id in self.store.row_of

    def search(self, low: Floats, high: Floats, k: int) -> Found:
        self.stats.entries += self.store.used
        return best_first(*scan_top(self.store.columns, self.store.used, low, high, k, self.semantics == "relaxed"))

    def insert(self, one: Catalogue) -> None:
        self.store.add(one)

    def delete(self, id: int) -> None:
        self.store.remove(id)

    @property
    def catalogue(self) -> Catalogue:
        return self.store.catalogue()

    def subscription(self, id: int) -> Catalogue:
        return self.store.subscription(id)

    @property
    def nbytes(self) -> int:
        return self.store.nbytes

    def check(self) -> None:
        self.store.check()
