"""What a broker does with a message, and what a client does: Broker, Server and the requests of Network, on rows."""

from __future__ import annotations

import numpy as np

from covering.memory import call, linkable
from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import (
    CONTROL_MESSAGE,
    PUBLICATION,
    brokers_of,
    counters_of,
    deliveries_of,
    events_of,
    faults_of,
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
    standings_of,
    tree_of_of,
    wires_of,
)
from sim.compiled.columns import write_control
from sim.compiled.ledger import decide, unsubscribe
from sim.compiled.matching import behind, best, columns_of, enter_local, enter_table, leave_local, leave_table
from sim.compiled.post import allocate, enqueue, release, send
from sim.compiled.records import ABSENT, FORWARDED, NO_SERVICE, PUBLISH, SIMPLE, SUBSCRIBE
from sim.compiled.topology import EVERYTHING


@linkable
def control_message(w: int, m: int, broker: int, _1: int, _2: int) -> int:
    """A broker processes a subscription or unsubscription, its own client's or a neighbour's: Broker._control."""
    n, nodes, routes, learn_first, learn = counters_of(w), nodes_of(w), routes_of(w), learn_first_of(w), learn_of(w)
    message, now = messages_of(w)[m], numbers_of(w)[c.NOW]
    kind, node, operation = np.int64(message.kind), np.int64(message.node), np.int64(message.operation)
    hop, sent, sequence, from_client = np.int64(message.hop), message.sent, message.sequence, message.wire < 0
    release(w, m)
    first, last = learn_first[broker * n[c.TREES]], learn_first[(broker + 1) * n[c.TREES]]
    subscription, source, tree, child = node, np.int64(-1), np.int64(-1), np.int64(-1)
    if from_client:
        child = np.int64(home_child_of(w)[node])
        if kind == SUBSCRIBE:
            enter_local(w, broker, node)
        else:
            leave_local(w, broker, node)
    else:
        route = routes[nodes[node].route]
        subscription, source, tree = np.int64(nodes[node].subscription), np.int64(route.source), np.int64(route.tree)
        first, last, child = learn_first[route.plane], learn_first[route.plane + 1], np.int64(nodes[node].child)
        if kind == SUBSCRIBE:
            enter_table(w, node)
        else:
            leave_table(w, node)
    write_control(w, sent, source, broker, tree, kind, subscription, operation, sequence, hop)
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


@kernel
def new_node(w: int, subscription: int, route: int) -> None:
    n = counters_of(w)
    fresh = nodes_of(w)[n[c.NODES]]
    n[c.NODES] += 1
    fresh.subscription, fresh.route, fresh.child, fresh.row = subscription, route, -1, -1
    if n[c.STRATEGY] != SIMPLE:
        standing = standings_of(w)[n[c.NODES] - 1]
        standing.coverer, standing.count = ABSENT, 0
        standing.first, standing.last, standing.next, standing.previous = -1, -1, -1, -1


@linkable
def publication(w: int, m: int, broker: int, _1: int, _2: int) -> int:
    """A broker processes an event: serve its own clients, pass it on where anything matches: Broker._publication."""
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


@kernel
def process(w: int, m: int, broker: int) -> None:
    call(w, PUBLICATION if messages_of(w)[m].kind == PUBLISH else CONTROL_MESSAGE, m, broker, 0, 0)


@kernel
def arrive(w: int, m: int, broker: int) -> None:
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


@kernel
def client_acts(w: int, position: int) -> None:
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


@kernel
def new_operation(w: int, kind: int, subscription: int, broker: int) -> int:
    n, now = counters_of(w), numbers_of(w)[c.NOW]
    number = n[c.OPERATIONS]
    n[c.OPERATIONS] += 1
    operation = operations_of(w)[number]
    operation.kind, operation.subscription, operation.broker = kind, subscription, broker
    operation.time, operation.finished, operation.outstanding, operation.messages = now, now, 1, 0
    return number
