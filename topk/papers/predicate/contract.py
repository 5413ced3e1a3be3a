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
from topk.checks import Floats, Ints
from topk.kernels.rows import fitted, give, longer, take, with_room
from topk.papers.interval.contract import Entries, IntervalIndex, SortedRows, array_bytes, not_held

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
    return lists._replace(row=with_room(lists.row, used, more), next=with_room(lists.next, used, more))


def list_bytes(lists: Lists) -> int:
    """Bytes of heads and used cells."""
    used = int(lists.meta[0])
    return array_bytes(lists.head, lists.row[:used], lists.next[:used])


@kernel(inner=True)
def prepend(lists: Any, which: int, row: int) -> None:
    """Insert at the head, as in the paper."""
    cell = take(lists.meta, 1, 0, lists.next, 1)
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
    give(lists.meta, 1, lists.next, cell)


@kernel(inner=True)
def mark(lists: Any, which: int, row: int, lay: bool) -> None:
    """Lay a mark, or lift one."""
    if lay:
        prepend(lists, which, row)
    else:
        unlink(lists, which, row)


@kernel(inner=True)
def room_for(found: Any, size: int) -> Any:
    return found if size < len(found) else longer(found, size + 1)


@kernel(inner=True)
def collect(lists: Any, which: int, found: Any, size: int) -> Any:
    """Append the rows of a list."""
    cell = lists.head[which]
    while cell != END:
        found = room_for(found, size)
        found[size] = lists.row[cell]
        size += 1
        cell = lists.next[cell]
    return found, size


def listed(lists: Lists, which: int) -> list[int]:
    """The rows of a list, ascending; for checks."""
    cell, rows = int(lists.head[which]), []
    while cell != END:
        rows.append(int(lists.row[cell]))
        cell = int(lists.next[cell])
    return sorted(rows)


class Unranked(IntervalIndex):
    """An index that finds all rows at once, in no order; they are sorted when a cursor is opened."""

    dynamic = True

    def __init__(self, entries: Entries) -> None:
        super().__init__()
        size, rows = max(int(entries.rows.max(initial=-1)) + 1, 16), entries.rows
        empty = np.full(size, np.inf), np.full(size, -np.inf), np.zeros(size, np.int32)
        self._known = k = Known(*empty, np.zeros(size), np.zeros(size, np.int64))
        _, k.lo[rows], k.hi[rows], k.scores[rows], k.ids[rows] = entries
        self._live = len(rows)

    def __len__(self) -> int:
        return self._live

    def _learn(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        """Note the bounds and the ranking of a new row."""
        if self._holds(row):
            raise CoverlayError(f"{self.name} holds row {row} already")
        if row >= len(self._known.lo):
            size, fills = max(2 * len(self._known.lo), row + 1), (np.inf, -np.inf, 0, 0, 0)
            self._known = Known._make([fitted(c, size, f) for c, f in zip(self._known, fills, strict=True)])
        k = self._known
        k.lo[row], k.hi[row], k.scores[row], k.ids[row] = lo, hi, score, id
        self._live += 1

    def _holds(self, row: int) -> bool:
        return row < len(self._known.lo) and bool(self._known.lo[row] <= self._known.hi[row])

    def delete(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        if not self._holds(row) or (self._known.lo[row], self._known.hi[row]) != (lo, hi):
            raise not_held(self.name, row, lo, hi)
        self._known.lo[row], self._known.hi[row] = np.inf, -np.inf
        self._live -= 1
        self._take_out(row, lo, hi)

    @abstractmethod
    def _take_out(self, row: int, lo: float, hi: float) -> None:
        """Remove a row from the structure; it no longer counts as live."""

    @property
    def known_bytes(self) -> int:
        """Bytes of true bounds and rankings, which only our generalisation to floats needs."""
        return array_bytes(*self._known)

    def _live_rows(self) -> list[int]:
        return [int(r) for r in np.flatnonzero(self._known.lo <= self._known.hi)]

    @abstractmethod
    def stabbed(self, value: float) -> Ints:
        """The rows whose interval contains the value, in no particular order: the paper's search."""

    @abstractmethod
    def meeting(self, low: float, high: float) -> Ints:
        """The rows whose interval meets [low, high], in no particular order, each once."""

    @abstractmethod
    def locate(self, value: float) -> Ints:
        """Which lists hold the stabbed rows, without reading the lists: what the paper times, O(1) in n."""

    def _open(self, low: float, high: float) -> Any:
        rows = self.stabbed(low) if low == high else self.meeting(low, high)
        return SortedRows(rows[np.lexsort((self._known.ids[rows], -self._known.scores[rows]))], self.work)

    def _advance(self, state: Any, out: Ints) -> int:
        return int(state.hand_out(out))


class PredicateIndex(Unranked):
    """Insert, delete and stab on a grid of `cells` positions from `low` to `high`."""

    _lists: Lists
    options = {  # noqa: RUF012
        "cells": "grid positions R of the attribute range",
        "low": "start of the attribute range; default: the smallest bound at the start",
        "high": "end of the attribute range; default: the largest bound at the start",
    }

    def __init__(
        self, entries: Entries, cells: int = 1024, low: float | None = None, high: float | None = None
    ) -> None:
        super().__init__(entries)
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
        self._allocate(len(entries.rows))
        x, y = self._spans(entries)
        # Whether all bounds are positions: then all that a list holds matches a value that is one, as in the paper.
        self._exact = self.step == 1.0 and self._on_grid(entries.lo, entries.hi, x, y)
        self._known.left[entries.rows] = x
        self._lists = with_cells(self._lists, int(self._most_cells(y - x).sum()))
        self._link(entries.rows, x, y)

    @abstractmethod
    def _allocate(self, expected: int) -> None:
        """Make the empty structure."""

    @abstractmethod
    def _most_cells(self, width: Any) -> Any:
        """An upper bound on the list cells of a predicate that is `width` positions long."""

    @abstractmethod
    def _link(self, rows: Ints, x: Ints, y: Ints) -> None:
        """Index rows under the positions x < y, inclusive; the lists have room."""

    @abstractmethod
    def _unlink(self, row: int, x: int, y: int) -> None: ...

    def _spans(self, entries: Entries) -> tuple[Ints, Ints]:
        """`span` of many."""
        last = self.cells - 1
        with np.errstate(over="ignore"):  # beyond the largest float is beyond the grid
            x = np.floor(np.clip((entries.lo - self.low) / self.step, 0, last)).astype(np.int64)
            y = np.ceil(np.clip((entries.hi - self.low) / self.step, 0, last)).astype(np.int64)
        y = np.where((x == y) & (y < last), y + 1, y)
        return np.where(x == y, x - 1, x), y

    def position(self, value: float) -> float:
        """Where a value lies on the grid, clamped to 0 … R−1."""
        return min(max((float(value) - self.low) / self.step, 0.0), self.cells - 1.0)

    def span(self, lo: float, hi: float) -> tuple[int, int]:
        """Expanded positions x < y of an interval; a point is widened by one position."""
        x, y = math.floor(self.position(lo)), math.ceil(self.position(hi))
        if x == y:
            x, y = (x, y + 1) if y + 1 < self.cells else (x - 1, y)
        return x, y

    def _on_grid(self, lo: Any, hi: Any, x: Any, y: Any) -> bool:
        return bool(np.all((lo == self.low + x) & (hi == self.low + y)))

    def _listed_match(self, value: float) -> bool:
        """Whether listed rows match the value without a look at their true bounds."""
        where = self.position(value)
        return self._exact and where == math.floor(where) and value == self.low + where

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        x, y = self.span(lo, hi)
        self._exact = self._exact and self._on_grid(lo, hi, x, y)
        self._learn(row, lo, hi, score, id)
        self._known.left[row] = x
        self._lists = with_cells(self._lists, int(self._most_cells(y - x)))
        self._link(np.array([row]), np.array([x]), np.array([y]))

    def _take_out(self, row: int, lo: float, hi: float) -> None:
        self._unlink(row, *self.span(lo, hi))

    @property
    def nbytes(self) -> int:
        return list_bytes(self._lists) + self.known_bytes

    @property
    def allocated_bytes(self) -> int:
        return array_bytes(*self._lists) + self.known_bytes
