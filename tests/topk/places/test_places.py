"""One suite for all location-aware matchers, against ψ computed the obvious way."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

import topk
from coverlay import CoverlayError
from sim.workloads.located import Located, located_workload
from tests.topk.churn import Churn, survives
from tests.topk.oracles import great_circle
from topk.places import METHODS, from_located, rtree_packing
from topk.places.catalogue import PlacedEvent
from topk.places.contract import SEMANTICS
from topk.places.distance import DEGREES, GREAT_CIRCLE, METRICS
from topk.places.rt_tree import BOUNDS
from topk.places.rtree_index import INSERTION, PACKINGS, PLACES

DIMENSIONS = 5
every_method = pytest.mark.parametrize("method", sorted(METHODS))
values = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0])
spots = st.tuples(st.sampled_from([0.0, 1.0, 2.5, 7.0, 89.5]), st.sampled_from([0.0, 1.0, 3.0, 9.0, 179.0, -179.0]))
FAR = {DEGREES: 20.0, GREAT_CIRCLE: 2000.0}


@st.composite
def subscriptions(draw):
    attributes = draw(st.lists(st.integers(0, DIMENSIONS - 1), unique=True, max_size=4))
    predicates = []
    for a in attributes:
        low, high = sorted((draw(values), draw(values)))
        odd = draw(st.sampled_from([("between", (low, high)), ("!=", low), ("in", (low, high)), ("<", high)]))
        predicates.append((a, *odd, draw(st.sampled_from([0.0, 0.1, 0.25]))))
    return predicates, draw(spots), draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))


events = st.tuples(st.dictionaries(st.integers(0, DIMENSIONS - 1), values, max_size=DIMENSIONS), spots)


def holds(operator, value, x):
    if operator == "between":
        return value[0] <= x <= value[1]
    return {"!=": lambda: x != value, "in": lambda: x in value, "<": lambda: x < value}[operator]()


def psi(subscription, event, place, metric, semantics="similar"):
    """ψ, or None for a subscription that an event does not reach."""
    predicates, spot, alpha = subscription
    held = [w for a, op, v, w in sorted(predicates) if a in event and holds(op, v, event[a])]
    if (semantics == "relaxed" and not held) or (semantics == "exact" and len(held) < len(predicates)):
        return None
    text = sum(held)
    if place is None:
        return (1.0 - alpha) * text
    apart = math.dist(spot, place) if metric == DEGREES else great_circle(spot, place)
    near = max(0.0, 1.0 - apart / FAR[metric])
    return (1.0 - alpha) * text + alpha * near


def similarities(known, event, place, metric, semantics="similar"):
    """By id."""
    scores = {id: psi(s, event, place, metric, semantics) for id, s in known.items()}
    return {id: score for id, score in scores.items() if score is not None}


def agrees(got, scores, k, method):
    """The same similarities in the same order; ids may differ only where similarities are equal but for rounding."""
    expected = sorted(scores.values(), reverse=True)[:k]
    assert len(got) == len(expected), method
    for (id, score), wanted in zip(got, expected, strict=True):
        assert math.isclose(score, scores[id], rel_tol=1e-12, abs_tol=1e-11), method
        assert math.isclose(score, wanted, rel_tol=1e-12, abs_tol=1e-11), method
    assert len({id for id, _ in got}) == len(got)


@settings(max_examples=40, phases=[Phase.generate])
@given(
    st.lists(subscriptions(), max_size=60),
    st.lists(events, max_size=3),
    st.sampled_from([1, 3, None]),
    st.sampled_from(SEMANTICS),
    st.sampled_from(METRICS),
)
def test_same_answers_as_the_formula(given_ones, asked, k, semantics, metric):
    """What is drawn is asked of every method: drawing and the formula take longer than answers do."""
    catalogue = from_located(given_ones, dimensions=DIMENSIONS, max_distance=FAR[metric], metric=metric)
    known = dict(enumerate(given_ones))
    questions = [(event, where) for event, place in asked for where in (place, None)]
    answers = [similarities(known, event, where, metric, semantics) for event, where in questions]
    for method in sorted(METHODS):
        index = topk.create(method, catalogue, semantics=semantics)
        index.check()
        for (event, where), expected in zip(questions, answers, strict=True):
            agrees(index.top(event, where, k), expected, k, method)


@every_method
def test_stats_of_located_matchers_are_a_plain_value(method):
    """Work is counted when it is done, in one object; reading it changes nothing."""
    index = topk.create(method, from_located([([(0, "=", 1.0, 1.0)], (0.0, 0.0), 0.3)] * 9, max_distance=8.0))
    stats = index.stats
    index.top({0: 1.0}, (2.0, 0.0), 1)
    index.top_many([PlacedEvent.of({0: 1.0}, (2.0, 0.0), 1)] * 2, 1)
    assert stats.queries == 3
    counted = replace(stats)
    assert counted.entries > 0
    assert index.stats is stats
    assert index.stats == counted, "reading does not count"
    index.stats.reset()
    index.top({0: 1.0}, (2.0, 0.0), 1)
    assert stats.queries == 1


def machine(method):
    class Updates(Churn):
        @initialize(
            first=st.lists(subscriptions(), max_size=70),
            semantics=st.sampled_from(SEMANTICS),
            metric=st.sampled_from(METRICS),
        )
        def start(self, first, semantics, metric):
            self.known, self.semantics, self.metric = dict(enumerate(first)), semantics, metric
            catalogue = from_located(first, dimensions=DIMENSIONS, max_distance=FAR[metric], metric=metric)
            self.index = topk.create(method, catalogue, semantics=semantics)
            self.next = 1000

        @rule(more=st.lists(subscriptions(), min_size=1, max_size=60))
        def add(self, more):
            self.come(more, lambda id, subscription: self.index.add(id, *subscription))

        @rule(asked=events, k=st.sampled_from([1, 4, None]))
        def ask(self, asked, k):
            event, place = asked
            expected = similarities(self.known, event, place, self.metric, self.semantics)
            agrees(self.index.top(event, place, k), expected, k, method)

    return Updates


@every_method
def test_stateful_churn(method):
    survives(machine(method), histories=10, steps=8)


@every_method
@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_agrees_with_the_scan_on_a_workload(method, distribution, alpha):
    p = Located(subscriptions=3000, events=8, dimensions=40, distribution=distribution, alpha=alpha)
    workload = located_workload(p)
    scan, index = topk.create("scan", workload.catalogue), topk.create(method, workload.catalogue)
    for k in (1, 5, 40):
        assert list(index.top_many(workload.events, k)) == list(scan.top_many(workload.events, k))
    assert index.stats.entries <= scan.stats.entries


def test_the_paper_example():
    """s0 of Fig. 1 and Table 3: ψ_s .75, ψ_t 1, α .3 → .925."""
    index = topk.create("ri-tree", from_located([([(0, "=", 1.0, 1.0)], (0.0, 0.0), 0.3)], max_distance=8.0))
    assert index.top({0: 1.0}, (2.0, 0.0), 1) == [(0, pytest.approx(0.925))]


@every_method
def test_what_is_refused(method):
    good = ([(0, "=", 1.0, 0.5)], (0.0, 0.0), 0.5)
    index = topk.create(method, from_located([good], dimensions=2))
    with pytest.raises(CoverlayError, match="already"):
        index.add(0, *good)
    with pytest.raises(CoverlayError, match="not in the index"):
        index.remove(3)
    with pytest.raises(CoverlayError, match="finite"):
        index.top({}, (math.nan, 0.0), 1)
    with pytest.raises(CoverlayError, match="sum to at most 1"):
        index.add(1, [(0, "=", 1.0, 0.9), (1, "=", 1.0, 0.9)], (0.0, 0.0), 0.5)
    with pytest.raises(CoverlayError, match="alpha"):
        index.add(1, [], (0.0, 0.0), 1.5)
    with pytest.raises(CoverlayError, match="matching method"):
        topk.create("nonsense", from_located([good]))


def test_leaves_are_divided_by_text_where_text_decides(monkeypatch):
    """Under Zipf one predicate has most of the weight: the R^I-tree compares fewer subscriptions, the answers stay."""
    workload = located_workload(Located(subscriptions=70_000, events=10, distribution="zipf"))
    answers, compared = [], []
    for decisive in (0.4, 2.0):  # 2: never
        monkeypatch.setattr(rtree_packing, "_DECISIVE", decisive)
        index = topk.create("ri-tree", workload.catalogue)
        answers.append(list(index.top_many(workload.events, 5)))
        compared.append(index.stats.entries)
    assert answers[0] == answers[1]
    assert compared[0] < 0.95 * compared[1]


TREES = sorted(name for name, cls in METHODS.items() if "packing" in cls.options)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("method", TREES)
def test_answers_do_not_depend_on_how_a_tree_is_loaded(method, packing):
    workload = located_workload(Located(subscriptions=3000, events=6, dimensions=40, distribution="zipf"))
    scan, index = topk.create("scan", workload.catalogue), topk.create(method, workload.catalogue, packing=packing)
    index.check()
    assert list(index.top_many(workload.events, 5)) == list(scan.top_many(workload.events, 5))
    assert index.stats.entries < scan.stats.entries
    for id in range(0, 3000, 40):
        index.remove(id)
        scan.remove(id)
    for id in range(3000, 3100):
        given = ([(id % 40, "between", (0.0, 50.0), 1.0)], (30.0 + id % 7, -100.0), 0.5)
        index.add(id, *given)
        scan.add(id, *given)
    index.check()
    assert list(index.top_many(workload.events, 5)) == list(scan.top_many(workload.events, 5))


@pytest.mark.parametrize("packing", [PLACES, INSERTION])
def test_trees_of_places_do_not_look_at_alpha(packing):
    workload = located_workload(Located(subscriptions=2500, events=0, dimensions=20))
    leaves = []
    for alpha in (workload.catalogue.alpha, workload.catalogue.alpha[::-1].copy()):
        index = topk.create("ri-tree-paper", replace(workload.catalogue, alpha=alpha), packing=packing)
        for id in range(2500, 2600):
            index.add(id, [(0, "=", 1.0, 1.0)], (30.0 + id % 7, -100.0), float(alpha[id - 2500]))
        leaves.append({id: int(index._tree.home[row]) for id, row in index.store.row_of.items()})
    assert leaves[0] == leaves[1]


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_rt_tree_by_either_bound(bound):
    workload = located_workload(Located(subscriptions=3000, events=6, dimensions=40))
    scan, index = topk.create("scan", workload.catalogue), topk.create("rt-tree", workload.catalogue, bound=bound)
    assert list(index.top_many(workload.events, 5)) == list(scan.top_many(workload.events, 5))


def test_tighter_bounds_compare_fewer():
    """Of the same tree: Eq. 8 is never above the sum, and interval trees rule out more than hulls."""
    workload = located_workload(Located(subscriptions=5000, events=10, dimensions=40))
    compared = []
    for method, options in (
        ("ri-tree-paper", {}),
        ("rt-tree-paper", {"bound": "tight"}),
        ("rt-tree-paper", {"bound": "sum"}),
    ):
        index = topk.create(method, workload.catalogue, **options)
        index.top_many(workload.events, 5)
        compared.append(index.stats.entries)
    assert compared[0] < compared[1] < compared[2]


@every_method
def test_counters_of_located_matchers_are_complete(method):
    """With all wanted, each is compared by all its predicates and offered to the heap of answers."""
    workload = located_workload(Located(subscriptions=500, events=3, dimensions=20))
    index = topk.create(method, workload.catalogue)
    for event in workload.events:
        index.top(event.event, event.place, None)
    assert index.stats.entries == 3 * 500
    assert index.stats.comparisons >= 3 * len(workload.catalogue.expressions.attributes)
    assert index.stats.queued >= 3 * 500


@pytest.mark.parametrize("options", [{"packing": "random"}, {"bound": "loose"}])
def test_unknown_ways_of_an_rt_tree_are_refused(options):
    with pytest.raises(CoverlayError, match=next(iter(options))):
        topk.create("rt-tree", from_located([([(0, "=", 1.0, 0.5)], (0.0, 0.0), 0.5)]), **options)
