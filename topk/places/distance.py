"""How far apart two places are: in degrees on a plane (Eq. 4 of SSTD 2015), or in kilometres on the globe.

Indexes keep a place as three coordinates: latitude, longitude and 0 for degrees, a point of the unit sphere for the
globe. There the great-circle distance is 2·R·asin(c / 2) for the straight line c between two points, and it grows with
c. So a box of three sides bounds both metrics: no place in it is nearer than its nearest corner, edge or face is along
a straight line. Nothing is special about the antimeridian or the poles.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coverlay import EARTH_RADIUS_KM, CoverlayError, kernel, unknown_name
from topk.checks import Floats

METRICS = DEGREES, GREAT_CIRCLE = "degrees", "great-circle"
UNITS = {DEGREES: "degrees", GREAT_CIRCLE: "kilometres"}
_BOUNDS = np.array([90.0, 360.0])  # longitudes are counted from −180 to 180 or from 0 to 360


def checked_metric(metric: str) -> str:
    if metric not in METRICS:
        raise unknown_name("metric", metric, METRICS)
    return metric


def radius(metric: str) -> float:
    """Of the globe, in kilometres; 0 on a plane."""
    return EARTH_RADIUS_KM if metric == GREAT_CIRCLE else 0.0


def coordinates(places: Floats, metric: str) -> Floats:
    """The three coordinates of places (n, 2)."""
    if metric == DEGREES:
        return np.column_stack([places, np.zeros(len(places))])
    beyond = np.abs(places) > _BOUNDS
    if beyond.any():
        row, axis = np.argwhere(beyond)[0].tolist()
        name, most = (("latitude", 90), ("longitude", 360))[axis]
        raise CoverlayError(
            f"{places[row, axis]:g} is no {name}: great-circle distances need −{most} to {most} degrees "
            f'(metric = "{DEGREES}" takes any two coordinates)'
        )
    found: Floats = _on_sphere(np.array(places, dtype=np.float64))
    return found


@kernel
def _on_sphere(places: Any) -> Any:
    """Row by row, so that a place has the same bits alone and among others."""
    found = np.empty((len(places), 3))
    for i in range(len(places)):
        north, east = math.radians(places[i, 0]), math.radians(places[i, 1])
        level = math.cos(north)
        found[i, 0], found[i, 1], found[i, 2] = level * math.cos(east), level * math.sin(east), math.sin(north)
    return found


def furthest(low: Floats, high: Floats, metric: str) -> float:
    """The largest distance between two places of an area, from its lowest latitude and longitude to its highest."""
    if metric == DEGREES:
        with np.errstate(over="ignore"):
            return float(np.hypot(*(high - low)))
    across = math.cos(math.radians(min(float(high[1] - low[1]), 180.0)))
    # The furthest places are at opposite edges, at latitudes that end the area, are 0, or are furthest from an end.
    ends = np.radians([low[0], high[0]])
    with np.errstate(divide="ignore"):
        opposite = np.arctan(np.tan(ends) / across)
    tried = np.clip([*ends, 0.0, *opposite], *ends)
    cosine = np.outer(np.sin(tried), np.sin(tried)) + across * np.outer(np.cos(tried), np.cos(tried))
    return EARTH_RADIUS_KM * math.acos(min(1.0, max(-1.0, float(cosine.min()))))


def extent(places: Floats, metric: str) -> tuple[Floats, Floats]:
    """The smallest area with all places; on the globe it may lie across the antimeridian."""
    low, high = places.min(axis=0), places.max(axis=0)
    if metric == GREAT_CIRCLE:
        east = np.sort(places[:, 1] % 360.0)
        gaps = np.diff(east, append=east[0] + 360.0)
        low[1], high[1] = 0.0, 360.0 - gaps.max()
    return low, high
