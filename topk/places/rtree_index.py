"""What the matchers over the R-tree of places share: loading, growing, updates, invariants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from coverlay import unknown_name
from topk.answers import Found, Stats
from topk.checks import Floats, Ints
from topk.kernels.rows import fitted
from topk.places.catalogue import PlacedCatalogue, reordered
from topk.places.contract import Ask, Placed, PlacedIndex, Scratch, rows_of
from topk.places.forest import NEXT, check_forest, empty_forest, find_group, grown_forest
from topk.places.rtree import AXES, DIVIDED, FAN, FREE, LEAF, LEAST, PARENT, ROOT, SIZE, USED, PlaceTree
from topk.places.rtree_packing import fill_from, load_level, packed_levels, text_ranks
from topk.places.rtree_updates import insert, insert_all, remove
from topk.predicates import SparseCatalogue
from topk.sparse.rows import ExpressionStore

# How a catalogue is loaded.
LAYERS, PLACES, INSERTION = "layers", "places", "insertion"
PACKINGS = (LAYERS, PLACES, INSERTION)
PLACE_AXES, ALL_AXES = len(AXES) - 1, len(AXES)


def allocated(nodes: int, rows: int, divided: int) -> PlaceTree:
    meta = np.zeros(4, np.int64)
    meta[FREE], meta[DIVIDED] = -1, divided
    return PlaceTree(
        np.zeros((nodes, 3), np.int64),
        np.zeros((nodes, FAN + 1), np.int64),
        np.zeros((nodes, FAN + 1, len(AXES))),
        np.zeros((nodes, 2 * len(AXES))),
        np.full(max(rows, 1), -1, np.int64),
        meta,
        empty_forest(),
    )


def grown_levels(places: Floats) -> list[tuple[Ints, Ints]]:
    """The levels, as `packed_levels` returns them, of a tree of places built by insertion."""
    # Every node but the root has at least LEAST children.
    t = allocated(2 * len(places) // LEAST + 16, len(places), PLACE_AXES)
    t.node[0], t.meta[USED] = (-1, 0, 1), 1
    insert_all(t, Placed(ExpressionStore(SparseCatalogue.empty(1)).rows, places), len(places))
    levels: list[tuple[Ints, Ints]] = []
    nodes = np.array([t.meta[ROOT]])
    while True:
        below = np.concatenate([t.child[n, : t.node[n, SIZE]] for n in nodes])
        ends = np.cumsum(t.node[nodes, SIZE])
        if t.node[nodes[0], LEAF]:
            return [(below, ends), *reversed(levels)]
        levels.append((np.arange(len(below)), ends))
        nodes = below


class RTreeIndex(PlacedIndex):
    """An R-tree of the places; `token` says whether nodes summarise the predicates below them."""

    token: ClassVar[bool] = True
    options: ClassVar[Mapping[str, str]] = {
        **PlacedIndex.options,
        "packing": "how the tree is loaded: layers of α (and by predicates), by places, or by insertion, places only",
    }

    def __init__(self, catalogue: PlacedCatalogue, semantics: str = "similar", *, packing: str = LAYERS) -> None:
        if packing not in PACKINGS:
            raise unknown_name("packing", packing, PACKINGS)
        self._divided = ALL_AXES if packing == LAYERS else PLACE_AXES
        spots = np.column_stack([catalogue.places, catalogue.alpha])
        if packing == INSERTION:
            levels = grown_levels(rows_of(catalogue))
        elif packing == PLACES:
            levels = packed_levels(spots, None, layers=0)
        else:
            levels = packed_levels(spots, text_ranks(catalogue.expressions) if self.token else None)
        order = levels[0][0]
        # Rows are stored leaf by leaf: what is compared together lies together.
        super().__init__(reordered(catalogue, order), semantics)
        self._build([(np.arange(len(order)), levels[0][1]), *levels[1:]])
        self.stats.rebuilds += 1

    @classmethod
    def beside(cls, other: RTreeIndex) -> Self:
        """This method on another index's tree, without a copy; from then on neither may be updated."""
        assert cls.token == other.token, "the trees hold the same"
        twin = cls.__new__(cls)
        vars(twin).update(vars(other), stats=Stats())
        twin._nobody_searches()
        return twin

    def _build(self, levels: list[tuple[Ints, Ints]]) -> None:
        """Make the nodes level by level, then their forests, children first."""
        total = sum(len(ends) for _, ends in levels)
        self._tree = allocated(2 * total + 16, len(self.store.rows.ids), self._divided)
        t, placed = self._tree, self.placed
        before = np.empty(0, np.int64)
        order: list[Ints] = []
        for height, (members, ends) in enumerate(levels):
            nodes = np.empty(len(ends), np.int64)
            load_level(t, placed, members, ends, before, int(height == 0), nodes)
            before = nodes
            order.append(nodes)
        t.meta[ROOT] = before[0]
        if not self.token:
            return
        done, listed = 0, np.concatenate(order)
        # Most attributes occur once in a leaf: make room for most of the forests at once.
        predicates = self.store.filled
        forest = grown_forest(self._tree.forest, len(self._tree.node), predicates, 3 * predicates // 2)
        self._tree = self._tree._replace(forest=forest)
        self._grow_forest()
        while (done := fill_from(self._tree, placed, listed, done, self._widest)) < len(listed):
            self._grow_forest(factor=16)

    @property
    def _widest(self) -> int:
        """Attributes that one node can know."""
        return max(self.dimensions, 1)

    def _grow_forest(self, factor: int = 4) -> None:
        """Room for the forests of a few nodes, the widest possible: an update refills at most one per level."""
        groups = factor * self._widest
        forest = grown_forest(self._tree.forest, len(self._tree.node), groups, groups * 2 * (FAN + 1))
        self._tree = self._tree._replace(forest=forest)

    def _reserve(self) -> None:
        """Before an update: nodes for a split per level, rows, and forests."""
        t = self._tree
        if int(t.meta[USED]) + 16 > len(t.node):
            self._tree = t = PlaceTree._make([*(fitted(column, 2 * len(t.node)) for column in t[:4]), *t[4:]])
        if len(self.store.rows.ids) > len(t.home):
            self._tree = t = t._replace(home=fitted(t.home, len(self.store.rows.ids), -1))
        if self.token:
            self._grow_forest(factor=16)

    def insert(self, row: int) -> None:
        self._reserve()
        insert(self._tree, self.placed, row, self.token or None)

    def delete(self, row: int) -> None:
        self._reserve()
        again = np.empty(FAN + 1, np.int64)
        count = remove(self._tree, self.placed, row, self.token or None, again)
        for other in again[:count].tolist():
            RTreeIndex.insert(self, other)  # only into the tree: subclasses have it already

    @property
    def overhead(self) -> int:
        own = sum(int(column.nbytes) for column in self._tree[:6])
        return own + (sum(int(column.nbytes) for column in self._tree.forest) if self.token else 0)

    def check(self) -> None:
        self.store.check()
        t = self._tree
        rows = self._check_node(int(t.meta[ROOT]), -1)[0]
        assert sorted(rows) == sorted(self.store.row_of.values()), "every subscription is in one leaf"
        if self.token:
            check_forest(t.forest)
        assert not any(scratch.workspace.marks.any() for scratch in self._spare), "scratch is clean"

    def _check_node(self, n: int, parent: int) -> tuple[list[int], int]:
        """Rows and height of a node."""
        t = self._tree
        assert t.node[n, PARENT] == parent, f"node {n} knows its parent"
        size = int(t.node[n, SIZE])
        assert size <= FAN, f"node {n} does not overflow"
        children = t.child[n, :size].tolist()
        if t.node[n, LEAF]:
            assert parent < 0 or size >= min(LEAST, len(self) // 4), f"leaf {n} is filled"
            for i, row in enumerate(children):
                assert t.home[row] == n, f"row {row} knows its leaf"
                assert (t.spot[n, i] == self._place[row]).all(), f"leaf {n} repeats the place of row {row}"
            rows, height = children, 0
        else:
            assert size >= 1, f"node {n} is not empty"
            below = [self._check_node(c, n) for c in children]
            assert len({height for _, height in below}) == 1, "all leaves are equally deep"
            rows, height = [row for part, _ in below for row in part], below[0][1] + 1
        if rows:
            place = self._place[rows]
            for axis, (low, high) in enumerate(AXES):
                hull = (place[:, axis].min(), place[:, axis].max())
                assert (t.rect[n, low], t.rect[n, high]) == hull, f"rectangle of node {n}, axis {axis}"
        if self.token:
            self._check_summaries(n, rows)
        return rows, height

    def _check_summaries(self, n: int, rows: list[int]) -> None:
        """Γ of a node is the hull and largest weight of what is below it, per attribute."""
        t, r = self._tree, self.store.rows
        expected: dict[int, list[float]] = {}
        for row in rows:
            share = 1.0 - self._place[row, 2]
            for p in range(int(r.start[row]), int(r.start[row] + r.length[row])):
                old = expected.setdefault(int(r.attribute[p]), [np.inf, -np.inf, 0.0])
                weight = share * r.weight[p]
                old[:] = min(old[0], r.lo[p]), max(old[1], r.hi[p]), max(old[2], weight)
        known, g = 0, int(t.forest.first[n])
        while g >= 0:
            known, g = known + 1, int(t.forest.group[g, NEXT])
        assert known == len(expected), f"node {n} knows the attributes below it"
        for attribute, summary in expected.items():
            g = find_group(t.forest, n, attribute)
            assert g >= 0, f"node {n} knows attribute {attribute}"
            assert t.forest.summary[g].tolist() == summary, f"summary of attribute {attribute} in node {n}"


class TokenTree(RTreeIndex):
    """A tree whose nodes summarise predicates, and the kernel that searches it."""

    kernel: Callable[..., Found]
    refined: ClassVar[int]  # when a node's bound is refined, see `ri_tree`
    tight: bool = True  # whether bounds are those of Eq. 8

    def search(self, columns: Any, ask: Ask, k: int, scratch: Scratch) -> Found:
        space = scratch.with_marks(max(len(self._tree.home), len(self._tree.node)))
        return self.kernel(self._tree, self.placed, columns, ask, k, space, self.refined, self.tight)
