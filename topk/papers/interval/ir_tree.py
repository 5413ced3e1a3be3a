"""IR-tree (VLDB 2008, section 3.1): an interval tree whose nodes index their intervals with an R-tree in score order.

Property: all intervals of an interval-tree node contain its centre, so no extent of the node's R-tree has a
hole, and getnext() on it costs O(b log_b n). A query opens the R-trees on its path and takes the best head
again and again: O((k + log n)·b·log_b n) for k results, in O(n) space.

Ours stops the skeleton at buckets of b intervals (one R-tree leaf, so the bound holds), which keeps it
small. Updates: insertions descend the skeleton; a bucket that outgrows b is split at its median endpoint.
The skeleton is rebuilt when half of it has been deleted, or when a run of sorted insertions has made it
deeper than a balanced one by a constant factor. A score update is a deletion and an insertion in one
R-tree, without touching the skeleton.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.papers.interval import score_forest, skeleton, slot_pool
from topk.papers.interval.contract import (
    BRANCHING,
    COMPARED,
    NODES,
    QUEUED,
    Entries,
    IntervalIndex,
    Space,
    array_bytes,
    branching_factor,
    not_held,
)
from topk.papers.interval.score_forest import ABSENT, MAX_DEPTH
from topk.papers.interval.slot_pool import NOTHING

_LANES = 96  # the longest path we let the skeleton have; see _too_deep
_SPLITTABLE = 4  # least b whose nodes are split; with 2 or 3, halves are soon full again and trees as deep as entries
_SLACK = 16  # levels above 2·log2(n) before a rebuild: sorted insertions then pay O(b) rebuilt entries each


@kernel
def _locate(centre: Any, left: Any, right: Any, lo: float, hi: float) -> Any:
    """The node that must hold [lo, hi], or (parent, side) of a node to be made, and the depth."""
    node, depth = 0, 0
    while True:
        c = centre[node]
        depth += 1
        if np.isnan(c) or (lo <= c and c <= hi):
            return node, 0, depth
        child = left[node] if hi < c else right[node]
        if child == NOTHING:
            return node, (-1 if hi < c else 1), depth
        node = child


@kernel(inner=True)
def _next(f: Any, low: float, high: float, nodes: Any, slots: Any, depth: int, work: Any) -> int:
    """Move one lane's traversal to its next entry that meets [low, high]; returns the new depth, −1 at the end."""
    while depth >= 0:
        node = nodes[depth]
        at = f.start[node] + slots[depth]
        end = f.start[node] + f.filled[node]
        while at < end and not (f.lo[at] <= high and low <= f.hi[at]):
            at += 1
        work[COMPARED] += at - f.start[node] - slots[depth] + 1
        slots[depth] = at - f.start[node]
        if at == end:
            depth -= 1
            if depth >= 0:
                slots[depth] += 1
        elif f.leaf[node]:
            return depth
        else:
            depth += 1
            nodes[depth] = f.ref[at]
            slots[depth] = 0
            work[NODES] += 1
    return -1


@kernel
def _open_lanes(f: Any, tree: Any, roots: Any, low: float, high: float, work: Any) -> Any:
    """(node path, slot path, depth) of a traversal per R-tree that [low, high] reaches, and their number."""
    nodes, slots = np.empty((_LANES, MAX_DEPTH), np.int32), np.empty((_LANES, MAX_DEPTH), np.int32)
    depths, lane = np.empty(_LANES, np.int32), 0
    stack, waiting = skeleton.start(tree)
    while waiting > 0:
        node, waiting = skeleton.step(tree, low, high, stack, waiting)
        if roots[node] == NOTHING:
            continue
        if lane == len(depths):  # an interval may reach more R-trees than a path has
            nodes = np.concatenate((nodes, np.empty_like(nodes)))
            slots = np.concatenate((slots, np.empty_like(slots)))
            depths = np.concatenate((depths, np.empty_like(depths)))
        nodes[lane, 0], slots[lane, 0] = roots[node], 0
        work[NODES] += 1
        depths[lane] = _next(f, low, high, nodes[lane], slots[lane], np.int64(0), work)
        if depths[lane] >= 0:
            lane += 1
    return nodes, slots, depths, lane


@kernel
def _merge(f: Any, low: float, high: float, paths: Any, lanes: Any, out: Any, work: Any) -> int:
    """Take the best head over all lanes; for a value a few dozen at most, so a linear search beats a heap."""
    nodes, slots, depths = paths
    found = 0
    while found < len(out) and lanes[0] > 0:
        best, best_at = 0, -1
        work[QUEUED] += lanes[0]
        for lane in range(lanes[0]):
            depth = depths[lane]
            at = f.start[nodes[lane, depth]] + slots[lane, depth]
            if best_at < 0 or score_forest.after(f.score[best_at], f.id[best_at], f.score[at], f.id[at]):
                best, best_at = lane, at
        out[found] = f.ref[best_at]
        found += 1
        slots[best, depths[best]] += 1
        depths[best] = _next(f, low, high, nodes[best], slots[best], np.int64(depths[best]), work)
        if depths[best] < 0:  # exhausted: the last lane takes its place
            lanes[0] -= 1
            last = lanes[0]
            depths[best], nodes[best], slots[best] = depths[last], nodes[last], slots[last]
    return found


@kernel
def _plant(f: Any, offsets: Any, members: Any, data: Any, roots: Any) -> None:
    rows, lo, hi, scores, ids = data
    for v in range(len(roots)):
        m = members[offsets[v] : offsets[v + 1]]
        roots[v] = score_forest.bulk(f, rows[m], lo[m], hi[m], scores[m], ids[m], True)


class IRTree(IntervalIndex):
    name = "ir-tree"
    calibrated = True
    dynamic = True
    options = {"b": "branching factor of the R-trees"}  # noqa: RUF012

    def __init__(self, entries: Entries, b: int = BRANCHING) -> None:
        super().__init__()
        self.b = branching_factor(b)
        self._build(entries.ranked())

    def _build(self, ranked: Entries) -> None:
        n = len(ranked.rows)
        (centre, left, right), node_of = skeleton.build(ranked.lo, ranked.hi, self.b)
        nodes = len(centre)
        offsets, members = skeleton.group(node_of, np.arange(n), nodes)
        inner = int(np.ceil(np.diff(offsets) / (self.b - 1)).sum()) + 2 * nodes
        self._forest = slot_pool.empty(n + inner + 64, n // self.b + inner + 64, self.b)
        roots = np.full(nodes, NOTHING, np.int32)
        _plant(self._forest, offsets, members, tuple(ranked), roots)
        self._tree = (centre, left, right, roots)
        self._size = self._live_peak = n

    def __len__(self) -> int:
        return self._size

    # ---- queries ----------------------------------------------------------------------------------------

    def _open(self, low: float, high: float) -> Any:
        tree = skeleton.Skeleton(*self._tree[:3])
        nodes, slots, depths, lanes = _open_lanes(self._forest, tree, self._tree[3], low, high, self.work)
        return low, high, (nodes, slots, depths), np.array([lanes])

    def _advance(self, state: Any, out: Ints) -> int:
        return int(_merge(self._forest, *state, out, self.work))

    # ---- updates ----------------------------------------------------------------------------------------

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        self._forest = slot_pool.larger(self._forest, 4 * MAX_DEPTH * self.b, 2 * MAX_DEPTH)
        if len(self._tree[0]) == 0:
            self._new_node(NOTHING, 0)
        node, side, depth = _locate(*self._tree[:3], lo, hi)
        if side:
            node = self._new_node(node, side)
            depth += 1
        if self.b < _SPLITTABLE:
            self._pack_with(node, (row, lo, hi, score, id))
        else:
            root = int(self._tree[3][node])
            self._tree[3][node] = score_forest.insert(self._forest, root, row, lo, hi, score, id)
        self._size += 1
        self._live_peak = max(self._live_peak, self._size)
        if np.isnan(self._tree[0][node]) and self._forest.leaf[self._tree[3][node]] == 0:
            self._split_bucket(node)
        if depth > min(2 * np.log2(self._size + 1) + _SLACK, _LANES - 2):
            self._build(self.entries().ranked())

    def delete(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        roots, root, node = self._tree[3], ABSENT, 0
        if len(roots):
            node, side, _ = _locate(*self._tree[:3], lo, hi)
            root = ABSENT if side else score_forest.delete(self._forest, int(roots[node]), score, id)
        if root == ABSENT:
            raise not_held(self.name, row, lo, hi)
        roots[node] = root
        self._size -= 1
        if 2 * self._size < self._live_peak - 2 * self.b:
            self._build(self.entries().ranked())

    def _new_node(self, parent: int, side: int) -> int:
        """An empty bucket below `parent`."""
        centre, left, right, roots = self._tree
        node = len(centre)
        left, right, roots = (np.append(column, np.int32(NOTHING)) for column in (left, right, roots))
        self._tree = (np.append(centre, np.nan), left, right, roots)
        if side:
            self._tree[1 if side < 0 else 2][parent] = node
        return node

    def _split_bucket(self, node: int) -> None:
        """Give an outgrown bucket a centre, the median of its endpoints, and two buckets below it."""
        entries = self._entries_of(int(self._tree[3][node]))
        c = float(np.sort(np.concatenate((entries.lo, entries.hi)))[len(entries.rows)])
        self._tree[0][node] = c
        self._drop(int(self._tree[3][node]))
        for side, mask in ((-1, entries.hi < c), (1, entries.lo > c)):
            if mask.any():
                self._regrow(self._new_node(node, side), entries.take(mask))
        here = (entries.lo <= c) & (c <= entries.hi)
        self._regrow(node, entries.take(here))

    def _pack_with(self, node: int, entry: tuple[int, float, float, float, int]) -> None:
        """Add an entry by packing a node's R-tree again."""
        root = int(self._tree[3][node])
        entries = Entries(*(np.append(*pair) for pair in zip(self._entries_of(root), entry, strict=True)))
        if root != NOTHING:
            self._drop(root)
        self._regrow(node, entries.ranked())

    def _regrow(self, node: int, entries: Entries) -> None:
        self._forest = slot_pool.larger(self._forest, 4 * len(entries.rows), 2 * len(entries.rows) + 4)
        self._tree[3][node] = score_forest.bulk(self._forest, *entries, False)

    def _drop(self, root: int) -> None:
        f = self._forest
        if not f.leaf[root]:
            for at in range(f.start[root], f.start[root] + f.filled[root]):
                self._drop(int(f.ref[at]))
        slot_pool.free_node(f, root)

    def _entries_of(self, root: int) -> Entries:
        f = self._forest
        at = np.array(score_forest.members(f, root), dtype=np.int64)
        return Entries(f.ref[at].astype(np.int64), f.lo[at], f.hi[at], f.score[at], f.id[at])

    def entries(self) -> Entries:
        """All entries, tree by tree."""
        parts = [self._entries_of(int(root)) for root in self._tree[3] if root != NOTHING]
        columns: list[Any] = [np.concatenate(column) for column in zip(*parts, Entries.none(), strict=True)]
        return Entries(*columns)

    # ---- accounts ---------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        slots, nodes = self._forest.meta[slot_pool.SLOTS], self._forest.meta[slot_pool.NODES]
        pool = array_bytes(*(a[:slots] for a in self._forest[:5]), *(a[:nodes] for a in self._forest[5:9]))
        return pool + array_bytes(*self._tree)

    @property
    def allocated_bytes(self) -> int:
        return array_bytes(*self._forest[:10], *self._tree)

    @property
    def space(self) -> Space:
        """Inner slots of the R-trees are extents; the score and id of every slot, which updates need, do not count."""
        f, extents, waiting = self._forest, 0, [int(root) for root in self._tree[3] if root != NOTHING]
        while waiting:
            node = waiting.pop()
            if not f.leaf[node]:
                below = f.ref[f.start[node] : f.start[node] + f.filled[node]].tolist()
                extents += len(below)
                waiting += below
        return Space(len(self), extents, len(self._tree[0]))

    def check(self) -> None:
        centre, left, right, roots = self._tree
        entries, owners = [], []
        for node, root in enumerate(roots):
            score_forest.check(self._forest, int(root))
            part = self._entries_of(int(root))
            entries.append(part)
            owners += [node] * len(part.rows)
        assert len(owners) == self._size, "every entry is in one tree"
        if entries:
            lo = np.concatenate([part.lo for part in entries])
            hi = np.concatenate([part.hi for part in entries])
            skeleton.check(skeleton.Skeleton(centre, left, right), lo, hi, np.array(owners, dtype=np.int32))
