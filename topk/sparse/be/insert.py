"""Insertion into BE-Tree and BE*-Tree (ICDE 2012, Algorithms 1 and 2): an expression goes to the smallest bucket that
takes it, along the p-nodes of highest rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.hashing import lookup
from topk.kernels.rows import copy
from topk.sparse.be.arena import (
    ALL_HI,
    ALL_LO,
    BETA,
    BUCKETS,
    LARGEST,
    OWN_HI,
    OWN_LO,
    RECURSIVE,
    WORK,
    Tree,
    has_room,
    new_bucket,
    put_row,
    show_active,
)
from topk.sparse.be.bounds import position, widen
from topk.sparse.be.cluster import settle
from topk.sparse.rows import Rows


@kernel
def insert_rows(t: Tree, rows: Rows, which: Any, begin: int, rigid: Any, roughly: Any, histogram: Any) -> Any:
    """Cut what overflows, then insert rows which[begin:]. Returns how far it came before the arrays must grow, and what
    for: the size of a bucket to be cut, or −1 for further rows. `rigid`, `roughly`, `histogram`: see `cluster`.
    """
    if t.meta[BUCKETS] == 0:
        new_bucket(t, np.int64(-1), np.int64(-1), np.int64(0))  # the root
    needed = settle(t, rows, rigid, roughly, histogram)
    for i in range(begin, len(which)):
        if needed >= 0:
            return i, needed
        row = which[i]
        if not has_room(t, np.int64(4), np.int64(1), 4 * t.meta[LARGEST] + 64):
            return i, -1
        b = choose_bucket(t, rows, row, rigid)
        put_row(t, rows, b, row)
        widen(t, rows, b, row, np.int64(1))
        if t.node[b].count > t.bucket[b].cap:
            t.work[t.meta[WORK]] = b
            t.meta[WORK] += 1
            needed = settle(t, rows, rigid, roughly, histogram)
    return len(which), needed


@kernel(inner=True)
def choose_bucket(t: Any, rows: Any, row: int, rigid: Any) -> Any:
    """Algorithm 1: follow the p-nodes of highest rank among the row's attributes; the bucket to insert into."""
    b = np.int64(0)
    while True:
        best, best_rank = np.int64(-1), -np.inf
        if t.node[b].first >= 0:
            begin = rows.start[row]
            for i in range(begin, begin + rows.length[row]):
                p = lookup(t.keys, t.values, b, rows.attribute[i])
                if p >= 0:
                    rank = rank_of(t, p)
                    if rank > best_rank:
                        best, best_rank = p, rank
        if best < 0:
            return b
        at = position(rows, row, np.int64(t.pnode[best].attr))
        b = descend(t, best, rows.lo[at], rows.hi[at], rigid)


@kernel(inline="always")
def rank_of(t: Any, p: int) -> Any:
    """gain − loss: expressions filed there, less the predicate evaluations an event wastes there (§V-B). Recursive:
    the rank of everything below it, when the last window closed.
    """
    seen = t.pnode[p].seen
    wasted = t.pnode[p].loss / seen if seen > 0.0 else 0.0
    return np.float64(t.pnode[p].rank) if t.knobs[RECURSIVE] else t.pnode[p].count - wasted


@kernel(inner=True)
def descend(t: Any, p: int, lo: float, hi: float, rigid: Any) -> int:
    """Algorithm 2 (InsertCDir): the bucket for [lo, hi] in the c-directory of p."""
    b = t.pnode[p].root
    k = t.bucket[b].level - 1
    while True:
        left, right = t.node[b].left, t.node[b].right
        if t.bucket[b].split == 0 and t.node[b].first < 0:
            return b
        if rigid is not None:
            if t.bucket[b].split == 0:
                return b
            if t.box[left, OWN_LO, k] <= lo and hi <= t.box[left, OWN_HI, k]:
                b = left
            elif t.box[right, OWN_LO, k] <= lo and hi <= t.box[right, OWN_HI, k]:
                b = right
            else:
                return b
            continue
        low, high = t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]
        if low <= high and max(high, hi) - min(low, lo) > t.knobs[BETA] * (high - low):
            return expand_upwards(t, b)
        if t.bucket[b].split == 0:
            return b
        meets_left = lo <= t.box[left, ALL_HI, k] and t.box[left, ALL_LO, k] <= hi
        meets_right = lo <= t.box[right, ALL_HI, k] and t.box[right, ALL_LO, k] <= hi
        if meets_left and meets_right:
            return b
        if not (meets_left or meets_right):
            # Between or beside them: where the range grows least. It cannot then reach the other.
            grow_left = max(t.box[left, ALL_HI, k], hi) - min(t.box[left, ALL_LO, k], lo)
            grow_right = max(t.box[right, ALL_HI, k], hi) - min(t.box[right, ALL_LO, k], lo)
            meets_left = goes_left(t, left, right, k, lo, hi, grow_left < grow_right)
        b = left if meets_left else right


@kernel(inner=True)
def goes_left(t: Any, left: int, right: int, k: int, lo: float, hi: float, shorter: bool) -> bool:
    """Where a range that meets neither goes: to the side it lies beyond, so that the sides keep repelling each other.

    Only between the two is there a choice; the `shorter` result wins. An empty side takes it first.
    """
    if t.box[left, ALL_LO, k] > t.box[left, ALL_HI, k]:
        return True
    if t.box[right, ALL_LO, k] > t.box[right, ALL_HI, k]:
        return False
    left_first = t.box[left, ALL_LO, k] < t.box[right, ALL_LO, k]
    first, second = (left, right) if left_first else (right, left)
    if hi < t.box[first, ALL_LO, k]:
        return left_first
    if lo > t.box[second, ALL_HI, k]:
        return not left_first
    return shorter


@kernel(inner=True)
def expand_upwards(t: Any, b: int) -> int:
    """Bottom-up expansion: a new parent for b that hosts what is β times larger; its other descendant is empty."""
    bucket = t.bucket[b]
    up, p, level = np.int64(bucket.up), np.int64(bucket.pnode), np.int64(bucket.level)
    parent = new_bucket(t, up, p, level)
    other = new_bucket(t, parent, p, level)
    if up < 0:
        t.pnode[p].root = parent
    elif t.node[up].left == b:
        t.node[up].left = parent
    else:
        t.node[up].right = parent
    t.node[parent].left, t.node[parent].right, t.bucket[parent].split = b, other, 1
    t.bucket[b].up = parent
    copy(t.box[b, ALL_LO], t.box[parent, ALL_LO])
    copy(t.box[b, ALL_HI], t.box[parent, ALL_HI])
    show_active(t, parent, level - 1)
    t.node[parent].all_score = t.node[b].all_score
    return parent
