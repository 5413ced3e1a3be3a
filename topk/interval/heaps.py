"""Binary min-heaps of plain integers, for merging lists whose elements are ranks."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def sift_down(heap: Any, size: int, i: int) -> None:
    item = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = item


@njit(cache=True, nogil=True)
def heapify(heap: Any, size: int) -> None:
    for i in range(size // 2 - 1, -1, -1):
        sift_down(heap, size, i)


@njit(cache=True, nogil=True)
def push_int(heap: Any, size: int, item: int) -> int:
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent] <= item:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = item
    return size + 1


@njit(cache=True, nogil=True)
def drain(heap: Any, size: Any, rows: Any, out: Any) -> int:
    """Pop ranks from a heap whose size is in size[0] and write their rows; returns how many."""
    found = 0
    left = size[0]
    while found < len(out) and left > 0:
        out[found] = rows[heap[0]]
        found += 1
        left -= 1
        heap[0] = heap[left]
        if left > 0:
            sift_down(heap, left, 0)
    size[0] = left
    return found
