"""Residues (≠, not in, in) as flat arrays: where a box matches, kernels check what a box cannot say.

Each residue has a number; equal residues share one. Its terms are stored side by side. A term has an attribute, values,
and whether these are allowed or excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covering.residue import Residue
from coverlay import kernel
from topk.kernels.rows import with_room
from topk.kernels.structures import structure

PLAIN = -1  # in place of a residue: the box says it all


ResidueRows, _ = structure(
    "ResidueRows",
    first=np.empty(0, np.int64),  # of each residue: its first term
    attribute=np.empty(0, np.int64),
    listed=np.empty(0, np.int64),  # 1: the values are the allowed ones, 0: they are excluded
    value_first=np.empty(0, np.int64),  # of each term
    values=np.empty(0),
)


@kernel
def _put(r: Any, first: Any, attribute: Any, listed: Any, value_first: Any, values: Any) -> None:
    r.first, r.attribute, r.listed, r.value_first, r.values = first, attribute, listed, value_first, values


class Residues:
    """Gives numbers to residues; `rows` is what kernels read."""

    def __init__(self, known: Iterable[Residue] = ()) -> None:
        self._numbers: dict[Residue, int] = {}
        # By residue, its first term (one more at the end); by term, attribute, whether values are allowed or excluded,
        # and its first value (one more); values. With spare room, so that a new residue need not copy all others.
        self._columns: list[NDArray[Any]] = [*(np.zeros(16, np.int64) for _ in range(4)), np.zeros(16)]
        self._used = [1, 0, 0, 1, 0]
        self.rows = ResidueRows()
        _put(self.rows, *self._columns)
        for residue in known:
            self.number(residue)

    def number(self, residue: Residue) -> int:
        """The number of a residue, PLAIN for an empty one."""
        if not residue.excluded and not residue.allowed:
            return PLAIN
        if residue not in self._numbers:
            self._numbers[residue] = len(self._numbers)
            before = list(self._columns)
            for listed, terms in ((0, residue.excluded), (1, residue.allowed)):
                for attribute, values in terms:
                    term = ([attribute], [listed], [self._used[4] + len(values)], values)
                    for column, items in enumerate(term, start=1):
                        self._extend(column, items)
            self._extend(0, [self._used[1]])
            if any(old is not new for old, new in zip(before, self._columns, strict=True)):
                _put(self.rows, *self._columns)
        return self._numbers[residue]

    def _extend(self, column: int, items: Sequence[float]) -> None:
        used, end = self._used[column], self._used[column] + len(items)
        self._columns[column] = with_room(self._columns[column], used, len(items))
        self._columns[column][used:end] = items
        self._used[column] = end


@kernel(inner=True)
def is_in(r: Any, term: int, value: float) -> bool:
    """Is the value one of the term's?"""
    found = False
    for at in range(r.value_first[term], r.value_first[term + 1]):
        found |= r.values[at] == value
    return found


@kernel(inner=True)
def admits(r: Any, residue: int, event: Any) -> bool:
    """Does an event that has all attributes of a residue satisfy it? `r` is None where there are no residues."""
    if r is None:
        return True
    if residue == PLAIN:
        return True
    for term in range(r.first[residue], r.first[residue + 1]):
        if is_in(r, term, event[r.attribute[term]]) != (r.listed[term] == 1):
            return False
    return True


@kernel(inner=True)
def admits_value(r: Any, residue: int, attribute: int, value: float) -> bool:
    """Does a value satisfy what a residue says about one attribute?"""
    for term in range(r.first[residue], r.first[residue + 1]):
        if r.attribute[term] == attribute and is_in(r, term, value) != (r.listed[term] == 1):
            return False
    return True
