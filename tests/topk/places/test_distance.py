"""Distances between places: great circles against a formula that shares nothing with ours, and bounds of boxes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import topk
from coverlay import EARTH_RADIUS_KM, CoverlayError
from routing.overlay.latency import globe_distances
from tests.topk.oracles import great_circle
from topk.places import METHODS, from_located
from topk.places.contract import ask_for, nearness
from topk.places.distance import DEGREES, GREAT_CIRCLE, METRICS, coordinates, extent, furthest
from topk.places.rtree import AXES, box_nearness

QUIET = settings(max_examples=200)
HALF_WAY = math.pi * EARTH_RADIUS_KM
latitudes = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, -89.999, 0.0, 45.0, 89.999, 90.0]))
longitudes = st.one_of(st.floats(-180, 360), st.sampled_from([-180.0, -179.999, 0.0, 179.999, 180.0, 360.0]))
globe_places = st.tuples(latitudes, longitudes)


def measured(a, b, metric=GREAT_CIRCLE, far=4 * HALF_WAY):
    """The distance that ψ_s tells."""
    ask = ask_for(b, far, metric)
    x, y, z = coordinates(np.array([a]), metric)[0].tolist()
    return far * (1.0 - nearness(x - ask.x, y - ask.y, z - ask.z, ask))


@QUIET
@given(globe_places, globe_places)
@example((0.0, 179.9), (0.0, -179.9))
@example((90.0, 12.0), (90.0, -130.0))
@example((-90.0, 0.0), (90.0, 0.0))
@example((10.0, 20.0), (-10.0, 200.0))
def test_great_circles_are_those_of_another_formula(a, b):
    assert measured(a, b) == pytest.approx(great_circle(a, b), rel=1e-9, abs=1e-3)  # a metre
    assert measured(a, b) == pytest.approx(float(globe_distances(np.array([a]), np.array([b]))[0, 0]), abs=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "kilometres"),
    [
        ((51.5, -0.12), (40.7, -74.0), 5570),  # London and New York
        ((-17.7, 178.0), (-13.8, -171.8), 1174),  # Fiji and Samoa, across the antimeridian
        ((89.0, 0.0), (89.0, 180.0), 222.4),  # across the pole, not around it
        ((0.0, 0.0), (0.0, 180.0), HALF_WAY),
        ((0.0, 359.0), (0.0, -1.0), 0.0),  # the same place, counted differently
    ],
)
def test_known_distances(a, b, kilometres):
    assert measured(a, b) == pytest.approx(kilometres, rel=2e-3, abs=1e-3)


def test_degrees_are_euclidean():
    assert measured((1.0, 2.0), (4.0, -2.0), DEGREES, 100.0) == pytest.approx(5.0)


@QUIET
@given(st.sampled_from(METRICS), st.lists(globe_places, min_size=1, max_size=8), globe_places, st.floats(1.0, 5e4))
@example(GREAT_CIRCLE, [(0.0, 179.0), (0.0, -179.0)], (0.0, 180.0), 500.0)
@example(GREAT_CIRCLE, [(80.0, 0.0), (80.0, 120.0), (80.0, 240.0)], (90.0, 0.0), 2000.0)
def test_nobody_in_a_box_is_nearer_than_its_bound(metric, places, event, far):
    """And a box of one place has its very distance: the bound is no empty one."""
    where, ask = coordinates(np.array(places), metric), ask_for(event, far, metric)
    near = [nearness(*(spot - (ask.x, ask.y, ask.z)).tolist(), ask) for spot in where]
    box = np.zeros(2 * len(AXES))
    for column, (low, high) in zip((0, 1, None, 2), AXES, strict=True):  # the third axis is α
        if column is not None:
            box[low], box[high] = where[:, column].min(), where[:, column].max()
    assert box_nearness(box, ask) >= max(near) - 1e-15
    if len(places) == 1:
        assert box_nearness(box, ask) == pytest.approx(near[0], abs=1e-12)


def test_a_box_across_the_antimeridian_is_small():
    """Two neighbours either side of it make a box that a place on the other side of the globe is far from."""
    places = [(0.0, 179.9), (0.1, -179.9), (0.2, 180.0)]
    where = coordinates(np.array(places), GREAT_CIRCLE)
    assert np.ptp(where, axis=0).max() < 0.01
    assert furthest(*extent(np.array(places), GREAT_CIRCLE), GREAT_CIRCLE) == pytest.approx(31.5, rel=0.01)


@QUIET
@given(latitudes, latitudes, st.floats(0, 360))
@example(60.0, 80.0, 180.0)
@example(0.0, 10.0, 359.0)
@example(-10.0, 30.0, 120.0)
def test_the_largest_distance_of_an_area(a, b, across):
    south, north = sorted((a, b))
    largest = furthest(np.array([south, 0.0]), np.array([north, across]), GREAT_CIRCLE)
    grid = [(lat, lon) for lat in np.linspace(south, north, 9) for lon in (0.0, min(across, 180.0))]
    found = max(great_circle(p, q) for p in grid for q in grid)
    step = (north - south) / 8 * EARTH_RADIUS_KM * math.pi / 180
    assert found - 1e-2 <= largest <= found + step + 1e-2


@pytest.mark.parametrize("method", sorted(METHODS))
def test_neighbours_across_the_antimeridian_win(method):
    """Fiji asks: Samoa is nearer than Sydney, though by degrees of longitude it is not."""
    spots = {1: (-33.9, 151.2), 2: (-13.8, -171.8), 3: (51.5, -0.1)}
    given_ones = [([(0, "=", 1.0, 0.5)], spot, 1.0) for spot in spots.values()]
    for metric, far, order in ((GREAT_CIRCLE, 20_000.0, [2, 1, 3]), (DEGREES, 400.0, [1, 3, 2])):
        index = topk.create(method, from_located(given_ones, ids=list(spots), max_distance=far, metric=metric))
        assert [id for id, _ in index.top({0: 1.0}, (-17.7, 178.0), 3)] == order


def test_an_event_that_is_nowhere_is_near_to_none():
    index = topk.create("scan", from_located([([], (0.0, 0.0), 1.0)], max_distance=1e6, metric=GREAT_CIRCLE))
    assert index.top({}, None, 1) == [(0, 0.0)]
    assert index.top({}, (0.0, 180.0), 1) == [(0, pytest.approx(1 - HALF_WAY / 1e6))]


def test_what_is_no_place_on_the_globe():
    with pytest.raises(CoverlayError, match="91 is no latitude"):
        topk.create("scan", from_located([([], (91.0, 0.0), 1.0)], metric=GREAT_CIRCLE))
    with pytest.raises(CoverlayError, match="unknown metric 'miles'"):
        from_located([([], (1.0, 0.0), 1.0)], metric="miles")
    index = topk.create("ri-tree", from_located([([], (1.0, 0.0), 1.0)], metric=GREAT_CIRCLE))
    with pytest.raises(CoverlayError, match="400 is no longitude"):
        index.top({}, (0.0, 400.0), 1)
