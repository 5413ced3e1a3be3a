"""Mergers: what may become one box, what it costs, and that it goes when its parts go."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering.hulls import unasked, volume
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import Kind
from routing.strategies.merging import Merging, MergingLedger
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

DOMAIN = np.array([[0.0, 10.0], [0.0, 10.0]])
SUB, UNSUB = Kind.SUBSCRIBE, Kind.UNSUBSCRIBE


def box(x0, x1, y0, y1) -> Filter:
    return Filter.of_box(np.array([[x0, x1], [y0, y1]], dtype=float))


def ledger(waste: float = 0.0, active: bool = False) -> MergingLedger:
    names = count(-2, -1)
    return MergingLedger(Merging(RoutingOptions(DOMAIN, merge_waste=waste)), lambda: next(names), active=active)


def said(messages):
    return [(kind, subscription) for kind, subscription, _ in messages]


def test_two_halves_become_one_box():
    link = ledger()
    assert said(link.subscribe(1, box(0, 5, 0, 10))) == [(SUB, 1)]
    messages = link.subscribe(2, box(5, 10, 0, 10))
    assert said(messages) == [(SUB, -2), (UNSUB, 1)]
    assert messages[0][2].box.tolist() == [[0, 10], [0, 10]]
    link.check()


def test_a_merger_grows_by_a_third_part_and_old_mergers_vanish():
    link = ledger()
    for number, edge in enumerate((0, 2, 4), 1):
        messages = link.subscribe(number, box(edge, edge + 2, 0, 1))
    assert said(messages) == [(SUB, -3), (UNSUB, -2)]
    assert set(link.sent) == {-3}
    assert set(link.suppressed) == {1, 2, 3}
    link.check()


def test_a_part_that_leaves_takes_the_merger_with_it_make_before_break():
    link = ledger()
    link.subscribe(1, box(0, 5, 0, 10))
    link.subscribe(2, box(5, 10, 0, 10))
    assert said(link.unsubscribe(1)) == [(SUB, 2), (UNSUB, -2)]
    assert said(link.unsubscribe(2)) == [(UNSUB, 2)]
    assert not link.sent
    assert not link.mergers


def test_something_merely_covered_by_a_merger_leaves_silently():
    link = ledger()
    link.subscribe(1, box(0, 5, 0, 10))
    link.subscribe(2, box(5, 10, 0, 10))
    assert said(link.subscribe(3, box(4, 6, 1, 2))) == []
    assert said(link.unsubscribe(3)) == []
    link.check()


@pytest.mark.parametrize(
    "other",
    [box(6, 10, 0, 10), box(5, 10, 0, 9), box(5, 10, 0, 10.5)],
    ids=["a gap between them", "not as high", "higher"],
)
def test_perfect_merging_never_promises_more_than_was_asked(other):
    link = ledger()
    link.subscribe(1, box(0, 5, 0, 10))
    assert said(link.subscribe(2, other)) == [(SUB, 2)]


def test_imperfect_merging_keeps_its_bound_over_many_parts():
    rng = np.random.default_rng(3)
    link = ledger(waste=0.2)
    asked = {}
    for number in range(60):
        low = rng.random(2) * 8
        asked[number] = box(low[0], low[0] + 2, low[1], low[1] + 2)
        link.subscribe(number, asked[number])
    link.check()
    for number in range(0, 60, 3):
        link.unsubscribe(number)
        link.check()
    assert link.mergers, "nothing merged"
    points = rng.random((20_000, 2)) * 10
    for merger in link.mergers:
        outer = link.sent[merger].box
        inside = points[((points >= outer[:, 0]) & (points <= outer[:, 1])).all(axis=1)]
        wanted = np.zeros(len(inside), dtype=bool)
        for part in (s for s, (_, coverers) in link.suppressed.items() if coverers == (merger,)):
            inner = asked[part].box
            wanted |= ((inside >= inner[:, 0]) & (inside <= inner[:, 1])).all(axis=1)
        assert (~wanted).mean() <= 0.2 + 0.03  # 0.03: what the sampled points cannot tell


@pytest.mark.parametrize("waste", [0.0, 0.5])
def test_of_nested_boxes_the_wider_one_covers_and_nothing_is_invented(waste):
    inner, outer = box(4, 6, 0, 10), box(0, 10, 0, 10)
    active, lazy = ledger(waste, active=True), ledger(waste)
    for link in (active, lazy):
        link.subscribe(1, inner)
    assert said(active.subscribe(2, outer)) == [(SUB, 2), (UNSUB, 1)]
    assert said(lazy.subscribe(2, outer)) == [(SUB, 2)]
    assert said(active.unsubscribe(1)) == []
    assert said(lazy.unsubscribe(1)) == [(UNSUB, 1)]
    assert set(active.sent) == set(lazy.sent) == {2}


def test_a_merger_that_others_still_fill_stays_when_a_part_leaves():
    link = ledger()
    link.subscribe(1, box(0, 5, 0, 10))
    link.subscribe(2, box(5, 10, 0, 10))
    link.subscribe(3, box(4, 10, 0, 10))
    assert said(link.unsubscribe(2)) == []
    link.check()
    # Now 3 is what fills it, although the merger was not made of 3.
    assert said(link.unsubscribe(3)) == [(SUB, 1), (UNSUB, -2)]


def test_a_merger_stays_while_its_waste_is_in_bounds():
    link = ledger(waste=0.5)
    link.subscribe(1, box(0, 5, 0, 10))
    link.subscribe(2, box(5, 9, 0, 10))
    link.subscribe(3, box(9, 10, 0, 10))
    (merger,) = link.sent
    assert said(link.unsubscribe(3)) == []
    assert link.waste(merger)[1] == pytest.approx(0.1)
    assert said(link.unsubscribe(2)) == []
    assert link.waste(merger)[1] == pytest.approx(0.5)
    link.check()
    assert said(link.subscribe(4, box(0, 10, 0, 4))) == []
    assert said(link.unsubscribe(1)) == [(SUB, 4), (UNSUB, merger)]


def test_a_merger_with_waste_grows_no_further_than_its_bound():
    link = ledger(waste=0.4)
    link.subscribe(1, box(0, 3, 0, 10))
    link.subscribe(2, box(3, 5, 0, 10))
    assert said(link.unsubscribe(2)) == []  # two fifths of the merger are wasted now
    assert said(link.subscribe(3, box(9, 10, 0, 10))) == [(SUB, 3)], "the two together would waste three fifths"
    link.check()


boxes_on_a_grid = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 6), st.integers(1, 4)), max_size=8
)


@given(boxes_on_a_grid)
@settings(max_examples=200)
def test_what_nobody_asked_for_is_counted_cell_by_cell(drawn):
    outer = np.array([[0.0, 8.0], [0.0, 8.0]])
    asked = np.array([[[x, x + w], [y, y + h]] for x, w, y, h in drawn], dtype=float).reshape(-1, 2, 2)
    wanted = np.zeros((12, 12), dtype=bool)
    for x, w, y, h in drawn:
        wanted[x : x + w, y : y + h] = True
    pieces, share = unasked(outer, asked, DOMAIN)
    assert share == pytest.approx((~wanted[:8, :8]).mean())
    assert (pieces == 0) == bool(wanted[:8, :8].all())


def test_a_single_value_between_two_boxes_is_noticed():
    left, right = [0.0, 5.0], [np.nextafter(5.0, 6.0), 10.0]
    outer = np.array([[0.0, 10.0]])
    domain = np.array([[0.0, 10.0]])
    assert unasked(outer, np.array([[left], [right]]), domain)[0] == 0
    assert unasked(outer, np.array([[left], [[np.nextafter(right[0], 6.0), 10.0]]]), domain)[0] == 1


def test_volume_counts_only_what_lies_in_the_domain():
    assert volume(np.array([[-np.inf, 5.0], [-3.0, 99.0]]), DOMAIN) == 0.5
    assert volume(np.array([[20.0, 30.0], [0.0, 10.0]]), DOMAIN) == 0.0


def entries_of(strategy: str, **routing) -> tuple[int, int]:
    data = {
        "name": "merging",
        "overlay": {"kind": "random-tree", "brokers": 8},
        "workload": {"kind": "uniform", "width": [0.2, 0.4], "attributes": 1, "subscriptions": 200, "events": 50},
        "routing": {"strategy": strategy, "mode": "active", **routing},
    }
    tables, _ = simulate(plan(data).runs[0])
    record = tables["run"].to_pylist()[0]
    assert record["missed"] == record["duplicates"] == record["spurious"] == 0
    frame = tables["tables"].to_pandas()
    needless = (~tables["publications"].to_pandas()["useful"]).sum()
    return int(frame[frame["final"] & (frame["neighbour"] >= 0)]["entries"].sum()), int(needless)


def test_merging_needs_fewer_entries_than_covering():
    covering, merging = entries_of("covering"), entries_of("merging")
    assert merging[0] < covering[0]
