"""Link latencies: constant, uniform, or proportional to the distance between the brokers, in the plane or on the globe.

A model sees all links at once, in sorted order, so that one seed gives one assignment whatever the order
in which the graph was built. Latencies are milliseconds, finite and not negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coverlay import EARTH_RADIUS_KM, CoverlayError, Key, quoted, unknown_name
from routing.options import number, reject_unknown

Floats = NDArray[np.float64]

# Light in glass travels about 200 km per millisecond; used where brokers have places on the globe.
MILLISECONDS_PER_KM = 0.005
Minimum = Annotated[float, Key("least latency of a link, however near its brokers are", "ms")]


class LatencyModel(Protocol):
    """Milliseconds per link, from the lengths of the links (NaN where a length is unknown)."""

    def draw(self, lengths: Floats, rng: np.random.Generator) -> Floats: ...


class _Checked:
    """A model whose fields must be numbers of at least 0."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            number(f"latency.{name}", value, 0.0)


@dataclass(frozen=True)
class Constant(_Checked):
    """The same latency on every link."""

    value: Annotated[float, Key("latency of every link", "ms")] = 1.0

    def draw(self, lengths: Floats, rng: np.random.Generator) -> Floats:
        return np.full(len(lengths), float(self.value))


@dataclass(frozen=True)
class Uniform(_Checked):
    """Independent and uniform between `low` and `high`."""

    low: Annotated[float, Key("the least latency of a link", "ms")] = 1.0
    high: Annotated[float, Key("the largest latency of a link", "ms")] = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise CoverlayError(f"latency.low is {quoted(self.low)}, above latency.high {quoted(self.high)}; swap them")

    def draw(self, lengths: Floats, rng: np.random.Generator) -> Floats:
        return rng.uniform(self.low, self.high, len(lengths))


@dataclass(frozen=True)
class Distance(_Checked):
    """`per_unit` milliseconds per unit of length, but at least `minimum`.

    A unit is whatever the coordinates are in: kilometres where they are longitude and latitude, the side
    of the square for Waxman, one grid step, and the mean link length for layouts we draw ourselves.
    """

    per_unit: Annotated[float, Key("latency per unit of distance in the overlay's coordinates", "ms")] = 1.0
    minimum: Minimum = 0.0

    def draw(self, lengths: Floats, rng: np.random.Generator) -> Floats:
        if np.isnan(lengths).any():
            raise CoverlayError('latency.kind is "distance", but the brokers have no coordinates')
        latencies = np.maximum(self.per_unit * lengths, self.minimum)
        if not np.isfinite(latencies).all():
            raise CoverlayError("overlay.latency grows with distance, and brokers are too far apart for a finite one")
        return latencies


@dataclass(frozen=True)
class GreatCircle(_Checked):
    """`ms_per_km` for each kilometre over the globe, but at least `minimum`; for brokers on a map."""

    ms_per_km: Annotated[float, Key("latency per kilometre over the globe", "ms/km")] = MILLISECONDS_PER_KM
    minimum: Minimum = 0.0

    def draw(self, lengths: Floats, rng: np.random.Generator) -> Floats:
        return Distance(self.ms_per_km, self.minimum).draw(lengths, rng)


@dataclass(frozen=True)
class Given:
    """One value per link, as read from a file; links in sorted order."""

    values: tuple[float, ...]

    def draw(self, lengths: Floats, rng: np.random.Generator) -> Floats:
        return np.array(self.values, dtype=np.float64)


LATENCIES: dict[str, type[Constant] | type[Uniform] | type[Distance] | type[GreatCircle]] = {
    "constant": Constant,
    "uniform": Uniform,
    "distance": Distance,
    "great-circle": GreatCircle,
}


def latency_model(spec: LatencyModel | Mapping[str, Any] | float | None) -> LatencyModel:
    """A model from `{"kind": …, …}` as written in an experiment file; a bare number is a constant."""
    if spec is None:
        return Constant()
    if isinstance(spec, Mapping):
        options = dict(spec)
        kind = options.pop("kind", None)
        if not isinstance(kind, str) or kind not in LATENCIES:
            raise unknown_name("latency kind", kind, LATENCIES)
        model = LATENCIES[kind]
        reject_unknown(f'latency kind "{kind}"', options, tuple(model.__dataclass_fields__))
        return model(**options)
    if hasattr(spec, "draw"):
        return spec
    return Constant(number("latency", spec, 0.0))


def plane_lengths(positions: Floats, links: Sequence[tuple[int, int]]) -> Floats:
    """Euclidean length of each link; `positions` is (n, 2)."""
    ends = np.asarray(links, dtype=np.int64).reshape(-1, 2)
    with np.errstate(over="ignore"):  # an infinite length is refused where it becomes a latency
        return np.hypot(*(positions[ends[:, 0]] - positions[ends[:, 1]]).T)


def globe_lengths(positions: Floats, links: Sequence[tuple[int, int]]) -> Floats:
    """Great-circle length in kilometres of each link; `positions` holds longitude and latitude in degrees."""
    ends = np.asarray(links, dtype=np.int64).reshape(-1, 2)
    radians = np.radians(positions)
    return _great_circle(*radians[ends[:, 0]].T, *radians[ends[:, 1]].T)


def globe_distances(places: Floats, others: Floats) -> Floats:
    """(n, m) great-circle kilometres between places of (latitude, longitude) in degrees."""
    a, b = np.radians(places)[:, None, :], np.radians(others)[None, :, :]
    return _great_circle(a[..., 1], a[..., 0], b[..., 1], b[..., 0])


def _great_circle(east: Floats, north: Floats, other_east: Floats, other_north: Floats) -> Floats:
    # Haversine: well conditioned for the short distances that most links have.
    across = np.sin((other_north - north) / 2) ** 2
    along = np.sin((other_east - east) / 2) ** 2
    chord = across + np.cos(north) * np.cos(other_north) * along
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))
