"""The binary skeleton that all interval trees share (Preparata & Shamos; VLDB 2008, section 2.1.1).

Property: every interval kept at a node contains the node's centre; the intervals of the left subtree lie
entirely to the left of the centre, those of the right subtree to its right. So a stabbing query needs one
path.

Built top down: the centre is the median of the remaining endpoints. Endpoints are sorted once and then only
partitioned stably, so a build is O(n log n). Recursion may stop at `bucket` intervals, which then stay
together in a terminal node without a common point; bucket = 0 is the textbook tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats

NO_NODE = -1
DEEPEST = 128  # levels: a balanced tree of 2³¹ has 31, an updated IR-tree at most 96


class Skeleton(NamedTuple):
    centre: Floats  # NaN at a terminal bucket
    left: NDArray[np.int32]  # child or NO_NODE
    right: NDArray[np.int32]


@kernel
def _grow(lo: Any, hi: Any, ends: Any, bucket: int) -> Any:
    """ends: interval*2 + side, sorted by endpoint. Returns the skeleton arrays and each interval's node."""
    n = len(lo)
    room = max(n, 1)
    centre = np.empty(room, np.float64)
    left, right = np.full(room, NO_NODE, np.int32), np.full(room, NO_NODE, np.int32)
    node_of = np.full(n, NO_NODE, np.int32)
    spare = np.empty(len(ends), np.int64)
    begins, stops = np.empty(room + 1, np.int64), np.empty(room + 1, np.int64)  # of `ends`, of each node still to do
    begins[0], stops[0] = 0, len(ends)
    done, nodes = 0, min(n, 1)
    while done < nodes:
        begin, stop = begins[done], stops[done]
        if stop - begin <= 2 * bucket:
            centre[done] = np.nan
            for t in range(begin, stop):
                node_of[ends[t] >> 1] = done
            done += 1
            continue
        middle = ends[(begin + stop) >> 1]
        c = hi[middle >> 1] if middle & 1 else lo[middle >> 1]
        centre[done] = c
        lower, upper = begin, 0
        for t in range(begin, stop):
            i = ends[t] >> 1
            if hi[i] < c:
                ends[lower] = ends[t]
                lower += 1
            elif lo[i] > c:
                spare[upper] = ends[t]
                upper += 1
            else:
                node_of[i] = done
        for t in range(upper):
            ends[lower + t] = spare[t]
        if lower > begin:
            left[done], begins[nodes], stops[nodes] = nodes, begin, lower
            nodes += 1
        if upper > 0:
            right[done], begins[nodes], stops[nodes] = nodes, lower, lower + upper
            nodes += 1
        done += 1
    return centre[:nodes].copy(), left[:nodes].copy(), right[:nodes].copy(), node_of


@kernel
def group(node_of: Any, order: Any, nodes: int) -> Any:
    """Intervals by node, each node's in the order of `order`: (offsets, members)."""
    offsets = np.zeros(nodes + 1, np.int64)
    for i in range(len(node_of)):
        offsets[node_of[i] + 1] += 1
    for v in range(nodes):
        offsets[v + 1] += offsets[v]
    place = offsets[:-1].copy()
    members = np.empty(len(node_of), np.int32)
    for t in range(len(order)):
        i = order[t]
        members[place[node_of[i]]] = i
        place[node_of[i]] += 1
    return offsets, members


@kernel(inner=True)
def start(tree: Any) -> Any:
    """A stack with the root on it (if there is one), and its height."""
    stack = np.zeros(DEEPEST, np.int32)
    return stack, min(len(tree.centre), 1)


@kernel(inner=True)
def step(tree: Any, low: float, high: float, stack: Any, waiting: int) -> Any:
    """Take the next node whose subtree [low, high] reaches, and put its children on the stack; for a value, a path."""
    waiting -= 1
    node = stack[waiting]
    c = tree.centre[node]
    if low < c and tree.left[node] != NO_NODE:
        stack[waiting] = tree.left[node]
        waiting += 1
    if high > c and tree.right[node] != NO_NODE:
        stack[waiting] = tree.right[node]
        waiting += 1
    return node, waiting


def sorted_ends(lo: Floats, hi: Floats) -> NDArray[np.int64]:
    values = np.empty(2 * len(lo))
    values[0::2], values[1::2] = lo, hi
    return np.argsort(values, kind="stable").astype(np.int64)


def build(lo: Floats, hi: Floats, bucket: int = 0) -> tuple[Skeleton, NDArray[np.int32]]:
    """The skeleton of closed intervals, and the node each of them belongs to."""
    centre, left, right, node_of = _grow(lo, hi, sorted_ends(lo, hi), bucket)
    return Skeleton(centre, left, right), node_of


def check(skeleton: Skeleton, lo: Floats, hi: Floats, node_of: NDArray[np.int32]) -> None:
    """Every interval contains its node's centre and lies on the right side of each centre above."""
    if len(skeleton.centre) == 0:
        assert len(lo) == 0, "intervals without a node"
        return
    stack = [(0, -np.inf, np.inf)]
    bounds = {}
    while stack:
        node, low, high = stack.pop()
        bounds[node] = (low, high)
        c = skeleton.centre[node]
        if skeleton.left[node] != NO_NODE:
            stack.append((int(skeleton.left[node]), low, c))
        if skeleton.right[node] != NO_NODE:
            stack.append((int(skeleton.right[node]), c, high))
    assert len(bounds) == len(skeleton.centre), "a node is unreachable"
    for i in range(len(lo)):
        node = int(node_of[i])
        low, high = bounds[node]
        assert np.isnan(skeleton.centre[node]) or lo[i] <= skeleton.centre[node] <= hi[i], "centre not inside"
        assert low == -np.inf or lo[i] > low, "an interval reaches a centre above its node"
        assert high == np.inf or hi[i] < high, "an interval reaches a centre above its node"
