"""Residues (≠, not in, in) as flat arrays: kernels check what a box cannot say where a box matches.

A residue is a number. Its terms lie side by side, each with an attribute, whether its values are the allowed ones or
the excluded ones, and the values. Equal residues share a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from covering.residue import Residue
from coverlay import kernel
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
        self._terms: list[tuple[int, int]] = []
        self._first, self._value_first, self._values = [0], [0], list[float]()
        for residue in known:
            self._take(residue)
        self.rows = ResidueRows()
        _put(self.rows, *self._arrays())

    def number(self, residue: Residue) -> int:
        """The number of a residue, PLAIN for an empty one."""
        if not residue.excluded and not residue.allowed:
            return PLAIN
        if residue not in self._numbers:
            self._take(residue)
            _put(self.rows, *self._arrays())
        return self._numbers[residue]

    def _take(self, residue: Residue) -> None:
        self._numbers.setdefault(residue, len(self._numbers))
        if len(self._first) > len(self._numbers):
            return
        for listed, terms in ((0, residue.excluded), (1, residue.allowed)):
            for attribute, values in terms:
                self._terms.append((attribute, listed))
                self._values += values
                self._value_first.append(len(self._values))
        self._first.append(len(self._terms))

    def _arrays(self) -> tuple[Any, ...]:
        terms = np.array(self._terms, np.int64).reshape(-1, 2)
        columns = self._first, terms[:, 0], terms[:, 1], self._value_first
        return (*(np.array(column, np.int64) for column in columns), np.array(self._values))


@kernel(inner=True)
def is_in(r: Any, term: int, value: float) -> bool:
    """Is the value one of the term's?"""
    found = False
    for at in range(r.value_first[term], r.value_first[term + 1]):
        found |= r.values[at] == value
    return found


@kernel(inner=True)
def admits(r: Any, residue: int, event: Any) -> bool:
    """Does an event satisfy a residue, all of whose attributes it has? None for `r`: there are no residues."""
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
