"""A packed b-way R-tree over intervals in a given arrangement, and its left-first depth-first traversal.

Nodes are implicit: node i of a level has the children i·b … i·b+b−1 of the level below, level 0 being the
intervals. Only extents are stored, so the tree adds at most 1/(b−1) of the interval data plus one node per
level.

The traversal needs no stack. Its whole state is (level, position): a node whose extent misses the value is
skipped, one that contains it is entered at its first child, and the last child of a node is followed by a climb.
Every getnext() resumes where the last one stopped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.papers.interval.contract import COMPARED, NODES, Space

MAX_LEVELS = 32  # b ≥ 2 and fewer than 2³¹ intervals


class Packed(NamedTuple):
    lo: Floats  # level 0, then level 1, …
    hi: Floats
    starts: Ints  # where each level begins; the last element is the total
    b: int


def fill_levels(values: NDArray[Any], starts: Ints, b: int, of_children: np.ufunc) -> None:
    """Compute the values of all nodes from those of their children, level by level; level 0 is given."""
    for level in range(1, len(starts) - 1):
        below = values[starts[level - 1] : starts[level]]
        values[starts[level] : starts[level + 1]] = of_children.reduceat(below, np.arange(0, len(below), b))


def pack(lo: Floats, hi: Floats, b: int) -> Packed:
    """The tree over intervals in the given order."""
    sizes = [len(lo)]
    while sizes[-1] > b:
        sizes.append(-(-sizes[-1] // b))
    if sizes[-1] > 0:
        sizes.append(1)  # the root
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    lows, highs = np.empty(starts[-1]), np.empty(starts[-1])
    lows[: len(lo)], highs[: len(hi)] = lo, hi
    fill_levels(lows, starts, b, np.minimum)
    fill_levels(highs, starts, b, np.maximum)
    return Packed(lows, highs, starts, b)


@kernel
def traverse(tree: Any, low: float, high: float, state: Any, out: Any, work: Any, explored: Any) -> int:
    """Positions of the next intervals that meet [low, high], in arrangement order. state = (level, position).

    explored[l] counts the nodes of level l that were entered.
    """
    top = len(tree.starts) - 2
    level, i = state[0], state[1]
    found = 0
    while level <= top and found < len(out):
        at = tree.starts[level] + i
        work[COMPARED] += 1
        if tree.lo[at] <= high and low <= tree.hi[at]:
            if level > 0:
                work[NODES] += 1
                explored[level] += 1
                level -= 1
                i *= tree.b
                continue
            out[found] = i
            found += 1
        i += 1
        # After the last child of its parent, or after the last node of the level: climb.
        while level <= top and (i % tree.b == 0 or i == tree.starts[level + 1] - tree.starts[level]):
            if level == top:
                level += 1
                break
            i = (i - 1) // tree.b + 1
            level += 1
    state[0], state[1] = level, i
    return found


def meeting(tree: Packed, low: float, high: float, work: Ints, explored: Ints) -> Ints:
    """The positions of all intervals that meet [low, high]."""
    found = np.empty(int(tree.starts[1]), np.int64)
    return found[: traverse(tree, low, high, first(tree), found, work, explored)]


def first(tree: Packed) -> Ints:
    """The state before the first interval: at the root, or at the end of an empty tree."""
    root = len(tree.starts) - 2
    return np.array([root if tree.starts[-1] else root + 1, 0], dtype=np.int64)


def space(tree: Packed) -> Space:
    n = int(tree.starts[1])
    return Space(n, int(tree.starts[-1]) - n, 0)


def check(tree: Packed) -> None:
    """Extents are tight, and the space is that of Theorem 3.2."""
    n = int(tree.starts[1])
    for bounds, tight in ((tree.lo, np.minimum), (tree.hi, np.maximum)):
        expected = bounds.copy()
        fill_levels(expected, tree.starts, tree.b, tight)
        assert (expected == bounds).all(), "an extent is not tight"
    inner = int(tree.starts[-1]) - n
    assert inner <= n / (tree.b - 1) + len(tree.starts), "the inner nodes exceed n/(b−1) plus one per level"
