"""Writing the two long tables of the trace, column by column into blocks that become Arrow columns as they are.

A block (covering.memory.block_for) is never lengthened: when it is full, the owner puts it aside and gives a new one,
so nothing is copied. A row is written by taking all views first: a store might, for all the compiler knows, change the
table of addresses, and it would read every address again.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from covering.memory import column_of
from sim.compiled import counters as c
from sim.compiled.arrays import CONTROL, DECISIONS, counters_of, home_of, nodes_of, numbers_of, routes_of
from sim.compiled.records import CONTROL_ROW, DECISION_ROW

_step, _time, _sent, _subscription, _operation, _sequence, _source, _target, _tree, _hop, _kind = (
    column_of(CONTROL, CONTROL_ROW, name) for name in CONTROL_ROW.names or ()
)
(
    _decided_at, _subject, _cause, _witness, _probes, _cubes, _volume, _broker, _neighbour, _plane, _outcome, _capped,
    _exact, _at_home,
) = (column_of(DECISIONS, DECISION_ROW, name) for name in DECISION_ROW.names or ())  # fmt: skip


@njit(cache=True, nogil=True)
def write_control(
    w: Any, sent: float, source: int, target: int, tree: int, kind: int, subscription: int, operation: int,
    sequence: int, hop: int,
) -> None:  # fmt: skip
    """A broker processes a control message now."""
    n, now = counters_of(w), numbers_of(w)[c.NOW]
    row, step = n[c.CONTROL], n[c.STEP]
    steps, times, sents, subscriptions = _step(w), _time(w), _sent(w), _subscription(w)
    operations, sequences, sources, targets = _operation(w), _sequence(w), _source(w), _target(w)
    trees, hops, kinds = _tree(w), _hop(w), _kind(w)
    n[c.CONTROL], n[c.STEP] = row + 1, step + 1
    steps[row], times[row], sents[row], subscriptions[row] = step, now, sent, subscription
    operations[row], sequences[row], sources[row], targets[row] = operation, sequence, source, target
    trees[row], hops[row], kinds[row] = tree, hop, kind


@njit(cache=True, nogil=True)
def write_decision(
    w: Any, node: int, operation: int, outcome: int, witness: int, probes: int, cubes: int, volume: float,
    capped: bool, exact: int,
) -> None:  # fmt: skip
    """A ledger decides about a node now; the witness is a subscription."""
    n, now, nodes = counters_of(w), numbers_of(w)[c.NOW], nodes_of(w)
    row, subscription, route = n[c.DECISIONS], nodes[node].subscription, routes_of(w)[nodes[node].route]
    broker, neighbour, tree = route.source, route.target, route.tree
    at_home = home_of(w)[subscription] == broker
    times, subjects, causes, witnesses = _decided_at(w), _subject(w), _cause(w), _witness(w)
    all_probes, all_cubes, volumes, brokers = _probes(w), _cubes(w), _volume(w), _broker(w)
    neighbours, trees, outcomes, caps = _neighbour(w), _plane(w), _outcome(w), _capped(w)
    exacts, homes = _exact(w), _at_home(w)
    n[c.DECISIONS] = row + 1
    times[row], subjects[row], causes[row], witnesses[row] = now, subscription, operation, witness
    all_probes[row], all_cubes[row], volumes[row], brokers[row] = probes, cubes, volume, broker
    neighbours[row], trees[row], outcomes[row], caps[row] = neighbour, tree, outcome, capped
    exacts[row], homes[row] = exact, at_home
