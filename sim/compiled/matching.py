"""The tables of the compiled engine: which entries they hold. Rows and searches are those of the reference.

The rows of a broker's own clients are a LocalRows, those of a route's table a LinkRows (broker/local_rows.py and
link_rows.py), so both engines call the same kernels, build static parts at the same moments and count the same work.
Python builds static parts: `advance` returns when an event meets a table that is due (`tables_are_due`).

The entries of a table are side by side in `entry_node`, with room to grow. Control messages write only four bytes per
entry; the bounds are copied into the rows when an event asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from broker.link_rows import any_match, forget, link_at, table_is_due
from broker.local_rows import leave, local_at, new_place, stale
from sim.compiled.state import inlined, inner
from topk.kernels.rows import longer

_LEAST_CAPACITY = 16  # entries of a table that is not empty


@inlined
def enter_local(w: Any, broker: int, subscription: int) -> None:
    """A client of the broker subscribes."""
    home, rows, row = w.brokers[broker], local_at(w.local_rows[broker]), w.subscriptions[subscription]
    home.local += 1
    home.entries += 1
    home.changed = True
    at = new_place(rows, subscription, row.score, row.residue)
    columns = rows.columns
    for j in range(columns.lo.shape[0]):
        columns.lo[j, at], columns.hi[j, at] = -w.points[subscription, 2 * j], w.points[subscription, 2 * j + 1]
        columns.mentioned[j, at], columns.weights[j, at] = w.mentioned[subscription, j], w.weights[subscription, j]
    row.row = at


@inlined
def leave_local(w: Any, broker: int, subscription: int) -> None:
    """A client of the broker leaves."""
    home, at = w.brokers[broker], w.subscriptions[subscription].row
    home.local -= 1
    home.entries -= 1
    home.changed = True
    moved = leave(local_at(w.local_rows[broker]), at)
    if moved >= 0:
        w.subscriptions[moved].row = at


@inlined
def _route_of(w: Any, node: int) -> Any:
    """The route whose table a node is in; for a sieve's node, the route of the sieve."""
    route = np.int64(w.nodes[node].route)
    return route if route < w.run[0].routes else route - w.run[0].routes


@inner
def enter_table(w: Any, node: int) -> None:
    """A neighbour subscribes."""
    route = _route_of(w, node)
    table = w.routes[route]
    if table.used == table.capacity:
        _move_to_end(w, route)
    w.entry_node[table.row + table.used] = node
    w.nodes[node].row = table.used
    table.used += 1
    table.entries += 1
    w.wires[table.wire].entries += 1
    w.brokers[table.target].entries += 1


@inlined
def _move_to_end(w: Any, route: int) -> None:
    run, table = w.run[0], w.routes[route]
    capacity = max(_LEAST_CAPACITY, 2 * table.capacity)
    if run.entries + capacity > len(w.entry_node):
        w.entry_node = longer(w.entry_node, run.entries + capacity)
    for i in range(table.used):
        w.entry_node[run.entries + i] = w.entry_node[table.row + i]
    table.row, table.capacity = run.entries, capacity
    run.entries += capacity


@inner
def leave_table(w: Any, node: int) -> None:
    """A neighbour unsubscribes: LinkTable.remove."""
    nodes, who, route = w.nodes, w.entry_node, _route_of(w, node)
    table, rows, place = w.routes[route], link_at(w.link_rows[route]), np.int64(nodes[node].row)
    table.entries -= 1
    w.wires[table.wire].entries -= 1
    w.brokers[table.target].entries -= 1
    if place < rows.built:
        who[table.row + place] = -1
        forget(rows, place)
        return
    table.used -= 1
    if place != table.used:  # the last one takes the free place
        who[table.row + place] = who[table.row + table.used]
        nodes[who[table.row + place]].row = place
    rows.filled = min(rows.filled, place - rows.built)


@inner
def _fill(w: Any, route: int) -> None:
    """Copy the bounds of the entries in the tail into their rows: LinkTable._take_in."""
    nodes, who, points, named = w.nodes, w.entry_node, w.points, w.named
    table, rows = w.routes[route], link_at(w.link_rows[route])
    count, width = table.used - rows.built, named.shape[1]
    if count > len(rows.residue):
        room = max(count, 2 * len(rows.residue))
        rows.named, rows.residue = np.empty((room, width), np.int32), np.empty(room, np.int64)
        rows.lo, rows.hi, rows.filled = np.empty((room, width)), np.empty((room, width)), 0
    attributes, lo, hi = rows.named, rows.lo, rows.hi
    for row in range(rows.filled, count):
        subscription = nodes[who[table.row + rows.built + row]].subscription
        rows.residue[row] = w.subscriptions[subscription].residue
        for i in range(width):
            j = named[subscription, i]
            attributes[row, i] = j
            if j >= 0:
                lo[row, i], hi[row, i] = -points[subscription, 2 * j], points[subscription, 2 * j + 1]
    rows.filled = count


@inlined
def behind(w: Any, route: int, event: Any, residues: Any) -> Any:
    """Does anything in the table of a route match? As LinkTable.ask answers; `residues`: see advance."""
    rows = link_at(w.link_rows[route])
    if rows.filled < w.routes[route].used - rows.built:
        _fill(w, route)
    found, sliced, compared, blocks = any_match(rows, event, residues)
    w.routes[route].read += compared + blocks
    return found, sliced, compared, blocks


@inlined
def tables_are_due(w: Any, broker: int, part: int, source: int) -> bool:
    """Does an event from `source` ask a table that needs a new static part first?"""
    due, home, run = False, w.brokers[broker], w.run[0]
    if home.changed:
        home.changed, due = False, stale(local_at(w.local_rows[broker]))
    for at in range(w.near_first[part], w.near_first[part + 1]):
        near = w.near[at]
        if near.neighbour != source and near.route >= 0:
            table = w.routes[near.route]
            due |= table_is_due(table.used, table.entries, table.built, run.link_least, table.read, run.link_reads)
    return due
