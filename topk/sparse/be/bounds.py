"""Boxes and weight bounds of BE-Tree and BE*-Tree (ICDE 2012, Algorithm 3 and §VI): raised by an insertion on the way
from the l-node to the root, recomputed where something was removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.rows import fill, floats, ints
from topk.sparse.be.arena import ALL_HI, ALL_LO, LEVELS, OWN_HI, OWN_LO, RIGID, ROW, show_active, slot_of
from topk.sparse.rows import usual_score
from topk.sparse.scores import as_bound


@kernel(inner=True)
def position(rows: Any, row: int, attribute: int) -> int:
    """The row's predicate on an attribute, −1 if it has none."""
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        if rows.attribute[p] == attribute:
            return p
    return -1


@kernel(inner=True)
def path(t: Any, b: int, attributes: Any) -> int:
    """The attributes of the p-nodes above a bucket, outermost first; returns how many."""
    level = t.bucket[b].level
    for k in range(level - 1, -1, -1):
        p = t.bucket[b].pnode
        attributes[k] = t.pnode[p].attr
        b = t.pnode[p].owner
    return level


@kernel(inner=True)
def widen(t: Any, rows: Any, b: int, row: int, sign: int) -> None:
    """Count the row (sign ±1) on the way from its bucket to the root; with +1 also widen boxes and weight bounds."""
    attributes = ints(LEVELS)
    level = path(t, b, attributes)
    lo, hi = floats(LEVELS), floats(LEVELS)
    for k in range(level):
        p = position(rows, row, attributes[k])
        lo[k], hi[k] = rows.lo[p], rows.hi[p]
    total = np.float32(-np.inf)
    if sign > 0:
        total = raise_top(t, rows, row, t.bucket_top[b])
        t.node[b].leaf_score = max(t.node[b].leaf_score, total)
    gain = sign * level  # predicates that the row has in common with the others of its l-node: those of the path
    own = True  # whether the row belongs to the bucket itself rather than to a descendant
    while True:
        if sign > 0 and not t.knobs[RIGID]:
            for k in range(level):
                if own:
                    t.box[b, OWN_LO, k] = min(t.box[b, OWN_LO, k], lo[k])
                    t.box[b, OWN_HI, k] = max(t.box[b, OWN_HI, k], hi[k])
                t.box[b, ALL_LO, k] = min(t.box[b, ALL_LO, k], lo[k])
                t.box[b, ALL_HI, k] = max(t.box[b, ALL_HI, k], hi[k])
            if level:
                show_active(t, b, level - 1)
        t.node[b].all_score = max(t.node[b].all_score, total)
        own = False
        if t.bucket[b].up >= 0:
            b = t.bucket[b].up
            continue
        p = t.bucket[b].pnode
        if p < 0:
            return
        t.pnode[p].count += sign
        t.pnode[p].rank += np.float32(gain)
        if sign > 0:
            t.pnode[p].score = max(t.pnode[p].score, raise_top(t, rows, row, t.pnode_top[p]))
        b, own, level = t.pnode[p].owner, True, level - 1


@kernel(inner=True)
def raise_top(t: Any, rows: Any, row: int, top: Any) -> Any:
    """Raise the upper bounds of a node to a row's weights; returns the row's usual score, rounded up."""
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        slot = slot_of(top, rows.attribute[p])
        top[slot] = max(top[slot], as_bound(rows.weight[p]))
    return as_bound(usual_score(rows, row, t.reference, t.scoring))


@kernel(inner=True)
def refresh(t: Any, rows: Any, b: int) -> None:
    """Recompute a bucket's boxes (from its rows, its p-nodes' buckets and its descendants) and weight bounds."""
    refresh_scores(t, rows, b)
    begin, size = t.node[b].start, t.node[b].count
    if t.knobs[RIGID]:
        return
    attributes = ints(LEVELS)
    level = path(t, b, attributes)
    for k in range(level):
        low, high = np.inf, -np.inf
        for i in range(begin, begin + size):
            p = position(rows, np.int64(t.entries[i, ROW]), attributes[k])
            low, high = min(low, rows.lo[p]), max(high, rows.hi[p])
        q = t.node[b].first
        while q >= 0:
            low = min(low, t.box[t.pnode[q].root, ALL_LO, k])
            high = max(high, t.box[t.pnode[q].root, ALL_HI, k])
            q = t.pnode[q].next
        t.box[b, OWN_LO, k], t.box[b, OWN_HI, k] = low, high
        for child in (t.node[b].left, t.node[b].right):
            if child >= 0:
                low = min(low, t.box[child, ALL_LO, k])
                high = max(high, t.box[child, ALL_HI, k])
        t.box[b, ALL_LO, k], t.box[b, ALL_HI, k] = low, high
    if level:
        show_active(t, b, level - 1)


@kernel(inner=True)
def refresh_scores(t: Any, rows: Any, b: int) -> None:
    """Recompute a bucket's weight bounds and its bounds of the usual score."""
    fill(t.bucket_top[b], np.float32(0.0))
    leaf = np.float32(-np.inf)
    begin = t.node[b].start
    for i in range(begin, begin + t.node[b].count):
        leaf = max(leaf, raise_top(t, rows, np.int64(t.entries[i, ROW]), t.bucket_top[b]))
    t.node[b].leaf_score = leaf
    q = t.node[b].first
    while q >= 0:
        leaf = max(leaf, t.node[t.pnode[q].root].all_score)
        q = t.pnode[q].next
    for child in (t.node[b].left, t.node[b].right):
        if child >= 0:
            leaf = max(leaf, t.node[child].all_score)
    t.node[b].all_score = leaf
