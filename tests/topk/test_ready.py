"""Ready answers against the oracle, where they are used, and that they notice a broken one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topk
from coverlay import CoverlayError
from sim.workloads.regional_zipf import regional_zipf, zipf_lengths
from tests.topk import oracles
from tests.topk.test_conformance import catalogues
from topk import canopy_query, threads
from topk import ready as ready_module
from topk.canopy import Canopy
from topk.ready import READY_DEPTH

ALWAYS = 1e9  # bytes per subscription: small catalogues have ready answers too
HUGE = float(np.finfo(np.float64).max)
# Neighbouring floats, both zeros, what is too wide to subtract, and what is too narrow to divide by.
VALUES = st.sampled_from(
    [-HUGE, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0000000000000002, 1.0000000000000004, 2.0, 1e308, HUGE]
)
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def paper(n: int, seed: int = 3) -> tuple[topk.Catalogue, Any]:
    rng = np.random.default_rng(seed)
    points, half = regional_zipf(rng, n + 300, 1)[:, 0], zipf_lengths(rng, n, 1)[:, 0]
    return topk.Catalogue.from_boxes(points[:n] - half, points[:n] + half, 1 - half), points[n:, None]


def ready_of(index: Canopy) -> Any:
    assert index._ready is not None
    return index._ready


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("workers", [1, 2, 5])
@QUIET
@given(data=st.data())
def test_agrees_with_the_oracle(semantics: str, workers: int, data: st.DataObject) -> None:
    """Also where so few intervals are shared among threads."""
    catalogue = data.draw(catalogues(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "WORKERS", workers)
        patch.setattr(threads, "_WORTH_IT", -1)
        index = Canopy(catalogue, semantics, depth=data.draw(st.sampled_from([1, 2, 32])), ready=ALWAYS)
    index.check()
    ends = np.concatenate((catalogue.lo, catalogue.hi, [[3.0]]))[:, 0]
    ends = ends[np.isfinite(ends)]
    events = np.concatenate((ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf), [np.nan, np.inf, -np.inf]))
    for k in (0, 1, 2, 3, 100, None):
        for event in events[:, None]:
            assert index.top(event, k) == oracles.top(catalogue, event, k, semantics)
    index.check()
    assert index.stats.queries == 6 * len(events)


@QUIET
@given(st.lists(st.tuples(VALUES, VALUES, st.integers(0, 2)), min_size=1, max_size=8), st.lists(VALUES, max_size=6))
def test_extreme_coordinates(rows: list[tuple[float, float, int]], values: list[float]) -> None:
    lo, hi = [[min(a, b)] for a, b, _ in rows], [[max(a, b)] for a, b, _ in rows]
    catalogue = topk.Catalogue.from_boxes(lo, hi, [float(s) for _, _, s in rows])
    index = Canopy(catalogue, depth=2, ready=ALWAYS)
    index.check()
    for event in np.array(values)[:, None]:
        for k in (1, 2, 3):
            assert index.top(event, k) == oracles.top(catalogue, event, k, "exact")


def test_used_where_few_intervals_matter_and_counted() -> None:
    catalogue, events = paper(60_000)
    assert Canopy(catalogue, ready=0.0)._ready is None
    index, plain = Canopy(catalogue, ready=ALWAYS), Canopy(catalogue, ready=0.0)
    ready = ready_of(index)
    for event in events:
        for k in (1, 20, READY_DEPTH, READY_DEPTH + 1, 32):
            assert index.top(event, k) == plain.top(event, k)
    stats = index.stats
    assert stats.queries == plain.stats.queries == 5 * len(events)
    assert stats.nodes == stats.queries, "one segment or one cell each"
    plain.stats.reset()
    for event in events:
        for k in (READY_DEPTH + 1, 32):
            plain.top(event, k)
    assert stats.entries == plain.stats.entries, "ready answers compare nothing"
    assert index.nbytes == plain.nbytes + ready.nbytes
    answer = index.top(events[0], 20)
    answer.clear()
    assert len(index.top(events[0], 20)) == 20, "an answer is the caller's own"


def test_the_rule_and_the_bytes() -> None:
    """No more than was allowed for, and none where most intervals matter. Several parts' worth of cuts."""
    catalogue, _ = paper(60_000)
    index = Canopy(catalogue, ready=ALWAYS)
    ready = ready_of(index)
    matter = int(index._buffer[canopy_query.N])
    assert len(threads.parts(2 * matter, 2 * matter * READY_DEPTH)) == threads.WORKERS
    ready.check(index._listed)
    held = [pair for pair in ready._answers if pair is not None]
    made = len({id(pair) for pair in held})
    assert made <= ready._pairs <= made + READY_DEPTH, "pairs are shared; few are made in vain"
    assert ready.nbytes <= ready_module.most_bytes(matter, READY_DEPTH) + READY_DEPTH * 8
    rng = np.random.default_rng(1)
    lo = rng.random(20_000)
    assert Canopy(topk.Catalogue.from_boxes(lo, lo + 1e-4, rng.random(20_000)))._ready is None
    wide = Canopy(topk.Catalogue.from_boxes(lo * 0.05, 1 - lo * 0.05, rng.random(20_000)))
    assert 0 < ready_of(wide).nbytes <= 64 * 20_000
    with pytest.raises(CoverlayError, match="not -1"):
        Canopy(catalogue, ready=-1)


@pytest.mark.parametrize("event", [[0.5], 0.5, [[0.5]], [0.1, 0.2], [], ["x"], [3]])
@pytest.mark.parametrize("k", [5, 0, -1, None])
def test_odd_events_are_treated_as_without(event: Any, k: int | None) -> None:
    catalogue, _ = paper(3000)
    with_ready, without = (Canopy(catalogue, ready=ready) for ready in (ALWAYS, 0.0))
    assert with_ready._ready is not None
    for given_event in (event, np.array(event)):
        try:
            expected = without.top(given_event, k)
        except (CoverlayError, ValueError) as error:
            with pytest.raises(type(error)):
                with_ready.top(given_event, k)
        else:
            assert with_ready.top(given_event, k) == expected


def test_integers_are_rounded_as_everywhere() -> None:
    """2⁵³ + 3 is 2⁵³ + 4 as a float, and in another segment than the integer would be."""
    big = 2.0**53
    catalogue = topk.Catalogue.from_boxes([[big], [big + 4]], [[big + 8], [big + 8]], [1.0, 2.0])
    index = Canopy(catalogue, ready=ALWAYS)
    assert index._ready is not None
    assert index.top(np.array([2**53 + 3]), 2) == [(1, 2.0), (0, 1.0)]


def test_updates_end_the_use_of_ready_answers() -> None:
    """Also for a caller who has kept the method."""
    catalogue, events = paper(3000)
    index = topk.create("canopy", catalogue, ready=ALWAYS)
    top = index.top
    assert index.quick_top is not None
    before = top(events[0], 20)
    index.add(10**6, [-np.inf], [np.inf], 9.0)
    assert top(events[0], 20) == [(10**6, 9.0), *before[:19]]
    index.remove(10**6)
    assert top(events[0], 20) == before
    index.remove(before[0][0])
    assert top(events[0], 19) == before[1:]


def test_check_notices_a_wrong_answer() -> None:
    catalogue, _ = paper(3000)
    index = Canopy(catalogue, ready=ALWAYS)
    ready = ready_of(index)
    ready.check(index._listed)
    middle = len(ready) // 2 * ready.depth
    kept = ready._answers[middle]
    ready._answers[middle] = (-1, 0.0)
    with pytest.raises(AssertionError, match="ready answer"):
        ready.check(index._listed)
    ready._answers[middle] = kept
    ready.check(index._listed)
    ready._cuts[len(ready) // 2] = np.nextafter(ready._cuts[len(ready) // 2], np.inf)
    with pytest.raises(AssertionError, match="ready answer"):
        ready.check(index._listed)


def test_more_results_than_the_depth_for_an_interval_event() -> None:
    """What has no record, because two better ones cover it, still comes third, before what matters further out."""
    lo = [[0.0]] * 2 + [[40.0]] * 10 + [[-50.0 - i] for i in range(10)]
    hi = [[100.0]] * 2 + [[60.0]] * 10 + [[150.0 + i] for i in range(10)]
    catalogue = topk.Catalogue.from_boxes(lo, hi, [float(30 - i) for i in range(22)])
    index = Canopy(catalogue, depth=2)
    assert 5 <= int(index._buffer[canopy_query.N]) < 22
    assert index.top_overlapping([45.0], [55.0], 5) == oracles.overlapping(catalogue, [45.0], [55.0], 5)
