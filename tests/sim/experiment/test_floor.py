"""The floor: what flooding the graph reaches while brokers and links fail, against a slow twin and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.trace.schema import to_table
from sim.experiment.oracle_floor import Floor
from tests.sim.experiment.slow_oracle import flood

RING = [(0, 1), (1, 2), (2, 3), (0, 3)]


def trace(brokers, links, faults):
    """`faults`: kind of failure, broker, neighbour, from when until when."""
    repairs = {"crash": "restart", "cut": "heal"}
    rows = [(begin, 1, kind, *target) for kind, *target, begin, _ in faults]
    rows += [(end, 0, repairs[kind], *target) for kind, *target, _, end in faults if end < math.inf]
    time, _, kind, broker, neighbour = zip(*sorted(rows), strict=True) if rows else [()] * 5
    one, other, latency = zip(*links, strict=True)
    none = [0.0] * brokers
    return {
        "brokers": to_table("brokers", {"broker": range(brokers), "name": ["b"] * brokers, "x": none, "y": none}),
        "links": to_table(
            "links", {"broker": one, "neighbour": other, "latency": latency, "routed": [True] * len(links)}
        ),
        "faults": to_table(
            "faults",
            {"time": time, "kind": kind, "broker": broker, "neighbour": neighbour, "event": [-1] * len(time)},
        ),
    }


def reached(faults, publisher, since):
    takes = Floor(trace(4, [(*link, 2.0) for link in RING], faults)).takes(publisher, since)
    return np.flatnonzero(np.isfinite(takes)).tolist()


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (3.9, [0, 1, 3]),  # broker 2 is reached after 4 ms, at 7.9
        (2.0, [0, 1, 3]),  # arrives as it fails
        (1.9, [0, 1, 2, 3]),
        (7.9, [0, 1, 3]),  # sent on at 9.9
        (8.0, [0, 1, 2, 3]),  # sent on as it is back
    ],
)
def test_a_broker_is_reached_while_it_is_up(since, found):
    assert reached([("crash", 2, -1, 6.0, 10.0)], 0, since) == found


def test_an_event_goes_the_long_way_round_a_cut_link_and_nowhere_from_a_dead_broker():
    assert reached([("cut", 0, 1, 0.0, 9.0)], 0, 1.0) == [0, 1, 2, 3]
    assert reached([("cut", 0, 1, 0.0, 9.0), ("cut", 2, 3, 0.0, 9.0)], 0, 1.0) == [0, 3]
    assert reached([("crash", 0, -1, 1.0, 9.0)], 0, 1.0) == []
    assert reached([("crash", 0, -1, 1.0, 9.0)], 0, 9.0) == [0, 1, 2, 3]


def test_a_flood_that_meets_a_failure_is_not_taken_from_memory():
    floor = Floor(trace(4, [(*link, 2.0) for link in RING], [("crash", 2, -1, 20.0, math.inf)]))
    assert [int(np.isfinite(floor.takes(0, since)).sum()) for since in (0.0, 15.0, 17.0, 15.0, 21.0, 22.0)] == [
        4,
        4,
        3,
        4,
        3,
        3,
    ]


@st.composite
def stories(draw):
    brokers = draw(st.integers(2, 6))
    pairs = [(a, b) for a in range(brokers) for b in range(a + 1, brokers)]
    links = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    faults, times = [], st.integers(0, 9)
    for target in [*((broker, -1) for broker in range(brokers)), *links]:
        ends = sorted(draw(st.lists(times, max_size=4, unique=True)))
        kind = "crash" if target[1] < 0 else "cut"
        faults += [(kind, *target, begin, end) for begin, end in zip(ends[::2], [*ends[1::2], math.inf], strict=False)]
    delayed = [(*link, float(draw(st.integers(0, 3)))) for link in links]
    return trace(brokers, delayed, faults), draw(st.lists(st.tuples(st.integers(0, brokers - 1), times), min_size=1))


@settings(max_examples=100, deadline=None)
@given(stories())
def test_the_floor_agrees_with_its_slow_twin(story):
    tables, events = story
    floor = Floor(tables)
    for publisher, since in events:
        arrival = flood(tables, publisher, since)
        assert floor.takes(publisher, since).tolist() == [
            arrival.get(b, math.inf) - since for b in range(len(floor._links))
        ]
