"""Bulk loading: subscriptions that exist before time 0, one route at a time instead of one message at a time.

They come in the order of their numbers, each spreading completely before the next (Network.preload does it hop by hop).
In a tree, what a route passes on depends only on what reaches its source from elsewhere, in that order; so routes are
worked through from the leaves inwards and out again, each with the whole sequence at once: its source's own clients
merged with what the other routes into its source passed on. The ledgers decide by the same code as in a run, so
tables and ledgers come out the same, index by index and slot by slot; one link's index stays in the cache meanwhile.

Cost: one decision per subscription and route that it reaches, O(log degree) for the merge.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from sim.compiled import arrays as a
from sim.compiled import counters as c
from sim.compiled import records as r
from sim.compiled.arrays import (
    counters_of,
    home_child_of,
    homed_first_of,
    homed_of,
    learn_first_of,
    learn_of,
    nodes_of,
    operations_of,
    out_first_of,
    out_message_of,
    out_operation_of,
    routes_of,
)
from sim.compiled.calendar import pop, push
from sim.compiled.columns import write_control
from sim.compiled.ledger import decide, dependants, room_for, unsubscribe
from sim.compiled.matching import enter_local, enter_table, leave_table
from sim.compiled.process import new_node, new_operation
from sim.compiled.records import FORWARDED, SUBSCRIBE

if TYPE_CHECKING:
    from sim.compiled.world import World

CLIENTS = -1  # in place of a route: what the source's own clients ask


def load(world: World) -> None:
    """Let the preloaded subscriptions of the timeline spread."""
    homes, n = world.timeline.preloaded, world.n
    count = len(homes)
    world.put(a.HOMED, np.argsort(homes, kind="stable"))
    world.put(a.HOMED_FIRST, np.searchsorted(np.sort(homes), np.arange(world.overlay.brokers + 1)))
    routes = world.get(a.ROUTES)
    world.put(a.OUT_FIRST, np.zeros(2 * len(routes), np.int64))  # of each route: first and last of what it passed on
    world.put(a.OUT_OPERATION, np.empty(count, np.int32))
    world.put(a.OUT_MESSAGE, np.empty(count, np.int64))
    world.new_block(a.CONTROL, count)
    degree = np.diff(world.topology.learn_first).reshape(world.overlay.brokers, -1).sum(axis=1)
    world.lengthen(a.NODES, int(degree[homes].sum()))
    world.follow_nodes()
    n[c.LOADING] = 1
    _enter_clients(world.memory.address, np.ascontiguousarray(homes))
    for route, inputs in _order(routes):
        cursor = np.full(len(inputs), -1, np.int64)
        heap = np.empty(len(inputs) + 1, r.CALL)
        while _pass_on(world.memory.address, route, inputs, cursor, heap) == c.ROOM:
            _make_room(world)
        last, first = int(n[c.OUT]), int(world.get(a.OUT_FIRST)[2 * route])
        world.get(a.OUT_FIRST)[2 * route + 1] = last
        onward = int(np.diff(world.topology.learn_first)[routes["plane"][route]])
        world.lengthen(a.NODES, int(n[c.NODES]) + (last - first) * onward)
        world.follow_nodes()
        world.grow_rows(int(n[c.ROWS]) + last - first)
        _take_in(world.memory.address, route)
    n[c.LOADING] = 0
    for place in (a.OUT_OPERATION, a.OUT_MESSAGE):
        world.put(place, np.empty(0, world.get(place).dtype))


def _make_room(world: World) -> None:
    n = world.n
    for place in (a.OUT_OPERATION, a.OUT_MESSAGE):
        world.lengthen(place, int(n[c.OUT] + n[c.NEED_ANSWERS]) + c.SLACK)
    if n[c.NEED_SLOTS]:
        world.bank.grow(int(n[c.NEED_SLOTS]))
        n[c.NEED_SLOTS] = 0


def _order(routes: NDArray[Any]) -> list[tuple[int, NDArray[np.int64]]]:
    """Routes such that all that lead into a route's source come before it, and these, for each."""
    into = defaultdict(list)
    ends = list(zip(routes["tree"].tolist(), routes["source"].tolist(), routes["target"].tolist(), strict=True))
    for route, (tree, _, target) in enumerate(ends):
        into[tree, target].append(route)
    inputs = [[q for q in into[tree, source] if ends[q][1] != target] for tree, source, target in ends]
    outputs = defaultdict(list)
    for route, before in enumerate(inputs):
        for q in before:
            outputs[q].append(route)
    missing = [len(before) for before in inputs]
    ready, order = deque(route for route, left in enumerate(missing) if not left), []
    while ready:
        route = ready.popleft()
        order.append((route, np.array([CLIENTS, *inputs[route]], np.int64)))
        for after in outputs[route]:
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    assert len(order) == len(ends), "in a tree no route waits for itself"
    return order


def subscriptions_behind(routes: NDArray[Any], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many subscriptions could go over each route, where brokers have so many of their own."""
    behind = np.zeros(len(routes), np.int64)
    for route, inputs in _order(routes):
        behind[route] = own[routes["source"][route]] + behind[inputs[1:]].sum()
    return behind


@kernel
def _enter_clients(w: int, homes: Any) -> None:
    """The requests themselves: their rows of the trace, the brokers' own tables, and nodes on the first routes."""
    n, learn_first, learn = counters_of(w), learn_first_of(w), learn_of(w)
    for subscription in range(len(homes)):
        broker = homes[subscription]
        operation = new_operation(w, SUBSCRIBE, subscription, broker)
        operations_of(w)[operation].outstanding = 0
        write_control(w, 0.0, -1, broker, -1, SUBSCRIBE, subscription, operation, operation, 0)
        enter_local(w, broker, subscription)
        home_child_of(w)[subscription] = n[c.NODES]
        for at in range(learn_first[broker * n[c.TREES]], learn_first[(broker + 1) * n[c.TREES]]):
            new_node(w, subscription, learn[at])


@kernel
def _next_of(w: int, route: int, source: int, position: int) -> Any:
    """The operation at a position of what a route passed on, or of what a broker's clients asked; −1: the end."""
    if route == CLIENTS:
        first, last = homed_first_of(w)[source], homed_first_of(w)[source + 1]
        return homed_of(w)[first + position] if first + position < last else -1
    first, last = out_first_of(w)[2 * route], out_first_of(w)[2 * route + 1]
    return np.int64(out_operation_of(w)[first + position]) if first + position < last else -1


@kernel
def _place_among(w: int, route: int, came_from: int) -> int:
    """Which of the nodes that a subscription has at the route's source is the one on this route."""
    n, routes, learn_first, learn = counters_of(w), routes_of(w), learn_first_of(w), learn_of(w)
    first, back = learn_first[routes[route].source * n[c.TREES]], -1
    if came_from != CLIENTS:
        first, back = learn_first[routes[came_from].plane], routes[came_from].source
    place = 0
    for at in range(first, len(learn)):
        if learn[at] == route:
            break
        if routes[learn[at]].target != back:
            place += 1
    return place


@kernel
def _pass_on(w: int, route: int, inputs: Any, cursor: Any, heap: Any) -> int:
    """Decide about everything that reaches a route's source; ROOM where an array is too short, to be called again."""
    n, nodes, source = counters_of(w), nodes_of(w), np.int64(routes_of(w)[route].source)
    waiting = 0
    if cursor[0] < 0:
        out_first_of(w)[2 * route] = n[c.OUT]
        cursor[:] = 0
    places = np.empty(len(inputs), np.int64)
    for i in range(len(inputs)):
        places[i] = _place_among(w, route, inputs[i])
        operation = _next_of(w, inputs[i], source, cursor[i])
        if operation >= 0:
            waiting = push(heap, waiting, float(operation), i, i)
    while waiting:
        i, operation = heap[0].what, np.int64(heap[0].time)
        kind = SUBSCRIBE
        if inputs[i] == CLIENTS:
            node = np.int64(home_child_of(w)[operation]) + places[i]
        else:
            message = out_message_of(w)[out_first_of(w)[2 * inputs[i]] + cursor[i]]
            kind, node = message & 1, np.int64(nodes[message >> 1].child) + places[i]
        more = 1 + (dependants(w, node) if kind != SUBSCRIBE else 0)
        answers = 2 * more + (routes_of(w)[route].held if n[c.ACTIVE] else 0)
        fits = room_for(w, route, np.int64(nodes[node].subscription), more)
        if not fits or n[c.OUT] + answers > len(out_message_of(w)):
            n[c.NEED_ANSWERS] = answers
            return c.ROOM
        if kind == SUBSCRIBE:
            decide(w, node, FORWARDED, operation, 0)
        else:
            unsubscribe(w, node, operation, 0)
        waiting = pop(heap, waiting)
        cursor[i] += 1
        operation = _next_of(w, inputs[i], source, cursor[i])
        if operation >= 0:
            waiting = push(heap, waiting, float(operation), i, i)
    return c.DONE


@kernel
def _take_in(w: int, route: int) -> None:
    """The target of a route takes in what was passed on: its table, and nodes for the routes that lead on."""
    n, nodes, learn_first, learn = counters_of(w), nodes_of(w), learn_first_of(w), learn_of(w)
    routes = routes_of(w)
    table = routes[route]
    first, last = out_first_of(w)[2 * route], out_first_of(w)[2 * route + 1]
    table.row, table.room = n[c.ROWS], last - first
    n[c.ROWS] += last - first
    for at in range(first, last):
        message = out_message_of(w)[at]
        node = message >> 1
        if message & 1 != SUBSCRIBE:
            leave_table(w, node)
            continue
        enter_table(w, node)
        if nodes[node].child < 0:
            nodes[node].child = n[c.NODES]
            for onward in range(learn_first[table.plane], learn_first[table.plane + 1]):
                if routes[learn[onward]].target != table.source:
                    new_node(w, np.int64(nodes[node].subscription), learn[onward])
