"""What the interval predicate indexes share: the integer grid, the rows they know, and ranking on top.

The paper indexes integers a0 … a0+R−1. Here a grid maps any float64 to positions 0 … R−1: intervals are
expanded to the nearest positions (its footnote 2), what lies outside the range is clamped to its ends, and
every candidate is checked against its true bounds. The map is monotone, so no match is lost; open ends,
zero lengths and values or intervals beyond the range need no special case.

The indexes find *all* stabbed predicates, in no order. `getnext()` therefore collects and sorts once per
query.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, kernel
from topk.catalogue import Floats, Ints
from topk.papers.interval.contract import Entries, IntervalIndex, Ready, array_bytes

END = -1  # of a linked list


class Known(NamedTuple):
    """By row: true bounds, expanded left position, ranking."""

    lo: Floats
    hi: Floats
    left: NDArray[np.int32]
    scores: Floats
    ids: Ints


class Lists(NamedTuple):
    """Linked lists of rows in one pool: heads by list, then (row, next) cells; meta = (used, first free cell)."""

    head: NDArray[np.int32]
    row: NDArray[np.int32]
    next: NDArray[np.int32]
    meta: Ints


def new_lists(lists: int, cells: int) -> Lists:
    cell = np.empty(max(cells, 16), np.int32)
    return Lists(np.full(lists, END, np.int32), cell, cell.copy(), np.array([0, END], np.int64))


def with_cells(lists: Lists, more: int) -> Lists:
    used = int(lists.meta[0])
    if used + more <= len(lists.row):
        return lists
    size = max(2 * len(lists.row), used + more)
    row, following = np.empty(size, np.int32), np.empty(size, np.int32)
    row[:used], following[:used] = lists.row[:used], lists.next[:used]
    return Lists(lists.head, row, following, lists.meta)


def list_bytes(lists: Lists) -> int:
    """Bytes of heads and used cells."""
    used = int(lists.meta[0])
    return array_bytes(lists.head, lists.row[:used], lists.next[:used])


@kernel(inner=True)
def prepend(lists: Any, which: int, row: int) -> None:
    """Insert at the head, as in the paper."""
    cell = lists.meta[1]
    if cell != END:
        lists.meta[1] = lists.next[cell]
    else:
        cell = lists.meta[0]
        lists.meta[0] += 1
    lists.row[cell] = row
    lists.next[cell] = lists.head[which]
    lists.head[which] = cell


@kernel(inner=True)
def unlink(lists: Any, which: int, row: int) -> None:
    """Remove a row from a list that holds it: half the list is walked on average."""
    cell = lists.head[which]
    before = END
    while lists.row[cell] != row:
        before = cell
        cell = lists.next[cell]
    if before == END:
        lists.head[which] = lists.next[cell]
    else:
        lists.next[before] = lists.next[cell]
    lists.next[cell] = lists.meta[1]
    lists.meta[1] = cell


@kernel(inner=True)
def room_for(found: Any, size: int) -> Any:
    if size < len(found):
        return found
    larger = np.empty(2 * len(found), np.int64)
    larger[:size] = found
    return larger


class Unranked(IntervalIndex):
    """An index that finds all rows at once, in no order; they are sorted when a cursor is opened."""

    _known: Known

    @abstractmethod
    def stabbed(self, value: float) -> Ints:
        """The rows whose interval contains the value, in no particular order: the paper's search."""

    @abstractmethod
    def meeting(self, low: float, high: float) -> Ints:
        """The rows whose interval meets [low, high], in no particular order, each once."""

    @abstractmethod
    def locate(self, value: float) -> Ints:
        """Only which lists hold them: what the paper times, O(1) in n. Reading the lists is not included."""

    def _open(self, low: float, high: float) -> Any:
        rows = self.stabbed(low) if low == high else self.meeting(low, high)
        return Ready(rows[np.lexsort((self._known.ids[rows], -self._known.scores[rows]))])

    def _advance(self, state: Any, out: Ints) -> int:
        return int(state.hand_out(out))


class PredicateIndex(Unranked):
    """Insert, delete and stab on a grid of `cells` positions from `low` to `high`."""

    dynamic = True
    options = {  # noqa: RUF012
        "cells": "grid positions R of the attribute range",
        "low": "start of the attribute range; default: the smallest bound at the start",
        "high": "end of the attribute range; default: the largest bound at the start",
    }

    def __init__(
        self, entries: Entries, cells: int = 1024, low: float | None = None, high: float | None = None
    ) -> None:
        super().__init__()
        if cells < 2:
            raise CoverlayError(f"the grid needs at least 2 cells, not {cells}")
        bounds = np.concatenate((entries.lo, entries.hi))
        bounds = bounds[np.isfinite(bounds)]
        self.low = float(low if low is not None else bounds.min(initial=np.inf) if len(bounds) else 0.0)
        top = float(high if high is not None else bounds.max(initial=-np.inf) if len(bounds) else 1.0)
        if not (math.isfinite(self.low) and math.isfinite(top)) or top < self.low:
            raise CoverlayError(f"the attribute range must be finite with low ≤ high, not {self.low} to {top}")
        whole = bool((bounds == np.rint(bounds)).all()) and top - self.low <= cells - 1
        # Integers that fit keep their unit, so that positions are exactly the attribute's values.
        half = (top / 2 - self.low / 2) / (cells - 1)  # halves: the range itself may be beyond the largest float
        limits = np.finfo(float)
        self.step = 1.0 if whole else float(min(max(2 * half, limits.tiny), limits.max))
        self.cells = int(cells)
        size = int(entries.rows.max(initial=-1)) + 1
        self._known = blank(max(size, 16))
        self._live = 0
        self._allocate(len(entries.rows))
        self._load(entries)

    @abstractmethod
    def _allocate(self, expected: int) -> None:
        """Make the empty structure."""

    @abstractmethod
    def _link(self, row: int, x: int, y: int) -> None:
        """Index a row under the positions x < y, inclusive."""

    @abstractmethod
    def _unlink(self, row: int, x: int, y: int) -> None: ...

    def _load(self, entries: Entries) -> None:
        for row, lo, hi, score, id in zip(*(c.tolist() for c in entries), strict=True):
            self.insert(row, lo, hi, score, id)

    def position(self, value: float) -> float:
        """Where a value lies on the grid, clamped to 0 … R−1."""
        return min(max((float(value) - self.low) / self.step, 0.0), self.cells - 1.0)

    def span(self, lo: float, hi: float) -> tuple[int, int]:
        """Expanded positions x < y of an interval; a point takes a neighbour in."""
        x, y = math.floor(self.position(lo)), math.ceil(self.position(hi))
        if x == y:
            x, y = (x, y + 1) if y + 1 < self.cells else (x - 1, y)
        return x, y

    def __len__(self) -> int:
        return self._live

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        if row >= len(self._known.lo):
            larger = blank(max(2 * len(self._known.lo), row + 1))
            copy_into(larger, self._known)
            self._known = larger
        x, y = self.span(lo, hi)
        k = self._known
        k.lo[row], k.hi[row], k.left[row], k.scores[row], k.ids[row] = lo, hi, x, score, id
        self._link(row, x, y)
        self._live += 1

    def delete(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        self._unlink(row, *self.span(lo, hi))
        self._known.lo[row], self._known.hi[row] = np.inf, -np.inf
        self._live -= 1

    @property
    def _known_bytes(self) -> int:
        return array_bytes(*self._known)

    def _rows(self) -> list[int]:
        return [int(r) for r in np.flatnonzero(self._known.lo <= self._known.hi)]


def copy_into(larger: Any, arrays: Any) -> None:
    """Write each array into the beginning of its larger twin."""
    for new, old in zip(larger, arrays, strict=True):
        new[: len(old)] = old


def blank(size: int) -> Known:
    return Known(
        np.full(size, np.inf),
        np.full(size, -np.inf),
        np.zeros(size, np.int32),
        np.zeros(size),
        np.zeros(size, np.int64),
    )
