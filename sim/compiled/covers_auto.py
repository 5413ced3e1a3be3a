"""`auto` among the covering indexes (covers.py): the same reviews at the same moments as `covering/auto.py`."""

from __future__ import annotations

from typing import Any

from covering.auto import ATTRIBUTES, FEW, MANY, REVIEW, STAY
from sim.compiled.covers import take_over
from sim.compiled.records import KDTREE, PACKED
from sim.compiled.state import inlined, inner


@inlined
def begin(w: Any, s: int, checks: int, hits: int) -> None:
    """An index that is about to get its first entry starts to count from here."""
    index = w.indexes[s]
    index.reviewed_checks, index.reviewed_hits = checks, hits
    index.next_review = checks + REVIEW


@inner
def review(w: Any, s: int, checks: int, hits: int) -> None:
    """Decide again which method works, from what happened since the last time: AutoIndex._review."""
    index = w.indexes[s]
    recent = checks - index.reviewed_checks
    share = (hits - index.reviewed_hits) / max(1, recent)
    calm = index.updates < recent
    index.updates = 0
    begin(w, s, checks, hits)
    method, after = index.method, index.method
    if method == KDTREE and 2 * index.fallbacks > recent:
        index.stay = STAY
        after = PACKED
    elif index.stay:
        index.stay -= 1
        if not index.stay:
            after = KDTREE
    else:
        index.fallbacks = 0
        if w.domain.shape[0] >= ATTRIBUTES:
            if method == KDTREE and share >= MANY and calm:
                after = PACKED
            elif method == PACKED and (share < FEW or not calm):
                after = KDTREE
    if after != method:
        take_over(w, s, after)
