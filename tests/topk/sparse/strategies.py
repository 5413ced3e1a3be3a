"""Small expressions with many coincidences: few attributes, few values, few weights."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from topk.sparse import METHODS

DIMENSIONS = 6
values = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, -5.0, 1e6])
weights = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0])
ranges = st.tuples(values, values).map(lambda pair: (min(pair), max(pair)))
wide = st.sampled_from([(-math.inf, 2.0), (1.0, math.inf), (-math.inf, math.inf)])
conditions = st.one_of(
    st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values),
    st.tuples(st.sampled_from(["in", "not in"]), st.lists(values, min_size=1, max_size=3)),
    st.tuples(st.just("between"), st.one_of(ranges, ranges, ranges, wide)),
)


@st.composite
def expressions(draw: st.DrawFn, largest: int = 4) -> list[Any]:
    attributes = draw(st.lists(st.integers(0, DIMENSIONS - 1), unique=True, max_size=largest))
    return [(a, *draw(conditions), draw(weights)) for a in attributes]


@st.composite
def events(draw: st.DrawFn) -> dict[int, Any]:
    """Half of the conditions are single values, as events mostly are."""
    attributes = draw(st.lists(st.integers(0, DIMENSIONS - 1), unique=True, max_size=DIMENSIONS))
    point = st.tuples(st.just("="), values)
    return {a: (*draw(st.one_of(point, point, conditions)), draw(weights)) for a in attributes}


def small(method: str) -> dict[str, object]:
    """Small l-nodes, so that splits and merges happen with a handful of expressions; few postings per range."""
    given: dict[str, object] = {"capacity": 2, "window": 3, "most_values": 64}
    return {name: value for name, value in given.items() if name in METHODS[method].options}
