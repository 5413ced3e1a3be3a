"""The columnar catalogue of subscriptions that every matcher is built from.

A subscription is a box of closed bounds (±inf where a side is open), the set of attributes it mentions, a
score for exact matching, a weight per attribute for relaxed matching, and, rarely, a *residue*: what a box
cannot say (≠, not in, in). Everything is an array over rows; ids are arbitrary distinct int64.

Rules that all matchers share:

- an attribute that is not mentioned has the bounds (−inf, +inf) and holds for every event, even for one that
  lacks the attribute;
- a mentioned attribute fails for an event that lacks it (NaN), whatever its bounds;
- without weights, the score is shared evenly between the mentioned attributes, so that a subscription that
  holds in all of them scores the same under both semantics (up to rounding).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError, quoted
from topk.checks import Bools, Floats, Ints, checked_id, checked_ids, numbers
from topk.predicates import SparseCatalogue, from_predicates

Values = tuple[tuple[int, tuple[float, ...]], ...]  # (attribute, values) pairs
Residue = tuple[Values, Values]  # (excluded, allowed)

NO_RESIDUE: Residue = ((), ())


@dataclass(frozen=True)
class Catalogue:
    """Rows of subscriptions; build one with `from_boxes`, which validates."""

    ids: Ints  # (n,)
    lo: Floats  # (n, d)
    hi: Floats  # (n, d)
    scores: Floats  # (n,)
    weights: Floats  # (n, d), 0 where not mentioned
    mentioned: Bools  # (n, d)
    residues: Mapping[int, Residue] = field(default_factory=dict)  # row → what the box cannot say

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimensions(self) -> int:
        return self.lo.shape[1]

    @property
    def columns(self) -> tuple[Any, ...]:
        return self.ids, self.lo, self.hi, self.scores, self.weights, self.mentioned

    def take(self, rows: Any) -> Catalogue:
        """These rows without their residues, which the matcher keeps."""
        return Catalogue(*(column[rows] for column in self.columns))

    @classmethod
    def empty(cls, dimensions: int) -> Catalogue:
        """No subscription yet, over `dimensions` attributes."""
        if dimensions < 1:
            raise CoverlayError(f"a catalogue needs at least 1 attribute, not {dimensions}")
        nothing = np.empty((0, dimensions))
        return cls.from_boxes(nothing, nothing, np.empty(0))

    @classmethod
    def from_boxes(
        cls,
        lo: ArrayLike,
        hi: ArrayLike,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        mentioned: ArrayLike | None = None,
        exclusions: Mapping[int, Residue] | None = None,
    ) -> Catalogue:
        """Bounds of shape (n, d), and scores of shape (n,) or weights of shape (n, d) whose row sums are the scores.

        `exclusions` maps a row to its (excluded, allowed) pairs of (attribute, values).
        """
        low, high = _matrix("lo", lo), _matrix("hi", hi)
        if low.shape != high.shape:
            raise CoverlayError(f"lo and hi must have the same shape, not {low.shape} and {high.shape}")
        n, d = low.shape
        residues = dict(exclusions or {})
        named = _mentioned(low, high, mentioned, residues)
        _check_bounds(low, high)
        score, gain = _scores(scores, weights, named)
        return cls(checked_ids(ids, n), low, high, score, gain, named, _check_residues(residues, n, d))

    @staticmethod
    def from_predicates(
        expressions: Iterable[Sequence[tuple[Any, ...]]], *, dimensions: int | None = None, ids: ArrayLike | None = None
    ) -> SparseCatalogue:
        """Sparse: many attributes, few (attribute, operator, value, weight) predicates per subscription."""
        return from_predicates(expressions, dimensions=dimensions, ids=ids)

    @classmethod
    def one(
        cls,
        id: int,
        lo: Floats,
        hi: Floats,
        score: float,
        weights: ArrayLike | None = None,
        mentioned: ArrayLike | None = None,
        residue: Residue = NO_RESIDUE,
    ) -> Catalogue:
        """A single subscription. The ordinary case skips most of `from_boxes`, which costs 40 µs a row."""
        given = None if mentioned is None else np.asarray(mentioned, dtype=np.bool_)
        gain = None if weights is None else numbers("weights", weights)
        given_score = numbers("a score", score)
        if given_score.ndim:
            raise CoverlayError(f"a score must be one number, not {quoted(score)}")
        score = float(given_score)
        fits = lo.shape == hi.shape and (given is None or given.shape == lo.shape)
        fits = fits and (gain is None or (gain.shape == lo.shape and bool(np.isfinite(gain).all())))
        if fits and residue == NO_RESIDUE and math.isfinite(score) and (lo <= hi).all():
            bounded = (lo != -np.inf) | (hi != np.inf)
            named = bounded if given is None else given
            if given is None or not (bounded & ~given).any():
                if gain is None:
                    gain = np.full(lo.shape, score / max(int(np.count_nonzero(named)), 1))
                kept = np.where(named, gain, 0.0)
                own = np.array([checked_id(id)], dtype=np.int64)
                return cls(own, lo[None], hi[None], np.array([score]), kept[None], named[None])
        return cls.from_boxes(
            lo[None],
            np.atleast_2d(hi),
            [score],
            weights=None if gain is None else gain[None],
            ids=[id],
            mentioned=None if given is None else given[None],
            exclusions=None if residue == NO_RESIDUE else {0: residue},
        )


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


def _matrix(name: str, values: ArrayLike) -> Floats:
    array = numbers(name, values).copy()
    if array.ndim == 1:
        array = array[:, None]  # one attribute may be given as a plain vector
    if array.ndim != 2 or array.shape[1] < 1:
        raise CoverlayError(f"{name} must be an (n, d) array with d ≥ 1, not of shape {array.shape}")
    return array


def _mentioned(lo: Floats, hi: Floats, given: ArrayLike | None, residues: Mapping[int, Residue]) -> Bools:
    bounded = (lo != -np.inf) | (hi != np.inf)
    if given is None:
        named: Bools = bounded
    else:
        named = np.array(given, dtype=np.bool_)
        if named.ndim == 1 and lo.shape[1] == 1:
            named = named[:, None]
        if named.shape != lo.shape:
            raise CoverlayError(f"mentioned must have the shape of lo, {lo.shape}, not {named.shape}")
        if np.any(bounded & ~named):
            row, attribute = np.argwhere(bounded & ~named)[0]
            raise CoverlayError(f"row {row} bounds attribute {attribute} without mentioning it")
    for row, (excluded, allowed) in residues.items():
        for attribute, _ in (*excluded, *allowed):
            if 0 <= row < len(lo) and 0 <= attribute < lo.shape[1]:
                named[row, attribute] = True  # `x ≠ 5` is a predicate on x although the box is unbounded
    return named


def _check_bounds(lo: Floats, hi: Floats) -> None:
    for name, bounds in (("lo", lo), ("hi", hi)):
        if np.isnan(bounds).any():
            row, attribute = np.argwhere(np.isnan(bounds))[0]
            raise CoverlayError(f"{name} of row {row}, attribute {attribute}, is NaN; use ±inf for unbounded")
    if np.any(lo > hi):
        row, j = np.argwhere(lo > hi)[0]
        raise CoverlayError(f"row {row}, attribute {j}: lo {lo[row, j]} is greater than hi {hi[row, j]}")


def _scores(scores: ArrayLike, weights: ArrayLike | None, mentioned: Bools) -> tuple[Floats, Floats]:
    score = numbers("scores", scores).copy()
    n, d = mentioned.shape
    if score.ndim == 2:
        if weights is not None:
            raise CoverlayError("scores of shape (n, d) are weights; do not give weights as well")
        gain = _finite("scores", np.where(mentioned, _shaped("scores", score, (n, d)), 0.0))
        return _finite("scores", gain.sum(axis=1)), gain
    score = _finite("scores", _shaped("scores", score, (n,)))
    if weights is None:
        share = score / np.maximum(mentioned.sum(axis=1), 1)
        return score, np.where(mentioned, share[:, None], 0.0)
    given = numbers("weights", weights)
    if given.ndim == 1 and d == 1:
        given = given[:, None]
    return score, _finite("weights", np.where(mentioned, _shaped("weights", given, (n, d)), 0.0))


def _shaped(name: str, array: Floats, shape: tuple[int, ...]) -> Floats:
    if array.shape != shape:
        raise CoverlayError(f"{name} must have the shape {shape}, not {array.shape}")
    return array


def _finite(name: str, array: Floats) -> Floats:
    if not np.isfinite(array).all():
        raise CoverlayError(f"{name} must be finite; row {np.argwhere(~np.isfinite(array))[0][0]} is not")
    return array


def _check_residues(residues: Mapping[int, Residue], n: int, d: int) -> dict[int, Residue]:
    for row, (excluded, allowed) in residues.items():
        if not 0 <= row < n:
            raise CoverlayError(f"exclusions name row {row}; rows are 0 to {n - 1}")
        for attribute, _ in (*excluded, *allowed):
            if not 0 <= attribute < d:
                raise CoverlayError(f"exclusions of row {row} name attribute {attribute}; there are {d}")
    return {row: residue for row, residue in residues.items() if residue[0] or residue[1]}
