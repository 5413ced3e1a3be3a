"""Where the R-trees of a forest (`score_forest.py`) keep their nodes: chunks of slots in shared flat arrays.

Chunks have 1, 2, 4, … or b slots, so that a free one can be used by the next node that wants as many. Only a first,
packed build fits them exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.rows import give, take, with_room

CLASSES = 11  # sizes of chunks: 1, 2, 4, …, b, with b up to 1024
SLOTS, NODES, FREE_NODE = CLASSES, CLASSES + 1, CLASSES + 2  # places in `meta` after the free-chunk heads
NOTHING = -1


class Forest(NamedTuple):
    """The shared pool. Slots: child node or row, extent, last key. Nodes: chunk, capacity, count, leaf."""

    ref: NDArray[np.int32]
    lo: Floats
    hi: Floats
    score: Floats
    id: Ints
    start: NDArray[np.int32]
    capacity: NDArray[np.int16]
    filled: NDArray[np.int16]
    leaf: NDArray[np.uint8]
    meta: Ints
    b: int


def empty(slots: int, nodes: int, b: int) -> Forest:
    meta = np.full(CLASSES + 3, NOTHING, np.int64)
    meta[SLOTS] = meta[NODES] = 0
    columns: list[Any] = [np.empty(slots, kind) for kind in ("i4", "f8", "f8", "f8", "i8")]
    columns += [np.empty(nodes, kind) for kind in ("i4", "i2", "i2", "u1")]
    return Forest._make([*columns, meta, b])


def larger(forest: Forest, slots: int, nodes: int) -> Forest:
    """The same forest, with room for `slots` and `nodes` more."""
    s, v = int(forest.meta[SLOTS]), int(forest.meta[NODES])
    columns: list[Any] = [with_room(a, s, slots) for a in forest[:5]]
    columns += [with_room(a, v, nodes) for a in forest[5:9]]
    return Forest._make([*columns, forest.meta, forest.b])


@kernel(inner=True)
def _size_of(f: Any, c: int) -> int:
    """Slots of a chunk of class c."""
    return min(1 << c, f.b)


@kernel(inner=True)
def _class_for(f: Any, capacity: int) -> int:
    """The class of the smallest chunks with `capacity` slots."""
    c = 0
    while _size_of(f, c) < capacity:
        c += 1
    return c


@kernel(inner=True)
def new_node(f: Any, leaf: int, capacity: int, packed: bool = False) -> int:
    """A node without slots in use, and room for `capacity`: exactly that if `packed`."""
    node = take(f.meta, FREE_NODE, NODES, f.start, 1)
    f.leaf[node], f.filled[node] = leaf, 0
    if packed:
        f.start[node], f.capacity[node] = f.meta[SLOTS], capacity
        f.meta[SLOTS] += capacity
    else:
        new_chunk(f, node, capacity)
    return node


@kernel(inner=True)
def new_chunk(f: Any, node: int, capacity: int) -> None:
    """At least `capacity` slots: a free chunk, else fresh ones."""
    c = _class_for(f, capacity)
    f.capacity[node] = _size_of(f, c)
    f.start[node] = take(f.meta, c, SLOTS, f.ref, _size_of(f, c))


@kernel(inner=True)
def free_chunk(f: Any, start: int, capacity: int) -> None:
    c = _class_for(f, capacity)
    if _size_of(f, c) > capacity:  # from a packed build: slots beyond the class below are lost, once
        c -= 1
    give(f.meta, c, f.ref, start)


@kernel
def free_node(f: Any, node: int) -> None:
    free_chunk(f, f.start[node], f.capacity[node])
    give(f.meta, FREE_NODE, f.start, node)
