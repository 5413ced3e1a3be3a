"""The constraint graph and the arrangement of the SOPT-R-tree: VLDB 2008, section 3.2, Algorithms 1 and 2.

Endpoints become integers ("slots": the distinct endpoints and the gaps between them alternate), so a
visible block is a range of slots and blocks never share a point, whatever ends the intervals have in
common. Stack the intervals downwards in score order: the blocks are what is visible from below. Interval i
gets an edge from the owner of every block it meets; then its own range becomes one block. At most three
blocks per interval are ever made, and each edge uses one up, hence at most 3n edges (Lemma 3.4).

Block starts are a set of integers with predecessor search: a 64-ary bitmap tree, four levels for 16 million
slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.bits import FULL, ONE, ZERO
from topk.kernels.heaps import pop, push
from topk.papers.interval.skeleton import group

_NOBODY = -1


@kernel(inner=True)
def _leading(word: Any) -> Any:
    """The highest set bit of a non-zero word."""
    n = np.int64(0)
    shift = np.int64(32)
    while shift > 0:
        if (word >> np.uint64(n + shift)) != ZERO:
            n += shift
        shift >>= 1
    return n


@kernel(inner=True)
def _set(words: Any, starts: Any, item: int) -> None:
    for level in range(len(starts) - 1):
        words[starts[level] + (item >> 6)] |= ONE << np.uint64(item & 63)
        item >>= 6


@kernel(inner=True)
def _clear(words: Any, starts: Any, item: int) -> None:
    for level in range(len(starts) - 1):
        at = starts[level] + (item >> 6)
        words[at] &= ~(ONE << np.uint64(item & 63))
        if words[at] != ZERO:
            return
        item >>= 6


@kernel(inner=True)
def _predecessor(words: Any, starts: Any, item: int) -> int:
    """The largest member ≤ item; slot 0 is always a member, so there is one."""
    level = 0
    at = np.int64(item)
    below = words[at >> 6] & (FULL >> np.uint64(63 - (at & 63)))
    while below == ZERO:
        at = (at >> 6) - 1
        level += 1
        below = words[starts[level] + (at >> 6)] & (FULL >> np.uint64(63 - (at & 63)))
    at = ((at >> 6) << 6) + _leading(below)
    while level > 0:
        level -= 1
        at = (at << 6) + _leading(words[starts[level] + at])
    return at


@kernel
def constraint_graph(first: Any, last: Any, slots: int) -> Any:
    """Algorithm 2 over slot ranges in score order: edges (tails, heads) in order of heads, and blocks looked at."""
    n = len(first)
    sizes = 1
    span = (slots + 64) >> 6
    while span > 1:
        span = (span + 63) >> 6
        sizes += 1
    starts = np.zeros(sizes + 1, np.int64)
    span = slots + 1
    for level in range(sizes):
        span = (span + 63) >> 6
        starts[level + 1] = starts[level] + span
    words = np.zeros(starts[-1], np.uint64)
    owner = np.full(slots + 1, _NOBODY, np.int32)  # by block start
    following = np.full(slots + 1, slots, np.int32)  # start of the next block; `slots` is the end
    tails, heads = np.empty(3 * n + 1, np.int32), np.empty(3 * n + 1, np.int32)
    edges, looked_at = 0, 0
    _set(words, starts, 0)
    for i in range(n):
        begin, end = first[i], last[i] + 1
        block = _predecessor(words, starts, begin)
        before = block
        while block < end:
            looked_at += 1
            if owner[block] != _NOBODY:
                tails[edges], heads[edges] = owner[block], i
                edges += 1
            rest, keeper = following[block], owner[block]
            if block > begin:
                _clear(words, starts, block)
            if rest > end:  # the last block sticks out: its rest stays a block
                _set(words, starts, end)
                owner[end], following[end], rest = keeper, rest, end
            block = rest
        if before < begin:
            following[before] = begin
        _set(words, starts, begin)
        owner[begin], following[begin] = i, end
    return tails[:edges], heads[:edges], looked_at


@kernel
def arrange(first: Any, tails: Any, heads: Any) -> Any:
    """Algorithm 1: repeatedly the leftmost interval without an unplaced predecessor."""
    n = len(first)
    indegree = np.zeros(n, np.int32)
    for e in range(len(heads)):
        indegree[heads[e]] += 1
    offsets, outgoing = group(tails, np.arange(len(tails)), n)
    heap = np.empty(n, np.int64)  # of plain numbers: left slot, then rank, in one
    size = np.int64(0)
    order = np.empty(n, np.int64)
    for i in range(n):
        if indegree[i] == 0:
            size = push(heap, heap, size, (np.int64(first[i]) << 32) | i, (np.int64(first[i]) << 32) | i)
    for t in range(n):
        i = heap[0] & 0xFFFFFFFF
        order[t] = i
        size = pop(heap, heap, size)
        for e in range(offsets[i], offsets[i + 1]):
            j = heads[outgoing[e]]
            indegree[j] -= 1
            if indegree[j] == 0:
                size = push(heap, heap, size, (np.int64(first[j]) << 32) | j, (np.int64(first[j]) << 32) | j)
    return order


def to_slots(lo: Floats, hi: Floats) -> tuple[Ints, Ints, int]:
    """Each interval's first and last slot (even: endpoint, odd: gap), and the number of slots."""
    ends = np.unique(np.concatenate((lo, hi)))
    first, last = 2 * np.searchsorted(ends, lo), 2 * np.searchsorted(ends, hi)
    return first.astype(np.int64), last.astype(np.int64), 2 * len(ends)
