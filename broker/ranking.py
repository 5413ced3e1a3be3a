"""What "the k best" means at a broker, and the matcher that finds them: three families, by kind of catalogue.

| kind       | an event reaches                                  | score                                             |
|------------|---------------------------------------------------|---------------------------------------------------|
| boxes      | exact: all predicates hold; relaxed: at least one | the subscription's; relaxed: Σ weights that hold  |
| predicates | all predicates hold                               | Σ weight of the predicate × weight in the event   |
| places     | exact: all predicates hold; relaxed: at least one | ψ of Hu et al. (SSTD 2015), Eq. 1–4               |

Who is reached depends on the predicates alone, in all three, so routing and covering are the same whatever ranks.
ψ divides the weights of a subscription by their sum (Definition 1 wants them to sum to 1); a subscription that is
near nowhere has α = 0, an event without a place is near to nobody. Distances are Euclidean in degrees, as in Eq. 4,
and relative to `max_distance`, which is the same at all brokers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import topk
from coverlay import CoverlayError, quoted, unknown_name
from routing.filter import Filter
from topk.places import located
from topk.sparse import Event, from_csr

Floats = NDArray[np.float64]
Match = tuple[int, float]

KINDS = ("boxes", "predicates", "places")
BEST = {"boxes": topk.AUTO, "predicates": "pivot", "places": "ri-tree"}  # what "auto" means


def kind_of(method: str) -> str:
    """The kind of catalogue that a method is for; names that several kinds share mean boxes."""
    for kind in KINDS:
        if method in topk.methods(kind):
            return kind
    names = sorted({name for kind in KINDS for name in topk.methods(kind)})
    raise unknown_name("matching method", method, names)


@dataclass(frozen=True)
class Ranking(ABC):
    """How the brokers of a network rank; `place` is the columns of latitude and longitude, if there are any."""

    dimensions: int
    method: str
    semantics: str
    options: Mapping[str, Any]
    place: tuple[int, int] | None = None
    max_distance: float = 1.0

    @abstractmethod
    def new_index(self) -> Any:
        """An empty matcher."""

    @abstractmethod
    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        """Take a subscription into a matcher."""

    @abstractmethod
    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        """The k best of a matcher for an event, best first."""

    @abstractmethod
    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        """The score of one subscription worked out alone, None where the event does not reach it."""


class BoxRanking(Ranking):
    """Dense boxes: every attribute of every subscription has bounds."""

    def new_index(self) -> Any:
        empty = topk.Catalogue.empty(self.dimensions)
        return topk.create(self.method, empty, semantics=self.semantics, **self.options)

    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        index.add(
            subscription,
            filter.box[:, 0],
            filter.box[:, 1],
            filter.score,
            weights=filter.weights,
            mentioned=np.array(filter.mentioned),
            excluded=filter.residue.excluded,
            allowed=filter.residue.allowed,
        )

    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        found: list[Match] = index.top(event, k)
        return found

    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        if self.semantics == "relaxed":
            return filter.relaxed_score(event)
        return filter.score if filter.matches(event) else None


class PredicateRanking(Ranking):
    """Sparse expressions: only the attributes that a subscription mentions are stored."""

    def new_index(self) -> Any:
        return topk.create(self.method, topk.SparseCatalogue.empty(self.dimensions), **self.options)

    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        index.add_one(expression_of(subscription, filter, filter.weights))

    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        found: list[Match] = index.top(sparse_event(event, weights), k)
        return found

    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        if not filter.matches(event):
            return None
        total = 0.0
        for a in filter.named.tolist():
            total += filter.weights[a] * (1.0 if weights is None else weights[a])
        return float(total)


class PlaceRanking(Ranking):
    """Sparse expressions with a place."""

    def new_index(self) -> Any:
        empty = located(
            topk.SparseCatalogue.empty(self.dimensions), np.empty((0, 2)), np.empty(0), max_distance=self.max_distance
        )
        return topk.create(self.method, empty, semantics=self.semantics, **self.options)

    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        *place, alpha = filter.near or (0.0, 0.0, 0.0)
        expression = expression_of(subscription, filter, shares(filter.weights))
        index.add_one(located(expression, [place], [alpha], max_distance=self.max_distance))

    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        found: list[Match] = index.top(sparse_event(event, None), self._place(event), k)
        return found

    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        held = [a for a in filter.named.tolist() if filter.holds(a, float(event[a]))]
        if not held if self.semantics == "relaxed" else not filter.matches(event):
            return None
        share, text = shares(filter.weights), 0.0
        for a in held:
            text += share[a]
        where, (latitude, longitude, alpha) = self._place(event), filter.near or (0.0, 0.0, 0.0)
        near = 0.0
        if where is not None:
            dx, dy = latitude - where[0], longitude - where[1]
            near = max(0.0, 1.0 - math.sqrt(dx * dx + dy * dy) / self.max_distance)
        return float((1.0 - alpha) * text + alpha * near)

    def _place(self, event: Floats) -> tuple[float, float] | None:
        assert self.place is not None
        x, y = float(event[self.place[0]]), float(event[self.place[1]])
        return None if math.isnan(x) or math.isnan(y) else (x, y)


RANKINGS: dict[str, type[Ranking]] = {"boxes": BoxRanking, "predicates": PredicateRanking, "places": PlaceRanking}


def make_ranking(
    kind: str,
    method: str,
    domain: Floats,
    semantics: str = "exact",
    options: Mapping[str, Any] | None = None,
    place: tuple[int, int] | None = None,
    max_distance: float | None = None,
) -> Ranking:
    """The ranking of a network, checked: a matcher can be made. `max_distance` defaults to the map's diagonal."""
    if kind not in RANKINGS:
        raise unknown_name("kind of matching", kind, KINDS)
    if kind == "predicates" and semantics != "exact":
        raise CoverlayError(f'matching by predicates is exact; semantics = "{semantics}" goes with boxes and places')
    if kind != "places" and max_distance is not None:
        raise CoverlayError(f"max_distance goes with matching by places, not by {kind}")
    if kind == "places" and place is None:
        raise CoverlayError(
            "matching by places needs events with a place: attributes of the kinds latitude and longitude"
        )
    if max_distance is None:
        max_distance = 1.0 if place is None else math.hypot(*np.diff(domain[list(place)], axis=1)[:, 0])
    if not (math.isfinite(max_distance) and max_distance > 0):
        raise CoverlayError(f"max_distance is {quoted(max_distance)}; it must be a finite number of degrees above 0")
    chosen = BEST[kind] if method == topk.AUTO else method
    made = RANKINGS[kind](len(domain), chosen, semantics, dict(options or {}), place, max_distance)
    made.new_index()
    return made


def expression_of(subscription: int, filter: Filter, weights: Floats) -> topk.SparseCatalogue:
    """The attributes that a filter mentions, as a catalogue of one row."""
    named, bounds = filter.named, filter.bounds
    odd = (
        *((a, True, values) for a, values in filter.residue.excluded),
        *((a, False, values) for a, values in filter.residue.allowed),
    )
    return from_csr(
        len(filter.mentioned),
        [0, len(named)],
        named,
        bounds[:, 0],
        bounds[:, 1],
        weights[named],
        ids=[subscription],
        exceptions={0: odd} if odd else None,
    )


def sparse_event(event: Floats, weights: Floats | None) -> Event:
    """The attributes that an event has."""
    named = np.flatnonzero(~np.isnan(event))
    values = event[named]
    return Event(named.astype(np.int32), values, values, np.ones(len(named)) if weights is None else weights[named])


def shares(weights: Floats) -> Floats:
    """Weights divided by their sum, which is added in attribute order: all of us get the same floats."""
    total = 0.0
    for weight in weights.tolist():
        total += weight
    return weights / total if total > 0 else weights
