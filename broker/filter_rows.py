"""The filters of a network as rows of arrays, from which tables build static parts: many tables share filters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.residue_rows import Residues
from broker.scratch import new_scratch
from routing.filter import Filter

_FIRST_ROWS = 64


class FilterRows:
    """A row per filter that was ever part of a build."""

    def __init__(self, dimensions: int) -> None:
        self.residues = Residues()
        self.scratch = new_scratch(dimensions)
        self._row: dict[Filter, int] = {}
        shape = (_FIRST_ROWS, dimensions)
        bounds, residues = (np.empty(shape), np.empty(shape)), np.empty(_FIRST_ROWS, np.int64)
        self._columns: list[NDArray[Any]] = [*bounds, np.empty(shape, np.bool_), residues]

    def columns(self, filters: list[Filter]) -> tuple[NDArray[Any], ...]:
        """Lower and upper bounds, mentioned attributes and residue numbers of these filters, a row each."""
        known = self._row
        rows = [known[f] if f in known else self._take(f) for f in filters]
        return tuple(column[rows] for column in self._columns)

    def _take(self, filter: Filter) -> int:
        row = len(self._row)
        if row == len(self._columns[0]):
            self._columns = [np.concatenate([column, np.empty_like(column)]) for column in self._columns]
        self._row[filter] = row
        lo, hi, mentioned, residue = self._columns
        lo[row], hi[row], mentioned[row] = filter.box[:, 0], filter.box[:, 1], filter.mentioned
        residue[row] = self.residues.number(filter.residue)
        return row
