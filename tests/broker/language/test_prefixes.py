"""Texts and prefixes: a prefix is an interval of the numbers of texts, to the last text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import covering
from broker.language import compile_subscription, parse_event, parse_subscription
from broker.language.schema import Schema
from broker.language.text_code import ONE
from coverlay import CoverlayError
from sim.tell.as_text import subscription_of
from sim.workloads.contract import from_filters

SCHEMA = Schema.from_table({"topic": {"kind": "text"}, "price": {"kind": "continuous", "low": 0, "high": 10}})
SHOPS = Schema.from_table({"shop": {"kind": "categorical", "categories": ["north-1", "south", "north-2"]}})
LETTERS = st.text(st.sampled_from("abzé\x00\x7f~ÿ"), max_size=4)


def compiled(text, schema=SCHEMA):
    return compile_subscription(schema, parse_subscription(text))


def matches(subscription, value):
    event = parse_event("topic = " + repr_of(value)).encode(SCHEMA)
    return compiled(subscription).matches(event)


def repr_of(text):
    import json

    return json.dumps(text, ensure_ascii=False)


@settings(max_examples=200)
@given(LETTERS, LETTERS)
def test_a_prefix_matches_what_begins_with_it_and_nothing_else(prefix, value):
    assume(len(prefix.encode()) <= ONE.longest)
    assert matches(f"topic prefix {repr_of(prefix)}", value) == value.startswith(prefix)
    assume(len(prefix.encode()) < ONE.longest)
    assert matches(f"topic = {repr_of(prefix)}", value) == (value == prefix)
    assert matches(f"topic != {repr_of(prefix)}", value) == (value != prefix)


def test_the_next_prefix_and_the_text_itself():
    assert matches('topic prefix "ab"', "ab")
    assert matches('topic prefix "ab"', "abc-and-much-more")
    assert not matches('topic prefix "ab"', "ac")
    assert not matches('topic prefix "ab"', "aa\x7f")
    assert not matches('topic prefix "ab"', "a")
    assert matches('topic prefix ""', "anything")
    assert not compiled('topic prefix ""').matches(parse_event("price = 1").encode(SCHEMA))


@settings(max_examples=100)
@given(st.lists(LETTERS, min_size=1, max_size=8), LETTERS)
def test_prefixes_cover_each_other_in_every_method(held, asked):
    held = [text for text in held if len(text.encode()) <= ONE.longest]
    assume(held and len(asked.encode()) <= ONE.longest)
    for method in ("scan", "packed", "kdtree"):
        index = covering.create(method, SCHEMA.domain)
        for number, text in enumerate(held):
            index.add(number, compiled(f"topic prefix {repr_of(text)}").box)
        found = index.find_cover(compiled(f"topic prefix {repr_of(asked)}").box)
        able = [n for n, text in enumerate(held) if asked.startswith(text)]
        assert found in able if able else found is None


@pytest.mark.parametrize(
    "text",
    ['prefix "ab"', 'prefix "ab" and topic != "ab"', '= "abcde"', 'prefix "abcdef"', '!= "x"', 'in {"a", "b"}'],
)
def test_what_is_compiled_is_said_again(text):
    filter = compiled(f"topic {text}")
    workload = from_filters(SCHEMA, [filter], np.empty((0, 2)))
    again = compile_subscription(SCHEMA, subscription_of(workload, 0))
    assert again.key == filter.key
    assert str(parse_subscription(f"topic {text}")) == f"topic {text}"


def test_a_prefix_of_categories_is_a_set_of_them():
    filter = compiled('shop prefix "north"', SHOPS)
    found = {s: filter.matches(parse_event(f'shop = "{s}"').encode(SHOPS)) for s in SHOPS["shop"].categories}
    assert found == {"north-1": True, "south": False, "north-2": True}
    with pytest.raises(CoverlayError, match="can never match"):
        compiled('shop prefix "east"', SHOPS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('topic prefix "abcdefg"', "7 bytes; a prefix has at most 6"),
        ('topic = "abcdef"', "6 bytes; a text that is compared as a whole has at most 5"),
        ('topic < "a"', "no order"),
        ("topic prefix 3", "a text in quotes"),
        ('price prefix "3"', "prefix is for text and categorical"),
        ("topic = 3", "not a text"),
        ('topic prefix "a" and topic prefix "b"', "can never match"),
        ("topic prefix", "a number or a quoted text"),
    ],
)
def test_mistakes_are_sentences(text, reason):
    with pytest.raises(CoverlayError, match=reason):
        compiled(text)


def test_texts_in_tables_and_schemas():
    assert SCHEMA.decode(parse_event('topic = "north-east"').encode(SCHEMA)) == {"topic": "north-"}
    assert parse_subscription("prefix = 3").predicates[0].attribute == "prefix", "still a name"
