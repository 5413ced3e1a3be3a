"""The canopy's corners: extreme coordinates, more results than its lists are made for, and what is an event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topk
from coverlay import CoverlayError
from tests.topk import oracles
from tests.topk.strategies import catalogues
from topk.canopy import query as canopy_query
from topk.canopy.index import Canopy
from topk.kernels import threads

HUGE = float(np.finfo(np.float64).max)
# Neighbouring floats, both zeros, what is too wide to subtract, and what is too narrow to divide by.
VALUES = st.sampled_from(
    [-HUGE, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0000000000000002, 1.0000000000000004, 2.0, 1e308, HUGE]
)
QUIET = settings(max_examples=100, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("workers", [1, 3])
@QUIET
@given(data=st.data())
def test_agrees_with_the_oracle_at_every_end(semantics: str, workers: int, data: st.DataObject) -> None:
    """Also where so few intervals are shared among threads, and for more results than the lists are made for."""
    catalogue = data.draw(catalogues(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "WORKERS", workers)
        patch.setattr(threads, "_WORTH_IT", -1)
        index = Canopy(catalogue, semantics, depth=data.draw(st.sampled_from([1, 2, 32])))
    ends = np.concatenate((catalogue.lo, catalogue.hi, [[3.0]]))[:, 0]
    ends = ends[np.isfinite(ends)]
    events = np.concatenate((ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf), [np.nan, np.inf, -np.inf]))
    every = [oracles.top(catalogue, event, None, semantics) for event in events[:, None]]
    for k in (0, 1, 2, 3, 100, None):
        expected = [answer[:k] for answer in every]
        assert [index.top(event, k) for event in events[:, None]] == expected
        assert list(index.top_many(events[:, None], k)) == expected
    index.check()
    for deeper in index._deeper.values():
        deeper.check()
    assert index.stats.queries == 12 * len(events)


@QUIET
@given(st.lists(st.tuples(VALUES, VALUES, st.integers(0, 2)), min_size=1, max_size=8), st.lists(VALUES, max_size=6))
def test_extreme_coordinates(rows: list[tuple[float, float, int]], values: list[float]) -> None:
    lo, hi = [[min(a, b)] for a, b, _ in rows], [[max(a, b)] for a, b, _ in rows]
    catalogue = topk.Catalogue.from_boxes(lo, hi, [float(s) for _, _, s in rows])
    index = Canopy(catalogue, depth=2)
    index.check()
    for event in np.array(values)[:, None]:
        for k in (1, 2, 3):
            assert index.top(event, k) == oracles.top(catalogue, event, k, "exact")


@pytest.mark.parametrize("spread", [1.0, 0.02, 1e-4])
def test_deeper_lists_hold_few_entries_and_agree(spread: float) -> None:
    """Cells grow with the depth: space and work are linear in n and k at any depth, n itself included."""
    n = 5000
    rng = np.random.default_rng(6)
    lo = rng.random((n, 1))
    catalogue = topk.Catalogue.from_boxes(lo, lo + spread * rng.random((n, 1)), rng.random(n))
    index = Canopy(catalogue)
    events = rng.random((20, 1))
    every = [oracles.top(catalogue, event, None, "exact") for event in events]
    for k in (33, 200, 1000, None):
        expected = [answer[:k] for answer in every]
        index.stats.reset()
        assert [index.top(event, k) for event in events] == expected
        assert list(index.top_many(events, k)) == expected
        assert index.stats.entries / 40 < 8 * (n if k is None else k) + 500
    assert sorted(index._deeper) == ([] if spread < 0.001 else [64, 256, 1024, 8192])
    for deeper in index._deeper.values():
        assert deeper.nbytes < index.nbytes + n * 120


def test_more_results_than_the_depth_for_an_interval_event() -> None:
    """What has no record, because two better ones cover it, still comes third, before what matters further out."""
    lo = [[0.0]] * 2 + [[40.0]] * 10 + [[-50.0 - i] for i in range(10)]
    hi = [[100.0]] * 2 + [[60.0]] * 10 + [[150.0 + i] for i in range(10)]
    catalogue = topk.Catalogue.from_boxes(lo, hi, [float(30 - i) for i in range(22)])
    index = Canopy(catalogue, depth=2)
    assert 5 <= int(index._buffer[canopy_query.N]) < 22
    assert index.top_overlapping([45.0], [55.0], 5) == oracles.overlapping(catalogue, [45.0], [55.0], 5)


@pytest.mark.parametrize("event", [[0.5], 0.5, [[0.5]], [0.1, 0.2], [], ["x"], [3], np.array([2**53 + 3])])
@pytest.mark.parametrize("k", [5, 0, -1, None])
def test_takes_what_the_scan_takes(event: Any, k: int | None) -> None:
    """2⁵³ + 3 is 2⁵³ + 4 as a float, and in another interval than the integer would be."""
    big = 2.0**53
    catalogue = topk.Catalogue.from_boxes([[big], [big + 4], [0.0]], [[big + 8], [big + 8], [1.0]], [1.0, 2.0, 3.0])
    canopy, scan = topk.create("canopy", catalogue), topk.create("scan", catalogue)
    try:
        expected = scan.top(event, k)
    except (CoverlayError, ValueError) as error:
        with pytest.raises(type(error)):
            canopy.top(event, k)
    else:
        assert canopy.top(event, k) == expected


def test_updates_reach_a_caller_who_has_kept_the_method() -> None:
    rng = np.random.default_rng(3)
    lo = rng.random((3000, 1))
    index = topk.create("canopy", topk.Catalogue.from_boxes(lo, lo + 0.1, rng.random(3000)))
    top = index.top
    before = top([0.5], 20)
    index.add(10**6, [-np.inf], [np.inf], 9.0)
    assert top([0.5], 20) == [(10**6, 9.0), *before[:19]]
    index.remove(10**6)
    assert top([0.5], 20) == before
    index.remove(before[0][0])
    assert top([0.5], 19) == before[1:]


def test_work_of_parts_is_counted_once() -> None:
    """A run counts for the whole, and so does a deeper canopy; also in a batch of one event."""
    lo = np.zeros((600, 1))
    hi = np.where(np.arange(600)[:, None] < 100, 1.0, 0.1)
    index = topk.create("canopy", topk.Catalogue.from_boxes(lo, hi, np.arange(600.0)), depth=4)
    stats = index.stats
    assert len(index.top(0.9, 4)) == 4
    assert (stats.queries, stats.nodes, stats.rebuilds) == (1, 1, 1)
    before = stats.entries
    assert [len(answer) for answer in index.top_many([[0.05]], 500)] == [500]
    assert (stats.queries, stats.rebuilds) == (2, 2)
    assert stats.entries >= before + 500
