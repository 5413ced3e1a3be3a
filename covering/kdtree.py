"""A k-d tree over the dominance points with the coordinate-wise maximum of every subtree.

A subtree whose maximum is below the query in some coordinate holds no cover. The tree is balanced by medians
(kdtree_build.py) down to buckets of 64 adjacent points, which are scanned by packed words (packed_words.py). A search
reads it in steps of 64 children: it compares the words of their maxima as a block and verifies the candidates on the
maxima themselves. At 100k entries that is one block of 25 and usually one or two of 64; in the binary tree it was 12 to
75 nodes at 13 ns each.

The boxes of largest volume lie in front of the tree and are scanned first: most covered queries end there, and
the others lose 20 ns.

Additions and removals: static_with_tail.py. A search that has visited `node_cap` nodes, or an eighth as many as there
are buckets, stops descending and scans the packed words of the whole static part, so that adversarial inputs cost
hardly more than `packed`. With `node_budget` it gives up after that many nodes: covers in the front and in the tail are
always found, others only among the first nodes; such a check counts as `capped` and, since nothing is known about
the rest of the region, as a searched volume of 0.

With ε (the slides' open question "does approximation help k-d trees?"): a node is skipped when the part of the
search region below its maximum, in cells of the packed words' grid, is at most what is left of a
budget of ε times the region. Everything outside the skipped nodes is searched, so the searched fraction is at least
1 − ε; `stats.volume` has the fraction. This hardly ever saves time: a node with enough of the region below its maximum
to hold covers has a large share of it, so few nodes are skipped. Wide boxes, d = 6, n = 10⁵, ε = .1: 16 % fewer probes,
but 2.1 µs where exact search takes 1.7, because the shares cost more than they save. Where many nodes are skipped
(narrow boxes, d = 2), the covers lie in them: recall .04. `node_budget` finds more for less.

`find_covered` descends in the same way with the minimum of every subtree.

Cost: 0.1–1 µs per query of a batch at 100k entries and d ≤ 4; build O(n log n). A probe is a word
looked at, of an entry or of a node.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import Slots
from covering.given import Floats, check_limit
from covering.kdtree_build import BUCKET, bucket_order, fill_extremes, level_starts
from covering.packed import volumes
from covering.packed_words import (
    FIRST,
    covered_in,
    dominates,
    field_width,
    fields_per_word,
    lowest,
    pack,
    pack_stored,
    passing,
    scan_fields,
)
from covering.static_with_tail import StaticWithTail
from coverlay import Key, kernel

FRONT = 64  # largest boxes scanned before anything else
NODE_CAP = 2000  # nodes per search; more cost as much as scanning the words of 100k entries
_CAP_SHARE = 8  # nor more nodes than an eighth of the buckets: visiting a node costs more than scanning a bucket
_CAP_LEAST = 64


@kernel(inner=True, inline="always")
def _region(packed: Any, per_word: int, width: int, below: Floats, parts: Floats) -> None:
    """Per coordinate of a query's region, in cells: its lowest code − 1 into `below`, 1 / its length into `parts`."""
    top = (np.uint64(1) << np.uint64(width - 1)) - np.uint64(1)
    for w in range(packed.shape[0]):
        word = np.uint64(packed[w])
        for j in range(w * per_word, min((w + 1) * per_word, below.shape[0])):
            below[j] = float(word & top) - 1.0
            parts[j] = 1.0 / (float(top) - below[j])
            word >>= np.uint64(width)


@kernel(inner=True, inline="always")
def _share(node_words: Any, node: int, per_word: int, width: int, below: Floats, parts: Floats) -> float:
    """Fraction of the search region that lies below the node's maximum."""
    top = (np.uint64(1) << np.uint64(width - 1)) - np.uint64(1)
    share = 1.0
    for w in range(node_words.shape[0]):
        word = np.uint64(node_words[w, node])
        for j in range(w * per_word, min((w + 1) * per_word, below.shape[0])):
            share *= (float(word & top) - below[j]) * parts[j]
            word >>= np.uint64(width)
    return share


@kernel
def find_in_tree(
    state: Any, built: int, used: int, cap: int, gives_up: bool, epsilon: float, queries: Floats, found: Slots
) -> tuple[int, int, float, int]:
    """Search front, tail and tree, slots into `found`: (last slot, probes, sum of skipped fractions, caps reached).

    `gives_up`: at the cap the search ends, with nothing known about the rest.

    One function, because each call that passes the tuple on counts references to every array; a row of `queries` would
    do so at every turn. The last row of the maxima is that of the whole static part.
    """
    points, words, maxima, node_words, starts, grid, guards = state
    offset, scale = grid[0], grid[1]
    dimensions, levels = queries.shape[1], starts.shape[0] - 1
    bases, masks = np.empty(levels, np.int64), np.empty(levels, np.uint64)  # by level: nodes that are left to visit
    packed = np.empty(guards.shape[0], guards.dtype)
    below, parts = np.empty(dimensions), np.empty(dimensions)
    query = np.empty(dimensions)  # a copy: see above
    width, per_word = field_width(dimensions), fields_per_word(dimensions)
    front = min(FRONT, built)
    whole = starts[levels]
    if not gives_up:
        cap = min(cap, max(_CAP_LEAST, starts[1] // _CAP_SHARE))
    slot, probes, skipped, reached = -1, 0, 0.0, 0
    for i in range(queries.shape[0]):
        for j in range(dimensions):
            query[j] = queries[i, j]
        pack(query, offset, scale, guards, packed)
        slot, level, visited, left_out = -1, levels, 0, 0.0
        if built > 0 and dominates(maxima, whole, query):
            slot, looked = scan_fields(points, words, guards, query, packed, FIRST, front)
            probes += looked
            level = levels - 1
        if slot < 0 and level < levels:
            bases[level], masks[level] = starts[level], passing(node_words, guards, packed, starts[level], whole)
            probes += whole - starts[level]
            if epsilon > 0.0:
                _region(packed, per_word, width, below, parts)
        if slot < 0 and built < used:
            slot, looked = scan_fields(points, words, guards, query, packed, built, used)
            probes += looked
        while slot < 0 and level < levels:
            mask = masks[level]
            if mask == 0:
                level += 1
                continue
            node = bases[level] + lowest(mask)
            masks[level] = mask & (mask - np.uint64(1))
            if not dominates(maxima, node, query):
                continue
            visited += 1
            if visited > cap:
                reached += 1
                left_out = 1.0
                if gives_up:
                    break
                slot, looked = scan_fields(points, words, guards, query, packed, front, built)
                probes += looked
                left_out = 0.0
                break
            if epsilon > 0.0:
                share = _share(node_words, node, per_word, width, below, parts)
                if left_out + share <= epsilon:
                    left_out += share
                    continue
            low = BUCKET * (node - starts[level])
            if level == 0:
                low += front
                slot, looked = scan_fields(points, words, guards, query, packed, low, min(low + BUCKET, built))
            else:
                level -= 1
                low += starts[level]
                high = min(low + BUCKET, starts[level + 1])
                bases[level], masks[level] = low, passing(node_words, guards, packed, low, high)
                looked = high - low
            probes += looked
        found[i] = slot
        skipped += left_out
    return slot, probes, skipped, reached


@kernel
def _find_covered(state: Any, minima: Floats, built: int, used: int, query: Floats) -> Slots:
    """All slots that the query dominates, ascending."""
    points, words, _, _, starts, grid, guards = state
    packed = np.empty(guards.shape[0], guards.dtype)
    pack(query, grid[0], grid[1], guards, packed)
    most, guard = packed[0] | guards[0], guards[0]
    found = np.empty(used + 1, np.int64)  # one more: failing candidates are written too
    front = min(FRONT, built)
    count = covered_in(points, words, query, most, guard, FIRST, front, found, FIRST)
    node, level = starts[-2], starts.shape[0] - 2
    while node < starts[level + 1]:  # the next node of its level, or of the one above after the last child
        possible = True
        for j in range(query.shape[0]):
            possible &= minima[node, j] <= query[j]
        if possible and level > 0:
            node, level = starts[level - 1] + BUCKET * (node - starts[level]), level - 1
            continue
        if possible:
            low = front + BUCKET * node
            count = covered_in(points, words, query, most, guard, low, min(low + BUCKET, built), found, count)
        node += 1
        while level + 2 < starts.shape[0] and ((node - starts[level]) % BUCKET == 0 or node == starts[level + 1]):
            node, level = starts[level + 1] + (node - 1 - starts[level]) // BUCKET + 1, level + 1
    count = covered_in(points, words, query, most, guard, built, used, found, count)
    return found[:count].copy()


class KdTreeIndex(StaticWithTail):
    """Descends only where the maxima of a subtree leave room for a cover.

    >>> from covering.kdtree import KdTreeIndex
    >>> index = KdTreeIndex([[0, 100], [0, 100]], node_budget=16)  # gives up after 16 nodes
    >>> index.add(7, [[0, 50], [0, 50]])
    >>> index.find_cover([[1, 2], [3, 4]]), index.stats.capped
    (7, 0)
    """

    name = "kdtree"
    touches = "nodes"
    compiled_with = ("node_budget",)
    gives_up_with = {"node_budget": None}  # noqa: RUF012
    takes_epsilon = True

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        node_cap: Annotated[
            int, Key("nodes of the tree that a search visits before it scans the rest", "nodes")
        ] = NODE_CAP,
        node_budget: Annotated[
            int | None, Key("nodes that it visits before it gives up; absent: never", "nodes")
        ] = None,
    ) -> None:
        super().__init__(domain, epsilon)
        check_limit("node_cap", node_cap)
        if node_budget is not None:
            check_limit("node_budget", node_budget)
        self.gives_up, self.cap = node_budget is not None, node_budget
        self.node_cap = node_cap if node_budget is None else node_budget
        self.fallbacks = 0  # searches that reached the cap and scanned
        self._arrange_done()
        self._arrays_moved()

    @classmethod
    def charged_as(cls) -> tuple[str, ...]:
        """With an ε a search computes shares of the region, so its probes cost more."""
        return cls.name, f"{cls.name}-epsilon"

    @property
    def choice(self) -> str:
        return self.charged_as()[self.epsilon > 0.0]

    def _arranged(self, points: Floats) -> Slots:
        box = np.empty((2 * self.attributes, 2))
        box[0::2], box[1::2] = -self.domain[:, ::-1], self.domain
        largest: Slots = np.argsort(-volumes(points, self.domain), kind="stable")
        rest = largest[FRONT:]
        return np.concatenate([largest[:FRONT], rest[bucket_order(points[rest], box)]])

    def _arrange_done(self) -> None:
        treed = self.points[FRONT : self._built]
        self._starts = level_starts.py_func(len(treed))  # a few numbers: not worth a compilation
        nodes, dimensions = int(self._starts[-1]), 2 * self.attributes
        self._minima = np.empty((nodes, dimensions))
        self._maxima = np.full((nodes + 1, dimensions), -np.inf)
        self._node_words = np.empty((self._fields.words, nodes), self._words.dtype)
        if self._built:  # every settings check makes an empty index, which must compile nothing
            fill_extremes(treed, self._starts, self._minima, self._maxima)
            self._maxima[nodes] = self.points[: self._built].max(axis=0)
            pack_stored(self._maxima, 0, nodes, self._fields.kernel, self._node_words)

    def _arrays_moved(self) -> None:
        nodes = self._maxima, self._node_words, self._starts
        self._state = (self.points, self._words, *nodes, self._fields.grid, self._fields.guards)

    def search_into(self, queries: Floats, found: Slots) -> None:
        how = self.node_cap, self.gives_up, self.epsilon
        _, probes, skipped, reached = find_in_tree(self._state, self._built, self.used, *how, queries, found)
        self.stats.probes += probes
        self.stats.volume += len(queries) - skipped
        if self.gives_up:
            self.stats.capped += reached
        else:
            self.fallbacks += reached

    def search_covered(self, query: Floats) -> Slots:
        return _find_covered(self._state, self._minima, self._built, self.used, query)

    def structure_bytes(self) -> int:
        return super().structure_bytes() + self._maxima.nbytes + self._minima.nbytes + self._node_words.nbytes

    def check_structure(self) -> None:
        super().check_structure()
        static = self.points[: self._built]
        assert (static[~np.isnan(static[:, 0])] <= self._maxima[-1]).all()
        treed = static[FRONT:]
        size = BUCKET  # points under a node of the level
        for start, stop in pairwise(self._starts.tolist()):
            for node in range(start, stop):
                inside = treed[size * (node - start) : size * (node - start + 1)]
                alive = inside[~np.isnan(inside[:, 0])]
                assert (alive <= self._maxima[node]).all()
                assert (alive >= self._minima[node]).all()
            assert size * (stop - start) >= len(treed)
            size *= BUCKET
