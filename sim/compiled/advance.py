"""The run itself: take the next call off the calendar, do what it says, until nothing is under way.

One kernel. It returns, only between two messages, whenever Python has something to do (draw random numbers, take the
trace away), and is called again. The clients' timeline and the sampler of table sizes take part in the calendar as the
two processes of the reference do, at the same times and in the same order.

Calls are numbered: wires first, then the servers of the brokers, then the clients, then the sampler.
"""

from __future__ import annotations

from typing import Any

from coverlay import kernel
from sim.compiled.calendar import pop
from sim.compiled.link_ledgers import make_nodes
from sim.compiled.processing import arrive, client_acts, process
from sim.compiled.records import ACTING, EXPONENTIAL, NONE, WAITING, WOKEN
from sim.compiled.state import inlined, inner
from sim.compiled.transport import begin_service, dequeue, end_service, put_on_wires, schedule, take_off

# Why `advance` returns: nothing is under way any more; random numbers are used up; the trace is long; ledgers are to be
# updated.
DONE, DRAW, TAKE_TRACE, UPDATE = 0, 1, 2, 3
BLOCK = 1 << 16  # rows of a trace table that are taken away at once, while they are still in a cache


@inner
def _take_sample(w: Any) -> None:
    """The current size of every table: each broker's own, then one per wire, then the pruned entries per wire."""
    run, brokers, wires = w.run[0], w.brokers, w.wires
    w.sampled_at[run.sampled] = run.now
    for b in range(len(brokers)):
        w.samples[run.sampled, b] = brokers[b].local
    for wire in range(len(wires)):
        w.samples[run.sampled, len(brokers) + wire] = wires[wire].entries
        if run.prunes:
            w.samples[run.sampled, len(brokers) + len(wires) + wire] = wires[wire].known - wires[wire].entries
    run.sampled += 1


@inlined
def _clients_wait(w: Any) -> bool:
    """Is there nothing for the clients to do now? They wait for the next line of the timeline, or are done."""
    run = w.run[0]
    if run.clients == ACTING and run.position < len(w.timeline) and w.timeline[run.position].time > run.now:
        schedule(w, run.now + (w.timeline[run.position].time - run.now), len(w.wires) + len(w.brokers))
        run.clients = WAITING
    if run.position == len(w.timeline):
        run.clients = WAITING
    return run.clients == WAITING


@inlined
def _sample_tables(w: Any) -> None:
    """Take the samples that are due now, and wait for the next one."""
    run = w.run[0]
    while run.sampler == ACTING:
        if run.sampled == run.samples:
            run.sampler = WAITING
        elif w.sample_due[run.sampled] > run.now:
            schedule(w, run.now + (w.sample_due[run.sampled] - run.now), len(w.wires) + len(w.brokers) + 1)
            run.sampler = WAITING
        else:
            _take_sample(w)


@kernel
def advance(w: Any) -> int:
    """Run until nothing is under way or Python has something to do: DONE, DRAW, TAKE_TRACE or UPDATE."""
    run, wires = w.run[0], w.wires
    servers, clients = len(wires), len(wires) + len(w.brokers)
    m, broker = NONE, NONE
    while True:
        if m >= 0:
            process(w, m, broker)
            if run.updates:
                return UPDATE
        if run.begun >= 0:
            if run.service == EXPONENTIAL and w.brokers[run.begun].drawn == w.service_draws.shape[1]:
                return DRAW
            begin_service(w)
        if not put_on_wires(w):
            return DRAW
        if max(run.control, run.decisions, run.publications, run.deliveries, run.faults) >= BLOCK:
            return TAKE_TRACE
        make_nodes(w, run.widest)
        m, broker, arrives = NONE, run.ended, False
        if broker >= 0:
            run.ended = -1
            m = dequeue(w, broker)
        elif not _clients_wait(w):
            broker = w.timeline[run.position].broker
            m, arrives = client_acts(w), True
            run.clients = ACTING
        else:
            _sample_tables(w)
            if run.calls == 0:
                _take_sample(w)  # the final one
                return DONE
            run.now, what = w.calendar[0].time, w.calendar[0].what
            if what < servers:
                broker = wires[what].target
                m, arrives = take_off(w, what), True
            else:
                run.calls = pop(w.calendar, run.calls)
                if what < clients:
                    end_service(w, what - servers)
                elif what == clients:
                    run.clients = WOKEN  # for this line of the timeline, even if rounding changed its time
                else:
                    _take_sample(w)
                    run.sampler = ACTING
        if arrives:
            m = arrive(w, m, broker)
