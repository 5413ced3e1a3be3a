"""What every location-aware matcher offers, and ψ itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coverlay import CoverlayError, kernel, unknown_name
from topk.answers import NONE_FOUND, Batch, Found, Match
from topk.checks import Floats, Ints
from topk.container import new_id, stored_id
from topk.kernels.heaps import best_first
from topk.kernels.rows import fitted
from topk.places.catalogue import NOWHERE, PlacedCatalogue, PlacedEvent, from_located
from topk.places.distance import coordinates, radius
from topk.sparse.contract import columns_of
from topk.sparse.rows import Rows, exceptions_on
from topk.sparse.upkeep import COUNTED, StoredIndex

# Which subscriptions an event may reach; the paper ranks all of them, whatever holds.
SEMANTICS = ("similar", "relaxed", "exact")
NOTHING, ANY, ALL = range(3)  # predicates that must hold, by semantics
NOT_ELIGIBLE = -1.0  # in place of a ψ, which is never negative


class Placed(NamedTuple):
    """What kernels receive: expressions, and per row where it is and α."""

    rows: Rows
    place: Floats  # (rows, 4) x, y, α, z: see `distance`


class Ask(NamedTuple):
    """What kernels receive of an event beyond its attributes."""

    x: float
    y: float
    z: float
    far: float  # MaxDist
    radius: float  # of the globe; 0 on a plane
    need: int


@kernel(inline="always")
def nearness(dx: float, dy: float, dz: float, ask: Ask) -> Any:
    """ψ_s (Eq. 4), cut at 0, of a place that differs from the event's by this much in each coordinate."""
    apart = np.sqrt(dx * dx + dy * dy + dz * dz)
    if ask.radius > 0.0 and apart < np.inf:  # an event that is nowhere is infinitely far away
        apart = 2.0 * ask.radius * math.asin(min(1.0, 0.5 * apart))
    return max(0.0, 1.0 - apart / ask.far)


@kernel(inline="always")
def row_nearness(place: Any, row: int, ask: Ask) -> Any:
    return nearness(place[row, 0] - ask.x, place[row, 1] - ask.y, place[row, 3] - ask.z, ask)


@kernel(inner=True)
def arrays_of(placed: Placed) -> Any:
    """The arrays that kernels read row by row: taking one out of a tuple in a loop would count references."""
    rows = placed.rows
    return rows.odd, rows.attribute, rows.lo, rows.hi, rows.weight, rows.start, rows.length, placed.place


@kernel(inline="always")
def similarity(
    placed: Placed,
    odd: Any,
    attribute: Any,
    lo: Any,
    hi: Any,
    weight: Any,
    start: Any,
    length: Any,
    place: Any,
    row: int,
    event: Any,
    ask: Ask,
) -> Any:
    """ψ (Eq. 1 to 3), or NOT_ELIGIBLE: nearness, and the weights of the predicates that hold, in attribute order.

    Takes the arrays of `arrays_of` one by one: handing over a tuple counts references.
    """
    total, held = 0.0, 0
    for p in range(start[row], start[row] + length[row]):
        a = attribute[p]
        if lo[p] <= event[1, a] and event[0, a] <= hi[p]:
            if odd[row] >= 0 and not exceptions_on(placed.rows, row, a, event):
                continue
            total += weight[p]
            held += 1
    eligible = ask.need == NOTHING or (held == length[row] if ask.need == ALL else held > 0)
    alpha = place[row, 2]
    return (1.0 - alpha) * total + alpha * row_nearness(place, row, ask) if eligible else NOT_ELIGIBLE


def rows_of(catalogue: PlacedCatalogue) -> Floats:
    """What `Placed.place` has for each subscription."""
    x, y, z = coordinates(catalogue.places, catalogue.metric).T
    return np.column_stack([x, y, catalogue.alpha, z])


def ask_for(place: tuple[float, float], far: float, metric: str, need: int = NOTHING) -> Ask:
    """The question of an event at this place."""
    x, y, z = (np.inf, np.inf, np.inf) if place == NOWHERE else coordinates(np.array([place]), metric)[0].tolist()
    return Ask(x, y, z, far, radius(metric), need)


class Workspace(NamedTuple):
    """What kernels write to while one thread searches."""

    event: Floats  # (3, d) low, high and weight of the event by attribute, NaN between uses
    marks: Floats  # by row or node, zero between uses
    counts: Ints  # as `COUNTED`


class Scratch:
    """The workspace of one thread."""

    def __init__(self, dimensions: int) -> None:
        self.counts, self.first = np.zeros(len(COUNTED), np.int64), True
        self.workspace = Workspace(np.full((3, max(dimensions, 1)), np.nan), np.empty(0), self.counts)

    def with_marks(self, count: int) -> Workspace:
        """The workspace, with marks for `count` rows or nodes."""
        if len(self.workspace.marks) < count:
            self.workspace = self.workspace._replace(marks=np.zeros(count))
        return self.workspace


class PlacedIndex(StoredIndex[Scratch]):
    """The k subscriptions most similar to an event. Create one with `topk.create` from a placed catalogue.

    >>> import topk
    >>> shops = [([(3, "between", (1, 5), 0.6), (7, "=", 2.0, 0.4)], (22.3, 114.2), 0.5)]
    >>> index = topk.create("ri-tree", topk.places.from_located(shops, dimensions=9, max_distance=10.0))
    >>> index.add(8, [(3, ">", 2.0, 1.0)], place=(22.2, 114.1), alpha=0.5)
    >>> [(id, round(similarity, 2)) for id, similarity in index.top({3: 4.0}, place=(22.2, 114.1), k=2)]
    [(8, 1.0), (0, 0.79)]
    >>> index
    <matcher ri-tree: 2 subscriptions of 9 attributes, similar>
    """

    scratch = Scratch
    options: ClassVar[Mapping[str, str]] = {
        "semantics": "who may be among the k best: similar (all), relaxed (one predicate holds) or exact (all hold)"
    }

    def __init__(self, catalogue: PlacedCatalogue, semantics: str = "similar") -> None:
        if semantics not in SEMANTICS:
            raise unknown_name("semantics", semantics, SEMANTICS)
        self.semantics = semantics
        self._need = SEMANTICS.index(semantics)
        super().__init__(catalogue.expressions)
        self.max_distance, self.metric = catalogue.max_distance, catalogue.metric
        self._place = np.zeros((len(self.store.rows.ids), 4))
        self._place[: len(catalogue)] = rows_of(catalogue)

    def _manner(self) -> str:
        return f", {self.semantics}"

    @property
    def placed(self) -> Placed:
        return Placed(self.store.rows, self._place)

    @abstractmethod
    def search(self, columns: Any, ask: Ask, k: int, scratch: Scratch) -> Found:
        """The k best, unsorted."""

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self._place.nbytes)

    def top(self, event: Any, place: Sequence[float] | None, k: int | None) -> list[Match]:
        """The k (None: all) most similar as (id, ψ), best first, ties by ascending id; without a place none is near."""
        wanted, asked = self._count(k), PlacedEvent.of(event, place, self.dimensions)
        return self._one(lambda scratch: self._answer(asked, wanted, scratch))

    def top_many(self, events: Sequence[PlacedEvent], k: int | None) -> Batch:
        """`top` for each event, on all cores."""
        wanted = self._count(k)
        for event in events:
            PlacedEvent.checked(event, self.dimensions)
        return self._batch(len(events), lambda i, scratch: self._answer(events[i], wanted, scratch))

    def _answer(self, event: PlacedEvent, k: int, scratch: Scratch) -> Found:
        if k == 0:
            return NONE_FOUND
        ask = ask_for(event.place, self.max_distance, self.metric, self._need)
        return best_first(*self.search(columns_of(event.event), ask, k, scratch))

    def add(self, id: int, expression: Sequence[tuple[Any, ...]], place: tuple[float, float], alpha: float) -> None:
        """Add one subscription; the same rules as `from_located`."""
        self.add_one(self._made(new_id(id, self), (expression, place, alpha)))

    def update(self, id: int, expression: Sequence[tuple[Any, ...]], place: tuple[float, float], alpha: float) -> None:
        """Replace a stored subscription; on a mistake nothing changes."""
        one = self._made(stored_id(id, self), (expression, place, alpha))
        self.remove(id)
        self.add_one(one)

    def add_many(self, catalogue: PlacedCatalogue) -> None:
        """Add all subscriptions of a catalogue of the same metric; on a mistake none is added."""
        if catalogue.metric != self.metric or catalogue.expressions.dimensions > self.dimensions:
            given = f"{catalogue.expressions.dimensions} attributes and places of metric {catalogue.metric!r}"
            raise CoverlayError(f"subscriptions over {given} do not fit {self!r} of metric {self.metric!r}")
        for id in catalogue.expressions.ids.tolist():
            new_id(id, self)
        for row in range(len(catalogue)):
            self.add_one(catalogue.row(row))

    def _made(self, id: int, given: tuple[Any, ...]) -> PlacedCatalogue:
        far, metric = self.max_distance, self.metric
        return from_located([given], dimensions=self.dimensions, ids=[id], max_distance=far, metric=metric)

    def add_one(self, one: PlacedCatalogue) -> None:
        """Add the only row of a catalogue, as `located` makes it."""
        assert one.metric == self.metric, f"a place for {one.metric} does not suit an index of {self.metric}"
        where = rows_of(one)[0]
        row = self.store.add(one.expressions)
        if row >= len(self._place):
            self._place = fitted(self._place, len(self.store.rows.ids))
        self._place[row] = where
        self.insert(row)
        self.stats.inserts += 1
