"""The implicit segment tree (leaf i of n is node n + i, the parent of node v is v // 2), and the cell of a value."""

from __future__ import annotations

from typing import Any

from coverlay import kernel

MOST = 2 * 64  # a range has no more maximal nodes: two per level


@kernel(inner=True)
def maximal_nodes(left: int, right: int, nodes: Any) -> int:
    """Write the largest nodes that make up the leaf nodes `left` to `right`; returns how many."""
    right += 1
    found = 0
    while left < right:
        if left & 1:
            nodes[found] = left
            found += 1
            left += 1
        if right & 1:
            right -= 1
            nodes[found] = right
            found += 1
        left >>= 1
        right >>= 1
    return found


@kernel(inner=True)
def cuts_below(cuts: Any, first: int, low: int, high: int, value: float) -> int:
    """How many of the cuts from `first` on are ≤ value, from `low` to `high`. Equal values get equal cells."""
    while low < high:
        middle = (low + high) >> 1
        if cuts[first + middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low
