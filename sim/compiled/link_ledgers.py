"""The ledger of a route in kernels: what is sent over it, and why. The rules are those of routing/ledger.py.

A node is sent, suppressed by another node of its route, or absent; the nodes that a node suppresses are a linked list,
in order of arrival. link_strategies.py finds covers. Simple routing sends everything and keeps none of this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.slot_table import put_ids
from coverlay import kernel
from sim.compiled.link_strategies import chain_of, covered_by, find_cover, is_sieve, store, unstore
from sim.compiled.records import (
    ABSENT,
    COVERING,
    EXPOSED,
    FORWARDED,
    IDENTITY,
    NONE,
    RETRACTED,
    SENT,
    SUBSCRIBE,
    SUPPRESSED,
    UNSUBSCRIBE,
)
from sim.compiled.state import ONE_MORE, inlined, inner
from sim.compiled.tables import enter_table, leave_table
from sim.compiled.transport import send
from topk.kernels.rows import ascending, floats, ints, longer

NOT_COVERED, NOT_CAPPED = np.int64(0), np.bool_(False)
NO_WORK = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))


@inlined
def new_node(w: Any, subscription: int, route: int) -> None:
    """Fill in the next node; `make_nodes` has made room for it."""
    run = w.run[0]
    node = w.nodes[run.nodes]
    run.nodes += 1
    node.subscription, node.route, node.child = subscription, route, -1
    node.coverer, node.first, node.last, node.next, node.previous = ABSENT, -1, -1, -1, -1


@inner
def make_nodes(w: Any, needed: int) -> None:
    """Make sure that there are `needed` unused nodes. Records of nodes that a caller holds are invalid afterwards."""
    run = w.run[0]
    if run.nodes + needed <= len(w.nodes):
        return
    w.nodes = longer(w.nodes, run.nodes + needed)
    if run.strategy == IDENTITY:
        w.keys = longer(w.keys, len(w.nodes))
        table = np.full(2 * len(w.nodes), -1, np.int32)
        for node in w.equal:
            if node >= 0:
                put_ids(table, w.keys, np.int64(node), np.int64(node + 1))
        w.equal = table


@inlined
def _suppress(w: Any, node: int, coverer: int) -> None:
    """Hold `node` back because of `coverer`: it becomes the last in the coverer's list."""
    nodes = w.nodes
    last = nodes[coverer].last
    nodes[node].coverer, nodes[node].previous, nodes[node].next = coverer, last, -1
    if last >= 0:
        nodes[last].next = node
    else:
        nodes[coverer].first = node
    nodes[coverer].last = node


@inlined
def _forget_dependant(w: Any, node: int) -> None:
    nodes = w.nodes
    coverer, before, after = nodes[node].coverer, nodes[node].previous, nodes[node].next
    if before >= 0:
        nodes[before].next = after
    else:
        nodes[coverer].first = after
    if after >= 0:
        nodes[after].previous = before
    else:
        nodes[coverer].last = before


@inner
def _tell(w: Any, node: int, kind: int, operation: int, hop: int) -> None:
    """Send a subscription or an unsubscription over the node's route; a sieve changes its table instead."""
    run, request = w.run[0], w.operations[operation]
    if is_sieve(w, node):
        if kind == SUBSCRIBE:
            enter_table(w, node)
        else:
            leave_table(w, node)
        return
    request.messages += 1
    if run.loading:
        if run.passed == len(w.passed):
            w.passed = longer(w.passed, ONE_MORE)
        passed = w.passed[run.passed]
        passed.operation, passed.node, passed.kind = operation, node, kind
        run.passed += 1
        return
    request.outstanding += 1
    send(w, w.routes[w.nodes[node].route].wire, kind, node, operation, hop)


@inner
def _record(
    w: Any,
    node: int,
    operation: int,
    outcome: int,
    witness: int,
    counted: tuple[int, int, int, int],
    volume: float,
    capped: bool,
    exact: int,
) -> None:
    """Write a decision into the trace, with what its search took."""
    run, nodes = w.run[0], w.nodes
    pages, round_trips, took = run.pages, run.round_trips, run.took
    run.pages, run.round_trips, run.took = 0, 0, 0.0
    run.searching += took
    if run.loading or is_sieve(w, node):
        return
    if run.decisions == len(w.decisions):
        w.decisions = longer(w.decisions, ONE_MORE)
    row, subscription, route = w.decisions[run.decisions], nodes[node].subscription, w.routes[nodes[node].route]
    run.decisions += 1
    row.time, row.subscription, row.operation = run.now, subscription, operation
    row.broker, row.neighbour, row.tree = route.source, route.target, route.tree
    row.at_home = w.subscriptions[subscription].home == route.source
    row.witness = nodes[witness].subscription if witness >= 0 else -1
    row.probes, row.cubes, row.candidates, row.bits = counted
    row.volume = volume
    row.outcome, row.capped, row.exact = outcome, capped, exact
    row.pages, row.round_trips, row.took = pages, round_trips, took


@inner
def _retract(w: Any, others: Any, coverer: int, operation: int, hop: int, approximate: Any) -> None:
    """Take back sent nodes that are now covered; what they held back is now held back by the coverer."""
    nodes = w.nodes
    for node in others:
        unstore(w, node, approximate)
        dependant = np.int64(nodes[node].first)
        nodes[node].first, nodes[node].last = -1, -1
        _suppress(w, node, coverer)
        while dependant >= 0:
            following = np.int64(nodes[dependant].next)
            _suppress(w, dependant, coverer)
            dependant = following
        _record(w, node, operation, RETRACTED, coverer, NO_WORK, 0.0, NOT_CAPPED, NONE)
        _tell(w, node, UNSUBSCRIBE, operation, hop)


@inlined
def _decide(w: Any, node: int, outcome: int, operation: int, hop: int, approximate: Any) -> None:
    """LinkLedger._decide: hold a subscription back, or send it and take back what it covers."""
    run, others = w.run[0], w.no_nodes
    witness, counted, volume, capped, exact = find_cover(w, node, approximate)
    if witness >= 0:
        outcome = SUPPRESSED
        _suppress(w, node, witness)
    else:
        active = run.active or is_sieve(w, node)
        if active and run.strategy == COVERING and w.chains[chain_of(w, node)].first >= 0:
            others = covered_by(w, node)
        store(w, node, approximate)
    _record(w, node, operation, outcome, witness, counted, volume, capped, exact)
    if witness < 0:
        _tell(w, node, SUBSCRIBE, operation, hop)
        if len(others):
            _retract(w, others, node, operation, hop, approximate)


@inlined
def _leave(w: Any, node: int, approximate: Any) -> bool:
    """A node leaves its route; False if it was held back, so that nothing has to be sent."""
    nodes = w.nodes
    sent = nodes[node].coverer == SENT
    if sent:
        unstore(w, node, approximate)
    else:
        _forget_dependant(w, node)
    nodes[node].coverer = ABSENT
    return sent


@inner
def _dependants(w: Any, node: int) -> Any:
    """What a leaving node held back, widest first, and no longer does."""
    nodes, count, at = w.nodes, 0, np.int64(w.nodes[node].first)
    if at < 0:
        return w.no_nodes
    while at >= 0:
        count += 1
        at = np.int64(nodes[at].next)
    listed, at, i = ints(count), np.int64(nodes[node].first), 0
    place = floats(count)
    while at >= 0:
        listed[i], place[i] = at, w.subscriptions[nodes[at].subscription].place
        at = np.int64(nodes[at].next)
        i += 1
    nodes[node].first, nodes[node].last = -1, -1
    order = ascending(place, 1.0)
    for i in range(count):
        order[i] = listed[order[i]]
    return order


@inlined
def note_update(w: Any, kind: int, first: int, last: int, operation: int, hop: int) -> None:
    """Note that the ledgers of some nodes are to be updated; the caller has made room."""
    update = w.updates[w.run[0].updates]
    w.run[0].updates += 1
    update.kind, update.first, update.last, update.operation, update.hop = kind, first, last, operation, hop


@kernel
def update_ledgers(w: Any, approximate: Any) -> None:
    """What messages mean for the routes that lead on (`w.updates`): LinkLedger.subscribe or unsubscribe on each.

    `approximate`: for `zorder-emulated` and `budget` offsets and scales of a quantiser, which only the former reads;
    None for other methods, which compile neither.
    Make before break: what the leaving entry exposes is sent first, widest first, then the unsubscription.
    """
    run, updates = w.run[0], w.updates
    for u in range(run.updates):
        kind, operation, hop = updates[u].kind, updates[u].operation, updates[u].hop
        for node in range(updates[u].first, updates[u].last):
            at, outcome, exposed = np.int64(node), FORWARDED, w.no_nodes
            count = np.int64(1)
            if kind == UNSUBSCRIBE:
                if not _leave(w, node, approximate):
                    continue
                exposed, outcome = _dependants(w, node), EXPOSED
                count = np.int64(len(exposed))
            for i in range(count):
                if kind == UNSUBSCRIBE:
                    at = exposed[i]
                _decide(w, at, outcome, operation, hop, approximate)
            if kind == UNSUBSCRIBE:
                _tell(w, node, UNSUBSCRIBE, operation, hop)
    run.updates = 0


@inlined
def forward_all(w: Any) -> None:
    """`update_ledgers` for simple routing, which holds nothing back and notes nothing down."""
    run, updates = w.run[0], w.updates
    for u in range(run.updates):
        kind, operation, hop = updates[u].kind, updates[u].operation, updates[u].hop
        for node in range(updates[u].first, updates[u].last):
            if kind == SUBSCRIBE:
                _record(w, node, operation, FORWARDED, NONE, NO_WORK, 1.0, NOT_CAPPED, NOT_COVERED)
            _tell(w, node, kind, operation, hop)
    run.updates = 0
