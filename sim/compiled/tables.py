"""The tables of the compiled engine: whom an event is compared with, in which order, and how much work that is.

A table is a sorted run of places in one of two canonical orders of all filters (filters.py): a neighbour's table has
the widest filters first, a broker's own clients come by score. Both orders are known before the run begins, so keeping
a table in order takes a binary search and a shift. An event is compared with one filter after the other until the k-th
match: its position is the work, by the contract that the reference follows too.

A table's run has room to grow; a full one is copied to the end of `entries`. While subscriptions are loaded (bulk.py),
tables only count; `fill_tables` then writes all of them at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from sim.compiled.records import SENT, SIMPLE
from sim.compiled.residues import admits, admits_value
from sim.compiled.state import Arrays, GrowingArrays, inlined, inner
from topk.kernels.heaps import in_order, offer
from topk.kernels.rows import longer

_LEAST_CAPACITY = 16  # entries of a table that is not empty


@inlined
def _place_for(w: Any, first: int, used: int, filter: int) -> int:
    """Where a filter is in a table, or where it belongs."""
    low, high = first, first + used
    while low < high:
        middle = (low + high) >> 1
        if w.entries[middle] < filter:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _enter(w: Any, t: int, filter: int) -> None:
    table = w.tables[t]
    if table.used == table.capacity:
        _move_to_end(w, t)
    at = _place_for(w, table.first, table.used, filter)
    for i in range(table.first + table.used, at, -1):
        w.entries[i] = w.entries[i - 1]
    w.entries[at] = filter
    table.used += 1


@inner
def _leave(w: Any, t: int, filter: int) -> None:
    table = w.tables[t]
    table.used -= 1
    for i in range(_place_for(w, table.first, table.used, filter), table.first + table.used):
        w.entries[i] = w.entries[i + 1]


@inlined
def _move_to_end(w: Any, t: int) -> None:
    run, table = w.run[0], w.tables[t]
    capacity = max(_LEAST_CAPACITY, 2 * table.capacity)
    if run.entries + capacity > len(w.entries):
        w.entries = longer(w.entries, run.entries + capacity)
    for i in range(table.used):
        w.entries[run.entries + i] = w.entries[table.first + i]
    table.first, table.capacity = run.entries, capacity
    run.entries += capacity


@inlined
def enter_local(w: Any, broker: int, subscription: int) -> None:
    """A client of the broker subscribes."""
    home = w.brokers[broker]
    home.local += 1
    home.entries += 1
    if not w.run[0].loading:
        _enter(w, broker, w.subscriptions[subscription].by_score)


@inlined
def leave_local(w: Any, broker: int, subscription: int) -> None:
    """A client of the broker leaves."""
    home = w.brokers[broker]
    home.local -= 1
    home.entries -= 1
    _leave(w, broker, w.subscriptions[subscription].by_score)


@inlined
def _count(w: Any, node: int, change: int) -> Any:
    """Count an entry that comes (1) or leaves (−1); returns its table, for a sieve's node that of its route."""
    run, route = w.run[0], np.int64(w.nodes[node].route)
    if route >= run.routes:
        route -= run.routes
    w.wires[w.routes[route].wire].entries += change
    w.brokers[w.routes[route].target].entries += change
    return len(w.brokers) + route


@inner
def enter_table(w: Any, node: int) -> None:
    """A neighbour subscribes."""
    t = _count(w, node, 1)
    if not w.run[0].loading:
        _enter(w, t, w.subscriptions[w.nodes[node].subscription].by_width)


@inner
def leave_table(w: Any, node: int) -> None:
    """A neighbour unsubscribes."""
    t = _count(w, node, -1)
    if not w.run[0].loading:
        _leave(w, t, w.subscriptions[w.nodes[node].subscription].by_width)


def fill_tables(world: Any, arrays: Arrays, grown: GrowingArrays, preloaded: NDArray[np.int64]) -> None:
    """Write the tables after loading: what is sent, and the clients (`preloaded`: the broker of each)."""
    run, subscriptions, brokers = arrays.run[0], arrays.subscriptions, len(arrays.brokers)
    nodes = grown.nodes[: run["nodes"]]
    if run["strategy"] != SIMPLE:  # which sends everything and notes nothing down
        nodes = nodes[nodes["coverer"] == SENT]
    if run["prunes"]:
        nodes = nodes[nodes["route"] >= run["routes"]]
    of_routes = brokers + nodes["route"].astype(np.int64) - (run["routes"] if run["prunes"] else 0)
    of_table = np.concatenate([preloaded, of_routes])
    by_score = subscriptions["by_score"][: len(preloaded)]
    filters = np.concatenate([by_score, subscriptions["by_width"][nodes["subscription"]]])
    all_filters = len(arrays.filters)
    sorted_entries = np.sort(of_table * all_filters + filters)
    used = np.bincount(of_table, minlength=len(arrays.tables))
    arrays.tables["used"] = arrays.tables["capacity"] = used
    arrays.tables["first"] = np.cumsum(used) - used
    run["entries"] = len(sorted_entries)
    _put_entries(world, (sorted_entries % max(1, all_filters)).astype(np.int32))


@kernel
def _put_entries(w: Any, entries: Any) -> None:
    w.entries = entries


@inner
def _next_in_box(entries: Any, at: int, last: int, named: Any, lo: Any, hi: Any, event: Any) -> int:
    """The first of entries[at … last − 1] whose box an event is in, else `last`. NaN (missing) fails every comparison.

    It does not branch on single comparisons: which one fails is unpredictable, and a misprediction costs an entry.
    """
    while at < last:
        filter, hold = entries[at], True
        for i in range(named.shape[1]):
            j = named[filter, i]
            if j < 0:
                break
            hold &= (lo[filter, i] <= event[j]) & (event[j] <= hi[filter, i])
        if hold:
            break
        at += 1
    return at


@inner
def _some_hold(w: Any, filter: int, event: Any) -> Any:
    """(how many predicates of a filter hold, the sum of their weights)."""
    named, lo, hi, weights, residue, held, score = w.named, w.lo, w.hi, w.weights, w.filters[filter].residue, 0, 0.0
    for i in range(named.shape[1]):
        j = named[filter, i]
        if j < 0:
            break
        inside = lo[filter, i] <= event[j] <= hi[filter, i]
        if inside and (residue < 0 or admits_value(w, residue, j, event[j])):
            held += 1
            score += weights[filter, i]
    return held, score


@inner
def _next_match(w: Any, at: int, last: int, event: Any) -> int:
    """The first of entries[at … last − 1] that an event matches, else `last`."""
    while at < last:
        if w.run[0].relaxed:
            if _some_hold(w, np.int64(w.entries[at]), event)[0] > 0:
                break
        else:
            at = _next_in_box(w.entries, at, last, w.named, w.lo, w.hi, event)
            if at == last or admits(w, w.filters[w.entries[at]].residue, event):
                break
        at += 1
    return at


@inner
def any_match(w: Any, route: int, event: Any) -> Any:
    """(does any entry in the table of a route match?, entries compared)."""
    table = w.tables[len(w.brokers) + route]
    at = _next_match(w, table.first, table.first + table.used, event) - table.first
    return at < table.used, min(at + 1, table.used)


@inner
def find_best(w: Any, broker: int, event: Any) -> Any:
    """(number of answers, entries compared); the answers are in `found_ids` and `found_scores`, best first."""
    run, table, size = w.run[0], w.tables[broker], np.int64(0)
    at, last = table.first, table.first + table.used
    k = table.used if run.k < 0 else min(run.k, table.used)
    ids, scores = w.found_ids[:k], w.found_scores[:k]
    while at < last and (size < k or run.relaxed):
        at = _next_match(w, at, last, event)
        if at < last:
            filter = w.filters[w.entries[at]]
            if run.relaxed:
                score = _some_hold(w, np.int64(w.entries[at]), event)[1]
                size = offer(scores, ids, size, score, filter.subscription)
            else:
                ids[size], scores[size] = filter.subscription, filter.score
                size += 1
            at += 1
    if run.relaxed:
        in_order(scores, ids, size)
    return size, at - table.first
