"""Rows of tables against brute force, as subscriptions come and go: a static part, a tail, residues, missing values.

The limits are lowered, so that static parts are built, lose rows and are built again with a few dozen subscriptions.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker import link_rows, local_rows, matchers, served_rows
from broker.filter_rows import FilterRows
from broker.matchers import IndexMatcher
from broker.settings import Settings
from broker.tables import LinkTable, LocalTable
from covering.residue import EMPTY, Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from tests.broker.asking import looked_at, matches

VALUES = 6  # whole numbers from 0 on: bounds, events and residues meet often


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    monkeypatch.setattr(link_rows, "LEAST", 8)
    monkeypatch.setattr(link_rows, "READS", 0)
    monkeypatch.setattr(local_rows, "LEAST", 8)
    monkeypatch.setattr(matchers, "FEW", 2)


def drawn_filter(rng: np.random.Generator, dimensions: int, odd: float) -> Filter:
    lo = rng.integers(0, VALUES, dimensions).astype(float)
    box = np.stack([lo, lo + rng.integers(0, 4, dimensions)], axis=1)
    box[rng.random(dimensions) < 0.3] = -np.inf, np.inf
    residue = EMPTY
    if rng.random() < odd:
        parts = [{}, {}]
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


def best(filters: dict[int, Filter], event: np.ndarray, k: int | None, semantics: str) -> list[tuple[int, float]]:
    relaxed = semantics == "relaxed"
    matching = {s: f for s, f in filters.items() if relaxed or f.matches(event)}
    scores = {s: f.relaxed_score(event) if relaxed else f.score for s, f in matching.items()}
    found = [(s, score) for s, score in scores.items() if score is not None]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


def come_and_go(rng, filters, dimensions, odd, rounds=12):
    """Yields what came and what left, in bursts of different sizes; `filters` is kept up to date."""
    fresh = 0
    for _ in range(rounds):
        came = {fresh + i: drawn_filter(rng, dimensions, odd) for i in range(rng.integers(0, 20))}
        fresh += len(came)
        left = [s for s in filters if rng.random() < rng.choice([0.0, 0.1, 0.6])]
        for s in left:
            del filters[s]
        filters.update(came)
        yield came, left


CASES = given(
    st.integers(0, 2**32), st.integers(1, 3), st.sampled_from(["exact", "relaxed"]), st.sampled_from([0.0, 0.1, 0.9])
)
QUICK = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@QUICK
@CASES
def test_a_neighbours_table_finds_a_match_if_there_is_one(seed, dimensions, semantics, odd):
    rng, filters = np.random.default_rng(seed), {}
    table = LinkTable(semantics, np.tile([0.0, float(VALUES)], (dimensions, 1)), FilterRows(dimensions))
    for came, left in come_and_go(rng, filters, dimensions, odd):
        for s in left:
            table.remove(s)
        for s, f in came.items():
            table.add(s, f)
        for _ in range(4 * bool(filters)):
            event = drawn_event(rng, dimensions)
            found, (_, sliced, compared, blocks) = looked_at(table, event)
            assert found == bool(best(filters, event, 1, semantics))
            assert compared + blocks >= 1
            assert sliced == (table._built > 0) == (blocks > 0)
            if not found and not sliced:
                assert compared == len(filters), "where nothing matches, a scan has looked at everything"
        table.check()


@QUICK
@CASES
def test_the_k_best_of_the_clients_rows(seed, dimensions, semantics, odd):
    rng, filters = np.random.default_rng(seed), {}
    domain = np.tile([0.0, float(VALUES)], (dimensions, 1))
    rankings = {name: Settings(RoutingOptions(domain, semantics), matcher=name).ranking for name in ("scan", "auto")}
    tables = {method: LocalTable(ranking, FilterRows(dimensions)) for method, ranking in rankings.items()}
    for came, left in come_and_go(rng, filters, dimensions, odd):
        for table in tables.values():
            for s in left:
                table.remove(s)
            for s, f in came.items():
                table.add(s, f)
        for k in (1, 3, None):
            event = drawn_event(rng, dimensions)
            for method, table in tables.items():
                ids, scores, entries, nodes = table.top(event, k)
                expected = best(filters, event, k, semantics)
                assert list(zip(ids.tolist(), scores.tolist(), strict=True)) == expected
                assert entries >= len(ids)
                if method == "scan":
                    assert (entries, nodes) == (len(filters), 0)
                table.check()


@pytest.mark.parametrize("method", ["slices", "sopt-rtree", "lci-bv", "ir-tree"])
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_an_index_is_told_of_everything_that_came_and_left(method, seed):
    rng, filters = np.random.default_rng(seed), {}
    routing = RoutingOptions(np.tile([0.0, float(VALUES)], (2, 1)))
    table = LocalTable(Settings(routing, matcher=method).ranking, FilterRows(2))
    assert isinstance(table._matcher, IndexMatcher)
    for came, left in come_and_go(rng, filters, 2, 0.2, rounds=6):
        for s in left:
            table.remove(s)
        for s, f in came.items():
            table.add(s, f)
        table.check()
        event = drawn_event(rng, 2)
        ids, scores, *_ = table.top(event, 3)
        assert list(zip(ids.tolist(), scores.tolist(), strict=True)) == best(filters, event, 3, "exact")
        table.check()


def many(table, count, first=0):
    for s in range(first, first + count):
        table.add(s, Filter.of_box(np.array([[s, s + 1.0], [0.0, 1.0]]), score=float(s)))


def test_served_rows_are_kept_while_they_grow():
    rng, rows, added = np.random.default_rng(1), served_rows.new_rows(), []
    for count in (3, 0, 1500, 2, 4000):
        added.append((rng.integers(0, 99, count), rng.random(count), np.arange(1, count + 1)))
        served_rows.add(rows, *added[-1])
    for found, given_rows in zip(served_rows.take(rows), zip(*added, strict=True), strict=True):
        assert np.array_equal(found, np.concatenate(given_rows))
    assert [len(column) for column in served_rows.take(rows)] == [0, 0, 0], "and taken once"


def test_what_a_static_part_saves_and_when_it_is_built():
    """Counts, by hand: 64 boxes side by side; an event lies in two of them."""
    domain, event = np.array([[0.0, 64.0], [0.0, 1.0]]), np.array([5.5, 0.5])
    link = LinkTable("exact", domain, FilterRows(2))
    local = LocalTable(Settings(RoutingOptions(domain)).ranking, FilterRows(2))
    many(link, 7)
    many(local, 7)
    assert looked_at(link, event) == (True, (1, 0, 6, 0)), "a few entries are scanned, up to the match"
    assert local.top(event, 1)[2:] == (7, 0), "and of the clients' all"
    many(link, 57, first=7)
    many(local, 57, first=7)
    found, (_, sliced, compared, blocks) = looked_at(link, event)
    assert found
    assert sliced
    assert compared <= 2, "of a block's candidates those whose box touches the event's cells"
    assert blocks == 1
    entries, blocks = local.top(event, 1)[2:]
    assert entries <= 2
    assert blocks == 1
    for s in (5, 6):
        link.remove(s)
        local.remove(s)
    assert not matches(link, np.array([5.5, 0.5]))
    assert local.top(event, 1)[0].tolist() == []
    many(link, 2, first=100)
    assert looked_at(link, np.array([100.5, 0.5])) == (True, (1, 1, 1 + 1, 1)), "one of the block, then the tail"
