"""Residues among the covering indexes (covers.py): `Residue.implied_by` of covering/residue.py on flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.records import NONE
from sim.compiled.residues import PLAIN, is_in
from sim.compiled.state import inlined, inner


@inner
def is_implied(w: Any, own: int, subscription: int) -> bool:
    """Does every event that a subscription matches satisfy a residue?"""
    if own == PLAIN:
        return True
    return implied_by(w, own, w.points[subscription], w.subscriptions[subscription].residue)


@inlined
def _term_of(w: Any, residue: int, attribute: int, listed: int) -> int:
    """The term of a residue that allows (`listed`) or excludes values of an attribute, −1: none."""
    found = NONE
    if residue != PLAIN:
        for term in range(w.residue_first[residue], w.residue_first[residue + 1]):
            if w.residue_attribute[term] == attribute and w.residue_listed[term] == listed:
                found = term
    return found


@inner
def implied_by(w: Any, own: int, point: Any, other: int) -> bool:
    for term in range(w.residue_first[own], w.residue_first[own + 1]):
        attribute = w.residue_attribute[term]
        low, high, whole = -point[2 * attribute], point[2 * attribute + 1], w.integral[attribute]
        within, without = _term_of(w, other, attribute, 1), _term_of(w, other, attribute, 0)
        if w.residue_listed[term] == 1:
            if not _allows_all(w, term, low, high, whole, within, without):
                return False
        elif np.isinf(low) and np.isinf(high) and within < 0 and _count(w, without) == 0:
            return False  # unconstrained there, so events may lack it, and ≠ holds only for a value
        else:
            for at in range(w.residue_value_first[term], w.residue_value_first[term + 1]):
                value = w.residue_values[at]
                fits = low <= value <= high and (within < 0 or is_in(w, within, value))
                if fits and not _excluded(w, without, value) and (not whole or _is_whole(value)):
                    return False
    return True


@inner
def _allows_all(w: Any, term: int, low: float, high: float, whole: bool, within: int, without: int) -> bool:
    """Is every value that the attribute can take one of the term's?"""
    if within >= 0:
        for at in range(w.residue_value_first[within], w.residue_value_first[within + 1]):
            value = w.residue_values[at]
            possible = low <= value <= high and (not whole or _is_whole(value))
            if possible and not is_in(w, term, value) and not _excluded(w, without, value):
                return False
        return True
    first, count = low, 1.0
    if whole:
        first, count = np.ceil(low), np.floor(high) - np.ceil(low) + 1.0
        if np.isinf(low) or np.isinf(high) or count > _count(w, term) + _count(w, without):
            return False  # more values than are listed
    elif low != high:
        return False
    for i in range(np.int64(count)):
        if not is_in(w, term, first + i) and not _excluded(w, without, first + i):
            return False
    return True


@inlined
def _excluded(w: Any, term: int, value: float) -> bool:
    return term >= 0 and is_in(w, term, value)


@inlined
def _count(w: Any, term: int) -> int:
    return w.residue_value_first[term + 1] - w.residue_value_first[term] if term >= 0 else 0


@inlined
def _is_whole(value: float) -> bool:
    return np.isfinite(value) and np.floor(value) == value
