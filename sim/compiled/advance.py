"""The run itself: take the next call off the calendar, do what it says, until nothing is under way.

One kernel. It returns, only between two messages, whenever Python has something to do (draw random numbers, take the
trace away), and is called again. What clients do and the samples of table sizes are an agenda beside the calendar: at
one moment requests come first, then samples, then the calls of the calendar (sim/experiment/agenda.py).

Calls are numbered: wires first, then the servers of the brokers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from sim.compiled.calendar import pop
from sim.compiled.link_ledgers import make_nodes
from sim.compiled.processing import arrive, client_acts, process
from sim.compiled.records import EXPONENTIAL, NONE, REQUEST, SAMPLE
from sim.compiled.state import inlined, inner
from sim.compiled.transport import begin_service, dequeue, end_service, put_on_wires, take_off

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
def _next_on_agenda(w: Any) -> int:
    """What comes before the next call of the calendar: REQUEST, SAMPLE or NONE; the time is set."""
    run, until = w.run[0], np.inf
    if run.calls:
        until = w.calendar[0].time
    due, asked = np.inf, np.inf
    if run.sampled < run.samples:
        due = w.sample_due[run.sampled]
    if run.position < len(w.timeline):
        asked = w.timeline[run.position].time
    what = NONE
    if asked <= min(due, until) and asked < np.inf:
        run.now, what = asked, REQUEST
    elif due <= until and due < np.inf:
        run.now, what = due, SAMPLE
    return what


@kernel
def advance(w: Any) -> int:
    """Run until nothing is under way or Python has something to do: DONE, DRAW, TAKE_TRACE or UPDATE."""
    run, wires = w.run[0], w.wires
    servers = len(wires)
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
        else:
            what = _next_on_agenda(w)
            if what == REQUEST:
                broker = w.timeline[run.position].broker
                m, arrives = client_acts(w), True
            elif what == SAMPLE:
                _take_sample(w)
            elif run.calls == 0:
                _take_sample(w)  # the final one
                return DONE
            else:
                run.now, what = w.calendar[0].time, w.calendar[0].what
                if what < servers:
                    broker = wires[what].target
                    m, arrives = take_off(w, what), True
                else:
                    run.calls = pop(w.calendar, run.calls)
                    end_service(w, what - servers)
        if arrives:
            m = arrive(w, m, broker)
