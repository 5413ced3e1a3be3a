"""Methods that may miss: each only ever misses, says when it may have, and keeps what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covering
from covering import auto
from covering.budget import budget_for
from coverlay import CoverlayError
from sim.workloads.boxes import wide
from tests.covering.oracles import contains, covered, covers
from tests.covering.strategies import DOMAIN, boxes

pytestmark = pytest.mark.usefixtures("small_limits")
FAST = settings(max_examples=60, suppress_health_check=list(HealthCheck))


def size(box: np.ndarray) -> float:
    """Clipped volume with the little extra width that keeps equalities apart from nothing."""
    low, high = np.maximum(box[:, 0], DOMAIN[0]), np.minimum(box[:, 1], DOMAIN[1])
    width = DOMAIN[1] - DOMAIN[0]
    product = 1.0
    for inside in np.maximum(high - low, 0.0).tolist():
        product *= inside + 2.0**-20 * width
    return product


def largest(stored: dict[int, np.ndarray], budget: int) -> dict[int, np.ndarray]:
    chosen = sorted(stored, key=lambda id: (-size(stored[id]), id))[:budget]
    return {id: stored[id] for id in chosen}


@FAST
@given(st.data())
def test_a_budget_looks_at_the_largest_boxes_and_at_nothing_else(data):
    """Whatever came and went, also where a refill is due."""
    budget = data.draw(st.integers(1, 4))
    index = covering.create("budget", [DOMAIN] * 2, budget=budget)
    stored: dict[int, np.ndarray] = {}
    for step in range(data.draw(st.integers(1, 25))):
        if stored and data.draw(st.integers(0, 2)) == 0:
            gone = data.draw(st.sampled_from(sorted(stored)))
            index.remove(gone)
            del stored[gone]
        elif data.draw(st.booleans()):
            batch = data.draw(st.lists(boxes(2), min_size=1, max_size=4))
            ids = [10 * step + i for i in range(len(batch))]
            index.add_many(ids, np.array(batch))
            stored.update(zip(ids, batch, strict=True))
        else:
            stored[10 * step] = data.draw(boxes(2))
            index.add(10 * step, stored[10 * step])
        index.check()
    for box in [*data.draw(st.lists(boxes(2), min_size=1, max_size=4)), *stored.values()]:
        before = index.stats.copy()
        found = index.find_cover(box)
        seen, truth = covers(largest(stored, budget), box), covers(stored, box)
        assert found in seen if seen else found is None
        work = index.stats.since(before)
        assert work.probes <= min(budget, len(stored))
        if found is None and not work.capped:
            assert not truth, "a miss that does not say so"
        assert index.find_cover_many([box]) == [found]
        assert index.find_covered(box) == covered(stored, box)


def test_a_budget_of_one_is_the_largest_box_and_its_hits_are_verified():
    index = covering.create("budget", [DOMAIN], budget=1)
    for id, bounds in enumerate([[1.0, 4.0], [0.0, 6.0], [2.0, 3.0]]):
        index.add(id, [bounds])
    assert index.find_cover([[2.5, 2.6]]) == 1
    assert index.find_cover([[0.0, np.nextafter(6.0, 7.0)]]) is None, "it is larger than the largest"
    assert index.find_cover([[1.0, np.nextafter(6.0, 7.0)]]) is None, "the same code is not the same value"
    index.remove(1)
    assert index.find_cover([[2.5, 2.6]]) == 0, "the next largest takes its place"
    index.check()


@FAST
@given(st.data())
def test_a_tree_that_gives_up_says_so_and_invents_nothing(data):
    held = data.draw(st.lists(boxes(2), min_size=1, max_size=40))
    index = covering.create("kdtree", [DOMAIN] * 2, node_budget=data.draw(st.integers(1, 3)))
    index.add_many(range(len(held)), np.array(held))
    index.check()
    stored = dict(enumerate(held))
    for box in [*data.draw(st.lists(boxes(2), min_size=1, max_size=4)), *held[:4]]:
        before = index.stats.copy()
        found, truth = index.find_cover(box), covers(stored, box)
        work = index.stats.since(before)
        assert found in truth if found is not None else work.capped or not truth
        assert index.find_covered(box) == covered(stored, box)


def test_a_tree_gives_up_at_its_budget():
    """Enough entries for many nodes; more nodes find more, and every miss counts as capped."""
    rng = np.random.default_rng(3)
    held, asked = wide(20_000, 4, rng), wide(500, 4, rng)
    exact = covering.create("kdtree", [[0, 1]] * 4)
    exact.add_many(np.arange(len(held)), held)
    truth = exact.find_cover_many(asked)
    hits = []
    for nodes in (1, 8, 10**9):
        index = covering.create("kdtree", [[0, 1]] * 4, node_budget=nodes)
        index.add_many(np.arange(len(held)), held)
        found = index.find_cover_many(asked)
        assert all(contains(held[f], box) for f, box in zip(found, asked, strict=True) if f is not None)
        missed = sum(f is None and t is not None for f, t in zip(found, truth, strict=True))
        assert missed <= index.stats.capped <= len(asked) - index.stats.hits
        assert index.stats.volume == len(asked) - index.stats.capped
        assert index.fallbacks == 0
        hits.append(index.stats.hits)
    assert hits[0] < hits[1] < hits[2] == exact.stats.hits
    with pytest.raises(CoverlayError, match="node_budget"):
        covering.create("kdtree", [[0, 1]], node_budget=0)


def uniformly_placed(widths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    low = rng.random(widths.shape) * (1.0 - widths)
    return np.stack([low, low + widths], axis=2)


@pytest.mark.parametrize("epsilon", [0.02, 0.2, 0.5])
def test_what_a_budget_can_miss_is_bounded_by_the_volume_it_leaves_out(epsilon):
    rng = np.random.default_rng(4)
    held = uniformly_placed(rng.random((300, 2)) ** 4, rng)
    asked = uniformly_placed(rng.random((20_000, 2)) ** 3 * 0.1, rng)
    budget = budget_for(held, [[0, 1]] * 2, epsilon)
    shares = np.sort((held[:, :, 1] - held[:, :, 0]).prod(axis=1))
    assert shares[: len(held) - budget].sum() <= epsilon, "no more is left out than asked for"
    assert shares[: len(held) - budget + 1].sum() > epsilon - 1e-3, "nor a box less than possible"
    exact, index = (covering.create(n, [[0, 1]] * 2, **o) for n, o in (("packed", {}), ("budget", {"budget": budget})))
    for each in (exact, index):
        each.add_many(np.arange(len(held)), held)
        each.find_cover_many(asked)
    missed = (exact.stats.hits - index.stats.hits) / len(asked)
    assert missed <= epsilon + 4 * np.sqrt(epsilon / len(asked))
    assert missed > 0, "a bound that nothing comes near to tests nothing"
    assert budget < len(held)


def test_a_budget_for_nothing_is_everything():
    assert budget_for([[[0, 1]], [[0, 0.5]]], [[0, 1]], 0.0) == 2
    assert budget_for([[[0, 0.25]], [[0, 0.5]]], [[0, 1]], 0.3) == 1
    for wrong in (0, 1.5, True, "many"):
        with pytest.raises(CoverlayError, match="budget"):
            covering.create("budget", [[0, 1]], budget=wrong)


def test_auto_approximates_only_when_asked(monkeypatch):
    for name, value in (("REVIEW", 200), ("AUDIT", 1), ("BUDGETS", (64,)), ("TREE_PROBE", 100.0)):
        monkeypatch.setattr(auto, name, value)
    rng = np.random.default_rng(5)
    held, asked = wide(4000, 6, rng), wide(2000, 6, rng)
    choices = []
    for accepted in (0.0, 0.001, 0.6):
        index = covering.create("auto", [[0, 1]] * 6, accept_missing=accepted)
        index.add_many(np.arange(len(held)), held)
        for start in range(0, 2000, 250):
            index.find_cover_many(asked[start : start + 250])
            index.find_cover(asked[start])
        choices.append(index.choice)
        index.check()
        assert index.stats.checks == 2008, "an audit is no check"
        assert len(index) == len(held)
    assert choices == ["kdtree", "kdtree", "budget"]
    beyond = held[:500] + 2.0  # outside the domain, hence of no volume
    index.add_many(range(10_000, 10_500), beyond)
    index.find_cover_many(beyond)
    assert index.choice == "kdtree", "an audit that finds too much missing goes back"
    for wrong in (1.0, -0.1, True, "few"):
        with pytest.raises(CoverlayError, match="accept_missing"):
            covering.create("auto", [[0, 1]], accept_missing=wrong)


@pytest.mark.parametrize(
    ("name", "epsilon", "options", "may"),
    [
        ("scan", 0.0, {}, False),
        ("kdtree", 0.0, {"node_cap": 5}, False),
        ("kdtree", 0.1, {}, True),
        ("kdtree", 0.0, {"node_budget": 5}, True),
        ("budget", 0.0, {}, True),
        ("auto", 0.0, {}, False),
        ("auto", 0.0, {"accept_missing": 0.02}, True),
        ("auto", 0.0, {"accept_missing": 0.0}, False),
        ("zorder", 0.0, {"probe_cap": 5}, False),  # jumps finish the search
        ("zorder", 0.0, {"finish": True}, False),
        ("zorder", 0.0, {"finish": False}, True),
        ("zorder-emulated", 0.0, {}, False),
        ("zorder-emulated", 0.0, {"probe_cap": 5}, True),
    ],
)
def test_who_may_miss(name, epsilon, options, may):
    assert covering.may_miss(name, epsilon, options) is may
