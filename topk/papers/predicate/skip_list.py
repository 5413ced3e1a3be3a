"""The skip list of an IS-list, and the markers of intervals on its edges and nodes: `islist.py` says what they mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.rows import give, take
from topk.papers.interval.contract import COMPARED, NODES
from topk.papers.predicate.contract import END, collect, mark, room_for

TALL = 24  # levels; enough for 2²⁴ endpoints at one half per level
LISTS = TALL + 1  # of markers that a node has: of its edges by level, and of itself
HEADER = 0  # the node before all others
NIL = -1
USED, FREE, DRAWN = 0, 1, 2  # places in meta: nodes used, first free node, heights drawn


class SkipList(NamedTuple):
    key: Floats
    height: NDArray[np.int8]
    owners: NDArray[np.int32]  # endpoints that lie on the node
    link: NDArray[np.int32]  # (nodes, TALL): next node per level
    meta: Ints


@kernel(inner=True)
def _draw_height(meta: Any) -> int:
    """Geometric with one half, from a counter run through a 64-bit mixer: the same list every time."""
    meta[DRAWN] += 1
    z = np.uint64(meta[DRAWN]) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(27))
    height = 1
    while height < TALL and z & np.uint64(1):
        height += 1
        z >>= np.uint64(1)
    return height


@kernel(inner=True)
def _find(s: Any, key: float, before: Any) -> int:
    """The node with this key or NIL; before[i] is the last node of level i with a smaller key."""
    x = HEADER
    for i in range(TALL - 1, -1, -1):
        while s.link[x, i] != NIL and s.key[s.link[x, i]] < key:
            x = s.link[x, i]
        before[i] = x
    x = s.link[x, 0]
    return x if x != NIL and s.key[x] == key else NIL


@kernel
def node_of(s: Any, key: float) -> int:
    """The node with this key, or NIL."""
    return _find(s, key, np.empty(TALL, np.int64))


@kernel(inner=True)
def _walk(s: Any, marks: Any, row: int, left: int, right: int, lay: bool) -> None:
    """Lay or lift the markers of an interval."""
    x = left
    while True:
        mark(marks, LISTS * x + TALL, row, lay)
        if x == right:
            return
        i = s.height[x] - 1
        while s.link[x, i] == NIL or s.key[s.link[x, i]] > s.key[right]:
            i -= 1
        mark(marks, LISTS * x + i, row, lay)
        x = s.link[x, i]


@kernel(inner=True)
def _relay(s: Any, marks: Any, ends: Any, rows: Any, lay: bool) -> None:
    for t in range(len(rows)):
        _walk(s, marks, rows[t], ends[rows[t], 0], ends[rows[t], 1], lay)


@kernel(inner=True)
def _new_node(s: Any, key: float) -> int:
    node = take(s.meta, FREE, USED, s.link[:, 0], 1)
    s.key[node] = key
    s.height[node] = _draw_height(s.meta)
    s.owners[node] = 0
    return node


@kernel(inner=True)
def _break_edges(s: Any, marks: Any, ends: Any, key: float, before: Any) -> Any:
    """Link in a new node for `key`; returns it and the intervals whose markers were lifted for it."""
    node = _new_node(s, key)
    lifted, size = np.empty(64, np.int64), 0
    for i in range(s.height[node]):
        lifted, size = collect(marks, LISTS * before[i] + i, lifted, size)
    rows = lifted[:size]  # an interval uses at most one edge above any key, so it occurs once
    _relay(s, marks, ends, rows, False)
    for i in range(s.height[node]):
        s.link[node, i] = s.link[before[i], i]
        s.link[before[i], i] = node
    return node, rows


@kernel
def insert(s: Any, marks: Any, ends: Any, row: int, lo: float, hi: float) -> None:
    before = np.empty(TALL, np.int64)
    for side in range(2):
        key = lo if side == 0 else hi
        node = _find(s, key, before)
        if node == NIL:
            node, rows = _break_edges(s, marks, ends, key, before)
            _relay(s, marks, ends, rows, True)
        s.owners[node] += 1
        ends[row, side] = node
    _walk(s, marks, row, ends[row, 0], ends[row, 1], True)


@kernel
def delete(s: Any, marks: Any, ends: Any, row: int) -> None:
    before = np.empty(TALL, np.int64)
    _walk(s, marks, row, ends[row, 0], ends[row, 1], False)
    for side in range(2):
        node = ends[row, side]
        s.owners[node] -= 1
        if s.owners[node] > 0 or (side == 1 and ends[row, 0] == node and s.meta[FREE] == node):
            continue
        lifted, size = collect(marks, LISTS * node + TALL, np.empty(64, np.int64), 0)
        rows = lifted[:size]
        _relay(s, marks, ends, rows, False)
        _find(s, s.key[node], before)
        for i in range(s.height[node]):
            s.link[before[i], i] = s.link[node, i]
        give(s.meta, FREE, s.link[:, 0], node)
        _relay(s, marks, ends, rows, True)


@kernel
def load_keys(s: Any, keys: Any) -> None:
    """Load all endpoints before any marker, so that none needs to be lifted."""
    tails = np.zeros(TALL, np.int64)
    for t in range(len(keys)):
        node = _new_node(s, keys[t])
        for i in range(s.height[node]):
            s.link[tails[i], i] = node
            s.link[node, i] = NIL
            tails[i] = node


@kernel
def load_rows(s: Any, marks: Any, ends: Any, rows: Any, first: Any, last: Any) -> None:
    for t in range(len(rows)):
        ends[rows[t], 0] = first[t] + 1  # nodes follow the header in key order
        ends[rows[t], 1] = last[t] + 1
        s.owners[first[t] + 1] += 1
        s.owners[last[t] + 1] += 1
        _walk(s, marks, rows[t], first[t] + 1, last[t] + 1, True)


@kernel
def search(s: Any, marks: Any, value: float, heads: bool, work: Any) -> Any:
    """The rows that contain the value, or with `heads` only the marker lists that hold them."""
    found, size, x = np.empty(64, np.int64), 0, HEADER
    for i in range(TALL - 1, -1, -1):
        while s.link[x, i] != NIL and s.key[s.link[x, i]] < value:
            x = s.link[x, i]
            work[NODES] += 1
        following = s.link[x, i]
        if following != NIL and s.key[following] == value:
            # Intervals that contain its key either pass over this node on a higher edge or have a marker on it.
            which = LISTS * following + TALL
        elif x != HEADER and following != NIL:
            which = LISTS * x + i
        else:
            continue
        if heads:
            found[size] = which
            size += 1
        else:
            found, size = collect(marks, which, found, size)
        if s.key[following] == value:
            break
    work[COMPARED] += size
    return found[:size]


@kernel
def starting(s: Any, marks: Any, ends: Any, low: float, high: float, work: Any) -> Any:
    """The rows whose left end lies in (low, high]: they have a marker on its node."""
    found, size, x = np.empty(64, np.int64), 0, HEADER
    for i in range(TALL - 1, -1, -1):
        while s.link[x, i] != NIL and s.key[s.link[x, i]] <= low:
            x = s.link[x, i]
            work[NODES] += 1
    x = s.link[x, 0]
    while x != NIL and s.key[x] <= high:
        work[NODES] += 1
        cell = marks.head[LISTS * x + TALL]
        while cell != END:
            work[COMPARED] += 1
            if ends[marks.row[cell], 0] == x:
                found = room_for(found, size)
                found[size] = marks.row[cell]
                size += 1
            cell = marks.next[cell]
        x = s.link[x, 0]
    return found[:size]
