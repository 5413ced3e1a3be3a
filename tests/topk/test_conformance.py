"""One suite for every matcher and both semantics: what `topk.create` returns agrees with the oracle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topk
from tests.topk import oracles
from tests.topk.strategies import DIMENSIONS, build, catalogues, dimensions_of, events

EXAMPLES = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def methods_for(dimensions: int) -> list[str]:
    return [name for name in topk.methods() if dimensions in dimensions_of(name)]


# What is drawn is asked of every matcher: drawing and the oracle take longer than answers do.


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@EXAMPLES
@given(data=st.data())
def test_agrees_with_the_oracle(semantics: str, data: st.DataObject) -> None:
    d = data.draw(st.sampled_from(DIMENSIONS))
    catalogue = data.draw(catalogues(d))
    points = data.draw(st.lists(events(d), min_size=1, max_size=3))
    k = data.draw(st.sampled_from([0, 1, 2, 5, 100, None]))
    expected = [oracles.top(catalogue, point, k, semantics) for point in points]
    for name in methods_for(d):
        index = build(name, catalogue, semantics)
        index.check()
        assert [index.top(point, k) for point in points] == expected, name
        assert [index.top(np.array(point), k) for point in points] == expected, name
        assert list(index.top_many(points, k)) == expected, name
        index.check()


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@settings(EXAMPLES, max_examples=30)
@given(data=st.data())
def test_residues_and_interval_events(semantics: str, data: st.DataObject) -> None:
    d = data.draw(st.sampled_from(DIMENSIONS))
    catalogue, plain = data.draw(catalogues(d, residues=True)), data.draw(catalogues(d))
    point, other = data.draw(events(d)), data.draw(events(d))
    k = data.draw(st.sampled_from([1, 3, None]))
    low, high = np.minimum(point, other), np.maximum(point, other)
    expected = oracles.top(catalogue, point, k, semantics)
    met, met_plain = (oracles.overlapping(boxes, low, high, k, semantics) for boxes in (catalogue, plain))
    for name in methods_for(d):
        index = build(name, catalogue, semantics)
        assert index.top(point, k) == expected, name
        assert index.top_overlapping(low, high, k) == met, name
        assert build(name, plain, semantics).top_overlapping(low, high, k) == met_plain, name


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("name", topk.methods())
def test_stats_of_matchers_are_a_plain_value(name: str, semantics: str) -> None:
    """Work is counted when it is done, in one object; reading it changes nothing. Runs and a buffer included."""
    lo = np.arange(40.0)[:, None]
    index = build(name, topk.Catalogue.from_boxes(lo, lo + 9, lo[:, 0]), semantics)
    stats = index.stats
    for event in ([20.5], 20.5, [np.nan]):
        index.top(event, 3)
    assert stats.queries == 3
    index.top_many([[20.5], [7.0]], 3)
    index.top_overlapping([3.0], [4.0], 3)
    index.top([20.5], None)  # more than lists of depth 2 hold
    assert stats.queries == 7
    done = stats.entries + stats.nodes
    assert done > 0
    index.add(99, [0.0], [50.0], 1.0)
    index.top([20.5], 3)
    assert (stats.queries, stats.inserts) == (8, 1)
    assert stats.entries + stats.nodes > done
    counted = replace(stats)
    assert index.stats is stats
    assert index.stats == counted, "reading does not count"
    index.stats.reset()
    assert index.stats == type(stats)()
    index.top([20.5], 3)
    assert stats.queries == 1


@cache
def larger(d: int) -> tuple[topk.Catalogue, np.ndarray]:
    """Enough intervals for several levels and list chunks; scores with many ties. And points."""
    rng = np.random.default_rng(7)
    n = 1500
    lo = rng.integers(0, 400, (n, d)) / 4
    hi = lo + rng.integers(0, 80, (n, d)) / 4 * rng.integers(0, 3, (n, d))
    lo[rng.random((n, d)) < 0.05] = -np.inf
    unmentioned = rng.random((n, d)) < 0.2
    lo[unmentioned], hi[unmentioned] = -np.inf, np.inf
    catalogue = topk.Catalogue.from_boxes(
        lo, hi, rng.integers(0, 50, n).astype(float), weights=rng.integers(0, 9, (n, d)), ids=rng.permutation(n)
    )
    points = rng.integers(-5, 420, (8, d)) / 4
    points[0, 0] = np.nan
    return catalogue, points


WIDTHS = (0.25, 1.0, 10.0, 60.0, 1000.0, 2.5, 30.0)


@cache
def answers_to_larger(d: int, semantics: str) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
    """All matches of every point, and of the boxes from every point but the first."""
    catalogue, points = larger(d)
    boxes = zip(points[1:], WIDTHS, strict=True)
    return (
        [oracles.top(catalogue, point, None, semantics) for point in points],
        [oracles.overlapping(catalogue, low, low + width, None, semantics) for low, width in boxes],
    )


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("name", topk.methods())
def test_larger_and_random(name: str, semantics: str) -> None:
    d = dimensions_of(name)[-1]
    catalogue, points = larger(d)
    at_points, in_boxes = answers_to_larger(d, semantics)
    index = topk.create(name, catalogue, semantics=semantics)
    for k in (1, 20, None):
        expected = [answer[:k] for answer in at_points]
        assert list(index.top_many(points, k)) == expected
        assert [index.top(point, k) for point in points] == expected
        for low, width, answer in zip(points[1:], WIDTHS, in_boxes, strict=True):
            assert index.top_overlapping(low, low + width, k) == answer[:k]
    assert index.nbytes > 0
    assert index.stats.queries == 69
    assert index.stats.entries + index.stats.nodes > 0


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("name", ["auto", "slices", "ir-tree", "sopt-rtree", "scan"])
def test_hundreds_of_dimensions(name: str, semantics: str) -> None:
    """Three hundred attributes, of which a subscription mentions a few and an event has most."""
    rng = np.random.default_rng(12)
    n, d = 700, 300
    named = rng.random((n, d)) < 0.01
    named[:5] = True  # some mention all
    lo = np.where(named, rng.random((n, d)) * 0.6, -np.inf)
    hi = np.where(named, lo + 0.5, np.inf)
    weights = np.where(named, rng.integers(1, 5, (n, d)), 0)
    catalogue = topk.Catalogue.from_boxes(lo, hi, rng.random(n), weights=weights)
    index = topk.create(name, catalogue, semantics=semantics)
    events = rng.random((4, d))
    events[rng.random((4, d)) < 0.1] = np.nan
    expected = [oracles.top(catalogue, event, 20, semantics) for event in events]
    assert [len(answer) for answer in expected].count(20) == 4
    assert [index.top(event, 20) for event in events] == expected
    assert list(index.top_many(events, 20)) == expected
    low, high = events[0] - 0.1, events[0] + 0.1
    assert index.top_overlapping(low, high, 20) == oracles.overlapping(catalogue, low, high, 20, semantics)
