"""Top-k matching on BE-Tree and BE*-Tree (ICDE 2012, §VI, Algorithms 6 and 7).

p-nodes wait in one max-heap by the upper bound of their weights; the best is searched next. Two prunings: an l-node
whose bound is below the k-th score is not scanned, and when the best p-node is, the whole search ends. Ours adds a
third in between: a bucket whose bound of the sum is below is left with all its descendants. Without
`prune` (BE-Tree has no top-k of its own) everything relevant is visited and the k best are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.select import push
from topk.sparse.be_arena import (
    ALL_HI,
    ALL_LO,
    ALL_SUM,
    ATTR,
    FIRST,
    LEAF_SUM,
    LEFT,
    NEXT,
    OWN_HI,
    OWN_LO,
    PCOUNT,
    RIGHT,
    RIGID,
    ROOT,
    SIZE,
    SLOTS,
    START,
    Tree,
    find_pnode,
)  # fmt: skip
from topk.sparse.store import SUM, Rows, clear, exceptions_hold, row_score, spread


@njit(cache=True, nogil=True)
def upper_score(top: Any, columns: Any, ratio: float, mode: int) -> float:
    """uscore: the event's weights times the largest weights of the attributes; or the bound of the sum, if less."""
    total = 0.0
    for i in range(len(columns[0])):
        product = columns[3][i] * top[columns[0][i] % SLOTS]
        total = total + product if mode == SUM else max(total, product)
    return min(total, ratio * top[SLOTS]) * (1.0 + 1e-12)  # sums in another order


@njit(cache=True, nogil=True)
def heap_push(keys: Any, items: Any, size: int, key: float, item: int) -> None:
    i = size
    while i > 0 and keys[(i - 1) >> 1] < key:
        keys[i], items[i] = keys[(i - 1) >> 1], items[(i - 1) >> 1]
        i = (i - 1) >> 1
    keys[i], items[i] = key, item


@njit(cache=True, nogil=True)
def heap_pop(keys: Any, items: Any, size: int) -> None:
    """Remove the top of a heap of `size`."""
    key, item = keys[size - 1], items[size - 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[i], items[i] = keys[child], items[child]
        i = child
    keys[i], items[i] = key, item


@njit(cache=True, nogil=True)
def scan_leaf(
    t: Tree, rows: Rows, b: int, event: Any, k: int, mode: int, best: Any, ids: Any, size: int, counts: Any
) -> Any:
    """Compare the rows of an l-node; returns the heap size and the predicates evaluated in vain."""
    begin = t.bucket[b, START]
    wasted = 0
    scores, found = best[:k], ids[:k]
    for i in range(begin, begin + t.bucket[b, SIZE]):
        row = t.entries[i]
        first = rows.start[row]
        matched = True
        for p in range(first, first + rows.length[row]):
            a = rows.attribute[p]
            if not (rows.lo[p] <= event[1, a] and event[0, a] <= rows.hi[p]):
                matched = False
                wasted += p - first + 1
                break
        if matched and (rows.odd[row] < 0 or exceptions_hold(rows, row, event)):
            size = push(scores, found, size, row_score(rows, row, event, mode), rows.ids[row])
    counts[0] += t.bucket[b, SIZE]
    return size, wasted


@njit(cache=True, nogil=True)
def match(
    t: Tree, rows: Rows, columns: Any, event: Any, k: int, mode: int, prune: bool, learn: bool, best: Any, ids: Any,
    counts: Any,
) -> int:  # fmt: skip
    spread(event, *columns)
    keys, items, waiting = np.empty(64), np.empty(64, np.int64), 0
    stack, depth = np.empty(256, np.int64), 0
    size, nodes = 0, 0
    rigid = t.knobs[RIGID] != 0.0
    low_of, high_of = (OWN_LO, OWN_HI) if rigid else (ALL_LO, ALL_HI)
    ratio = 0.0
    for i in range(len(columns[0])):
        ratio = max(ratio, columns[3][i] / t.reference[columns[0][i]] * (1.0 + 1e-12))
    stack[0], depth = 0, 1
    p, low, high = -1, 0.0, 0.0
    while True:
        while depth:
            depth -= 1
            b = stack[depth]
            nodes += 1
            if p >= 0:
                if not (t.active[b, low_of] <= high and low <= t.active[b, high_of]):
                    continue
                if prune and size == k and ratio * t.active[b, ALL_SUM] < best[0]:
                    continue
                if depth + 2 > len(stack):
                    stack = np.concatenate((stack, np.empty(len(stack), np.int64)))
                if t.bucket[b, LEFT] >= 0:
                    stack[depth], stack[depth + 1] = t.bucket[b, LEFT], t.bucket[b, RIGHT]
                    depth += 2
                if not (t.active[b, OWN_LO] <= high and low <= t.active[b, OWN_HI]):
                    continue
            if t.bucket[b, SIZE] and not (
                prune
                and size == k
                and (ratio * t.active[b, LEAF_SUM] < best[0] or upper_score(t.bucket_top[b], columns, ratio, mode) < best[0])
            ):
                size, wasted = scan_leaf(t, rows, b, event, k, mode, best, ids, size, counts)
                if learn and p >= 0:
                    t.feedback[p, 0] += wasted
            if t.bucket[b, FIRST] < 0:
                continue
            if waiting + max(len(columns[0]), t.bucket[b, PCOUNT]) > len(keys):
                extra = len(keys) + t.bucket[b, PCOUNT] + len(columns[0])
                keys = np.concatenate((keys, np.empty(extra)))
                items = np.concatenate((items, np.empty(extra, np.int64)))
            waiting = offer(t, b, columns, event, ratio, mode, prune, size == k, best[0], keys, items, waiting)
        if waiting == 0:
            break
        p, bound = items[0], keys[0]
        if prune and size == k and bound < best[0]:
            break
        heap_pop(keys, items, waiting)
        waiting -= 1
        if learn:
            t.feedback[p, 1] += 1.0
        low, high = event[0, t.pnode[p, ATTR]], event[1, t.pnode[p, ATTR]]
        stack[0], depth = t.pnode[p, ROOT], 1
    clear(event, columns[0])
    counts[1] += nodes
    return size


@njit(cache=True, nogil=True)
def offer(
    t: Tree, b: int, columns: Any, event: Any, ratio: float, mode: int, prune: bool, full: bool, least: float, keys: Any, items: Any,
    waiting: int,
) -> int:  # fmt: skip
    """Put the p-nodes of a bucket that the event has attributes for on the heap."""
    attributes = columns[0]
    if t.bucket[b, PCOUNT] <= len(attributes):  # a short directory is walked, a long one is looked up
        p = t.bucket[b, FIRST]
        while p >= 0:
            if not np.isnan(event[0, t.pnode[p, ATTR]]):
                bound = upper_score(t.pnode_top[p], columns, ratio, mode) if prune else 0.0
                if not (prune and full and bound < least):
                    heap_push(keys, items, waiting, bound, p)
                    waiting += 1
            p = t.pnode[p, NEXT]
        return waiting
    for a in attributes:
        p = find_pnode(t, b, a)
        if p >= 0:
            bound = upper_score(t.pnode_top[p], columns, ratio, mode) if prune else 0.0
            if not (prune and full and bound < least):
                heap_push(keys, items, waiting, bound, p)
                waiting += 1
    return waiting
