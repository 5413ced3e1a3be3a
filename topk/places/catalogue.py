"""Subscriptions and events with a place (Hu, Cheng, Wu & Jin, SSTD 2015, "Location-aware publish/subscribe", §3).

A subscription is a Boolean expression, a location and α, the importance of nearness. Matching is relaxed: every
subscription has a similarity

    ψ = (1 − α) · ψ_t + α · ψ_s,    ψ_t = Σ weights of the predicates that hold,    ψ_s = 1 − distance / MaxDist,

and the k most similar are wanted. Weights of one subscription sum to at most 1. Distances are Euclidean in degrees, as
in the paper, or along great circles in kilometres (see `distance`). MaxDist is the largest distance between
subscriptions, in the same unit; we use the largest in their bounding box unless it is given, and cut ψ_s at 0, so that
an event (or a later subscription) further away is merely not near.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError, quoted
from topk.checks import Floats, Ints, numbers
from topk.kernels.rows import runs
from topk.places.distance import DEGREES, checked_metric, extent, furthest
from topk.predicates import SparseCatalogue, from_predicates
from topk.sparse.event import Event

NOWHERE = (np.inf, np.inf)  # ψ_s of an event there is 0 for all
_SUM_SLACK = 1e-9  # for weights that were normalised in floating point


@dataclass(frozen=True)
class PlacedCatalogue:
    """Expressions with places; build one with `from_located`."""

    expressions: SparseCatalogue
    places: Floats  # (n, 2) latitude and longitude; of "degrees" any two coordinates
    alpha: Floats  # (n,)
    max_distance: float
    metric: str = DEGREES

    def __len__(self) -> int:
        return len(self.expressions)

    @property
    def dimensions(self) -> int:
        return self.expressions.dimensions

    def row(self, i: int) -> PlacedCatalogue:
        """A catalogue of one row."""
        at = slice(i, i + 1)
        return PlacedCatalogue(self.expressions.row(i), self.places[at], self.alpha[at], self.max_distance, self.metric)


def located(
    expressions: SparseCatalogue,
    places: ArrayLike,
    alpha: ArrayLike,
    *,
    max_distance: float | None = None,
    metric: str = DEGREES,
) -> PlacedCatalogue:
    """Give each expression of a sparse catalogue a place and an α."""
    checked_metric(metric)
    n = len(expressions)
    where, share = numbers("places", places), numbers("alpha", alpha)
    if where.size == 0:
        where = where.reshape(-1, 2)
    if where.shape != (n, 2) or share.shape != (n,):
        raise CoverlayError(f"places must be ({n}, 2) and alpha ({n},), not {where.shape} and {share.shape}")
    if not np.isfinite(where).all():
        raise CoverlayError("places must be finite")
    if not ((share >= 0.0) & (share <= 1.0)).all():
        raise CoverlayError(f"alpha must be from 0 to 1; {share[~((share >= 0) & (share <= 1))][0]} is not")
    sums = np.zeros(n)
    np.add.at(sums, np.repeat(np.arange(n), np.diff(expressions.offsets)), expressions.weights)
    if (sums > 1.0 + _SUM_SLACK).any():
        row = int(np.argmax(sums))
        raise CoverlayError(f"weights of a subscription must sum to at most 1; row {row} has {sums[row]}")
    if max_distance is None:
        span = furthest(*extent(where, metric), metric) if n else 0.0
        max_distance = min(span, float(np.finfo(float).max)) or 1.0
    if not 0.0 < max_distance < np.inf:
        raise CoverlayError(f"max_distance must be above 0 and finite, not {max_distance}")
    return PlacedCatalogue(expressions, where, share, float(max_distance), metric)


def reordered(catalogue: PlacedCatalogue, order: Ints) -> PlacedCatalogue:
    """The same subscriptions in another order."""
    e = catalogue.expressions
    sizes = np.diff(e.offsets)[order]
    at = runs(e.offsets[order], sizes)
    exceptions = {i: e.exceptions[row] for i, row in enumerate(order.tolist()) if row in e.exceptions}
    columns = (np.append(0, np.cumsum(sizes)), e.attributes[at], e.lo[at], e.hi[at], e.weights[at])
    expressions = SparseCatalogue(e.dimensions, e.ids[order], *columns, exceptions)
    return replace(catalogue, expressions=expressions, places=catalogue.places[order], alpha=catalogue.alpha[order])


def from_located(
    subscriptions: Iterable[tuple[Sequence[tuple[Any, ...]], tuple[float, float], float]],
    *,
    dimensions: int | None = None,
    ids: ArrayLike | None = None,
    max_distance: float | None = None,
    metric: str = DEGREES,
) -> PlacedCatalogue:
    """(predicates, (latitude, longitude), α) per subscription."""
    given = list(subscriptions)
    expressions = from_predicates([s[0] for s in given], dimensions=dimensions, ids=ids)
    places, alpha = [s[1] for s in given], [s[2] for s in given]
    return located(expressions, places, alpha, max_distance=max_distance, metric=metric)


@dataclass(frozen=True)
class PlacedEvent:
    """A value (or range) per attribute, and where it happened; event weights are not used by ψ."""

    event: Event
    place: tuple[float, float]

    @classmethod
    def of(cls, event: Any, place: Sequence[float] | None, dimensions: int) -> PlacedEvent:
        described = Event.of(event, dimensions)
        if described.extra is not None:
            raise CoverlayError("an event with a place has a value or a range per attribute, not ≠, in or not in")
        if place is None:
            return cls(described, NOWHERE)
        where = numbers("an event's place", place)
        if where.shape != (2,) or not np.isfinite(where).all():
            raise CoverlayError(f"an event's place must be two finite numbers, not {quoted(place)}")
        return cls(described, (float(where[0]), float(where[1])))

    @staticmethod
    def checked(event: Any, dimensions: int) -> None:
        """CoverlayError unless `event` is a PlacedEvent that kernels for `dimensions` attributes can take."""
        if not isinstance(event, PlacedEvent):
            raise CoverlayError(f"events of a batch must be PlacedEvents, not {quoted(event)}")
        PlacedEvent.of(event.event, None if event.place == NOWHERE else event.place, dimensions)
