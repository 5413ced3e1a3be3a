"""Loading the R-tree of places at once: layers of similar α, each packed by sort-tile-recursion over its places.

α weighs text against place, so a node that mixes all α can be ruled out by neither: for its smallest α text decides,
for its largest nearness. O(n log n); the forests are then filled level by level, children before parents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.places.base import Placed
from topk.places.forest import forest_has_room
from topk.places.rtree import FAN, RTree, attach, fill_forest, measure, new_node
from topk.sparse.catalogue import Floats, Ints

_PACKED = 45  # children of a packed node: room for a few insertions before it splits
_LAYERS = 16  # of α from 0 to 1 that packing keeps apart


@njit(cache=True)
def fill_from(t: RTree, placed: Placed, order: Any, begin: int, widest: int) -> int:
    """Forests of the nodes order[begin:], children before parents; stops where the arrays must grow."""
    for i in range(begin, len(order)):
        if not forest_has_room(t.forest, widest, 2 * (FAN + 1) * widest):
            return i
        fill_forest(t, placed, order[i])
    return len(order)


@njit(cache=True)
def load_level(t: RTree, placed: Placed, order: Any, ends: Any, below: Any, leaf: int, nodes: Any) -> None:
    """Make the nodes of a packed level: node i has order[ends[i − 1] : ends[i]], rows or positions in `below`."""
    begin = 0
    for i in range(len(ends)):
        n = new_node(t, -1, leaf)
        nodes[i] = n
        for at in range(begin, ends[i]):
            attach(t, placed, n, order[at] if leaf else below[order[at]])
        measure(t, n)
        begin = ends[i]


def packed_levels(places: Floats) -> list[tuple[Ints, Ints]]:
    """Per level, lowest first: rows, or nodes of the level below, in order, and where those of each node end."""
    spread = float(np.subtract(*np.quantile(places[:, 2], (0.95, 0.05)))) if len(places) else 0.0
    count = max(1, min(round(_LAYERS * spread), len(places) // _PACKED**2))
    layers = np.array_split(np.argsort(places[:, 2], kind="stable"), count)
    levels: list[tuple[Ints, Ints]] = []
    where = places[:, :2]
    while True:
        tiled = [_tiles(layer, where) for layer in layers]
        parts = [part for tiles in tiled for part in tiles]
        order, sizes = np.concatenate(parts), np.array([len(part) for part in parts])
        levels.append((order, np.cumsum(sizes)))
        if len(parts) == 1:
            return levels
        where = np.add.reduceat(where[order], np.cumsum(sizes) - sizes) / sizes[:, None]
        numbers = np.arange(len(parts))
        mixed = len(parts) == len(layers)  # one node each: above them layers share nodes
        layers = [numbers] if mixed else np.split(numbers, np.cumsum([len(tiles) for tiles in tiled])[:-1])


def _tiles(members: Ints, where: Floats) -> list[Ints]:
    nodes = -(-len(members) // _PACKED)
    by_x = members[np.argsort(where[members, 0], kind="stable")]
    tiles: list[Ints] = []
    for strip in np.array_split(by_x, max(1, int(np.ceil(np.sqrt(nodes))))):
        by_y = strip[np.argsort(where[strip, 1], kind="stable")]
        tiles += np.array_split(by_y, max(1, -(-len(by_y) // _PACKED)))
    return tiles
