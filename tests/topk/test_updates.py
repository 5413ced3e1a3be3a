"""Every matcher as a state machine: add, remove and re-score, compared with a dictionary after each step."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import topk
from coverlay import CoverlayError
from tests.topk import oracles
from tests.topk.strategies import COORDINATES, ONE_DIMENSIONAL, build, entries

# One of each kind of structure; all others share their code with one of these.
DYNAMIC = ("scan", "ir-tree", "sci", "lci-bc", "lci-bv", "lci-bv-dt", "dlist", "is-list", "ibs-tree")
WRAPPED = ("sopt-rtree", "aggregate-rtree", "canopy", "slices", "auto")


def machine(name: str, semantics: str) -> type[RuleBasedStateMachine]:
    dimensions = 1 if name in ONE_DIMENSIONAL else 2
    options = {"buffer": 3} if name in WRAPPED else {}

    class Updates(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.rows: dict[int, tuple[np.ndarray, np.ndarray, float, np.ndarray]] = {}

        @initialize()
        def start(self) -> None:
            self.index = build(name, topk.Catalogue.empty(dimensions), semantics, **options)

        @rule(
            id=st.integers(0, 30),
            ends=st.lists(st.tuples(COORDINATES, COORDINATES), min_size=dimensions, max_size=dimensions),
            open_side=st.integers(0, 3),
            score=st.integers(0, 3),
        )
        def add(self, id: int, ends: list[tuple[float, float]], open_side: int, score: int) -> None:
            lo, hi = np.sort(np.array(ends), axis=1).T.copy()
            if open_side == 1:
                lo[0] = -np.inf
            if open_side == 2:
                hi[:] = np.inf
            weights = np.arange(dimensions) + score
            if id in self.rows:
                with pytest.raises(CoverlayError, match="already"):
                    self.index.add(id, lo, hi, score)
                return
            self.index.add(id, lo, hi, score, weights)
            self.rows[id] = (lo, hi, score, weights)

        @precondition(lambda self: self.rows)
        @rule(data=st.data())
        def remove(self, data: st.DataObject) -> None:
            id = data.draw(st.sampled_from(sorted(self.rows)))
            self.index.remove(id)
            del self.rows[id]
            with pytest.raises(CoverlayError, match="not in"):
                self.index.remove(id)

        @precondition(lambda self: self.rows)
        @rule(data=st.data(), score=st.integers(0, 5))
        def update(self, data: st.DataObject, score: int) -> None:
            id = data.draw(st.sampled_from(sorted(self.rows)))
            lo, hi, _, _ = self.rows[id]
            weights = np.arange(dimensions) * 2 + score
            self.index.update_score(id, score, weights)
            self.rows[id] = (lo, hi, score, weights)

        @invariant()
        def agrees(self) -> None:
            if not hasattr(self, "index"):
                return
            self.index.check()
            assert len(self.index) == len(self.rows)
            ids = sorted(self.rows)
            columns = [np.array([self.rows[i][c] for i in ids], dtype=float) for c in range(4)]
            if not ids:
                columns = [np.empty((0, dimensions)), np.empty((0, dimensions)), np.empty(0), None]
            catalogue = topk.Catalogue.from_boxes(*columns[:3], weights=columns[3], ids=ids)
            for value in (2.0, 2.5, 7.0):
                event = np.full(dimensions, value)
                for k in (2, None):
                    assert self.index.top(event, k) == oracles.top(catalogue, event, k, semantics)

    return Updates


STEPS = settings(max_examples=6, stateful_step_count=25, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("name", DYNAMIC + WRAPPED)
def test_updates(name: str, semantics: str) -> None:
    case = machine(name, semantics).TestCase
    case.settings = STEPS
    case().runTest()


@pytest.mark.parametrize(
    "name", ["ir-tree", "is-list", "ibs-tree", "lci-bv-dt", "sopt-rtree", "aggregate-rtree", "auto"]
)
def test_many_updates_of_one_index(name: str) -> None:
    """Long enough to split, rebuild, grow pools and reuse what was freed."""
    rng = np.random.default_rng(3)
    index = topk.create(name, topk.Catalogue.empty(1), **({"buffer": 64} if name in WRAPPED else {}))
    live: dict[int, tuple[float, float, float]] = {}
    for step in range(1200):
        if live and rng.random() < (0.2 if step < 800 else 0.7):
            id = sorted(live)[rng.integers(len(live))]
            index.remove(id)
            del live[id]
        else:
            lo = float(step) if step % 3 else float(rng.random() * 1000)  # sorted runs unbalance a tree
            live[step] = (lo, lo + float(rng.random() * 50), float(rng.integers(0, 20)))
            index.add(step, [live[step][0]], [live[step][1]], live[step][2])
        if step % 200 == 199:
            index.check()
            value = float(rng.random() * 1000)
            expected = sorted(
                ((id, s) for id, (lo, hi, s) in live.items() if lo <= value <= hi), key=lambda p: (-p[1], p[0])
            )
            assert index.top([value], None) == expected


def test_score_updates_do_not_rebuild() -> None:
    rng = np.random.default_rng(0)
    lo = rng.random((3000, 1))
    for name in ("canopy", "sopt-rtree"):
        index = topk.create(name, topk.Catalogue.from_boxes(lo, lo + 0.1, rng.random(3000)))
        built = index.stats.rebuilds
        for id in range(100):
            index.update_score(id, 2.0 + id)
        assert index.stats.rebuilds == built
        best = index.top([float(lo[99, 0]) + 0.05], 1)[0]
        assert best[1] >= 2.0


def test_log_structured_rebuilds_are_logarithmic() -> None:
    """n insertions with a buffer of B make n/B runs, each entry merged at most log2(n/B)+1 times."""
    index = topk.create("sopt-rtree", topk.Catalogue.empty(1), buffer=8)
    for i in range(512):
        index.add(i, [float(i % 37)], [float(i % 37 + 5)], float(i % 11))
    assert index.stats.rebuilds == 512 / 8
    sizes = [len(run) for run in index._runs]  # type: ignore[attr-defined]
    assert sum(sizes) == 512
    assert all(2 * small <= large for large, small in itertools.pairwise(sizes)) or len(sizes) == 1


@pytest.mark.parametrize("name", WRAPPED)
def test_a_residue_that_fills_the_buffer_is_honoured(name: str) -> None:
    """The insertion that makes a run, and leaves nothing else to ask, brings the first residue."""
    index = topk.create(name, topk.Catalogue.empty(1), buffer=3)
    for id in range(2):
        index.add(id, [0.0], [1.0], 1.0)
    index.add(7, [0.0], [1.0], 9.0, excluded=((0, (0.5,)),))
    assert index.top([0.5], 5) == list(index.top_many([[0.5]], 5)[0]) == [(0, 1.0), (1, 1.0)]
    assert index.top([0.25], 5) == [(7, 9.0), (0, 1.0), (1, 1.0)]


@pytest.mark.parametrize("name", [name for name, cls in topk.interval_indexes().items() if cls.dynamic])
def test_what_an_interval_index_does_not_hold_cannot_be_deleted(name: str) -> None:
    """Kernels would walk to the end of a list or a node and beyond."""
    stored = entries(300, 5)
    index = topk.interval_indexes()[name](stored.take(np.arange(200)))
    first, never = ([column[i].item() for column in stored] for i in (0, 250))
    index.delete(*first)
    for absent in (first, never, [*never[:1], *first[1:]], [250, -9e9, 9e9, -9e9, 250]):
        with pytest.raises(CoverlayError, match=f"{name} does not hold row {absent[0]}"):
            index.delete(*absent)
    index.check()
    assert len(index) == 199
    for i in range(1, 200):
        index.delete(*(column[i].item() for column in stored))
    with pytest.raises(CoverlayError, match="does not hold row 0"):
        index.delete(*first)
    assert len(index) == 0
