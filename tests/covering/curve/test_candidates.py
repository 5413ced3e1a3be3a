"""Rows compared inside a key range are counted, charged and priced."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import covering
from broker.work import DEFAULT, load_profile, search_keys, search_time
from covering.filters import FilterIndex
from covering.stats import boxes_per_page

GREEDY = sorted(name for name, method in covering.METHODS.items() if method.compares_candidates)
UNIT = [[0.0, 1.0]]


def test_the_greedy_methods_compare_candidates_and_no_others():
    assert GREEDY == ["hilbert", "zorder", "zorder-emulated"]


@pytest.mark.parametrize("name", GREEDY)
def test_a_search_of_one_cell_is_a_scan_and_is_counted_as_one(name):
    """With one bit all boxes around the middle have one key: one range, which holds every entry."""
    index = covering.create(name, UNIT, bits=1)
    index.add_many(range(300), np.random.default_rng(1).random((300, 1, 2)) * 0.3 + [0.1, 0.5])
    assert index.find_cover((0.5, 0.9)) is None
    assert (index.stats.probes, index.stats.candidates) == (1, 300)


@pytest.mark.parametrize("name", covering.methods())
def test_probes_that_count_entries_have_no_candidates(name):
    index = covering.create(name, UNIT)
    index.add_many(range(50), np.sort(np.random.default_rng(1).random((50, 1, 2)), axis=2))
    for box in np.sort(np.random.default_rng(2).random((20, 1, 2)), axis=2):
        index.find_cover(box)
    assert (index.stats.candidates > 0) == (name in GREEDY)


@pytest.mark.parametrize("name", GREEDY)
def test_a_candidate_that_fails_is_one_more_lookup_and_takes_room_on_pages(name):
    index = FilterIndex(name, np.array(UNIT), bits=1)
    for number in range(1000):
        index.add(number, np.array([[0.4, 0.6]]))
    assert index.find_cover(np.array([[0.3, 0.55]])) is None
    (work,) = index.asked
    assert (work.probes, work.candidates, work.bits) == (1, 1000, 1)
    assert (work.round_trips, work.pages) == (1001, 1 + 1000 // boxes_per_page(1))
    assert index.find_cover(np.array([[0.5, 0.6]])) is not None
    (work,) = index.asked
    assert (work.candidates, work.round_trips, work.pages) == (1, 1, 1), "the lookup brings the first record"


def test_candidates_take_time_by_a_coefficient_of_their_own():
    prices = SimpleNamespace(page=0.0, round_trip=0.0)
    price = SimpleNamespace(check=1.0, probe=10.0, candidate=0.5)
    assert search_time(prices, price, 3, 8, 3, 3) == 1.0 + 30.0 + 4.0
    profile = load_profile(DEFAULT)
    for name, keys in search_keys().items():
        assert ("candidate" in keys) == (name in GREEDY)
        assert (profile.covering[name].get("candidate", 0.0) > 0) == (name in GREEDY)
