"""Rows in a canonical order, and the first k of them that match an event: the work of brokers, and how it is counted.

Cost: a few numpy calls per block of rows that is compared, and one copy of the columns when rows have changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Key = tuple[float, ...]

ROWS_PER_MATCH = 64  # compared at first, for each match that is asked for
GROWTH = 8  # each further block is this much longer: numpy compares a thousand rows nearly as fast as a hundred


class Row(Protocol):
    """A subscription: bounds, and what bounds cannot say."""

    @property
    def named(self) -> NDArray[np.int32]:
        """The attributes that it mentions, ascending."""

    @property
    def bounds(self) -> Floats:
        """(mentioned, 2) the closed bounds of these attributes."""

    @property
    def score(self) -> float:
        """What an event scores that matches exactly."""

    @property
    def weights(self) -> Floats:
        """How much each attribute counts; one number for every attribute there is."""

    @property
    def plain(self) -> bool:
        """Do the bounds say it all?"""

    def matches(self, event: Floats) -> bool:
        """Do all mentioned attributes hold?"""

    def relaxed_score(self, event: Floats) -> float | None:
        """The weights of the attributes that hold; None if none does."""


R = TypeVar("R", bound=Row)


class _Columns(NamedTuple):
    """Rows side by side: the last axis counts rows, the first of two counts the attributes that a row mentions."""

    ids: Ints
    scores: Floats
    plain: NDArray[np.bool_]
    named: NDArray[np.int64]
    lo: Floats
    hi: Floats
    weights: Floats


class FirstMatches(Generic[R]):
    """The first k rows that match, in an order that does not depend on how and when rows were stored.

    **Order.** Ascending by the key that `order` gives to a row, then by id. In a neighbour's table the widest boxes are
    first (covering/widest_first.py: more unbounded sides, then larger size); of a broker's own clients, those with the
    highest score.

    **What matches.** All attributes that a row mentions hold; under relaxed semantics, at least one does. An attribute
    holds if the event has it (not NaN) and its value is within the bounds and what else the row says.

    **What is counted.** An event is compared with the rows in their order, up to the k-th match. `compared` is the
    place of that match, counted from 1, or the number of rows if fewer than k match or k is None. This is a definition:
    the same rows, event and k give the same count in every engine, whatever it does to find the answer. `scored`
    compares every row, because relaxed scores depend on the event.

    **When it builds.** `add` and `remove` take note. Before the next event is compared, all noted changes together are
    merged into the columns. No row is ever out of order, dead or in a second place.
    """

    def __init__(self, dimensions: int, semantics: str, order: Callable[[Sequence[R]], Iterable[Key]]) -> None:
        self._dimensions = dimensions
        self.relaxed = semantics == "relaxed"
        self._combine = np.logical_or if self.relaxed else np.logical_and
        self._order = order
        self.rows: dict[int, R] = {}
        self._joined: dict[int, R] = {}  # not in the columns yet
        self._left: dict[int, R] = {}  # still in the columns; one that left and joined again is in both
        self._keys: list[Key] = []  # of the rows in the columns, in order; the last part is the id
        self._columns = self._as_columns({}, 0)
        self._all_plain = self._all_full = True

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, id: int, row: R) -> None:
        self.rows[id] = self._joined[id] = row

    def remove(self, id: int) -> None:
        row = self.rows.pop(id)
        if self._joined.pop(id, None) is None:
            self._left[id] = row

    # ── asking ─────────────────────────────────────────────────────────────────────────────────────────

    def first(self, event: Floats, k: int | None) -> tuple[Ints, Floats, int]:
        """The first k rows that match, in order (None: all that match): ids and scores; and the rows compared."""
        columns, rows = self._merged(), len(self.rows)
        missing = rows if k is None else k
        found: list[Ints] = []  # places
        start, size = 0, ROWS_PER_MATCH * missing
        while start < rows and missing:
            places = self._combine.reduce(self._holding(event, start, start + size)).nonzero()[0] + start
            if not self._all_plain:
                places = np.array([place for place in places.tolist() if self._truly_matches(place, event)], np.int64)
            found.append(places[:missing])
            missing -= len(found[-1])
            start, size = start + size, size * GROWTH
        at = np.concatenate(found) if found else np.empty(0, np.int64)
        return columns.ids[at], columns.scores[at], rows if k is None or missing else int(at[-1]) + 1

    def scored(self, event: Floats) -> tuple[Ints, Floats]:
        """The ids and relaxed scores of all rows that match: the sum of the weights that hold."""
        columns, rows = self._merged(), len(self.rows)
        holds = self._holding(event, 0, rows)
        scores, hits = np.zeros(rows), self._combine.reduce(holds)
        for held, weights in zip(holds, columns.weights, strict=True):  # one by one: `sum` rounds differently
            scores += np.where(held, weights, 0.0)
        for place in (hits & ~columns.plain).nonzero()[0].tolist():
            score = self._row(place).relaxed_score(event)
            hits[place], scores[place] = score is not None, score or 0.0
        return columns.ids[hits], scores[hits]

    def _holding(self, event: Floats, start: int, stop: int) -> NDArray[np.bool_]:
        """(mentioned, rows): which bounds of these rows hold? NaN is within no bounds."""
        columns = self._columns
        values = event if self._all_full else np.append(event, 0.0)  # for the attribute that rows are filled up with
        value = values.take(columns.named[:, start:stop])
        return (columns.lo[:, start:stop] <= value) & (value <= columns.hi[:, start:stop])

    def _truly_matches(self, place: int, event: Floats) -> bool:
        """Does a row match whose bounds do?"""
        if self._columns.plain[place]:
            return True
        row = self._row(place)
        return row.relaxed_score(event) is not None if self.relaxed else row.matches(event)

    def _row(self, place: int) -> R:
        return self.rows[int(self._columns.ids[place])]

    # ── building ───────────────────────────────────────────────────────────────────────────────────────

    def _merged(self) -> _Columns:
        """The columns, up to date."""
        if self._joined or self._left:
            self._merge()
        return self._columns

    def _merge(self) -> None:
        if self._left:
            gone = sorted(bisect_left(self._keys, key) for key in self._keyed(self._left))
            for place in reversed(gone):
                del self._keys[place]
            self._columns = _Columns._make(np.delete(column, gone, axis=-1) for column in self._columns)
        if self._joined:
            keys = sorted(self._keyed(self._joined))
            places = [bisect_left(self._keys, key) for key in keys]
            self._keys = sorted(self._keys + keys)  # two sorted runs: Python merges them
            self._insert(places, {int(key[-1]): self.rows[int(key[-1])] for key in keys})
        self._joined.clear()
        self._left.clear()
        self._all_plain = bool(self._columns.plain.all())
        self._all_full = bool((self._columns.named < self._dimensions).all())

    def _keyed(self, rows: Mapping[int, R]) -> list[Key]:
        return [(*key, id) for key, id in zip(self._order(list(rows.values())), rows, strict=True)]

    def _insert(self, places: list[int], rows: Mapping[int, R]) -> None:
        """Insert rows before these places; build all columns anew if one mentions more attributes than any before."""
        width = max(len(row.named) for row in rows.values())
        if width > len(self._columns.named):
            ids = [int(key[-1]) for key in self._keys]
            self._columns = self._as_columns({id: self.rows[id] for id in ids}, width)
            return
        added = self._as_columns(rows, len(self._columns.named))
        pairs = zip(self._columns, added, strict=True)
        self._columns = _Columns._make(np.insert(column, places, new, axis=-1) for column, new in pairs)

    def _as_columns(self, rows: Mapping[int, R], width: int) -> _Columns:
        """Rows that mention fewer than `width` attributes are filled up with bounds that decide nothing.

        They are on an attribute that `_completed` gives to every event, after the last one.
        """
        shape = (len(rows), width)
        named, weights = np.full(shape, self._dimensions), np.zeros(shape)
        least, most = (np.inf, -np.inf) if self.relaxed else (-np.inf, np.inf)
        lo, hi = np.full(shape, least), np.full(shape, most)
        if rows:
            used = np.arange(width) < np.array([len(row.named) for row in rows.values()])[:, None]
            named[used] = np.concatenate([row.named for row in rows.values()])
            lo[used], hi[used] = np.concatenate([row.bounds for row in rows.values()]).T
            if self.relaxed:  # exact scores do not depend on them
                weights[used] = np.concatenate([row.weights[row.named] for row in rows.values()])
        ids, scores = np.array(list(rows), np.int64), np.array([row.score for row in rows.values()], np.float64)
        plain = np.array([row.plain for row in rows.values()], np.bool_)
        by_attribute = (np.ascontiguousarray(column.T) for column in (named, lo, hi, weights))
        return _Columns(ids, scores, plain, *by_attribute)

    def check(self) -> None:
        """Raise AssertionError unless the columns hold, in order, the rows as they were when they were merged last."""
        assert all(self.rows[id] is row for id, row in self._joined.items())
        merged = {id: row for id, row in self.rows.items() if id not in self._joined} | self._left
        assert self._keys == sorted(self._keyed(merged)), "a row is missing, too many or out of order"
        in_order = {int(key[-1]): merged[int(key[-1])] for key in self._keys}
        expected = self._as_columns(in_order, len(self._columns.named))
        for column, twin in zip(self._columns, expected, strict=True):
            assert np.array_equal(column, twin), "the columns do not say what the rows say"
