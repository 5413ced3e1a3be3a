"""Insertion, partitioning, clustering and deletion of BE-Tree and BE*-Tree (ICDE 2012, Algorithms 1 to 5).

Rules (§IV-C): an expression goes to the smallest bucket that takes it; an overflowing bucket that can be split is
split before it is partitioned; an underflowing leaf bucket returns to its parent only if that has no p-directory.
Overflowing buckets wait in a work list, so nothing recurses and the arrays can grow between two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.sparse.be_arena import (
    ALL_HI,
    ALL_LO,
    ALL_SUM,
    ALPHA,
    ATTR,
    BETA,
    CAP,
    CAPACITY,
    COUNT,
    EXHAUSTIVE,
    FIRST,
    LARGEST,
    LEAF_SUM,
    LEFT,
    LEVEL,
    LEVELS,
    NEXT,
    OWN_HI,
    OWN_LO,
    OWNER,
    PNODE,
    RIGHT,
    RIGID,
    ROOT,
    ROUND_UP,
    SIZE,
    SLOTS,
    SPLIT,
    START,
    UP,
    WORK,
    Tree,
    find_pnode,
    free_bucket,
    free_pnode,
    give_room,
    has_room,
    new_bucket,
    new_pnode,
    put_row,
)  # fmt: skip
from topk.sparse.be_split import approximate, centre, exhaustive, halve
from topk.sparse.store import Rows


@njit(cache=True)
def position(rows: Rows, row: int, attribute: int) -> int:
    """The row's predicate on an attribute, −1 if it has none."""
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        if rows.attribute[p] == attribute:
            return p
    return -1


@njit(cache=True)
def path(t: Tree, b: int, attributes: Any) -> int:
    """The attributes of the p-nodes above a bucket, outermost first; returns how many."""
    level = t.bucket[b, LEVEL]
    for k in range(level - 1, -1, -1):
        p = t.bucket[b, PNODE]
        attributes[k] = t.pnode[p, ATTR]
        b = t.pnode[p, OWNER]
    return level


@njit(cache=True)
def widen(t: Tree, rows: Rows, b: int, row: int, sign: int) -> None:
    """Count the row (sign ±1) on the way from its bucket to the root; with +1 also widen boxes and weight bounds."""
    attributes = np.empty(LEVELS, np.int64)
    level = path(t, b, attributes)
    lo, hi = np.empty(LEVELS), np.empty(LEVELS)
    for k in range(level):
        p = position(rows, row, attributes[k])
        lo[k], hi[k] = rows.lo[p], rows.hi[p]
    total = 0.0
    if sign > 0:
        total = raise_top(t, rows, row, t.bucket_top[b])
        t.active[b, LEAF_SUM] = max(t.active[b, LEAF_SUM], total)
    own = True  # whether the row belongs to the bucket itself rather than to a descendant
    while True:
        if sign > 0 and not t.knobs[RIGID]:
            for k in range(level):
                if own:
                    t.box[b, OWN_LO, k] = min(t.box[b, OWN_LO, k], lo[k])
                    t.box[b, OWN_HI, k] = max(t.box[b, OWN_HI, k], hi[k])
                t.box[b, ALL_LO, k] = min(t.box[b, ALL_LO, k], lo[k])
                t.box[b, ALL_HI, k] = max(t.box[b, ALL_HI, k], hi[k])
            if level:
                t.active[b, :4] = t.box[b, :, level - 1]
        t.active[b, ALL_SUM] = max(t.active[b, ALL_SUM], total)
        own = False
        if t.bucket[b, UP] >= 0:
            b = t.bucket[b, UP]
            continue
        p = t.bucket[b, PNODE]
        if p < 0:
            return
        t.pnode[p, COUNT] += sign
        if sign > 0:
            raise_top(t, rows, row, t.pnode_top[p])
        b, own, level = t.pnode[p, OWNER], True, level - 1


@njit(cache=True)
def raise_top(t: Tree, rows: Rows, row: int, top: Any) -> float:
    """Raise the upper bounds of a node to a row's weights, and that of Σ weight · reference, which is returned."""
    begin = rows.start[row]
    total = 0.0
    for p in range(begin, begin + rows.length[row]):
        slot = rows.attribute[p] % SLOTS
        top[slot] = max(top[slot], np.float32(rows.weight[p]) * ROUND_UP)
        total += rows.weight[p] * t.reference[rows.attribute[p]]
    top[SLOTS] = max(top[SLOTS], np.float32(total) * ROUND_UP)
    return total


@njit(cache=True)
def choose_bucket(t: Tree, rows: Rows, row: int) -> int:
    """Algorithm 1: follow the p-nodes of highest rank among the row's attributes; the bucket to insert into."""
    b = 0
    while True:
        best, best_rank = -1, -np.inf
        if t.bucket[b, FIRST] >= 0:
            begin = rows.start[row]
            for i in range(begin, begin + rows.length[row]):
                p = find_pnode(t, b, rows.attribute[i])
                if p >= 0:
                    rank = rank_of(t, p)
                    if rank > best_rank:
                        best, best_rank = p, rank
        if best < 0:
            return b
        at = position(rows, row, t.pnode[best, ATTR])
        b = descend(t, best, rows.lo[at], rows.hi[at])


@njit(cache=True, inline="always")
def rank_of(t: Tree, p: int) -> Any:
    """gain − loss: expressions filed there, less the predicate evaluations an event wastes there (§V-B)."""
    seen = t.feedback[p, 1]
    return t.pnode[p, COUNT] - (t.feedback[p, 0] / seen if seen > 0.0 else 0.0)


@njit(cache=True)
def descend(t: Tree, p: int, lo: float, hi: float) -> int:
    """Algorithm 2 (InsertCDir): the bucket for [lo, hi] in the c-directory of p."""
    b = t.pnode[p, ROOT]
    k = t.bucket[b, LEVEL] - 1
    rigid = t.knobs[RIGID] != 0.0
    while True:
        left, right = t.bucket[b, LEFT], t.bucket[b, RIGHT]
        if t.bucket[b, SPLIT] == 0 and t.bucket[b, FIRST] < 0:
            return b
        if rigid:
            if t.bucket[b, SPLIT] == 0:
                return b
            if t.box[left, OWN_LO, k] <= lo and hi <= t.box[left, OWN_HI, k]:
                b = left
            elif t.box[right, OWN_LO, k] <= lo and hi <= t.box[right, OWN_HI, k]:
                b = right
            else:
                return b
            continue
        low, high = t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]
        if low <= high and max(high, hi) - min(low, lo) > t.knobs[BETA] * (high - low):
            return expand_upwards(t, b)
        if t.bucket[b, SPLIT] == 0:
            return b
        meets_left = lo <= t.box[left, ALL_HI, k] and t.box[left, ALL_LO, k] <= hi
        meets_right = lo <= t.box[right, ALL_HI, k] and t.box[right, ALL_LO, k] <= hi
        if meets_left and meets_right:
            return b
        if not (meets_left or meets_right):
            # Between or beside them: where the range grows least. It cannot then reach the other.
            grow_left = max(t.box[left, ALL_HI, k], hi) - min(t.box[left, ALL_LO, k], lo)
            grow_right = max(t.box[right, ALL_HI, k], hi) - min(t.box[right, ALL_LO, k], lo)
            meets_left = goes_left(t, left, right, k, lo, hi, grow_left < grow_right)
        b = left if meets_left else right


@njit(cache=True)
def goes_left(t: Tree, left: int, right: int, k: int, lo: float, hi: float, shorter: bool) -> bool:
    """Where a range that meets neither goes: to the side it lies beyond, so that the sides keep repelling each other.

    Only between the two is there a choice; the `shorter` result wins. An empty side takes it first.
    """
    if t.box[left, ALL_LO, k] > t.box[left, ALL_HI, k]:
        return True
    if t.box[right, ALL_LO, k] > t.box[right, ALL_HI, k]:
        return False
    left_first = t.box[left, ALL_LO, k] < t.box[right, ALL_LO, k]
    first, second = (left, right) if left_first else (right, left)
    if hi < t.box[first, ALL_LO, k]:
        return left_first
    if lo > t.box[second, ALL_HI, k]:
        return not left_first
    return shorter


@njit(cache=True)
def expand_upwards(t: Tree, b: int) -> int:
    """Bottom-up expansion: a new parent for b that hosts what is β times larger; its other descendant is empty."""
    up, p, level = t.bucket[b, UP], t.bucket[b, PNODE], t.bucket[b, LEVEL]
    parent = new_bucket(t, up, p, level)
    other = new_bucket(t, parent, p, level)
    if up < 0:
        t.pnode[p, ROOT] = parent
    elif t.bucket[up, LEFT] == b:
        t.bucket[up, LEFT] = parent
    else:
        t.bucket[up, RIGHT] = parent
    t.bucket[parent, LEFT], t.bucket[parent, RIGHT], t.bucket[parent, SPLIT] = b, other, 1
    t.bucket[b, UP] = parent
    t.box[parent, ALL_LO, :] = t.box[b, ALL_LO, :]
    t.box[parent, ALL_HI, :] = t.box[b, ALL_HI, :]
    t.active[parent, :4] = t.box[parent, :, level - 1]
    t.active[parent, ALL_SUM] = t.active[b, ALL_SUM]
    return parent


@njit(cache=True)
def insert_rows(t: Tree, rows: Rows, which: Any, begin: int) -> int:
    """Insert rows which[begin:]; returns how far it came before the arrays must grow."""
    for i in range(begin, len(which)):
        row = which[i]
        if not has_room(t, 4, 1, 4 * t.meta[LARGEST] + 64):
            return i
        b = choose_bucket(t, rows, row)
        put_row(t, b, row)
        widen(t, rows, b, row, 1)
        if t.bucket[b, SIZE] > t.bucket[b, CAP]:
            t.work[t.meta[WORK]] = b
            t.meta[WORK] += 1
            if settle(t, rows) >= 0:
                return i + 1
    return len(which)


@njit(cache=True)
def settle(t: Tree, rows: Rows) -> int:
    """Split and partition until nothing overflows. −1 when done, else the size of the bucket that needs room."""
    while t.meta[WORK]:
        b = t.work[t.meta[WORK] - 1]
        size = t.bucket[b, SIZE]
        fresh = min(size, len(t.tally))
        if not has_room(t, fresh + 4, fresh + 1, 8 * size + 64):
            return size
        t.meta[WORK] -= 1
        if size <= t.bucket[b, CAP]:
            continue
        if t.bucket[b, LEVEL] > 0 and t.bucket[b, SPLIT] == 0 and t.bucket[b, FIRST] < 0:
            split(t, rows, b)
        if t.bucket[b, SIZE] > t.bucket[b, CAP]:
            partition(t, rows, b)
    return -1


@njit(cache=True)
def split(t: Tree, rows: Rows, b: int) -> None:
    """Algorithm 5: the bucket keeps what overlaps; left and right get the rest. Atomic buckets stay whole."""
    k = t.bucket[b, LEVEL] - 1
    size = t.bucket[b, SIZE]
    attribute = t.pnode[t.bucket[b, PNODE], ATTR]
    members = t.entries[t.bucket[b, START] : t.bucket[b, START] + size].copy()
    lo, hi = np.empty(size), np.empty(size)
    for i in range(size):
        p = position(rows, members[i], attribute)
        lo[i], hi[i] = rows.lo[p], rows.hi[p]
    label = np.empty(size, np.int8)
    if t.knobs[RIGID]:
        cell_lo, cell_hi = t.box[b, ALL_LO, k], t.box[b, ALL_HI, k]
        if t.bucket[b, UP] < 0:
            cell_lo, cell_hi = t.domain[attribute, 0], t.domain[attribute, 1]
        if not cell_hi - cell_lo > t.domain[attribute, 2]:
            return
        middle = cell_lo + (cell_hi - cell_lo) / 2.0
        for i in range(size):
            label[i] = 0 if hi[i] < middle else (2 if lo[i] >= middle else 1)
    else:
        if t.box[b, OWN_LO, k] == t.box[b, OWN_HI, k]:
            return
        done = exhaustive(lo, hi, t.knobs[ALPHA], label) if t.knobs[EXHAUSTIVE] else approximate(
            lo, hi, t.knobs[ALPHA], label
        )
        if not done:
            halve(lo, hi, centre(lo, hi), label)
    left = new_bucket(t, b, t.bucket[b, PNODE], k + 1)
    right = new_bucket(t, b, t.bucket[b, PNODE], k + 1)
    if t.knobs[RIGID]:
        set_cells(t, b, left, right, k, cell_lo, middle, cell_hi)
    t.bucket[b, LEFT], t.bucket[b, RIGHT], t.bucket[b, SPLIT] = left, right, 1
    give_room(t, b)
    t.bucket[b, CAP] = np.int64(t.knobs[CAPACITY])
    for i in range(size):
        put_row(t, left if label[i] == 0 else (right if label[i] == 2 else b), members[i])
    for child in (b, left, right):
        refresh(t, rows, child)
        if t.bucket[child, SIZE] > t.bucket[child, CAP] and child != b:
            t.work[t.meta[WORK]] = child
            t.meta[WORK] += 1
    refresh(t, rows, b)


@njit(cache=True)
def set_cells(
    t: Tree, b: int, left: int, right: int, k: int, cell_lo: float, middle: float, cell_hi: float
) -> None:
    """Rigid cells: own range for searching (outermost cells are unbounded), whole range for halving."""
    outer_lo, outer_hi = t.box[b, OWN_LO, k], t.box[b, OWN_HI, k]
    if t.bucket[b, UP] < 0:
        outer_lo, outer_hi = -np.inf, np.inf
    t.box[left, OWN_LO, k], t.box[left, OWN_HI, k] = outer_lo, np.nextafter(middle, -np.inf)
    t.box[right, OWN_LO, k], t.box[right, OWN_HI, k] = middle, outer_hi
    t.box[left, ALL_LO, k], t.box[left, ALL_HI, k] = cell_lo, middle
    t.box[right, ALL_LO, k], t.box[right, ALL_HI, k] = middle, cell_hi
    t.active[left, :4] = t.box[left, :, k]
    t.active[right, :4] = t.box[right, :, k]


@njit(cache=True)
def refresh(t: Tree, rows: Rows, b: int) -> None:
    """Recompute a bucket's boxes (from its rows, its p-nodes' buckets and its descendants) and weight bounds."""
    refresh_sums(t, rows, b)
    begin, size = t.bucket[b, START], t.bucket[b, SIZE]
    if t.knobs[RIGID]:
        return
    attributes = np.empty(LEVELS, np.int64)
    level = path(t, b, attributes)
    for k in range(level):
        low, high = np.inf, -np.inf
        for i in range(begin, begin + size):
            p = position(rows, t.entries[i], attributes[k])
            low, high = min(low, rows.lo[p]), max(high, rows.hi[p])
        q = t.bucket[b, FIRST]
        while q >= 0:
            low = min(low, t.box[t.pnode[q, ROOT], ALL_LO, k])
            high = max(high, t.box[t.pnode[q, ROOT], ALL_HI, k])
            q = t.pnode[q, NEXT]
        t.box[b, OWN_LO, k], t.box[b, OWN_HI, k] = low, high
        for child in (t.bucket[b, LEFT], t.bucket[b, RIGHT]):
            if child >= 0:
                low = min(low, t.box[child, ALL_LO, k])
                high = max(high, t.box[child, ALL_HI, k])
        t.box[b, ALL_LO, k], t.box[b, ALL_HI, k] = low, high
    if level:
        t.active[b, :4] = t.box[b, :, level - 1]


@njit(cache=True)
def refresh_sums(t: Tree, rows: Rows, b: int) -> None:
    """Recompute a bucket's weight bounds and its bounds of the sum."""
    t.bucket_top[b, :] = 0
    leaf = 0.0
    begin = t.bucket[b, START]
    for i in range(begin, begin + t.bucket[b, SIZE]):
        leaf = max(leaf, raise_top(t, rows, t.entries[i], t.bucket_top[b]))
    t.active[b, LEAF_SUM] = leaf
    q = t.bucket[b, FIRST]
    while q >= 0:
        leaf = max(leaf, t.active[t.pnode[q, ROOT], ALL_SUM])
        q = t.pnode[q, NEXT]
    for child in (t.bucket[b, LEFT], t.bucket[b, RIGHT]):
        if child >= 0:
            leaf = max(leaf, t.active[child, ALL_SUM])
    t.active[b, ALL_SUM] = leaf


@njit(cache=True)
def partition(t: Tree, rows: Rows, b: int) -> None:
    """Algorithm 4: new p-nodes for the most popular unused attributes until the l-node fits."""
    attributes = np.empty(LEVELS, np.int64)
    level = path(t, b, attributes)
    if level == LEVELS:
        t.bucket[b, CAP] = 2 * t.bucket[b, SIZE]
        return
    begin, size = t.bucket[b, START], t.bucket[b, SIZE]
    members = t.entries[begin : begin + size].copy()
    for row in members:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            t.tally[rows.attribute[p]] += 1
    for k in range(level):
        t.tally[attributes[k]] = 0
    remaining = size
    while remaining > t.bucket[b, CAP]:
        best = most_popular(t, rows, members[:remaining])
        if best < 0 or t.tally[best] < 2:
            t.bucket[b, CAP] = 2 * remaining  # UpdateClusterCapacity: nothing separates these
            break
        remaining = move_rows(t, rows, members, remaining, new_pnode(t, b, best))
        t.tally[best] = 0
    for row in members:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            t.tally[rows.attribute[p]] = 0
    give_room(t, b)
    for i in range(remaining):
        put_row(t, b, members[i])
    refresh_sums(t, rows, b)


@njit(cache=True)
def most_popular(t: Tree, rows: Rows, members: Any) -> int:
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


@njit(cache=True)
def move_rows(t: Tree, rows: Rows, members: Any, count: int, p: int) -> int:
    """Move those of members[:count] that have p's attribute below p; returns how many stay, at the front."""
    attribute = t.pnode[p, ATTR]
    target = t.pnode[p, ROOT]
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
        put_row(t, target, row)
        t.pnode[p, COUNT] += 1
        raise_top(t, rows, row, t.pnode_top[p])
    refresh(t, rows, target)
    if t.bucket[target, SIZE] > t.bucket[target, CAP]:
        t.work[t.meta[WORK]] = target
        t.meta[WORK] += 1
    return stay


@njit(cache=True)
def delete_row(t: Tree, rows: Rows, row: int) -> None:
    """Take a row out, shrink every box on the way up, merge what underflows, drop empty p-nodes."""
    b = t.home[row]
    begin, size = t.bucket[b, START], t.bucket[b, SIZE]
    at = begin
    while t.entries[at] != row:
        at += 1
    t.entries[at] = t.entries[begin + size - 1]
    t.bucket[b, SIZE] = size - 1
    t.home[row] = -1
    widen(t, rows, b, row, -1)
    while True:
        refresh(t, rows, b)
        up = t.bucket[b, UP]
        if up >= 0:
            merge(t, rows, up)
            b = up
            continue
        p = t.bucket[b, PNODE]
        if p < 0:
            return
        owner = t.pnode[p, OWNER]
        if t.pnode[p, COUNT] == 0:
            remove_buckets(t, p)
            free_pnode(t, p)
        b = owner


@njit(cache=True)
def merge(t: Tree, rows: Rows, b: int) -> None:
    """Merge rule: descendants that are leaves return to b if b is open, one underflows and all fit."""
    left, right = t.bucket[b, LEFT], t.bucket[b, RIGHT]
    if t.bucket[b, FIRST] >= 0:
        return
    for child in (left, right):
        if t.bucket[child, SPLIT] or t.bucket[child, FIRST] >= 0:
            return
    capacity = np.int64(t.knobs[CAPACITY])
    total = t.bucket[b, SIZE] + t.bucket[left, SIZE] + t.bucket[right, SIZE]
    least = min(t.bucket[left, SIZE], t.bucket[right, SIZE])
    if total > capacity or least > t.knobs[ALPHA] * capacity:
        return
    for child in (left, right):
        begin = t.bucket[child, START]
        for i in range(begin, begin + t.bucket[child, SIZE]):
            put_row(t, b, t.entries[i])
        free_bucket(t, child)
    t.bucket[b, LEFT] = t.bucket[b, RIGHT] = -1
    t.bucket[b, SPLIT] = 0


@njit(cache=True)
def remove_buckets(t: Tree, p: int) -> None:
    """Free all (empty) buckets of a c-directory."""
    b = t.pnode[p, ROOT]
    while b >= 0:
        if t.bucket[b, LEFT] >= 0:
            b = t.bucket[b, LEFT]
        elif t.bucket[b, RIGHT] >= 0:
            b = t.bucket[b, RIGHT]
        else:
            up = t.bucket[b, UP]
            if up >= 0:
                if t.bucket[up, LEFT] == b:
                    t.bucket[up, LEFT] = -1
                else:
                    t.bucket[up, RIGHT] = -1
            free_bucket(t, b)
            b = up
