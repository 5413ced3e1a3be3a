"""Invariants of BE-Tree and BE*-Tree, verified from the rows up; the obvious way, not the fast one."""

from __future__ import annotations

import numpy as np

from topk.kernels.hashing import lookup
from topk.sparse.be.arena import ALL_HI, ALL_LO, BLOCK, BUCKETS, LEVELS, OWN_HI, OWN_LO, RIGID, ROW, Tree, slot_of
from topk.sparse.rows import ExpressionStore, usual_score
from topk.sparse.scores import as_bound

Box = dict[int, tuple[float, float]]


def check_tree(t: Tree, store: ExpressionStore) -> None:
    seen: set[int] = set()
    rows = _check_bucket(t, store, 0, [], seen)
    assert sorted(rows) == sorted(store.row_of.values()), "every expression is in exactly one l-node"
    free = sum(1 for b in range(int(t.meta[BUCKETS])) if t.bucket[b].level < 0)
    assert len(seen) + free == t.meta[BUCKETS], "every bucket is reachable or free"
    assert not t.tally.any(), "scratch is clean"


def _check_bucket(t: Tree, store: ExpressionStore, b: int, path: list[int], seen: set[int]) -> list[int]:
    """Check a bucket and all below it; returns their rows."""
    assert b not in seen, f"bucket {b} has one parent"
    seen.add(b)
    node, bucket = t.node[b], t.bucket[b]
    assert bucket.level == len(path), f"bucket {b} knows its level"
    run = slice(int(node.start), int(node.start + node.count))
    own = t.entries[run, ROW].tolist()
    for row, block in zip(own, t.entries[run, BLOCK].tolist(), strict=True):
        assert t.home[row] == b, f"row {row} knows its bucket"
        assert t.at[row] == block, f"bucket {b} knows the packed copy of row {row}"
    for row, bits in zip(own, t.needs[run].tolist(), strict=True):
        expected = sum(1 << bit for bit in {a % 64 for a in _predicates(store, row)})
        assert bits == expected, f"bucket {b} knows the attributes of row {row}"
    assert node.count <= bucket.cap, f"bucket {b} does not overflow"
    heaviest = _heaviest(store, own, t.bucket_top.shape[1])
    assert (t.bucket_top[b] >= heaviest).all(), f"l-node {b} bounds its weights"
    if len(heaviest) >= store.dimensions:
        assert (t.bucket_top[b] == heaviest).all(), f"l-node {b} has its own bound per attribute"
    below, directory, p = list(own), set(), int(node.first)
    while p >= 0:
        directory.add(int(t.pnode[p].attr))
        below += _check_pnode(t, store, b, p, path, seen)
        p = int(t.pnode[p].next)
    assert len(directory) == node.pcount, f"bucket {b} counts its p-nodes"
    for row in own:
        assert not directory & set(_predicates(store, row)), f"row {row} is below a p-node if there is one for it"
    content = list(below)
    for child in (int(node.left), int(node.right)):
        assert (child >= 0) == bool(bucket.split), f"bucket {b} has two descendants or none"
        if child >= 0:
            assert t.bucket[child].up == b, f"bucket {child} knows its parent"
            assert t.bucket[child].pnode == bucket.pnode, f"bucket {child} knows its p-node"
            below += _check_bucket(t, store, child, path, seen)
    for rows, bound in ((own, node.leaf_score), (below, node.all_score)):
        for row in rows:
            with np.errstate(over="ignore"):  # beyond float32 a bound is infinite
                assert usual_score(store.rows, row, t.reference, t.scoring) <= bound, (
                    f"bucket {b} bounds its rows' scores"
                )
    _check_ranges(t, store, b, path, content, below)
    return below


def _check_pnode(t: Tree, store: ExpressionStore, owner: int, p: int, path: list[int], seen: set[int]) -> list[int]:
    attribute = int(t.pnode[p].attr)
    assert t.pnode[p].owner == owner, f"p-node {p} knows its bucket"
    assert attribute not in path, f"attribute {attribute} is used once on a path"
    assert lookup(t.keys, t.values, owner, attribute) == p, f"p-node {p} is found in its directory"
    assert len(path) < LEVELS, "paths have at most LEVELS partitionings"
    root = int(t.pnode[p].root)
    assert t.bucket[root].up == -1, f"bucket {root} is the root of its c-directory"
    assert t.bucket[root].pnode == p, f"bucket {root} knows its p-node"
    rows = _check_bucket(t, store, root, [*path, attribute], seen)
    assert len(rows) == t.pnode[p].count, f"p-node {p} counts its expressions"
    assert rows, f"p-node {p} is not empty"
    for row in rows:
        assert attribute in _predicates(store, row), f"row {row} has a predicate on {attribute}"
    assert (t.pnode_top[p] >= _heaviest(store, rows, t.pnode_top.shape[1])).all(), f"p-node {p} bounds its weights"
    return rows


def _predicates(store: ExpressionStore, row: int) -> Box:
    r, begin = store.rows, int(store.rows.start[row])
    span = range(begin, begin + int(r.length[row]))
    return {int(r.attribute[p]): (float(r.lo[p]), float(r.hi[p])) for p in span}


def _hull(store: ExpressionStore, rows: list[int], attribute: int) -> tuple[float, float]:
    ranges = [_predicates(store, row)[attribute] for row in rows]
    return min((lo for lo, _ in ranges), default=np.inf), max((hi for _, hi in ranges), default=-np.inf)


def _check_ranges(
    t: Tree, store: ExpressionStore, b: int, path: list[int], content: list[int], below: list[int]
) -> None:
    if t.knobs[RIGID]:
        if path:
            low, high = _hull(store, below, path[-1])
            k = len(path) - 1
            inside = not below or (t.box[b, OWN_LO, k] <= low and high <= t.box[b, OWN_HI, k])
            assert inside, f"cell {b} encloses its rows"
        return
    if path:
        shown = [t.node[b][name] for name in ("own_lo", "own_hi", "all_lo", "all_hi")]
        assert shown == t.box[b, :, len(path) - 1].tolist(), f"bucket {b} shows its active dimension"
    for k, attribute in enumerate(path):  # the inactive dimensions too
        assert (t.box[b, OWN_LO, k], t.box[b, OWN_HI, k]) == _hull(store, content, attribute), f"own box of {b}"
        assert (t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]) == _hull(store, below, attribute), f"whole box of {b}"
    left, right = t.node[b].left, t.node[b].right
    if left >= 0:
        k = len(path) - 1
        (a, b_), (c, d) = ((t.box[side, ALL_LO, k], t.box[side, ALL_HI, k]) for side in (left, right))
        apart = a > b_ or c > d or b_ < c or d < a
        assert apart, f"descendants of bucket {b} repel each other"


def _heaviest(store: ExpressionStore, rows: list[int], slots: int) -> np.ndarray:
    """The largest weight per slot, rounded up."""
    r, found = store.rows, np.zeros(slots, np.float32)
    for row in rows:
        for p in range(int(r.start[row]), int(r.start[row] + r.length[row])):
            slot = slot_of.py_func(found, r.attribute[p])
            found[slot] = max(found[slot], as_bound(r.weight[p]))
    return found
