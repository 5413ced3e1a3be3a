"""The strategies of a route in kernels: what is sent over it, and which sent node covers another (routing/strategies).

For covering, the nodes that are sent are in a chain of covering indexes per route and group (covers.py), one for each
residue. For identity routing a hash table leads from (route, class of equal subscriptions) to the node that was sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from broker import work
from covering import stats
from covering.auto import ATTRIBUTES, FEW, MANY, REVIEW, STAY
from covering.slot_table import drop_id, find_id, put_ids
from sim.compiled import covers
from sim.compiled.covers_budget import rank_last, remove_ranked, search_largest
from sim.compiled.covers_emulated import bits_of, follow, search_emulated
from sim.compiled.covers_residues import is_implied
from sim.compiled.records import BUDGET, COVERING, EMULATED, EQUAL, IDENTITY, KDTREE, KDTREE_EPSILON, PACKED, SENT
from sim.compiled.state import inlined, inner
from topk.kernels.rows import ascending

# The formulas of the reference, compiled.
_FORMULAS = (stats.pages_and_trips, work.search_time, work.covered_time)
pages_and_trips, search_time, covered_time = map(inlined, _FORMULAS)
ONE_PROBE = (np.int64(1), np.int64(0), np.int64(0), np.int64(0))


@inlined
def is_sieve(w: Any, node: int) -> bool:
    return w.nodes[node].route >= w.run[0].routes


@inlined
def chain_of(w: Any, node: int) -> int:
    """The covering indexes that may cover a node: one chain per route and group."""
    row = w.nodes[node]
    return row.route * w.run[0].groups + w.subscriptions[row.subscription].group


@inner
def _index_of(w: Any, node: int) -> int:
    """The index in a node's chain for the residue of the node, −1: none."""
    s, residue = w.chains[chain_of(w, node)].first, w.subscriptions[w.nodes[node].subscription].residue
    while s >= 0 and w.indexes[s].residue != residue:
        s = w.indexes[s].next
    return s


@inner
def _search_chain(w: Any, node: int, approximate: Any) -> Any:
    """(coverer or −1, counted, fraction searched, capped, exact): Covering.find_cover and its exact twin.

    Counted are probes, cubes, rows compared in ranges, and bits of the curve.
    """
    run, link, subscription = w.run[0], w.routes[w.nodes[node].route], np.int64(w.nodes[node].subscription)
    before, checks, asked, sieve = link.volume, link.checks, 0, is_sieve(w, node)
    may_miss = (run.gives_up and not sieve) or link.epsilon > 0.0
    exact: Any = -1 if may_miss and not run.ask_exact else 0
    query = w.points[subscription : subscription + 1]
    witness, probes, cubes, candidates, bits = np.int64(-1), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    capped: Any = False
    s = w.chains[chain_of(w, node)].first
    while s >= 0 and witness < 0:
        index = w.indexes[s]
        if is_implied(w, index.residue, subscription):
            asked += 1
            link.checks += 1
            compared = np.int64(0)
            if approximate is not None and index.method == EMULATED:
                slot, looked, compared, share, ended, any_at_all = search_emulated(
                    w, s, query[0], approximate, link.numerator, link.shift
                )
                cubes += looked
                bits = max(bits, bits_of(w, s))
            else:
                if approximate is not None and index.method == BUDGET:
                    slot, looked, share, ended = search_largest(w, s, query)
                else:
                    gives_up = -1 if sieve else run.node_budget
                    slot, looked, share, ended = covers.search(w, s, query, link.epsilon, gives_up)
                any_at_all = slot >= 0 or (may_miss and run.ask_exact and covers.exists(w, s, query[0]))
            capped |= ended
            probes += looked
            candidates += compared
            link.volume += share
            method = KDTREE_EPSILON if index.method == KDTREE and link.epsilon > 0.0 else index.method
            _charge(w, method, looked, compared, slot >= 0)
            if slot >= 0:
                witness, exact = np.int64(covers.owners_of(w, s)[slot]), 1
                link.hits += 1
            elif may_miss and run.ask_exact and any_at_all:
                exact = 1
            if (run.auto or sieve) and link.checks >= index.next_review:
                _review(w, s, link.checks, link.hits)
        s = index.next
    if asked != 1:
        link.checks = checks + 1
        link.volume = before + ((link.volume - before) / asked if asked else 1.0)
        capped &= witness < 0
    return witness, (probes, cubes, candidates, bits), link.volume - before, capped, exact


@inlined
def _begin_count(w: Any, s: int, checks: int, hits: int) -> None:
    """`auto` counts from here until its next review of an index."""
    index = w.indexes[s]
    index.reviewed_checks, index.reviewed_hits = checks, hits
    index.next_review = checks + REVIEW


@inner
def _review(w: Any, s: int, checks: int, hits: int) -> None:
    """Choose the method again, from what happened since the last review: AutoIndex._review."""
    index = w.indexes[s]
    recent = checks - index.reviewed_checks
    share = (hits - index.reviewed_hits) / max(1, recent)
    calm = index.updates < recent
    index.updates = 0
    _begin_count(w, s, checks, hits)
    method, after = index.method, index.method
    if method == KDTREE and 2 * index.fallbacks > recent:
        index.stay = STAY
        after = PACKED
    elif index.stay:
        index.stay -= 1
        if not index.stay:
            after = KDTREE
    else:
        index.fallbacks = 0
        if w.domain.shape[0] >= ATTRIBUTES:
            if method == KDTREE and share >= MANY and calm:
                after = PACKED
            elif method == PACKED and (share < FEW or not calm):
                after = KDTREE
    if after != method:
        covers.take_over(w, s, after)


@inner
def _charge(w: Any, method: int, probes: int, candidates: int, found: bool) -> None:
    """Add the pages and time of a search for a cover; a decision may need several: Broker.charge."""
    run, price = w.run[0], w.search_prices[method]
    failed = candidates - 1 if candidates and found else candidates
    pages, round_trips = pages_and_trips(probes, failed, price.per_page, price.apart, price.boxes_per_page)
    run.pages += pages
    run.round_trips += round_trips
    run.took += search_time(w.prices[0], price, probes, candidates, pages, round_trips)


@inlined
def _charge_covered(w: Any, s: int, epsilon: float) -> None:
    """The same for a search for covered entries."""
    run, index = w.run[0], w.indexes[s]
    price = w.search_prices[KDTREE_EPSILON if index.method == KDTREE and epsilon > 0.0 else index.method]
    pages = (index.held + price.boxes_per_page - 1) // price.boxes_per_page
    run.took += covered_time(w.prices[0], price, index.held, pages)


@inlined
def find_cover(w: Any, node: int, approximate: Any) -> Any:
    """As `_search_chain`, by whichever strategy the run has."""
    if w.run[0].strategy == COVERING:
        return _search_chain(w, node, approximate)
    _charge(w, EQUAL, np.int64(1), np.int64(0), np.bool_(False))
    at = find_id(w.equal, w.keys, _key_of(w, node))
    if at >= 0:
        return np.int64(w.equal[at]), ONE_PROBE, 1.0, False, 1
    return -1, ONE_PROBE, 1.0, False, 0


@inlined
def _key_of(w: Any, node: int) -> int:
    row = w.nodes[node]
    return row.route * w.run[0].classes + w.subscriptions[row.subscription].equal


@inlined
def _rebuild_if_due(w: Any, s: int, approximate: Any) -> None:
    """After an addition or a removal. Where searches are approximate, only sieves have indexes with a static part."""
    if covers.needs_rebuild(w, s):
        covers.rebuild(w, s)
    follow(w, s)


@inlined
def store(w: Any, node: int, approximate: Any) -> None:
    """A node is sent from now on."""
    run, row = w.run[0], w.nodes[node]
    row.coverer = SENT
    if run.strategy == COVERING:
        s, link = _index_of(w, node), w.routes[row.route]
        if s < 0:
            method = KDTREE if is_sieve(w, node) else run.first_method
            s = covers.new_index(w, chain_of(w, node), w.subscriptions[row.subscription].residue, method)
            _begin_count(w, s, link.checks, link.hits)
        covers.add(w, s, node, w.points[row.subscription])
        if approximate is not None and w.indexes[s].method == BUDGET:
            rank_last(w, s)
        else:
            _rebuild_if_due(w, s, approximate)
    elif run.strategy == IDENTITY:
        w.keys[node] = _key_of(w, node)
        put_ids(w.equal, w.keys, node, node + 1)


@inlined
def unstore(w: Any, node: int, approximate: Any) -> None:
    """A node is no longer sent."""
    run = w.run[0]
    if run.strategy == COVERING:
        s, slot = _index_of(w, node), np.int64(w.nodes[node].slot)
        if approximate is not None and w.indexes[s].method == BUDGET:
            remove_ranked(w, s, slot)
        else:
            covers.remove(w, s, slot)
        if w.indexes[s].held == 0:
            covers.drop_index(w, chain_of(w, node), s)
        else:
            _rebuild_if_due(w, s, approximate)
    elif run.strategy == IDENTITY:
        drop_id(w.equal, w.keys, w.keys[node])


@inner
def covered_by(w: Any, node: int) -> Any:
    """The nodes that are sent although `node` covers them, by ascending subscription."""
    subscription, first, held = np.int64(w.nodes[node].subscription), w.chains[chain_of(w, node)].first, 0
    s = first
    while s >= 0:
        held += w.indexes[s].held
        s = w.indexes[s].next
    found, names, count, s = np.empty(held, np.int64), np.empty(held), 0, first
    while s >= 0:
        _charge_covered(w, s, w.routes[w.nodes[node].route].epsilon)
        owners = covers.owners_of(w, s)
        for slot in covers.covered(w, s, w.points[subscription]):
            name = np.int64(w.nodes[owners[slot]].subscription)
            if is_implied(w, w.subscriptions[subscription].residue, name):
                found[count], names[count] = owners[slot], name
                count += 1
        s = w.indexes[s].next
    order = ascending(names[:count], 1.0)
    for i in range(count):
        order[i] = found[order[i]]
    return order
