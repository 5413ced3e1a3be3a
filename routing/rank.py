"""Who outranks whom, for the k best of a whole network: rank as more coordinates of covering.

A subscription may be held back only by one that contains it *and* outranks it for every event that matches it. Then
each entry of a table bounds from above what is hidden behind it (docs/ranked.md derives what follows from that).

- Where scores are given, t outranks s if its score is higher, or equal and its id smaller. Score is one
  more coordinate.
- Where scores depend on the event (relaxed matching, weights, places), t scores at least as much as s for every event
  if each of its weights is at least as large and its place is the same; ids decide where both score alike, so the id of
  t must be smaller. Weights and id are coordinates, the place is a group.

A coordinate c, larger is better, becomes one more row of the box: [−c, −lowest]. Rows contain each other iff c is at
least as large, so every covering method, exact or not, serves as it is. The constant end is the lowest value that
occurs, and the domain of the row is wider than that by the range of the values: at the edge of the domain, the search
region of a curve would be one cell wide in that coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from routing.filter import Filter

Floats = NDArray[np.float64]


def shares(weights: Floats) -> Floats:
    """Weights divided by their sum, which is added in attribute order, so that everybody gets the same floats."""
    total = 0.0
    for weight in weights.tolist():
        total += weight
    return weights / total if total > 0 else weights


@dataclass(frozen=True, eq=False)
class Rank:
    """Who outranks whom, as coordinates."""

    by_score: bool  # scores are given; else they depend on the event
    relative: bool  # weights count relative to their sum (places)
    lowest: Floats  # the least and the largest value of each coordinate
    highest: Floats
    _ranked: dict[int, tuple[Filter, Filter]] = field(default_factory=dict)  # subscription → its filter, and with rows

    @staticmethod
    def of(scores: Floats, weights: Floats, by_score: bool, relative: bool) -> Rank:
        """For these subscriptions: (n,) scores, (n, d) weights."""
        values = scores[:, None]
        if not by_score:
            each = np.array([shares(row) for row in weights]).reshape(weights.shape) if relative else weights
            values = np.column_stack([each, -np.arange(len(weights), dtype=np.float64)])
        if not len(values):
            values = np.zeros((1, values.shape[1]))
        return Rank(by_score, relative, values.min(axis=0), values.max(axis=0))

    def coordinates(self, subscription: int, filter: Filter) -> Floats:
        """Larger is better."""
        if self.by_score:
            return np.array([filter.score])
        weights = shares(filter.weights) if self.relative else filter.weights
        return np.append(weights, -float(subscription))

    def standing(self, subscription: int, filter: Filter) -> tuple[float, ...]:
        """A key that is smaller for what outranks another."""
        return (*(-self.coordinates(subscription, filter)).tolist(), subscription)

    def group(self, filter: Filter) -> object:
        """Subscriptions of different groups never outrank each other for all events."""
        return None if self.by_score else filter.near

    def outranks(self, one: int, its_filter: Filter, other: int, other_filter: Filter) -> bool:
        """Does the first score at least as much as the second for every event that matches both, ties by id?"""
        if self.by_score:
            return (-its_filter.score, one) < (-other_filter.score, other)
        better = self.coordinates(one, its_filter) >= self.coordinates(other, other_filter)
        return self.group(its_filter) == self.group(other_filter) and bool(better.all())

    def domain(self, domain: Floats) -> Floats:
        """The domain of boxes with rows for the rank."""
        extent = np.where(self.highest > self.lowest, self.highest - self.lowest, 1.0)
        return np.concatenate([domain, np.column_stack([-self.highest, extent - self.lowest])])

    def ranked(self, subscription: int, filter: Filter, above: bool = False) -> Filter:
        """A filter whose box has rows for the rank too; `above`: only what scores more contains it."""
        if above:
            return self._with_rows(filter, np.nextafter(-self.coordinates(subscription, filter), -np.inf))
        known, ranked = self._ranked.get(subscription, (None, filter))
        if known is not filter:  # made once: every link asks for it
            ranked = self._with_rows(filter, -self.coordinates(subscription, filter))
            self._ranked[subscription] = filter, ranked
        return ranked

    def _with_rows(self, filter: Filter, low: Floats) -> Filter:
        return replace(filter, box=np.concatenate([filter.box, np.column_stack([low, -self.lowest])]))
