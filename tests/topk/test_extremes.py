"""What broke the matchers of boxes: lost weights, odd ids and events, ranges beyond the largest float, leaks."""

from __future__ import annotations

import numpy as np
import pytest

import topk
from coverlay import CoverlayError
from tests.topk import oracles

DYNAMIC = ("scan", "ir-tree", "is-list", "ibs-tree", "sopt-rtree", "auto")
GRIDS = ("sci", "sci-bc", "sci-bv", "sci-bv-dt", "lci", "lci-bc", "lci-bv", "lci-bv-dt", "dlist")


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_new_score_keeps_the_proportions_of_weights(name: str) -> None:
    catalogue = topk.Catalogue.from_boxes([[0.0, 0.0]], [[1.0, 1.0]], [10.0], weights=[[9.0, 1.0]])
    index = topk.create(name, catalogue, semantics="relaxed")
    index.update_score(0, 10.0)
    assert index.top([0.5, 7.0], 1) == [(0, 9.0)]
    index.update_score(0, 20.0)
    assert index.top([0.5, 7.0], 1) == [(0, 18.0)]
    assert index.top([0.5, 0.5], 1) == [(0, 20.0)]
    index.update_score(0, 3.0, [1.0, 2.0])
    assert index.top([0.5, 7.0], 1) == [(0, 1.0)]


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_score_that_is_refused_changes_nothing(name: str) -> None:
    index = topk.create(name, topk.Catalogue.from_boxes([[0.0]], [[1.0]], [1.0], ids=[7]), semantics="relaxed")
    for score, weights in ((np.nan, None), ("x", None), (1.0, [np.inf]), (-1.0, None)):
        with pytest.raises(CoverlayError):
            index.update_score(7, score, weights)
    assert index.top([0.5], 1) == [(7, 1.0)]
    index.check()


@pytest.mark.parametrize("name", [*DYNAMIC, "slices"])
@pytest.mark.filterwarnings("error")
def test_any_score_can_follow_any_other(name: str) -> None:
    catalogue = topk.Catalogue.from_boxes([[0.0], [0.0]], [[1.0], [1.0]], [-1e300, -1.7e308])
    index = topk.create(name, catalogue)
    for score in (5e-324, 3.0, 1e-310, 1.7e308, -5e-324, 0.0, 2.0):
        index.update_score(0, score)
        assert index.top([0.5], 1) == [(0, score)]
    index.check()


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.filterwarnings("error")
def test_weights_keep_their_proportions_through_a_score_of_next_to_nothing(name: str) -> None:
    catalogue = topk.Catalogue.from_boxes([[0.0, 0.0]], [[1.0, 1.0]], [4.0], weights=[[3.0, 1.0]])
    index = topk.create(name, catalogue, semantics="relaxed")
    index.update_score(0, 2e-323)
    index.update_score(0, 8.0)
    assert index.top([0.5, 7.0], 1) == [(0, 6.0)]


@pytest.mark.parametrize("name", topk.methods())
def test_box_matchers_refuse_odd_ids_and_events(name: str) -> None:
    index = topk.create(name, topk.Catalogue.from_boxes([[0.0], [0.0]], [[1.0], [1.0]], [1.0, 1.0], ids=[3, 4]))
    for id in (1.5, 2**63, -(2**63) - 1, "7", None, [1], True):
        for change in (lambda id: index.add(id, [0.0], [1.0], 1.0), index.remove, lambda id: index.update_score(id, 1)):
            with pytest.raises(CoverlayError, match="an id must be a whole number"):
                change(id)
    for event in ("text", "0.5", ["0.5"], [object()], {"a": 1}, [[0.5], [0.5, 1.0]], np.array(["0.5"])):
        for ask in (index.top, index.top_many):
            with pytest.raises(CoverlayError, match=r"must be numbers|must have shape"):
                ask(event, 1)
        with pytest.raises(CoverlayError):
            index.top_overlapping(event, event, 1)
    for k in (2.5, "3", -1, [1], 1.0):
        for event in ([0.5], 0.5, np.array([0.5])):
            with pytest.raises(CoverlayError, match="k must be"):
                index.top(event, k)
    for bounds in ((["a"], [1.0]), ([0.0], "b"), ([0.0], [None, 1])):
        with pytest.raises(CoverlayError):
            index.add(9, *bounds, 1.0)
    with pytest.raises(CoverlayError, match="score"):
        index.add(9, [0.0], [1.0], "high")
    for id in (-(2**63), 2**63 - 1, np.int64(-7)):
        index.add(id, [0.0], [1.0], 1.0)
    assert [id for id, _ in index.top([0.5], None)] == [-(2**63), -7, 3, 4, 2**63 - 1]
    index.check()


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("cells", [2, 3, 16])
def test_grids_of_ranges_beyond_the_largest_float(name: str, cells: int) -> None:
    bounds = [-1.7e308, -1e308, -1.0, 0.0, 1.0, 1e308, 1.7e308]
    pairs = [(low, high) for low in bounds for high in bounds if low <= high]
    lo, hi = np.array(pairs).T
    catalogue = topk.Catalogue.from_boxes(lo[:, None], hi[:, None], np.arange(len(pairs), dtype=float))
    for start in (len(pairs), 2):  # all at once, and one at a time
        first = topk.Catalogue.from_boxes(lo[:start, None], hi[:start, None], np.arange(start, dtype=float))
        index = topk.create(name, first, cells=cells)
        for i in range(start, len(pairs)):
            index.add(i, lo[i : i + 1], hi[i : i + 1], float(i))
        index.check()
        for value in (*bounds, np.inf, -np.inf, 0.5):
            assert index.top([value], None) == oracles.top(catalogue, [value], None, "exact")


def test_small_weights_beside_huge_ones_are_not_ruled_out() -> None:
    """A bound that is a difference of sums has the rounding error of the largest of them."""
    lo = [[0.0, 0.0], [5.0, 0.0], [0.0, 0.0]]
    weights = [[1e300, 1.0], [1e300, 1.0], [0.0, 0.5]]
    catalogue = topk.Catalogue.from_boxes(lo, np.array(lo) + 1, [1.0] * 3, weights=weights)
    for name in ("slices", "scan", "sopt-rtree"):
        index = topk.create(name, catalogue, semantics="relaxed")
        for k in (1, 2, 3):
            assert index.top([0.5, 0.5], k) == oracles.top(catalogue, [0.5, 0.5], k, "relaxed")


@pytest.mark.parametrize("b", [3, 50])
def test_the_ir_tree_uses_again_what_updates_free(b: int) -> None:
    """Rising scores empty one end of a tree and fill the other: 1,581 bytes per entry once, after 24,000 of them."""
    rng = np.random.default_rng(0)
    n = 300
    lo = rng.random((n, 1)) * 1000
    catalogue = topk.Catalogue.from_boxes(lo, lo + 2000, rng.random(n))
    index = topk.create("ir-tree", catalogue, b=b)
    sizes = []
    for step in range(6 * n):
        index.update_score(step % n, 2.0 + step)
        if step % n == n - 1:
            sizes.append(index._indexes[0].nbytes / n)  # type: ignore[attr-defined]
    index.check()
    assert max(sizes) < 4 * 37, sizes
    assert sizes[-1] <= sizes[1], f"it grows: {sizes}"


def test_closed_bounds_ties_and_k_of_the_scan() -> None:
    """What every matcher promises, on the simplest one: for faults that would take a minute to compile elsewhere."""
    n = 257  # one more than a block
    ids = list(range(n - 1, -1, -1))
    index = topk.create("scan", topk.Catalogue.from_boxes([[1.0]] * n, [[2.0]] * n, [5.0] * n, ids=ids))
    for value in (1.0, 2.0):
        assert index.top([value], None) == [(id, 5.0) for id in range(n)]
        assert index.top([value], 3) == [(0, 5.0), (1, 5.0), (2, 5.0)]
    for value in (np.nextafter(1.0, 0.0), np.nextafter(2.0, 3.0)):
        assert index.top([value], None) == []


def test_a_residue_may_hide_the_best() -> None:
    """The k best by their boxes are not the k best: `x ≠ 0.5` takes the first ones away."""
    n = 40
    exclusions = {row: (((0, (0.5,)),), ()) for row in range(30)}
    catalogue = topk.Catalogue.from_boxes(
        [[0.0]] * n, [[1.0]] * n, np.arange(n, 0, -1, dtype=float), exclusions=exclusions
    )
    index = topk.create("scan", catalogue)
    assert index.top([0.5], 2) == [(30, 10.0), (31, 9.0)]
    assert index.top([0.25], 2) == [(0, 40.0), (1, 39.0)]
    assert index.top_overlapping([0.5], [0.6], 2) == [(0, 40.0), (1, 39.0)]
