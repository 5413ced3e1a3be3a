"""Deletion from BE-Tree and BE*-Tree (ICDE 2012, §IV-B and IV-C): boxes shrink on the way up, an underflowing leaf
bucket is merged into its parent only if the parent has no p-directory, empty p-nodes are deleted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.sparse.be.arena import ALPHA, BLOCK, CAPACITY, ROW, Tree, free_bucket, free_pnode, put_row
from topk.sparse.be.bounds import refresh, widen
from topk.sparse.rows import Rows


@kernel
def delete_row(t: Tree, rows: Rows, row: int) -> None:
    """Take a row out, shrink every box on the way up, merge what underflows, drop empty p-nodes."""
    b = t.home[row]
    begin, size = t.node[b].start, t.node[b].count
    at = begin
    while t.entries[at, ROW] != row:
        at += 1
    t.entries[at, ROW], t.entries[at, BLOCK] = t.entries[begin + size - 1, ROW], t.entries[begin + size - 1, BLOCK]
    t.needs[at] = t.needs[begin + size - 1]
    t.node[b].count = size - 1
    t.home[row] = -1
    widen(t, rows, b, row, np.int64(-1))
    while True:
        refresh(t, rows, b)
        up = np.int64(t.bucket[b].up)
        if up >= 0:
            merge(t, rows, up)
            b = up
            continue
        p = t.bucket[b].pnode
        if p < 0:
            return
        owner = t.pnode[p].owner
        if t.pnode[p].count == 0:
            remove_buckets(t, p)
            free_pnode(t, p)
        b = owner


@kernel(inner=True)
def merge(t: Any, rows: Any, b: int) -> None:
    """Merge rule: leaf descendants are merged into b if b has no p-directory, one underflows and all rows fit."""
    left, right = t.node[b].left, t.node[b].right
    if t.node[b].first >= 0:
        return
    for child in (left, right):
        if t.bucket[child].split or t.node[child].first >= 0:
            return
    capacity = np.int64(t.knobs[CAPACITY])
    total = t.node[b].count + t.node[left].count + t.node[right].count
    least = min(t.node[left].count, t.node[right].count)
    if total > capacity or least > t.knobs[ALPHA] * capacity:
        return
    for child in (left, right):
        begin = t.node[child].start
        for i in range(begin, begin + t.node[child].count):
            put_row(t, rows, b, np.int64(t.entries[i, ROW]))
        free_bucket(t, np.int64(child))
    t.node[b].left = t.node[b].right = -1
    t.bucket[b].split = 0


@kernel(inner=True)
def remove_buckets(t: Any, p: int) -> None:
    """Free all (empty) buckets of a c-directory."""
    b = np.int64(t.pnode[p].root)
    while b >= 0:
        if t.node[b].left >= 0:
            b = t.node[b].left
        elif t.node[b].right >= 0:
            b = t.node[b].right
        else:
            up = t.bucket[b].up
            if up >= 0:
                if t.node[up].left == b:
                    t.node[up].left = -1
                else:
                    t.node[up].right = -1
            free_bucket(t, b)
            b = up
