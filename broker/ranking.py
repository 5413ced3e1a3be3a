"""What "the k best" means at a broker, and the matcher that finds them: three families, by kind of catalogue.

| kind       | an event reaches                                  | score                                             |
|------------|---------------------------------------------------|---------------------------------------------------|
| boxes      | exact: all predicates hold; relaxed: at least one | the subscription's; relaxed: Σ weights that hold  |
| predicates | exact: all predicates hold; relaxed: at least one | Σ weight × weight in the event, of those that hold |
| places     | exact: all predicates hold; relaxed: at least one | ψ of Hu et al. (SSTD 2015), Eq. 1–4               |

In all three, the predicates alone decide who is reached, so routing and covering do not depend on the kind.
ψ divides the weights of a subscription by their sum (Definition 1 wants them to sum to 1); a subscription without a
place has α = 0, and an event without a place is near nobody. Distances are great circles in kilometres, or
Euclidean in degrees as in Eq. 4 (`metric`), and relative to `max_distance`, which is the same at all brokers.
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
from broker.matchers import ROW_METHODS, IndexMatcher, Matcher, RowMatcher
from coverlay import CoverlayError, quoted, unknown_name
from routing.filter import Filter
from routing.rank import shares
from topk.places import located
from topk.places.contract import ask_for, nearness
from topk.places.distance import UNITS, checked_metric, coordinates, furthest
from topk.sparse import Event, from_csr

Floats = NDArray[np.float64]
Match = tuple[int, float]

KINDS = ("boxes", "predicates", "places")
BEST = {"boxes": topk.AUTO, "predicates": "pivot", "places": "ri-tree"}  # what "auto" means
RELAXED_PREDICATES = "scan"  # the others give up on an expression as soon as one predicate fails


def at_work(kind: str, method: str, semantics: str) -> str:
    """The method that a name means."""
    if method == topk.AUTO and (kind, semantics) == ("predicates", "relaxed"):
        return RELAXED_PREDICATES
    return BEST[kind] if method == topk.AUTO else method


def kind_of(method: str) -> str:
    """The kind of catalogue that a method is for; names that several kinds share mean boxes."""
    for kind in KINDS:
        if method in topk.methods(kind):
            return kind
    names = sorted({name for kind in KINDS for name in topk.methods(kind)})
    raise unknown_name("matching method", method, names)


@dataclass(frozen=True)
class Ranking(ABC):
    """How the brokers of a network rank; `place`: the columns of latitude and longitude, if there are any."""

    dimensions: int
    method: str
    semantics: str
    options: Mapping[str, Any]
    place: tuple[int, int] | None
    max_distance: float
    metric: str

    def new_matcher(self) -> Matcher:
        """An empty matcher."""
        return IndexMatcher(self)

    @abstractmethod
    def new_index(self, filters: Mapping[int, Filter]) -> Any:
        """An index of `topk` with these subscriptions."""

    @abstractmethod
    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        """Add a subscription to an index."""

    @abstractmethod
    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        """The k best of an index for an event, best first."""

    @abstractmethod
    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        """The score of one subscription, computed without an index; None where the event does not reach it."""

    def held(self, filter: Filter, event: Floats) -> list[int] | None:
        """The attributes whose predicates hold; None where the event does not reach the subscription."""
        held = [a for a in filter.named.tolist() if filter.holds(a, float(event[a]))]
        return held if (held if self.semantics == "relaxed" else len(held) == len(filter.named)) else None


class BoxRanking(Ranking):
    """Dense boxes: every attribute of every subscription has bounds."""

    def new_matcher(self) -> Matcher:
        if self.method in ROW_METHODS and not self.options:
            return RowMatcher(self.dimensions, self.semantics)
        return super().new_matcher()

    def new_index(self, filters: Mapping[int, Filter]) -> Any:
        rows = list(filters.values())
        boxes = np.array([filter.box for filter in rows]).reshape(-1, self.dimensions, 2)
        shape = boxes.shape[:2]
        catalogue = topk.Catalogue.from_boxes(
            boxes[:, :, 0],
            boxes[:, :, 1],
            np.array([filter.score for filter in rows]),
            weights=np.array([filter.weights for filter in rows]).reshape(shape),
            ids=np.array(list(filters), np.int64),
            mentioned=np.array([filter.mentioned for filter in rows], dtype=np.bool_).reshape(shape),
            exclusions={
                i: (filter.residue.excluded, filter.residue.allowed)
                for i, filter in enumerate(rows)
                if not filter.plain
            },
        )
        return topk.create(self.method, catalogue, semantics=self.semantics, **self.options)

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
        return index.top(event, k)

    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        if self.semantics == "relaxed":
            return filter.relaxed_score(event)
        return filter.score if filter.matches(event) else None


class PredicateRanking(Ranking):
    """Sparse expressions: only the attributes that a subscription mentions are stored."""

    def new_index(self, filters: Mapping[int, Filter]) -> Any:
        rows = expressions_of(self.dimensions, filters, [filter.weights for filter in filters.values()])
        relaxed = {"semantics": self.semantics} if self.semantics == "relaxed" else {}
        return topk.create(self.method, rows, **relaxed, **self.options)

    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        index.add_one(expressions_of(self.dimensions, {subscription: filter}, [filter.weights]))

    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        return index.top(sparse_event(event, weights), k)

    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        held = self.held(filter, event)
        if held is None:
            return None
        total = 0.0
        for a in held:  # not `sum`, which corrects its rounding: the matchers do not
            total += filter.weights[a] * (1.0 if weights is None else weights[a])
        return float(total)


class PlaceRanking(Ranking):
    """Sparse expressions with a place."""

    def new_index(self, filters: Mapping[int, Filter]) -> Any:
        return topk.create(self.method, self._located(filters), semantics=self.semantics, **self.options)

    def add(self, index: Any, subscription: int, filter: Filter) -> None:
        index.add_one(self._located({subscription: filter}))

    def _located(self, filters: Mapping[int, Filter]) -> Any:
        expressions = expressions_of(self.dimensions, filters, [shares(f.weights) for f in filters.values()])
        near = np.array([filter.near or (0.0, 0.0, 0.0) for filter in filters.values()]).reshape(-1, 3)
        far, metric = self.max_distance, self.metric
        return located(expressions, near[:, :2], near[:, 2], max_distance=far, metric=metric)

    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[Match]:
        return index.top(sparse_event(event, None), self._place(event), k)

    def score(self, filter: Filter, event: Floats, weights: Floats | None) -> float | None:
        held = self.held(filter, event)
        if held is None:
            return None
        share, text, near = shares(filter.weights), 0.0, 0.0
        for a in held:
            text += share[a]
        where, (*spot, alpha) = self._place(event), filter.near or (0.0, 0.0, 0.0)
        if where is not None:
            ask = ask_for(where, self.max_distance, self.metric)
            x, y, z = coordinates(np.array([spot]), self.metric)[0].tolist()
            near = nearness(x - ask.x, y - ask.y, z - ask.z, ask)
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
    semantics: str,
    options: Mapping[str, Any],
    place: tuple[int, int] | None,
    max_distance: float | None,
    metric: str,
) -> Ranking:
    """The ranking of a network, with its options checked. `max_distance`: None for the largest on the map."""
    if kind not in RANKINGS:
        raise unknown_name("kind of matching", kind, KINDS)
    method = at_work(kind, method, semantics)
    if (kind, semantics) == ("predicates", "relaxed") and method != RELAXED_PREDICATES:
        raise CoverlayError(
            f'{method} is exact; relaxed matching by predicates is done by method = "{RELAXED_PREDICATES}"'
        )
    if kind != "places" and max_distance is not None:
        raise CoverlayError(f"max_distance is for matching by places, not by {kind}")
    if kind == "places" and place is None:
        raise CoverlayError(
            "matching by places needs events with a place: attributes of the kinds latitude and longitude"
        )
    if max_distance is None:
        low, high = domain[list(place or (0, 0))].T
        max_distance = 1.0 if place is None else furthest(low, high, checked_metric(metric))
    if not (math.isfinite(max_distance) and max_distance > 0):
        unit = UNITS[checked_metric(metric)]
        raise CoverlayError(f"max_distance is {quoted(max_distance)}; it must be a finite number of {unit} above 0")
    made = RANKINGS[kind](len(domain), method, semantics, dict(options), place, max_distance, metric)
    made.new_index({})
    return made


def expressions_of(dimensions: int, filters: Mapping[int, Filter], weights: list[Floats]) -> topk.SparseCatalogue:
    """Filters as sparse expressions, a row each; `weights`: how much each attribute counts, filter by filter."""
    rows = list(filters.values())
    if not rows:
        return topk.SparseCatalogue.empty(dimensions)
    exceptions = {
        row: (
            *((a, True, values) for a, values in filter.residue.excluded),
            *((a, False, values) for a, values in filter.residue.allowed),
        )
        for row, filter in enumerate(rows)
        if not filter.plain
    }
    bounds = np.concatenate([filter.bounds for filter in rows])
    return from_csr(
        dimensions,
        np.cumsum([0, *(len(filter.named) for filter in rows)]),
        np.concatenate([filter.named for filter in rows]),
        bounds[:, 0],
        bounds[:, 1],
        np.concatenate([weight[filter.named] for weight, filter in zip(weights, rows, strict=True)]),
        ids=list(filters),
        exceptions=exceptions or None,
    )


def sparse_event(event: Floats, weights: Floats | None) -> Event:
    """The attributes that an event has."""
    named = np.flatnonzero(~np.isnan(event))
    values = event[named]
    return Event(named.astype(np.int32), values, values, np.ones(len(named)) if weights is None else weights[named])
