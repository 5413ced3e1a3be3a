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
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.bits import bit_length
from topk.kernels.hashing import drop, emptied, put, with_slots
from topk.kernels.rows import aligned, fill, give, take, unchain, with_room
from topk.predicates import Int32s
from topk.sparse.rows import Rows
from topk.sparse.scores import Scoring

LEVELS = np.int64(8)  # partitionings on one path; deeper ones never paid, l-nodes grow instead

# What a search reads of a bucket, in one cache line: the active dimension of its box (own: l-node and p-directory; all:
# with both descendants), the largest usual score in its l-node and below, descendants, p-directory and l-node.
NODE = np.dtype([
    ("own_lo", "f8"), ("own_hi", "f8"), ("all_lo", "f8"), ("all_hi", "f8"), ("leaf_score", "f4"), ("all_score", "f4"),
    ("left", "i4"), ("right", "i4"), ("first", "i4"), ("pcount", "i4"), ("start", "i4"), ("count", "i4"),
])  # fmt: skip
# The rest of a bucket.
BUCKET = np.dtype([("up", "i4"), ("pnode", "i4"), ("level", "i4"), ("split", "i4"), ("room", "i4"), ("cap", "i4")])
# loss and seen: evaluations that were discarded in its c-directory, and the events that visited it. rank: that of
# `ranks` when the last window closed, plus what was added below since.
PNODE = np.dtype([
    ("attr", "i4"), ("root", "i4"), ("next", "i4"), ("owner", "i4"), ("count", "i4"), ("score", "f4"), ("loss", "f4"),
    ("seen", "f4"), ("rank", "f4"),
])  # fmt: skip
# Rows of Tree.box
OWN_LO, OWN_HI, ALL_LO, ALL_HI = range(4)
# Columns of Tree.entries
ROW, BLOCK = range(2)
# Entries of Tree.meta. Of numpy's type, as all integers that kernels pass to kernels: a plain one is a type of its own.
BUCKETS, PNODES, ENTRIES, FREE_BUCKET, FREE_PNODE, WORK, HASHED, LARGEST = map(np.int64, range(8))
FREE_ROOM = np.int64(16)
# Entries of Tree.knobs
CAPACITY, ALPHA, BETA, RIGID, USUAL, RECURSIVE = range(6)


class Tree(NamedTuple):
    node: Any  # (buckets,) records of NODE
    bucket: Any  # (buckets,) records of BUCKET
    box: Floats  # (buckets, 4, LEVELS)
    bucket_top: NDArray[np.float32]  # (buckets, slots) largest weights in the l-node
    pnode: Any  # (p-nodes,) records of PNODE
    pnode_top: NDArray[np.float32]  # (p-nodes, slots) largest weights below
    entries: Int32s  # (arena, 2) row, and where its packed copy is
    needs: NDArray[np.uint64]  # (arena,) the attributes it needs, in 64 bits that they share
    keys: Ints  # hash table of the p-directories: (bucket, attribute) → p-node
    values: Ints
    meta: Ints
    knobs: Floats
    domain: Floats  # (d, 3) low, high and resolution; for rigid cutting
    work: Ints  # overflowing buckets
    tally: Ints  # (d,) scratch, zero between uses
    home: Ints  # (rows,) the bucket of each row
    at: Int32s  # (rows,) the packed copy of each row
    reference: Floats  # (d,) usual weight of a predicate on the attribute
    scoring: Scoring


def allocate(knobs: Floats, slots: int, domain: Floats, reference: Floats, at: Int32s, scoring: Scoring) -> Tree:
    """A tree without nodes: the first insertion, even of no rows, makes its root. `slots` is a power of two."""
    meta = np.zeros(FREE_ROOM + 32, np.int64)
    meta[FREE_BUCKET] = meta[FREE_PNODE] = -1
    meta[FREE_ROOM:] = -1
    node, bucket, pnode = (aligned((64,), kind).view(np.recarray) for kind in (NODE, BUCKET, PNODE))
    bucket_top, pnode_top = (np.zeros((64, slots), np.float32) for _ in range(2))
    entries, needs = np.zeros((256, 2), np.int32), np.zeros(256, np.uint64)
    work, tally, home = np.zeros(64, np.int64), np.zeros(len(reference), np.int64), np.full(len(at), -1, np.int64)
    return Tree(
        node, bucket, np.zeros((64, 4, LEVELS)), bucket_top, pnode, pnode_top, entries, needs, *emptied(256),
        meta, knobs, domain, work, tally, home, at, reference, scoring,
    )  # fmt: skip


@kernel(inner=True)
def has_room(t: Any, buckets: int, pnodes: int, entries: int) -> bool:
    """Whether there is room for this many more, without counting what could be reused."""
    return (
        t.meta[BUCKETS] + buckets <= len(t.bucket)
        and t.meta[PNODES] + pnodes <= len(t.pnode)
        and t.meta[ENTRIES] + entries <= len(t.entries)
        and t.meta[WORK] + pnodes + 4 <= len(t.work)
        and 2 * (t.meta[HASHED] + pnodes) <= len(t.keys)
    )


def grown(t: Tree, buckets: int, pnodes: int, entries: int) -> Tree:
    """The same tree with room for this many more; what grows, grows by at least half."""
    wider = {
        name: with_room(getattr(t, name), int(t.meta[used]), more)
        for used, more, names in (
            (BUCKETS, buckets, ("node", "bucket", "box", "bucket_top")),
            (PNODES, pnodes, ("pnode", "pnode_top")),
            (ENTRIES, entries, ("entries", "needs")),
            (WORK, pnodes + 4, ("work",)),
        )
        for name in names
    }
    keys, values, t.meta[HASHED] = with_slots(t.keys, t.values, int(t.meta[HASHED]), int(t.meta[PNODES]), pnodes)
    return t._replace(keys=keys, values=values, **wider)


@kernel(inner=True)
def new_bucket(t: Any, up: int, pnode: int, level: int) -> int:
    b = take(t.meta, FREE_BUCKET, BUCKETS, t.bucket.up, np.int64(1))
    node, bucket = t.node[b], t.bucket[b]
    node.left = node.right = node.first = -1
    node.pcount = node.start = node.count = 0
    node.leaf_score = node.all_score = np.float32(-np.inf)
    bucket.up, bucket.pnode, bucket.level = up, pnode, level
    bucket.split = bucket.room = 0
    bucket.cap = np.int64(t.knobs[CAPACITY])
    fill(t.bucket_top[b], np.float32(0.0))
    for k in range(LEVELS):
        t.box[b, OWN_LO, k] = t.box[b, ALL_LO, k] = np.inf
        t.box[b, OWN_HI, k] = t.box[b, ALL_HI, k] = -np.inf
    show_active(t, b, 0)
    return b


@kernel(inline="always")
def show_active(t: Any, b: int, k: int) -> None:
    """Copy dimension k of a bucket's box to where searches read it."""
    node = t.node[b]
    node.own_lo, node.own_hi = t.box[b, OWN_LO, k], t.box[b, OWN_HI, k]
    node.all_lo, node.all_hi = t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]


@kernel(inner=True)
def free_bucket(t: Any, b: int) -> None:
    give_room(t, b)
    t.bucket[b].level = -1
    give(t.meta, FREE_BUCKET, t.bucket.up, b)


@kernel(inner=True)
def give_room(t: Any, b: int) -> None:
    """Return the entry room of a bucket, kept by size."""
    node, bucket = t.node[b], t.bucket[b]
    if bucket.room:
        give(t.meta, FREE_ROOM + bit_length(bucket.room - 1), t.entries[:, ROW], node.start)
    bucket.room = 0
    node.count = 0


@kernel(inline="always")
def slot_of(top: Any, a: int) -> Any:
    """Where a node has the largest weight on an attribute; attributes share it where there are fewer slots."""
    return a & (len(top) - 1)


@kernel(inline="always")
def attribute_bit(a: int) -> Any:
    return np.uint64(1) << np.uint64(a & 63)


@kernel(inner=True)
def needed_bits(rows: Rows, row: int) -> Any:
    """The bits of the row's attributes."""
    bits = np.uint64(0)
    for p in range(rows.start[row], rows.start[row] + rows.length[row]):
        bits |= attribute_bit(rows.attribute[p])
    return bits


@kernel(inner=True)
def put_row(t: Any, rows: Rows, b: int, row: int) -> None:
    """Append a row to an l-node."""
    node, bucket = t.node[b], t.bucket[b]
    if node.count == bucket.room:
        count = np.int64(node.count)
        size = max(2, bit_length(count))
        start = take(t.meta, FREE_ROOM + size, ENTRIES, t.entries[:, ROW], 1 << size)
        for i in range(count):
            t.entries[start + i, ROW] = t.entries[node.start + i, ROW]
            t.entries[start + i, BLOCK] = t.entries[node.start + i, BLOCK]
            t.needs[start + i] = t.needs[node.start + i]
        give_room(t, b)
        node.start, node.count, bucket.room = start, count, 1 << size
    t.entries[node.start + node.count, ROW] = row
    t.entries[node.start + node.count, BLOCK] = t.at[row]
    t.needs[node.start + node.count] = needed_bits(rows, row)
    node.count += 1
    t.meta[LARGEST] = max(t.meta[LARGEST], node.count)
    t.home[row] = b


@kernel(inner=True)
def new_pnode(t: Any, owner: int, attribute: int) -> int:
    p = take(t.meta, FREE_PNODE, PNODES, t.pnode.next, np.int64(1))
    pnode = t.pnode[p]
    pnode.attr, pnode.owner, pnode.count = attribute, owner, 0
    pnode.next = t.node[owner].first
    pnode.score = np.float32(-np.inf)
    pnode.loss = pnode.seen = pnode.rank = np.float32(0.0)
    t.node[owner].first = p
    t.node[owner].pcount += 1
    fill(t.pnode_top[p], np.float32(0.0))
    t.meta[HASHED] += put(t.keys, t.values, owner, attribute, p)
    root = new_bucket(t, np.int64(-1), p, np.int64(t.bucket[owner].level + 1))
    pnode.root = root
    if t.knobs[RIGID]:  # the whole domain, whatever turns up later
        fill(t.box[root, OWN_LO], -np.inf)
        fill(t.box[root, OWN_HI], np.inf)
        show_active(t, root, 0)
    return p


@kernel(inner=True)
def free_pnode(t: Any, p: int) -> None:
    """Unlink a p-node from its directory; its buckets must be gone."""
    owner = t.pnode[p].owner
    unchain(t.node.first, owner, t.pnode.next, p)
    t.node[owner].pcount -= 1
    drop(t.keys, owner, t.pnode[p].attr)
    t.pnode[p].owner = -1
    give(t.meta, FREE_PNODE, t.pnode.next, p)
