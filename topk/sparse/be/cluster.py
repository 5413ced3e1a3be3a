"""The two phases of BE-Tree and BE*-Tree: clustering (Algorithm 5) and partitioning (Algorithm 4) of ICDE 2012.

An overflowing bucket that can be split is split before it is partitioned (§IV-C). Overflowing buckets wait in a work
list, so nothing recurses and the arrays can grow between two of them.

Three arguments say how a tree is cut. Each is True or None; for None nothing is compiled: `rigid` (cells of the
domain, BE-Tree), `roughly` (approximate splits of BE*-Tree), `histogram` (the rank of a new p-node).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.rows import fill, floats, ints
from topk.sparse.be.arena import (
    ALL_HI,
    ALL_LO,
    ALPHA,
    CAPACITY,
    LEVELS,
    OWN_HI,
    OWN_LO,
    ROW,
    WORK,
    give_room,
    has_room,
    new_bucket,
    new_pnode,
    put_row,
    show_active,
)
from topk.sparse.be.bounds import path, position, raise_top, refresh, refresh_scores
from topk.sparse.be.split import approximate, centre, exhaustive, halve, within

_CELLS = 16  # buckets of a histogram
_THINNEST = 1e-150  # in place of the width of a histogram of one value


@kernel(inner=True)
def settle(t: Any, rows: Any, rigid: Any, roughly: Any, histogram: Any) -> int:
    """Split and partition until nothing overflows. −1 when done, else the size of the bucket that needs room."""
    while t.meta[WORK]:
        b = t.work[t.meta[WORK] - 1]
        size = t.node[b].count
        fresh = min(size, len(t.tally))
        if not has_room(t, fresh + 4, fresh + 1, 8 * size + 64):
            return size
        t.meta[WORK] -= 1
        if size <= t.bucket[b].cap:
            continue
        if t.bucket[b].level > 0 and t.bucket[b].split == 0 and t.node[b].first < 0:
            split(t, rows, b, rigid, roughly)
        if t.node[b].count > t.bucket[b].cap:
            partition(t, rows, b, histogram)
    return -1


@kernel(inner=True)
def members_of(t: Any, b: int) -> Any:
    """The rows of an l-node, a copy."""
    start, rows = t.node[b].start, ints(np.int64(t.node[b].count))
    for i in range(len(rows)):
        rows[i] = t.entries[start + i, ROW]
    return rows


@kernel(inner=True)
def split(t: Any, rows: Any, b: int, rigid: Any, roughly: Any) -> None:
    """Algorithm 5: the bucket keeps what overlaps; left and right get the rest. Atomic buckets stay whole."""
    k = t.bucket[b].level - 1
    size = np.int64(t.node[b].count)
    p_above = np.int64(t.bucket[b].pnode)
    attribute = np.int64(t.pnode[p_above].attr)
    members = members_of(t, b)
    lo, hi = floats(size), floats(size)
    for i in range(size):
        p = position(rows, members[i], attribute)
        lo[i], hi[i] = rows.lo[p], rows.hi[p]
    label = ints(size)
    if rigid is not None:
        cell_lo, cell_hi = t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]
        if t.bucket[b].up < 0:
            cell_lo, cell_hi = t.domain[attribute, 0], t.domain[attribute, 1]
        middle = cell_lo / 2.0 + cell_hi / 2.0
        # Beyond 2⁵³ two neighbouring floats may be further apart than the resolution: nothing lies between them.
        if not (cell_hi - cell_lo > t.domain[attribute, 2] and cell_lo < middle < cell_hi):
            return
        for i in range(size):
            label[i] = 0 if hi[i] < middle else (2 if lo[i] >= middle else 1)
    else:
        if t.box[b, OWN_LO, k] == t.box[b, OWN_HI, k]:
            return
        if roughly is None:
            done = exhaustive(lo, hi, t.knobs[ALPHA], label)
        else:
            done = approximate(lo, hi, t.knobs[ALPHA], label)
        if not done:
            halve(lo, hi, centre(lo, hi), label)
    left = new_bucket(t, b, p_above, np.int64(k + 1))
    right = new_bucket(t, b, p_above, np.int64(k + 1))
    if rigid is not None:
        set_cells(t, b, left, right, k, cell_lo, middle, cell_hi)
    t.node[b].left, t.node[b].right, t.bucket[b].split = left, right, 1
    give_room(t, b)
    t.bucket[b].cap = np.int64(t.knobs[CAPACITY])
    for i in range(size):
        put_row(t, rows, left if label[i] == 0 else (right if label[i] == 2 else b), members[i])
    for child in (b, left, right):
        refresh(t, rows, child)
        if t.node[child].count > t.bucket[child].cap and child != b:
            t.work[t.meta[WORK]] = child
            t.meta[WORK] += 1
    refresh(t, rows, b)


@kernel(inner=True)
def set_cells(t: Any, b: int, left: int, right: int, k: int, cell_lo: float, middle: float, cell_hi: float) -> None:
    """Rigid cells: own range for searching (outermost cells are unbounded), whole range for halving."""
    outer_lo, outer_hi = t.box[b, OWN_LO, k], t.box[b, OWN_HI, k]
    if t.bucket[b].up < 0:
        outer_lo, outer_hi = -np.inf, np.inf
    t.box[left, OWN_LO, k], t.box[left, OWN_HI, k] = outer_lo, np.nextafter(middle, -np.inf)
    t.box[right, OWN_LO, k], t.box[right, OWN_HI, k] = middle, outer_hi
    t.box[left, ALL_LO, k], t.box[left, ALL_HI, k] = cell_lo, middle
    t.box[right, ALL_LO, k], t.box[right, ALL_HI, k] = middle, cell_hi
    show_active(t, left, k)
    show_active(t, right, k)


@kernel(inner=True)
def partition(t: Any, rows: Any, b: int, histogram: Any) -> None:
    """Algorithm 4: new p-nodes for the most popular unused attributes until the l-node fits."""
    attributes = ints(LEVELS)
    level = path(t, b, attributes)
    if level == LEVELS:
        t.bucket[b].cap = 2 * t.node[b].count
        return
    size = np.int64(t.node[b].count)
    members = members_of(t, b)
    for row in members:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            t.tally[rows.attribute[p]] += 1
    for k in range(level):
        t.tally[attributes[k]] = 0
    remaining = size
    while remaining > t.bucket[b].cap:
        best = most_popular(t, rows, members[:remaining], histogram)
        if best < 0 or t.tally[best] < 2:
            t.bucket[b].cap = 2 * remaining  # UpdateClusterCapacity: nothing separates these
            break
        remaining = move_rows(t, rows, members, remaining, new_pnode(t, b, best))
        t.tally[best] = 0
    for row in members:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            t.tally[rows.attribute[p]] = 0
    p = t.bucket[b].pnode
    while p >= 0:  # what moved has one more predicate in common
        t.pnode[p].rank += np.float32(size - remaining)
        p = t.bucket[t.pnode[p].owner].pnode
    give_room(t, b)
    for i in range(remaining):
        put_row(t, rows, b, members[i])
    refresh_scores(t, rows, b)


@kernel(inner=True)
def most_popular(t: Any, rows: Any, members: Any, histogram: Any) -> int:
    """The attribute of highest rank (§V-B) for a new p-node: its gain is the expressions that have it."""
    if histogram is not None:
        return most_selective(t, rows, members)
    best, count = -1, 0
    if 8 * len(members) > len(t.tally):
        for a in range(len(t.tally)):
            if t.tally[a] > count:
                best, count = a, t.tally[a]
        return best
    for row in members:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            a = rows.attribute[p]
            if t.tally[a] > count or (t.tally[a] == count and a < best):
                best, count = a, t.tally[a]
    return best


@kernel(inner=True)
def most_selective(t: Any, rows: Any, members: Any) -> int:
    """`most_popular` less a loss: the average size of the buckets in a histogram of the attribute's predicates."""
    low, high, sizes = floats(len(t.tally)), floats(len(t.tally)), ints(_CELLS * len(t.tally))
    fill(low, np.inf)
    fill(high, -np.inf)
    fill(sizes, 0)
    for counting in range(2):  # the range of each attribute, then its histogram
        for row in members:
            for p in range(rows.start[row], rows.start[row] + rows.length[row]):
                a, lo, hi = rows.attribute[p], within(rows.lo[p]), within(rows.hi[p])
                if not counting:
                    low[a], high[a] = min(low[a], lo), max(high[a], hi)
                    continue
                unit = max((high[a] - low[a]) / _CELLS, _THINNEST)
                first, last = int((lo - low[a]) / unit), int((hi - low[a]) / unit)
                for cell in range(min(first, _CELLS - 1), min(last, _CELLS - 1) + 1):
                    sizes[_CELLS * a + cell] += 1
    best, best_rank = -1, -np.inf
    for a in range(len(t.tally)):
        total, used = 0, 0
        for cell in range(_CELLS * a, _CELLS * a + _CELLS):
            total += sizes[cell]
            used += 1 if sizes[cell] else 0
        if t.tally[a] > 0 and t.tally[a] - total / max(used, 1) > best_rank:
            best, best_rank = a, t.tally[a] - total / max(used, 1)
    return best


@kernel(inner=True)
def move_rows(t: Any, rows: Any, members: Any, count: int, p: int) -> int:
    """Move those of members[:count] that have p's attribute below p; returns how many stay, at the front."""
    attribute, target = np.int64(t.pnode[p].attr), np.int64(t.pnode[p].root)
    stay = 0
    for i in range(count):
        row = members[i]
        if position(rows, row, attribute) < 0:
            members[i], members[stay] = members[stay], row
            stay += 1
            continue
        for q in range(rows.start[row], rows.start[row] + rows.length[row]):
            if t.tally[rows.attribute[q]] > 0:
                t.tally[rows.attribute[q]] -= 1
        put_row(t, rows, target, row)
        t.pnode[p].count += 1
        t.pnode[p].rank += np.float32(t.bucket[target].level)
        t.pnode[p].score = max(t.pnode[p].score, raise_top(t, rows, row, t.pnode_top[p]))
    refresh(t, rows, target)
    if t.node[target].count > t.bucket[target].cap:
        t.work[t.meta[WORK]] = target
        t.meta[WORK] += 1
    return stay
