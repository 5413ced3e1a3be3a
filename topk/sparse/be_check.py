"""Invariants of BE-Tree and BE*-Tree, verified from the rows up; the obvious way, not the fast one."""

from __future__ import annotations

import numpy as np

from topk.sparse.be_arena import (
    ALL_HI,
    ALL_LO,
    ATTR,
    BUCKETS,
    CAP,
    CAPACITY,
    COUNT,
    FIRST,
    LEFT,
    LEVEL,
    LEVELS,
    NEXT,
    OWN_HI,
    OWN_LO,
    OWNER,
    PCOUNT,
    PNODE,
    RIGHT,
    RIGID,
    ROOT,
    SIZE,
    SLOTS,
    SPLIT,
    START,
    UP,
    Tree,
    find_pnode,
)  # fmt: skip
from topk.sparse.store import Store

Box = dict[int, tuple[float, float]]


def check_tree(t: Tree, store: Store) -> None:
    seen: set[int] = set()
    rows = _check_bucket(t, store, 0, [], seen)
    assert sorted(rows) == sorted(store.row_of.values()), "every expression is in exactly one l-node"
    free = sum(1 for b in range(int(t.meta[BUCKETS])) if t.bucket[b, LEVEL] < 0)
    assert len(seen) + free == t.meta[BUCKETS], "every bucket is reachable or free"
    assert not t.tally.any(), "scratch is clean"


def _check_bucket(t: Tree, store: Store, b: int, path: list[int], seen: set[int]) -> list[int]:
    """Check a bucket and all below it; returns their rows."""
    assert b not in seen, f"bucket {b} has one parent"
    seen.add(b)
    fields = t.bucket[b]
    assert fields[LEVEL] == len(path), f"bucket {b} knows its level"
    own = t.entries[fields[START] : fields[START] + fields[SIZE]].tolist()
    for row in own:
        assert t.home[row] == b, f"row {row} knows its bucket"
    assert fields[SIZE] <= fields[CAP], f"bucket {b} does not overflow"
    _check_weights(t.bucket_top[b], store, own, f"l-node {b}")
    below, directory, p = list(own), set(), int(fields[FIRST])
    while p >= 0:
        directory.add(int(t.pnode[p, ATTR]))
        below += _check_pnode(t, store, b, p, path, seen)
        p = int(t.pnode[p, NEXT])
    assert len(directory) == fields[PCOUNT], f"bucket {b} counts its p-nodes"
    for row in own:
        assert not directory & set(_predicates(store, row)), f"row {row} is below a p-node if there is one for it"
    if fields[FIRST] >= 0 and path and not t.knobs[RIGID]:
        atomic = t.box[b, OWN_LO, len(path) - 1] == t.box[b, OWN_HI, len(path) - 1]
        assert fields[SPLIT] or atomic or _was_atomic(t, b), f"bucket {b} is split before it is partitioned"
    content = list(below)
    for child in (int(fields[LEFT]), int(fields[RIGHT])):
        assert (child >= 0) == bool(fields[SPLIT]), f"bucket {b} has two descendants or none"
        if child >= 0:
            assert t.bucket[child, UP] == b, f"bucket {child} knows its parent"
            assert t.bucket[child, PNODE] == fields[PNODE], f"bucket {child} knows its p-node"
            below += _check_bucket(t, store, child, path, seen)
    for rows, bound in ((own, t.active[b, 4]), (below, t.active[b, 5])):
        for row in rows:
            r, begin = store.rows, int(store.rows.start[row])
            at = slice(begin, begin + int(r.length[row]))
            total = float((r.weight[at] * t.reference[r.attribute[at]]).sum())
            assert total <= bound * (1 + 1e-9), f"bucket {b} bounds the sum of its rows"
    _check_ranges(t, store, b, path, content, below)
    return below


def _was_atomic(t: Tree, b: int) -> bool:
    """An atomic bucket that was partitioned may be widened by up to β without being split."""
    return t.bucket[b, SPLIT] == 0 and t.bucket[b, FIRST] >= 0


def _check_pnode(t: Tree, store: Store, owner: int, p: int, path: list[int], seen: set[int]) -> list[int]:
    attribute = int(t.pnode[p, ATTR])
    assert t.pnode[p, OWNER] == owner, f"p-node {p} knows its bucket"
    assert attribute not in path, f"attribute {attribute} is used once on a path"
    assert find_pnode(t, owner, attribute) == p, f"p-node {p} is found in its directory"
    assert len(path) < LEVELS, "paths have at most LEVELS partitionings"
    root = int(t.pnode[p, ROOT])
    assert t.bucket[root, UP] == -1, f"bucket {root} is the root of its c-directory"
    assert t.bucket[root, PNODE] == p, f"bucket {root} knows its p-node"
    rows = _check_bucket(t, store, root, [*path, attribute], seen)
    assert len(rows) == t.pnode[p, COUNT], f"p-node {p} counts its expressions"
    assert rows, f"p-node {p} is not empty"
    for row in rows:
        assert attribute in _predicates(store, row), f"row {row} has a predicate on {attribute}"
    _check_weights(t.pnode_top[p], store, rows, f"p-node {p}")
    return rows


def _predicates(store: Store, row: int) -> Box:
    r, begin = store.rows, int(store.rows.start[row])
    span = range(begin, begin + int(r.length[row]))
    return {int(r.attribute[p]): (float(r.lo[p]), float(r.hi[p])) for p in span}


def _hull(store: Store, rows: list[int], attribute: int) -> tuple[float, float]:
    ranges = [_predicates(store, row)[attribute] for row in rows]
    return min((lo for lo, _ in ranges), default=np.inf), max((hi for _, hi in ranges), default=-np.inf)


def _check_ranges(t: Tree, store: Store, b: int, path: list[int], content: list[int], below: list[int]) -> None:
    if t.knobs[RIGID]:
        if path:
            low, high = _hull(store, below, path[-1])
            k = len(path) - 1
            inside = not below or (t.box[b, OWN_LO, k] <= low and high <= t.box[b, OWN_HI, k])
            assert inside, f"cell {b} encloses its rows"
        return
    if path:
        assert (t.active[b, :4] == t.box[b, :, len(path) - 1]).all(), f"bucket {b} shows its active dimension"
    for k, attribute in enumerate(path):  # the inactive dimensions too
        assert (t.box[b, OWN_LO, k], t.box[b, OWN_HI, k]) == _hull(store, content, attribute), f"own box of {b}"
        assert (t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]) == _hull(store, below, attribute), f"whole box of {b}"
    left, right = t.bucket[b, LEFT], t.bucket[b, RIGHT]
    if left >= 0:
        k = len(path) - 1
        (a, b_), (c, d) = ((t.box[side, ALL_LO, k], t.box[side, ALL_HI, k]) for side in (left, right))
        apart = a > b_ or c > d or b_ < c or d < a
        assert apart, f"descendants of bucket {b} repel each other"


def _check_weights(top: np.ndarray, store: Store, rows: list[int], what: str) -> None:
    r = store.rows
    for row in rows:
        for p in range(int(r.start[row]), int(r.start[row] + r.length[row])):
            assert top[r.attribute[p] % SLOTS] >= r.weight[p], f"{what} bounds its weights"
    assert CAPACITY == 0  # knobs[0] is written by position in batch construction
