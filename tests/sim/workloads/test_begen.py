"""The generators: what is asked for comes out, and equal parameters give equal arrays."""

from __future__ import annotations

import numpy as np
import pytest

import topk
from coverlay import CoverlayError
from sim.workloads.begen import Begen, begen, dblp_like, fewest_topical, unmatched
from sim.workloads.located import Located, located_workload


@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
@pytest.mark.parametrize("probability", [0.001, 0.01, 0.09])
def test_match_probability_is_hit_within_ten_per_cent(distribution, probability):
    workload = begen(Begen(subscriptions=50_000, events=64, distribution=distribution, match_probability=probability))
    index = topk.create("scan", workload.catalogue)
    matches = np.array([len(index.top(event, None)) for event in workload.events])
    assert matches.mean() / len(workload.catalogue) == pytest.approx(probability, rel=0.1)


def test_sizes_and_values_are_those_asked_for():
    p = Begen(subscriptions=5000, events=10, dimensions=50, cardinality=2500, subscription_size=5, event_size=13)
    catalogue = begen(p).catalogue
    assert np.diff(catalogue.offsets).mean() == pytest.approx(5, rel=0.05)
    assert catalogue.lo.min() >= 0
    assert catalogue.hi.max() < 2500
    assert len(begen(p).events[0].attributes) == 13


def test_zipf_attributes_are_skewed_and_rare_ones_weigh_more():
    catalogue = begen(Begen(subscriptions=5000, events=1, distribution="zipf")).catalogue
    counts = np.bincount(catalogue.attributes, minlength=400)
    assert counts[:10].sum() > 5 * counts[200:210].sum()
    common, rare = np.argmax(counts), np.argmin(np.where(counts > 0, counts, 10**9))
    weights = catalogue.weights
    assert weights[catalogue.attributes == rare].min() > weights[catalogue.attributes == common].max()


def test_same_seed_same_arrays():
    one, two = (begen(Begen(subscriptions=1000, events=5)) for _ in range(2))
    other = begen(Begen(subscriptions=1000, events=5, seed=2))
    assert (one.catalogue.lo == two.catalogue.lo).all()
    assert (one.events.lo == two.events.lo).all()
    assert not np.array_equal(one.catalogue.lo, other.catalogue.lo)
    a, b = (located_workload(Located(subscriptions=500, events=5)) for _ in range(2))
    assert (a.catalogue.places == b.catalogue.places).all()
    assert a.events[3].place == b.events[3].place


def test_events_that_match_nothing():
    workload = begen(Begen(subscriptions=5000, events=10, match_probability=0.01))
    index = topk.create("scan", workload.catalogue)
    missed = sum(len(index.top(event, None)) for event in unmatched(workload))
    assert missed < 0.02 * sum(len(index.top(event, None)) for event in workload.events)


@pytest.mark.parametrize(("kind", "size"), [("author", 8), ("title", 35)])
def test_dblp_like_sets(kind, size):
    workload = dblp_like(kind, 2000, 10)
    assert workload.catalogue.dimensions == 677
    assert np.diff(workload.catalogue.offsets).mean() == pytest.approx(size, rel=0.05)
    index = topk.create("pivot", workload.catalogue)
    assert all(index.top(event, 1) for event in workload.events)


@pytest.mark.parametrize("values", [20, 100])
def test_located_ranges_are_as_wide_as_they_are_said_to_be(values):
    """Uniform, but cut off at the last value: narrow ones are more likely, the more so the fewer values there are."""
    widest = 19
    expressions = located_workload(Located(subscriptions=5000, events=1, cardinality=values)).catalogue.expressions
    widths = (expressions.hi - expressions.lo + 1).astype(int)
    found = np.bincount(widths, minlength=widest + 1)[1:] / len(widths)
    width = np.arange(1, widest + 1)
    law = ((values - width + 1) + (widest - width)) / (widest * values)
    assert law.sum() == pytest.approx(1.0)
    assert np.abs(found - law).max() < 4 * np.sqrt(law.max() / len(widths))
    assert expressions.hi.max() == values - 1


def test_located_weights_sum_to_one_and_alpha_follows_its_law():
    workload = located_workload(Located(subscriptions=2000, events=2, alpha=0.9))
    expressions = workload.catalogue.expressions
    assert np.add.reduceat(expressions.weights, expressions.offsets[:-1]) == pytest.approx(1.0)
    assert workload.catalogue.alpha.mean() == pytest.approx(0.9, abs=0.01)


def test_what_the_generators_refuse():
    with pytest.raises(CoverlayError, match="distribution"):
        begen(Begen(distribution="normal"))
    with pytest.raises(CoverlayError, match="match_probability"):
        begen(Begen(match_probability=0.0))
    with pytest.raises(CoverlayError, match="subscription_size"):
        begen(Begen(subscription_size=20, event_size=10))
    with pytest.raises(CoverlayError, match="kind"):
        dblp_like("books", 10, 1)


def test_the_share_of_near_misses_is_a_parameter_and_the_share_of_matches_stays():
    """With the fewest topical expressions, all of a topic and variant match: none misses by a predicate or two."""
    p = Begen(subscriptions=50_000, events=64, match_probability=0.01)

    def held(topical):
        workload = begen(p, topical=topical)
        c, found = workload.catalogue, np.zeros(3)
        for event in workload.events:
            values = np.full(p.dimensions, np.nan)
            values[event.attributes] = event.lo
            hits = (c.lo <= values[c.attributes]) & (values[c.attributes] <= c.hi)
            missing = np.diff(c.offsets) - np.add.reduceat(hits, c.offsets[:-1])
            found += [(missing == misses).mean() for misses in range(3)]
        return found / len(workload.events)

    usual, least = held(None), held(fewest_topical(p))
    assert 0.005 < least[0] < 0.02, "as many match"
    assert 0.005 < usual[0] < 0.02
    assert usual[1] + usual[2] > 0.5 * usual[0], "near misses"
    assert least[1] + least[2] < 0.1 * least[0], "none"
    with pytest.raises(CoverlayError, match=r"topical 0\.001 must be from"):
        begen(p, topical=0.001)
