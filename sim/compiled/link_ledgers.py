"""The ledger of a route in kernels: what is sent over it, and why. The rules are those of routing/ledger.py.

A node is sent, suppressed by another node of its route, or absent; what a node suppresses is a list through the nodes,
in order of arrival. Simple routing sends everything and keeps none of this. For identity routing a hash table leads
from (route, class of equal subscriptions) to the node that was sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from broker import work
from covering import stats
from covering.slot_table import drop_id, find_id, put_ids
from coverlay import kernel
from sim.compiled import covers_auto
from sim.compiled.calendar import ascending
from sim.compiled.covers import (
    add,
    covered,
    drop_index,
    exists,
    needs_rebuild,
    new_index,
    owners_of,
    rebuild,
    remove,
    search,
)
from sim.compiled.covers_budget import rank_last, remove_ranked, search_largest
from sim.compiled.covers_emulated import search_emulated
from sim.compiled.covers_residues import is_implied
from sim.compiled.matching import enter_table, leave_table
from sim.compiled.records import (
    ABSENT,
    BUDGET,
    COVERING,
    EQUAL,
    EXPOSED,
    FORWARDED,
    IDENTITY,
    KDTREE,
    KDTREE_EPSILON,
    NONE,
    RETRACTED,
    SENT,
    SUBSCRIBE,
    SUPPRESSED,
    UNSUBSCRIBE,
)
from sim.compiled.state import ONE_MORE, inlined, inner, longer
from sim.compiled.transport import send

# The formulas of the reference, compiled.
pages_and_trips, search_time, covered_time = (
    inlined(stats.pages_and_trips),
    inlined(work.search_time),
    inlined(work.covered_time),
)
NO_PROBES, NOT_COVERED, NOT_CAPPED = np.int64(0), np.int64(0), np.bool_(False)


@inlined
def new_node(w: Any, subscription: int, route: int) -> None:
    """The next node; there is one, see `make_nodes`."""
    run = w.run[0]
    node = w.nodes[run.nodes]
    run.nodes += 1
    node.subscription, node.route, node.child, node.row = subscription, route, -1, -1
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
def is_sieve(w: Any, node: int) -> bool:
    return w.nodes[node].route >= w.run[0].routes


@inlined
def chain_of(w: Any, node: int) -> int:
    """The covering indexes that may cover a node: one chain per route and group."""
    row = w.nodes[node]
    return row.route * w.run[0].groups + w.subscriptions[row.subscription].group


@inner
def index_of(w: Any, node: int) -> int:
    """The index of a node's chain with what has the same residue, −1: none."""
    s, residue = w.chains[chain_of(w, node)].first, w.subscriptions[w.nodes[node].subscription].residue
    while s >= 0 and w.indexes[s].residue != residue:
        s = w.indexes[s].next
    return s


@inner
def _look(w: Any, node: int, curve: Any, extra: Any, budget: Any) -> Any:
    """(node that covers or −1, probes, cubes, fraction searched, capped, exact): Covering.find_cover and the twin."""
    run, link, subscription = w.run[0], w.routes[w.nodes[node].route], np.int64(w.nodes[node].subscription)
    before, checks, asked, sieve = link.volume, link.checks, 0, is_sieve(w, node)
    may_miss = (run.gives_up and not sieve) or link.epsilon > 0.0
    exact: Any = -1 if may_miss and not run.ask_exact else 0
    query = w.points[subscription : subscription + 1]
    witness, probes, cubes = np.int64(-1), 0, 0
    capped: Any = False
    s = w.chains[chain_of(w, node)].first
    while s >= 0 and witness < 0:
        index = w.indexes[s]
        if is_implied(w, extra, index.residue, subscription):
            asked += 1
            link.checks += 1
            if curve is not None and (extra is None or not sieve):
                slot, looked, share, ended, any_at_all = search_emulated(
                    w, s, query[0], curve, link.numerator, link.shift
                )
                cubes += looked
            else:
                if budget is not None and not sieve:
                    slot, looked, share, ended = search_largest(w, s, query, budget)
                else:
                    slot, looked, share, ended = search(w, s, query, link.epsilon, -1 if sieve else run.node_budget)
                any_at_all = slot >= 0 or (may_miss and run.ask_exact and exists(w, s, query[0]))
            capped |= ended
            probes += looked
            link.volume += share
            charge(w, KDTREE_EPSILON if index.method == KDTREE and link.epsilon > 0.0 else index.method, looked)
            if slot >= 0:
                witness, exact = np.int64(owners_of(w, s)[slot]), 1
                link.hits += 1
            elif may_miss and run.ask_exact and any_at_all:
                exact = 1
            if (run.auto or sieve) and link.checks >= index.next_review:
                covers_auto.review(w, s, link.checks, link.hits)
        s = index.next
    if asked != 1:
        link.checks = checks + 1
        link.volume = before + ((link.volume - before) / asked if asked else 1.0)
        capped &= witness < 0
    return witness, probes, cubes, link.volume - before, capped, exact


@inner
def charge(w: Any, method: int, probes: int) -> None:
    """What a search for a cover touches and takes, one of perhaps several for a decision: Broker.charge."""
    run, price = w.run[0], w.search_prices[method]
    pages, round_trips = pages_and_trips(probes, price.per_page, price.apart)
    run.pages += pages
    run.round_trips += round_trips
    run.took += search_time(w.prices[0], price, probes, pages, round_trips)


@inlined
def charge_covered(w: Any, s: int, epsilon: float) -> None:
    """And one for covered entries."""
    run, index = w.run[0], w.indexes[s]
    price = w.search_prices[KDTREE_EPSILON if index.method == KDTREE and epsilon > 0.0 else index.method]
    pages = (index.held + price.boxes_per_page - 1) // price.boxes_per_page
    run.took += covered_time(w.prices[0], price, index.held, pages)


@inlined
def _choose(w: Any, node: int, curve: Any, extra: Any, budget: Any) -> Any:
    """What `_look` answers, by any strategy that may hold something back."""
    if w.run[0].strategy == COVERING:
        return _look(w, node, curve, extra, budget)
    charge(w, EQUAL, np.int64(1))
    at = find_id(w.equal, w.keys, _key(w, node))
    if at >= 0:
        return np.int64(w.equal[at]), 1, 0, 1.0, False, 1
    return -1, 1, 0, 1.0, False, 0


@inlined
def _key(w: Any, node: int) -> int:
    row = w.nodes[node]
    return row.route * w.run[0].classes + w.subscriptions[row.subscription].equal


@inlined
def _enter(w: Any, s: int, node: int, budget: Any) -> None:
    """Into an index, which is put in order."""
    add(w, s, node, w.points[w.nodes[node].subscription])
    if budget is not None and w.indexes[s].method == BUDGET:
        rank_last(w, s, budget)
    elif needs_rebuild(w, s):
        rebuild(w, s)


@inlined
def _withdraw(w: Any, s: int, node: int, budget: Any) -> None:
    """Out of an index, which is put in order, or dropped where it was the last."""
    slot = np.int64(w.nodes[node].slot)
    if budget is not None and w.indexes[s].method == BUDGET:
        remove_ranked(w, s, slot, budget)
    else:
        remove(w, s, slot)
    if w.indexes[s].held == 0:
        drop_index(w, chain_of(w, node), s)
    elif needs_rebuild(w, s):
        rebuild(w, s)


@inlined
def _store(w: Any, node: int, budget: Any) -> None:
    """A node is sent from now on."""
    run, row = w.run[0], w.nodes[node]
    row.coverer = SENT
    if run.strategy == COVERING:
        s, link = index_of(w, node), w.routes[row.route]
        if s < 0:
            method = KDTREE if is_sieve(w, node) else run.first_method
            s = new_index(w, chain_of(w, node), w.subscriptions[row.subscription].residue, method)
            covers_auto.begin(w, s, link.checks, link.hits)
        _enter(w, s, node, budget)
    elif run.strategy == IDENTITY:
        w.keys[node] = _key(w, node)
        put_ids(w.equal, w.keys, node, node + 1)


@inlined
def _unstore(w: Any, node: int, budget: Any) -> None:
    """A node is no longer sent."""
    run = w.run[0]
    if run.strategy == COVERING:
        _withdraw(w, index_of(w, node), node, budget)
    elif run.strategy == IDENTITY:
        drop_id(w.equal, w.keys, w.keys[node])


@inlined
def _suppress(w: Any, node: int, coverer: int) -> None:
    """`node` is held back because of `coverer`, last in its list."""
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
def _tell(w: Any, node: int, kind: int, operation: int, hop: int, extra: Any) -> None:
    """Send a subscription or an unsubscription over the node's route; a sieve changes its table instead."""
    run, request = w.run[0], w.operations[operation]
    if extra is not None and is_sieve(w, node):
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
    probes: int,
    cubes: int,
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
    row.probes, row.cubes, row.volume = probes, cubes, volume
    row.outcome, row.capped, row.exact = outcome, capped, exact
    row.pages, row.round_trips, row.took = pages, round_trips, took


@inlined
def _covered_by(w: Any, node: int, extra: Any) -> Any:
    """The nodes that are sent although `node` covers them, by ascending subscription."""
    subscription, first, held = np.int64(w.nodes[node].subscription), w.chains[chain_of(w, node)].first, 0
    s = first
    while s >= 0:
        held += w.indexes[s].held
        s = w.indexes[s].next
    found, names, count, s = np.empty(held, np.int64), np.empty(held), 0, first
    while s >= 0:
        charge_covered(w, s, w.routes[w.nodes[node].route].epsilon)
        owners = owners_of(w, s)
        for slot in covered(w, s, w.points[subscription]):
            name = np.int64(w.nodes[owners[slot]].subscription)
            if is_implied(w, extra, w.subscriptions[subscription].residue, name):
                found[count], names[count] = owners[slot], name
                count += 1
        s = w.indexes[s].next
    order = ascending(names[:count], np.empty(count, w.calendar.dtype))
    for i in range(count):
        order[i] = found[order[i]]
    return order


@inlined
def _retract(w: Any, others: Any, coverer: int, operation: int, hop: int, extra: Any, budget: Any) -> None:
    """Take back what is sent but now covered; what it held back is held back by the coverer."""
    nodes = w.nodes
    for node in others:
        _unstore(w, node, budget)
        dependant = np.int64(nodes[node].first)
        nodes[node].first, nodes[node].last = -1, -1
        _suppress(w, node, coverer)
        while dependant >= 0:
            following = np.int64(nodes[dependant].next)
            _suppress(w, dependant, coverer)
            dependant = following
        _record(w, node, operation, RETRACTED, coverer, NO_PROBES, NO_PROBES, 0.0, NOT_CAPPED, NONE)
        _tell(w, node, UNSUBSCRIBE, operation, hop, extra)


@inlined
def _decide(w: Any, node: int, outcome: int, operation: int, hop: int, curve: Any, extra: Any, budget: Any) -> None:
    """LinkLedger._decide: hold a subscription back, or send it and take back what it covers."""
    run, others = w.run[0], w.no_nodes
    witness, probes, cubes, volume, capped, exact = _choose(w, node, curve, extra, budget)
    if witness >= 0:
        outcome = SUPPRESSED
        _suppress(w, node, witness)
    else:
        active = run.active or is_sieve(w, node)
        if active and run.strategy == COVERING and w.chains[chain_of(w, node)].first >= 0:
            others = _covered_by(w, node, extra)
        _store(w, node, budget)
    _record(w, node, operation, outcome, witness, probes, cubes, volume, capped, exact)
    if witness < 0:
        _tell(w, node, SUBSCRIBE, operation, hop, extra)
        if len(others):
            _retract(w, others, node, operation, hop, extra, budget)


@inlined
def _leave(w: Any, node: int, budget: Any) -> bool:
    """A node that was sent is no longer; False if it was held back, which is of no consequence."""
    nodes = w.nodes
    sent = nodes[node].coverer == SENT
    if sent:
        _unstore(w, node, budget)
    else:
        _forget_dependant(w, node)
    nodes[node].coverer = ABSENT
    return sent


@kernel
def update_ledgers(w: Any, curve: Any, extra: Any, budget: Any) -> None:
    """What a message means for the routes that lead on: LinkLedger.subscribe or unsubscribe on each.

    `curve`: offsets and scales of the quantiser of `zorder-emulated`; None for other methods, which do not compile it.
    `extra`: all residues (broker/residue_rows.py) and which attributes take only whole values; None for a run that has
    neither residues nor sieves, which compiles nothing for them.
    `budget`: the boxes that `budget` looks at; None for other methods, which do not compile it.
    Make before break: what the leaving entry exposes is sent first, then that it leaves.
    """
    run, nodes = w.run[0], w.nodes
    kind, operation, hop = run.update_kind, run.update_operation, run.update_hop
    for node in range(run.update_first, run.update_last):
        at: Any = node
        following, outcome = NONE, FORWARDED
        if kind == UNSUBSCRIBE:
            if not _leave(w, node, budget):
                continue
            at, outcome = np.int64(nodes[node].first), EXPOSED
            nodes[node].first, nodes[node].last = -1, -1
        while at >= 0:
            if kind == UNSUBSCRIBE:
                following = np.int64(nodes[at].next)
            _decide(w, at, outcome, operation, hop, curve, extra, budget)
            at = following
        if kind == UNSUBSCRIBE:
            _tell(w, node, UNSUBSCRIBE, operation, hop, extra)
    run.update_last = run.update_first


@inlined
def forward_all(w: Any) -> None:
    """`update_ledgers` for simple routing, which holds nothing back and notes nothing down."""
    run = w.run[0]
    for node in range(run.update_first, run.update_last):
        if run.update_kind == SUBSCRIBE:
            _record(w, node, run.update_operation, FORWARDED, NONE, NO_PROBES, NO_PROBES, 1.0, NOT_CAPPED, NOT_COVERED)
        _tell(w, node, run.update_kind, run.update_operation, run.update_hop, None)
    run.update_last = run.update_first
