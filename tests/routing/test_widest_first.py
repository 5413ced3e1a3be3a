"""When covers leave, nothing is decided before what contains it: every ledger, every mode, one departure or several."""

from __future__ import annotations

from itertools import combinations, count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.pruning import PrunedTable
from covering.residue import EMPTY, Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import Kind
from routing.rank import Rank
from routing.strategies import make_ledger

DOMAIN = np.array([[0.0, 8.0], [0.0, 8.0]])
SUB, UNSUB = Kind.SUBSCRIBE, Kind.UNSUBSCRIBE
BOUND = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 8.0])
SIDE = st.one_of(st.tuples(BOUND, BOUND).map(sorted), st.just([-np.inf, np.inf]), BOUND.map(lambda low: [low, np.inf]))
RESIDUES = st.sampled_from([EMPTY, EMPTY, Residue.of(excluded={0: [2]}), Residue.of(excluded={0: [2, 3]})])
SCORES = st.sampled_from([1.0, 2.0, 3.0])
FILTER = st.tuples(st.tuples(SIDE, SIDE).map(np.array), RESIDUES, SCORES).map(
    lambda parts: Filter.of_box(parts[0], parts[1], score=parts[2])
)
WAYS = {
    "lazy": {},
    "active": {"active": True},
    "union": {"cover": "union"},
    "merging": {"name": "merging", "merge_waste": 0.2},
    "cover": {"rank": True},
    "cover active": {"rank": True, "active": True},
    "skyband": {"rank": True, "skyband": 2},
}


def interval(low, high, residue=EMPTY, score=1.0):
    return Filter.of_box(np.array([[low, high], [-np.inf, np.inf]]), residue, score=score)


def ledger_of(filters, decided, name="covering", active=False, rank=False, wanted=None, **options):
    scores, weights = np.array([f.score for f in filters]), np.array([f.weights for f in filters])
    ranked = Rank.of(scores, weights, True, False) if rank else None
    mergers = count(-2, -1)
    routing = RoutingOptions(DOMAIN, "exact", "scan", rank=ranked, **options)
    return make_ledger(name, routing, None, lambda: next(mergers), active=active, on_decision=decided, wanted=wanted)


def precedes_what_contains_it(order, filters, rank=False):
    """Pairs (earlier, later) of which the later one could have held the earlier one back."""

    def covers(one, other):
        a, b = filters[one], filters[other]
        return a.contains(b) and (not rank or (-a.score, one) < (-b.score, other))

    return [(a, b) for a, b in combinations(order, 2) if covers(b, a) and not covers(a, b)]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60)
@given(filters=st.lists(FILTER, min_size=3, max_size=14), leavers=st.integers(1, 3))
def test_nothing_is_decided_before_what_contains_it(way, filters, leavers):
    everything = Filter.of_box(np.full((2, 2), [-np.inf, np.inf]), score=4.0)
    filters = [everything] * leavers + filters
    decided = []
    ledger = ledger_of(filters, decided.append, **WAYS[way])
    for number, filter in enumerate(filters):
        ledger.subscribe(number, filter)
    for number in range(leavers):
        decided.clear()
        ledger.unsubscribe(number)
        order = [d.subscription for d in decided if d.outcome not in ("retracted", "united")]
        assert precedes_what_contains_it(order, filters, "rank" in WAYS[way]) == []
        ledger.check()


@settings(max_examples=60)
@given(
    filters=st.lists(FILTER, min_size=3, max_size=14), active=st.booleans(), cover=st.sampled_from(["single", "union"])
)
def test_nothing_wakes_or_falls_asleep_before_what_contains_it(filters, active, cover):
    advertised, decided = [], []

    def wanted(filter):
        return any(filter.box[0, 0] <= high and filter.box[0, 1] >= low for low, high in advertised)

    ledger = ledger_of(filters, decided.append, active=active, cover=cover, wanted=wanted)
    for number, filter in enumerate(filters):
        ledger.subscribe(number, filter)
    for said in ([(0.0, 8.0)], [(2.0, 3.0)], [(5.0, 8.0), (2.0, 3.0)], []):
        decided.clear()
        advertised[:] = said
        ledger.reconsider()
        order = [d.subscription for d in decided if d.outcome not in ("retracted", "united", "dormant")]
        assert precedes_what_contains_it(order, filters) == []
        ledger.check()
    assert not ledger.sent


@pytest.mark.parametrize("active", [False, True])
def test_the_widest_of_what_wakes_is_sent_first(active):
    awake = []
    filters = [interval(2, 3), interval(1, 5)]
    ledger = ledger_of(filters, None, active=active, wanted=lambda filter: bool(awake))
    for number, filter in enumerate(filters):
        assert ledger.subscribe(number, filter) == []
    awake.append(True)
    assert [(kind, number) for kind, number, _ in ledger.reconsider()] == [(SUB, 1)]
    ledger.check()


def test_equal_boxes_by_residue_then_by_rank_then_by_arrival():
    weak, strict = Residue.of(excluded={0: [2]}), Residue.of(excluded={0: [2, 3]})
    filters = [interval(0, 8, score=9.0), interval(1, 5, strict, 3.0), interval(1, 5, weak), interval(1, 5, weak, 2.0)]
    for rank, expected in ((False, [2]), (True, [3, 1])):
        ledger = ledger_of(filters, None, rank=rank)
        for number, filter in enumerate(filters):
            ledger.subscribe(number, filter)
        assert [number for kind, number, _ in ledger.unsubscribe(0) if kind is SUB] == expected


def test_a_score_that_falls_exposes_widest_first():
    filters = [interval(0, 8, score=9.0), interval(2, 3, score=2.0), interval(1, 5, score=3.0)]
    fallen = interval(0, 8, score=1.0)
    ledger = ledger_of([*filters, fallen], None, rank=True)
    for number, filter in enumerate(filters):
        ledger.subscribe(number, filter)
    said = ledger.rerank(0, fallen)
    assert [(kind, number) for kind, number, _ in said] == [(SUB, 2), (Kind.RERANK, 0)]
    ledger.check()


def test_a_pruned_table_shows_the_widest_of_what_comes_back():
    table = PrunedTable(RoutingOptions(DOMAIN))
    changes = []
    table._change_rows = lambda messages: changes.extend((kind, number) for kind, number, _ in messages)
    for number, filter in enumerate([interval(0, 8), interval(2, 3), interval(1, 5)]):
        table.add(number, filter)
    changes.clear()
    table.remove(0)
    assert changes == [(SUB, 2), (UNSUB, 0)]
