"""Ids and boxes that are none, ids that are equal but not the same, domains beyond the largest float."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

import covering
from covering.filters import FilterIndex
from coverlay import CoverlayError


@pytest.mark.parametrize("name", ["scan", "kdtree", "auto"])
def test_ids_that_are_none(name):
    index = covering.create(name, [[0.0, 8.0]])
    index.add("a", [[1, 2]])
    for wrong, reason in (([1], "hashable"), ({}, "hashable"), (None, "no cover"), (np.arange(3), "hashable")):
        for change in (lambda id: index.add(id, [[1, 2]]), index.remove, lambda id: index.add_many([id], [[[1, 2]]])):
            with pytest.raises(CoverlayError, match=reason):
                change(wrong)
    with pytest.raises(CoverlayError, match="list or an array"):
        index.add_many(7, [[[1, 2]]])
    assert None not in index
    index.check()
    assert index.ids() == ["a"]


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("twin", [7.0, np.int64(7), np.float64(7), Decimal(7), np.uint8(7)])
def test_equal_ids_are_one_id(twin):
    """Also in the compact form of ids, which begins with the sixth here."""
    for count in (1, 20):
        index = covering.create("scan", [[0.0, 8.0]])
        index.add_many(range(7, 7 + count), [[[1, 2]]] * count)
        for add in (lambda index: index.add(twin, [[1, 2]]), lambda index: index.add_many([twin], [[[1, 2]]])):
            with pytest.raises(CoverlayError, match="stored"):
                add(index)
        assert twin in index
        index.remove(twin)
        assert 7 not in index
        index.add(twin, [[1, 2]])
        assert sorted(index.ids()) == list(range(7, 7 + count))
        assert all(type(id) is int for id in index.ids())
        index.check()


NO_BOXES = ("text", [["0", "1"]], [[0, "a"]], [[object(), 1]], [[0, 1], [0]], {}, None, [[1j, 2]])
TEXT_IN_OBJECTS = tuple(np.array([[0, text]], dtype=object) for text in ("1", b"1"))


@pytest.mark.parametrize("name", ["scan", "packed", "quadtree"])
def test_boxes_that_are_none(name):
    index = covering.create(name, [[0.0, 8.0]])
    for wrong in (*NO_BOXES, *TEXT_IN_OBJECTS):
        for ask in (lambda box: index.add(1, box), index.find_cover, index.find_covered, index.overlapping):
            with pytest.raises(CoverlayError, match="box"):
                ask(wrong)
        with pytest.raises(CoverlayError, match="box"):
            index.find_cover_many([wrong])
        with pytest.raises(CoverlayError, match="domain"):
            covering.create(name, wrong)
    index.add(1, np.array([[0, np.float64(1)]], dtype=object))
    assert len(index) == 1


@pytest.mark.parametrize("name", covering.methods())
def test_a_domain_wider_than_the_largest_float(name):
    """Widths beside it that are nearly nothing: the volume of a box is then no number."""
    for narrow in (1.0, 1e-200, 5e-324):
        domain = [[0.0, narrow], [0.0, narrow], [-1.7e308, 1.7e308]]
        index = covering.create(name, domain)
        boxes = [[[0, narrow], [0, narrow], [-1e308, high]] for high in (-1e308, 0.0, 1.0, 1e308)]
        index.add_many(range(4), boxes)
        for i, box in enumerate(boxes):
            found = index.find_cover(box)
            assert found is not None
            assert found >= i
            assert index.find_covered(box) == list(range(i + 1))
        index.check()


def test_residues_decide_between_filters():
    """The box covers; whether the filter does, is for the residue to say."""
    without = covering.Residue.of(excluded={0: [5.0]})
    index = FilterIndex("scan", [[0.0, 8.0]])
    index.add("without 5", [[0, 8]], without)
    assert index.find_cover([[4, 6]]) is None
    assert index.find_cover([[6, 7]]) == "without 5"
    assert index.find_cover([[4, 6]], without) == "without 5"
    assert index.find_covered([[0, 8]], without) == ["without 5"]
    index.add("all", [[4, 6]])
    assert index.find_covered([[0, 8]], without) == ["without 5"]
    assert index.find_covered([[0, 8]]) == ["all", "without 5"]
    assert index.find_cover([[4, 6]], group="other") is None
