"""SCAN: compare the event with every expression, leaving each at its first predicate that fails.

Relaxed: an expression matches if one predicate holds, those that hold make its score, and all are compared.

The yardstick of both papers. Rows lie in one CSR arena, so a scan reads the attributes as one stream; most rows
fail at their first attribute. O(n) per event whatever k is; nothing to maintain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from coverlay import kernel, unknown_name
from topk.kernels.heaps import in_order, offer
from topk.predicates import SparseCatalogue
from topk.sparse.contract import Scratch, SparseIndex, Workspace, columns_of
from topk.sparse.event import Event
from topk.sparse.rows import Rows, clear, exactly, holds_alone, row_score, spread
from topk.sparse.scores import Score, Scoring, combine
from topk.sparse.upkeep import COMPARISONS, ENTRIES, QUEUED

SEMANTICS_HELP = "exact: all predicates hold; relaxed: one does, and those that hold make the score"


@kernel
def scan_rows(rows: Rows, used: int, columns: Any, extra: Any, space: Workspace, k: int, score: Scoring) -> int:
    event, scores, found, size = space.event, space.scores[:k], space.ids[:k], np.int64(0)
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


@kernel
def scan_relaxed(rows: Rows, used: int, columns: Any, extra: Any, space: Workspace, k: int, score: Scoring) -> int:
    event, scores, found, size = space.event, space.scores[:k], space.ids[:k], np.int64(0)
    spread(event, *columns)
    for row in range(used):
        total, held, begin = score.start, 0, rows.start[row]
        for p in range(begin, begin + rows.length[row]):
            if holds_alone(rows, row, p, event, extra):
                total = combine(score, total, rows.weight[p], event[2, rows.attribute[p]])
                held += 1
        space.counts[COMPARISONS] += max(rows.length[row], 0)
        if held:
            size = offer(scores, found, size, total, rows.ids[row])
            space.counts[QUEUED] += 1
    clear(event, columns[0])
    return in_order(scores, found, size)


SCANS = {"exact": scan_rows, "relaxed": scan_relaxed}


class SparseScan(SparseIndex):
    """Every expression, every event.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("scan", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "scan"
    calibrated = True
    options: ClassVar[Mapping[str, str]] = {**SparseIndex.options, "semantics": SEMANTICS_HELP}

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum", semantics: str = "exact") -> None:
        super().__init__(catalogue, score)
        if semantics not in SCANS:
            raise unknown_name("semantics", semantics, SCANS)
        self._scan = SCANS[semantics]

    def search(self, event: Event, k: int, scratch: Scratch) -> int:
        store = self.store
        scratch.counts[ENTRIES] += store.used
        columns, extra = columns_of(event), self._extra(event)
        return int(self._scan(store.rows, store.used, columns, extra, scratch.workspace, k, self._scoring))
