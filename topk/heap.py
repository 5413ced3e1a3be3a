"""A max-heap of (key, item) pairs in two arrays, for kernels that search best first."""

from __future__ import annotations

from typing import Any

from coverlay import kernel


@kernel
def heap_push(keys: Any, items: Any, size: int, key: float, item: int) -> None:
    i = size
    while i > 0 and keys[(i - 1) >> 1] < key:
        keys[i], items[i] = keys[(i - 1) >> 1], items[(i - 1) >> 1]
        i = (i - 1) >> 1
    keys[i], items[i] = key, item


@kernel
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
