"""Who holds whom back where the k best of the whole network count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covering
from covering.residue import Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import Kind
from routing.rank import Rank
from routing.strategies import make_ledger

DOMAIN = np.array([[0.0, 10.0], [0.0, 10.0]])
# Subscription → low and high of both attributes, score.
WIDE_LOW, WIDE_HIGH, NARROW = ((0.0, 9.0), 1.0), ((0.0, 8.0), 5.0), ((2.0, 3.0), 3.0)


def made(bounds, score, weights=None, near=None):
    plain = Filter.of_box(np.array([bounds, bounds]), weights=None if weights is None else np.array(weights))
    return Filter(plain.box, plain.residue, plain.mentioned, plain.weights, score, near)


def ledger_of(filters, way="cover", k=2, by_score=True, semantics="exact", active=False, method="scan"):
    scores, weights = np.array([f.score for f in filters]), np.array([f.weights for f in filters])
    rank = Rank.of(scores, weights, by_score, False)
    options = RoutingOptions(DOMAIN, semantics, method, rank=rank, skyband=k if way == "skyband" else None)
    return make_ledger("covering", options, None, lambda: -2, active=active)


def sent(ledger, filters):
    return [number for number, f in enumerate(filters) if ledger.subscribe(number, f)]


@pytest.mark.parametrize("method", covering.methods())
def test_one_that_contains_and_does_not_outscore_holds_nothing_back(method):
    filters = [made(*WIDE_LOW), made(*NARROW), made(*WIDE_HIGH), made(*NARROW)]
    ledger = ledger_of(filters, method=method)
    assert sent(ledger, filters)[:3] == [0, 1, 2]
    ledger.check()


def test_one_that_contains_and_outscores_does():
    filters = [made(*WIDE_HIGH), made(*NARROW), made((0.0, 9.0), 4.0)]
    ledger = ledger_of(filters)
    assert sent(ledger, filters) == [0, 2]
    assert ledger.suppressed[1][1] == (0,)
    assert [(kind, number) for kind, number, _ in ledger.unsubscribe(0)] == [(Kind.UNSUBSCRIBE, 0)]
    assert ledger.suppressed[1][1] == (2,)  # the other one holds it back now
    assert [(kind, number) for kind, number, _ in ledger.unsubscribe(2)] == [
        (Kind.SUBSCRIBE, 1),  # make before break
        (Kind.UNSUBSCRIBE, 2),
    ]


def test_equal_scores_are_decided_by_id():
    late, early = made((0.0, 9.0), 3.0), made(*NARROW)
    ledger = ledger_of([early, late])
    assert ledger.subscribe(1, late)
    assert ledger.subscribe(0, early), "the wide one has the larger id"
    ledger.check()
    ledger = ledger_of([early, late])
    assert ledger.subscribe(0, late)
    assert not ledger.subscribe(1, early)


def test_a_tie_that_does_not_count_does_not_hide_a_higher_score():
    filters = [made(*NARROW), made((0.0, 9.0), 3.0), made((0.0, 9.0), 4.0)]
    ledger = ledger_of(filters)
    ledger.subscribe(1, filters[1])
    ledger.subscribe(2, filters[2])
    assert not ledger.subscribe(0, filters[0])
    assert ledger.suppressed[0][1] == (2,)


def test_active_mode_retracts_only_what_the_new_one_outranks():
    filters = [made((2.0, 3.0), 4.0), made((2.0, 3.0), 1.0), made((0.0, 9.0), 2.0)]
    ledger = ledger_of(filters, active=True)
    ledger.subscribe(0, filters[0])
    ledger.subscribe(1, filters[1])  # held back by 0
    messages = ledger.subscribe(2, filters[2])
    assert [(kind, number) for kind, number, _ in messages] == [(Kind.SUBSCRIBE, 2)]
    ledger.check()


def test_a_skyband_takes_k_to_hold_one_back():
    filters = [made((0.0, 9.0), 5.0), made((0.0, 8.0), 4.0), made((1.0, 4.0), 3.0), made((2.0, 3.0), 3.5)]
    ledger = ledger_of(filters, "skyband", k=2)
    assert sent(ledger, filters) == [0, 1]
    assert {s: coverers for s, (_, coverers) in ledger.suppressed.items()} == {2: (0, 1), 3: (0, 1)}
    ledger.check()
    exposed = [(kind, number) for kind, number, _ in ledger.unsubscribe(1)]
    assert exposed == [(Kind.SUBSCRIBE, 2), (Kind.SUBSCRIBE, 3), (Kind.UNSUBSCRIBE, 1)]
    ledger.check()


def test_where_scores_depend_on_the_event_every_weight_and_the_place_count():
    def held_back(first, second):
        ledger = ledger_of([first, second], by_score=False, semantics="relaxed")
        assert ledger.subscribe(0, first)
        return not ledger.subscribe(1, second)

    one = made((0.0, 9.0), 1.0, weights=[2.0, 2.0])
    assert held_back(one, made((2.0, 3.0), 9.0, weights=[2.0, 1.0]))
    assert not held_back(one, made((2.0, 3.0), 0.0, weights=[3.0, 1.0]))
    here = made((2.0, 3.0), 1.0, weights=[1.0, 1.0], near=(1.0, 1.0, 0.5))
    assert not held_back(one, here)
    assert held_back(made((0.0, 9.0), 1.0, weights=[2.0, 2.0], near=(1.0, 1.0, 0.5)), here)


@settings(max_examples=40)
@given(st.data())
@pytest.mark.parametrize("way", ["plain", "score", "weights"])
def test_many_that_are_loaded_at_once_are_sent_as_one_by_one(way, data):
    value = st.integers(0, 4)
    filters = [
        made((float(low), float(low + width)), float(score), weights=[float(score), 1.0])
        for low, width, score in data.draw(st.lists(st.tuples(value, value, st.integers(0, 2)), max_size=20))
    ]
    heard = [(7 + number, (Kind.SUBSCRIBE, number, filter)) for number, filter in enumerate(filters)]
    loaded = []
    for at_once in (False, True):
        if way == "plain":
            ledger = make_ledger("covering", RoutingOptions(DOMAIN), None, lambda: -2)
        else:
            semantics = "exact" if way == "score" else "relaxed"
            known = filters or [made(*NARROW)]
            ledger = ledger_of(known, by_score=way == "score", semantics=semantics, method="auto")
        loaded.append(ledger.load(heard, at_once))
        ledger.check()
        assert list(ledger.sent) == [number for _, (_, number, _) in loaded[-1]]
        assert ledger.sent.keys() | ledger.suppressed.keys() == set(range(len(filters)))
    assert loaded[0] == loaded[1]


def said(messages):
    return [(kind, number) for kind, number, _ in messages]


@pytest.mark.parametrize("way", ["cover", "skyband"])
def test_one_that_is_held_back_and_rises_is_sent(way):
    filters = [made(*WIDE_HIGH), made(*NARROW)]
    ledger = ledger_of([*filters, made((2.0, 3.0), 9.0)], way, k=1)
    assert sent(ledger, filters) == [0]
    assert said(ledger.rerank(1, made((2.0, 3.0), 4.0))) == [], "still behind"
    assert ledger.suppressed[1][0].score == 4.0
    assert said(ledger.rerank(1, made((2.0, 3.0), 9.0))) == [(Kind.SUBSCRIBE, 1)]
    assert said(ledger.rerank(1, made((2.0, 3.0), 8.0))) == [(Kind.RERANK, 1)], "it was sent, and stays so"
    ledger.check()


def test_one_that_fell_holds_nobody_back_who_comes_later():
    filters = [made(*WIDE_HIGH), made(*NARROW)]
    ledger = ledger_of([*filters, made(*WIDE_LOW)])
    assert sent(ledger, filters[:1]) == [0]
    ledger.rerank(0, made((0.0, 8.0), 1.0))
    assert said(ledger.subscribe(1, filters[1])) == [(Kind.SUBSCRIBE, 1)]
    ledger.check()


def test_active_mode_retracts_a_fallen_one_when_all_that_it_exposes_are_there():
    """One, two and three ask for the same or less; when one falls, two takes its place, and three outranks both."""
    filters = [made((0.0, 9.0), 5.0), made((0.0, 9.0), 3.0), made((2.0, 3.0), 4.0)]
    ledger = ledger_of([*filters, made(*WIDE_LOW)], active=True)
    assert sent(ledger, filters) == [0]
    told = said(ledger.rerank(0, made((0.0, 9.0), 1.0)))
    assert told == [(Kind.SUBSCRIBE, 1), (Kind.SUBSCRIBE, 2), (Kind.UNSUBSCRIBE, 0)]
    ledger.check()
    assert said(ledger.unsubscribe(1)) == [(Kind.SUBSCRIBE, 0), (Kind.UNSUBSCRIBE, 1)]


def test_a_skyband_looks_at_what_boxes_do_not_say():
    plain = made((0.0, 9.0), 5.0)
    wide = Filter(plain.box, Residue.of(excluded={0: (2.5,)}), plain.mentioned, plain.weights, plain.score)
    ledger = ledger_of([wide, made(*NARROW)], "skyband", k=1)
    assert sent(ledger, [wide, made(*NARROW), made((4.0, 5.0), 3.0)]) == [0, 1]
    ledger.check()
