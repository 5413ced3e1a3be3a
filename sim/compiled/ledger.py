"""The ledger of a route in kernels: what goes over it, and why. The rules are those of routing/ledger.py.

A node is sent, suppressed by another node of its route, or absent; what a node suppresses is a list through the nodes,
in order of arrival. Simple routing sends everything and keeps none of this. For identity routing a hash table leads
from (route, class of equal subscriptions) to the node that was sent. `w` is the table of all arrays, see arrays.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering import bank_auto, ids
from covering.bank import (
    EMULATED,
    add,
    covered,
    exists,
    next_room,
    owners_in,
    remove,
    reserve,
    search,
    slots_of,
    states_of,
)
from covering.bank_emulated import search_emulated
from covering.memory import call, linkable
from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import (
    DECIDE,
    bank_of,
    classes_of,
    counters_of,
    curve_offset_of,
    curve_scale_of,
    equal_of,
    groups_of,
    keys_of,
    nodes_of,
    numerators_of,
    operations_of,
    out_message_of,
    out_operation_of,
    points_of,
    routes_of,
    shifts_of,
    standings_of,
)
from sim.compiled.columns import write_decision, write_search
from sim.compiled.post import send
from sim.compiled.records import (
    ABSENT,
    COVERING,
    EXPOSED,
    IDENTITY,
    RETRACTED,
    SENT,
    SIMPLE,
    SUBSCRIBE,
    SUPPRESSED,
    UNSUBSCRIBE,
)

_slot_in, _enter, _leave = ids._find, ids._put_range, ids._drop


@kernel
def index_of_route(w: int, route: int, subscription: int) -> int:
    """The index of the bank in which a subscription would be on a route."""
    return route * counters_of(w)[c.GROUPS] + groups_of(w)[subscription]


@kernel(cached=False, inline="always")  # this and `choose` have one caller: a search is compiled twice less
def look(w: int, route: int, subscription: int) -> Any:
    """(node that covers or −1, probes, cubes, fraction searched, capped, exact): Covering.find_cover and the twin."""
    n, b, link = counters_of(w), bank_of(w), routes_of(w)[route]
    s = index_of_route(w, route, subscription)
    state = states_of(b)[s]
    before = link.volume
    link.checks += 1
    nobody_knows = (n[c.GIVES_UP] or link.epsilon > 0.0) and not n[c.ASK_EXACT]
    if state.held == 0:
        link.volume = before + 1.0
        return -1, 0, 0, link.volume - before, False, -1 if nobody_knows else 0
    query = points_of(w)[subscription : subscription + 1]
    any_at_all, cubes, capped = False, 0, False
    if state.kind == EMULATED:
        slot, cubes, share, capped, any_at_all = search_emulated(
            b, s, curve_offset_of(w), curve_scale_of(w), n[c.BITS], numerators_of(w)[link.curve],
            shifts_of(w)[link.curve], query[0], n[c.PROBE_CAP],
        )  # fmt: skip
        probes = cubes
    else:
        slot, probes, share = search(b, s, query, link.epsilon)
    link.volume = before + share
    witness: Any = -1
    exact: Any = 0
    if slot >= 0:
        witness, exact = np.int64(owners_in(b, s)[slot]), 1
        link.hits += 1
    elif nobody_knows:
        exact = -1
    elif n[c.GIVES_UP] or link.epsilon > 0.0:
        exact = np.int64(any_at_all) if state.kind == EMULATED else np.int64(exists(b, s, query))
    if n[c.AUTO] and link.checks >= state.next_review:
        bank_auto.review(b, s, link.checks, link.hits)
    return witness, probes, cubes, link.volume - before, capped, exact


@kernel
def room_for(w: int, route: int, subscription: int, more: int) -> bool:
    """Can a route take so many more sent entries of this subscription's group? The bank makes room if it can;

    if it cannot, NEED_SLOTS grows by what it lacks.
    """
    n = counters_of(w)
    if n[c.STRATEGY] != COVERING:
        return True
    b, s = bank_of(w), index_of_route(w, route, subscription)
    if reserve(b, s, more):
        return True
    n[c.NEED_SLOTS] += next_room(b, s, more)
    return False


@kernel
def _store(w: int, node: int) -> None:
    """A node is sent from now on."""
    n, nodes = counters_of(w), nodes_of(w)
    subscription, route = np.int64(nodes[node].subscription), np.int64(nodes[node].route)
    standings_of(w)[node].coverer = SENT
    link = routes_of(w)[route]
    link.held += 1
    if n[c.STRATEGY] == COVERING:
        b, s = bank_of(w), index_of_route(w, route, subscription)
        if n[c.AUTO] and states_of(b)[s].held == 0:
            bank_auto.begin(b, s, link.checks, link.hits)
        add(b, s, node, points_of(w)[subscription : subscription + 1])
    elif n[c.STRATEGY] == IDENTITY:
        keys = keys_of(w)
        keys[node] = route * n[c.CLASSES] + classes_of(w)[subscription]
        _enter(equal_of(w), keys, node, node + 1)


@kernel
def _unstore(w: int, node: int) -> None:
    """A node is no longer sent."""
    n, nodes = counters_of(w), nodes_of(w)
    route = np.int64(nodes[node].route)
    routes_of(w)[route].held -= 1
    if n[c.STRATEGY] == COVERING:
        b = bank_of(w)
        remove(b, index_of_route(w, route, np.int64(nodes[node].subscription)), np.int64(slots_of(b)[node]))
    elif n[c.STRATEGY] == IDENTITY:
        _leave(equal_of(w), keys_of(w), keys_of(w)[node])


@kernel
def suppress(w: int, node: int, coverer: int) -> None:
    """`node` is held back because of `coverer`, last in its list."""
    standings = standings_of(w)
    standings[node].coverer = coverer
    last = standings[coverer].last
    standings[node].previous, standings[node].next = last, -1
    if last >= 0:
        standings[last].next = node
    else:
        standings[coverer].first = node
    standings[coverer].last = node
    standings[coverer].count += 1


@kernel
def _forget_dependant(w: int, node: int) -> None:
    standings = standings_of(w)
    coverer, before, after = standings[node].coverer, standings[node].previous, standings[node].next
    if before >= 0:
        standings[before].next = after
    else:
        standings[coverer].first = after
    if after >= 0:
        standings[after].previous = before
    else:
        standings[coverer].last = before
    standings[coverer].count -= 1


@kernel
def _detach(w: int, node: int) -> Any:
    """The first of what a node suppressed; the list is no longer its own."""
    standings = standings_of(w)
    first = np.int64(standings[node].first)
    standings[node].first, standings[node].last, standings[node].count = -1, -1, 0
    return first


@kernel
def dependants(w: int, node: int) -> Any:
    """How many others a node holds back."""
    return 0 if counters_of(w)[c.STRATEGY] == SIMPLE else np.int64(standings_of(w)[node].count)


@kernel
def _record(
    w: int, node: int, operation: int, outcome: int, witness: int, probes: int, cubes: int, volume: float, capped: bool,
    exact: int,
) -> None:  # fmt: skip
    if counters_of(w)[c.LOADING]:
        return
    name = np.int64(nodes_of(w)[witness].subscription) if witness >= 0 else -1
    write_decision(w, node, operation)
    write_search(w, name, probes, cubes, volume, outcome, capped, exact)


@kernel
def _tell(w: int, node: int, kind: int, operation: int, hop: int) -> None:
    n, request = counters_of(w), operations_of(w)[operation]
    request.messages += 1
    if n[c.LOADING]:
        out_operation_of(w)[n[c.OUT]], out_message_of(w)[n[c.OUT]] = operation, 2 * node + kind
        n[c.OUT] += 1
        return
    request.outstanding += 1
    wire = np.int64(routes_of(w)[nodes_of(w)[node].route].wire)
    send(w, wire, np.int64(kind), node, operation, hop, -1, 0.0, -1)


@kernel(cached=False, inline="always")
def choose(w: int, node: int) -> Any:
    """What `look` answers, by any strategy that may hold something back."""
    n, nodes = counters_of(w), nodes_of(w)
    subscription, route = np.int64(nodes[node].subscription), np.int64(nodes[node].route)
    if n[c.STRATEGY] == COVERING:
        return look(w, route, subscription)
    table = equal_of(w)
    at = _slot_in(table, keys_of(w), route * n[c.CLASSES] + classes_of(w)[subscription])
    if at >= 0:
        return np.int64(table[at]), 1, 0, 1.0, False, 1
    return -1, 1, 0, 1.0, False, 0


@kernel
def decide(w: int, node: int, outcome: int, operation: int, hop: int) -> None:
    """LinkLedger._decide: hold a subscription back, or send it and take back what it covers."""
    n = counters_of(w)
    if n[c.STRATEGY] == SIMPLE:
        if not n[c.LOADING]:
            write_decision(w, node, operation)  # without more: records.NO_SEARCH
        _tell(w, node, SUBSCRIBE, operation, hop)
    else:
        call(w, DECIDE, node, outcome, operation, hop)


@linkable
def decide_linked(w: int, node: int, outcome: int, operation: int, hop: int) -> int:
    n = counters_of(w)
    witness, probes, cubes, volume, capped, exact = choose(w, node)
    if witness >= 0:
        suppress(w, node, witness)
        _record(w, node, operation, SUPPRESSED, witness, probes, cubes, volume, capped, exact)
        return 0
    if not (n[c.ACTIVE] and n[c.STRATEGY] == COVERING):
        _store(w, node)
        _record(w, node, operation, outcome, -1, probes, cubes, volume, capped, exact)
        _tell(w, node, SUBSCRIBE, operation, hop)
        return 0
    others = _covered_by(w, node)
    _store(w, node)
    _record(w, node, operation, outcome, -1, probes, cubes, volume, capped, exact)
    _tell(w, node, SUBSCRIBE, operation, hop)
    for other in others:
        _retract(w, other, node, operation, hop)
    return 0


@kernel
def _covered_by(w: int, node: int) -> Any:
    """The nodes that are sent although `node` covers them, by ascending subscription."""
    nodes, b = nodes_of(w), bank_of(w)
    subscription = np.int64(nodes[node].subscription)
    s = index_of_route(w, np.int64(nodes[node].route), subscription)
    if states_of(b)[s].held == 0:
        return np.empty(0, np.int64)
    others = covered(b, s, points_of(w)[subscription : subscription + 1])
    names = np.empty(len(others), np.int64)
    owners = owners_in(b, s)
    for i in range(len(others)):
        others[i] = owners[others[i]]
        names[i] = nodes[others[i]].subscription
    return others[np.argsort(names)]


@kernel
def _retract(w: int, node: int, coverer: int, operation: int, hop: int) -> None:
    _unstore(w, node)
    dependant = _detach(w, node)
    suppress(w, node, coverer)
    while dependant >= 0:
        following = np.int64(standings_of(w)[dependant].next)
        suppress(w, dependant, coverer)
        dependant = following
    _record(w, node, operation, RETRACTED, coverer, 0, 0, 0.0, False, -1)
    _tell(w, node, UNSUBSCRIBE, operation, hop)


@kernel
def unsubscribe(w: int, node: int, operation: int, hop: int) -> None:
    """LinkLedger.unsubscribe: first send what the leaving entry exposes, then that it leaves."""
    if counters_of(w)[c.STRATEGY] == SIMPLE:
        _tell(w, node, UNSUBSCRIBE, operation, hop)
        return
    standings = standings_of(w)
    if standings[node].coverer >= 0:
        _forget_dependant(w, node)
        standings[node].coverer = ABSENT
        return
    _unstore(w, node)
    standings[node].coverer = ABSENT
    dependant = _detach(w, node)
    while dependant >= 0:
        following = np.int64(standings[dependant].next)
        decide(w, dependant, EXPOSED, operation, hop)
        dependant = following
    _tell(w, node, UNSUBSCRIBE, operation, hop)
