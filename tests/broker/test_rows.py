"""Tables against brute force by the contract of topk/first_matches.py, while subscriptions come and go.

The twins below are written from that contract alone: an order, a place in it, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker import matchers
from broker.matchers import IndexMatcher
from broker.pruning import PrunedTable
from broker.settings import Settings
from broker.tables import LinkTable, LocalTable
from covering.residue import EMPTY, Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from topk import first_matches

VALUES = 6  # whole numbers from 0 on: bounds, events and residues meet often
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    monkeypatch.setattr(first_matches, "ROWS_PER_MATCH", 2)  # several blocks with a few rows
    monkeypatch.setattr(first_matches, "GROWTH", 2)
    monkeypatch.setattr(matchers, "FEW", 2)


def drawn_filter(rng: np.random.Generator, dimensions: int, odd: float) -> Filter:
    lo = rng.integers(0, VALUES, dimensions).astype(float)
    box = np.stack([lo, lo + rng.integers(0, 4, dimensions)], axis=1)
    box[:, 0][rng.random(dimensions) < 0.1] = -np.inf
    box[:, 1][rng.random(dimensions) < 0.1] = np.inf
    box[rng.random(dimensions) < 0.3] = -np.inf, np.inf
    residue = EMPTY
    if rng.random() < odd:
        parts: list[dict[int, list[float]]] = [{}, {}]
        for j in range(dimensions):
            if rng.random() < 0.6:
                parts[rng.integers(2)][j] = rng.choice(VALUES, 3).astype(float).tolist()
        residue = Residue.of(*parts)
    scores = rng.integers(1, 4)  # ties
    return Filter.of_box(box, residue, rng.integers(1, 4, dimensions).astype(float), float(scores))


def drawn_event(rng: np.random.Generator, dimensions: int) -> np.ndarray:
    event = rng.integers(0, VALUES + 2, dimensions).astype(float)
    event[rng.random(dimensions) < 0.15] = np.nan
    return event


def width_key(filter: Filter, domain: np.ndarray) -> tuple[float, float]:
    """More unbounded sides first, then larger size."""
    sides, size = 0, 0.0
    for (low, high), (first, last) in zip(filter.box.tolist(), domain.tolist(), strict=True):
        width = last - first if np.isfinite(last - first) and last > first else 1.0
        sides += (low == -np.inf) + (high == np.inf)
        if np.isfinite(low):
            size += (last - low) / width
        if np.isfinite(high):
            size += (high - first) / width
    return -float(sides), -size


def compared_until(hits: list[bool], k: int | None) -> int:
    places = [place for place, hit in enumerate(hits, 1) if hit]
    return len(hits) if k is None or len(places) < k else places[k - 1]


def any_match(filters: dict[int, Filter], event: np.ndarray, semantics: str, domain: np.ndarray) -> tuple[bool, int]:
    """The contract of a neighbour's table."""
    order = sorted(filters, key=lambda s: (*width_key(filters[s], domain), s))
    relaxed = semantics == "relaxed"
    hits = [f.relaxed_score(event) is not None if relaxed else f.matches(event) for f in map(filters.get, order)]
    return any(hits), compared_until(hits, 1)


def best(filters: dict[int, Filter], event: np.ndarray, k: int | None, semantics: str) -> list[tuple[int, float]]:
    relaxed = semantics == "relaxed"
    matching = {s: f for s, f in filters.items() if relaxed or f.matches(event)}
    scores = {s: f.relaxed_score(event) if relaxed else f.score for s, f in matching.items()}
    found = [(s, score) for s, score in scores.items() if score is not None]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


def compared_for_best(filters: dict[int, Filter], event: np.ndarray, k: int | None, semantics: str) -> int:
    """The contract of the own clients."""
    if semantics == "relaxed":
        return len(filters)
    order = sorted(filters, key=lambda s: (-filters[s].score, s))
    return compared_until([filters[s].matches(event) for s in order], k)


class Tables(RuleBasedStateMachine):
    """A neighbour's table, one that prunes, and those of the own clients; subscriptions come, leave and change."""

    @initialize(
        seed=st.integers(0, 2**32),
        dimensions=st.integers(1, 3),
        semantics=st.sampled_from(["exact", "relaxed"]),
        odd=st.sampled_from([0.0, 0.1, 0.9]),
        upper=st.sampled_from([float(VALUES), 0.0]),
    )
    def begin(self, seed: int, dimensions: int, semantics: str, odd: float, upper: float) -> None:
        self.rng, self.dimensions, self.semantics, self.odd = np.random.default_rng(seed), dimensions, semantics, odd
        self.domain = np.tile([0.0, float(VALUES)], (dimensions, 1))
        self.domain[0, 1] = upper
        self.filters: dict[int, Filter] = {}
        self.fresh = 0
        routing = RoutingOptions(self.domain, semantics)
        self.link = LinkTable(semantics, self.domain)
        self.pruned = PrunedTable(Settings(routing).pruning)
        self.local = [LocalTable(Settings(routing, matcher=name).ranking) for name in ("scan", "auto")]
        self.tables: list[Any] = [self.link, self.pruned, *self.local]

    @rule(count=st.integers(1, 12))
    def come(self, count: int) -> None:
        for _ in range(count):
            filter = drawn_filter(self.rng, self.dimensions, self.odd)
            self.filters[self.fresh] = filter
            for table in self.tables:
                table.add(self.fresh, filter)
            self.fresh += 1

    @precondition(lambda self: self.filters)
    @rule(share=st.sampled_from([0.1, 0.6, 1.0]))
    def leave(self, share: float) -> None:
        for subscription in [s for s in self.filters if self.rng.random() < share]:
            del self.filters[subscription]
            for table in self.tables:
                table.remove(subscription)

    @precondition(lambda self: self.filters)
    @rule()
    def change(self) -> None:
        """One leaves and comes again before anybody asks, with another filter."""
        subscription = self.rng.choice(list(self.filters)).item()
        self.filters[subscription] = drawn_filter(self.rng, self.dimensions, self.odd)
        for table in self.tables:
            table.remove(subscription)
            table.add(subscription, self.filters[subscription])

    @precondition(lambda self: self.filters)
    @rule(k=st.sampled_from([1, 3, None]))
    def ask(self, k: int | None) -> None:
        for _ in range(3):
            event = drawn_event(self.rng, self.dimensions)
            assert self.link.matches(event) == any_match(self.filters, event, self.semantics, self.domain)
            active = {s: f for s, f in self.filters.items() if s not in self.pruned.pruned_by()}
            assert self.pruned.matches(event) == any_match(active, event, self.semantics, self.domain)
            for table in self.local:
                ids, scores, entries, nodes = table.top(event, k)
                found = list(zip(ids.tolist(), scores.tolist(), strict=True))
                assert found == best(self.filters, event, k, self.semantics)
                assert (entries, nodes) == (compared_for_best(self.filters, event, k, self.semantics), 0)

    @invariant()
    def consistent(self) -> None:
        for table in getattr(self, "tables", ()):
            table.check()


def test_tables_answer_and_count_as_brute_force_after_every_step():
    from hypothesis.stateful import run_state_machine_as_test

    quick = settings(max_examples=40, stateful_step_count=12, suppress_health_check=QUIET, deadline=None)
    run_state_machine_as_test(Tables, settings=quick)


@pytest.mark.parametrize("method", ["slices", "sopt-rtree", "lci-bv", "ir-tree"])
@settings(max_examples=6, suppress_health_check=QUIET)
@given(seed=st.integers(0, 2**32))
def test_an_index_is_told_of_everything_that_came_and_left(method, seed):
    rng, filters, fresh = np.random.default_rng(seed), {}, 0
    routing = RoutingOptions(np.tile([0.0, float(VALUES)], (2, 1)))
    table = LocalTable(Settings(routing, matcher=method).ranking)
    assert isinstance(table._matcher, IndexMatcher)
    for _ in range(6):
        for s in [s for s in filters if rng.random() < rng.choice([0.0, 0.1, 0.6])]:
            del filters[s]
            table.remove(s)
        for _ in range(rng.integers(0, 20)):
            filters[fresh] = drawn_filter(rng, 2, 0.2)
            table.add(fresh, filters[fresh])
            fresh += 1
        table.check()
        event = drawn_event(rng, 2)
        ids, scores, *_ = table.top(event, 3)
        assert list(zip(ids.tolist(), scores.tolist(), strict=True)) == best(filters, event, 3, "exact")
        table.check()


def test_what_is_compared_by_hand():
    """Ten intervals of length 1 side by side, a wide one, and one without bounds above."""
    domain = np.array([[0.0, 10.0]])
    link, local = LinkTable("exact", domain), LocalTable(Settings(RoutingOptions(domain)).ranking)
    for s in range(10):
        filter = Filter.of_box(np.array([[s, s + 1.0]]), score=float(s))
        link.add(s, filter)
        local.add(s, filter)
    assert link.matches(np.array([5.5])) == (True, 6), "equally wide: in the order of their ids"
    assert link.matches(np.array([50.0])) == (False, 10)
    assert local.top(np.array([5.5]), 1)[2] == 5, "best scores first: 9, 8, 7, 6, 5"
    assert local.top(np.array([5.5]), 2)[2] == 10, "there is no second"
    assert local.top(np.array([5.0]), 2)[2] == 6
    assert local.top(np.array([5.0]), None)[2] == 10
    link.add(20, Filter.of_box(np.array([[3.0, 6.0]])))
    assert link.matches(np.array([5.5])) == (True, 1), "the widest is first"
    link.add(21, Filter.of_box(np.array([[9.5, np.inf]])))
    assert link.matches(np.array([5.5])) == (True, 2), "and before it what has an open side"
    link.remove(20)
    assert link.matches(np.array([5.5])) == (True, 7)
