"""What every top-k matcher offers, and the one place where residues are honoured.

A matcher implements `_search`: the k best rows by their *boxes* alone. A residue (≠, not in, in)
can only take predicates away from a box match, never add one, so the box ranking bounds the true ranking
from above. `top` therefore asks for a few more than k, checks their residues, and asks for twice as many while
the last box score could still hide a better subscription. Without residues this costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError, quoted, unknown_name
from topk.catalogue import NO_RESIDUE, Catalogue, Floats, Ints, Values, checked_id, is_whole, numbers

Match = tuple[int, float]
Found = tuple[Ints, Floats]  # ids and scores, best first
NONE_FOUND: Found = (np.empty(0, np.int64), np.empty(0))

SEMANTICS = ("exact", "relaxed")
_SPARE = 8  # candidates beyond k on the first try when residues exist; the total doubles while it is not enough


@dataclass
class Stats:
    """Work done since construction, or since the last `reset`."""

    queries: int = 0
    entries: int = 0  # subscriptions or predicates compared with an event
    nodes: int = 0  # tree nodes, cells, lists or blocks looked at
    comparisons: int = 0  # of an event's value with a predicate or a node's range, look-ups, weights read for bounds
    queued: int = 0  # keys pushed to, popped from or sorted in heaps and other queues
    probes: int = 0  # words of bitmaps and headers of lists looked at
    getnexts: int = 0  # results taken from one-dimensional iterators
    inserts: int = 0
    deletes: int = 0
    rebuilds: int = 0  # static structures built, the first one included

    def add(self, **counts: int) -> None:
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def reset(self) -> None:
        vars(self).update(vars(Stats()))


@dataclass(frozen=True)
class Residual:
    """A subscription with a residue, kept whole because its true score must be recomputed."""

    lo: Floats
    hi: Floats
    weights: Floats
    mentioned: Any  # bool (d,)
    excluded: Values
    allowed: Values

    def held(self, low: Floats, high: Floats) -> Any:
        """Which mentioned attributes hold for an event from low to high, the residue included; bool (d,)."""
        holds = self.mentioned & (self.lo <= high) & (low <= self.hi)
        for attribute, values in self.excluded:
            if low[attribute] == high[attribute] and low[attribute] in values:
                holds[attribute] = False  # a wider event also has values that are not excluded
        for attribute, values in self.allowed:
            if not any(low[attribute] <= value <= high[attribute] for value in values):
                holds[attribute] = False
        return holds


def pairs(found: Found) -> list[Match]:
    ids, scores = found
    return list(zip(ids.tolist(), scores.tolist(), strict=True))


class Batch(Sequence[list[Match]]):
    """The answers to many events as arrays; indexing gives one event's answer as a list of pairs."""

    def __init__(self, ids: Ints, scores: Floats, counts: Ints) -> None:
        self.ids = ids  # (m, k); row i is valid up to counts[i]
        self.scores = scores
        self.counts = counts

    @classmethod
    def of(cls, answers: Sequence[Found]) -> Batch:
        counts = np.array([len(ids) for ids, _ in answers], dtype=np.int64)
        width = int(counts.max(initial=0))
        ids = np.full((len(answers), width), -1, dtype=np.int64)
        scores = np.full((len(answers), width), np.nan)
        for i, (found, score) in enumerate(answers):
            ids[i, : len(found)] = found
            scores[i, : len(found)] = score
        return cls(ids, scores, counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        count = self.counts[i]
        return pairs((self.ids[i, :count], self.scores[i, :count]))


class TopKIndex(ABC):
    """The k best subscriptions that match an event. Create one with `topk.create`."""

    name: ClassVar[str]
    dynamic: ClassVar[bool] = False  # whether `add` and `remove` work in place
    options: ClassVar[Mapping[str, str]] = {}  # option → one line of help

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        if semantics not in SEMANTICS:
            raise unknown_name("semantics", semantics, SEMANTICS)
        if semantics == "relaxed" and (catalogue.weights < 0).any():
            row, j = np.argwhere(catalogue.weights < 0)[0]
            weight = catalogue.weights[row, j]
            raise CoverlayError(f"relaxed matching needs weights ≥ 0; row {row}, attribute {j} has {weight}")
        self.semantics = semantics
        self.dimensions = catalogue.dimensions
        self.stats = Stats()
        self._residuals: dict[int, Residual] = {}
        self._note_residues(catalogue)

    def _note_residues(self, c: Catalogue) -> None:
        for row, residue in c.residues.items():
            kept = Residual(c.lo[row], c.hi[row], c.weights[row], c.mentioned[row], *residue)
            self._residuals[int(c.ids[row])] = kept

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _search(self, low: Floats, high: Floats, k: int) -> Found:
        """The k best by their boxes, best first, ties by ascending id; k ≥ 1.

        An event is a box from low to high; for a point these are the same array.
        """

    @abstractmethod
    def _catalogue(self) -> Catalogue:
        """Everything stored, without residues."""

    @abstractmethod
    def _subscription(self, id: int) -> Catalogue:
        """One stored subscription as a catalogue of one row, without its residue."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the arrays the matcher needs to answer, the bounds it compares included."""

    @abstractmethod
    def check(self) -> None:
        """Verify the structure's invariants; AssertionError names the first one broken."""

    # ---- queries ----------------------------------------------------------------------------------------

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        """The k best matches (all of them for None) as (id, score), best first, ties by ascending id.

        An event is an array with one value per attribute, NaN where it lacks one; with one attribute a number will do.
        """
        point = self._event(event)
        return pairs(self._answer(point, point, self._count(k)))

    def top_overlapping(self, low: ArrayLike, high: ArrayLike, k: int | None) -> list[Match]:
        """`top` for an event that is a box: a predicate holds where it meets the event's interval."""
        bottom, upper, wanted = self._event(low), self._event(high), self._count(k)
        if (bottom > upper).any():
            raise CoverlayError(f"an event's low must not exceed its high: {bottom} and {upper}")
        bottom = np.where(np.isnan(upper), upper, bottom)  # an attribute without either bound is missing
        return pairs(self._answer(bottom, upper, wanted))

    def top_many(self, events: ArrayLike, k: int | None) -> Batch:
        """`top` for each row of an (m, d) array."""
        wanted = self._count(k)
        return Batch.of([self._answer(event, event, wanted) for event in self._events(events)])

    def _answer(self, low: Floats, high: Floats, k: int) -> Found:
        self.stats.queries += 1
        if k == 0:
            return NONE_FOUND
        return self._checked(low, high, k) if self._residuals else self._search(low, high, k)

    def _checked(self, low: Floats, high: Floats, k: int) -> Found:
        ask = k + _SPARE
        while True:
            ids, box_scores = self._search(low, high, ask)
            scores = box_scores.copy()
            for i, identity in enumerate(ids.tolist()):
                residual = self._residuals.get(identity)
                if residual is not None:
                    scores[i] = self._true_score(residual, low, high, scores[i])
            valid = ~np.isnan(scores)
            order = np.lexsort((ids[valid], -scores[valid]))[:k]
            best, best_scores = ids[valid][order], scores[valid][order]
            # Complete: the index had no more, or nothing further down can reach the k-th true score.
            if len(ids) < ask or (len(best) == k and best_scores[-1] > box_scores[-1]):
                return best, best_scores
            ask *= 2

    def _true_score(self, residual: Residual, low: Floats, high: Floats, score: float) -> float:
        """The score with the residue honoured, NaN where the subscription no longer matches."""
        holds = residual.held(low, high)
        if self.semantics == "exact":
            return score if bool((holds | ~residual.mentioned).all()) else np.nan
        return self._combined(np.where(holds, residual.weights, 0.0)) if holds.any() else np.nan

    def _combined(self, weights: Floats) -> float:
        """The relaxed score of the weights that hold (0 for those that do not)."""
        return sequential_sum(weights)

    def _event(self, event: ArrayLike) -> Floats:
        point = numbers("an event", event)
        if point.ndim == 0 and self.dimensions == 1:
            point = point[None]
        if point.shape != (self.dimensions,):
            raise CoverlayError(f"an event must have shape ({self.dimensions},), not {point.shape}")
        return point

    def _events(self, events: ArrayLike) -> Floats:
        points = np.ascontiguousarray(numbers("events", events))
        if points.ndim != 2 or points.shape[1] != self.dimensions:
            raise CoverlayError(f"events must have shape (m, {self.dimensions}), not {points.shape}")
        return points

    def _count(self, k: int | None) -> int:
        return how_many(k, len(self))

    # ---- updates ----------------------------------------------------------------------------------------

    def add(
        self,
        id: int,
        lo: ArrayLike,
        hi: ArrayLike,
        score: float,
        weights: ArrayLike | None = None,
        mentioned: ArrayLike | None = None,
        excluded: Values = (),
        allowed: Values = (),
    ) -> None:
        """Add one subscription; the same rules as `Catalogue.from_boxes`."""
        id = new_id(id, self)
        low, high = numbers("lo", lo), numbers("hi", hi)
        if low.shape != (self.dimensions,):
            raise CoverlayError(f"lo and hi must have shape ({self.dimensions},), not {low.shape}")
        self._take(self._checked_one(id, low, high, score, weights, mentioned, (excluded, allowed)))

    def _checked_one(self, id: int, *columns: Any) -> Catalogue:
        """`Catalogue.one`; CoverlayError if our semantics cannot match its weights."""
        one = Catalogue.one(id, *columns)
        if self.semantics == "relaxed" and (one.weights < 0).any():
            raise CoverlayError(f"relaxed matching needs weights ≥ 0; subscription {id} has {one.weights[0]}")
        return one

    def _take(self, one: Catalogue) -> None:
        self._note_residues(one)  # first, because `_insert` may depend on whether there are residues
        self._insert(one)
        self.stats.inserts += 1

    def remove(self, id: int) -> None:
        """Remove one subscription; CoverlayError if it is not there."""
        id = stored_id(id, self)
        self._delete(id)
        self._residuals.pop(id, None)
        self.stats.deletes += 1

    def update_score(self, id: int, score: float, weights: ArrayLike | None = None) -> None:
        """Give a subscription another score; its box and its residue stay.

        Without new weights, the old ones are scaled to sum to the new score, so that a subscription whose predicates
        all hold scores the same under both semantics. Weights that cannot be scaled, because they add up to 0 or to
        next to nothing, become even.
        """
        id = stored_id(id, self)
        old, residual = self._subscription(id), self._residuals.get(id)
        if weights is None:
            weights = _scaled(old.weights[0], numbers("a score", score))
        residue = (residual.excluded, residual.allowed) if residual else NO_RESIDUE
        one = self._checked_one(id, old.lo[0], old.hi[0], score, weights, old.mentioned[0], residue)
        self.remove(id)  # not before the new one is known to be valid
        self._take(one)

    @abstractmethod
    def __contains__(self, id: object) -> bool: ...

    def _insert(self, one: Catalogue) -> None:
        raise CoverlayError(f"{self.name} is static; wrap it with topk.create, which makes it dynamic")

    def _delete(self, id: int) -> None:
        raise CoverlayError(f"{self.name} is static; wrap it with topk.create, which makes it dynamic")


def _scaled(weights: Floats, score: Floats) -> Floats | None:
    """The weights in the same proportion, with the score as their sum; None if numbers do not reach that far."""
    total = sequential_sum(weights)
    if total == 0.0 or score.ndim:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: Floats = weights * (score / total)
        if not np.isfinite(scaled).all():  # the quotient is beyond the largest number where the total is a denormal one
            scaled = weights / total * score
    return scaled if np.isfinite(scaled).all() else None


def new_id(id: Any, index: Container[int]) -> int:
    """An id that may be added; CoverlayError if the index has it."""
    id = checked_id(id)
    if id in index:
        raise CoverlayError(f"subscription {id} is already in the index")
    return id


def stored_id(id: Any, index: Container[int]) -> int:
    """An id that the index has; CoverlayError if it does not."""
    id = checked_id(id)
    if id not in index:
        raise CoverlayError(f"subscription {id} is not in the index")
    return id


def how_many(k: int | None, most: int) -> int:
    """How many answers to return: k, or `most` if that is less or k is None."""
    if k is None:
        return most
    if not (is_whole(k) and k >= 0):
        raise CoverlayError(f"k must be 0 or more, or None for all matches, not {quoted(k)}")
    return min(int(k), most)


def sequential_sum(weights: Floats) -> float:
    """Sum in attribute order. All matchers add in this order, so equal sets of weights give equal floats."""
    total = 0.0
    for weight in weights:
        total += weight
    return float(total)
