"""Brokers on a map: places on the globe for overlays that bring none.

    overlay.map = { latitude = [25, 49], longitude = [-124, -67], place = "layout" }

`layout` stretches the picture of the overlay over the area, so that neighbours stay near each other; `random` draws a
place for every broker, whatever its links. Latencies by distance then use great-circle distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, Key, quoted, unknown_name
from routing.options import number, reject_unknown

Floats = NDArray[np.float64]
PLACINGS = ("layout", "random")
MARGIN = 0.05  # of the area on every side that a layout leaves free: brokers are rarely on the border


@dataclass(frozen=True)
class Area:
    """A rectangle of degrees, and how brokers are put into it."""

    latitude: Annotated[tuple[float, float], Key("[south, north] of the area that brokers are put into", "degrees")]
    longitude: Annotated[tuple[float, float], Key("[west, east] of it", "degrees")]
    place: Annotated[str, Key("layout: neighbours stay near each other; random: anywhere in the area")] = "layout"

    def placed(self, spots: Floats, rng: np.random.Generator) -> Floats:
        """(n, 2) longitude and latitude of brokers whose picture is `spots`."""
        low, high = np.array([self.longitude, self.latitude]).T
        if self.place == "random":
            return rng.uniform(low, high, spots.shape)
        span = np.ptp(spots, axis=0)
        share = np.where(span > 0, (spots - spots.min(axis=0)) / np.where(span > 0, span, 1.0), 0.5)
        return low + (MARGIN + (1 - 2 * MARGIN) * share) * (high - low)


def read_map(table: Mapping[str, Any]) -> Area:
    """From `overlay.map` of an experiment file."""
    if not isinstance(table, Mapping):
        raise CoverlayError(f"overlay.map is {quoted(table)}; it must be a table with latitude and longitude")
    reject_unknown("overlay.map", table, ("latitude", "longitude", "place"))
    place = table.get("place", "layout")
    if place not in PLACINGS:
        raise unknown_name("overlay.map.place", place, PLACINGS)
    return Area(_span(table, "latitude", 90.0), _span(table, "longitude", 180.0), place)


def _span(table: Mapping[str, Any], what: str, most: float) -> tuple[float, float]:
    given = table.get(what)
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise CoverlayError(f"overlay.map.{what} is {quoted(given)}; it must be [low, high] in degrees")
    return span(f"overlay.map.{what}", given[0], given[1], most)


def span(what: str, low: object, high: object, most: float) -> tuple[float, float]:
    """Two degrees in order."""
    first, last = number(what, low, -most, most), number(what, high, -most, most)
    if not first < last:
        raise CoverlayError(f"{what} is [{first:g}, {last:g}]; the first must be below the second")
    return first, last
