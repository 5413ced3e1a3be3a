"""Advertisements: publishers announce what they will publish, and subscriptions travel only towards matching ones.

Advertisements travel through the overlay like subscriptions do, with a ledger per link, and one may be covered
by another (SIENA, section 4.2). A broker sends a subscription over a link only while something advertised behind
that link overlaps it. Overlap is judged on the boxes: what a residue excludes is ignored, which may send a
subscription that matches nothing, but never holds back one that would match.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routing.filter import Filter, FilterTable

Floats = NDArray[np.float64]


class AdvertTable(FilterTable):
    """The advertisements that came over one link."""

    def __init__(self, dimensions: int, semantics: str) -> None:
        super().__init__()
        self._relaxed = semantics == "relaxed"
        self._boxes: Floats | None = np.empty((0, dimensions, 2))  # None: out of date
        self._dimensions = dimensions

    def add(self, subscription: int, filter: Filter) -> None:
        super().add(subscription, filter)
        self._boxes = None

    def remove(self, subscription: int) -> None:
        super().remove(subscription)
        self._boxes = None

    def overlaps(self, filter: Filter) -> bool:
        """Could an advertised event match `filter`?"""
        if self._boxes is None:
            boxes = [advertised.box for advertised in self._filters.values()]
            self._boxes = np.array(boxes).reshape(-1, self._dimensions, 2)
        meet = (self._boxes[:, :, 0] <= filter.box[:, 1]) & (self._boxes[:, :, 1] >= filter.box[:, 0])
        if self._relaxed:  # one predicate that holds is a match, whatever the other attributes say
            return bool(meet[:, np.array(filter.mentioned)].any())
        return bool(meet.all(axis=1).any())


def advertisement_for(events: Floats) -> Filter:
    """The smallest box that contains all events; an attribute that some event lacks is not restricted."""
    lacking = np.isnan(events).any(axis=0)
    low = np.where(lacking, -np.inf, events.min(axis=0))
    high = np.where(lacking, np.inf, events.max(axis=0))
    return Filter.of_box(np.column_stack([low, high]))
