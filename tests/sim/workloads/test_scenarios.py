"""The readable scenarios: every subscription can be said and read back, and what is said is what the names promise."""

from __future__ import annotations

import numpy as np
import pytest

from broker.language import compile_subscription, parse_event, parse_subscription
from broker.language.schema import Schema, categorical, continuous, integer
from coverlay import CoverlayError
from sim.random_streams import streams
from sim.tell.as_text import event_of, subscription_of
from sim.workloads import WORKLOADS, generate
from sim.workloads.contract import from_filters

SCENARIOS = {"stocks": 6, "ads": 6, "jobs": 6, "sensors": 5}


def make(kind, subscriptions=200, events=100, seed=1, **options):
    attributes = options.pop("attributes", SCENARIOS.get(kind, 3))
    return generate(kind, streams(seed), attributes=attributes, subscriptions=subscriptions, events=events, **options)


def assert_same_filter(workload, row, again):
    np.testing.assert_array_equal(again.box, np.column_stack([workload.lo[row], workload.hi[row]]))
    assert again.residue == workload.residue(row)
    assert again.mentioned == tuple(workload.mentioned[row])
    np.testing.assert_allclose(again.weights, workload.weights[row])
    assert again.score == workload.scores[row]


@pytest.mark.parametrize("kind", WORKLOADS)
def test_what_is_said_is_read_back_as_the_same_filter(kind):
    workload = make(kind)
    for row in range(len(workload.lo)):
        text = str(subscription_of(workload, row))
        assert_same_filter(workload, row, compile_subscription(workload.schema, parse_subscription(text)))


@pytest.mark.parametrize("kind", WORKLOADS)
def test_events_are_read_back(kind):
    workload = make(kind)
    for row in range(len(workload.events)):
        again = parse_event(str(event_of(workload, row))).encode(workload.schema)
        np.testing.assert_array_equal(again, workload.events[row])


@pytest.mark.parametrize(
    "text",
    [
        "price < 10.5",
        "price > 0.1 and price < 0.3",
        "price >= 3.0 and price < 7.0",
        "price != 5.0",
        "price in {1.5, 2.5}",
        "count between 3 and 9 and count not in {5, 7}",
        "count = 4",
        "true",
        'colour != "red"',
        'colour in {"green", "red"} and price <= 2.0',
        'colour = "blue" score 0.25',
        "price >= 1.0 weight 0.3 and count != 7 weight 2.0",
    ],
)
def test_every_operator_comes_back_in_its_own_words(text):
    colours = ["red", "green", "blue", "white", "black", "pink"]
    schema = Schema((continuous("price", 0, 100), integer("count", 0, 20), categorical("colour", colours)))
    workload = from_filters(schema, [compile_subscription(schema, parse_subscription(text))], np.empty((0, 3)))
    said = str(subscription_of(workload, 0))
    assert_same_filter(workload, 0, compile_subscription(schema, parse_subscription(said)))
    assert len(said) <= len(text) + len(" weight 1.0"), said


def test_words_leave_out_what_does_not_count():
    workload = make("ads")
    assert "weight" in str(subscription_of(workload, 0, "relaxed"))
    assert "score" not in str(subscription_of(workload, 0, "relaxed"))
    assert "weight" not in str(subscription_of(workload, 0, "exact"))


@pytest.mark.parametrize("kind", SCENARIOS)
def test_attributes_are_the_first_of_the_schema(kind):
    whole, part = make(kind), make(kind, attributes=3)
    assert part.schema.names == whole.schema.names[:3]
    np.testing.assert_array_equal(part.lo, whole.lo[:, :3])
    np.testing.assert_array_equal(part.events, whole.events[:, :3])
    with pytest.raises(CoverlayError, match=f"attributes is 9; this scenario has {SCENARIOS[kind]}"):
        make(kind, attributes=9)


@pytest.mark.parametrize("kind", SCENARIOS)
def test_wishes_cover_each_other(kind):
    """What makes the scenarios worth routing: a good part of the wishes lies within another one."""
    workload = make(kind, subscriptions=400)
    inside = (workload.lo[:, None] <= workload.lo[None]) & (workload.hi[:, None] >= workload.hi[None])
    inside = inside.all(axis=2) & ~np.eye(400, dtype=bool)
    assert inside.any(axis=0).mean() > 0.2


def test_quotes_fit_their_companies():
    from sim.workloads.stocks import COMPANIES

    workload = make("stocks", events=300)
    for row in range(300):
        quote = event_of(workload, row).values
        sector, usual = COMPANIES[quote["symbol"]]
        assert quote["sector"] == sector
        assert 0.8 * usual < quote["price"] < 1.25 * usual
