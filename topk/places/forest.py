"""The forests of the R^I-tree: per node and attribute a dynamic interval tree that answers stabbing-max queries.

A *group* belongs to (node, attribute) and holds one interval per child of the node that knows the attribute: in a
leaf the predicate of a subscription with its weight times 1 − α, above it the child's own summary Γ = (hull of its
intervals, largest weight). A group has at most as many intervals as a node has children, so its interval tree is
implicit: intervals sorted by low end form a balanced binary tree by position, augmented with the largest high end
and the largest weight below. An update moves at most a node's worth of entries. A directory (the paper's hashmap)
finds the group. Queries are in `stabbing`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.bits import bit_length
from topk.kernels.hashing import drop, emptied, lookup, put, with_slots
from topk.kernels.rows import ascending, copy, fitted, give, take, unchain, with_room
from topk.predicates import Int32s

# Columns of Forest.group
START, COUNT, ROOM, NODE, ATTRIBUTE, NEXT = range(6)
# Columns of Forest.entry
LO, HI, WEIGHT, MOST_HI, MOST_WEIGHT = range(5)
# Entries of Forest.meta
GROUPS, ENTRIES, FREE_GROUP, HASHED, FREE_ROOM = 0, 1, 2, 3, 8


class Forest(NamedTuple):
    group: Int32s  # (groups, 6)
    summary: Floats  # (groups, 3) Γ: hull and largest weight
    entry: Floats  # (entries, 5)
    child: Int32s  # (entries,)
    first: Ints  # (nodes,) first group of a node
    keys: Ints
    values: Int32s
    meta: Ints


def empty_forest() -> Forest:
    meta = np.zeros(FREE_ROOM + 32, np.int64)
    meta[FREE_GROUP] = -1
    meta[FREE_ROOM:] = -1
    groups, entries = (np.zeros((64, 6), np.int32), np.zeros((64, 3))), (np.zeros((256, 5)), np.zeros(256, np.int32))
    return Forest(*groups, *entries, np.full(16, -1, np.int64), *emptied(256, np.int32), meta)


def grown_forest(f: Forest, nodes: int, groups: int, entries: int) -> Forest:
    """The same with room for `groups` and `entries` more, and for `nodes` nodes in all."""
    g, e = int(f.meta[GROUPS]), int(f.meta[ENTRIES])
    group, summary = (with_room(column, g, groups) for column in (f.group, f.summary))
    entry, child = (with_room(column, e, entries) for column in (f.entry, f.child))
    first = fitted(f.first, nodes, -1) if nodes > len(f.first) else f.first
    keys, values, f.meta[HASHED] = with_slots(f.keys, f.values, int(f.meta[HASHED]), g, groups)
    return Forest(group, summary, entry, child, first, keys, values, f.meta)


@kernel(inner=True)
def forest_has_room(f: Forest, groups: int, entries: int) -> bool:
    return (
        f.meta[GROUPS] + groups <= len(f.group)
        and f.meta[ENTRIES] + entries <= len(f.child)
        and 2 * (f.meta[HASHED] + groups) <= len(f.keys)
    )


@kernel
def find_group(f: Forest, node: int, attribute: int) -> int:
    return lookup(f.keys, f.values, node, attribute)


@kernel(inner=True)
def _new_group(f: Forest, node: int, attribute: int) -> int:
    g = take(f.meta, FREE_GROUP, GROUPS, f.group[:, NEXT], 1)
    f.group[g, COUNT] = f.group[g, ROOM] = 0
    f.group[g, NODE], f.group[g, ATTRIBUTE] = node, attribute
    f.group[g, NEXT] = f.first[node]
    f.first[node] = g
    f.meta[HASHED] += put(f.keys, f.values, node, attribute, g)
    return g


@kernel(inner=True)
def _give_room(f: Forest, g: int) -> None:
    room = f.group[g, ROOM]
    if room:
        give(f.meta, FREE_ROOM + bit_length(room - 1), f.child, f.group[g, START])
    f.group[g, ROOM] = 0


@kernel(inner=True)
def free_group(f: Forest, g: int) -> None:
    node = f.group[g, NODE]
    unchain(f.first, node, f.group[:, NEXT], g)
    drop(f.keys, node, f.group[g, ATTRIBUTE])
    _give_room(f, g)
    f.group[g, NODE] = -1
    give(f.meta, FREE_GROUP, f.group[:, NEXT], g)


@kernel(inner=True)
def _augment(f: Forest, begin: int, end: int) -> None:
    """Largest high end and weight below each position of the implicit tree over [begin, end), children first."""
    parts, found = np.empty((end - begin, 2), np.int64), 1
    parts[0, 0], parts[0, 1] = begin, end
    for i in range(len(parts)):  # every position is the middle of one part; halves come after the whole
        left, right = parts[i]
        middle = (left + right) >> 1
        for low, high in ((left, middle), (middle + 1, right)):
            if low < high:
                parts[found, 0], parts[found, 1] = low, high
                found += 1
    for i in range(len(parts) - 1, -1, -1):
        left, right = parts[i]
        middle = (left + right) >> 1
        most_hi, most_weight = f.entry[middle, HI], f.entry[middle, WEIGHT]
        for low, high in ((left, middle), (middle + 1, right)):
            if low < high:
                below = (low + high) >> 1
                most_hi = max(most_hi, f.entry[below, MOST_HI])
                most_weight = max(most_weight, f.entry[below, MOST_WEIGHT])
        f.entry[middle, MOST_HI], f.entry[middle, MOST_WEIGHT] = most_hi, most_weight


@kernel(inner=True)
def _summarise(f: Forest, g: int) -> None:
    begin = f.group[g, START]
    end = begin + f.group[g, COUNT]
    _augment(f, begin, end)
    root = (begin + end) >> 1
    f.summary[g, LO], f.summary[g, HI] = f.entry[begin, LO], f.entry[root, MOST_HI]
    f.summary[g, WEIGHT] = f.entry[root, MOST_WEIGHT]


@kernel(inner=True)
def set_child(f: Forest, node: int, attribute: int, child: int, lo: float, hi: float, weight: float) -> int:
    """Set a child's interval on an attribute, new or changed; returns the group."""
    g = find_group(f, node, attribute)
    if g < 0:
        g = _new_group(f, node, attribute)
    fields = f.group[g]
    at = -1
    for i in range(fields[START], fields[START] + fields[COUNT]):
        if f.child[i] == child:
            at = i
            break
    if at < 0:
        if fields[COUNT] == fields[ROOM]:
            _widen(f, g)
        at = fields[START] + fields[COUNT]
        fields[COUNT] += 1
    begin, end = fields[START], fields[START] + fields[COUNT]
    # Slide to its place by low end.
    while at > begin and f.entry[at - 1, LO] > lo:
        copy(f.entry[at - 1], f.entry[at])
        f.child[at] = f.child[at - 1]
        at -= 1
    while at + 1 < end and f.entry[at + 1, LO] < lo:
        copy(f.entry[at + 1], f.entry[at])
        f.child[at] = f.child[at + 1]
        at += 1
    f.entry[at, LO], f.entry[at, HI], f.entry[at, WEIGHT] = lo, hi, weight
    f.child[at] = child
    _summarise(f, g)
    return g


@kernel(inner=True)
def _take_room(f: Forest, size: int) -> int:
    """The start of 2 ** size unused entries."""
    return take(f.meta, FREE_ROOM + size, ENTRIES, f.child, 1 << size)


@kernel(inner=True)
def fill_groups(f: Forest, node: int, attribute: Any, child: Any, bounds: Any) -> None:
    """Make the groups of a node without any: interval i is child[i]'s on attribute[i]; bounds[i] = (lo, hi, weight)."""
    place = np.empty(len(attribute))
    for i in range(len(place)):
        place[i] = bounds[i, LO]
    by_low = ascending(place, 1.0)
    for i in range(len(by_low)):  # by attribute, then by low end
        place[by_low[i]] = float(attribute[by_low[i]]) * len(by_low) + i
    order = ascending(place, 1.0)
    begin = 0
    while begin < len(order):
        own, end = attribute[order[begin]], begin
        while end < len(order) and attribute[order[end]] == own:
            end += 1
        size = bit_length(end - begin - 1)
        g = _new_group(f, node, own)
        start = _take_room(f, size)
        f.group[g, START], f.group[g, ROOM], f.group[g, COUNT] = start, 1 << size, end - begin
        for i in range(begin, end):
            at = start + i - begin
            f.entry[at, LO], f.entry[at, HI] = bounds[order[i], LO], bounds[order[i], HI]
            f.entry[at, WEIGHT], f.child[at] = bounds[order[i], WEIGHT], child[order[i]]
        _summarise(f, g)
        begin = end


@kernel(inner=True)
def _widen(f: Forest, g: int) -> None:
    fields = f.group[g]
    size = bit_length(np.int64(fields[ROOM]))
    start = _take_room(f, size)
    for i in range(fields[COUNT]):
        copy(f.entry[fields[START] + i], f.entry[start + i])
        f.child[start + i] = f.child[fields[START] + i]
    _give_room(f, g)
    fields[START], fields[ROOM] = start, 1 << size


@kernel(inner=True)
def drop_child(f: Forest, node: int, attribute: int, child: int) -> int:
    """Delete a child's interval; returns the group, −1 if it is empty now and freed."""
    g = find_group(f, node, attribute)
    begin = f.group[g, START]
    end = begin + f.group[g, COUNT]
    at = begin
    while f.child[at] != child:
        at += 1
    for i in range(at, end - 1):
        copy(f.entry[i + 1], f.entry[i])
        f.child[i] = f.child[i + 1]
    f.group[g, COUNT] -= 1
    if f.group[g, COUNT] == 0:
        free_group(f, g)
        return -1
    _summarise(f, g)
    return g


@kernel(inner=True)
def clear_node(f: Forest, node: int) -> None:
    while f.first[node] >= 0:
        free_group(f, f.first[node])


def check_forest(f: Forest) -> None:
    """Order, augmentation and summaries of every group."""
    for g in range(int(f.meta[GROUPS])):
        if f.group[g, NODE] < 0:
            continue
        begin, count = int(f.group[g, START]), int(f.group[g, COUNT])
        entries = f.entry[begin : begin + count]
        assert count > 0, f"group {g} is not empty"
        assert (entries[1:, LO] >= entries[:-1, LO]).all(), f"group {g} is sorted by low ends"
        assert len(set(f.child[begin : begin + count].tolist())) == count, f"group {g} has a child once"
        root = (2 * begin + count) >> 1
        assert f.entry[root, MOST_HI] == entries[:, HI].max() == f.summary[g, HI], f"group {g} knows its hull"
        assert f.entry[root, MOST_WEIGHT] == entries[:, WEIGHT].max() == f.summary[g, WEIGHT], f"weight of group {g}"
        assert f.summary[g, LO] == entries[0, LO], f"group {g} knows its hull"
        assert find_group(f, int(f.group[g, NODE]), int(f.group[g, ATTRIBUTE])) == g, f"group {g} is found"
