"""Residues (≠, not in, in) as flat arrays: where a box matches, kernels check what a box cannot say.

Each residue has a number; equal residues share one. Its terms are stored side by side. A term has an attribute, values,
and whether these are allowed or excluded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from covering.residue import Residue
from sim.compiled.state import inner

PLAIN = -1  # in place of a residue: the box says it all


def residue_arrays(known: Iterable[Residue]) -> tuple[dict[Residue, int], dict[str, Any]]:
    """The number of each residue, and the arrays of the world that say what they are."""
    numbers: dict[Residue, int] = {Residue(): PLAIN}
    first, attributes, listed, value_first, values = [0], list[int](), list[int](), [0], list[float]()
    for residue in known:
        if residue in numbers:
            continue
        numbers[residue] = len(first) - 1
        for is_listed, terms in ((0, residue.excluded), (1, residue.allowed)):
            for attribute, given in terms:
                attributes.append(attribute)
                listed.append(is_listed)
                values += given
                value_first.append(len(values))
        first.append(len(attributes))
    return numbers, {
        "residue_first": np.array(first, np.int64),
        "residue_attribute": np.array(attributes, np.int64),
        "residue_listed": np.array(listed, np.int64),
        "residue_value_first": np.array(value_first, np.int64),
        "residue_values": np.array(values, np.float64),
    }


@inner
def is_in(w: Any, term: int, value: float) -> bool:
    """Is the value one of the term's?"""
    found = False
    for at in range(w.residue_value_first[term], w.residue_value_first[term + 1]):
        found |= w.residue_values[at] == value
    return found


@inner
def admits_value(w: Any, residue: int, attribute: int, value: float) -> bool:
    """Does a value satisfy what a residue says about one attribute?"""
    for term in range(w.residue_first[residue], w.residue_first[residue + 1]):
        if w.residue_attribute[term] == attribute and is_in(w, term, value) != (w.residue_listed[term] == 1):
            return False
    return True


@inner
def admits(w: Any, residue: int, event: Any) -> bool:
    """Does an event that has all attributes of a residue satisfy it?"""
    if residue != PLAIN:
        for term in range(w.residue_first[residue], w.residue_first[residue + 1]):
            if is_in(w, term, event[w.residue_attribute[term]]) != (w.residue_listed[term] == 1):
                return False
    return True
