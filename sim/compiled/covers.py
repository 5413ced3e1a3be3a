"""The covering indexes of all routes: thousands of small ones, each known by a number `s`.

They are asked and changed in the order in which messages arrive. The methods are those of `covering` (support.py
names them) with the same searches (their kernels are called, not copied), the same slots, the same rebuilds at the same
moments, hence the same witness and the same number of probes. Only what the classes do in Python is written again:
which slot is free, when the tail is full.

The indexes of a route and group are a chain, one per residue, in the order in which they were first used, like the
partitions of FilterIndex. An emptied index leaves its chain and may be used again, with its region, in another.

An index has a record (records.INDEX), which says where its region of the shared arrays begins: `index_points`
(dominance points by slot), `index_words` (packed, always 64 bits wide, so that one compiled version serves every d),
`index_owners` (the node in a slot; −2 − next for a free one), and `index_tops` (maxima of the k-d tree, and their
words, or volumes of packed). A full region is copied to the end of the arrays, with twice the capacity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.contract import covered_slots
from covering.kdtree import FRONT, NODE_CAP, find_in_tree
from covering.kdtree_build import BUCKET, bucket_order, fill_extremes, level_starts
from covering.packed import find_largest_first, volumes
from covering.packed_words import FIRST, SCAN_BLOCK, covered_by_fields, pack, pack_stored, scan_fields
from covering.scan import scan_one
from covering.static_with_tail import DEAD_SHARE, TAIL_FACTOR, TAIL_LEAST
from sim.compiled.records import KDTREE, PACKED, SCAN
from sim.compiled.state import ONE_MORE, inlined, inner
from topk.kernels.rows import ascending, longer

_LEAST_CAPACITY = 8  # slots of the first region


@inner
def points_of(w: Any, s: int) -> Any:
    """The dominance points of an index, by slot."""
    index = w.indexes[s]
    return w.index_points[index.row : index.row + index.capacity]


@inlined
def _words_in(region: Any, width: int, first: int, count: int) -> Any:
    return region[width * first : width * (first + count)].reshape((width, count))


@inner
def words_of(w: Any, s: int) -> Any:
    """The packed words of an index: (words per entry, slots)."""
    index = w.indexes[s]
    return _words_in(w.index_words, w.guards.shape[0], index.row, index.capacity)


@inner
def owners_of(w: Any, s: int) -> Any:
    index = w.indexes[s]
    return w.index_owners[index.row : index.row + index.capacity]


@inner
def tops_of(w: Any, s: int) -> Any:
    index = w.indexes[s]
    return w.index_tops[index.top : index.top + index.tops]


@inner
def _top_words_of(w: Any, s: int, nodes: int) -> Any:
    return _words_in(w.index_top_words, w.guards.shape[0], w.indexes[s].top, nodes)


@inlined
def fields_of(w: Any) -> Any:
    """Offsets, scales and guards: what Fields.kernel hands to kernels."""
    return w.grid[0], w.grid[1], w.guards


@inlined
def search(w: Any, s: int, query: Any, epsilon: float, node_budget: int) -> Any:
    """(slot that dominates the (1, D) query or −1, probes, fraction searched, capped) in SCAN, PACKED or KDTREE.

    The index is not empty. `node_budget`: nodes of a tree after which it gives up, −1: never.
    """
    index, points = w.indexes[s], points_of(w, s)
    if index.method == SCAN:
        slot = scan_one(points, index.used, query[0])
        return slot, slot + 1 if slot >= 0 else index.used, 1.0, False
    found = np.empty(1, np.int64)
    if index.method == PACKED:
        tops = tops_of(w, s)
        largest = tops.reshape(tops.size)[: (index.built + SCAN_BLOCK - 1) // SCAN_BLOCK]
        arrays = (points, words_of(w, s), w.grid, w.guards, w.domain, largest)
        slot, probes = find_largest_first(arrays, index.built, index.used, query, found)
        return slot, probes, 1.0, False
    starts = level_starts(max(0, index.built - FRONT))
    tree = (points, words_of(w, s), tops_of(w, s), _top_words_of(w, s, starts[-1]), starts, w.grid, w.guards)
    gives_up = node_budget >= 0
    slot, probes, skipped, reached = find_in_tree(
        tree, index.built, index.used, node_budget if gives_up else NODE_CAP, gives_up, epsilon, query, found
    )
    if not gives_up:
        index.fallbacks += reached
    return slot, probes, 1.0 - skipped, gives_up and reached > 0


@inlined
def exists(w: Any, s: int, query: Any) -> bool:
    """Does any stored point dominate the query? The exact answer beside an approximate search."""
    packed = np.empty(w.guards.shape[0], np.uint64)
    pack(query, w.grid[0], w.grid[1], w.guards, packed)
    slot, _ = scan_fields(points_of(w, s), words_of(w, s), w.guards, query, packed, FIRST, w.indexes[s].used)
    return slot >= 0


@inlined
def covered(w: Any, s: int, query: Any) -> Any:
    """All slots whose point the query dominates."""
    index = w.indexes[s]
    if index.method == SCAN:
        return covered_slots(points_of(w, s), index.used, query)
    return covered_by_fields(points_of(w, s), words_of(w, s), index.used, fields_of(w), query)


@inlined
def _move_to_larger_region(w: Any, s: int) -> None:
    run, index, width = w.run[0], w.indexes[s], w.guards.shape[0]
    old = index.row, index.capacity, index.top, index.tops
    capacity = max(_LEAST_CAPACITY, 2 * index.capacity)
    tops = capacity // (BUCKET - 1) + 8  # a node per bucket, per 64 buckets, …, and one for all
    if run.index_rows + capacity > len(w.index_owners):
        rows = max(run.index_rows + capacity, 2 * len(w.index_owners))
        w.index_points = _longer_matrix(w.index_points, rows)
        w.index_words, w.index_owners = longer(w.index_words, width * rows), longer(w.index_owners, rows)
    if run.index_tops + tops > len(w.index_tops):
        rows = max(run.index_tops + tops, 2 * len(w.index_tops))
        w.index_tops, w.index_top_words = _longer_matrix(w.index_tops, rows), longer(w.index_top_words, width * rows)
    row, top = run.index_rows, run.index_tops
    run.index_rows += capacity
    run.index_tops += tops
    index.row, index.capacity, index.top, index.tops = row, capacity, top, tops
    for i in range(old[1]):
        w.index_owners[row + i] = w.index_owners[old[0] + i]
        for j in range(w.index_points.shape[1]):
            w.index_points[row + i, j] = w.index_points[old[0] + i, j]
        for j in range(width):
            w.index_words[width * row + j * capacity + i] = w.index_words[width * old[0] + j * old[1] + i]
    for i in range(old[3]):
        for j in range(w.index_tops.shape[1]):
            w.index_tops[top + i, j] = w.index_tops[old[2] + i, j]
        for j in range(width):
            w.index_top_words[width * (top + i) + j] = w.index_top_words[width * (old[2] + i) + j]


@inner
def _longer_matrix(rows: Any, needed: int) -> Any:
    copy = np.empty((needed, rows.shape[1]))
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            copy[i, j] = rows[i, j]
    return copy


@inner
def new_index(w: Any, chain: int, residue: int, method: int) -> int:
    """An empty index, last of its chain. Records of indexes that a caller holds are invalid afterwards."""
    run, links = w.run[0], w.chains[chain]
    s = run.unused_index
    if s >= 0:
        run.unused_index = w.indexes[s].next
    else:
        s = run.indexes
        run.indexes += 1
        if s == len(w.indexes):
            w.indexes = longer(w.indexes, ONE_MORE)
        fresh = w.indexes[s]
        fresh.row, fresh.capacity, fresh.top, fresh.tops = 0, 0, 0, 0
    index = w.indexes[s]
    index.residue, index.next, index.method = residue, -1, method
    index.used, index.built, index.dead, index.held, index.free = 0, 0, 0, 0, -1
    index.fallbacks, index.updates, index.stay, index.divided = 0, 0, 0, 1
    if links.last >= 0:
        w.indexes[links.last].next = s
    else:
        links.first = s
    links.last = s
    return s


@inner
def drop_index(w: Any, chain: int, s: int) -> None:
    """Take an emptied index out of its chain."""
    run, links, before = w.run[0], w.chains[chain], -1
    at = links.first
    while at != s:
        before, at = at, w.indexes[at].next
    if before >= 0:
        w.indexes[before].next = w.indexes[s].next
    else:
        links.first = w.indexes[s].next
    if links.last == s:
        links.last = before
    w.indexes[s].next, run.unused_index = run.unused_index, s


@inner
def add(w: Any, s: int, node: int, point: Any) -> None:
    """Store a point for a node; ask `needs_rebuild` afterwards."""
    index = w.indexes[s]
    slot = index.free
    if slot >= 0:
        index.free = -2 - w.index_owners[index.row + slot]
    else:
        slot = index.used
        index.used += 1
        if slot == index.capacity:
            _move_to_larger_region(w, s)
    points = points_of(w, s)
    for j in range(len(point)):
        points[slot, j] = point[j]
    w.index_owners[index.row + slot] = node
    w.nodes[node].slot = slot
    index.held += 1
    index.updates += 1
    if index.method == SCAN:
        return
    pack_stored(points, slot, slot + 1, fields_of(w), words_of(w, s))


@inner
def remove(w: Any, s: int, slot: int) -> None:
    """Remove what is in a slot; ask `needs_rebuild` afterwards."""
    index = w.indexes[s]
    index.held -= 1
    index.updates += 1
    words, points, owners = words_of(w, s), points_of(w, s), owners_of(w, s)
    for i in range(len(w.guards)):
        words[i, slot] = w.guards[i]  # passes for no query
    for j in range(points.shape[1]):
        points[slot, j] = np.nan
    if slot >= index.built:
        owners[slot] = -2 - index.free
        index.free = slot
        return
    owners[slot] = -1
    index.dead += 1


@inlined
def tail_limit(built: int) -> int:
    """As StaticWithTail.tail_limit."""
    return max(TAIL_LEAST, int(TAIL_FACTOR * np.sqrt(built)))


@inlined
def needs_rebuild(w: Any, s: int) -> bool:
    """After an addition or a removal: is the tail too long, or is too much of the static part removed?"""
    index = w.indexes[s]
    too_long = index.used - index.built > tail_limit(index.built)
    too_dead = index.dead > max(TAIL_LEAST, DEAD_SHARE * index.built)
    return (too_long or too_dead) and (index.method == PACKED or index.method == KDTREE)


@inlined
def _compact(w: Any, s: int) -> None:
    """Move all entries to the front, in slot order, as a tail without a static part; the caller packs the words."""
    index, points, owners, count = w.indexes[s], points_of(w, s), owners_of(w, s), 0
    for slot in range(index.used):
        if owners[slot] >= 0:
            for j in range(points.shape[1]):
                points[count, j] = points[slot, j]
            owners[count] = owners[slot]
            count += 1
    index.used, index.built, index.dead, index.free = count, 0, 0, -1


@inner
def rebuild(w: Any, s: int) -> None:
    """Move everything into the static part, in the method's order: StaticWithTail._rebuild."""
    _compact(w, s)
    index, domain = w.indexes[s], w.domain
    held, in_tree = index.held, index.method == KDTREE
    points, owners, tops = points_of(w, s)[:held], owners_of(w, s), tops_of(w, s)
    sizes = volumes(points, domain)
    order = ascending(sizes, -1.0)  # the largest first
    if in_tree:
        placed = bucket_order(_taken(points, order[FRONT:]), w.box)
        for i in range(len(placed)):
            placed[i] = order[FRONT + placed[i]]
        for i in range(len(placed)):
            order[FRONT + i] = placed[i]
    else:
        flat = tops.reshape(tops.size)
        for block in range(0, held, SCAN_BLOCK):
            flat[block // SCAN_BLOCK] = sizes[order[block]]
    there, who = _taken(points, order), np.empty(held, np.int64)
    for slot in range(held):
        who[slot] = owners[order[slot]]
    for slot in range(held):
        for j in range(points.shape[1]):
            points[slot, j] = there[slot, j]
        owners[slot] = who[slot]
        w.nodes[who[slot]].slot = slot
    index.built = held
    pack_stored(points, FIRST, held, fields_of(w), words_of(w, s))
    if not in_tree:
        return
    starts = level_starts(max(0, held - FRONT))
    nodes = starts[-1]
    fill_extremes(there[FRONT:], starts, np.empty((nodes, points.shape[1])), tops)
    for j in range(points.shape[1]):
        most = -np.inf
        for slot in range(held):
            most = max(most, points[slot, j])
        tops[nodes, j] = most
    pack_stored(tops, FIRST, nodes, fields_of(w), _top_words_of(w, s, nodes))


@inner
def _taken(points: Any, order: Any) -> Any:
    rows = np.empty((order.shape[0], points.shape[1]))
    for i in range(order.shape[0]):
        for j in range(points.shape[1]):
            rows[i, j] = points[order[i], j]
    return rows


@inlined
def take_over(w: Any, s: int, method: int) -> None:
    """Change the method of an index to PACKED or KDTREE."""
    index = w.indexes[s]
    index.method, index.fallbacks = method, 0
    if index.held > tail_limit(FIRST):
        rebuild(w, s)
        return
    _compact(w, s)
    for slot in range(index.held):
        w.nodes[w.index_owners[index.row + slot]].slot = slot
    pack_stored(points_of(w, s), FIRST, index.held, fields_of(w), words_of(w, s))
