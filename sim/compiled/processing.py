"""What a broker does with a message, and what a client does: Broker, Server and the requests of Network, on records."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.link_ledgers import forward_all, new_node, note_update
from sim.compiled.records import EVERYTHING, NO_SERVICE, NONE, PUBLISH, SIMPLE, SUBSCRIBE
from sim.compiled.state import inlined, inner
from sim.compiled.tables import any_match, enter_local, enter_table, find_best, leave_local, leave_table
from sim.compiled.transport import enqueue, new_message, release, send


@inlined
def write_control(
    w: Any,
    sent: float,
    source: int,
    target: int,
    tree: int,
    kind: int,
    subscription: int,
    operation: int,
    sequence: int,
    hop: int,
    latency: float,
) -> None:
    """A broker processes a control message now: its row of the trace."""
    run = w.run[0]
    row = w.control[run.control]
    row.step, row.time, row.sent, row.subscription, row.operation = run.step, run.now, sent, subscription, operation
    row.sequence, row.source, row.target, row.tree, row.hop, row.kind = sequence, source, target, tree, hop, kind
    row.waited, row.service, row.on_covering = max(0.0, run.now - (sent + latency)), 0.0, 0.0
    run.control += 1
    run.step += 1


@inner
def _control(w: Any, m: int, broker: int) -> None:
    """A broker processes a subscription or unsubscription, its own client's or a neighbour's: Broker._control.

    It notes down which ledgers are to be updated (update_ledgers, forward_all).
    """
    run, nodes, message = w.run[0], w.nodes, w.messages[m]
    kind, node, operation, hop, sequence = message.kind, message.node, message.operation, message.hop, message.sequence
    from_client, sent, latency = message.wire < 0, message.sent, 0.0
    release(w, m)
    if from_client:
        subscription, source, tree, child = node, -1, -1, w.subscriptions[node].node
        first, last = w.learn_first[broker * run.trees], w.learn_first[(broker + 1) * run.trees]
        if kind == SUBSCRIBE:
            enter_local(w, broker, node)
        else:
            leave_local(w, broker, node)
    else:
        route = w.routes[nodes[node].route]
        subscription, source, tree = np.int64(nodes[node].subscription), route.source, route.tree
        latency = w.wires[route.wire].latency
        first, last, child = w.learn_first[route.part], w.learn_first[route.part + 1], np.int64(nodes[node].child)
        if run.prunes:  # the sieve decides
            w.wires[route.wire].known += 1 if kind == SUBSCRIBE else -1
        elif kind == SUBSCRIBE:
            enter_table(w, node)
        else:
            leave_table(w, node)
    write_control(w, sent, source, broker, tree, kind, subscription, operation, sequence, hop, latency)
    fresh = child < 0
    if fresh:
        child = run.nodes
        if from_client:
            w.subscriptions[node].node = child
        else:
            nodes[node].child = child
    last_child = child
    if run.prunes and not from_client:
        if fresh:
            new_node(w, subscription, nodes[node].route + run.routes)
        last_child += 1
    for at in range(first, last):
        onward = w.learn[at]
        if w.routes[onward].target != source:  # do not send it back to its source
            if fresh:
                new_node(w, subscription, onward)
            last_child += 1
    if child < last_child:
        note_update(w, kind, child, last_child, operation, hop + 1)
    run.begun, run.served_event, run.finishing, run.searching = broker, False, operation, 0.0


@inner
def _publication(w: Any, m: int, broker: int) -> None:
    """A broker processes an event: serve its own clients, pass it on where anything matches: Broker._publication."""
    run, message = w.run[0], w.messages[m]
    event, hop, part, wire, parent = message.node, message.hop, message.part, message.wire, message.parent
    published, sent = message.published, message.sent
    release(w, m)
    values = w.events[event]
    served, matcher_entries = find_best(w, broker, values)
    for i in range(served):
        delivery = w.deliveries[run.deliveries]
        run.deliveries += 1
        delivery.event, delivery.subscription, delivery.broker, delivery.rank = event, w.found_ids[i], broker, i + 1
        delivery.hops, delivery.score = hop, w.found_scores[i]  # times follow when the service is known
    source, latency = -1, 0.0
    if wire >= 0:
        source, latency = w.wires[wire].source, w.wires[wire].latency
    number, forwarded = run.publications_before + run.publications, 0
    asked, compared = 0, 0
    for at in range(w.near_first[part], w.near_first[part + 1]):
        near = w.near[at]
        if near.neighbour == source:
            continue
        wanted = near.route == EVERYTHING
        if near.route >= 0 and w.tables[len(w.brokers) + near.route].used:
            wanted, entries = any_match(w, near.route, values)
            asked += 1
            compared += entries
        if wanted:
            forwarded += 1
            m = send(w, near.wire, PUBLISH, event, NONE, hop + 1)
            copy = w.messages[m]  # only now: sending may have lengthened w.messages
            copy.part, copy.parent, copy.published = near.part, number, published
    row = w.publications[run.publications]
    row.step, row.event, row.time, row.sent, row.source, row.target = run.step, event, run.now, sent, source, broker
    row.hop, row.published, row.waited = hop, published, max(0.0, run.now - (sent + latency))
    row.served, row.forwarded, row.parent = served, forwarded, parent
    row.matcher_entries, row.tables_asked, row.compared = matcher_entries, asked, compared
    row.matcher_nodes, row.sliced, row.blocks = 0, 0, 0  # only other matchers and ranked tables count these
    row.on_tables, row.on_matching = 0.0, 0.0
    run.publications += 1
    run.step += 1
    run.begun, run.served_event, run.finishing = broker, True, NONE


@inlined
def process(w: Any, m: int, broker: int) -> None:
    if w.messages[m].kind == PUBLISH:
        _publication(w, m, broker)
    else:
        _control(w, m, broker)
        if w.run[0].strategy == SIMPLE:
            forward_all(w)


@inlined
def arrive(w: Any, m: int, broker: int) -> int:
    """Server.arrive: the message if it is to be processed at once; −1 if it waits for service or the queue is full."""
    run, message, server = w.run[0], w.messages[m], w.brokers[broker]
    if 0 <= run.capacity <= server.present and message.kind == PUBLISH and run.service != NO_SERVICE:
        row = w.faults[run.faults]
        run.faults += 1
        row.time, row.broker, row.event = run.now, broker, message.node
        row.neighbour = w.wires[message.wire].source if message.wire >= 0 else -1
        release(w, m)
        return -1
    server.present += 1
    if server.present == 1:
        return m
    enqueue(w, broker, m)
    return -1


@inlined
def client_acts(w: Any) -> int:
    """The next line of the timeline: Network.subscribe, unsubscribe or publish; its message."""
    run = w.run[0]
    act = w.timeline[run.position]
    run.position += 1
    if act.kind == PUBLISH:
        row = w.published[run.published]
        row.event, row.broker, row.time, row.step = act.index, act.broker, run.now, run.step
        run.published += 1
    operation = NONE if act.kind == PUBLISH else new_operation(w, act.kind, act.index, act.broker)
    m = new_message(w, act.kind, act.index, operation, np.int64(0), NONE)
    # An event follows the one tree, or the tree that is named after its source.
    w.messages[m].part = act.broker * run.trees + (act.broker if run.trees > 1 else 0)
    return m


@inlined
def new_operation(w: Any, kind: int, subscription: int, broker: int) -> int:
    run = w.run[0]
    number = run.operations
    run.operations += 1
    operation = w.operations[number]
    operation.kind, operation.subscription, operation.broker = kind, subscription, broker
    operation.time, operation.finished, operation.outstanding, operation.messages = run.now, run.now, 1, 0
    return number
