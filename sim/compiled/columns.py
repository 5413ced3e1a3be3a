"""Writing the two long tables of the trace, column by column into blocks that become Arrow columns as they are.

A block (covering.memory.block_for) is never lengthened: when it is full, the owner puts it aside and gives a new one,
so nothing is copied. A row is written by taking all views first: a store might, for all the compiler knows, change the
table of addresses, and it would read every address again.
"""

from __future__ import annotations

from covering.memory import column_of
from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import CONTROL, DECISIONS, SEARCHES, counters_of, home_of, nodes_of, numbers_of, routes_of
from sim.compiled.records import CONTROL_ROW, DECISION_ROW, SEARCH_ROW

_step, _time, _sent, _subscription, _operation, _sequence, _source, _target, _tree, _hop, _kind = (
    column_of(CONTROL, CONTROL_ROW, name) for name in CONTROL_ROW.names or ()
)
_decided_at, _subject, _cause, _broker, _neighbour, _plane, _at_home = (
    column_of(DECISIONS, DECISION_ROW, name) for name in DECISION_ROW.names or ()
)
_witness, _probes, _cubes, _volume, _outcome, _capped, _exact = (
    column_of(SEARCHES, SEARCH_ROW, name) for name in SEARCH_ROW.names or ()
)


@kernel
def write_control(
    w: int, sent: float, source: int, target: int, tree: int, kind: int, subscription: int, operation: int,
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


@kernel
def write_decision(w: int, node: int, operation: int) -> None:
    """A ledger decides about a node now."""
    n, now, nodes = counters_of(w), numbers_of(w)[c.NOW], nodes_of(w)
    row, subscription, route = n[c.DECISIONS], nodes[node].subscription, routes_of(w)[nodes[node].route]
    broker, neighbour, tree = route.source, route.target, route.tree
    at_home = home_of(w)[subscription] == broker
    times, subjects, causes, brokers = _decided_at(w), _subject(w), _cause(w), _broker(w)
    neighbours, trees, homes = _neighbour(w), _plane(w), _at_home(w)
    n[c.DECISIONS] = row + 1
    times[row], subjects[row], causes[row], brokers[row] = now, subscription, operation, broker
    neighbours[row], trees[row], homes[row] = neighbour, tree, at_home


@kernel
def write_search(
    w: int, witness: int, probes: int, cubes: int, volume: float, outcome: int, capped: bool, exact: int
) -> None:
    """The rest of the decision that was written last; the witness is a subscription."""
    row = counters_of(w)[c.DECISIONS] - 1
    witnesses, all_probes, all_cubes, volumes = _witness(w), _probes(w), _cubes(w), _volume(w)
    outcomes, caps, exacts = _outcome(w), _capped(w), _exact(w)
    witnesses[row], all_probes[row], all_cubes[row], volumes[row] = witness, probes, cubes, volume
    outcomes[row], caps[row], exacts[row] = outcome, capped, exact
