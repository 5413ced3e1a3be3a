"""Compiled filters admit exactly what predicates say; equal conditions share one canonical form."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language import Subscription, compile_subscription, parse_subscription
from broker.language.schema import Schema, categorical, continuous, integer
from covering.residue import EMPTY
from coverlay import CoverlayError
from routing.filter import Filter
from tests.broker.language import oracles, strategies

SCHEMA = strategies.SCHEMA


def compiled(text, schema=SCHEMA):
    filter_ = compile_subscription(schema, parse_subscription(text))
    filter_.check()
    return filter_


def try_compile(subscription):
    try:
        filter_ = compile_subscription(SCHEMA, subscription)
    except CoverlayError as error:
        assert "can never match" in str(error)  # noqa: PT017
        return None
    filter_.check()
    return filter_


@settings(max_examples=200)
@given(strategies.subscriptions, st.lists(strategies.events, min_size=1, max_size=10))
def test_filters_agree_with_predicates(subscription, events):
    filter_ = try_compile(subscription)
    for event in events:
        expected = oracles.matches(subscription, event)
        if filter_ is None:
            assert not expected
        else:
            assert filter_.matches(SCHEMA.encode(event)) == expected
            assert filter_.relaxed_score(SCHEMA.encode(event)) == oracles.relaxed_score(subscription, event)


# All values at which a condition over these strategies can change.
PRICES = sorted({x for i in range(-5, 6) for x in (i, math.nextafter(i, -9), math.nextafter(i, 9), i + 0.5, i + 0.25)})
WITNESSES = {"price": PRICES, "year": list(range(-9, 10)), "issue": list(SCHEMA["issue"].categories)}


@settings(max_examples=150)
@given(st.sampled_from(["price", "year", "issue"]), st.data())
def test_never_match_is_said_exactly_when_nothing_matches(attribute, data):
    own = strategies.on[attribute]
    subscription = Subscription(tuple(data.draw(st.lists(own, min_size=1, max_size=4))))
    some = any(oracles.matches(subscription, {attribute: value}) for value in WITNESSES[attribute])
    assert (try_compile(subscription) is not None) == some


@settings(max_examples=150)
@given(st.sampled_from(["year", "issue"]), st.data())
def test_equal_conditions_have_equal_keys(attribute, data):
    own = strategies.on[attribute]
    made = []
    for _ in range(2):
        subscription = Subscription(tuple(data.draw(st.lists(own, min_size=1, max_size=3))))
        filter_ = try_compile(subscription)
        admitted = [v for v in WITNESSES[attribute] if oracles.matches(subscription, {attribute: v})]
        made.append((filter_ and filter_.key, admitted))
    assert (made[0][0] == made[1][0]) == (made[0][1] == made[1][1])


@settings(max_examples=150)
@given(strategies.subscriptions, strategies.subscriptions, st.lists(strategies.events, min_size=1, max_size=15))
def test_containment_is_never_claimed_wrongly(one, other, events):
    wide, narrow = try_compile(one), try_compile(other)
    if wide is None or narrow is None:
        return
    assert wide.contains(wide, SCHEMA.integral)
    if wide.contains(narrow, SCHEMA.integral):
        for event in events:
            assert not oracles.matches(other, event) or oracles.matches(one, event)


@settings(max_examples=200)
@given(st.sampled_from(["year", "issue"]), st.data())
def test_containment_on_whole_numbers_is_found(attribute, data):
    own = strategies.on[attribute]
    pair = [Subscription(tuple(data.draw(st.lists(own, min_size=1, max_size=2)))) for _ in range(2)]
    wide, narrow = map(try_compile, pair)
    if wide is None or narrow is None:
        return
    sets = [{v for v in WITNESSES[attribute] if oracles.matches(s, {attribute: v})} for s in pair]
    assert wide.contains(narrow, SCHEMA.integral) == (sets[1] <= sets[0])


def test_open_bounds_are_the_next_value_inside():
    assert compiled("price < 3").box[0].tolist() == [-math.inf, math.nextafter(3, -math.inf)]
    assert compiled("price > 3").box[0].tolist() == [math.nextafter(3, math.inf), math.inf]
    assert compiled("price <= 3").box[0].tolist() == [-math.inf, 3.0]
    assert compiled("year < 3").box[1].tolist() == [-math.inf, 2.0]
    assert compiled("year > 3").box[1].tolist() == [4.0, math.inf]
    assert compiled("year < 2.5 and year > -1.5").box[1].tolist() == [-1.0, 2.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("year > 3", "year >= 4"),
        ("year in {1, 2, 3}", "year between 1 and 3"),
        ("year in {2, 2}", "year = 2"),
        ("year between 1 and 5 and year != 1", "year between 2 and 5"),
        ("year between 1 and 4 and year not in {2, 3}", "year in {1, 4}"),
        ("year between 1 and 5 and year != 9", "year between 1 and 5"),
        ('issue != "A"', 'issue in {"B", "C", "D", "E"}'),
        ('issue in {"A", "C"}', 'issue not in {"B", "D", "E"}'),
        ('issue not in {"A", "B", "C", "E"}', 'issue = "D"'),
        ("price >= 1 and price != 1", "price > 1"),
        ("price in {1, 2} and price < 2", "price = 1"),
        ("price = 0", "price = -0.0"),
        ("price < 3 and year = 1", "year = 1 and price < 3"),
    ],
)
def test_different_words_same_key(one, other):
    assert compiled(one).key == compiled(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("price < 3", "price <= 3"),
        ("price != 3", "price != 2"),
        ("price != 3", "true"),
        ("price in {1, 3}", "price between 1 and 3"),
        ("year in {1, 3}", "year between 1 and 3"),
        ("price != 1", "year != 1"),
        ("price = 1", "year = 1"),
    ],
)
def test_different_conditions_different_keys(one, other):
    assert compiled(one).key != compiled(other).key


@pytest.mark.parametrize(
    "text", ["year = 2", "year in {1, 2, 3}", 'issue in {"B", "C"}', "price between 1 and 2", 'issue = "A"', "true"]
)
def test_a_box_that_says_it_all_has_no_residue(text):
    assert compiled(text).residue == EMPTY
    assert compiled(text).plain


@pytest.mark.parametrize("text", ["price != 1", "price in {1, 2}", 'issue in {"A", "E"}', "year in {1, 9}"])
def test_what_a_box_cannot_say_is_residue(text):
    assert not compiled(text).plain


def test_weights_and_mentioned():
    filter_ = compiled("price > 1 weight 2 and price < 3 weight 0.5 and year = 1 score 7")
    assert filter_.weights.tolist() == [2.5, 1.0, 0.0]
    assert filter_.mentioned == (True, True, False)
    assert filter_.score == 7.0
    nan = math.nan
    assert filter_.matches(np.array([2.0, 1.0, nan]))
    assert not filter_.matches(np.array([nan, 1.0, 0.0])), "a missing attribute fails its predicate"
    assert filter_.relaxed_score(np.array([nan, 1.0, nan])) == 1.0
    assert filter_.relaxed_score(np.array([nan, nan, 0.0])) is None


def test_bounds_beyond_the_domain_are_fine():
    assert compiled("price < 1000 and year >= -99").box[:2].tolist() == [
        [-math.inf, math.nextafter(1000, 0)],
        [-99.0, math.inf],
    ]


def test_a_large_set_of_whole_numbers_far_apart_stays_a_set():
    filter_ = compiled("year in {-9000000000000000, 9000000000000000}")
    assert dict(filter_.residue.allowed)[1] == (-9e15, 9e15)


MISTAKES = [
    ("year = 1 and price not in {}", "column 14: price not in {} leaves nothing out; omit it"),
    ("prise < 3", "column 1: unknown attribute 'prise'; there are: issue, price, year"),
    ('issue < "B"', "column 1: issue is categorical and has no order"),
    ('issue = "Z"', "column 9: issue has no category 'Z'; there are: A, B, C, D, E"),
    ("issue = 3", "column 9: issue has no category 3"),
    ('year = 1 and price < "B"', "column 22: price is continuous; 'B' is not a finite number"),
    ("year = 1990.5", "column 8: year is integer; 1990.5 is not a whole number"),
    ("year in {1, 2.5}", "column 13: year is integer; 2.5 is not a whole number"),
    ("year < 1e17", "column 8: year is integer; 1e+17 is beyond ±2^53"),
    ("price < 3 and price > 5", "can never match: price < 3 and price > 5"),
    ("price in {}", "can never match: price in {}"),
    ("price between 5 and 1", "can never match"),
    ("year > 3 and year < 4", "can never match"),
    ("year between 1 and 2 and year not in {1, 2}", "can never match"),
    ('issue not in {"A", "B", "C", "D", "E"}', "can never match"),
    ("price = 1 and price != 1", "can never match"),
    ("price < -1.7976931348623157e308", "can never match"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_are_pointed_at(text, message):
    with pytest.raises(CoverlayError) as caught:
        compiled(text)
    assert message in str(caught.value)


def test_mistakes_without_a_text_name_the_predicate():
    written = parse_subscription("prise < 3")
    with pytest.raises(CoverlayError, match=r"^prise < 3: unknown attribute"):
        compile_subscription(SCHEMA, Subscription(written.predicates))


def test_of_box_agrees_with_the_compiler():
    for text in ["price between 1 and 2", "year = 3 and price > 0", "true", 'price != 1 and issue = "B"']:
        made = compiled(text)
        again = Filter.of_box(made.box, made.residue)
        again.check()
        assert again.key == made.key
        assert again.mentioned == made.mentioned


def test_schema_round_trips_and_encodes():
    assert SCHEMA.domain.tolist() == [[-4, 4], [-6, 6], [0, 4]]
    assert SCHEMA.integral == (False, True, True)
    for price, year, issue in itertools.product([-4.0, 0.5, 4.0], [-6, 0, 6], "AE"):
        values = {"price": price, "year": year, "issue": issue}
        assert SCHEMA.decode(SCHEMA.encode(values)) == values
    assert np.isnan(SCHEMA.encode({})).all()


SCHEMA_MISTAKES = [
    (lambda: Schema(()), "at least one attribute"),
    (lambda: Schema((continuous("a"), continuous("a"))), "'a' more than once"),
    (lambda: continuous("and"), "attribute name 'and'"),
    (lambda: continuous("two words"), "attribute name 'two words'"),
    (lambda: continuous("a", 1, 1), "low 1 must be below high 1"),
    (lambda: continuous("a", 0, math.nan), "high is nan"),
    (lambda: continuous("a", -math.inf, 0), "low is -inf"),
    (lambda: continuous("a", "x", 0), "low is 'x'"),
    (lambda: integer("a", 0, 1.5), "high is 1.5; it must be a whole number"),
    (lambda: integer("a", 0, 2**60), "within ±2^53"),
    (lambda: categorical("a", []), "at least one"),
    (lambda: categorical("a", ["x", "x"]), "'x' more than once"),
    (lambda: categorical("a", ["x", 3]), "list of texts"),
    (lambda: Schema.from_table({"a": {"kind": "word"}}), "there are: categorical, continuous, integer"),
    (lambda: Schema.from_table({"a": 3}), "schema.a is 3"),
    (lambda: Schema.from_table({"a": {"kind": "integer", "low": 1}}), "a integer attribute has: high, kind, low"),
    (lambda: Schema.from_table({"a": {"kind": "categorical", "categories": "xyz"}}), "a list of texts"),
    (lambda: Schema.from_table([1]), "must be a table"),
    (lambda: SCHEMA.index("b"), "unknown attribute 'b'"),
    (lambda: SCHEMA.encode({"price": 5.0}), "price is 5.0, outside its bounds -4 to 4"),
    (lambda: SCHEMA.encode({"year": 1.5}), "1.5 is not a whole number"),
    (lambda: SCHEMA.encode({"price": math.nan}), "nan is not a finite number"),
    (lambda: SCHEMA.encode({"price": True}), "True is not a finite number"),
    (lambda: SCHEMA.encode({"price": 10**400}), "is not a finite number"),
    (lambda: SCHEMA.encode({"issue": "Z"}), "no category 'Z'"),
]


@pytest.mark.parametrize(("make", "message"), SCHEMA_MISTAKES)
def test_schema_mistakes(make, message):
    with pytest.raises(CoverlayError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("sign", ["", "-"])
def test_whole_numbers_beyond_2_53_have_neighbours_too(sign):
    """There whole numbers are 2 apart: the next one is not the number plus 1."""
    schema = Schema((integer("n", -(2**53), 2**53),))
    far, towards = f"{sign}9007199254740992", "<" if sign else ">"
    edge = float(far) + (-2.0 if sign else 2.0)
    for text in (f"n {towards} {far}", f"n {towards}= {far} and n != {far}"):
        box = compile_subscription(schema, parse_subscription(text)).box
        assert edge in box[0].tolist(), text
