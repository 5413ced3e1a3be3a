"""Growable CSR rows of expressions that kernels read, and the kernels that compare one row with one event.

Rows keep their number until removed; gaps are reused. Predicates of removed rows stay behind as waste until more
than half is waste, then everything is moved together. An event is spread over dense scratch columns (its low, high
and weight per attribute, NaN where it lacks one), so a predicate costs one gather and two comparisons, and a
missing attribute fails every comparison by itself.

Kernels that are called per row are inlined: handing a tuple of a dozen arrays to a function costs more than what
they do. Kernels that loop over rows name the arrays first: a tuple counts references at every access.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from coverlay import CoverlayError
from topk.sparse.catalogue import Exceptions, Floats, Int32s, Ints, SparseCatalogue

_ROOM = 64
SCORES = ("sum", "max")  # how the products of weights combine
SUM, MAX = 0, 1


class Rows(NamedTuple):
    """What kernels receive."""

    start: Ints  # (rows,) first predicate
    length: Int32s  # (rows,) number of predicates, −1 for a gap
    ids: Ints
    odd: Int32s  # (rows,) first exception, −1 for none
    attribute: Int32s  # (arena,)
    lo: Floats
    hi: Floats
    weight: Floats
    exceptions: Ints  # (exceptions, 5): attribute, excluded?, first value, number of values, whether another follows
    values: Floats


@njit(cache=True, inline="always")
def holds(rows: Rows, row: int, event: Any) -> bool:
    """Whether every predicate of the row meets the event (exceptions included); event is (3, d) scratch."""
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        a = rows.attribute[p]
        if not (rows.lo[p] <= event[1, a] and event[0, a] <= rows.hi[p]):
            return False
    return rows.odd[row] < 0 or exceptions_hold(rows, row, event)


@njit(cache=True)
def exceptions_hold(rows: Rows, row: int, event: Any) -> bool:
    at = rows.odd[row]
    while True:
        a, excluded, first, count, more = rows.exceptions[at]
        low, high = event[0, a], event[1, a]
        found = False
        for v in rows.values[first : first + count]:
            if low <= v <= high:
                found = True
        # A range that meets an excluded value also has values that are not excluded.
        if (excluded and found and low == high) or (not excluded and not found):
            return False
        if not more:
            return True
        at += 1


@njit(cache=True, inline="always")
def row_score(rows: Rows, row: int, event: Any, mode: int) -> float:
    """Score of a matching row, added in attribute order: all methods give equal floats."""
    total = 0.0
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        product = rows.weight[p] * event[2, rows.attribute[p]]
        if mode == SUM:
            total += product
        elif product > total:
            total = product
    return total


@njit(cache=True)
def spread(event: Any, attributes: Any, lo: Any, hi: Any, weights: Any) -> None:
    for i in range(len(attributes)):
        event[0, attributes[i]] = lo[i]
        event[1, attributes[i]] = hi[i]
        event[2, attributes[i]] = weights[i]


@njit(cache=True)
def clear(event: Any, attributes: Any) -> None:
    for a in attributes:
        event[0, a] = np.nan
        event[1, a] = np.nan
        event[2, a] = np.nan


class Store:
    def __init__(self, catalogue: SparseCatalogue) -> None:
        n = len(catalogue)
        self.dimensions = catalogue.dimensions
        self.used = n  # rows in use, gaps included
        self.filled = int(catalogue.offsets[-1])  # predicates in the arena, waste included
        self.wasted = 0
        self._gaps: list[int] = []
        self.exceptions: dict[int, Exceptions]  # by row
        capacity = max(n, _ROOM)
        self.rows = Rows(
            _fitted(catalogue.offsets[:-1], capacity),
            _fitted(np.diff(catalogue.offsets).astype(np.int32), capacity, -1),
            _fitted(catalogue.ids, capacity, -1), np.full(capacity, -1, np.int32),
            catalogue.attributes.copy(), catalogue.lo.copy(), catalogue.hi.copy(), catalogue.weights.copy(),
            np.empty((0, 5), np.int64), np.empty(0),
        )  # fmt: skip
        self.row_of = dict(zip(catalogue.ids.tolist(), range(n), strict=True))
        self.exceptions = dict(catalogue.exceptions)
        self._stale = bool(self.exceptions)

    def __len__(self) -> int:
        return len(self.row_of)

    @property
    def nbytes(self) -> int:
        return sum(int(column.nbytes) for column in self.rows)

    def add(self, one: SparseCatalogue) -> int:
        """Store the single row of `one`; returns its number here."""
        count = int(one.offsets[1])
        if self.filled + count > len(self.rows.attribute):
            self._make_room(count)
        if self._gaps:
            row = self._gaps.pop()
        else:
            if self.used == len(self.rows.ids):
                fills = (0, -1, -1, -1)
                wider: list[Any] = [_fitted(c, 2 * self.used, f) for c, f in zip(self.rows[:4], fills, strict=True)]
                self.rows = Rows._make([*wider, *self.rows[4:]])
            row = self.used
            self.used += 1
        r, at = self.rows, slice(self.filled, self.filled + count)
        r.attribute[at], r.lo[at], r.hi[at], r.weight[at] = one.attributes, one.lo, one.hi, one.weights
        r.start[row], r.length[row], r.ids[row], r.odd[row] = self.filled, count, one.ids[0], -1
        self.filled += count
        self.row_of[int(one.ids[0])] = row
        if one.exceptions:
            self.exceptions[row] = one.exceptions[0]
            self._stale = True
        return row

    def remove(self, id: int) -> int:
        """Forget a subscription; returns the row it had."""
        row = self.row_of.pop(id)
        self.wasted += int(self.rows.length[row])
        self.rows.length[row], self.rows.ids[row], self.rows.odd[row] = -1, -1, -1
        self.exceptions.pop(row, None)  # its encoding is waste until the next time
        self._gaps.append(row)
        return row

    def one(self, id: int) -> SparseCatalogue:
        """One stored row as a catalogue."""
        return self.select([self.row_of[id]])

    def catalogue(self) -> SparseCatalogue:
        """All stored rows, by ascending id."""
        return self.select([row for _, row in sorted(self.row_of.items())])

    def select(self, chosen: list[int]) -> SparseCatalogue:
        r = self.rows
        numbers = np.array(chosen, dtype=np.int64)
        lengths = r.length[numbers].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        at = np.repeat(r.start[numbers], lengths) + within
        exceptions = {i: self.exceptions[row] for i, row in enumerate(chosen) if row in self.exceptions}
        return SparseCatalogue(
            self.dimensions, r.ids[numbers], offsets, r.attribute[at], r.lo[at], r.hi[at], r.weight[at], exceptions
        )

    def check(self) -> None:
        assert len(self.row_of) + len(self._gaps) == self.used, "every used row is an entry or a gap"
        self.refresh()
        r, live = self.rows, 0
        for id, row in self.row_of.items():
            assert r.ids[row] == id, f"row {row} does not hold subscription {id}"
            live += int(r.length[row])
            assert (r.odd[row] >= 0) == (row in self.exceptions), f"row {row} knows its exceptions"
        assert live + self.wasted == self.filled, "every predicate is in use or waste"

    def _make_room(self, count: int) -> None:
        live = self.filled - self.wasted
        capacity = max(2 * (live + count), 8 * _ROOM)
        if 2 * self.wasted > self.filled:  # move together
            everything = self.catalogue()
            rows = [self.row_of[int(id)] for id in everything.ids]
            self.rows.start[rows] = everything.offsets[:-1]
            columns = (everything.attributes, everything.lo, everything.hi, everything.weights)
            self.filled, self.wasted = live, 0
        else:
            columns = self.rows[4:8]
            capacity = max(capacity, 2 * (self.filled + count))
        self.rows = Rows._make([*self.rows[:4], *(_fitted(c, capacity) for c in columns), *self.rows[8:]])

    def refresh(self) -> None:
        """Encode the exceptions for the kernels; to be called before rows are compared with events."""
        if not self._stale:
            return
        self._stale = False
        table: list[tuple[int, ...]] = []
        values: list[float] = []
        for row, found in self.exceptions.items():
            self.rows.odd[row] = len(table)
            for i, (attribute, excluded, these) in enumerate(found):
                table.append((attribute, int(excluded), len(values), len(these), int(i + 1 < len(found))))
                values.extend(these)
        encoded = np.array(table, dtype=np.int64).reshape(-1, 5)
        self.rows = Rows(*self.rows[:8], encoded, np.array(values, dtype=np.float64))


def _fitted(column: Any, capacity: int, fill: float = 0) -> Any:
    """The column with at least `capacity` entries."""
    larger = np.full(max(capacity, len(column)), fill, dtype=column.dtype)
    larger[: len(column)] = column
    return larger


def score_mode(score: str) -> int:
    if score not in SCORES:
        raise CoverlayError(f"score must be one of {', '.join(SCORES)}, not {score!r}")
    return SCORES.index(score)
