"""Mistakes are refused in one sentence; options do what they say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import topk
from coverlay import CoverlayError
from tests.topk import oracles
from topk.papers.threshold_merge import StreamIndex


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[0.0]], [1.0]), "greater than hi"),
        (([[np.nan]], [[0.0]], [1.0]), "is NaN"),
        (([[0.0]], [[0.0, 1.0]], [1.0]), "same shape"),
        (([[0.0]], [[1.0]], [np.inf]), "finite"),
        (([[0.0]], [[1.0]], [1.0, 2.0]), "shape"),
    ],
)
def test_bad_catalogues(arguments: tuple[list, list, list], message: str) -> None:
    with pytest.raises(CoverlayError, match=message):
        topk.Catalogue.from_boxes(*arguments)


def test_bad_ids_mentions_and_residues() -> None:
    box = ([[0.0], [0.0]], [[1.0], [1.0]], [1.0, 2.0])
    with pytest.raises(CoverlayError, match="7 occurs more than once"):
        topk.Catalogue.from_boxes(*box, ids=[7, 7])
    with pytest.raises(CoverlayError, match="without mentioning"):
        topk.Catalogue.from_boxes(*box, mentioned=[[True], [False]])
    with pytest.raises(CoverlayError, match="row 5"):
        topk.Catalogue.from_boxes(*box, exclusions={5: (((0, (1.0,)),), ())})


def test_weights_and_scores() -> None:
    both = topk.Catalogue.from_boxes([[0.0, 0.0]], [[1.0, 1.0]], [[1.0, 2.0]])
    assert both.scores.tolist() == [3.0]
    shared = topk.Catalogue.from_boxes([[0.0, -np.inf]], [[1.0, np.inf]], [3.0])
    assert shared.weights.tolist() == [[3.0, 0.0]]
    negative = topk.Catalogue.from_boxes([[0.0]], [[1.0]], [-1.0])
    assert topk.create("scan", negative).top([0.5], 1) == [(0, -1.0)]
    with pytest.raises(CoverlayError, match="weights ≥ 0"):
        topk.create("scan", negative, semantics="relaxed")


def test_unknown_names_and_options_list_the_valid_ones() -> None:
    empty = topk.Catalogue.empty(1)
    with pytest.raises(CoverlayError, match="sopt-rtree"):
        topk.create("btree", empty)
    with pytest.raises(CoverlayError, match="it has: b, buffer, combine"):
        topk.create("sopt-rtree", empty, fanout=3)
    with pytest.raises(CoverlayError, match="built over a catalogue, not over array"):
        topk.create("scan", np.zeros((3, 2)))
    with pytest.raises(CoverlayError, match="exact, relaxed"):
        topk.create("scan", empty, semantics="fuzzy")
    with pytest.raises(CoverlayError, match="shape"):
        topk.create("auto", empty).top([1.0, 2.0], 1)
    with pytest.raises(CoverlayError, match="k must be"):
        topk.create("auto", empty).top([1.0], -1)


@pytest.mark.parametrize("name", ["scored-rtree", "ir-tree", "sopt-rtree"])
@pytest.mark.parametrize("combine", ["max", math.hypot])
def test_other_combinations(name: str, combine: object) -> None:
    """Any monotone combination of the weights, also for rows still in the buffer of a static index."""
    rng = np.random.default_rng(1)
    n = 60
    lo = rng.random((n, 2))
    weights = rng.integers(1, 9, (n, 2)).astype(float)
    monotone = (lambda w: math.hypot(*w)) if combine is math.hypot else combine
    index = topk.create(
        name, topk.Catalogue.from_boxes(lo[:40], lo[:40] + 0.4, weights[:40]), semantics="relaxed", combine=monotone
    )
    for i in range(40, n):
        index.add(i, lo[i], lo[i] + 0.4, 1.0, weights[i])
    for event in rng.random((10, 2)):
        held = (lo <= event) & (event <= lo + 0.4)
        value = {i: max(w) if combine == "max" else math.hypot(*w) for i, w in enumerate(weights * held)}
        expected = sorted(((i, v) for i, v in value.items() if held[i].any()), key=lambda p: (-p[1], p[0]))
        assert index.top(event, 5) == expected[:5]
    with pytest.raises(CoverlayError, match="relaxed"):
        topk.create(name, topk.Catalogue.empty(2), combine="max")


def test_threshold_algorithm_stops_early() -> None:
    """The k best of n matches must not cost n getnexts."""
    rng = np.random.default_rng(4)
    n = 4000
    weights = rng.random((n, 2))
    zeros = np.zeros((n, 2))
    catalogue = topk.Catalogue.from_boxes(zeros, zeros + 1, weights)
    index = topk.create("sopt-rtree", catalogue, semantics="relaxed")
    assert index.top([0.5, 0.5], 5) == oracles.top(catalogue, [0.5, 0.5], 5, "relaxed")
    assert index.stats.getnexts < n / 2
    assert isinstance(index._runs[0].index, StreamIndex)  # type: ignore[attr-defined]


def test_auto_changes_structure_with_size_and_dimensions() -> None:
    rng = np.random.default_rng(0)
    kinds = []
    for n, d in ((10, 1), (5000, 1), (5000, 3)):
        lo = rng.random((n, d))
        index = topk.create("auto", topk.Catalogue.from_boxes(lo, lo + 0.1, rng.random(n)))
        kinds.append(index._runs[0].index.name)  # type: ignore[attr-defined]
    assert kinds == ["scan", "canopy", "slices"]


def test_one_row_is_what_from_boxes_makes() -> None:
    """The short cut for a single subscription and the general way agree, errors included."""
    inf = np.inf
    rows = [
        ([0.0, -inf], [1.0, inf], None, None, ((), ())),
        ([0.0, -inf], [1.0, 2.0], [2.0, 5.0], None, ((), ())),
        ([0.0, -inf], [1.0, inf], [2.0, 5.0], [True, True], ((), ())),
        ([-inf, -inf], [inf, inf], None, None, ((), ())),
        ([0.0, -inf], [1.0, inf], None, None, (((1, (3.0,)),), ())),
    ]
    for lo, hi, weights, mentioned, residue in rows:
        short = topk.Catalogue.one(7, np.array(lo), np.array(hi), 3.0, weights, mentioned, residue)
        general = topk.Catalogue.from_boxes(
            [lo],
            [hi],
            [3.0],
            ids=[7],
            weights=None if weights is None else [weights],
            mentioned=None if mentioned is None else [mentioned],
            exclusions=None if residue == ((), ()) else {0: residue},
        )
        for column in ("ids", "lo", "hi", "scores", "weights", "mentioned"):
            assert getattr(short, column).tolist() == getattr(general, column).tolist(), column
        assert short.residues == general.residues
    index = topk.create("scan", topk.Catalogue.empty(1))
    wrong = (([2.0], [1.0], 1.0, "greater"), ([np.nan], [1.0], 1.0, "NaN"), ([0.0], [1.0], np.inf, "finite"))
    for lo, hi, score, message in wrong:
        with pytest.raises(CoverlayError, match=message):
            index.add(1, lo, hi, score)
    with pytest.raises(CoverlayError, match="without mentioning"):
        index.add(1, [0.0], [1.0], 1.0, mentioned=[False])
    assert len(index) == 0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("canopy", {"depth": "x"}, "depth is 'x'; it must be a whole number"),
        ("sopt-rtree", {"b": 2.5}, "b is 2.5; it must be a whole number"),
        ("ir-tree", {"b": True}, "b is True; it must be a whole number"),
        ("lci", {"segment": "yes"}, "segment is 'yes'; it must be true or false"),
        ("dlist", {"low": "x"}, "low is 'x'; it must be a number"),
        ("auto", {"buffer": "x"}, "buffer is 'x'; it must be a whole number"),
        ("canopy", {"depth": 0}, "the depth must be at least 1, not 0"),
        ("sopt-rtree", {"b": 1}, "the branching factor b must be between 2 and 1024, not 1"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_stored(name, options, message) -> None:
    with pytest.raises(CoverlayError, match=re.escape(message)):
        topk.create(name, topk.Catalogue.empty(1), **options)


@pytest.mark.parametrize("name", topk.methods())
def test_with_one_attribute_a_number_is_an_event(name: str) -> None:
    catalogue = topk.Catalogue.from_boxes([[0.0], [1.0], [2.0]], [[2.0], [3.0], [4.0]], [1.0, 2.0, 3.0])
    index = topk.create(name, catalogue)
    for number in (1.5, np.float64(1.5), 2, np.array(2.0)):
        assert index.top(number, 2) == index.top([float(number)], 2)
    assert index.top(float("nan"), 2) == []
    square = topk.Catalogue.from_boxes([[0.0, 0.0]], [[2.0, 2.0]], [1.0])
    if name != "canopy":  # which knows one attribute only
        with pytest.raises(CoverlayError, match=r"shape \(2,\), not \(\)"):
            topk.create(name, square).top(1.5, 2)
