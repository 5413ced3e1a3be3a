"""The ledger's rules, one by one, on hand-made subscriptions (intervals of one attribute)."""

from __future__ import annotations

import numpy as np
import pytest

from covering.residue import Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import Kind, LinkLedger
from routing.strategies.basic import Identity, Simple
from routing.strategies.covering import Covering

OPTIONS = RoutingOptions(np.array([[0.0, 100.0]]))
SUB, UNSUB = Kind.SUBSCRIBE, Kind.UNSUBSCRIBE


def interval(low: float, high: float) -> Filter:
    return Filter.of_box(np.array([[low, high]]))


def said(messages):
    return [(kind, subscription) for kind, subscription, _ in messages]


@pytest.fixture(params=[False, True], ids=["lazy", "active"])
def ledger(request):
    return LinkLedger(Covering(OPTIONS), active=request.param)


def test_a_covered_subscription_is_held_back_with_its_coverer(ledger):
    assert said(ledger.subscribe(1, interval(0, 50))) == [(SUB, 1)]
    assert said(ledger.subscribe(2, interval(10, 20))) == []
    assert ledger.suppressed[2][1] == (1,)


def test_equal_subscriptions_the_earlier_one_wins(ledger):
    assert said(ledger.subscribe(1, interval(0, 50))) == [(SUB, 1)]
    assert said(ledger.subscribe(2, interval(0, 50))) == []
    assert said(ledger.unsubscribe(1)) == [(SUB, 2), (UNSUB, 1)]


def test_exposed_subscriptions_go_out_before_the_unsubscription(ledger):
    for number, filter in enumerate([interval(0, 50), interval(10, 20), interval(30, 40), interval(12, 14)]):
        ledger.subscribe(number, filter)
    # 3 lies in 1, so exposing 1 first keeps 3 back.
    assert said(ledger.unsubscribe(0)) == [(SUB, 1), (SUB, 2), (UNSUB, 0)]
    assert ledger.suppressed[3][1] == (1,)
    ledger.check()


def test_a_suppressed_subscription_leaves_silently(ledger):
    ledger.subscribe(1, interval(0, 50))
    ledger.subscribe(2, interval(10, 20))
    assert said(ledger.unsubscribe(2)) == []
    assert said(ledger.unsubscribe(1)) == [(UNSUB, 1)]
    ledger.check()


def test_only_active_mode_retracts_what_a_wider_one_covers(ledger):
    ledger.subscribe(1, interval(10, 20))
    ledger.subscribe(2, interval(12, 14))
    messages = said(ledger.subscribe(3, interval(0, 50)))
    if ledger.active:
        assert messages == [(SUB, 3), (UNSUB, 1)]
        assert ledger.suppressed[2][1] == (3,), "what 1 suppressed is handed to the wider one"
    else:
        assert messages == [(SUB, 3)]
        assert set(ledger.sent) == {1, 3}
    ledger.check()


def test_identity_sends_equal_subscriptions_once():
    ledger = LinkLedger(Identity(OPTIONS))
    assert said(ledger.subscribe(1, interval(0, 50))) == [(SUB, 1)]
    assert said(ledger.subscribe(2, interval(0, 50))) == []
    assert said(ledger.subscribe(3, interval(0, 49))) == [(SUB, 3)]
    assert said(ledger.unsubscribe(1)) == [(SUB, 2), (UNSUB, 1)]


def test_simple_sends_everything():
    ledger = LinkLedger(Simple(OPTIONS))
    assert [said(ledger.subscribe(n, interval(0, 50))) for n in (1, 2)] == [[(SUB, 1)], [(SUB, 2)]]
    assert said(ledger.unsubscribe(1)) == [(UNSUB, 1)]


def test_check_notices_a_coverer_that_was_never_sent(ledger):
    ledger.subscribe(1, interval(0, 50))
    ledger.subscribe(2, interval(10, 20))
    ledger.suppressed[2] = (ledger.suppressed[2][0], (7,))
    with pytest.raises(AssertionError, match="was not sent"):
        ledger.check()


def test_an_exact_twin_tells_what_the_approximation_missed():
    decisions = []
    options = RoutingOptions(np.array([[0.0, 100.0]]), method="zorder", epsilon=0.9, method_options={"bits": 8})
    ledger = LinkLedger(Covering(options), exact_twin=Covering(OPTIONS), on_decision=decisions.append)
    # 1 covers 2 narrowly: its point lies in the corner of the search region that ε = 0.9 leaves out.
    ledger.subscribe(1, interval(40, 60))
    ledger.subscribe(2, interval(40.5, 59.5))
    assert [d.outcome for d in decisions] == ["forwarded", "forwarded"]
    assert [d.exact for d in decisions] == [False, True]


def without_twenty(low: float, high: float) -> Filter:
    return Filter.of_box(np.array([[low, high]]), Residue(excluded=((0, (20.0,)),), allowed=()))


def test_a_cover_that_leaves_a_value_out_covers_nobody_who_wants_it(ledger):
    assert said(ledger.subscribe(1, without_twenty(0, 50))) == [(SUB, 1)]
    assert said(ledger.subscribe(2, interval(10, 30))) == [(SUB, 2)]
    assert said(ledger.subscribe(3, without_twenty(10, 30))) == []
    ledger.check()


def test_a_wider_one_that_leaves_a_value_out_retracts_nobody_who_wants_it():
    active = LinkLedger(Covering(OPTIONS), active=True)
    active.subscribe(1, interval(10, 30))
    assert said(active.subscribe(2, without_twenty(0, 50))) == [(SUB, 2)]
    assert set(active.sent) == {1, 2}


@pytest.mark.parametrize("method", ["scan", "auto", "kdtree", "packed", "zorder"])
def test_a_cover_that_is_a_hair_too_small_covers_nothing(method):
    ledger = LinkLedger(Covering(RoutingOptions(np.array([[0.0, 100.0]]), method=method)))
    ledger.subscribe(1, interval(0, 50))
    assert said(ledger.subscribe(2, interval(0, 50 + 1e-9))) == [(SUB, 2)]
    assert said(ledger.subscribe(3, interval(-1e-9, 50))) == [(SUB, 3)]


def test_check_notices_a_coverer_that_is_a_hair_too_small(ledger):
    ledger.subscribe(1, interval(0, 50))
    ledger.subscribe(2, interval(10, 20))
    ledger.suppressed[2] = (interval(10, 50 + 1e-9), (1,))
    with pytest.raises(AssertionError, match="do not contain"):
        ledger.check()


def test_relaxed_covering_needs_the_same_attributes():
    """One predicate that holds is a match, so a box that says nothing of an attribute wants fewer events."""
    domain = np.array([[0.0, 100.0], [0.0, 100.0]])
    ledger = LinkLedger(Covering(RoutingOptions(domain, semantics="relaxed")))
    ledger.subscribe(1, Filter.of_box(np.array([[0.0, 50.0], [-np.inf, np.inf]])))
    assert said(ledger.subscribe(2, Filter.of_box(np.array([[10.0, 20.0], [5.0, 6.0]])))) == [(SUB, 2)]
    assert said(ledger.subscribe(3, Filter.of_box(np.array([[10.0, 20.0], [-np.inf, np.inf]])))) == []
