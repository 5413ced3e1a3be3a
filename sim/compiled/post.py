"""Sending and serving in kernels: what `Link.send` and `Server.arrive` of broker/transport.py do, on rows.

Where latency is all there is, messages of a wire arrive in the order of sending and of the calendar alike, so only
the first one of each wire stands in the calendar; that keeps the heap as small as the overlay. With bandwidth or
jitter, rounding may put two arrivals of a wire into the calendar in the other order; then each has its own call, and
the call says when, the queue says which, as in the reference.
"""

from __future__ import annotations

from broker.messages import HEADER_BYTES
from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import (
    brokers_of,
    counters_of,
    drawn_of,
    draws_of,
    heap_of,
    messages_of,
    numbers_of,
    service_drawn_of,
    service_draws_of,
    wires_of,
)
from sim.compiled.calendar import pop, push, replace
from sim.compiled.records import CONSTANT, EXPONENTIAL, PUBLISH, SUBSCRIBE


@kernel
def allocate(w: int) -> int:
    """A free row of messages; whoever starts to process a message has made sure that there is one."""
    n = counters_of(w)
    n[c.IN_FLIGHT] += 1
    m = n[c.FREE]
    if m >= 0:
        n[c.FREE] = messages_of(w)[m].next
        return m
    n[c.POOL] += 1
    return n[c.POOL] - 1


@kernel
def release(w: int, m: int) -> None:
    n = counters_of(w)
    messages_of(w)[m].next = n[c.FREE]
    n[c.FREE] = m
    n[c.IN_FLIGHT] -= 1


@kernel
def schedule(w: int, time: float, what: int) -> None:
    n = counters_of(w)
    n[c.ORDER] += 1
    n[c.HEAP] = push(heap_of(w), n[c.HEAP], time, n[c.ORDER], what)


@kernel
def _size(kind: int, attributes: int) -> int:
    """Bytes of a message, as Control.size and Publication.size count them."""
    if kind == SUBSCRIBE:
        return HEADER_BYTES + 16 * attributes
    return HEADER_BYTES + (8 * attributes if kind == PUBLISH else 0)


@kernel
def send(
    w: int, wire: int, kind: int, node: int, operation: int, hop: int, parent: int, published: float, plane: int
) -> None:
    """Put a message on a wire."""
    n, numbers, messages = counters_of(w), numbers_of(w), messages_of(w)
    now = numbers[c.NOW]
    m = allocate(w)
    message, link = messages[m], wires_of(w)[wire]
    message.next, message.kind, message.node, message.operation = -1, kind, node, operation
    message.hop, message.wire, message.plane, message.parent = hop, wire, plane, parent
    message.sequence, message.sent, message.published = link.sent, now, published
    link.sent += 1
    behind = link.head >= 0
    if behind:
        messages[link.tail].next = m
    else:
        link.head = m
    link.tail = m
    if n[c.ONLY_LATENCY]:
        n[c.ORDER] += 1
        message.time, message.order = now + link.latency, n[c.ORDER]
        if not behind:
            n[c.HEAP] = push(heap_of(w), n[c.HEAP], now + link.latency, n[c.ORDER], wire)
        return
    leaves = now
    if numbers[c.BANDWIDTH] > 0.0:
        leaves = max(now, link.free_at) + _size(kind, n[c.ATTRIBUTES]) / numbers[c.BANDWIDTH]
        link.free_at = leaves
    arrival = leaves + link.latency
    if numbers[c.JITTER] > 0.0:
        drawn = drawn_of(w)
        arrival += numbers[c.JITTER] * draws_of(w)[wire, drawn[wire]]
        drawn[wire] += 1
        arrival = max(arrival, link.last)
        link.last = arrival
    schedule(w, now + (arrival - now), wire)


@kernel
def take_off(w: int, wire: int) -> int:
    """The message that arrives now on a wire, whose call is the first of the calendar."""
    n, messages, link = counters_of(w), messages_of(w), wires_of(w)[wire]
    m = link.head
    link.head = messages[m].next
    if n[c.ONLY_LATENCY] and link.head >= 0:
        following = messages[link.head]
        replace(heap_of(w), n[c.HEAP], following.time, following.order, wire)
    else:
        n[c.HEAP] = pop(heap_of(w), n[c.HEAP])
    return m


@kernel
def enqueue(w: int, broker: int, m: int, what: int) -> None:
    """A message begins to wait for service."""
    n, numbers, messages, server = counters_of(w), numbers_of(w), messages_of(w), brokers_of(w)[broker]
    now = numbers[c.NOW]
    start = max(server.busy_until, now)
    took = numbers[c.SERVICE_BASE]
    if n[c.SERVICE] == EXPONENTIAL:
        drawn = service_drawn_of(w)
        took *= service_draws_of(w)[broker, drawn[broker]]
        drawn[broker] += 1
    elif n[c.SERVICE] != CONSTANT:
        took += numbers[c.SERVICE_SLOPE] * server.entries
    server.busy_until = start + took
    messages[m].next = -1
    if server.head >= 0:
        messages[server.tail].next = m
    else:
        server.head = m
    server.tail = m
    server.waiting += 1
    schedule(w, now + (server.busy_until - now), what)


@kernel
def dequeue(w: int, broker: int) -> int:
    server = brokers_of(w)[broker]
    m = server.head
    server.head = messages_of(w)[m].next
    server.waiting -= 1
    return m
