"""Matching in kernels: the k best of a broker's own subscriptions, and whether anything behind a link matches.

All matchers of `topk` agree on every answer, so one serves here: the block scan, over the rows of one broker. Rows of a
broker's clients lie side by side, the live ones first; a table's rows lie side by side too, with room to grow. A table
only says who is in it until an event looks: then bounds are copied to its rows, as far as the first match, so that the
next event finds them side by side. Control traffic alone writes four bytes per entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from broker import tables
from covering.memory import on_stack
from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import (
    brokers_of,
    counters_of,
    hi_of,
    lo_of,
    local_hi_of,
    local_ids_of,
    local_lo_of,
    local_mentioned_of,
    local_scores_of,
    local_weights_of,
    mentioned_of,
    named_hi_of,
    named_lo_of,
    named_of,
    nodes_of,
    places_of,
    routes_of,
    row_hi_of,
    row_lo_of,
    row_named_of,
    row_node_of,
    scores_of,
    weights_of,
    wires_of,
)
from topk import scan
from topk.kernels.heaps import in_order, offer
from topk.store import Columns

_BLOCK = scan._BLOCK
_MASK_WORDS = _BLOCK // 8  # of a byte per row
_FILLED_AT_ONCE = 64  # rows: a few cache lines of bounds, more than most events look at
_block_exact, _block_relaxed, _first_match = scan._block_exact, scan._block_relaxed, tables._first_match


@kernel
def best(columns: Any, first: int, count: int, event: Any, k: int, relaxed: bool) -> Any:
    """(ids, scores) of the k best rows in first … first + count − 1, best first, ties by ascending id."""
    ids, scores = np.empty(k, np.int64), np.empty(k, np.float64)
    mask = carray(on_stack(_MASK_WORDS), (_BLOCK,), np.uint8)
    total, hits = carray(on_stack(_BLOCK), (_BLOCK,), np.float64), carray(on_stack(_BLOCK), (_BLOCK,), np.int64)
    size = 0
    for start in range(first, first + count, _BLOCK):
        stop = min(start + _BLOCK, first + count)
        if relaxed:
            _block_relaxed(columns, event, event, start, stop, mask, total)
        else:
            _block_exact(columns, event, event, start, stop, mask)
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


@kernel
def columns_of(w: int) -> Any:
    """The rows of all brokers' clients, as the block scan takes them."""
    return Columns(
        local_lo_of(w), local_hi_of(w), local_weights_of(w), local_mentioned_of(w), local_scores_of(w), local_ids_of(w)
    )


@kernel
def enter_local(w: int, broker: int, subscription: int) -> None:
    """A client of the broker subscribes."""
    lo, hi, mentioned, weights, home = lo_of(w), hi_of(w), mentioned_of(w), weights_of(w), brokers_of(w)[broker]
    columns = columns_of(w)
    row = home.first + home.local
    home.local += 1
    home.entries += 1
    for j in range(lo.shape[1]):
        columns.lo[j, row], columns.hi[j, row] = lo[subscription, j], hi[subscription, j]
        columns.mentioned[j, row], columns.weights[j, row] = mentioned[subscription, j], weights[subscription, j]
    columns.scores[row], columns.ids[row] = scores_of(w)[subscription], subscription
    places_of(w)[subscription] = row


@kernel
def leave_local(w: int, broker: int, subscription: int) -> None:
    """A client of the broker leaves; the last row takes the free place."""
    places, home, columns = places_of(w), brokers_of(w)[broker], columns_of(w)
    home.local -= 1
    home.entries -= 1
    row, last = places[subscription], home.first + home.local
    for j in range(columns.lo.shape[0]):
        columns.lo[j, row], columns.hi[j, row] = columns.lo[j, last], columns.hi[j, last]
        columns.mentioned[j, row], columns.weights[j, row] = columns.mentioned[j, last], columns.weights[j, last]
    columns.scores[row], columns.ids[row] = columns.scores[last], columns.ids[last]
    places[columns.ids[row]] = row


@kernel
def room_after(room: int) -> int:
    return max(16, 2 * room)


@kernel
def enter_table(w: int, node: int) -> None:
    """A neighbour subscribes. A full table moves to the end of all rows, with twice the room: there is some."""
    row, who = nodes_of(w)[node], row_node_of(w)
    table = routes_of(w)[row.route]
    if table.entries == table.room:
        n = counters_of(w)
        first, end, count = table.row, n[c.ROWS], table.entries
        for i in range(count):
            who[end + i] = who[first + i]
        table.row, table.room, table.filled = end, room_after(table.room), 0
        n[c.ROWS] += table.room
    who[table.row + table.entries] = node
    row.row = table.entries
    table.entries += 1
    wires_of(w)[table.wire].entries += 1
    brokers_of(w)[table.target].entries += 1


@kernel
def leave_table(w: int, node: int) -> None:
    """A neighbour unsubscribes; the last row takes the free place."""
    nodes, who = nodes_of(w), row_node_of(w)
    table, place = routes_of(w)[nodes[node].route], np.int64(nodes[node].row)
    table.entries -= 1
    wires_of(w)[table.wire].entries -= 1
    brokers_of(w)[table.target].entries -= 1
    if place != table.entries:
        who[table.row + place] = who[table.row + table.entries]
        nodes[who[table.row + place]].row = place
        if place < table.filled:
            _fill(w, table.row + place, table.row + place + 1)
    table.filled = min(table.filled, table.entries)


@kernel
def _fill(w: int, start: int, stop: int) -> None:
    """Copy the bounds of the subscriptions in these rows into them."""
    nodes, who, named, low, high = nodes_of(w), row_node_of(w), row_named_of(w), row_lo_of(w), row_hi_of(w)
    attributes, lo, hi = named_of(w), named_lo_of(w), named_hi_of(w)
    for row in range(start, stop):
        subscription = nodes[who[row]].subscription
        for j in range(named.shape[1]):
            named[row, j] = attributes[subscription, j]
            low[row, j], high[row, j] = lo[subscription, j], hi[subscription, j]


@kernel
def behind(w: int, route: int, event: Any) -> bool:
    """Does anything in the table of a route match?"""
    table, relaxed = routes_of(w)[route], counters_of(w)[c.RELAXED] != 0
    named, low, high, first = row_named_of(w), row_lo_of(w), row_hi_of(w), table.row
    found = _first_match(named, low, high, event, first, first + table.filled, relaxed) >= 0
    while not found and table.filled < table.entries:
        start, stop = first + table.filled, first + min(table.entries, table.filled + _FILLED_AT_ONCE)
        _fill(w, start, stop)
        table.filled = stop - first
        found = _first_match(named, low, high, event, start, stop, relaxed) >= 0
    return found
