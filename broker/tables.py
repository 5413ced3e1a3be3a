"""What a broker knows: the subscriptions behind each neighbour, and those of its own clients.

A neighbour's table answers only "is anything behind this link interested?", so it is a few flat arrays and one
compiled scan that stops at the first match. A row holds only what its subscription mentions, so that hundreds of
attributes cost no more than the few that are used. New entries are copied into the arrays, many at a time, when the
next event asks: subscriptions usually come in bursts between events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from broker.ranking import Match, Ranking
from coverlay import kernel
from routing.filter import Filter

Floats = NDArray[np.float64]


@kernel
def first_match(
    named: NDArray[np.int32], lo: Floats, hi: Floats, event: Floats, start: int, stop: int, relaxed: bool
) -> int:
    """The first row in start..stop that the event satisfies, or −1. NaN (missing) fails every comparison."""
    width = named.shape[1]
    for row in range(start, stop):
        hit = not relaxed
        for i in range(width):
            attribute = named[row, i]
            if attribute < 0:
                break
            if (lo[row, i] <= event[attribute] <= hi[row, i]) == relaxed:
                hit = relaxed
                break
        if hit:
            return row
    return -1


def best_score(filters: Mapping[int, Filter], score: Callable[[Filter], float | None]) -> float:
    return max((s for s in map(score, filters.values()) if s is not None), default=-math.inf)


class LinkTable:
    """The routing-table entries that one neighbour sent us."""

    def __init__(self, semantics: str) -> None:
        self._relaxed = semantics == "relaxed"
        self._filters: dict[int, Filter] = {}
        self._ids: list[int] = []  # row → subscription
        self._row: dict[int, int] = {}
        self._filled = 0  # rows that are in the arrays
        # Row by row, the attributes that it mentions and their bounds; attribute −1 ends a row.
        self._named = np.empty((0, 0), dtype=np.int32)
        self._lo = np.empty((0, 0))
        self._hi = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._filters

    @property
    def filters(self) -> Mapping[int, Filter]:
        return self._filters

    def add(self, subscription: int, filter: Filter) -> None:
        self._filters[subscription] = filter
        self._row[subscription] = len(self._ids)
        self._ids.append(subscription)

    def remove(self, subscription: int) -> Filter:
        row, moved = self._row.pop(subscription), self._ids.pop()
        if moved != subscription:  # the last row takes the free place
            self._ids[row] = moved
            self._row[moved] = row
            if row < self._filled:
                self._write(row, row + 1)
        self._filled = min(self._filled, len(self._ids))
        return self._filters.pop(subscription)

    def matches(self, event: Floats) -> bool:
        """Does any entry match? Under relaxed semantics: does any predicate of any entry hold?"""
        return self.ask(event)[0]

    def ask(self, event: Floats) -> tuple[bool, int]:
        """Does any entry match, and how many were compared with the event?"""
        size = len(self._ids)
        if self._filled < size:
            self._write(self._filled, size)
            self._filled = size
        row = -1
        while size:
            row = first_match(self._named, self._lo, self._hi, event, row + 1, size, self._relaxed)
            if row < 0:
                break
            filter = self._filters[self._ids[row]]
            if filter.plain or self._admits(filter, event):
                return True, row + 1
        return False, size

    @property
    def pruned(self) -> int:
        """Entries that the neighbour sent and no event is held against (see pruning.py)."""
        return 0

    def best_score(self, score: Callable[[Filter], float | None]) -> float:
        """The highest score that any entry gets; −inf if none gets one."""
        return best_score(self._filters, score)

    def _admits(self, filter: Filter, event: Floats) -> bool:
        return filter.relaxed_score(event) is not None if self._relaxed else filter.matches(event)

    def _write(self, start: int, stop: int) -> None:
        """Copy the bounds of these rows' filters into the arrays."""
        filters = [self._filters[subscription] for subscription in self._ids[start:stop]]
        widths = np.array([len(filter.named) for filter in filters])
        self._make_room(stop, int(widths.max()))
        used = np.arange(self._named.shape[1]) < widths[:, None]
        bounds = np.concatenate([filter.bounds for filter in filters])
        self._named[start:stop] = -1
        self._named[start:stop][used] = np.concatenate([filter.named for filter in filters])
        self._lo[start:stop][used], self._hi[start:stop][used] = bounds.T

    def _make_room(self, rows: int, width: int) -> None:
        used, (old_rows, old_width) = self._filled, self._named.shape
        if rows <= old_rows and width <= old_width:
            return
        shape = (old_rows if rows <= old_rows else max(rows, 2 * old_rows, 16), max(width, old_width))
        for name, empty in (("_named", -1), ("_lo", 0.0), ("_hi", 0.0)):
            old = getattr(self, name)
            new = np.full(shape, empty, dtype=old.dtype)
            new[:used, :old_width] = old[:used]
            setattr(self, name, new)

    def check(self) -> None:
        """Raise AssertionError unless every known entry has one row, and the filled rows hold its bounds."""
        assert set(self._row) == set(self._filters)
        assert [self._row[subscription] for subscription in self._ids] == list(range(len(self._ids)))
        assert self._filled <= len(self._ids)
        for row, subscription in enumerate(self._ids[: self._filled]):
            filter = self._filters[subscription]
            width = len(filter.named)
            assert np.array_equal(self._named[row, :width], filter.named)
            assert (self._named[row, width:] == -1).all()
            assert np.array_equal(self._lo[row, :width], filter.bounds[:, 0])
            assert np.array_equal(self._hi[row, :width], filter.bounds[:, 1])


class LocalTable:
    """The subscriptions of a broker's own clients, ranked by any matcher of `topk`."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking
        self._index = ranking.new_index()
        self._filters: dict[int, Filter] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._filters

    def add(self, subscription: int, filter: Filter) -> None:
        self._filters[subscription] = filter
        self._ranking.add(self._index, subscription, filter)

    def remove(self, subscription: int) -> Filter:
        self._index.remove(subscription)
        return self._filters.pop(subscription)

    @property
    def filters(self) -> Mapping[int, Filter]:
        return self._filters

    def top(self, event: Floats, k: int | None, weights: Floats | None = None) -> list[Match]:
        """The best matches, best first; all of them when k is None."""
        return self._ranking.top(self._index, event, weights, k) if self._filters else []

    @property
    def work(self) -> tuple[int, int]:
        """Entries compared and nodes looked at by the matcher so far."""
        stats = self._index.stats
        return stats.entries, stats.nodes

    def check(self) -> None:
        self._index.check()
        assert len(self._index) == len(self._filters)
