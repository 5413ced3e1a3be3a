"""Matching in kernels: the k best of a broker's own subscriptions, and whether anything behind a link matches.

All matchers of `topk` agree on every answer, so one serves here: the block scan, over the rows of one broker. Rows of a
broker's clients are side by side, the live ones first; a table's entries are side by side too, with room to grow. A
table only says who is in it until an event looks: then bounds are copied to its entries, as far as the first match, so
that the next event finds them side by side. Control traffic alone writes four bytes per entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from broker.tables import first_match
from sim.compiled.state import inlined, inner, longer
from topk.kernels.heaps import in_order, offer
from topk.scan import BLOCK, block_exact, block_relaxed

_FILLED_AT_ONCE = 64  # entries: a few cache lines of bounds, more than most events look at
_LEAST_CAPACITY = 16  # entries of a table that is not empty


@inner
def best(columns: Any, first: int, count: int, event: Any, k: int, relaxed: bool) -> Any:
    """(ids, scores) of the k best rows in first … first + count − 1, best first, ties by ascending id."""
    ids, scores = np.empty(k, np.int64), np.empty(k, np.float64)
    mask, total, hits = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.float64), np.empty(BLOCK, np.int64)
    size = np.int64(0)
    for start in range(first, first + count, BLOCK):
        stop = min(start + BLOCK, first + count)
        if relaxed:
            block_relaxed(columns, event, event, start, stop, mask, total)
        else:
            block_exact(columns, event, event, start, stop, mask)
        found = 0
        for i in range(stop - start):  # without a branch: which rows match is unpredictable
            hits[found] = i
            found += mask[i]
        for at in range(found):
            i = hits[at]
            score = total[i] if relaxed else columns.scores[start + i]
            if size < k or score >= scores[0]:
                size = offer(scores, ids, size, score, columns.ids[start + i])
    in_order(scores, ids, size)
    return ids[:size], scores[:size]


@inlined
def enter_local(w: Any, broker: int, subscription: int) -> None:
    """A client of the broker subscribes."""
    home, rows, row = w.brokers[broker], w.local, w.subscriptions[subscription]
    at = home.first + home.local
    home.local += 1
    home.entries += 1
    for j in range(rows.lo.shape[0]):
        rows.lo[j, at], rows.hi[j, at] = -w.points[subscription, 2 * j], w.points[subscription, 2 * j + 1]
        rows.mentioned[j, at], rows.weights[j, at] = w.mentioned[subscription, j], w.weights[subscription, j]
    rows.scores[at], rows.ids[at] = row.score, subscription
    row.row = at


@inlined
def leave_local(w: Any, broker: int, subscription: int) -> None:
    """A client of the broker leaves; the last row takes the free place."""
    home, rows, at = w.brokers[broker], w.local, w.subscriptions[subscription].row
    home.local -= 1
    home.entries -= 1
    last = home.first + home.local
    for j in range(rows.lo.shape[0]):
        rows.lo[j, at], rows.hi[j, at] = rows.lo[j, last], rows.hi[j, last]
        rows.mentioned[j, at], rows.weights[j, at] = rows.mentioned[j, last], rows.weights[j, last]
    rows.scores[at], rows.ids[at] = rows.scores[last], rows.ids[last]
    w.subscriptions[rows.ids[at]].row = at


@inner
def enter_table(w: Any, node: int) -> None:
    """A neighbour subscribes. A full table is copied to the end of all tables, with twice the capacity."""
    table = w.routes[w.nodes[node].route]
    if table.entries == table.capacity:
        _move_to_end(w, w.nodes[node].route)
    w.entry_node[table.row + table.entries] = node
    w.nodes[node].row = table.entries
    table.entries += 1
    w.wires[table.wire].entries += 1
    w.brokers[table.target].entries += 1


@inlined
def _move_to_end(w: Any, route: int) -> None:
    run, table = w.run[0], w.routes[route]
    capacity = max(_LEAST_CAPACITY, 2 * table.capacity)
    if run.entries + capacity > len(w.entry_node):
        w.entry_node = longer(w.entry_node, run.entries + capacity)
        rows, width = len(w.entry_node), w.named.shape[1]
        # Bounds are not copied: the next events fill them in.
        w.entry_named = np.empty((rows, width), np.int32)
        w.entry_lo, w.entry_hi = np.empty((rows, width)), np.empty((rows, width))
        for other in w.routes:
            other.filled = 0
    for i in range(table.entries):
        w.entry_node[run.entries + i] = w.entry_node[table.row + i]
    table.row, table.capacity, table.filled = run.entries, capacity, 0
    run.entries += capacity


@inner
def leave_table(w: Any, node: int) -> None:
    """A neighbour unsubscribes; the last entry takes the free place."""
    nodes, who = w.nodes, w.entry_node
    table, place = w.routes[nodes[node].route], np.int64(nodes[node].row)
    table.entries -= 1
    w.wires[table.wire].entries -= 1
    w.brokers[table.target].entries -= 1
    if place != table.entries:
        who[table.row + place] = who[table.row + table.entries]
        nodes[who[table.row + place]].row = place
        if place < table.filled:
            _fill(w, table.row + place, table.row + place + 1)
    table.filled = min(table.filled, table.entries)


@inner
def _fill(w: Any, start: int, stop: int) -> None:
    """Copy the bounds of the subscriptions in these entries into them."""
    nodes, who, points, named = w.nodes, w.entry_node, w.points, w.named
    attributes, lo, hi = w.entry_named, w.entry_lo, w.entry_hi
    for entry in range(start, stop):
        subscription = nodes[who[entry]].subscription
        for i in range(named.shape[1]):
            j = named[subscription, i]
            attributes[entry, i] = j
            if j >= 0:
                lo[entry, i], hi[entry, i] = -points[subscription, 2 * j], points[subscription, 2 * j + 1]


@inlined
def behind(w: Any, route: int, event: Any) -> Any:
    """Does anything in the table of a route match, and how many entries were compared?"""
    table, relaxed = w.routes[route], w.run[0].relaxed
    looked, found = 0, -1
    while found < 0 and looked < table.entries:
        if looked == table.filled:
            table.filled = min(table.entries, table.filled + _FILLED_AT_ONCE)
            _fill(w, table.row + looked, table.row + table.filled)
        start, stop = table.row + looked, table.row + table.filled
        found = first_match(w.entry_named, w.entry_lo, w.entry_hi, event, start, stop, relaxed)
        looked = table.filled
    return found >= 0, found - table.row + 1 if found >= 0 else table.entries
