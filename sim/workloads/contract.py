"""A workload: all subscriptions and events of a run as columns, so that engines need no object per row.

Generators, except begen and located, follow three rules that make runs of a sweep comparable (common random numbers):
- one named stream per concern, so that more events do not change the subscriptions, nor wider boxes their centres;
- a stream fills one array row by row, so that the first n rows are the same however many follow;
- several arrays from one stream are drawn in blocks (`in_blocks`), for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from broker.language.schema import Schema
from covering.residue import EMPTY, Residue
from routing.filter import Filter
from sim.random_streams import Stream

Floats = NDArray[np.float64]
_EVENTS = ("events", "publishers", "times", "published_order", "event_weights")  # columns with a row per event
BLOCK = 4096  # rows drawn together; large enough to vectorise, small enough not to waste


@dataclass(frozen=True, eq=False)
class Workload:
    """n subscriptions and m events over d attributes; attribute j of row i is in [lo[i, j], hi[i, j]]."""

    schema: Schema
    lo: Floats  # (n, d) closed bounds, ∓inf where unbounded
    hi: Floats
    mentioned: NDArray[np.bool_]  # (n, d)
    scores: Floats  # (n,)
    weights: Floats  # (n, d), 0 where not mentioned
    events: Floats  # (m, d), NaN where an event lacks the attribute
    residues: Mapping[int, Residue] = field(default_factory=dict)  # row → what its box cannot say
    homes: NDArray[np.int64] | None = None  # (n,) broker of each subscription, where the data says so
    publishers: NDArray[np.int64] | None = None  # (m,) broker of each event, likewise
    times: Floats | None = None  # (m,) ms at which each event is published, likewise; ascending
    came: Floats | None = None  # (n,) ms at which each subscription comes, likewise
    left: Floats | None = None  # (n,) ms at which it leaves, inf if it stays; given with `came`
    came_order: Floats | None = None  # (n,) what comes first at equal times, the smaller number, where the data says so
    left_order: Floats | None = None
    published_order: Floats | None = None  # (m,)
    ids: tuple[str, ...] | None = None  # (n,) what the data calls the subscriptions
    reranks: NDArray[np.int64] | None = None  # (n,) the row that each replaces, with the same predicates; −1: none
    near: Floats | None = None  # (n, 3) latitude, longitude and α of each subscription, NaN where it has no place
    event_weights: Floats | None = None  # (m, d) how much each attribute of an event counts; None: 1
    warnings: tuple[str, ...] = ()  # what the user should know about the data

    def residue(self, row: int) -> Residue:
        return self.residues.get(row, EMPTY)

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """(n,) the first row of the same subscription, before its rank changed."""
        first = np.arange(len(self.lo))
        if self.reranks is not None and self.came is not None:
            changed = np.flatnonzero(self.reranks >= 0)
            for row in changed[np.argsort(self.came[changed], kind="stable")].tolist():
                first[row] = first[self.reranks[row]]
        return first

    def repeated(self, times: int) -> Workload:
        """The events this many times, one recording after the other, a mean gap apart."""
        if times == 1 or not len(self.events):
            return self
        columns = {name: getattr(self, name) for name in _EVENTS}
        again: dict[str, Any] = {n: None if c is None else np.concatenate([c] * times) for n, c in columns.items()}
        if self.times is not None:
            span = float(self.times[-1] - self.times[0])
            later = (span + span / max(len(self.times) - 1, 1)) * np.arange(times)
            again["times"] = (later[:, None] + self.times).ravel()
        return replace(self, **again)

    def nearest(self, row: int) -> tuple[float, float, float] | None:
        """Latitude, longitude and α of a subscription, None if it has no place."""
        if self.near is None or np.isnan(self.near[row]).any():
            return None
        latitude, longitude, alpha = self.near[row].tolist()
        return latitude, longitude, alpha

    def check(self) -> None:
        """Raise AssertionError unless the columns fit together and `mentioned` says what is restricted."""
        count, attributes = self.lo.shape
        assert attributes == len(self.schema) == self.events.shape[1], "one column per attribute"
        assert self.hi.shape == self.mentioned.shape == self.weights.shape == (count, attributes)
        assert self.scores.shape == (count,)
        assert np.isfinite(self.scores).all(), "scores are numbers"
        assert (self.lo <= self.hi).all(), "bounds are in order and not NaN"
        restricted = np.isfinite(self.lo) | np.isfinite(self.hi)
        for row, residue in self.residues.items():
            assert residue != EMPTY, "a residue is stored only where there is one"
            for attribute, _ in (*residue.excluded, *residue.allowed):
                restricted[row, attribute] = True
        assert (restricted == self.mentioned).all(), "mentioned iff restricted"
        assert (self.weights >= 0).all(), "weights are not negative"
        assert not self.weights[~self.mentioned].any(), "unmentioned attributes have no weight"
        low, high = self.schema.domain.T
        inside = np.isnan(self.events) | ((self.events >= low) & (self.events <= high))
        assert inside.all(), "events are within their domain"
        if self.near is not None:
            assert self.schema.place is not None, "a place needs events with a place"
            assert self.near.shape == (count, 3)
            alpha = self.near[:, 2]
            assert (np.isnan(alpha) | ((alpha >= 0) & (alpha <= 1))).all(), "α is a share"
            assert (np.isnan(self.near).any(axis=1) == np.isnan(self.near).all(axis=1)).all(), "a whole place or none"
        assert (self.came is None) == (self.left is None), "`came` and `left` are given together"
        if self.came is not None and self.left is not None:
            assert (self.came < self.left).all(), "a subscription leaves after it comes"
        if self.reranks is not None:
            assert self.came is not None, "ranks change at a known time"
            later = np.flatnonzero(self.reranks >= 0)
            before = self.reranks[later]
            assert (self.came[before] < self.came[later]).all(), "a rank changes after its subscription comes"
            assert len(set(before.tolist())) == len(before), "a row is replaced at most once"
            assert (self.lo[before] == self.lo[later]).all(), "a change of rank keeps the bounds"
            assert (self.hi[before] == self.hi[later]).all()
        if self.event_weights is not None:
            assert self.event_weights.shape == self.events.shape
            assert (self.event_weights >= 0).all(), "weights are not negative"


class Generator(Protocol):
    def __call__(self, stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload: ...


def from_filters(schema: Schema, filters: Sequence[Filter], events: Floats) -> Workload:
    """The columns of compiled subscriptions, with events as points."""
    shape = (len(filters), len(schema))
    bounds = np.array([f.box for f in filters], np.float64).reshape(*shape, 2)
    mentioned = np.array([f.mentioned for f in filters], np.bool_).reshape(shape)
    weights = np.array([f.weights for f in filters], np.float64).reshape(shape)
    scores = np.array([f.score for f in filters], np.float64)
    residues = {row: f.residue for row, f in enumerate(filters) if f.residue != EMPTY}
    near = np.array([f.near or (np.nan,) * 3 for f in filters], np.float64) if any(f.near for f in filters) else None
    lo, hi = bounds[..., 0].copy(), bounds[..., 1].copy()
    return Workload(schema, lo, hi, mentioned, scores, weights, events, residues, near=near)


def boxes(
    stream: Stream, lo: Floats, hi: Floats, events: Floats, weights_and_scores: tuple[Floats, Floats] | None = None
) -> Workload:
    """A workload of full boxes over [0, 1]^d; weights and scores are uniform in (0, 1] unless given."""
    if weights_and_scores is None:
        weights = 1.0 - stream("workload.weights").random(lo.shape)
        weights_and_scores = weights, 1.0 - stream("workload.scores").random(len(lo))
    weights, scores = weights_and_scores
    mentioned = np.ones(lo.shape, dtype=np.bool_)
    return Workload(Schema.uniform(lo.shape[1]), lo, hi, mentioned, scores, weights, events)


def in_blocks(count: int, draw: Callable[[int], Any], columns: int) -> Floats:
    """The first `count` rows of calls of `draw(BLOCK)`: only whole blocks are drawn, so a prefix never changes."""
    parts = [draw(BLOCK) for _ in range(-(-count // BLOCK))]
    return np.concatenate(parts)[:count] if parts else np.empty((0, columns))


def filter_of(workload: Workload, row: int) -> Filter:
    """Subscription `row` of a workload in the form that brokers route on."""
    return Filter(
        box=np.column_stack([workload.lo[row], workload.hi[row]]),
        residue=workload.residue(row),
        mentioned=tuple(workload.mentioned[row].tolist()),
        weights=workload.weights[row],
        score=float(workload.scores[row]),
        near=workload.nearest(row),
    )
