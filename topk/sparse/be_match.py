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
    lookup,
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
def match(
    t: Tree, rows: Rows, columns: Any, event: Any, k: int, mode: int, prune: bool, learn: bool, best: Any, ids: Any,
    counts: Any,
) -> int:  # fmt: skip
    spread(event, *columns)
    # Arrays by name: taking them out of the tuples in a loop would count references at every access.
    bucket, active, bucket_top, pnode, pnode_top = t.bucket, t.active, t.bucket_top, t.pnode, t.pnode_top
    entries, keys_of, pnode_of, feedback = t.entries, t.keys, t.values, t.feedback
    start, length, attribute, lo, hi, odd = rows.start, rows.length, rows.attribute, rows.lo, rows.hi, rows.odd
    attributes, low_event, high_event = columns[0], event[0], event[1]
    scores, found = best[:k], ids[:k]
    keys, items, waiting = np.empty(64), np.empty(64, np.int64), 0
    stack, depth = np.empty(256, np.int64), 1
    size, nodes = 0, 0
    low_of, high_of = (OWN_LO, OWN_HI) if t.knobs[RIGID] else (ALL_LO, ALL_HI)
    ratio = 0.0
    for i in range(len(attributes)):
        ratio = max(ratio, columns[3][i] / t.reference[attributes[i]] * (1.0 + 1e-12))
    stack[0], p, low, high = 0, -1, 0.0, 0.0
    while True:
        while depth:
            depth -= 1
            b = stack[depth]
            nodes += 1
            if p >= 0:
                if not (active[b, low_of] <= high and low <= active[b, high_of]):
                    continue
                if prune and size == k and ratio * active[b, ALL_SUM] < scores[0]:
                    continue
                if depth + 2 > len(stack):
                    stack = np.concatenate((stack, np.empty(len(stack), np.int64)))
                if bucket[b, LEFT] >= 0:
                    stack[depth], stack[depth + 1] = bucket[b, LEFT], bucket[b, RIGHT]
                    depth += 2
                if not (active[b, OWN_LO] <= high and low <= active[b, OWN_HI]):
                    continue
            hopeless = prune and size == k and ratio * active[b, LEAF_SUM] < scores[0]
            if bucket[b, SIZE] and not hopeless:
                hopeless = prune and size == k and upper_score(bucket_top[b], columns, ratio, mode) < scores[0]
            if bucket[b, SIZE] and not hopeless:
                wasted = 0
                counts[0] += bucket[b, SIZE]
                for i in range(bucket[b, START], bucket[b, START] + bucket[b, SIZE]):
                    row = entries[i]
                    matched = True
                    for q in range(start[row], start[row] + length[row]):
                        a = attribute[q]
                        if not (lo[q] <= high_event[a] and low_event[a] <= hi[q]):
                            matched = False
                            wasted += q - start[row] + 1
                            break
                    if matched and (odd[row] < 0 or exceptions_hold(rows, row, event)):
                        size = push(scores, found, size, row_score(rows, row, event, mode), rows.ids[row])
                if learn and p >= 0:
                    feedback[p, 0] += wasted
            if bucket[b, FIRST] < 0:
                continue
            if waiting + max(len(attributes), bucket[b, PCOUNT]) > len(keys):
                extra = len(keys) + bucket[b, PCOUNT] + len(attributes)
                keys = np.concatenate((keys, np.empty(extra)))
                items = np.concatenate((items, np.empty(extra, np.int64)))
            # A short directory is walked, a long one is looked up.
            walked = bucket[b, PCOUNT] <= len(attributes)
            q = bucket[b, FIRST]
            for i in range(bucket[b, PCOUNT] if walked else len(attributes)):
                here = q if walked else lookup(keys_of, pnode_of, b, attributes[i])
                if walked:
                    q = pnode[q, NEXT]
                if here >= 0 and not np.isnan(low_event[pnode[here, ATTR]]):
                    bound = upper_score(pnode_top[here], columns, ratio, mode) if prune else 0.0
                    if not (prune and size == k and bound < scores[0]):
                        heap_push(keys, items, waiting, bound, here)
                        waiting += 1
        if waiting == 0:
            break
        if prune and size == k and keys[0] < scores[0]:
            break
        p = items[0]
        heap_pop(keys, items, waiting)
        waiting -= 1
        if learn:
            feedback[p, 1] += 1.0
        low, high = low_event[pnode[p, ATTR]], high_event[pnode[p, ATTR]]
        stack[0], depth = pnode[p, ROOT], 1
    clear(event, columns[0])
    counts[1] += nodes
    return size
