"""Widest first: what strictly contains another has the smaller place, whatever the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering.residue import Residue
from covering.widest_first import places, sizes
from tests.covering.strategies import boxes
from tests.covering.test_residue import BOX, RESIDUE

DOMAINS = ([[0.0, 8.0], [0.0, 8.0]], [[3.0, 3.0], [-1e308, 1e308]], [[1e308, 1.5e308], [-5e-324, 5e-324]])


def contains(one, other):
    return bool((one[:, 0] <= other[:, 0]).all() and (one[:, 1] >= other[:, 1]).all())


@settings(max_examples=300)
@given(st.lists(boxes(2), min_size=1, max_size=8), st.sampled_from(DOMAINS))
def test_nothing_precedes_what_contains_it(drawn, domain):
    listed, bounds = np.array(drawn), np.array(domain)
    sides, size = sizes(listed, bounds)
    place = places(listed, bounds)
    assert not np.isnan(size).any()
    for i, one in enumerate(listed):
        for j, other in enumerate(listed):
            if np.array_equal(one, other):
                assert place[i] == place[j]
            elif contains(one, other):
                assert place[i] < place[j]
                assert (sides[i], size[i]) >= (sides[j], size[j])
    assert sorted(set(place.tolist())) == list(range(len(set(place.tolist())))), "places are numbered from 0"


def test_a_side_is_a_face_and_its_size_the_distance_to_the_far_end_of_the_domain():
    listed = np.array([[[2.0, 8.0], [1.0, 1.0]], [[-np.inf, 4.0], [-np.inf, np.inf]], [[-1.0, np.inf], [0.0, 3.0]]])
    sides, size = sizes(listed, np.array([[0.0, 10.0], [1.0, 1.0]]))
    assert sides.tolist() == [0, 3, 1]
    assert size.tolist() == [0.8 + 0.8 + 0.0 + 0.0, 0.4, 1.1 + 1.0 + 2.0]


def test_a_side_at_the_wrong_infinity_is_bounded():
    """[inf, inf] takes infinity alone: it is in [0, inf], not as wide."""
    listed, domain = np.array([[[np.inf, np.inf]], [[0.0, np.inf]], [[-np.inf, -np.inf]]]), np.array([[0.0, 8.0]])
    assert sizes(listed, domain)[0].tolist() == [1, 1, 1]
    assert places(listed, domain)[0] > places(listed, domain)[1]


def test_bounds_decide_where_rounding_hides_the_difference():
    """One float wider, in a domain in which that is nothing."""
    listed = np.array([[[1.0, 2.0]], [[1.0, np.nextafter(2.0, 3.0)]], [[np.nextafter(1.0, 0.0), 2.0]], [[1.0, 2.0]]])
    domain = np.array([[0.0, 1e9]])
    assert len(set(sizes(listed, domain)[1].tolist())) == 1
    assert places(listed, domain).tolist() == [2, 1, 0, 2]


def test_among_equal_boxes_a_finer_key_decides():
    listed, domain = np.array([[[0.0, 1.0]]] * 3 + [[[0.0, 2.0]]]), np.array([[0.0, 10.0]])
    asked = []

    def finer(row):
        asked.append(row)
        return (5, 3, 5)[row]

    assert places(listed, domain, finer).tolist() == [2, 1, 2, 0]
    assert sorted(asked) == [0, 1, 2], "only where boxes are equal"


@settings(max_examples=400)
@given(RESIDUE, RESIDUE, BOX, st.tuples(st.booleans(), st.booleans()), st.booleans())
def test_the_weaker_of_two_residues_is_the_less_strict(first, second, box, integral, unbounded):
    if unbounded:
        box = np.array([[-np.inf, np.inf], box[1]])
    if first.implied_by(box, second, integral):
        assert first.strictness(box, integral) <= second.strictness(box, integral)
        if not second.implied_by(box, first, integral):
            assert first.strictness(box, integral) < second.strictness(box, integral)


@pytest.mark.parametrize(
    ("weaker", "stricter", "box"),
    [
        (Residue(), Residue.of(excluded={0: [2.5]}), [-np.inf, np.inf]),  # an event must have it
        (Residue.of(excluded={0: [1]}), Residue.of(allowed={0: [2, 3, 4]}), [0.0, 9e18]),
        (Residue.of(excluded={0: [1]}), Residue.of(excluded={0: [1, 2]}), [0.0, 9e18]),  # more than floats can count
        (Residue.of(allowed={0: [3, 4]}), Residue.of(excluded={0: [3]}), [3.0, 4.0]),
    ],
)
def test_what_is_lost_of_whole_values(weaker, stricter, box):
    bounds = np.array([box])
    assert weaker.implied_by(bounds, stricter, [True])
    assert weaker.strictness(bounds, [True]) < stricter.strictness(bounds, [True])
