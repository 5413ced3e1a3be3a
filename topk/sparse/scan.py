"""SCAN: compare the event with every expression, leaving each at its first predicate that fails.

The yardstick of both papers. Rows lie in one CSR arena, so a scan reads the attributes as one stream; most rows
fail at their first attribute. O(n) per event whatever k is; nothing to maintain.
"""

from __future__ import annotations

from typing import Any

from coverlay import kernel
from topk.kernels.heaps import in_order, offer
from topk.sparse.contract import Scratch, SparseIndex, Workspace, columns_of
from topk.sparse.event import Event
from topk.sparse.rows import Rows, clear, exactly, row_score, spread
from topk.sparse.scores import Scoring
from topk.sparse.upkeep import COMPARISONS, ENTRIES, QUEUED


@kernel
def scan_rows(rows: Rows, used: int, columns: Any, extra: Any, space: Workspace, k: int, score: Scoring) -> int:
    event, scores, found, size = space.event, space.scores[:k], space.ids[:k], 0
    spread(event, *columns)
    attribute, lo, hi, start, length = rows.attribute, rows.lo, rows.hi, rows.start, rows.length
    low, high, compared = event[0], event[1], 0
    for row in range(used):
        count = length[row]
        matched = count >= 0
        begin = start[row]
        for p in range(begin, begin + count):
            a = attribute[p]
            compared += 1
            if not (lo[p] <= high[a] and low[a] <= hi[p]):
                matched = False
                break
        if matched and exactly(rows, row, event, extra):
            size = offer(scores, found, size, row_score(rows, row, event, score), rows.ids[row])
            space.counts[QUEUED] += 1
    clear(event, columns[0])
    space.counts[COMPARISONS] += compared
    return in_order(scores, found, size)


class SparseScan(SparseIndex):
    """Every expression, every event."""

    name = "scan"

    def _search(self, event: Event, k: int, scratch: Scratch) -> int:
        store = self._store
        scratch.counts[ENTRIES] += store.used
        columns, extra = columns_of(event), self._extra(event)
        return scan_rows(store.rows, store.used, columns, extra, scratch.workspace, k, self._scoring)
