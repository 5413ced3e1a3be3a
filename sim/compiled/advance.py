"""The run itself: take the next call off the calendar, do what it says, until nothing is under way.

One kernel, entered again whenever an array was too short for what the next message may take: nothing has been changed
by then, so the owner (world.py) makes room and calls again. The clients' timeline and the sampler of table sizes take
part in the calendar as the two processes of the reference do, at the same times and in the same order.

Calls are numbered: wires first, then the servers of the brokers, then the clients, then the sampler.
"""

from __future__ import annotations

import numpy as np

from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import (
    brokers_of,
    counters_of,
    due_of,
    faults_of,
    heap_of,
    homes_of,
    index_of,
    kinds_of,
    messages_of,
    numbers_of,
    sampled_at_of,
    samples_of,
    times_of,
    wires_of,
)
from sim.compiled.calendar import pop
from sim.compiled.post import dequeue, schedule, take_off
from sim.compiled.process import arrive, client_acts, process
from sim.compiled.records import NO_SERVICE
from sim.compiled.room import dry, lacks_room


@kernel
def take_sample(w: int) -> None:
    """The present size of every table: the clients' of each broker, then by wire."""
    n, samples, brokers, wires = counters_of(w), samples_of(w), brokers_of(w), wires_of(w)
    at = n[c.SAMPLE]
    n[c.SAMPLE] += 1
    sampled_at_of(w)[at] = numbers_of(w)[c.NOW]
    for b in range(len(brokers)):
        samples[at, b] = brokers[b].local
    for wire in range(len(wires)):
        samples[at, len(brokers) + wire] = wires[wire].entries


@kernel
def clients_go_on(w: int) -> int:
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


@kernel
def sampler_goes_on(w: int) -> None:
    n, now, due = counters_of(w), numbers_of(w)[c.NOW], due_of(w)
    at = n[c.SAMPLE]
    if at == n[c.WANTED_SAMPLES]:
        n[c.SAMPLER_ACTS] = 0
    elif due[at] > now:
        schedule(w, now + (due[at] - now), len(wires_of(w)) + len(brokers_of(w)) + 1)
        n[c.SAMPLER_ACTS] = 0
    else:
        take_sample(w)


@kernel
def advance(w: int) -> int:
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
        if what < servers:
            arrive(w, np.int64(take_off(w, what)), np.int64(wires[what].target))
            continue
        n[c.HEAP] = pop(heap, n[c.HEAP])
        if what < clients:
            process(w, np.int64(dequeue(w, what - servers)), what - servers)
        elif what == clients:
            n[c.CLIENTS_ACT] = 2  # they waited for this line of the timeline, whatever rounding made of its time
        else:
            take_sample(w)
            n[c.SAMPLER_ACTS] = 1
