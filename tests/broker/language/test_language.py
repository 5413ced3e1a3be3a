"""Printing and parsing are inverse; a mistake is pointed at."""

import math
import re
import signal
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language import (
    Event,
    Operator,
    Predicate,
    Subscription,
    compile_subscription,
    parse_event,
    parse_subscription,
)
from broker.language.schema import Schema, categorical, continuous, integer
from coverlay import CoverlayError

names = st.sampled_from(["a", "price", "_x9", "été", "stock.price", "andy", "inn", "e5", "True_"])
numbers = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False))
values = st.one_of(numbers, st.text())
any_weight = st.floats(0, allow_nan=False, allow_infinity=False)


@st.composite
def any_predicates(draw):
    operator = draw(st.sampled_from(Operator))
    if operator in (Operator.IN, Operator.NOT_IN):
        said = draw(st.lists(values, max_size=4))
    else:
        said = draw(st.lists(values, min_size=1, max_size=1))
        if operator is Operator.BETWEEN:
            said += draw(st.lists(values, min_size=1, max_size=1))
    return Predicate(draw(names), operator, tuple(said), draw(any_weight))


any_subscriptions = st.builds(
    lambda ps, score: Subscription(tuple(ps), score=score),
    st.lists(any_predicates(), max_size=4),
    st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=150)
@given(any_subscriptions)
def test_what_is_printed_parses_to_the_same(subscription):
    parsed = parse_subscription(str(subscription))
    assert parsed == subscription
    # Equality does not tell 1 from 1.0, printing does.
    assert str(parsed) == str(subscription)


@settings(max_examples=100)
@given(st.dictionaries(names, values, max_size=4))
def test_events_round_trip(said):
    assert parse_event(str(Event(said))).values == said


@settings(max_examples=150)
@given(st.text())
def test_any_text_parses_or_is_a_coverlay_error(text):
    try:
        subscription = parse_subscription(text)
    except CoverlayError as error:
        assert "column" in str(error)  # noqa: PT017
    else:
        assert parse_subscription(str(subscription)) == subscription


TOKENS = ["price", "<", ">=", "and", "between", "in", "not", "{", "}", ",", "1", "2.5", '"x"', "weight", "score"]


@settings(max_examples=150)
@given(st.lists(st.sampled_from(TOKENS), max_size=9).map(" ".join))
def test_any_tokens_parse_or_are_a_coverlay_error(text):
    test_any_text_parses_or_is_a_coverlay_error.hypothesis.inner_test(text)


def test_the_example_of_the_documentation():
    text = 'price between 10 and 50 and year >= 1990 and issue = "MSFT"'
    subscription = parse_subscription(text, id=3)
    assert subscription.predicates == (
        Predicate("price", Operator.BETWEEN, (10, 50)),
        Predicate("year", Operator.AT_LEAST, (1990,)),
        Predicate("issue", Operator.EQUAL, ("MSFT",)),
    )
    assert subscription.id == 3
    assert str(subscription) == text


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("price≤10", "price <= 10"),
        ("price ≥ 10 AND year≠3", "price >= 10 and year != 3"),
        ("price == 10 and year <> 3", "price = 10 and year != 3"),
        ("price < 10 weight 2.5", "price < 10 weight 2.5"),
        ("issue NOT IN ('A', 'it''s')".replace("''", "\\'"), 'issue not in {"A", "it\'s"}'),
        ("issue in []", "issue in {}"),
        ("year in (1,2)", "year in {1, 2}"),
        ("issue = 'say \"hi\"'", 'issue = "say \\"hi\\""'),
        ('issue = "\\u00e9\\n"', 'issue = "é\\n"'),
        ("true", "true"),
        ("TRUE score 2", "true score 2.0"),
        ("price < 1 score 0.25", "price < 1 score 0.25"),
        ("price < -.5e1", "price < -5.0"),
        ("price\n<\t+3", "price < 3"),
    ],
)
def test_other_spellings(written, printed):
    assert str(parse_subscription(written)) == printed


MISTAKES = [
    ("", 1, "expected the name of an attribute, found the end"),
    ("price", 6, "expected <, <=, =, !=, >=, >, in, not in, between or prefix, found the end"),
    ("price 10", 7, "expected <, <=, =, !=, >=, >, in, not in, between or prefix, found '10'"),
    ("price < ", 9, "expected a number or a quoted text, found the end"),
    ("price < and", 9, "expected a number or a quoted text, found 'and'"),
    ("price < 10 and", 15, "expected the name of an attribute, found the end"),
    ("price < 10 year = 3", 12, 'expected "and", "score" or the end, found \'year\''),
    ("price between 10", 17, 'expected "and" and the upper bound, found the end'),
    ("issue = MSFT", 9, 'texts are quoted: "MSFT"'),
    ('issue = "MSFT', 9, "no closing quote"),
    ('issue = "\\q"', 9, "an escape that is none of"),
    ("price in 3", 10, "expected a set such as {1, 2}, found '3'"),
    ("price in {1 2}", 13, 'expected "," or "}", found \'2\''),
    ("price in {1, }", 14, "expected a number or a quoted text, found '}'"),
    ("price in {1]", 12, 'expected "," or "}", found \']\''),
    ("price not 3", 11, "expected \"in\", found '3'"),
    ("price < 1e999", 9, "1e999 is too large a number"),
    ("price < 1.2.3", 9, "this is not a number"),
    ("price < 12abc", 9, "this is not a number"),
    ("price < --3", 9, "this is not a number"),
    ("price @ 3", 7, "the character '@' has no meaning here"),
    ("price < 3 weight -1", 18, "weight -1 must not be negative"),
    ("price < 3 weight high", 18, "expected a number, found 'high'"),
    ("price < 3 score", 16, "expected a number, found the end"),
    ("and < 3", 1, "expected the name of an attribute, found 'and'"),
    ("true and price < 3", 6, 'expected "and", "score" or the end, found \'and\''),
]


@pytest.mark.parametrize(("text", "column", "message"), MISTAKES)
def test_a_mistake_is_pointed_at(text, column, message):
    with pytest.raises(CoverlayError) as caught:
        parse_subscription(text)
    said, line, caret = str(caught.value).split("\n")
    if "true and" not in text:  # there "and" is found, after "and" was among the expected
        assert message in said
    assert said.startswith(f"column {column}: ")
    assert line == "  " + text
    assert caret == "  " + " " * (column - 1) + "^"


def test_a_mistake_in_a_long_text_shows_its_surroundings():
    text = " and ".join(f"a{i} < {i}" for i in range(200)) + " and b ! 3"
    with pytest.raises(CoverlayError) as caught:
        parse_subscription(text)
    said, line, caret = str(caught.value).split("\n")
    assert said.startswith(f"column {text.index('!') + 1}: ")
    assert len(line) < 150
    assert line[caret.index("^")] == "!"


def test_a_mistake_in_several_lines():
    with pytest.raises(CoverlayError) as caught:
        parse_subscription("price < 3\nand year ? 2\nand a < 1")
    assert str(caught.value).split("\n")[0].startswith("line 2, column 10: ")
    assert str(caught.value).split("\n")[1:] == ["  and year ? 2", "           ^"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("price 3", 'expected "="'), ("price = 3 year = 4", 'expected "," or the end'), ("a = 1, a = 2", "already")],
)
def test_mistakes_in_events(text, message):
    with pytest.raises(CoverlayError, match=message):
        parse_event(text)


def test_values_that_make_no_sense_are_refused():
    with pytest.raises(CoverlayError, match="weight nan"):
        Predicate("a", Operator.LESS, (1,), math.nan)
    with pytest.raises(CoverlayError, match="takes 2 values, not 1"):
        Predicate("a", Operator.BETWEEN, (1,))
    with pytest.raises(CoverlayError, match="score inf"):
        Subscription((), score=math.inf)


@contextmanager
def at_most_cpu_seconds(seconds):
    """A guard against work that would take hours: the limit is a thousand times what is needed."""

    def give_up(*_):
        raise AssertionError(f"not done after {seconds} s of computing")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


MANY = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        f"price < {'1' * MANY}x",
        f"price < {'1' * MANY}.{'1' * MANY}.1",
        f"price < {'1' * MANY}",
        f"price < 1e{'1' * MANY}x",
        f"price < {'x' * MANY}",
        f"price {'x' * MANY} 5",
        f"{'x' * MANY} = 1 {'y' * MANY}",
        f'price < "{"x" * MANY}',
        f'price < 5 "{"x" * MANY}"',
    ],
    ids=lambda text: text[:12],
)
def test_a_mistake_in_a_million_characters_is_found_at_once_and_not_repeated(text):
    with at_most_cpu_seconds(20), pytest.raises(CoverlayError) as refused:
        parse_subscription(text)
    assert len(str(refused.value)) < 300
    assert max(map(len, re.findall(r"1+|x+|y+", str(refused.value)))) <= 60


def test_values_of_any_length_are_quoted_in_part():
    schema = Schema((categorical("issue", ["IBM"]), integer("year", 0, 10)))
    long = "x" * 100_000
    mistakes = [
        lambda: schema.attributes[0].encode(long),
        lambda: schema.attributes[1].encode(10**4000),
        lambda: Schema.from_table({"a": long}),
        lambda: continuous(long + "!", 0, 1),
        lambda: parse_event(f"{long} = 1, {long} = 2"),
        lambda: compile_subscription(schema, Subscription((Predicate("year", Operator.IN, (1.5,) * 10_000),))),
        lambda: compile_subscription(schema, parse_subscription(" and ".join(["year < 1", "year > 2"] * 500))),
    ]
    for mistake in mistakes:
        with pytest.raises(CoverlayError) as refused:
            mistake()
        assert len(str(refused.value)) < 300
