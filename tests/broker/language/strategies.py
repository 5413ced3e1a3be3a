"""Random schemas' worth of subscriptions and events, dense enough that predicates meet values."""

import math
from typing import Any

from hypothesis import strategies as st

from broker.language import Operator, Predicate, Subscription
from broker.language.schema import Schema, categorical, continuous, integer

Values = st.SearchStrategy[Any]
SCHEMA = Schema((continuous("price", -4, 4), integer("year", -6, 6), categorical("issue", ["A", "B", "C", "D", "E"])))
ORDERED = [Operator.LESS, Operator.AT_MOST, Operator.AT_LEAST, Operator.GREATER]

# Neighbouring floats of whole numbers show whether an open bound is one float off.
NEAR = sorted({x for i in range(-4, 5) for x in (float(i), math.nextafter(i, -9), math.nextafter(i, 9), i + 0.5)})
near = st.sampled_from(NEAR)
prices = st.sampled_from([x for x in NEAR if -4 <= x <= 4])
years = st.integers(-6, 6)
issues = st.sampled_from(SCHEMA["issue"].categories)
weights = st.sampled_from([0.0, 0.5, 1.0, 2.5])


def predicate_on(attribute: str, values: Values, bounds: Values, ordered: bool = True) -> st.SearchStrategy[Predicate]:
    one = st.tuples(values)
    several = st.lists(values, max_size=5).map(tuple)
    some = st.lists(values, min_size=1, max_size=5).map(tuple)
    tests = [
        st.tuples(st.sampled_from([Operator.EQUAL, Operator.DIFFERENT]), one),
        st.tuples(st.just(Operator.IN), several),
        st.tuples(st.just(Operator.NOT_IN), some),
    ]
    if ordered:
        tests += [
            st.tuples(st.sampled_from(ORDERED), st.tuples(bounds)),
            st.tuples(st.just(Operator.BETWEEN), st.tuples(bounds, bounds)),
        ]
    return st.builds(lambda test, weight: Predicate(attribute, test[0], test[1], weight), st.one_of(tests), weights)


halves = st.integers(-13, 13).map(lambda i: i / 2)
on = {
    "price": predicate_on("price", prices, near),
    "year": predicate_on("year", years, st.one_of(years, halves)),
    "issue": predicate_on("issue", issues, issues, ordered=False),
}
predicates = st.one_of(*on.values())
subscriptions = st.builds(
    lambda ps, score: Subscription(tuple(ps), score=score), st.lists(predicates, max_size=5), weights
)
events = st.fixed_dictionaries({}, optional={"price": prices, "year": years, "issue": issues})
