"""The implicit segment tree: leaf i of n is node n + i, the parent of node v is v // 2."""

from __future__ import annotations

from typing import Any

from coverlay import kernel

MOST = 2 * 64  # maximal nodes of a range: two per level


@kernel(inner=True)
def maximal_nodes(left: int, right: int, nodes: Any) -> int:
    """The largest nodes that make up the leaves `left` to `right`, given as nodes; returns how many."""
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
