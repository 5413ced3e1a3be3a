"""The run itself: take the next call off the calendar, do what it says, until nothing is under way.

One kernel, entered again whenever an array was too short for what the next message may take: nothing has been changed
by then, so the owner (world.py) makes room and calls again. The clients' timeline and the sampler of table sizes take
part in the calendar as the two processes of the reference do, at the same times and in the same order.

Calls are numbered: wires first, then the servers of the brokers, then the clients, then the sampler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from covering.memory import call, linkable, table_at
from sim.compiled import counters as c
from sim.compiled.arrays import (
    CONTROL_MESSAGE,
    LACKS_ROOM,
    PUBLICATION,
    brokers_of,
    control_of,
    counters_of,
    decisions_of,
    deliveries_of,
    drawn_of,
    draws_of,
    due_of,
    events_of,
    faults_of,
    heap_of,
    home_child_of,
    homes_of,
    index_of,
    kinds_of,
    learn_first_of,
    learn_of,
    messages_of,
    near_first_of,
    near_plane_of,
    near_route_of,
    near_wire_of,
    neighbour_of,
    nodes_of,
    numbers_of,
    operations_of,
    publications_of,
    routes_of,
    row_node_of,
    sampled_at_of,
    samples_of,
    service_drawn_of,
    service_draws_of,
    times_of,
    tree_of_of,
    wires_of,
)
from sim.compiled.calendar import pop
from sim.compiled.ledger import decide, room_for, unsubscribe
from sim.compiled.matching import (
    behind,
    best,
    columns_of,
    enter_local,
    enter_table,
    leave_local,
    leave_table,
    room_after,
)
from sim.compiled.post import allocate, dequeue, enqueue, release, schedule, send, take_off
from sim.compiled.records import ABSENT, EXPONENTIAL, FORWARDED, NO_SERVICE, PUBLISH, SUBSCRIBE
from sim.compiled.topology import EVERYTHING


@njit(cache=True, nogil=True)
def lacks_room(w: Any, kind: int, node: int, wire: int, broker: int) -> bool:
    """Is an array too short for all that processing a message may write? Then the counters say how much that is."""
    return call(w, LACKS_ROOM, kind, node, wire, broker) != 0


@linkable
def lacks_room_linked(address: int, kind: int, node: int, wire: int, broker: int) -> int:
    w = table_at(address)
    n = counters_of(w)
    answers, fresh, table, served = 0, 0, 0, 0
    enough = True
    if kind == PUBLISH:
        near_first = near_first_of(w)
        answers = near_first[(broker + 1) * n[c.TREES]] - near_first[broker * n[c.TREES]]
        served = brokers_of(w)[broker].local
    else:
        nodes, routes, learn_first, learn = nodes_of(w), routes_of(w), learn_first_of(w), learn_of(w)
        first, last = learn_first[broker * n[c.TREES]], learn_first[(broker + 1) * n[c.TREES]]
        child, subscription, source = np.int64(-1), np.int64(node), -1
        if wire < 0:
            child = np.int64(home_child_of(w)[node])
        else:
            route = routes[nodes[node].route]
            child, subscription, source = np.int64(nodes[node].child), np.int64(nodes[node].subscription), route.source
            first, last = learn_first[route.plane], learn_first[route.plane + 1]
            if kind == SUBSCRIBE and route.entries == route.room:
                table = room_after(route.room)
        fresh = last - first if child < 0 else 0
        for at in range(first, last):
            onward = routes[learn[at]]
            if onward.target == source:
                continue
            more = 1
            if kind != SUBSCRIBE and child >= 0:
                more += nodes[child].count
                child += 1
            answers += 2 * more
            if n[c.ACTIVE]:
                answers += onward.held
            enough = room_for(w, learn[at], subscription, more) and enough
    enough = (
        enough
        and n[c.DECISIONS] + answers <= len(decisions_of(w))
        and n[c.IN_FLIGHT] + answers + 2 <= len(messages_of(w))
        and n[c.NODES] + fresh <= len(nodes_of(w))
        and n[c.ROWS] + table <= len(row_node_of(w))
        and n[c.CONTROL] < len(control_of(w))
        and n[c.PUBLICATIONS] < len(publications_of(w))
        and n[c.DELIVERIES] + served <= len(deliveries_of(w))
    )
    if enough and numbers_of(w)[c.JITTER] > 0.0:
        near_first, near_wire, drawn = near_first_of(w), near_wire_of(w), drawn_of(w)
        for at in range(near_first[broker * n[c.TREES]], near_first[(broker + 1) * n[c.TREES]]):
            enough = enough and drawn[near_wire[at]] + answers <= draws_of(w).shape[1]
    if not enough:
        n[c.NEED_ANSWERS], n[c.NEED_NODES], n[c.NEED_ROWS] = answers, fresh, table
        n[c.NEED_DELIVERIES] = served
    return 0 if enough else 1


@linkable
def control_message(address: int, m: int, broker: int, _1: int, _2: int) -> int:
    """A broker processes a subscription or unsubscription, its own client's or a neighbour's: Broker._control."""
    w = table_at(address)
    n, nodes, routes, learn_first, learn = counters_of(w), nodes_of(w), routes_of(w), learn_first_of(w), learn_of(w)
    message, now = messages_of(w)[m], numbers_of(w)[c.NOW]
    kind, node, operation = np.int64(message.kind), np.int64(message.node), np.int64(message.operation)
    hop = np.int64(message.hop)
    row = control_of(w)[n[c.CONTROL]]
    n[c.CONTROL] += 1
    row.step, row.time, row.sent, row.target = n[c.STEP], now, message.sent, broker
    row.kind, row.operation, row.sequence, row.hop = kind, operation, message.sequence, hop
    n[c.STEP] += 1
    from_client = message.wire < 0
    release(w, m)
    first, last = learn_first[broker * n[c.TREES]], learn_first[(broker + 1) * n[c.TREES]]
    subscription, source, tree, child = node, np.int64(-1), -1, np.int64(-1)
    if from_client:
        child = np.int64(home_child_of(w)[node])
        if kind == SUBSCRIBE:
            enter_local(w, broker, node)
        else:
            leave_local(w, broker, node)
    else:
        route = routes[nodes[node].route]
        subscription, source, tree = np.int64(nodes[node].subscription), np.int64(route.source), route.tree
        first, last, child = learn_first[route.plane], learn_first[route.plane + 1], np.int64(nodes[node].child)
        if kind == SUBSCRIBE:
            enter_table(w, node)
        else:
            leave_table(w, node)
    row.subscription, row.source, row.tree = subscription, source, tree
    fresh = child < 0
    if fresh:
        child = n[c.NODES]
        if from_client:
            home_child_of(w)[node] = child
        else:
            nodes[node].child = child
    for at in range(first, last):
        if routes[learn[at]].target == source:
            continue  # what came from there needs not go back
        if fresh:
            new_node(w, subscription, learn[at])
        if kind == SUBSCRIBE:
            decide(w, child, FORWARDED, operation, hop + 1)
        else:
            unsubscribe(w, child, operation, hop + 1)
        child += 1
    request = operations_of(w)[operation]
    request.outstanding -= 1
    if request.outstanding == 0:
        request.finished = now
    return 0


@njit(cache=True, nogil=True)
def new_node(w: Any, subscription: int, route: int) -> None:
    n = counters_of(w)
    fresh = nodes_of(w)[n[c.NODES]]
    n[c.NODES] += 1
    fresh.subscription, fresh.route, fresh.coverer, fresh.count = subscription, route, ABSENT, 0
    fresh.first, fresh.last, fresh.next, fresh.previous, fresh.child, fresh.row = -1, -1, -1, -1, -1, -1


@linkable
def publication(address: int, m: int, broker: int, _1: int, _2: int) -> int:
    """A broker processes an event: serve its own clients, pass it on where anything matches: Broker._publication."""
    w = table_at(address)
    n, wires, message, now = counters_of(w), wires_of(w), messages_of(w)[m], numbers_of(w)[c.NOW]
    event, hop, plane, wire = np.int64(message.node), np.int64(message.hop), message.plane, message.wire
    published, sent, parent = message.published, message.sent, message.parent
    release(w, m)
    home, values = brokers_of(w)[broker], events_of(w)[event]
    k = home.local if n[c.K] < 0 else min(n[c.K], home.local)
    ids, scores = best(columns_of(w), home.first, home.local, values, k, n[c.RELAXED] != 0)
    for i in range(len(ids)):
        row = deliveries_of(w)[n[c.DELIVERIES]]
        n[c.DELIVERIES] += 1
        row.event, row.subscription, row.broker, row.rank, row.hops = event, ids[i], broker, i + 1, hop
        row.time, row.latency, row.score = now, now - published, scores[i]
    source, latency = -1, 0.0
    if wire >= 0:
        source, latency = wires[wire].source, wires[wire].latency
    at_row, forwarded = n[c.PUBLICATIONS], 0
    near_first, neighbour, near_route = near_first_of(w), neighbour_of(w), near_route_of(w)
    for at in range(near_first[plane], near_first[plane + 1]):
        route = near_route[at]
        if neighbour[at] != source and (route == EVERYTHING or (route >= 0 and behind(w, route, values))):
            forwarded += 1
            send(w, near_wire_of(w)[at], PUBLISH, event, -1, hop + 1, at_row, published, near_plane_of(w)[at])
    out = publications_of(w)[at_row]
    n[c.PUBLICATIONS] += 1
    out.step, out.event, out.time, out.sent, out.source, out.target = n[c.STEP], event, now, sent, source, broker
    n[c.STEP] += 1
    out.hop, out.published, out.waited = hop, published, max(0.0, now - (sent + latency))
    out.served, out.forwarded, out.parent = len(ids), forwarded, parent
    return 0


@njit(cache=True, nogil=True)
def process(w: Any, m: int, broker: int) -> None:
    call(w, PUBLICATION if messages_of(w)[m].kind == PUBLISH else CONTROL_MESSAGE, m, broker, 0, 0)


@njit(cache=True, nogil=True)
def arrive(w: Any, m: int, broker: int) -> None:
    """Server.arrive: process at once, wait for service, or find no room."""
    n, message = counters_of(w), messages_of(w)[m]
    if n[c.SERVICE] == NO_SERVICE:
        process(w, m, broker)
    elif 0 <= n[c.CAPACITY] <= brokers_of(w)[broker].waiting and message.kind == PUBLISH:
        row = faults_of(w)[n[c.FAULTS]]
        n[c.FAULTS] += 1
        row.time, row.broker, row.event = numbers_of(w)[c.NOW], broker, message.node
        row.neighbour = wires_of(w)[message.wire].source if message.wire >= 0 else -1
        release(w, m)
    else:
        enqueue(w, broker, m, len(wires_of(w)) + broker)


@njit(cache=True, nogil=True)
def client_acts(w: Any, position: int) -> None:
    """One line of the timeline: Network.subscribe, unsubscribe or publish."""
    n, now = counters_of(w), numbers_of(w)[c.NOW]
    broker, kind, index = homes_of(w)[position], kinds_of(w)[position], index_of(w)[position]
    m = allocate(w)
    message = messages_of(w)[m]
    message.next, message.kind, message.node, message.hop, message.wire = -1, kind, index, 0, -1
    message.sent, message.published, message.parent, message.operation = now, now, -1, -1
    if kind == PUBLISH:
        message.plane = broker * n[c.TREES] + tree_of_of(w)[broker]
    else:
        message.operation = new_operation(w, kind, index, broker)
        message.sequence = message.operation
    arrive(w, m, broker)


@njit(cache=True, nogil=True)
def new_operation(w: Any, kind: int, subscription: int, broker: int) -> int:
    n, now = counters_of(w), numbers_of(w)[c.NOW]
    number = n[c.OPERATIONS]
    n[c.OPERATIONS] += 1
    operation = operations_of(w)[number]
    operation.kind, operation.subscription, operation.broker = kind, subscription, broker
    operation.time, operation.finished, operation.outstanding, operation.messages = now, now, 1, 0
    return number


@njit(cache=True, nogil=True)
def take_sample(w: Any) -> None:
    """The present size of every table: the clients' of each broker, then by wire."""
    n, samples, brokers, wires = counters_of(w), samples_of(w), brokers_of(w), wires_of(w)
    at = n[c.SAMPLE]
    n[c.SAMPLE] += 1
    sampled_at_of(w)[at] = numbers_of(w)[c.NOW]
    for b in range(len(brokers)):
        samples[at, b] = brokers[b].local
    for wire in range(len(wires)):
        samples[at, len(brokers) + wire] = wires[wire].entries


@njit(cache=True, nogil=True)
def dry(w: Any, broker: int) -> bool:
    """No service time is left of those drawn in advance."""
    return counters_of(w)[c.SERVICE] == EXPONENTIAL and service_drawn_of(w)[broker] == service_draws_of(w).shape[1]


@njit(cache=True, nogil=True)
def clients_go_on(w: Any) -> int:
    """Let the clients do the next line of the timeline, or wait for it; ROOM if an array is too short."""
    n, now = counters_of(w), numbers_of(w)[c.NOW]
    position, times = n[c.POSITION], times_of(w)
    if position == len(times):
        n[c.CLIENTS_ACT] = 0
    elif n[c.CLIENTS_ACT] == 1 and times[position] > now:
        schedule(w, now + (times[position] - now), len(wires_of(w)) + len(brokers_of(w)))
        n[c.CLIENTS_ACT] = 0
    else:
        broker = homes_of(w)[position]
        if dry(w, broker) or lacks_room(w, kinds_of(w)[position], index_of(w)[position], -1, broker):
            return c.ROOM
        client_acts(w, position)
        n[c.POSITION] += 1
        n[c.CLIENTS_ACT] = 1
    return c.DONE


@njit(cache=True, nogil=True)
def sampler_goes_on(w: Any) -> None:
    n, now, due = counters_of(w), numbers_of(w)[c.NOW], due_of(w)
    at = n[c.SAMPLE]
    if at == n[c.WANTED_SAMPLES]:
        n[c.SAMPLER_ACTS] = 0
    elif due[at] > now:
        schedule(w, now + (due[at] - now), len(wires_of(w)) + len(brokers_of(w)) + 1)
        n[c.SAMPLER_ACTS] = 0
    else:
        take_sample(w)


@njit(cache=True, nogil=True)
def advance(w: Any) -> int:
    """Go on until nothing is under way, or until an array is too short: DONE or ROOM."""
    n, wires, brokers, heap = counters_of(w), wires_of(w), brokers_of(w), heap_of(w)
    servers, clients = len(wires), len(wires) + len(brokers)
    while True:
        if n[c.HEAP] + c.SLACK > len(heap) or n[c.FAULTS] == len(faults_of(w)):
            return c.ROOM
        if n[c.CLIENTS_ACT]:
            if clients_go_on(w) == c.ROOM:
                return c.ROOM
            continue
        if n[c.SAMPLER_ACTS]:
            sampler_goes_on(w)
            continue
        if n[c.HEAP] == 0:
            return c.DONE
        what = heap[0].what
        if what < servers:
            message, broker = messages_of(w)[wires[what].head], np.int64(wires[what].target)
            at_once = n[c.SERVICE] == NO_SERVICE
            if dry(w, broker) or (at_once and lacks_room(w, message.kind, message.node, what, broker)):
                return c.ROOM
        elif what < clients:
            broker = what - servers
            message = messages_of(w)[brokers[broker].head]
            if lacks_room(w, message.kind, message.node, message.wire, broker):
                return c.ROOM
        numbers_of(w)[c.NOW] = heap[0].time
        n[c.HEAP] = pop(heap, n[c.HEAP])
        if what < servers:
            arrive(w, np.int64(take_off(w, what)), np.int64(wires[what].target))
        elif what < clients:
            process(w, np.int64(dequeue(w, what - servers)), what - servers)
        elif what == clients:
            n[c.CLIENTS_ACT] = 2  # they waited for this line of the timeline, whatever rounding made of its time
        else:
            take_sample(w)
            n[c.SAMPLER_ACTS] = 1
