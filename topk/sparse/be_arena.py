"""The nodes of BE-Tree and BE*-Tree in flat arrays, and the kernels that take and return them.

Three classes of nodes (Sadoghi & Jacobsen, ICDE 2012, §IV). A *bucket* is a c-node with its l-node: a range of one
attribute, the rows that live there, up to two descendant buckets (left, right; the bucket itself plays the
overlapping one) and a p-directory. A *p-node* names an attribute and the root bucket of its c-directory. Rows of an
l-node are a run of an entry arena with room for a power of two; what is given back is kept by size and reused.

A bucket at level k has a box over the k attributes of the p-nodes above it: the last one is active (searched), the
others inactive (they let a deletion shrink every range on the way up without looking at siblings, §IV-B).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from topk.sparse.catalogue import Floats, Ints

LEVELS = 8  # partitionings on one path; deeper ones never paid, l-nodes grow instead
SLOTS = 32  # attributes share this many upper bounds of weights: the "compressed" summary of §VI; one more for the sum

# Columns of Tree.bucket
LEFT, RIGHT, UP, PNODE, LEVEL, SPLIT, FIRST, PCOUNT, START, SIZE, ROOM, CAP = range(12)
# Columns of Tree.pnode
ATTR, ROOT, NEXT, OWNER, COUNT = range(5)
# Rows of Tree.box: own content (l-node and p-directory), and with both descendants
OWN_LO, OWN_HI, ALL_LO, ALL_HI = range(4)
# Columns of Tree.active after those four: largest Σ weight · reference in the l-node, and in everything below
LEAF_SUM, ALL_SUM = 4, 5
# Entries of Tree.meta
BUCKETS, PNODES, ENTRIES, FREE_BUCKET, FREE_PNODE, WORK, HASHED, LARGEST, FREE_ROOM = 0, 1, 2, 3, 4, 5, 6, 7, 16
# Entries of Tree.knobs
CAPACITY, ALPHA, BETA, RIGID, EXHAUSTIVE = range(5)

ROUND_UP = np.float32(1.0 + 3e-7)  # a float64 weight stored as float32 must stay an upper bound
_EMPTY, _DEAD = -1, -2  # keys of the hash table


class Tree(NamedTuple):
    bucket: Ints  # (buckets, 12)
    box: Floats  # (buckets, 4, LEVELS)
    active: Floats  # (buckets, 6) active dimension of the box, bounds of the sum in the l-node and in all below
    bucket_top: NDArray[np.float32]  # (buckets, SLOTS) largest weights in the l-node
    pnode: Ints  # (p-nodes, 5)
    pnode_top: NDArray[np.float32]  # (p-nodes, SLOTS) largest weights below
    feedback: Floats  # (p-nodes, 2) discarded predicate evaluations, visits
    entries: Ints
    keys: Ints  # hash table of the p-directories: (bucket, attribute) → p-node
    values: Ints
    meta: Ints
    knobs: Floats
    domain: Floats  # (d, 3) low, high and resolution; for rigid cutting
    work: Ints  # overflowing buckets
    tally: Ints  # (d,) scratch, zero between uses
    home: Ints  # (rows,) the bucket of each row
    reference: Floats  # (d,) usual weight of a predicate on the attribute


def allocate(dimensions: int, knobs: Floats, domain: Floats, reference: Floats, rows: int) -> Tree:
    meta = np.zeros(FREE_ROOM + 32, np.int64)
    meta[FREE_BUCKET] = meta[FREE_PNODE] = -1
    meta[FREE_ROOM:] = -1
    tree = Tree(
        np.zeros((64, 12), np.int64), np.zeros((64, 4, LEVELS)), np.zeros((64, 6)),
        np.zeros((64, SLOTS + 1), np.float32), np.zeros((64, 5), np.int64), np.zeros((64, SLOTS + 1), np.float32),
        np.zeros((64, 2)), np.zeros(256, np.int64),
        np.full(256, _EMPTY, np.int64), np.zeros(256, np.int64), meta, knobs, domain, np.zeros(64, np.int64),
        np.zeros(max(dimensions, 1), np.int64), np.full(max(rows, 1), -1, np.int64),
        reference,
    )  # fmt: skip
    new_bucket(tree, -1, -1, 0)
    return tree


@njit(cache=True)
def has_room(t: Tree, buckets: int, pnodes: int, entries: int) -> bool:
    """Room for so many more, without counting what could be reused."""
    return (
        t.meta[BUCKETS] + buckets <= len(t.bucket)
        and t.meta[PNODES] + pnodes <= len(t.pnode)
        and t.meta[ENTRIES] + entries <= len(t.entries)
        and t.meta[WORK] + pnodes + 4 <= len(t.work)
        and 2 * (t.meta[HASHED] + pnodes) <= len(t.keys)
    )


def grown(t: Tree, buckets: int, pnodes: int, entries: int) -> Tree:
    """The same tree with room for so many more, at least half as much again."""

    def wider(column: Any, used: int, extra: int) -> Any:
        if used + extra <= len(column):
            return column
        larger = np.zeros((used + used // 2 + extra, *column.shape[1:]), column.dtype)
        larger[:used] = column[:used]
        return larger

    b, p, e = int(t.meta[BUCKETS]), int(t.meta[PNODES]), int(t.meta[ENTRIES])
    t = t._replace(
        bucket=wider(t.bucket, b, buckets), box=wider(t.box, b, buckets),
        active=wider(t.active, b, buckets), bucket_top=wider(t.bucket_top, b, buckets),
        pnode=wider(t.pnode, p, pnodes), pnode_top=wider(t.pnode_top, p, pnodes), feedback=wider(t.feedback, p, pnodes),
        entries=wider(t.entries, e, entries), work=wider(t.work, int(t.meta[WORK]), pnodes + 4),
    )  # fmt: skip
    if 2 * (int(t.meta[HASHED]) + pnodes) > len(t.keys):
        size = 256
        while size < 4 * (p + pnodes):
            size *= 2
        old_keys, old_values = t.keys, t.values
        t = t._replace(keys=np.full(size, _EMPTY, np.int64), values=np.zeros(size, np.int64))
        t.meta[HASHED] = 0
        live = old_keys >= 0
        _refill(t, old_keys[live], old_values[live])
    return t


@njit(cache=True)
def _refill(t: Tree, keys: Any, values: Any) -> None:
    for i in range(len(keys)):
        put_pnode(t, keys[i] >> 24, keys[i] & 0xFFFFFF, values[i])


@njit(cache=True, inline="always")
def _slot(key: int, size: int) -> Any:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(20)) & (size - 1)


@njit(cache=True, nogil=True)
def lookup(keys: Any, values: Any, bucket: int, attribute: int) -> int:
    """SearchPDir: the p-node of a bucket for an attribute, −1 if there is none."""
    key = (bucket << 24) | attribute
    at = _slot(key, len(keys))
    while keys[at] != _EMPTY:
        if keys[at] == key:
            return values[at]
        at = (at + 1) & (len(keys) - 1)
    return -1


@njit(cache=True)
def find_pnode(t: Tree, bucket: int, attribute: int) -> int:
    return lookup(t.keys, t.values, bucket, attribute)


@njit(cache=True)
def put_pnode(t: Tree, bucket: int, attribute: int, pnode: int) -> None:
    key = (bucket << 24) | attribute
    at = _slot(key, len(t.keys))
    while t.keys[at] >= 0:
        at = (at + 1) & (len(t.keys) - 1)
    if t.keys[at] == _EMPTY:
        t.meta[HASHED] += 1
    t.keys[at] = key
    t.values[at] = pnode


@njit(cache=True)
def drop_pnode(t: Tree, bucket: int, attribute: int) -> None:
    key = (bucket << 24) | attribute
    at = _slot(key, len(t.keys))
    while t.keys[at] != key:
        at = (at + 1) & (len(t.keys) - 1)
    t.keys[at] = _DEAD


@njit(cache=True)
def new_bucket(t: Tree, up: int, pnode: int, level: int) -> int:
    b = t.meta[FREE_BUCKET]
    if b >= 0:
        t.meta[FREE_BUCKET] = t.bucket[b, UP]
    else:
        b = t.meta[BUCKETS]
        t.meta[BUCKETS] += 1
    fields = t.bucket[b]
    fields[:] = 0
    fields[LEFT] = fields[RIGHT] = fields[FIRST] = -1
    fields[UP], fields[PNODE], fields[LEVEL] = up, pnode, level
    fields[CAP] = np.int64(t.knobs[CAPACITY])
    t.bucket_top[b, :] = 0
    t.box[b, OWN_LO, :] = np.inf
    t.box[b, OWN_HI, :] = -np.inf
    t.box[b, ALL_LO, :] = np.inf
    t.box[b, ALL_HI, :] = -np.inf
    t.active[b, :4] = t.box[b, :, 0]
    t.active[b, 4:] = 0.0
    return b


@njit(cache=True)
def free_bucket(t: Tree, b: int) -> None:
    give_room(t, b)
    t.bucket[b, UP] = t.meta[FREE_BUCKET]
    t.bucket[b, LEVEL] = -1
    t.meta[FREE_BUCKET] = b


@njit(cache=True)
def give_room(t: Tree, b: int) -> None:
    """Return the entry room of a bucket, kept by size."""
    room = t.bucket[b, ROOM]
    if room:
        size = 0
        while (1 << size) < room:
            size += 1
        t.entries[t.bucket[b, START]] = t.meta[FREE_ROOM + size]
        t.meta[FREE_ROOM + size] = t.bucket[b, START]
    t.bucket[b, ROOM] = 0
    t.bucket[b, SIZE] = 0


@njit(cache=True)
def put_row(t: Tree, b: int, row: int) -> None:
    """Append a row to an l-node."""
    fields = t.bucket[b]
    if fields[SIZE] == fields[ROOM]:
        size = 2
        while (1 << size) <= fields[SIZE]:
            size += 1
        start = t.meta[FREE_ROOM + size]
        if start >= 0:
            t.meta[FREE_ROOM + size] = t.entries[start]
        else:
            start = t.meta[ENTRIES]
            t.meta[ENTRIES] += 1 << size
        count = fields[SIZE]
        for i in range(count):
            t.entries[start + i] = t.entries[fields[START] + i]
        give_room(t, b)
        fields[START], fields[SIZE], fields[ROOM] = start, count, 1 << size
    t.entries[fields[START] + fields[SIZE]] = row
    fields[SIZE] += 1
    t.meta[LARGEST] = max(t.meta[LARGEST], fields[SIZE])
    t.home[row] = b


@njit(cache=True)
def new_pnode(t: Tree, owner: int, attribute: int) -> int:
    p = t.meta[FREE_PNODE]
    if p >= 0:
        t.meta[FREE_PNODE] = t.pnode[p, NEXT]
    else:
        p = t.meta[PNODES]
        t.meta[PNODES] += 1
    t.pnode[p, ATTR], t.pnode[p, OWNER], t.pnode[p, COUNT] = attribute, owner, 0
    t.pnode[p, NEXT] = t.bucket[owner, FIRST]
    t.bucket[owner, FIRST] = p
    t.bucket[owner, PCOUNT] += 1
    t.pnode_top[p, :] = 0
    t.feedback[p, :] = 0.0
    put_pnode(t, owner, attribute, p)
    root = new_bucket(t, -1, p, t.bucket[owner, LEVEL] + 1)
    t.pnode[p, ROOT] = root
    if t.knobs[RIGID]:  # the whole domain, whatever turns up later
        t.box[root, OWN_LO, :] = -np.inf
        t.box[root, OWN_HI, :] = np.inf
        t.active[root, :4] = t.box[root, :, 0]
    return p


@njit(cache=True)
def free_pnode(t: Tree, p: int) -> None:
    """Unlink a p-node from its directory; its buckets must be gone."""
    owner = t.pnode[p, OWNER]
    if t.bucket[owner, FIRST] == p:
        t.bucket[owner, FIRST] = t.pnode[p, NEXT]
    else:
        before = t.bucket[owner, FIRST]
        while t.pnode[before, NEXT] != p:
            before = t.pnode[before, NEXT]
        t.pnode[before, NEXT] = t.pnode[p, NEXT]
    t.bucket[owner, PCOUNT] -= 1
    drop_pnode(t, owner, t.pnode[p, ATTR])
    t.pnode[p, NEXT] = t.meta[FREE_PNODE]
    t.pnode[p, OWNER] = -1
    t.meta[FREE_PNODE] = p
