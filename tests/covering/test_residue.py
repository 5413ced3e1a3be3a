"""Residues: implication against enumeration over small integer and half-integer grids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering.residue import EMPTY, Residue
from coverlay import CoverlayError

VALUES = st.sets(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), max_size=4)
RESIDUE = st.builds(
    Residue.of,
    st.dictionaries(st.sampled_from([0, 1]), VALUES, max_size=2),
    st.dictionaries(st.sampled_from([0, 1]), VALUES, max_size=2),
)
BOUND = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])
BOX = st.lists(st.tuples(BOUND, BOUND).map(sorted), min_size=2, max_size=2).map(np.array)


def grid(box: np.ndarray, integral: tuple[bool, bool]) -> list[tuple[float, ...]]:
    """Event values in the box on a grid fine enough to hit a value no set lists, if there is any."""
    fine = [i / 4 for i in range(-4, 20)]
    axes = [
        [v for v in fine if lo <= v <= hi and (not whole or v == int(v))]
        for (lo, hi), whole in zip(box, integral, strict=True)
    ]
    return list(itertools.product(*axes))


@settings(max_examples=400)
@given(RESIDUE, RESIDUE, BOX, st.tuples(st.booleans(), st.booleans()))
def test_implication_is_what_enumeration_says(first, second, box, integral):
    events = [e for e in grid(box, integral) if second.admits(e)]
    truth = all(first.admits(e) for e in events)
    answer = first.implied_by(box, second, integral)
    if events:  # with no event at all the answer may be conservative
        assert answer == truth
    assert truth or not answer


def test_conservative_without_knowing_the_attribute_is_integral():
    allowed = Residue.of(allowed={0: [1, 2, 3]})
    box = np.array([[1.0, 3.0]])
    assert allowed.implied_by(box, EMPTY, [True])
    assert not allowed.implied_by(box, EMPTY)
    assert not allowed.implied_by(np.array([[-np.inf, np.inf]]), EMPTY, [True])


def test_an_attribute_that_nobody_asks_about_implies_nothing():
    """x ≠ 2.5 holds for every whole x, and not for an event without x, which the other filter admits."""
    somewhere, anywhere = np.array([[0.0, 9.0]]), np.array([[-np.inf, np.inf]])
    excluded = Residue.of(excluded={0: [2.5]})
    assert excluded.implied_by(somewhere, EMPTY, [True])
    assert excluded.implied_by(anywhere, Residue.of(excluded={0: [3]}), [True])
    assert not excluded.implied_by(anywhere, EMPTY, [True])


def test_equal_residues_hash_alike_and_bad_ones_are_refused():
    assert hash(Residue.of({0: [2, 1, 1]})) == hash(Residue(((0, (1.0, 2.0)),)))
    with pytest.raises(CoverlayError, match="ascending"):
        Residue(((0, (2.0, 1.0)),))
    with pytest.raises(CoverlayError, match="ascending"):
        Residue.of({0: [float("nan")]})
    assert Residue.of({0: []}) == EMPTY
    assert not Residue.of(allowed={0: []}).admits([1.0])
