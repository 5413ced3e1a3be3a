"""Sending and serving in kernels: what `Link` and `Server` of broker/transport.py do, on records.

What a broker sends waits in an outbox: that of the run while a message is processed, that of the broker until the end
of its service. Then it is put on the wires: no other kernel is at work, so Python can draw more random numbers where
a wire has none left.

With latency alone, messages of a wire arrive in the order of sending and of the calendar alike, so only the first one
of each wire is in the calendar; that keeps the heap as small as the overlay. With bandwidth or jitter, rounding may put
two arrivals of a wire into the calendar in the other order; then each has its own call: the call says when, the queue
says which message, as in the reference.
"""

from __future__ import annotations

from typing import Any

from broker import work
from broker.messages import HEADER_BYTES
from sim.compiled.calendar import pop, push, replace
from sim.compiled.records import EXPONENTIAL, LINEAR, NO_SERVICE, PUBLISH, SUBSCRIBE, WORK
from sim.compiled.state import ONE_MORE, inlined, inner
from topk.kernels.rows import longer

# The formulas of the reference, compiled.
control_time, event_time = inlined(work.control_time), inlined(work.event_time)
tables_time, matching_time = inlined(work.tables_time), inlined(work.matching_time)


@inner
def new_message(w: Any, kind: int, node: int, operation: int, hop: int, wire: int) -> int:
    """An unused row of messages, filled in as far as all kinds of messages need it."""
    run = w.run[0]
    m = run.unused_message
    if m >= 0:
        run.unused_message = w.messages[m].next
    else:
        m = run.messages
        run.messages += 1
        if m == len(w.messages):
            w.messages = longer(w.messages, ONE_MORE)
    message = w.messages[m]
    message.next, message.kind, message.node, message.operation = -1, kind, node, operation
    message.hop, message.wire, message.part, message.parent = hop, wire, -1, -1
    message.sequence, message.sent, message.published = operation, run.now, run.now  # put_on_wires renews `sent`
    return m


@inlined
def release(w: Any, m: int) -> None:
    """The message has been processed: its row can be used again."""
    run = w.run[0]
    w.messages[m].next = run.unused_message
    run.unused_message = m


@inlined
def send(w: Any, wire: int, kind: int, node: int, operation: int, hop: int) -> int:
    """A broker sends a message; its row."""
    m = new_message(w, kind, node, operation, hop, wire)
    run = w.run[0]
    if run.outbox >= 0:
        w.messages[run.outbox_last].next = m
    else:
        run.outbox = m
    run.outbox_last = m
    return m


@inner
def schedule(w: Any, time: float, what: int) -> None:
    run = w.run[0]
    run.order += 1
    if run.calls == len(w.calendar):
        w.calendar = longer(w.calendar, ONE_MORE)
    run.calls = push(w.calendar, run.calls, time, run.order, what)


@inner
def put_on_wires(w: Any) -> bool:
    """Empty the outbox; False if a wire has used up its random numbers."""
    run, messages = w.run[0], w.messages
    while run.outbox >= 0:
        m = run.outbox
        message = messages[m]
        link = w.wires[message.wire]
        if run.jitter > 0.0 and link.drawn == w.draws.shape[1]:
            return False
        run.outbox, message.next = message.next, -1
        message.sequence, message.sent = link.sent, run.now
        link.sent += 1
        first = link.head < 0
        if first:
            link.head = m
        else:
            messages[link.tail].next = m
        link.tail = m
        message.time = _arrival(w, message.wire, message.kind)
        if first or not run.only_latency:
            schedule(w, message.time, message.wire)
        else:
            run.order += 1
        message.order = run.order
    return True


@inner
def _size(w: Any, kind: int) -> int:
    """Bytes of a message, as Control.size and Publication.size count."""
    attributes = w.points.shape[1] >> 1
    size = HEADER_BYTES
    if kind == SUBSCRIBE:
        size += 16 * attributes
    elif kind == PUBLISH:
        size += 8 * attributes
    return size


@inlined
def _arrival(w: Any, wire: int, kind: int) -> float:
    """When a message that is put on a wire now arrives."""
    run, link = w.run[0], w.wires[wire]
    if run.only_latency:
        return run.now + link.latency
    leaves = run.now
    if run.bandwidth > 0.0:
        leaves = max(run.now, link.free_at) + _size(w, kind) / run.bandwidth
        link.free_at = leaves
    arrival = leaves + link.latency
    if run.jitter > 0.0:
        arrival += run.jitter * w.draws[wire, link.drawn]
        link.drawn += 1
        arrival = max(arrival, link.last)
        link.last = arrival
    return run.now + (arrival - run.now)


@inlined
def take_off(w: Any, wire: int) -> int:
    """The message that arrives now on a wire, whose call is the first of the calendar."""
    run, messages, link = w.run[0], w.messages, w.wires[wire]
    m = link.head
    link.head = messages[m].next
    if run.only_latency and link.head >= 0:
        following = messages[link.head]
        replace(w.calendar, run.calls, following.time, following.order, wire)
    else:
        run.calls = pop(w.calendar, run.calls)
    return m


@inlined
def enqueue(w: Any, broker: int, m: int) -> None:
    """A message begins to wait for service."""
    messages, server = w.messages, w.brokers[broker]
    messages[m].next = -1
    if server.head >= 0:
        messages[server.tail].next = m
    else:
        server.head = m
    server.tail = m


@inlined
def dequeue(w: Any, broker: int) -> int:
    """The message whose service begins now, −1: none waits."""
    server = w.brokers[broker]
    m = server.head
    if m >= 0:
        server.head = w.messages[m].next
    return m


@inlined
def begin_service(w: Any) -> None:
    """A message has been processed: note how long its service takes, keep back what it sends until then."""
    run = w.run[0]
    server, took = w.brokers[run.begun], run.service_base
    if run.service == EXPONENTIAL:
        took *= w.service_draws[run.begun, server.drawn]
        server.drawn += 1
    elif run.service == LINEAR:
        took += run.service_slope * server.entries
    elif run.service == WORK:
        took = _work_time(w, server.local)
    if run.served_event:
        row = w.publications[run.publications - 1]
        row.service = took
        for i in range(run.deliveries - row.served, run.deliveries):
            w.deliveries[i].time = run.now + took
            w.deliveries[i].latency = run.now + took - row.published
    else:
        w.control[run.control - 1].service = took
    server.finishing = run.finishing
    if run.service == NO_SERVICE:
        _finish(w, run.begun)
    else:
        server.outbox, server.outbox_last, run.outbox = run.outbox, run.outbox_last, -1
        schedule(w, run.now + took, len(w.wires) + run.begun)
    run.begun = -1


@inlined
def _work_time(w: Any, local: int) -> float:
    """How long the work of the current message takes, `local` subscriptions at its broker: Broker.begin."""
    run, prices, took = w.run[0], w.prices[0], 0.0
    if run.served_event:
        row = w.publications[run.publications - 1]
        row.on_tables = tables_time(prices, row.tables_asked, row.compared)
        if local > 0:
            row.on_matching = matching_time(prices, row.matcher_entries, row.matcher_nodes)
        sent = row.forwarded * _size(w, PUBLISH)
        took = event_time(prices, row.on_tables, row.on_matching, row.served, sent)
    else:
        w.control[run.control - 1].on_covering = run.searching
        m, sent = run.outbox, 0
        while m >= 0:
            sent += _size(w, w.messages[m].kind)
            m = w.messages[m].next
        took = control_time(prices, run.searching, sent)
    return took


@inlined
def end_service(w: Any, broker: int) -> None:
    """A service ends: what the message sends is to be put on the wires now."""
    run, server = w.run[0], w.brokers[broker]
    run.outbox, run.outbox_last, run.ended = server.outbox, server.outbox_last, broker
    _finish(w, broker)


@inner
def _finish(w: Any, broker: int) -> None:
    """A message of an operation has been processed, and what it sends is under way."""
    server = w.brokers[broker]
    server.present -= 1
    if server.finishing >= 0:
        request = w.operations[server.finishing]
        request.outstanding -= 1
        if request.outstanding == 0:
            request.finished = w.run[0].now
