"""What broke sparse matchers: scores that float32 cannot hold, values beyond 2^53, events and ids that are none."""

from __future__ import annotations

import math

import numpy as np
import pytest

import topk
from coverlay import CoverlayError
from topk.sparse import METHODS, Event, Events
from topk.sparse.blocks import weight_code
from topk.sparse.scores import as_bound

every_method = pytest.mark.parametrize("method", sorted(METHODS))
NANOSECONDS = 1_700_000_000_000_000_000.0


def same_as_scan(method: str, expressions: list, events: list, **options: object) -> None:
    catalogue = topk.Catalogue.from_predicates(expressions)
    scan, index = topk.create("scan", catalogue, **options), topk.create(method, catalogue, **options)
    index.check()
    for event in events:
        for k in (1, 3, None):
            assert index.top(event, k) == scan.top(event, k)


@every_method
@pytest.mark.parametrize("predicates", [20, 30, 60])
def test_products_that_float32_cannot_hold(method, predicates):
    rng = np.random.default_rng(predicates)
    weights = rng.uniform(0.001, 0.02, (40, predicates))  # products from 1e-34 down to 1e-162
    expressions = [[(a, "=", 1.0, w) for a, w in enumerate(row)] for row in weights.tolist()]
    same_as_scan(method, expressions, [dict.fromkeys(range(predicates), 1.0)], score="product")


@every_method
@pytest.mark.parametrize("scale", [1e-23, 1e-45, 1e-50, 1e-310, 1e300])
def test_sums_that_float32_cannot_hold(method, scale):
    rng = np.random.default_rng(5)
    expressions = [
        [(a, "between", (0.0, float(rng.integers(1, 9))), float(rng.random()) * scale) for a in (i % 3, 3 + i % 4)]
        for i in range(60)
    ]
    events = [[(a, "=", 2.0, w) for a in range(7)] for w in (1.0, 1e-3, 1e3)]
    same_as_scan(method, expressions, events)


def test_float32_bounds_are_rounded_up():
    rng = np.random.default_rng(1)
    for x in (0.0, 5e-324, 1e-300, 1.4e-45, 1e-40, *(10.0 ** rng.uniform(-60, 60, 500)).tolist(), 1e300):
        for value in (x, -x):
            assert float(as_bound(value)) > value or math.isinf(as_bound(value))
            assert float(as_bound(value)) <= value + abs(value) * 1e-6 + 3e-45 or value > 3e38


def test_weight_codes_are_never_below_their_weights():
    rng = np.random.default_rng(2)
    for step, steps in zip((10.0 ** rng.uniform(-280, 280, 3000)).tolist(), rng.integers(1, 2**31, 3000), strict=True):
        weight = math.nextafter(step * steps, math.inf)  # a quotient that is rounded down to a whole number
        assert weight_code(weight, step) * step >= weight


@every_method
@pytest.mark.parametrize("spread", [1e3, 1e9, 1e16, 1e300])
def test_values_beyond_2_to_the_53(method, spread):
    """Neighbouring floats are 256 apart there: cutting in halves must end all the same."""
    rng = np.random.default_rng(3)
    starts = NANOSECONDS + rng.random(120) * spread
    expressions = [
        [(0, "between", (float(s), float(s + rng.random() * spread / 9)), 1.0), (1, "=", float(i % 5), 0.5)]
        for i, s in enumerate(starts)
    ]
    events = [{0: float(s), 1: float(i % 5)} for i, s in enumerate(starts[:20])]
    same_as_scan(method, expressions, events)


@every_method
def test_ranges_wider_than_the_largest_float(method):
    bounds = [-1.7e308, -1e308, -1.0, 0.0, 5e-324, 1.0, 1e308, 1.7e308]
    expressions = [[(0, "between", (low, high), 1.0 + i)] for i, low in enumerate(bounds) for high in bounds[i:]]
    expressions += [[(0, "between", (5e-324, math.inf), 9.0)]] * 30
    same_as_scan(method, expressions, [{0: value} for value in (*bounds, math.inf, -math.inf)])


@every_method
def test_nothing_is_more_than_infinite(method):
    largest = 1.7976931348623157e308
    expressions = [[(0, ">", math.inf, 1.0)], [(0, "<", -math.inf, 2.0)], [(0, ">", largest, 3.0)]]
    index = topk.create(method, topk.Catalogue.from_predicates(expressions))
    assert index.top({0: math.inf}, None) == [(2, 3.0)]
    assert index.top({0: -math.inf}, None) == []
    assert index.top({0: (0.0, math.inf)}, None) == [(2, 3.0)]
    assert index.top([(0, ">", math.inf)], None) == []


def test_events_have_the_attributes_of_the_index():
    one = np.ones(1)
    events = Events(np.array([0, 1]), np.array([2], np.int32), one, one, one)
    assert Events.of(events, 3) is events
    for made in (lambda: Events.of(events, 2), lambda: Event.of(events[0], 2), lambda: Event.of({2: 1.0}, 2)):
        with pytest.raises(CoverlayError, match="attribute 2 of the event"):
            made()


@every_method
def test_foreign_events_are_refused(method):
    """Attributes that the index does not have: an error, not a write beyond its arrays."""
    index = topk.create(method, topk.Catalogue.from_predicates([[(0, "=", 1.0, 1.0)]], dimensions=2))
    one = np.ones(1)
    far = Events(np.array([0, 1]), np.array([10**8], np.int32), one, one, one)
    for ask in (lambda: index.top_many(far, 1), lambda: index.top(far[0], 1)):
        with pytest.raises(CoverlayError, match="attribute 100000000"):
            ask()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([-5], [1.0], [1.0], [1.0]), "-5"),
        (([2**40], [1.0], [1.0], [1.0]), "32 bits"),
        (([0.5], [1.0], [1.0], [1.0]), "whole"),
        (([1, 0], [1.0] * 2, [1.0] * 2, [1.0] * 2), "ascend"),
        (([0], [2.0], [1.0], [1.0]), "exceed"),
        (([0], [math.nan], [1.0], [1.0]), "not a number"),
        (([0], [1.0], [1.0], [-1.0]), "negative"),
        (([0], [1.0, 2.0], [1.0], [1.0]), "one attribute"),
        (([0], ["a"], [1.0], [1.0]), "numbers"),
    ],
)
def test_events_check_their_columns(columns, message):
    attributes, *values = (np.array(column) for column in columns)
    with pytest.raises(CoverlayError, match=message):
        Event(attributes, *values)
    with pytest.raises(CoverlayError, match=message):
        Events(np.array([0, len(attributes)]), attributes, *values)
    with pytest.raises(CoverlayError, match="offsets"):
        Events(np.array([0, 7]), np.array([0]), *(np.ones(1) for _ in range(3)))


@every_method
def test_sparse_matchers_refuse_odd_ids_and_events(method):
    index = topk.create(method, topk.Catalogue.from_predicates([[(0, "=", 1.0, 1.0)]], dimensions=2))
    for id in (1.5, 2**63, -(2**63) - 1, "7", None, [1], True, 1.0):
        with pytest.raises(CoverlayError, match="an id must be a whole number"):
            index.add(id, [(0, "=", 1.0, 1.0)])
        with pytest.raises(CoverlayError, match="an id must be a whole number"):
            index.remove(id)
    for ends in (-(2**63), 2**63 - 1):
        index.add(ends, [(0, "=", 1.0, 1.0)])
    assert index.top({0: 1.0}, None) == [(-(2**63), 1.0), (0, 1.0), (2**63 - 1, 1.0)]
    for event in ("text", 5, None, {"a": 1.0}, {0: "x"}, {0: "5"}, {0: (1, 2, 3)}, [5], [(0,)], {0: object()}):
        with pytest.raises(CoverlayError):
            index.top(event, 1)
        with pytest.raises(CoverlayError):
            index.top_many([event], 1)
    with pytest.raises(CoverlayError, match="sequence of events"):
        index.top_many(7, 1)
    for k in (2.5, "3", [1]):
        with pytest.raises(CoverlayError, match="k must be"):
            index.top({0: 1.0}, k)


@pytest.mark.parametrize("ids", [[1.5], [2**63], ["a"], [[1]], 7, [None], np.ones(1), np.array([2**63], np.uint64)])
def test_catalogues_check_ids(ids):
    with pytest.raises(CoverlayError, match="id"):
        topk.Catalogue.from_predicates([[]], ids=ids)
    with pytest.raises(CoverlayError, match="id"):
        topk.Catalogue.from_boxes([[0.0]], [[1.0]], [1.0], ids=ids)
    for ends in ([-(2**63)], np.array([2**63 - 1]), np.array([7], np.uint64)):
        assert topk.Catalogue.from_predicates([[]], ids=ends).ids.tolist() == [int(ends[0])]
