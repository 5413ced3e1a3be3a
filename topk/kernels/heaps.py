"""The matchers' heap: pairs (key, item) in two arrays, the smallest key on top, among equal keys the largest item.

`offer` keeps the k best of an answer: keys are scores, items are ids, and the worst pair is on top, since in answers a
higher score comes first, then a lower id. A best-first search negates its keys. A heap of plain numbers uses the same
array twice.

There are two others, on purpose: the calendar of the engine (sim/compiled/calendar.py) has records and, at equal times,
the order of scheduling; the oracle (sim/experiment/oracle_events.py) shares no code with the matchers that it judges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Floats, Ints


@kernel(inline="always")
def _above(key_a: Any, item_a: int, key_b: Any, item_b: int) -> Any:
    return key_a < key_b or (key_a == key_b and item_a > item_b)


@kernel(inner=True)
def sink(keys: Any, items: Any, size: int, i: int, key: Any, item: int) -> None:
    """Put a pair in place i of a heap of `size` pairs, or below it."""
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _above(keys[child + 1], items[child + 1], keys[child], items[child]):
            child += 1
        if not _above(keys[child], items[child], key, item):
            break
        keys[i], items[i] = keys[child], items[child]
        i = child
    keys[i], items[i] = key, item


@kernel
def push(keys: Any, items: Any, size: int, key: Any, item: int) -> int:
    """Add a pair to a heap of `size` pairs that has room; returns the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if not _above(key, item, keys[parent], items[parent]):
            break
        keys[i], items[i] = keys[parent], items[parent]
        i = parent
    keys[i], items[i] = key, item
    return size + 1


@kernel
def pop(keys: Any, items: Any, size: int) -> int:
    """Remove the top of a heap of `size` pairs; returns the new size."""
    size -= 1
    if size > 0:
        sink(keys, items, size, np.int64(0), keys[size], items[size])
    return size


@kernel
def offer(keys: Any, items: Any, size: int, key: Any, item: int) -> int:
    """Keep the len(items) pairs that come last in the heap's order, `size` of them so far; returns the new size."""
    if size < len(items):
        return push(keys, items, size, key, item)
    if size > 0 and _above(keys[0], items[0], key, item):
        sink(keys, items, size, np.int64(0), key, item)
    return size


@kernel
def heapify(keys: Any, items: Any, size: int) -> None:
    """Make a heap of pairs in any order."""
    for i in range(size // 2 - 1, -1, -1):
        sink(keys, items, size, i, keys[i], items[i])


@kernel
def in_order(keys: Any, items: Any, size: int) -> int:
    """Turn a heap of `size` pairs into the order of an answer, in place; returns the size."""
    for last in range(size - 1, 0, -1):
        key, item = keys[last], items[last]
        keys[last], items[last] = keys[0], items[0]
        sink(keys, items, last, np.int64(0), key, item)
    return size


def best_first(ids: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Sort pairs into the order of an answer."""
    order = np.lexsort((ids, -scores))
    return ids[order], scores[order]
