"""Growable CSR rows of expressions that kernels read, and the kernels that compare one row with one event.

Rows keep their number until removed; gaps are reused. Predicates of removed rows stay behind as waste until more
than half is waste, then the others are moved together. An event is spread over dense scratch columns (its low, high
and weight per attribute, NaN where it lacks one), so a predicate costs one gather and two comparisons, and a
missing attribute fails every comparison by itself.

Kernels that are called per row are inlined: handing a tuple of a dozen arrays to a function costs more than what
they do. Kernels that loop over rows name the arrays first: a tuple counts references at every access.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.rows import fitted, runs
from topk.predicates import Exceptions, Int32s, SparseCatalogue
from topk.sparse.scores import MARGIN, Scoring, combine

_ROOM = 64


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


@kernel(inline="always")
def holds(rows: Rows, row: int, event: Any, extra: Any) -> bool:
    """Whether every predicate of the row meets the event exactly; event is (3, d) scratch."""
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        a = rows.attribute[p]
        if not (rows.lo[p] <= event[1, a] and event[0, a] <= rows.hi[p]):
            return False
    return exactly(rows, row, event, extra)


@kernel(inline="always")
def exactly(rows: Rows, row: int, event: Any, extra: Any) -> bool:
    """Whether ≠, ∉ and ∈ on either side hold too, where all intervals meet.

    `extra` are those of the event; None if no row has any either, for which nothing is compiled.
    """
    if extra is None:
        return True
    return all_exact(rows, row, event, extra[0], extra[1])


@kernel(inner=True)
def all_exact(rows: Rows, row: int, event: Any, table: Any, values: Any) -> bool:
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):  # noqa: SIM110 (kernels have no generators)
        if not exact_on(rows, row, p, event, table, values):
            return False
    return True


@kernel(inner=True)
def exact_on(rows: Rows, row: int, p: int, event: Any, table: Any, values: Any) -> bool:
    """For one predicate: whether the row's ≠, ∉ and ∈ leave a value of the event's interval, and those of the event a
    value that the row accepts.
    """
    if rows.odd[row] >= 0 and not exceptions_on(rows, row, rows.attribute[p], event):
        return False
    for i in range(len(table)):
        a, excluded, first, count = table[i]
        if rows.attribute[p] == a:
            own = values[first : first + count]
            if not common_value(rows, row, a, rows.lo[p], rows.hi[p], event[0, a], event[1, a], excluded, own):
                return False
    return True


@kernel(inner=True)
def exceptions_on(rows: Rows, row: int, attribute: int, event: Any) -> bool:
    """Whether the row's exceptions on one attribute hold."""
    low, high, at = event[0, attribute], event[1, attribute], rows.odd[row]
    while True:
        a, excluded, first, count, more = rows.exceptions[at]
        if a == attribute:
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


@kernel(inline="always")
def holds_alone(rows: Rows, row: int, p: int, event: Any, extra: Any) -> bool:
    """Whether one predicate of the row meets the event exactly, whatever the others do."""
    a = rows.attribute[p]
    if not (rows.lo[p] <= event[1, a] and event[0, a] <= rows.hi[p]):
        return False
    if extra is None:
        return True
    return exact_on(rows, row, p, event, extra[0], extra[1])


@kernel(inner=True)
def common_value(
    rows: Rows, row: int, a: int, lo: float, hi: float, low: float, high: float, excluded: int, own: Any
) -> bool:
    """Whether the predicate [lo, hi], with the row's exception on a if any, shares a value with the event's.

    `own` are the event's values: excluded from [low, high], or the only allowed ones. The intervals meet.
    """
    theirs, without = own[:0], True  # the row's exception
    at = rows.odd[row]
    while at >= 0:
        if rows.exceptions[at, 0] == a:
            without = rows.exceptions[at, 1] != 0
            theirs = rows.values[rows.exceptions[at, 2] : rows.exceptions[at, 2] + rows.exceptions[at, 3]]
        at = at + 1 if rows.exceptions[at, 4] else -1
    if not without:
        for v in theirs:  # noqa: SIM110 (kernels have no generators)
            if low <= v <= high and (listed(own, v) != bool(excluded)):
                return True
        return False
    if not excluded:
        for v in own:  # noqa: SIM110
            if lo <= v <= hi and not listed(theirs, v):
                return True
        return False
    # Two intervals less finitely many values: nothing is left only if they meet in a single, excluded point.
    return max(lo, low) < min(hi, high) or not (listed(own, max(lo, low)) or listed(theirs, max(lo, low)))


@kernel(inner=True)
def listed(values: Any, value: float) -> bool:
    for v in values:  # noqa: SIM110
        if v == value:
            return True
    return False


@kernel(inline="always")
def row_score(rows: Rows, row: int, event: Any, score: Scoring) -> float:
    """Score of a matching row, folded in attribute order: all methods give equal floats."""
    total = score.start
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        total = combine(score, total, rows.weight[p], event[2, rows.attribute[p]])
    return total


@kernel(inline="always")
def usual_margin(score: Scoring) -> Any:
    """What usual weights are multiplied by, so that the bound holds for events that exceed them a little."""
    return 1.0 if score.linear else MARGIN


@kernel(inline="always")
def usual_score(rows: Rows, row: int, usual: Any, score: Scoring) -> float:
    """The row's score from an event with the usual weight of each attribute; `reach` says how it bounds scores."""
    total = score.start
    margin = usual_margin(score)
    begin = rows.start[row]
    for p in range(begin, begin + rows.length[row]):
        total = combine(score, total, rows.weight[p], margin * usual[rows.attribute[p]])
    return total


@kernel
def spread(event: Any, attributes: Any, lo: Any, hi: Any, weights: Any) -> None:
    for i in range(len(attributes)):
        event[0, attributes[i]] = lo[i]
        event[1, attributes[i]] = hi[i]
        event[2, attributes[i]] = weights[i]


@kernel
def clear(event: Any, attributes: Any) -> None:
    for a in attributes:
        event[0, a] = np.nan
        event[1, a] = np.nan
        event[2, a] = np.nan


class ExpressionStore:
    def __init__(self, catalogue: SparseCatalogue) -> None:
        n = len(catalogue)
        self.dimensions = catalogue.dimensions
        self.used = n  # rows in use, gaps included
        self.filled = int(catalogue.offsets[-1])  # predicates in the arena, waste included
        self.wasted = 0
        self._gaps: list[int] = []
        capacity = max(n, _ROOM)
        # The arena is the catalogue's own until something is added: it is full, so nothing is ever written into it.
        given = (catalogue.attributes, catalogue.lo, catalogue.hi, catalogue.weights)
        columns = (np.require(column, requirements=("C", "W")) for column in given)  # as kernels take them
        self.rows = Rows._make([
            fitted(catalogue.offsets[:-1], capacity),
            fitted(np.diff(catalogue.offsets).astype(np.int32), capacity, -1),
            fitted(catalogue.ids, capacity, -1), np.full(capacity, -1, np.int32),
            *columns, np.empty((0, 5), np.int64), np.empty(0),
        ])  # fmt: skip
        self._row_of: dict[int, int] | None = None
        self.exceptions: dict[int, Exceptions] = dict(catalogue.exceptions)  # by row
        self._stale = bool(self.exceptions)

    def __len__(self) -> int:
        return self.used - len(self._gaps)

    @property
    def row_of(self) -> dict[int, int]:
        """id → row; made on first use: most indexes never need it."""
        if self._row_of is None:
            self._row_of = dict(zip(self.rows.ids[: self.used].tolist(), range(self.used), strict=True))
        return self._row_of

    @property
    def nbytes(self) -> int:
        return sum(int(column.nbytes) for column in self.rows)

    def add(self, one: SparseCatalogue) -> int:
        """Store the single row of `one`; returns its number here."""
        count, row_of = int(one.offsets[1]), self.row_of
        if self.filled + count > len(self.rows.attribute):
            self._make_room(count)
        if self._gaps:
            row = self._gaps.pop()
        else:
            if self.used == len(self.rows.ids):
                fills = (0, -1, -1, -1)
                wider: list[Any] = [fitted(c, 2 * self.used, f) for c, f in zip(self.rows[:4], fills, strict=True)]
                self.rows = Rows._make([*wider, *self.rows[4:]])
            row = self.used
            self.used += 1
        r, at = self.rows, slice(self.filled, self.filled + count)
        r.attribute[at], r.lo[at], r.hi[at], r.weight[at] = one.attributes, one.lo, one.hi, one.weights
        r.start[row], r.length[row], r.ids[row], r.odd[row] = self.filled, count, one.ids[0], -1
        self.filled += count
        row_of[int(one.ids[0])] = row
        if one.exceptions:
            self.exceptions[row] = one.exceptions[0]
            self._stale = True
        return row

    def remove(self, id: int) -> int:
        """Remove a subscription; returns the row it had."""
        row = self.row_of.pop(id)
        self.wasted += int(self.rows.length[row])
        self.rows.length[row], self.rows.ids[row], self.rows.odd[row] = -1, -1, -1
        self.exceptions.pop(row, None)  # its encoding is waste until the next `refresh`
        self._gaps.append(row)
        return row

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
        columns: Any = self.rows[4:8]
        if 2 * self.wasted > self.filled:  # move together
            rows = np.fromiter(self.row_of.values(), np.int64)
            lengths = self.rows.length[rows]
            columns = [column[runs(self.rows.start[rows], lengths)] for column in columns]
            self.rows.start[rows] = np.cumsum(lengths) - lengths
            self.filled, self.wasted = live, 0
        else:
            capacity = max(capacity, 2 * (self.filled + count))
        self.rows = Rows._make([*self.rows[:4], *(fitted(c, capacity) for c in columns), *self.rows[8:]])

    def refresh(self) -> None:
        """Encode the exceptions for the kernels; call it before rows are compared with events."""
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
