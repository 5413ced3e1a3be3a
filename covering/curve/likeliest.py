"""Search of the sorted Z keys that visits the ranges where most stored points are expected first.

The ranges are the leaves of a trie that counts keys (counters.py), as far as they meet the search region. Each is
searched from its first key on, as `bigmin` does: look up the first record at or after a key; if it is in the range and
no cover, go on from the next key behind it that is in the region. A range is done when a lookup leads beyond.

Nothing is asked twice: a lookup proves all keys between where it began and the record that it returned absent, and a
range that begins there needs no lookup of its own. Nothing is left out: at the end of the order the search is exact.
A stop may end it before: as soon as fewer points than a threshold are expected in the ranges that are not done, or
after a number of lookups.

Cost: O(log n) a lookup, and a sort of the ranges that meet the region. A probe is a lookup.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.contract import Slots
from covering.curve.bigmin import END, INSIDE, next_inside
from covering.curve.counters import Tree, expected, leaves_within
from covering.curve.keys import Codes, Words, interleave
from covering.curve.sfc_array import BLOCK, Arrays, compare, locate, same_prefix
from covering.given import Floats
from covering.packed_words import dominates
from coverlay import kernel

_FEW = 64  # lookups that there is room for at first


@kernel(inner=True)
def _place_of(places: Slots, count: int, place: int) -> int:
    """How many of the first `count` places, ascending, are before this one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inner=True)
def _is_known(known: Any, count: int, place: int, row: Words) -> bool:
    """Did a lookup that began at or before `row` return the record at this place of the array?"""
    places, begins = known
    i = _place_of(places, count, place)
    return i < count and places[i] == place and compare(begins[i], row) <= 0


@kernel(inner=True)
def _remember(known: Any, count: int, place: int, row: Words) -> Any:
    """A lookup from `row` on returned the record at this place: (what is known now, how many places)."""
    places, begins = known
    if count == places.shape[0]:
        places, begins = np.empty(2 * count, np.int64), np.empty((2 * count, row.shape[0]), np.uint64)
        places[:count], begins[:count] = known[0], known[1]
    i = _place_of(places, count, place)
    if i == count or places[i] != place:
        for later in range(count, i, -1):
            places[later] = places[later - 1]
            begins[later] = begins[later - 1]
        count += 1
    places[i], begins[i] = place, row
    return (places, begins), count


@kernel(inner=True)
def _cover_in(record: Words, points: Floats, query: Floats) -> Any:
    """The slot of a record if it is a cover, else −1."""
    slot = np.int64(record[-1])
    return slot if dominates(points, slot, query) else np.int64(-1)


@kernel(inner=True)
def _go_on(record: Words, corner: Words, bits: int, dimensions: int, row: Words) -> bool:
    """Write where to look up next, behind a record that is no cover; False if no key behind it is in the region."""
    found = next_inside(record, corner, bits, dimensions, row)
    if found == INSIDE:  # the records behind it may have the same key, and another slot
        row[:] = record
        row[-1] += np.uint64(1)
    return bool(found != END)


@kernel(inner=True)
def _likeliest_ranges(tree: Tree, lengths: Codes, bits: int) -> Any:
    """The leaves to visit, in order, the points expected in each, and its share of the region."""
    leaves = np.empty(tree[0].shape[0], np.int64)
    count = leaves_within(tree, lengths, leaves)
    points, shares = np.empty(count), np.empty(count)
    for i in range(count):
        points[i], shares[i] = expected(tree, leaves[i], lengths, bits)
    order = np.argsort(-points, kind="mergesort")  # ties in key order
    return leaves[order], points[order], shares[order]


@kernel
def likeliest_first(
    arrays: Arrays,
    tree: Tree,
    points: Floats,
    query: Floats,
    lengths: Codes,
    bits: int,
    thresholds: Floats,
    most: int,
    goes_on: bool,
    fired: Slots,
) -> Any:
    """(slot or −1, lookups, least points expected in what was left before a lookup, share of the region not searched).

    Ends as soon as fewer points than `thresholds[0]` are expected in what is left, or after `most` lookups, unless it
    `goes_on`. `fired[i]`: the lookups made when first fewer than `thresholds[i]` were expected; −1 if that never was.
    """
    rows, order, meta = arrays[0], arrays[2], arrays[4]
    dimensions, width = lengths.shape[0], rows.shape[1]
    leaves, in_leaf, shares = _likeliest_ranges(tree, lengths, bits)
    known, met = (np.empty(_FEW, np.int64), np.empty((_FEW, width), np.uint64)), 0
    first, row, corner = np.zeros(width, np.uint64), np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    interleave(lengths - 1, bits, corner)
    left, unsearched, lookups, least = in_leaf.sum(), shares.sum(), 0, np.inf
    fired[:] = -1
    for i in range(leaves.shape[0]):
        interleave(tree[3][leaves[i]], bits, first)
        row[:] = first
        more = True
        while more:
            at, inside = locate(arrays, row)
            place = at * BLOCK + inside
            record = rows[order[at] * BLOCK + inside] if at < meta[0] else first
            if not _is_known(known, met, place, row):
                least = min(least, left)
                for k in range(thresholds.shape[0]):
                    if fired[k] < 0 and left < thresholds[k]:
                        fired[k] = lookups
                if not goes_on and (fired[0] >= 0 or lookups >= most):
                    return np.int64(-1), lookups, least, unsearched
                lookups += 1
                known, met = _remember(known, met, place, row)
                slot = _cover_in(record, points, query) if at < meta[0] else np.int64(-1)
                if slot >= 0:
                    return slot, lookups, least, unsearched
            more = at < meta[0] and same_prefix(record, first, tree[2][leaves[i]])
            more = more and _go_on(record, corner, dimensions * bits, dimensions, row)
            more = more and same_prefix(row, first, tree[2][leaves[i]])
        left -= in_leaf[i]
        unsearched -= shares[i]
    return np.int64(-1), lookups, least, 0.0
