"""Arrays of rows: copying in kernels, reusing rows, and growing."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel

_LINE = 64  # bytes of a cache line


@kernel(inner=True)
def copy(source: Any, target: Any) -> None:
    """As target[:] = source, whose error message takes numba two seconds to compile."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel(inner=True)
def fill(target: Any, value: float) -> None:
    """As target[:] = value."""
    for i in range(len(target)):
        target[i] = value


@kernel(inner=True)
def longer(rows: Any, needed: int) -> Any:
    """A copy with at least `needed` rows, and with more than twice as many as before."""
    larger = np.empty(max(needed, 2 * len(rows) + 1), rows.dtype)
    for i in range(len(rows)):  # not `copy`: it would be compiled for every type of record too
        larger[i] = rows[i]
    return larger


@kernel(inner=True)
def floats(count: int) -> Any:
    """As np.empty(count), which numba compiles again for each constant and each kind of caller."""
    return np.empty(count)


@kernel(inner=True)
def ints(count: int) -> Any:
    """As np.empty(count, np.int64)."""
    return np.empty(count, np.int64)


@kernel(inner=True)
def ascending(values: Any, sign: float) -> Any:
    """The order that sorts sign · values, ties by place. Shell's sort: numba's own takes a second to compile."""
    order, gap = ints(len(values)), 1
    for i in range(len(values)):
        order[i] = i
    while gap < len(values) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            own, at = order[i], i
            value = sign * values[own]
            while at >= gap:
                other = order[at - gap]
                if sign * values[other] < value or (sign * values[other] == value and other < own):
                    break
                order[at] = other
                at -= gap
            order[at] = own
        gap //= 3
    return order


# ---- reusable places: each free one links to the next -------------------------------------------------------


@kernel(inner=True)
def take(meta: Any, free: int, used: int, links: Any, count: int) -> int:
    """The first of `count` unused places: meta[free], or, if that is −1 (none), the next ones from meta[used] on."""
    place = meta[free]
    if place >= 0:
        meta[free] = links[place]
    else:
        place = meta[used]
        meta[used] += count
    return place


@kernel(inner=True)
def give(meta: Any, free: int, links: Any, place: int) -> None:
    """Put a place at the head of the free list."""
    links[place] = meta[free]
    meta[free] = place


@kernel(inner=True)
def unchain(first: Any, of: int, links: Any, item: int) -> None:
    """Take an item out of the chain that begins at first[of]."""
    if first[of] == item:
        first[of] = links[item]
        return
    before = first[of]
    while links[before] != item:
        before = links[before]
    links[before] = links[item]


def runs(starts: Any, sizes: Any) -> Any:
    """The indices of the elements of these runs, run after run."""
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def aligned(shape: tuple[int, ...], kind: Any) -> Any:
    """Zeros that begin at a cache line, so that a record of that size lies in one line."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    raw = np.zeros(size + _LINE, np.uint8)
    begin = -raw.ctypes.data % _LINE
    return raw[begin : begin + size].view(kind).reshape(shape)


def with_room(column: Any, used: int, extra: int) -> Any:
    """The column, or a larger copy, with room for `extra` rows after the first `used`."""
    if used + extra <= len(column):
        return column
    larger = aligned((used + used // 2 + extra, *column.shape[1:]), column.dtype).view(type(column))
    larger[:used] = column[:used]
    return larger


def fitted(column: Any, capacity: int, fill: float = 0) -> Any:
    """A copy of the column with at least `capacity` rows; the new ones hold `fill`."""
    larger = np.full((max(capacity, len(column)), *column.shape[1:]), fill, dtype=column.dtype)
    larger[: len(column)] = column
    return larger
