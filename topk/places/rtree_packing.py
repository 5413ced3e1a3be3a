"""Loading the R-tree of places at once: layers of similar α, each packed by sort-tile-recursion over its places.

α weighs text against place, so a node that mixes all α can be ruled out by neither: for its smallest α text decides,
for its largest nearness. Leaves of one parent are divided by the heaviest predicates of its subscriptions, not by
place, under three conditions: text decides, nodes know the predicates below them, and one predicate has most of a
subscription's weight (attributes of very different frequency). Most leaves then lack what the event has, and the
parent's groups say so. O(n log n); the forests are filled level by level, children before parents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.places.contract import Placed
from topk.places.forest import forest_has_room
from topk.places.rtree import FAN, PlaceTree, attach, fill_forest, measure, new_node
from topk.predicates import SparseCatalogue

_PACKED = 45  # children of a packed node: room for a few insertions before it splits
_LAYERS = 16  # of α from 0 to 1 that packing keeps apart
_DECISIVE = 0.4  # mean weight of the heaviest predicates from which they tell subscriptions apart; all sum to 1
_ROOMY = 2 * _PACKED**2  # subscriptions in a layer below which its parents of leaves span too much space
_NEARNESS = 0.75  # mean α from which leaves are divided by place too; anything from 0.6 to 0.9 is much the same


@kernel
def fill_from(t: PlaceTree, placed: Placed, order: Any, begin: int, widest: int) -> int:
    """Forests of the nodes order[begin:], children before parents; stops where the arrays must grow."""
    for i in range(begin, len(order)):
        if not forest_has_room(t.forest, widest, 2 * (FAN + 1) * widest):
            return i
        fill_forest(t, placed, order[i])
    return len(order)


@kernel
def load_level(t: PlaceTree, placed: Placed, order: Any, ends: Any, below: Any, leaf: int, nodes: Any) -> None:
    """Make the nodes of a packed level: node i has order[ends[i − 1] : ends[i]], rows or positions in `below`."""
    begin = 0
    for i in range(len(ends)):
        n = new_node(t, np.int64(-1), leaf)
        nodes[i] = n
        for at in range(begin, ends[i]):
            attach(t, placed, n, order[at] if leaf else below[order[at]])
        measure(t, n)
        begin = ends[i]


def packed_levels(places: Floats, text: Ints | None, layers: int = _LAYERS) -> list[tuple[Ints, Ints]]:
    """Per level, lowest first: rows, or nodes of the level below, in order, and where those of each node end.

    `places` are x, y and α; `text` ranks the rows so that neighbours have similar predicates, None to go by place only.
    """
    spread = float(np.subtract(*np.quantile(places[:, 2], (0.95, 0.05)))) if len(places) else 0.0
    count = max(1, min(round(layers * spread), len(places) // _PACKED**2))
    parts_of_alpha = np.array_split(np.argsort(places[:, 2], kind="stable"), count)
    levels: list[tuple[Ints, Ints]] = []
    where = places[:, :2]
    tiled = [_leaves(layer, places, text) for layer in parts_of_alpha]
    while True:
        parts = [part for tiles, _ in tiled for part in tiles]
        order, sizes = np.concatenate(parts), np.array([len(part) for part in parts])
        levels.append((order, np.cumsum(sizes)))
        if len(parts) == 1:
            return levels
        where = np.add.reduceat(where[order], np.cumsum(sizes) - sizes) / sizes[:, None]
        numbers = np.arange(len(parts))
        if len(parts) == len(tiled):  # one node each: above them layers share nodes
            tiled = [(_tiles(numbers, where, _PACKED), None)]
            continue
        own = np.split(numbers, np.cumsum([len(tiles) for tiles, _ in tiled])[:-1])
        tiled = [
            (_tiles(layer, where, _PACKED) if together is None else np.split(layer, np.cumsum(together)[:-1]), None)
            for layer, (_, together) in zip(own, tiled, strict=True)
        ]


def _leaves(layer: Ints, places: Floats, text: Ints | None) -> tuple[list[Ints], list[int] | None]:
    """The leaves of a layer, and how many of them belong together in the level above (None: as they lie)."""
    if text is None or len(layer) < _ROOMY or places[layer, 2].mean() >= _NEARNESS:
        return _tiles(layer, places, _PACKED), None
    leaves: list[Ints] = []
    together: list[int] = []
    for tile in _tiles(layer, places, _PACKED**2):
        runs = np.array_split(tile[np.argsort(text[tile], kind="stable")], max(1, -(-len(tile) // _PACKED)))
        leaves += runs
        together.append(len(runs))
    return leaves, together


def _tiles(members: Ints, where: Floats, size: int) -> list[Ints]:
    """Up to `size` members each, neighbours together: strips by x, cut by y."""
    nodes = -(-len(members) // size)
    by_x = members[np.argsort(where[members, 0], kind="stable")]
    tiles: list[Ints] = []
    for strip in np.array_split(by_x, max(1, int(np.ceil(np.sqrt(nodes))))):
        by_y = strip[np.argsort(where[strip, 1], kind="stable")]
        tiles += np.array_split(by_y, max(1, -(-len(by_y) // size)))
    return tiles


def text_ranks(expressions: SparseCatalogue) -> Ints | None:
    """The rank of each row by its heaviest predicate: attribute, then low end; None if that says too little."""
    named, low, top = np.full(len(expressions), -1, np.int64), np.zeros(len(expressions)), np.zeros(len(expressions))
    heaviest(expressions.offsets, expressions.attributes, expressions.lo, expressions.weights, named, low, top)
    if not len(expressions) or top.mean() < _DECISIVE:
        return None
    ranks = np.empty(len(expressions), np.int64)
    ranks[np.lexsort((low, named))] = np.arange(len(expressions))
    return ranks


@kernel
def heaviest(offsets: Any, attribute: Any, lo: Any, weight: Any, named: Any, low: Any, top: Any) -> None:
    """Attribute, low end and weight of each row's heaviest predicate."""
    for row in range(len(offsets) - 1):
        for p in range(offsets[row], offsets[row + 1]):
            if named[row] < 0 or weight[p] > top[row]:
                top[row], named[row], low[row] = weight[p], attribute[p], lo[p]
