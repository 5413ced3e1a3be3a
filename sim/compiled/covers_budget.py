"""`budget` among the covering indexes (covers.py): the B largest boxes are looked at, as by `covering/budget.py`.

They have slots 0 … B−1, largest first, ties by subscription, so that `find_largest_first` finds the same box as there.
The others follow in no particular order. No slot is free. `index_tops` has the volume of the first box of each block,
as for `packed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.packed import find_largest_first, volume
from covering.packed_words import SCAN_BLOCK, pack_stored
from sim.compiled.covers import fields_of, owners_of, points_of, tops_of, words_of
from sim.compiled.state import inner


@inner
def _size(w: Any, point: Any) -> float:
    """The volume of a box; an overflow counts as infinite."""
    size = volume(point, w.domain)
    return np.inf if np.isnan(size) else size


@inner
def search_largest(w: Any, s: int, query: Any) -> Any:
    """(slot or −1, probes, fraction searched, capped), as `covers.search`."""
    index, points = w.indexes[s], points_of(w, s)
    front = min(w.run[0].budget, index.used)
    tops = tops_of(w, s)
    largest = tops.reshape(tops.size)[: (front + SCAN_BLOCK - 1) // SCAN_BLOCK]
    arrays = (points, words_of(w, s), w.grid, w.guards, w.domain, largest)
    slot, probes = find_largest_first(arrays, front, front, query, np.empty(1, np.int64))
    # Not `<=`: the volume of a query may be NaN, and then the miss counts as capped.
    capped = slot < 0 and front < index.used and not volume(query[0], w.domain) > _size(w, points[front - 1])
    return slot, probes, 0.0 if capped else 1.0, capped


@inner
def _is_before(w: Any, s: int, one: int, other: int) -> bool:
    points, owners, nodes = points_of(w, s), owners_of(w, s), w.nodes
    first, second = _size(w, points[one]), _size(w, points[other])
    if first == second:
        return nodes[owners[one]].subscription < nodes[owners[other]].subscription
    return first > second


@inner
def _copy(w: Any, s: int, source: int, target: int) -> None:
    """Copy the entry of one slot to another."""
    points, words, owners = points_of(w, s), words_of(w, s), owners_of(w, s)
    for j in range(points.shape[1]):
        points[target, j] = points[source, j]
    for i in range(words.shape[0]):
        words[i, target] = words[i, source]
    owners[target] = owners[source]
    w.nodes[owners[target]].slot = target


@inner
def _put(w: Any, s: int, slot: int, owner: int, point: Any) -> None:
    points = points_of(w, s)
    for j in range(len(point)):
        points[slot, j] = point[j]
    owners_of(w, s)[slot] = owner
    w.nodes[owner].slot = slot
    pack_stored(points, slot, slot + 1, fields_of(w), words_of(w, s))


@inner
def _move(w: Any, s: int, source: int, target: int) -> None:
    """Move the entry of one slot to another; those in between shift by one."""
    owner, point = owners_of(w, s)[source], points_of(w, s)[source].copy()
    step = 1 if source < target else -1
    for slot in range(source, target, step):
        _copy(w, s, slot + step, slot)
    _put(w, s, target, owner, point)


@inner
def _note_blocks(w: Any, s: int) -> None:
    points, tops = points_of(w, s), tops_of(w, s)
    flat = tops.reshape(tops.size)
    for slot in range(0, min(w.run[0].budget, w.indexes[s].used), SCAN_BLOCK):
        flat[slot // SCAN_BLOCK] = _size(w, points[slot])


@inner
def rank_last(w: Any, s: int) -> None:
    """The newest entry is in the last slot: move it forward if it is one of the largest."""
    at, budget = w.indexes[s].used - 1, w.run[0].budget
    if at >= budget:
        if not _is_before(w, s, at, budget - 1):
            return
        owner, point = owners_of(w, s)[at], points_of(w, s)[at].copy()
        _copy(w, s, budget - 1, at)
        at = budget - 1
        _put(w, s, at, owner, point)
    low, high = 0, at
    while low < high:
        middle = (low + high) >> 1
        if _is_before(w, s, middle, at):
            low = middle + 1
        else:
            high = middle
    _move(w, s, at, low)
    _note_blocks(w, s)


@inner
def remove_ranked(w: Any, s: int, slot: int) -> None:
    """Remove the entry of a slot; the largest outside the front fills a gap in it, the last one a gap elsewhere."""
    index, budget = w.indexes[s], w.run[0].budget
    last = index.used - 1
    if slot < budget:
        end = min(budget, index.used) - 1
        _move(w, s, slot, end)
        slot = end
        if last > end:
            best = end + 1
            for other in range(end + 2, index.used):
                if _is_before(w, s, other, best):
                    best = other
            _copy(w, s, best, slot)
            slot = best
    if slot < last:
        _copy(w, s, last, slot)
    index.used -= 1
    index.held -= 1
    _note_blocks(w, s)
