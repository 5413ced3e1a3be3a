"""BE-Tree: two-phase rigid space cutting (Sadoghi & Jacobsen, SIGMOD 2011), the peer of BE*-Tree.

A p-node picks an attribute; its c-directory halves the attribute's domain again and again. An expression lives in the
smallest cell that contains its predicate. Cells are fixed by the domain, so data in a small part of it cost one
level per halving, and cells without data are kept: BE*-Tree was made to avoid this. Matching visits every relevant
bucket (BE-Tree has no top-k); the k best are kept.

This class also owns what the two trees share: growing arrays, feedback, recycling, invariants.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from coverlay import CoverlayError
from topk.checks import Floats, Ints
from topk.kernels.rows import fitted
from topk.predicates import SparseCatalogue
from topk.sparse.be.arena import (
    BLOCK,
    BUCKETS,
    CAPACITY,
    HASHED,
    LARGEST,
    PNODES,
    RECURSIVE,
    RIGID,
    ROW,
    WORK,
    allocate,
    grown,
)
from topk.sparse.be.check import check_tree
from topk.sparse.be.delete import delete_row
from topk.sparse.be.insert import insert_rows
from topk.sparse.be.layout import in_visiting_order, members
from topk.sparse.be.match import match
from topk.sparse.blocks import Codes
from topk.sparse.contract import Scratch, SparseIndex, columns_of
from topk.sparse.event import Event
from topk.sparse.rows import Rows
from topk.sparse.scores import HELP, LARGEST_USUAL, Score

ALPHA, BETA = 0.1, 4.0  # how BE* splits buckets and lets them grow; see `BEStarTree.options`
_EXPECTED = 0.001  # share of matches, where none is given
_WINDOW = 1000  # events after which badly ranked p-nodes are recycled
_FINEST = 2.0**-30  # resolution of a domain, as a share of it: no path has more than 30 halvings

AUTO, TABLE = "auto", "table"  # capacities: ours, and those of the paper's Table II(a)
RANKINGS = ("count", "recursive", "histogram")

OPTIONS = {
    "score": HELP,
    "capacity": "rows of an l-node before it is cut, or auto or table: by match_probability",
    "match_probability": "expected share of matches, for capacity = auto (20, from 10 % on 160) or table (5 below 1 %)",
    "window": "events between two recyclings of badly ranked p-nodes; 0 for never",
}


def _rows_per_node(capacity: int | str, match_probability: float) -> int:
    """Table II(a). Below 1 % it has 5, ours 20: an l-node's expressions lie side by side, so 20 is faster there too."""
    if not 0.0 < match_probability <= 1.0:
        raise CoverlayError(f"match_probability must be above 0 and at most 1, not {match_probability}")
    if capacity == TABLE and match_probability < 0.01:
        return 5
    if capacity in (AUTO, TABLE):
        return 20 if match_probability < 0.1 else 160
    if not isinstance(capacity, Integral) or capacity < 1:
        raise CoverlayError(f"capacity must be {AUTO}, {TABLE} or a whole number from 1 on, not {capacity!r}")
    if match_probability != _EXPECTED:
        raise CoverlayError(f"match_probability has no effect with capacity = {capacity}; give one of the two")
    return int(capacity)


class BETree(SparseIndex):
    """Partition by attribute, then halve the attribute's domain.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("be-tree", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "be-tree"
    options: ClassVar[Mapping[str, str]] = OPTIONS
    rigid: ClassVar[bool] = True
    prunes: ClassVar[bool] = False

    def __init__(
        self,
        catalogue: SparseCatalogue,
        score: str | Score = "sum",
        capacity: int | str = AUTO,
        match_probability: float = _EXPECTED,
        window: int = _WINDOW,
        *,
        alpha: float = ALPHA,
        beta: float = BETA,
        exhaustive: bool = True,
        batch: bool = False,
        slots: int = 32,
        usual_bound: bool = True,
        ranking: str = RANKINGS[0],
    ) -> None:
        super().__init__(catalogue, score)
        size = _rows_per_node(capacity, match_probability)
        if window < 0:
            raise CoverlayError(f"window must be 0 or more, not {window}")
        if slots < 0:
            raise CoverlayError(f"slots must be 0 or more, not {slots}")
        if ranking not in RANKINGS:
            raise CoverlayError(f"ranking must be one of {', '.join(RANKINGS)}, not {ranking!r}")
        self._window, self._since = int(window), 0
        self.recycled = 0  # expressions that `recycle` has reinserted
        ranked = RANKINGS.index(ranking)
        knobs = np.array([size, alpha, beta, self.rigid, usual_bound, ranked > 0], np.float64)
        self._cutting = tuple(asked or None for asked in (self.rigid, not exhaustive, ranked > 1))  # see `cluster`
        shared = 1 << (max(int(slots) or self.dimensions, 1) - 1).bit_length()
        domain = domains(self.store.rows, self.dimensions)
        reference = usual_weights(self.store.rows, self.dimensions)
        self._codes = Codes(self.store, self._live())
        self._tree = allocate(knobs, shared, domain, reference, self._codes.at, self._scoring)
        if batch:
            # All rows in the root's l-node, then one cascade of partitioning and clustering.
            self._tree.knobs[CAPACITY] = max(self.store.used, 1)
            self._insert_all(self._live())
            self._tree.knobs[CAPACITY] = self._tree.bucket[0].cap = size
            if self._tree.node[0].count > size:
                self._tree.work[0], self._tree.meta[WORK] = 0, 1
                self._insert_all(np.empty(0, np.int64))
        else:
            self._insert_all(self._live())
        self.lay_out()
        self.stats.rebuilds += 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._tree = self._tree._replace(scoring=self._scoring)

    def _live(self) -> Ints:
        return np.flatnonzero(self.store.rows.length[: self.store.used] >= 0)

    def lay_out(self) -> None:
        """Put the nodes and the packed copies into the order of a search."""
        self._tree = in_visiting_order(self._tree)
        entries, listed = self._tree.entries, members(self._tree)
        self._codes = Codes(self.store, entries[listed, ROW].astype(np.int64))
        self._tree = self._tree._replace(at=self._codes.at)
        entries[listed, BLOCK] = self._codes.at[entries[listed, ROW]]

    # ---- updates ----------------------------------------------------------------------------------------

    def _insert_all(self, which: np.ndarray) -> None:
        rows, done = self.store.rows, 0
        while True:
            done, needed = insert_rows(self._tree, rows, which, done, *self._cutting)
            if needed >= 0:
                fresh = min(needed, max(self.dimensions, 1)) + 1024
                self._tree = grown(self._tree, fresh, fresh, 8 * needed + 4096)
            elif done < len(which):
                self._tree = grown(self._tree, 1024, 1024, 4 * int(self._tree.meta[LARGEST]) + 4096)
            else:
                return

    def insert(self, row: int) -> None:
        if row >= len(self._tree.home):
            self._tree = self._tree._replace(home=fitted(self._tree.home, len(self.store.rows.ids), -1))
        self._codes.add(row)
        self._tree = self._tree._replace(at=self._codes.at)
        self._insert_all(np.array([row]))
        if self._codes.mostly_waste:
            self.lay_out()

    def delete(self, row: int) -> None:
        self._take_out(row)
        self._codes.remove(row)

    def _take_out(self, row: int) -> None:
        # Merging may move up to a capacity of rows into a new run.
        self._tree = grown(self._tree, 0, 0, 4 * int(self._tree.knobs[CAPACITY]) + 64)
        delete_row(self._tree, self.store.rows, row)

    # ---- queries ----------------------------------------------------------------------------------------

    def search(self, event: Event, k: int, scratch: Scratch) -> int:
        learn = scratch.first and self._window > 0
        rows, packed, columns = self.store.rows, self._codes.packed, columns_of(event)
        prune = self.prunes and k < len(self)  # where all matches are wanted bounds would be read in vain
        return match(self._tree, rows, packed, columns, self._extra(event), scratch.workspace, k, prune, learn)

    def _maintain(self, queries: int) -> None:
        self._since += queries
        if self._window and self._since >= self._window:
            self.recycle()

    def ranks(self) -> Floats:
        """The rank of every live p-node (gain − loss, §V-B); NaN where there is none.

        Our gain is the number of expressions below it. Recursive, as published: gain is the predicates that the
        expressions of an l-node have in common (those of its path), and the ranks of all p-nodes below are added. The
        l-nodes of a c-directory share a window of events.
        """
        pnodes = self._tree.pnode[: int(self._tree.meta[PNODES])]
        live, loss = pnodes.owner >= 0, pnodes.loss.astype(np.float64) / np.maximum(pnodes.seen, 1.0)
        if not self._tree.knobs[RECURSIVE]:
            return np.where(live, pnodes.count - loss, np.nan)
        buckets = self._tree.bucket[: int(self._tree.meta[BUCKETS])]
        leaves = buckets[(buckets.level > 0)]
        gain = np.zeros(len(pnodes))
        np.add.at(gain, leaves.pnode, leaves.level * self._tree.node.count[: len(buckets)][buckets.level > 0])
        rank = np.where(live, gain - loss, 0.0)
        level = np.where(live, buckets.level[pnodes.owner], -1)
        for depth in range(int(level.max(initial=0)), 0, -1):
            here = np.flatnonzero(level == depth)
            np.add.at(rank, buckets.pnode[pnodes.owner[here]], rank[here])
        return np.where(live, rank, np.nan)

    def recycle(self) -> int:
        """Reinsert the expressions below p-nodes whose loss exceeds their gain; returns how many."""
        ranks = self.ranks()
        bad = np.flatnonzero(ranks < 0.0)
        self._tree.pnode.rank[: len(ranks)] = np.where(np.isnan(ranks), 0.0, ranks)
        rows = self._below(bad)
        for row in rows.tolist():
            self._take_out(row)
        self._tree.pnode.loss = self._tree.pnode.seen = 0.0
        self._since = 0
        self._insert_all(rows)
        self.recycled += len(rows)
        return len(rows)

    def _below(self, pnodes: Ints) -> Ints:
        """Rows whose path goes through one of the p-nodes."""
        t, count = self._tree, int(self._tree.meta[PNODES])
        if not len(pnodes):
            return np.empty(0, np.int64)
        owner = t.pnode.owner[:count]
        above = np.where(owner >= 0, t.bucket.pnode[owner], -1)  # -1, none, is the last place
        through = np.zeros(count + 1, np.bool_)
        through[pnodes] = True
        before = 0
        while (now := int(through.sum())) > before:  # one level deeper at a time
            before = now
            through[:count] |= through[above]
        rows = np.sort(np.fromiter(self.store.row_of.values(), np.int64, len(self.store.row_of)))
        return rows[through[t.bucket.pnode[t.home[rows]]]]

    @property
    def overhead(self) -> int:
        return self._codes.nbytes + sum(int(column.nbytes) for column in self._tree if isinstance(column, np.ndarray))

    def check(self) -> None:
        self.store.check()
        self._codes.check()
        assert self._tree.meta[WORK] == 0, "no bucket waits for a split"
        assert self._tree.meta[HASHED] <= len(self._tree.keys), "the hash table has room"
        assert bool(self._tree.knobs[RIGID]) == self.rigid, "cutting is as the class says"
        check_tree(self._tree, self.store)


def domains(rows: Rows, dimensions: int) -> Floats:
    """Low, high and resolution per attribute; domains of whole numbers are cut to single values, unless too wide."""
    domain = np.tile([np.inf, -np.inf, 0.0], (max(dimensions, 1), 1))
    whole = np.ones(max(dimensions, 1), np.bool_)
    for bounds in (rows.lo, rows.hi):
        finite = np.isfinite(bounds)
        named, values = rows.attribute[finite], bounds[finite]
        np.minimum.at(domain[:, 0], named, values)
        np.maximum.at(domain[:, 1], named, values)
        whole[named[values != np.floor(values)]] = False
    unknown = domain[:, 0] > domain[:, 1]
    domain[unknown, :2] = 0.0
    domain[:, 1] += whole  # the last value needs a cell of its own
    finest = domain[:, 1] * _FINEST - domain[:, 0] * _FINEST  # not the width times it, which may overflow
    domain[:, 2] = np.where(whole, np.maximum(finest, 1.0), finest)
    return domain


def usual_weights(rows: Rows, dimensions: int) -> Floats:
    """Mean weight of the predicates on each attribute; 1 where nothing is known or it is 0."""
    counts = np.bincount(rows.attribute, minlength=max(dimensions, 1))
    sums = np.bincount(rows.attribute, rows.weight, minlength=max(dimensions, 1))
    means = sums / np.maximum(counts, 1)
    return np.where(means > 0.0, np.minimum(means, LARGEST_USUAL), 1.0)
