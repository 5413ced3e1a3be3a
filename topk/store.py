"""Growable columns of subscriptions, one contiguous run of memory per attribute.

Columns lie attribute by attribute, (d, capacity), so that a scan reads each attribute as one stream and the
compiler vectorises it. `remove` either moves the last row into the gap (dense, for scans) or leaves the gap
for the next `add` (stable, for indexes that refer to rows); a gap's box is empty, so it matches nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topk.catalogue import Catalogue
from topk.checks import Floats, Ints

_ROOM = 64  # rows that a fresh store has room for


class Columns(NamedTuple):
    """What kernels receive: one argument instead of six."""

    lo: Floats  # (d, capacity)
    hi: Floats
    weights: Floats
    mentioned: NDArray[np.uint8]  # (d, capacity)
    scores: Floats  # (capacity,)
    ids: Ints


_KINDS = ("f8", "f8", "f8", "u1", "f8", "i8")
_BLANK = (np.inf, -np.inf, 0.0, 1, 0.0, -1)  # a row without a subscription


class Store:
    def __init__(self, catalogue: Catalogue, *, stable: bool = False) -> None:
        n, d = catalogue.lo.shape
        self.columns = _allocate(d, max(n, _ROOM))
        self.used = n  # rows in use, gaps included
        self._stable = stable
        self._gaps: list[int] = []
        _write(self.columns, slice(0, n), catalogue)
        self.row_of = dict(zip(catalogue.ids.tolist(), range(n), strict=True))

    def __len__(self) -> int:
        return len(self.row_of)

    @property
    def nbytes(self) -> int:
        return int(sum(column.nbytes for column in self.columns))

    def add(self, one: Catalogue) -> int:
        """Store the single row of `one`; returns its row here."""
        if self._gaps:
            row = self._gaps.pop()
        else:
            row = self.used
            if row == self.columns.ids.shape[0]:
                self._grow()
            self.used += 1
        _write(self.columns, slice(row, row + 1), one)
        self.row_of[int(one.ids[0])] = row
        return row

    def remove(self, id: int) -> int:
        """Remove a subscription; returns the row it had."""
        row = self.row_of.pop(id)
        if self._stable:
            self._blank(row)
            self._gaps.append(row)
            return row
        self.used -= 1
        last = self.used
        if row != last:
            for column in self.columns:
                column[..., row] = column[..., last]
            self.row_of[int(self.columns.ids[row])] = row
        self._blank(last)
        return row

    def subscription(self, id: int) -> Catalogue:
        """One stored row without its residue, which the matcher keeps."""
        return self.select(np.array([self.row_of[id]]))

    def catalogue(self) -> Catalogue:
        """All stored rows, by ascending id, without residues."""
        return self.select(np.array([row for _, row in sorted(self.row_of.items())], dtype=np.int64))

    def select(self, rows: Ints) -> Catalogue:
        c = self.columns
        lo, hi, weights = (column[:, rows].T.copy() for column in (c.lo, c.hi, c.weights))
        return Catalogue(c.ids[rows], lo, hi, c.scores[rows], weights, c.mentioned[:, rows].T.astype(np.bool_))

    def check(self) -> None:
        c = self.columns
        assert len(self.row_of) + len(self._gaps) == self.used, "every used row is an entry or a gap"
        for id, row in self.row_of.items():
            assert c.ids[row] == id, f"row {row} does not hold subscription {id}"
        free = np.ones(c.ids.shape[0], dtype=np.bool_)
        free[list(self.row_of.values())] = False
        assert (c.mentioned[:, free] == 1).all(), "a gap mentions every attribute"
        assert (c.lo[:, free] > c.hi[:, free]).all(), "a gap's box is empty"

    def _grow(self) -> None:
        d, capacity = self.columns.lo.shape
        larger = _allocate(d, 2 * capacity)
        for new, old in zip(larger, self.columns, strict=True):
            np.asarray(new)[..., :capacity] = old
        self.columns = larger

    def _blank(self, row: int) -> None:
        columns: tuple[Any, ...] = self.columns
        for column, blank in zip(columns, _BLANK, strict=True):
            column[..., row] = blank


def _allocate(d: int, capacity: int) -> Columns:
    shapes: list[Any] = [(d, capacity)] * 4 + [(capacity,)] * 2
    return Columns(*(np.full(shape, blank, kind) for shape, blank, kind in zip(shapes, _BLANK, _KINDS, strict=True)))


def _write(columns: tuple[Any, ...], rows: slice, c: Catalogue) -> None:
    for column, given in zip(columns, (c.lo, c.hi, c.weights, c.mentioned, c.scores, c.ids), strict=True):
        column[..., rows] = given.T
