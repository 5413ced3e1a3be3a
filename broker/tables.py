"""What a broker knows: the subscriptions behind each neighbour, and those of its own clients.

A neighbour's table answers only "is anything behind this link interested?", so it is a flat pair of bound
arrays and one compiled scan that stops at the first match. New entries wait in a list and are copied into
the arrays, many at a time, when the next event asks: subscriptions usually come in bursts between events.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

import topk
from routing.filter import Filter

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def _first_match(
    lo: Floats, hi: Floats, mentioned: NDArray[np.bool_], event: Floats, start: int, stop: int, relaxed: bool
) -> int:
    """The first row in start..stop that the event satisfies, or −1. NaN (missing) fails every comparison."""
    d = event.shape[0]
    for row in range(start, stop):
        if relaxed:
            hit = False
            for j in range(d):
                hit |= mentioned[row, j] and lo[row, j] <= event[j] <= hi[row, j]
        else:
            hit = True
            for j in range(d):
                hit &= (not mentioned[row, j]) or (lo[row, j] <= event[j] <= hi[row, j])
        if hit:
            return row
    return -1


class LinkTable:
    """The routing-table entries that one neighbour sent us."""

    def __init__(self, dimensions: int, semantics: str) -> None:
        self._relaxed = semantics == "relaxed"
        self._filters: dict[int, Filter] = {}
        self._waiting: dict[int, None] = {}  # known, not yet in the arrays
        self._row: dict[int, int] = {}
        self._ids: list[int] = []  # row → subscription
        self._lo = np.empty((0, dimensions))
        self._hi = np.empty((0, dimensions))
        self._mentioned = np.empty((0, dimensions), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._filters

    @property
    def ids(self) -> list[int]:
        return sorted(self._filters)

    def add(self, subscription: int, filter: Filter) -> None:
        self._filters[subscription] = filter
        self._waiting[subscription] = None

    def remove(self, subscription: int) -> Filter:
        filter = self._filters.pop(subscription)
        if subscription in self._waiting:
            del self._waiting[subscription]
            return filter
        row, last = self._row.pop(subscription), len(self._ids) - 1
        moved = self._ids.pop()
        if row != last:  # the last row takes the free place
            self._ids[row] = moved
            self._row[moved] = row
            for array in (self._lo, self._hi, self._mentioned):
                array[row] = array[last]
        return filter

    def matches(self, event: Floats) -> bool:
        """Does any entry match? Under relaxed semantics: does any predicate of any entry hold?"""
        if not self._filters:
            return False
        if self._waiting:
            self._take_in()
        row, size = -1, len(self._ids)
        while True:
            row = _first_match(self._lo, self._hi, self._mentioned, event, row + 1, size, self._relaxed)
            if row < 0:
                return False
            filter = self._filters[self._ids[row]]
            if filter.plain or self._admits(filter, event):
                return True

    def best_score(self, event: Floats) -> float:
        """The highest score of an entry that matches; −inf if none does."""
        scores = (filter.score for filter in self._filters.values() if self._admits(filter, event))
        return max(scores, default=-math.inf)

    def _admits(self, filter: Filter, event: Floats) -> bool:
        return filter.relaxed_score(event) is not None if self._relaxed else filter.matches(event)

    def _take_in(self) -> None:
        start, needed = len(self._ids), len(self._filters)
        if needed > len(self._lo):
            room = max(needed, 2 * len(self._lo), 16)
            for name in ("_lo", "_hi", "_mentioned"):
                old = getattr(self, name)
                new = np.empty((room, old.shape[1]), dtype=old.dtype)
                new[:start] = old[:start]
                setattr(self, name, new)
        filters = [self._filters[subscription] for subscription in self._waiting]
        boxes = np.array([filter.box for filter in filters])
        self._lo[start:needed] = boxes[:, :, 0]
        self._hi[start:needed] = boxes[:, :, 1]
        self._mentioned[start:needed] = [filter.mentioned for filter in filters]
        for subscription in self._waiting:
            self._row[subscription] = len(self._ids)
            self._ids.append(subscription)
        self._waiting.clear()

    def check(self) -> None:
        """Raise AssertionError unless every known entry is in the arrays once, or waiting."""
        assert set(self._row) | set(self._waiting) == set(self._filters)
        assert not set(self._row) & set(self._waiting)
        assert [self._row[subscription] for subscription in self._ids] == list(range(len(self._ids)))
        for subscription, row in self._row.items():
            box = self._filters[subscription].box
            assert np.array_equal(self._lo[row], box[:, 0])
            assert np.array_equal(self._hi[row], box[:, 1])


class LocalTable:
    """The subscriptions of a broker's own clients, ranked by any matcher of `topk`."""

    def __init__(self, dimensions: int, method: str, semantics: str, options: dict[str, Any]) -> None:
        self._index = topk.create(method, topk.Catalogue.empty(dimensions), semantics=semantics, **options)
        self._filters: dict[int, Filter] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._filters

    def add(self, subscription: int, filter: Filter) -> None:
        self._filters[subscription] = filter
        self._index.add(
            subscription,
            filter.box[:, 0],
            filter.box[:, 1],
            filter.score,
            weights=filter.weights,
            mentioned=np.array(filter.mentioned),
            excluded=filter.residue.excluded,
            allowed=filter.residue.allowed,
        )

    def remove(self, subscription: int) -> Filter:
        self._index.remove(subscription)
        return self._filters.pop(subscription)

    @property
    def subscriptions(self) -> list[int]:
        return sorted(self._filters)

    def top(self, event: Floats, k: int | None) -> list[tuple[int, float]]:
        """The best matches, best first; all of them when k is None."""
        return self._index.top(event, k) if self._filters else []

    def check(self) -> None:
        self._index.check()
        assert len(self._index) == len(self._filters)
