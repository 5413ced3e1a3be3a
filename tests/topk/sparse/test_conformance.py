"""One suite for all sparse matchers: register a method and it is tested."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

import topk
from coverlay import CoverlayError
from sim.workloads.begen import Begen, begen
from tests.topk.churn import Churn, survives
from tests.topk.sparse import oracles, strategies
from topk.sparse import METHODS, Event

DIMENSIONS = strategies.DIMENSIONS
every_method = pytest.mark.parametrize("method", sorted(METHODS))


def saturating(total, weight, event_weight):
    return total + weight * event_weight / (1.0 + weight * event_weight)


CUSTOM = topk.sparse.monotone(saturating, name="saturating")
oracles.SCORES["saturating"] = (saturating, 0.0)


@settings(max_examples=60)
@given(st.lists(strategies.expressions(), max_size=40), st.lists(strategies.events(), max_size=3), st.data())
def test_same_answers_as_the_oracle(expressions, events, data):
    """What is drawn is asked of every method: drawing and the oracle take longer than answers do."""
    score = data.draw(st.sampled_from(sorted(oracles.SCORES)))
    k = data.draw(st.sampled_from([1, 2, 5, None]))
    catalogue = topk.Catalogue.from_predicates(expressions, dimensions=DIMENSIONS)
    known = dict(enumerate(expressions))
    answers = [oracles.top(known, event, k, score) for event in events]
    for method in sorted(METHODS):
        options = strategies.small(method)
        index = topk.create(method, catalogue, score=CUSTOM if score == CUSTOM.name else score, **options)
        index.check()
        for event, expected in zip(events, answers, strict=True):
            got = index.top(oracles.as_predicates(event), k)
            assert oracles.close(got, expected), (method, got, expected)


@settings(max_examples=60)
@given(st.lists(strategies.expressions(), max_size=20), strategies.events(), st.data())
def test_relaxed_one_predicate_is_enough_and_those_that_hold_make_the_score(expressions, event, data):
    score, k = data.draw(st.sampled_from(sorted(oracles.SCORES))), data.draw(st.sampled_from([1, 5, None]))
    catalogue = topk.Catalogue.from_predicates(expressions, dimensions=DIMENSIONS)
    index = topk.create("scan", catalogue, score=CUSTOM if score == CUSTOM.name else score, semantics="relaxed")
    gone = data.draw(st.sets(st.sampled_from(range(len(expressions) or 1)))) if expressions else set()
    for id in gone:
        index.remove(id)
    known = {id: expression for id, expression in enumerate(expressions) if id not in gone}
    expected, got = oracles.top(known, event, k, score, relaxed=True), index.top(oracles.as_predicates(event), k)
    assert oracles.close(got, expected), (got, expected)


def test_semantics_that_are_refused():
    catalogue = topk.Catalogue.from_predicates([])
    with pytest.raises(CoverlayError, match=r"unknown semantics 'similar'.*exact, relaxed"):
        topk.create("scan", catalogue, semantics="similar")
    with pytest.raises(CoverlayError, match="pivot has no option 'semantics'"):
        topk.create("pivot", catalogue, semantics="relaxed")


@every_method
def test_stats_of_sparse_matchers_are_a_plain_value(method):
    """Work is counted when it is done, in one object; reading it changes nothing."""
    index = topk.create(method, topk.Catalogue.from_predicates([[(0, ">=", float(i), 1.0)] for i in range(9)]))
    stats = index.stats
    index.top({0: 5.0}, 2)
    index.top_many([{0: 5.0}, {0: 1.0}], 2)
    assert stats.queries == 3
    counted = replace(stats)
    assert counted.entries + counted.nodes > 0
    assert index.stats is stats
    assert index.stats == counted, "reading does not count"
    index.stats.reset()
    index.top({0: 5.0}, 2)
    assert stats.queries == 1


def test_scores_that_are_refused():
    catalogue = topk.Catalogue.from_predicates([])
    with pytest.raises(CoverlayError, match=r"unknown score 'mean'.*noisy-or"):
        topk.create("scan", catalogue, score="mean")
    with pytest.raises(CoverlayError, match="not monotone"):
        topk.sparse.monotone(lambda total, weight, event_weight: total - weight)
    with pytest.raises(CoverlayError, match="cannot be compiled"):
        topk.sparse.monotone(lambda total, weight, event_weight: {}[total])
    with pytest.raises(CoverlayError, match="starts at 0"):
        topk.sparse.monotone(saturating, start=1.0, linear=True)


@pytest.mark.parametrize("score", ["min", "product", "noisy-or", pytest.param(CUSTOM, id="saturating")])
def test_bounds_prune_whatever_the_score(score):
    """Where usual scores bound, pivot and BE*-Tree must not look at everything that a scan looks at."""
    workload = begen(Begen(subscriptions=3000, events=6, dimensions=60, match_probability=0.01))
    scan = topk.create("scan", workload.catalogue, score=score)
    for method in ("pivot", "be-star", "k-index"):
        index = topk.create(method, workload.catalogue, score=score)
        assert [index.top(e, 5) for e in workload.events] == [scan.top(e, 5) for e in workload.events]
        assert index.stats.entries < scan.stats.entries / 10


def machine(method: str):
    class Updates(Churn):
        @initialize(first=st.lists(strategies.expressions(), max_size=12))
        def start(self, first):
            self.known = {3 * i: e for i, e in enumerate(first)}
            catalogue = topk.Catalogue.from_predicates(first, dimensions=DIMENSIONS, ids=list(self.known))
            self.index = topk.create(method, catalogue, **strategies.small(method))
            self.next = 100

        @rule(more=st.lists(strategies.expressions(), min_size=1, max_size=8))
        def add(self, more):
            self.come(more, self.index.add)

        @rule(event=strategies.events(), k=st.sampled_from([1, 3, None]))
        def ask(self, event, k):
            got = self.index.top(oracles.as_predicates(event), k)
            assert oracles.close(got, oracles.top(self.known, event, k))

    return Updates


@every_method
def test_stateful_churn(method):
    survives(machine(method), histories=15, steps=12)


@cache
def scanned(distribution):
    """A workload and what the scan finds: by k, and after every third has left."""
    p = Begen(subscriptions=1500, events=12, dimensions=60, distribution=distribution, match_probability=0.01)
    workload = begen(p)
    scan = topk.create("scan", workload.catalogue)
    found = {k: [scan.top(e, k) for e in workload.events] for k in (1, 5, None)}
    for id in range(0, 1500, 3):
        scan.remove(id)
    return workload, found, [scan.top(e, 7) for e in workload.events]


@every_method
@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
def test_agrees_with_the_scan_on_a_workload(method, distribution):
    workload, found, later = scanned(distribution)
    index = topk.create(method, workload.catalogue)
    index.check()
    for k, answers in found.items():
        assert list(index.top_many(workload.events, k)) == answers
    for id in range(0, 1500, 3):
        index.remove(id)
    index.check()
    assert [index.top(event, 7) for event in workload.events] == later
    assert index.nbytes > 0
    assert index.stats.queries > 0
    assert index.stats.deletes == 500


@every_method
def test_updates_that_cannot_be(method):
    index = topk.create(method, topk.Catalogue.from_predicates([[(0, "=", 1.0, 1.0)]], dimensions=2))
    with pytest.raises(CoverlayError, match="already in"):
        index.add(0, [(1, "=", 1.0, 1.0)])
    with pytest.raises(CoverlayError, match="not in the index"):
        index.remove(7)
    with pytest.raises(CoverlayError, match="attribute 2"):
        index.add(1, [(2, "=", 1.0, 1.0)])
    assert len(index) == 1
    assert index.top({0: 1.0}, 3) == [(0, 1.0)]
    with pytest.raises(CoverlayError, match="k must be"):
        index.top({0: 1.0}, -1)


def test_what_a_catalogue_refuses():
    make = topk.Catalogue.from_predicates
    for expression, message in (
        ([(0, "~", 1.0, 1.0)], "operator"),
        ([(0, "=", 1.0, -1.0)], "weights"),
        ([(0, "between", (2, 1), 1.0)], "greater"),
        ([(0, "=", 1.0, 1.0), (0, "=", 2.0, 1.0)], "ascend"),
        ([(0, "in", [], 1.0)], "at least one"),
    ):
        with pytest.raises(CoverlayError, match=message):
            make([expression])
    with pytest.raises(CoverlayError, match="distinct"):
        make([[], []], ids=[1, 1])
    with pytest.raises(CoverlayError, match="sparse matching method"):
        topk.create("nonsense", make([]))
    with pytest.raises(CoverlayError, match="no option"):
        topk.create("scan", make([]), nonsense=1)


def test_events_as_vector_mapping_and_predicates():
    index = topk.create("scan", topk.Catalogue.from_predicates([[(1, ">", 2.0, 0.5)]], dimensions=3))
    assert index.top({1: 3.0}, 1) == [(0, 0.5)]
    assert index.top({1: (1.0, 3.0)}, 1) == [(0, 0.5)]
    assert index.top(np.array([np.nan, 3.0, 1.0]), 1) == [(0, 0.5)]
    assert index.top([(1, "=", 3.0, 2.0)], 1) == [(0, 1.0)]
    assert index.top({1: 2.0}, 1) == []
    assert index.top([(1, "!=", 3.0)], 1) == [(0, 0.5)]
    assert index.top([(1, "in", [1.0, 2.0])], 1) == []
    assert index.top([(1, "in", [1.0, 4.0])], 1) == [(0, 0.5)]
    with pytest.raises(CoverlayError, match="at least one"):
        Event.of([(1, "in", [])], 3)


@every_method
def test_batches_of_events_that_are_expressions(method):
    catalogue = topk.Catalogue.from_predicates([[(0, "=", 1.0, 1.0)], [(0, "not in", [1.0, 2.0], 0.5)]])
    index = topk.create(method, catalogue)
    events = [[(0, "!=", 1.0)], [(0, "in", [1.0, 2.0])], {0: 1.0}]
    assert list(index.top_many(events, None)) == [[(1, 0.5)], [(0, 1.0)], [(0, 1.0)]]


def test_k_index_keeps_runs_of_what_came_later():
    workload = begen(Begen(subscriptions=6000, events=8, dimensions=60, match_probability=0.01))
    catalogue, scan = workload.catalogue, topk.create("scan", workload.catalogue)
    index = topk.create("k-index", topk.Catalogue.from_predicates([], dimensions=60))
    for i in range(6000):
        at = slice(catalogue.offsets[i], catalogue.offsets[i + 1])
        columns = (catalogue.attributes[at], catalogue.lo[at], catalogue.hi[at], catalogue.weights[at])
        index.add(i, [(int(a), "between", (lo, hi), w) for a, lo, hi, w in zip(*columns, strict=True)])
    index.check()
    assert index.stats.rebuilds < 10
    index.stats.reset()
    assert [index.top(e, 5) for e in workload.events] == [scan.top(e, 5) for e in workload.events]
    assert index.stats.entries < 8 * 3000, "most rows are in lists, not scanned"
