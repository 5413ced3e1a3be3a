"""Places in the language: near in subscriptions, at and weights in events, latitude and longitude in the schema."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language import Event, Near, Subscription, compile_subscription, parse_event, parse_subscription
from broker.language.schema import Schema, continuous, degrees
from coverlay import CoverlayError
from tests.broker.language import strategies

SCHEMA = Schema((continuous("price", 0, 100), degrees("lat", "latitude"), degrees("lon", "longitude", -20, 40)))
places = st.tuples(st.floats(-90, 90), st.floats(-180, 180))
words = st.sampled_from(["price", "near", "alpha", "at", "lat"])  # words of the language that attributes may have too


@settings(max_examples=100)
@given(strategies.subscriptions, st.none() | st.builds(lambda p, a: Near(*p, a), places, st.floats(0, 1)))
def test_subscriptions_round_trip(subscription, near):
    said = Subscription(subscription.predicates, score=subscription.score, near=near)
    assert parse_subscription(str(said)) == said


@settings(max_examples=100)
@given(st.dictionaries(words, st.floats(-5, 5), max_size=4), st.none() | places, st.data())
def test_events_round_trip(values, at, data):
    weights = {name: data.draw(st.sampled_from([0.0, 0.5, 3.0])) for name in values if data.draw(st.booleans())}
    event = Event(values, at=at, weights=weights)
    assert parse_event(str(event)) == event


def test_near_ranks_and_restricts_nothing():
    with_place = compile_subscription(SCHEMA, parse_subscription("price < 10 AND Near(48, 11) Alpha 0.25"))
    without = compile_subscription(SCHEMA, parse_subscription("price < 10"))
    assert with_place.near == (48.0, 11.0, 0.25)
    assert without.near is None
    assert with_place.key == without.key, "routing takes them for equal"
    assert compile_subscription(SCHEMA, parse_subscription("near (48, 11)")).near == (48.0, 11.0, 0.5)


def test_at_is_latitude_and_longitude():
    event = parse_event("price = 3 weight 0.5 at (48, 11)")
    assert event.encode(SCHEMA).tolist() == [3.0, 48.0, 11.0]
    assert event.encode_weights(SCHEMA).tolist() == [0.5, 1.0, 1.0]
    assert np.array_equal(parse_event("price = 3, lat = 48, lon = 11").encode(SCHEMA), event.encode(SCHEMA))
    assert parse_event("at (1, 2)").encode(SCHEMA).tolist()[1:] == [1.0, 2.0]
    assert math.isnan(parse_event("").encode(SCHEMA)[1])


def test_the_words_are_still_names():
    assert str(parse_subscription("near < 1 and alpha = 2 and at in {3}")) == "near < 1 and alpha = 2 and at in {3}"
    assert parse_event("at = 1, near = 2").values == {"at": 1, "near": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("near (91, 0)", "column 7: latitude 91.0 must be a number from -90 to 90"),
        ("near (0, 181)", "longitude 181.0 must be a number from -180 to 180"),
        ("near (0)", 'column 8: expected "," and a longitude'),
        ("near (0, 1", 'expected ")"'),
        ("near (0, 1) alpha 2", "column 19: alpha 2 must be from 0 to 1"),
        ("near (0, 1) and near (1, 1)", "column 17: a subscription is near one place only"),
        ("near (0, 1) beta 3", 'expected "and", "score" or the end'),
    ],
)
def test_mistakes_in_subscriptions(text, message):
    with pytest.raises(CoverlayError) as caught:
        parse_subscription(text)
    assert message in str(caught.value)


def test_mistakes_against_the_schema():
    plain = Schema((continuous("price", 0, 100),))
    with pytest.raises(CoverlayError, match="column 15: near needs attributes of the kinds latitude and longitude"):
        compile_subscription(plain, parse_subscription("price < 3 and near (1, 2)"))
    with pytest.raises(CoverlayError, match='"at" needs attributes of the kinds'):
        parse_event("price = 3 at (1, 2)").encode(plain)
    with pytest.raises(CoverlayError, match="lat has a value already"):
        parse_event("lat = 3 at (1, 2)").encode(SCHEMA)
    with pytest.raises(CoverlayError, match="outside its bounds"):
        parse_event("at (1, 90)").encode(SCHEMA)
    with pytest.raises(CoverlayError, match='expected "," or the end'):
        parse_event("price = 3 near (1, 2)")


def test_schema_tables():
    table = {"lat": {"kind": "latitude"}, "lon": {"kind": "longitude", "low": -20, "high": 40}}
    schema = Schema.from_table(table)
    assert schema.place == (0, 1)
    assert schema.integral == (False, False)
    assert schema.domain.tolist() == [[-90, 90], [-20, 40]]
    with pytest.raises(CoverlayError, match="1 attributes of kind latitude and 0 of kind longitude"):
        Schema.from_table({"lat": {"kind": "latitude"}})
    with pytest.raises(CoverlayError, match="degrees go from -90 to 90"):
        Schema.from_table({**table, "lat": {"kind": "latitude", "high": 100}})
    with pytest.raises(CoverlayError, match="has the keys kind, top"):
        Schema.from_table({**table, "lat": {"kind": "latitude", "top": 100}})
