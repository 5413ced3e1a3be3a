"""What every top-k matcher offers, and the one place where residues are honoured.

A matcher implements `search`: the k best rows by their *boxes* alone. A static one makes its structure in `build` and
finds what it was built from in `catalogue`; a dynamic one has a store of its own, `insert` and `delete`.

A residue (≠, not in, in) can only take predicates away from a box match, never add one, so the box ranking bounds the
true ranking from above. `top` therefore asks for a few more than k, checks their residues, and asks for twice as many
while the last box score could still hide a better subscription. Without residues this costs nothing.

Any number of threads may ask one matcher at the same time (see `container`): what `search` writes to is its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError, unknown_name
from topk.answers import NONE_FOUND, Batch, Found, Match, Stats, pairs
from topk.catalogue import NO_RESIDUE, Catalogue, Residual, Residue, Values
from topk.checks import Floats, numbers
from topk.container import Subscriptions, how_many, new_id, stored_id

SEMANTICS = ("exact", "relaxed")
_SPARE = 8  # candidates beyond k on the first try when residues exist; the total doubles while it is not enough


class TopKIndex(Subscriptions):
    """The k best subscriptions that match an event. Create one with `topk.create`.

    >>> import topk
    >>> cars = topk.Catalogue.from_boxes(lo=[[0, 1990], [0, 2000]], hi=[[500, 2004], [900, 2030]], scores=[2.0, 5.0])
    >>> index = topk.create("slices", cars)
    >>> index.top([300, 2001], k=1)
    [(1, 5.0)]
    >>> index.add(7, [100, 1990], [400, 2010], score=9.0)
    >>> index.top([300, 2001], k=None), 7 in index, sorted(index)
    ([(7, 9.0), (1, 5.0), (0, 2.0)], True, [0, 1, 7])
    >>> index
    <matcher slices: 3 subscriptions of 2 attributes, exact>

    With one attribute, neither bounds nor events need brackets:

    >>> index = topk.create("scan", topk.Catalogue.from_boxes([0, 40], [50, 100], [1.0, 3.0]))
    >>> index.add(2, 45, 60, score=2.0)
    >>> index.top(47, k=2), list(index.top_many([10, 99], k=1))
    ([(1, 3.0), (2, 2.0)], [[(0, 1.0)], [(1, 3.0)]])
    """

    semantics: Any = SEMANTICS  # of a class: those that it answers; of a matcher: the one that it was made for
    priced_like: ClassVar[str | None] = None  # what it costs where a profile does not say it
    dynamic: ClassVar[bool] = False  # whether `add` and `remove` work in place
    most_attributes: ClassVar[int | None] = None  # that it can index; None: any number
    options: ClassVar[Mapping[str, str]] = {}  # option → one line of help

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        if semantics not in (answers := type(self).semantics):
            raise unknown_name("semantics", semantics, answers)
        self.semantics = semantics
        self._check_weights(catalogue)
        self.dimensions = catalogue.dimensions
        self.stats = Stats()
        self._residuals: dict[int, Residual] = {}
        self._note_residues(catalogue)
        if type(self).catalogue is TopKIndex.catalogue:  # otherwise it has a store of its own
            self._given = catalogue
        self.build(catalogue)

    def _note_residues(self, c: Catalogue) -> None:
        for row, residue in c.residues.items():
            kept = Residual(c.lo[row], c.hi[row], c.weights[row], c.mentioned[row], *residue)
            self._residuals[int(c.ids[row])] = kept

    def _manner(self) -> str:
        return f", {self.semantics}"

    def ids(self) -> list[int]:
        return self.catalogue.ids.tolist()

    @abstractmethod
    def search(self, low: Floats, high: Floats, k: int) -> Found:
        """The k best by their boxes, best first, ties by ascending id; k ≥ 1.

        An event is a box from low to high; for a point these are the same array.
        """

    def build(self, catalogue: Catalogue) -> None:
        """Make the structure over these subscriptions; called once, at the end of `__init__`."""

    # ---- where the subscriptions are: those of a static matcher are those it was built from ---------------

    @property
    def catalogue(self) -> Catalogue:
        """Everything stored, without residues."""
        return self._given

    @cached_property
    def _row_of(self) -> dict[int, int]:
        """Made on first use: a build should not pay for it."""
        return dict(zip(self._given.ids.tolist(), range(len(self._given)), strict=True))

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, id: object) -> bool:
        return id in self._row_of

    def subscription(self, id: int) -> Catalogue:
        """One stored subscription as a catalogue of one row, without its residue."""
        return self._given.take([self._row_of[id]])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays the matcher needs to answer, the bounds it compares included."""
        return sum(column.nbytes for column in self.catalogue.columns)

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
        """`top` for each row of an (m, d) array; of an (m,) array where there is one attribute."""
        wanted = self._count(k)
        return Batch.of([self._answer(event, event, wanted) for event in self._events(events)])

    def _answer(self, low: Floats, high: Floats, k: int) -> Found:
        self.stats.queries += 1
        if k == 0:
            return NONE_FOUND
        return self._checked(low, high, k) if self._residuals else self.search(low, high, k)

    def _checked(self, low: Floats, high: Floats, k: int) -> Found:
        ask = k + _SPARE
        while True:
            ids, box_scores = self.search(low, high, ask)
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
        if points.ndim == 1 and self.dimensions == 1:
            points = points[:, None]
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
        self._take(self._checked_one(new_id(id, self), lo, hi, score, weights, mentioned, (excluded, allowed)))

    def update(
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
        """Replace a stored subscription; the same rules as `add`, and on a mistake nothing changes."""
        self._replace(self._checked_one(stored_id(id, self), lo, hi, score, weights, mentioned, (excluded, allowed)))

    def add_many(self, catalogue: Catalogue) -> None:
        """Add all subscriptions of a catalogue of as many attributes; on a mistake none is added."""
        if catalogue.dimensions != self.dimensions:
            raise CoverlayError(f"subscriptions of {catalogue.dimensions} attributes do not fit {self!r}")
        for id in catalogue.ids.tolist():
            new_id(id, self)
        self._check_weights(catalogue)
        for row in range(len(catalogue)):
            residues = {0: catalogue.residues[row]} if row in catalogue.residues else {}
            self._take(replace(catalogue.take([row]), residues=residues))

    def _checked_one(
        self,
        id: int,
        lo: ArrayLike,
        hi: ArrayLike,
        score: float,
        weights: ArrayLike | None,
        mentioned: ArrayLike | None,
        residue: Residue,
    ) -> Catalogue:
        """`Catalogue.one`; CoverlayError if it does not fit us."""
        low, high = self._bound("lo", lo), self._bound("hi", hi)
        if low.shape != (self.dimensions,):
            raise CoverlayError(f"lo and hi must have shape ({self.dimensions},), not {low.shape}")
        one = Catalogue.one(id, low, high, score, weights, mentioned, residue)
        self._check_weights(one)
        return one

    def _bound(self, what: str, bound: ArrayLike) -> Floats:
        given = numbers(what, bound)
        return given[None] if given.ndim == 0 and self.dimensions == 1 else given

    def _check_weights(self, catalogue: Catalogue) -> None:
        """CoverlayError if our semantics cannot match the weights."""
        if self.semantics == "relaxed" and (catalogue.weights < 0).any():
            row, j = np.argwhere(catalogue.weights < 0)[0]
            named, weight = f"subscription {catalogue.ids[row]}, attribute {j}", catalogue.weights[row, j]
            raise CoverlayError(f"relaxed matching needs weights ≥ 0; {named} has {weight}")

    def _replace(self, one: Catalogue) -> None:
        self.remove(int(one.ids[0]))
        self._take(one)

    def _take(self, one: Catalogue) -> None:
        self._note_residues(one)  # first, because `insert` may depend on whether there are residues
        self.insert(one)
        self.stats.inserts += 1

    def remove(self, id: int) -> None:
        id = stored_id(id, self)
        self.delete(id)
        self._residuals.pop(id, None)
        self.stats.deletes += 1

    def update_score(self, id: int, score: float, weights: ArrayLike | None = None) -> None:
        """Give a subscription another score; its box and its residue stay.

        Without new weights, the old ones are scaled to sum to the new score, so that a subscription whose predicates
        all hold scores the same under both semantics. Weights that cannot be scaled, because they add up to 0 or to
        next to nothing, become even.
        """
        id = stored_id(id, self)
        old, residual = self.subscription(id), self._residuals.get(id)
        if weights is None:
            weights = _scaled(old.weights[0], numbers("a score", score))
        residue = (residual.excluded, residual.allowed) if residual else NO_RESIDUE
        self._replace(self._checked_one(id, old.lo[0], old.hi[0], score, weights, old.mentioned[0], residue))

    def insert(self, one: Catalogue) -> None:
        raise CoverlayError(f"{self.name} is static; wrap it with topk.create, which makes it dynamic")

    def delete(self, id: int) -> None:
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


def sequential_sum(weights: Floats) -> float:
    """Sum in attribute order. All matchers add in this order, so equal sets of weights give equal floats."""
    total = 0.0
    for weight in weights:
        total += weight
    return float(total)
