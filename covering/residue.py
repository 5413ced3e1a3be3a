"""What a box cannot express: excluded values (≠, not in) and sets of allowed values (in), per attribute.

A filter is a box *and* a residue: an event matches when its point lies in the box and the residue admits it.
Filter 1 covers filter 2 when box 1 contains box 2 and residue 1 is implied by (box 2, residue 2): every
value vector admitted by filter 2 satisfies residue 1. Since a residue is a conjunction over attributes, the
implication is decided attribute by attribute.

The answer may only err towards "not implied", which costs a message and never an event. It is exact for
excluded values, for allowed sets against allowed sets, for point intervals and for integral attributes. The
three conservative cases:

- a continuous attribute bounded to an interval of more than one value is never taken to imply an allowed
  set, although a set listing every float64 of the interval would be implied;
- an attribute that filter 2 does not constrain implies nothing: an event may lack it;
- a filter 2 that admits nothing because of *another* attribute (say x in [5, 5] with x ≠ 5) implies
  everything, but each attribute is looked at alone.

Cost: linear in the listed values, a binary search for each.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError

Values = tuple[float, ...]
PerAttribute = tuple[tuple[int, Values], ...]


@dataclass(frozen=True)
class Residue:
    """Excluded and allowed values: tuples of (attribute, sorted tuple of distinct values), by attribute.

    Use `Residue.of` to build one from unsorted values; the constructor checks and does not repair, so that
    equal residues are equal objects and hash alike.
    """

    excluded: PerAttribute = ()
    allowed: PerAttribute = ()

    def __post_init__(self) -> None:
        for what, entries in (("excluded", self.excluded), ("allowed", self.allowed)):
            attributes = [attribute for attribute, _ in entries]
            if attributes != sorted(set(attributes)) or any(a < 0 for a in attributes):
                raise CoverlayError(f"{what} attributes {attributes} must be distinct, ascending, from 0 on")
            for attribute, values in entries:
                if any(math.isnan(v) for v in values) or list(values) != sorted(set(values)):
                    raise CoverlayError(
                        f"{what} values {values!r} of attribute {attribute} must be distinct and ascending"
                    )

    @staticmethod
    def of(
        excluded: Mapping[int, Iterable[float]] | None = None, allowed: Mapping[int, Iterable[float]] | None = None
    ) -> Residue:
        """From values in any order, with repetitions; an attribute without excluded values is dropped."""
        return Residue(
            tuple(entry for entry in _normal(excluded or {}) if entry[1]),
            tuple(_normal(allowed or {})),  # an empty allowed set is kept: it admits nothing
        )

    def admits(self, event: Sequence[float] | NDArray[np.float64]) -> bool:
        """Does this value vector (one number per attribute) satisfy the residue?"""
        return all(not _contains(values, float(event[a])) for a, values in self.excluded) and all(
            _contains(values, float(event[a])) for a, values in self.allowed
        )

    def implied_by(self, box: NDArray[np.float64], other: Residue, integral: Sequence[bool] | None = None) -> bool:
        """Does every value vector in `box` that `other` admits satisfy this residue?

        `integral[j]` says that attribute j only takes whole values (integers, categories).
        """
        if not self.excluded and not self.allowed:
            return True
        without, within = dict(other.excluded), dict(other.allowed)
        for attribute, values in self.excluded:
            low, high = float(box[attribute][0]), float(box[attribute][1])
            whole = integral is not None and bool(integral[attribute])
            listed, left_out = within.get(attribute), without.get(attribute, ())
            if math.isinf(low) and math.isinf(high) and listed is None and not left_out:
                return False  # unconstrained there, so events may lack it, and ≠ holds only for a value
            for value in values:
                possible = (
                    low <= value <= high
                    and not _contains(left_out, value)
                    and (listed is None or _contains(listed, value))
                    and not (whole and not value.is_integer())
                )
                if possible:
                    return False
        for attribute, values in self.allowed:
            low, high = float(box[attribute][0]), float(box[attribute][1])
            whole = integral is not None and bool(integral[attribute])
            left_out = without.get(attribute, ())
            candidates = _candidates(low, high, whole, within.get(attribute), len(values) + len(left_out))
            if candidates is None or not all(_contains(values, v) or _contains(left_out, v) for v in candidates):
                return False
        return True

    def strictness(self, box: NDArray[np.float64], integral: Sequence[bool] | None = None) -> tuple[int, int, int]:
        """A key that orders residues of one box: smaller for one that admits what another does and more.

        It counts attributes that an event must have although the box does not ask for them, attributes that are left
        with a finite number of values, and the values that are lost, or, of such an attribute, the negated number left.
        """
        excluded, allowed = dict(self.excluded), dict(self.allowed)
        demanded, limited, lost = 0, 0, 0
        for attribute in excluded.keys() | allowed.keys():
            low, high = float(box[attribute][0]), float(box[attribute][1])
            whole = integral is not None and bool(integral[attribute])
            demanded += math.isinf(low) and math.isinf(high)
            without = _within(excluded.get(attribute, ()), low, high, whole)
            if attribute not in allowed:
                lost += len(without)
                continue
            left = len(set(_within(allowed[attribute], low, high, whole)) - set(without))
            before = _count(low, high, whole)
            limited += before is None
            lost += (before or 0) - left
        return demanded, limited, lost


EMPTY = Residue()


def _normal(entries: Mapping[int, Iterable[float]]) -> list[tuple[int, Values]]:
    return [(a, tuple(sorted({float(v) for v in entries[a]}))) for a in sorted(entries)]


def _contains(values: Values, value: float) -> bool:
    position = bisect_left(values, value)
    return position < len(values) and values[position] == value


def _candidates(low: float, high: float, whole: bool, listed: Values | None, limit: int) -> list[float] | None:
    """The values an attribute can take, or None when more than `limit`: too many for the sets at hand."""
    if listed is not None:
        return _within(listed, low, high, whole)
    if whole:
        if math.isinf(low) or math.isinf(high):
            return None
        first, last = math.ceil(low), math.floor(high)
        return None if last - first + 1 > limit else [float(v) for v in range(first, last + 1)]
    return [low] if low == high else None


def _within(values: Values, low: float, high: float, whole: bool) -> list[float]:
    return [v for v in values if low <= v <= high and not (whole and not v.is_integer())]


def _count(low: float, high: float, whole: bool) -> int | None:
    """How many values lie between two bounds; None: no end of them."""
    if whole and not (math.isinf(low) or math.isinf(high)):
        return math.floor(high) - math.ceil(low) + 1
    return 1 if low == high else None
