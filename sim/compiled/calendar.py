"""The event calendar: a binary heap ordered by time, then by the order of scheduling, as SimPy's is.

SimPy orders by (time, priority, number). Everything that the brokers schedule has the same priority, so two
keys suffice. The number only has to grow with every call; here it is a counter of our own.
"""

from __future__ import annotations

from typing import Any

from sim.compiled.state import inlined, inner


@inlined
def push(heap: Any, size: int, time: float, order: int, what: int) -> int:
    """Add a call to a heap of `size`; the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.order < order):
            break
        heap[i] = above
        i = parent
    heap[i].time, heap[i].order, heap[i].what = time, order, what
    return size + 1


@inner
def replace(heap: Any, size: int, time: float, order: int, what: int) -> None:
    """Put a call in the place of the first one of a heap of `size`."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size:
            a, b = heap[child], heap[child + 1]
            child += int((b.time < a.time) | ((b.time == a.time) & (b.order < a.order)))  # no branch to mispredict
        below = heap[child]
        if time < below.time or (time == below.time and order < below.order):
            break
        heap[i] = below
        i = child
    heap[i].time, heap[i].order, heap[i].what = time, order, what


@inlined
def pop(heap: Any, size: int) -> int:
    """Take the first call away (read heap[0] before); the new size."""
    last = heap[size - 1]
    replace(heap, size - 1, last.time, last.order, last.what)
    return size - 1
