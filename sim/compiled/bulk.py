"""Bulk loading: subscriptions that exist before time 0, one route at a time instead of one message at a time.

They are loaded in the order of their numbers, each spreading completely before the next (as in Network.preload).
In a tree, what a route passes on depends only on what reaches its source from elsewhere, in that order; so routes are
processed from the leaves inwards and out again, each with the whole sequence at once: its source's own clients
merged with what the other routes into its source passed on. The ledgers decide by the same code as in a run, so tables
and ledgers come out the same, index by index and slot by slot; meanwhile one link's index stays in the CPU cache.

Cost: one decision per subscription and route that it reaches, O(log degree) for the merge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from sim.compiled.calendar import pop, push
from sim.compiled.link_ledgers import forward_all, make_nodes, new_node, note_update
from sim.compiled.processing import new_operation, write_control
from sim.compiled.records import SIMPLE, SUBSCRIBE
from sim.compiled.state import inlined
from sim.compiled.tables import enter_local, enter_table, leave_table
from topk.kernels.rows import longer

Ints = NDArray[np.int64]
CLIENTS = -1  # in place of a route: requests of the source's own clients


def load(world: Any, update_ledgers: Callable[[], None], homes: Ints, routes: NDArray[Any], brokers: int) -> None:
    """Let subscriptions spread; `homes`: the broker of each."""
    order, first, inputs = _order(routes)
    own = np.argsort(homes, kind="stable")
    own_first = np.searchsorted(homes[own], np.arange(brokers + 1))
    passed = np.zeros((len(routes), 2), np.int64)  # of each route: first and last of what it passed on
    homes = np.ascontiguousarray(homes)
    while _load(world, homes, order, first, inputs, own, own_first, passed):
        update_ledgers()


def _order(routes: NDArray[Any]) -> tuple[Ints, Ints, Ints]:
    """Routes, ordered so that those into a route's source come before it, and the inputs of each:

    (routes, where the inputs of each begin, inputs: CLIENTS, then routes).
    """
    into = defaultdict(list)
    ends = list(zip(routes["tree"].tolist(), routes["source"].tolist(), routes["target"].tolist(), strict=True))
    for route, (tree, _, target) in enumerate(ends):
        into[tree, target].append(route)
    inputs = [[q for q in into[tree, source] if ends[q][1] != target] for tree, source, target in ends]
    order = list(TopologicalSorter(dict(enumerate(inputs))).static_order())  # a tree has no cycle
    first = np.cumsum([0, *(1 + len(inputs[route]) for route in order)])
    flat = [q for route in order for q in (CLIENTS, *inputs[route])]
    return np.array(order, np.int64), first.astype(np.int64), np.array(flat, np.int64)


@kernel
def _load(w: Any, homes: Any, order: Any, first: Any, inputs: Any, own: Any, own_first: Any, passed_first: Any) -> bool:
    """Run until ledgers are to be updated; False if everything is loaded.

    A route has two halves: its source decides what to pass on, then its target takes that in.
    """
    run = w.run[0]
    if not run.loading:
        run.loading = True
        _enter_clients(w, homes)
    while run.loaded < 2 * len(order):
        at = run.loaded // 2
        route = order[at]
        if run.loaded % 2 == 0:
            passed_first[route, 0] = run.passed
            _pass_on(w, route, inputs[first[at] : first[at + 1]], own, own_first, passed_first)
        else:
            passed_first[route, 1] = run.passed
            _take_in(w, route, passed_first[route, 0], run.passed)
        run.loaded += 1
        if run.updates:
            return True
    run.loading = False
    w.passed, w.updates = np.empty(1, w.passed.dtype), np.empty(1, w.updates.dtype)
    return False


@inlined
def _enter_clients(w: Any, homes: Any) -> None:
    """The requests themselves: their rows of the trace, the brokers' own tables, and nodes on the first routes."""
    run = w.run[0]
    for subscription in range(len(homes)):
        broker = homes[subscription]
        operation = new_operation(w, SUBSCRIBE, subscription, broker)
        write_control(w, 0.0, -1, broker, -1, SUBSCRIBE, subscription, operation, operation, 0, 0.0)
        enter_local(w, broker, subscription)
        w.subscriptions[subscription].node = run.nodes
        make_nodes(w, run.widest)
        for at in range(w.learn_first[broker * run.trees], w.learn_first[(broker + 1) * run.trees]):
            new_node(w, subscription, w.learn[at])


@inlined
def _place_among(w: Any, route: int, came_from: int) -> int:
    """The place of this route's node among those that a subscription has at the route's source."""
    routes, back, place = w.routes, -1, 0
    first = w.learn_first[routes[route].source * w.run[0].trees]
    if came_from != CLIENTS:
        first, back = w.learn_first[routes[came_from].part], routes[came_from].source
        place += w.run[0].prunes  # the sieve's node comes first
    for at in range(first, len(w.learn)):
        if w.learn[at] == route:
            break
        if routes[w.learn[at]].target != back:
            place += 1
    return place


@inlined
def _pass_on(w: Any, route: int, inputs: Any, own: Any, own_first: Any, passed_first: Any) -> None:
    """The updates for everything that reaches a route's source, in the order of operations: a merge by a heap."""
    run, source, heap, waiting = w.run[0], w.routes[route].source, np.empty(len(inputs), w.calendar.dtype), 0
    count, needed = len(inputs), 0
    places, cursor, last = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(len(inputs)):
        places[i] = _place_among(w, route, inputs[i])
        if inputs[i] == CLIENTS:
            cursor[i], last[i] = own_first[source], own_first[source + 1]
        else:
            cursor[i], last[i] = passed_first[inputs[i], 0], passed_first[inputs[i], 1]
        needed += last[i] - cursor[i]
        if cursor[i] < last[i]:
            operation = own[cursor[i]] if inputs[i] == CLIENTS else w.passed[cursor[i]].operation
            waiting = push(heap, waiting, float(operation), i, i)
    if needed > len(w.updates):
        w.updates = longer(w.updates, needed)
    while waiting:
        i, operation = heap[0].what, np.int64(heap[0].time)
        if inputs[i] == CLIENTS:
            kind, node = SUBSCRIBE, w.subscriptions[operation].node + places[i]
        else:
            passed = w.passed[cursor[i]]
            kind, node = passed.kind, w.nodes[passed.node].child + places[i]
        note_update(w, kind, node, node + 1, operation, 0)
        waiting = pop(heap, waiting)
        cursor[i] += 1
        if cursor[i] < last[i]:
            operation = own[cursor[i]] if inputs[i] == CLIENTS else w.passed[cursor[i]].operation
            waiting = push(heap, waiting, float(operation), i, i)
    if run.strategy == SIMPLE:
        forward_all(w)


@inlined
def _take_in(w: Any, route: int, first: int, last: int) -> None:
    """The target of a route takes in what was passed on: its table or sieve, and nodes for the routes that lead on."""
    run, table = w.run[0], w.routes[route]
    if run.prunes and last - first > len(w.updates):
        w.updates = longer(w.updates, last - first)
    for at in range(first, last):
        node = w.passed[at].node
        if w.passed[at].kind != SUBSCRIBE:
            leave_table(w, node)
            continue
        if w.nodes[node].child < 0:
            make_nodes(w, run.widest)
            w.nodes[node].child = run.nodes
            if run.prunes:
                new_node(w, np.int64(w.nodes[node].subscription), route + run.routes)
            for onward in range(w.learn_first[table.part], w.learn_first[table.part + 1]):
                if w.routes[w.learn[onward]].target != table.source:
                    new_node(w, np.int64(w.nodes[node].subscription), w.learn[onward])
        if run.prunes:
            w.wires[table.wire].known += 1
            child = w.nodes[node].child
            note_update(w, SUBSCRIBE, child, child + 1, w.passed[at].operation, 0)
        else:
            enter_table(w, node)
