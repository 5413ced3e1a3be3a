"""The nodes of BE-Tree and BE*-Tree in the order in which a search meets them.

A tree built by insertions has its nodes in order of creation, and every step of a search is a cache miss. Renumbered,
a c-directory lies in the order in which `match` walks it (right before left), and the p-nodes of a directory lie side
by side, as do the l-nodes' entries and the packed expressions. Nothing but numbers changes; later insertions
append, and the order is restored when the packed copies are rewritten (`BETree.lay_out`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.hashing import numbered
from topk.kernels.rows import aligned, runs
from topk.sparse.be.arena import BUCKETS, ENTRIES, FREE_BUCKET, FREE_PNODE, FREE_ROOM, HASHED, PNODES, Tree

_SPARE = 64  # nodes that can be added before the arrays grow


@kernel
def visiting_order(node: Any, pnode: Any, buckets: Any, pnodes: Any) -> Any:
    """Fill in the live buckets and p-nodes in the order of a search; returns how many there are of each."""
    roots, waiting, done = np.empty(len(pnodes) + 1, np.int64), 1, 0  # c-directories, first come first served
    stack = np.empty(len(buckets) + 2, np.int64)
    roots[0] = 0
    count, partitions = 0, 0
    while done < waiting:
        stack[0], depth = roots[done], 1
        done += 1
        while depth:
            depth -= 1
            b = stack[depth]
            buckets[count] = b
            count += 1
            if node[b].left >= 0:
                stack[depth], stack[depth + 1] = node[b].left, node[b].right
                depth += 2
            p = node[b].first
            while p >= 0:
                pnodes[partitions] = p
                partitions += 1
                roots[waiting] = pnode[p].root
                waiting += 1
                p = pnode[p].next
    return count, partitions


def in_visiting_order(t: Tree) -> Tree:
    """The same tree, renumbered."""
    buckets, pnodes = np.empty(int(t.meta[BUCKETS]), np.int64), np.empty(int(t.meta[PNODES]), np.int64)
    count, partitions = visiting_order(t.node, t.pnode, buckets, pnodes)
    buckets, pnodes = buckets[:count], pnodes[:partitions]
    new_bucket, new_pnode = _numbers(buckets, int(t.meta[BUCKETS])), _numbers(pnodes, int(t.meta[PNODES]))
    node, bucket, pnode = (_taken(a, i) for a, i in ((t.node, buckets), (t.bucket, buckets), (t.pnode, pnodes)))
    for column in (node.left, node.right, bucket.up, pnode.root, pnode.owner):
        column[:] = new_bucket[column]
    for column in (node.first, bucket.pnode, pnode.next):
        column[:] = new_pnode[column]
    home = t.home.copy()
    home[home >= 0] = new_bucket[home[home >= 0]]
    entries, needs = _entries(t, buckets, node, bucket)
    keys, values, hashed = numbered(pnode.owner[:partitions], pnode.attr[:partitions], len(t.keys))
    t.meta[[BUCKETS, PNODES, HASHED]] = count, partitions, hashed
    t.meta[[FREE_BUCKET, FREE_PNODE]] = -1
    box, bucket_top, pnode_top = _taken(t.box, buckets), _taken(t.bucket_top, buckets), _taken(t.pnode_top, pnodes)
    return t._replace(
        node=node, bucket=bucket, box=box, bucket_top=bucket_top, pnode=pnode, pnode_top=pnode_top, home=home,
        entries=entries, needs=needs, keys=keys, values=values,
    )  # fmt: skip


def _numbers(order: Ints, size: int) -> Ints:
    """old number → new number; −1 stays −1."""
    new = np.full(size + 1, -1, np.int64)
    new[order] = np.arange(len(order))
    return new


def _taken(array: Any, order: Ints) -> Any:
    """The elements in this order, with room for a few more."""
    taken = aligned((len(order) + _SPARE, *array.shape[1:]), array.dtype).view(type(array))
    taken[: len(order)] = array[order]
    return taken


def _entries(t: Tree, buckets: Ints, node: Any, bucket: Any) -> tuple[Any, Any]:
    """The runs of the l-nodes one after the other, entries and needs; sets their starts."""
    rooms = bucket.room[: len(buckets)].astype(np.int64)
    source = runs(node.start[: len(buckets)], rooms)
    entries = np.zeros((len(source) + _SPARE, 2), np.int32)
    needs = np.zeros(len(source) + _SPARE, np.uint64)
    entries[: len(source)], needs[: len(source)] = t.entries[source], t.needs[source]
    node.start[: len(buckets)] = np.cumsum(rooms) - rooms
    t.meta[ENTRIES] = len(source)
    t.meta[FREE_ROOM:] = -1
    return entries, needs


def members(t: Tree) -> Ints:
    """Where the rows of all l-nodes are among the entries, bucket by bucket."""
    count = int(t.meta[BUCKETS])
    return runs(t.node.start[:count], np.where(t.bucket.level[:count] >= 0, t.node.count[:count], 0))
