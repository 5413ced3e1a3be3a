"""Several sent subscriptions that together cover one hold it back, and each of them is remembered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering.residue import Residue
from coverlay import CoverlayError
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import Decision, Kind, LinkLedger
from routing.strategies import covering
from routing.strategies.covering import Covering
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

SUB, UNSUB = Kind.SUBSCRIBE, Kind.UNSUBSCRIBE
UNBOUNDED = (-np.inf, np.inf)


def ledger_of(attributes: int = 1, **options: bool) -> LinkLedger:
    return LinkLedger(Covering(RoutingOptions(np.array([[0.0, 100.0]] * attributes), cover="union")), **options)


def box(*sides: tuple[float, float], residue: Residue | None = None) -> Filter:
    return Filter.of_box(np.array(sides, dtype=float), residue or Residue())


def said(messages):
    return [(kind, subscription) for kind, subscription, _ in messages]


@pytest.mark.parametrize("leaver", [1, 2, 3])
def test_each_of_several_that_cover_together_exposes_when_it_leaves(leaver):
    decisions: list[Decision] = []
    ledger = ledger_of(on_decision=decisions.append)
    for number, sides in enumerate([(0, 40), (30, 70), (70, 100)], 1):
        ledger.subscribe(number, box(sides))
    assert said(ledger.subscribe(4, box((10, 90)))) == []
    assert set(ledger.suppressed[4][1]) == {1, 2, 3}
    rows = [(d.outcome, d.search.witness) for d in decisions if d.subscription == 4]
    assert [outcome for outcome, _ in rows] == ["suppressed", "united", "united"]
    assert {witness for _, witness in rows} == {1, 2, 3}
    ledger.check()
    assert said(ledger.unsubscribe(leaver)) == [(SUB, 4), (UNSUB, leaver)], "make before break"
    ledger.check()


def test_who_cuts_nothing_is_no_witness_and_one_cover_is_enough():
    ledger = ledger_of()
    for number, sides in enumerate([(0, 50), (50, 100), (95, 99)], 1):
        ledger.subscribe(number, box(sides))
    ledger.subscribe(4, box((10, 90)))
    assert set(ledger.suppressed[4][1]) == {1, 2}
    ledger.subscribe(5, box((10, 20)))
    assert ledger.suppressed[5][1] == (1,)
    assert said(ledger.unsubscribe(4)) == []
    assert said(ledger.unsubscribe(1)) == [(SUB, 5), (UNSUB, 1)]
    ledger.check()


def test_a_gap_of_one_float_is_no_cover():
    ledger = ledger_of()
    ledger.subscribe(1, box((0, 50)))
    ledger.subscribe(2, box((np.nextafter(np.nextafter(50.0, 99), 99), 100)))
    assert said(ledger.subscribe(3, box((10, 90)))) == [(SUB, 3)]
    neighbours = ledger_of()
    neighbours.subscribe(1, box((0, 50)))
    neighbours.subscribe(2, box((np.nextafter(50.0, 99), 100)))
    assert said(neighbours.subscribe(3, box((10, 90)))) == []
    neighbours.check()


def test_a_wider_one_takes_the_place_of_what_it_retracts():
    ledger = ledger_of(active=True)
    for number, sides in enumerate([(10, 50), (40, 90)], 1):
        ledger.subscribe(number, box(sides))
    ledger.subscribe(3, box((15, 80)))
    assert said(ledger.subscribe(4, box((0, 60)))) == [(SUB, 4), (UNSUB, 1)]
    assert set(ledger.suppressed[3][1]) == {4, 2}
    ledger.check()
    assert said(ledger.unsubscribe(2)) == [(SUB, 3), (UNSUB, 2)]
    ledger.check()


def test_an_entry_stays_where_a_wider_one_cannot_be_shown_to_cover_in_its_place():
    """Everything but 4, with 0 to 5, does contain 4 and more; subtracting boxes cannot show it."""
    ledger = ledger_of(active=True)
    ledger.subscribe(1, box((5, 100)))
    ledger.subscribe(2, box((0, 5)))
    assert said(ledger.subscribe(3, box((4, 100)))) == []
    ledger.check()
    assert said(ledger.subscribe(4, box((1, 200), residue=Residue(excluded=((0, (4.0,)),))))) == [(SUB, 4)]
    ledger.check()
    assert said(ledger.unsubscribe(2)) == [(SUB, 3), (UNSUB, 1), (UNSUB, 2)]
    ledger.check()


def test_what_is_exposed_takes_the_place_of_one_that_held_others_back_with_the_leaver():
    ledger = ledger_of(active=True)
    for number, sides in enumerate([(8, 12), (0, 8), (2, 12), (1, 10)], 1):
        ledger.subscribe(number, box(sides))
    assert set(ledger.suppressed) == {3, 4}
    assert said(ledger.unsubscribe(2)) == [(SUB, 3), (UNSUB, 1), (SUB, 4), (UNSUB, 2)]
    ledger.check()


def test_what_leaves_an_attribute_out_is_not_covered_by_those_that_ask_for_it():
    """An event that lacks the attribute matches only the first."""
    ledger = ledger_of(2)
    ledger.subscribe(1, box((0, 100), (-np.inf, 50)))
    ledger.subscribe(2, box((0, 100), (50, np.inf)))
    assert said(ledger.subscribe(3, box((10, 20), UNBOUNDED))) == [(SUB, 3)]
    assert said(ledger.subscribe(4, box((10, 20), (-np.inf, 99)))) == []
    ledger.check()


def test_a_value_left_out_counts():
    without = Residue(excluded=((0, (45.0,)),), allowed=())
    ledger = ledger_of()
    ledger.subscribe(1, box((0, 50), residue=without))
    ledger.subscribe(2, box((50, 100)))
    assert said(ledger.subscribe(3, box((40, 60)))) == [(SUB, 3)]
    assert said(ledger.subscribe(4, box((41, 61), residue=without))) == []
    assert set(ledger.suppressed[4][1]) >= {1} or set(ledger.suppressed[4][1]) >= {2, 3}
    ledger.check()


def test_giving_up_means_not_covered(monkeypatch):
    middle, frame = (
        ((20, 80), (20, 80)),
        [((0, 100), (0, 20)), ((0, 100), (80, 100)), ((0, 20), (0, 100)), ((80, 100), (0, 100))],
    )
    for pieces, sent in ((4, [(SUB, 9)]), (covering.PIECES, [])):
        ledger = ledger_of(2)
        for number, sides in enumerate([middle, *frame]):
            ledger.subscribe(number, box(*sides))
        monkeypatch.setattr(covering, "PIECES", pieces)  # the middle leaves four, and each may be cut into more
        assert said(ledger.subscribe(9, box((10, 90), (10, 90)))) == sent


SIDE = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
SPAN = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)
BOXES = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=8)


@settings(max_examples=150)
@given(BOXES, st.tuples(SIDE, SIDE))
def test_together_is_what_every_point_says(held, asked):
    """On the whole numbers and between them: in every cell of the grid."""
    ledger = ledger_of(2)
    for number, sides in enumerate(held):
        ledger.subscribe(number, box(*sides))
    kept_back = said(ledger.subscribe(99, box(*asked))) == []
    ledger.check()
    steps = [np.arange(2 * low, 2 * high + 1) / 2 for low, high in asked]
    points = [(x, y) for x in steps[0] for y in steps[1]]
    inside = [any(a <= x <= b and c <= y <= d for (a, b), (c, d) in held) for x, y in points]
    assert kept_back == all(inside)


@settings(max_examples=150)
@given(st.lists(st.tuples(SPAN, st.none() | st.integers(0, 20)), min_size=6, max_size=24), st.booleans())
def test_every_rule_holds_after_every_step(story, active):
    """Each step subscribes to an interval, or one of those that are there leaves; the neighbour's table is followed."""
    ledger, there, behind = ledger_of(active=active), {}, {}
    for number, (side, leaver) in enumerate(story):
        if leaver is None or not there:
            there[number] = side
            messages = ledger.subscribe(number, box(side))
        else:
            gone = list(there)[leaver % len(there)]
            del there[gone]
            messages = ledger.unsubscribe(gone)
        for kind, subscription, filter in messages:
            if kind is SUB:
                behind[subscription] = filter
            else:
                del behind[subscription]
        ledger.check()
        assert behind == ledger.sent
        assert set(ledger.known) == set(there)


def test_union_covering_loses_nothing_and_sends_less():
    data = {
        "name": "unions",
        "overlay": {"brokers": 8},
        "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 200, "events": 60},
        "arrivals": {"kind": "churn", "lifetime": 60.0},
        "sweep": {"routing.cover": ["single", "union"]},
    }
    messages = {}
    for run in plan(data).runs:
        tables, _ = simulate(run)
        record = tables["run"].to_pylist()[0]
        assert record["missed"] == record["duplicates"] == record["strays"] == record["spurious"] == 0
        messages[run.experiment.routing.cover] = record["control_messages"]
        outcomes = set(tables["decisions"].column("outcome").to_pylist())
        assert ("united" in outcomes) == (run.experiment.routing.cover == "union")
    assert messages["union"] < messages["single"]


def test_who_cannot_unite_says_so():
    with pytest.raises(CoverlayError, match=r'"merging" goes with .*, not with "union"'):
        plan({"name": "refused", "routing": {"strategy": "merging", "cover": "union"}})
    run = plan({"name": "refused", "routing": {"cover": "union"}, "run": {"engine": "compiled"}}).runs[0]
    with pytest.raises(CoverlayError, match=r"routing.cover = 'union'"):
        simulate(run)
