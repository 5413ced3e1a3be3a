"""Sparse subscriptions: Boolean expressions over many attributes, a handful of predicates each, as CSR arrays.

A predicate is (attribute, operator, value, weight) and becomes a closed interval by Table I of Sadoghi & Jacobsen
(ICDE 2012, "Relevance Matters"): `<` and `>` step to the next float, `≠` and `∉` span everything, `∈` spans its
smallest to its largest value; `> inf` and `< -inf` are `∈` nothing. What the interval cannot say is kept as an
*exception* of its row and verified exactly, after the intervals have matched.

An expression matches an event iff every one of its predicates meets the event's interval on the same attribute
("stabbing subscription", §III-C); an attribute that the event lacks fails the predicate. Its score is the sum, over
its predicates, of the predicate's weight times the event's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coverlay import CoverlayError, quoted, unknown_name
from topk.checks import Floats, Ints, checked_ids, is_whole, numbers

Int32s = NDArray[np.int32]
# Of one row: (attribute, whether the values are excluded (else they are the allowed ones), values)
Exceptions = tuple[tuple[int, bool, tuple[float, ...]], ...]

OPERATORS = ("<", "<=", "=", "!=", ">=", ">", "in", "not in", "between")


class Predicate(NamedTuple):
    """attribute operator value; `in` and `not in` take values, `between` takes (low, high)."""

    attribute: int
    operator: str
    value: Any
    weight: float = 1.0


def predicate_of(given: Any) -> Predicate:
    try:
        predicate = Predicate(*given)
    except TypeError:
        raise CoverlayError(f"a predicate is (attribute, operator, value, weight), not {quoted(given)}") from None
    if not is_whole(predicate.attribute):
        raise CoverlayError(f"an attribute is a whole number from 0 on, not {quoted(predicate.attribute)}")
    return predicate


class Interval(NamedTuple):
    """A predicate as Table I maps it, and what an exception must verify, if any: excluded or allowed values."""

    lo: float
    hi: float
    excluded: bool = False
    values: tuple[float, ...] | None = None


def mapped(operator: str, value: Any) -> Interval:
    """γ of Table I."""
    if operator not in OPERATORS:
        raise unknown_name("operator", operator, OPERATORS)
    listed = list(value) if isinstance(value, (set, frozenset)) else value
    given = np.float64(listed) if isinstance(listed, float) else numbers(f"what follows {operator!r}", listed)
    if operator == "between":
        if given.shape != (2,):
            raise CoverlayError(f"'between' needs (low, high), not {quoted(value)}")
        return Interval(float(given[0]), float(given[1]))
    if operator in ("in", "not in"):
        values = tuple(sorted(set(given.ravel().tolist())))
        if not values:
            raise CoverlayError(f"'{operator}' needs at least one value")
        if operator == "in":
            return Interval(values[0], values[-1], False, values if len(values) > 1 else None)
        return Interval(-np.inf, np.inf, True, values)
    if given.ndim:
        raise CoverlayError(f"{operator!r} needs one number, not {quoted(value)}")
    v = float(given)
    if operator == "!=":
        return Interval(-np.inf, np.inf, True, (v,))
    if (operator, v) in ((">", np.inf), ("<", -np.inf)):
        return Interval(v, v, False, ())
    low = v if operator in ("=", ">=") else math.nextafter(v, math.inf) if operator == ">" else -np.inf
    high = v if operator in ("=", "<=") else math.nextafter(v, -math.inf) if operator == "<" else np.inf
    return Interval(low, high)


def in_columns(predicates: Iterable[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any], Exceptions]:
    """Attributes, lows, highs, weights and exceptions of predicates, by ascending attribute."""
    chosen = sorted((predicate_of(p) for p in predicates), key=lambda p: p.attribute)
    named = [p.attribute for p in chosen]
    made = [mapped(p.operator, p.value) for p in chosen]
    odd = tuple((a, i.excluded, i.values) for a, i in zip(named, made, strict=True) if i.values is not None)
    return named, [i.lo for i in made], [i.hi for i in made], [p.weight for p in chosen], odd


@dataclass(frozen=True)
class SparseCatalogue:
    """Rows of expressions; the predicates of row i are offsets[i] to offsets[i+1], by ascending attribute."""

    dimensions: int
    ids: Ints  # (n,)
    offsets: Ints  # (n + 1,)
    attributes: Int32s  # (number of predicates,)
    lo: Floats
    hi: Floats
    weights: Floats
    exceptions: Mapping[int, Exceptions] = field(default_factory=dict)  # row → what intervals cannot say

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, i: int) -> SparseCatalogue:
        """A catalogue of one row."""
        begin, end = self.offsets[i : i + 2].tolist()
        at, ends = slice(begin, end), np.array([0, end - begin], np.int64)
        odd = {0: self.exceptions[i]} if i in self.exceptions else {}
        named, lo, hi, weights = self.attributes[at], self.lo[at], self.hi[at], self.weights[at]
        return SparseCatalogue(self.dimensions, self.ids[i : i + 1], ends, named, lo, hi, weights, odd)

    @classmethod
    def empty(cls, dimensions: int) -> SparseCatalogue:
        return from_predicates([], dimensions=dimensions)


def from_predicates(
    expressions: Iterable[Sequence[Predicate | tuple[Any, ...]]],
    *,
    dimensions: int | None = None,
    ids: ArrayLike | None = None,
) -> SparseCatalogue:
    """One sequence of predicates per subscription; `dimensions` defaults to the largest attribute plus 1."""
    columns: tuple[list[Any], ...] = ([], [], [], [])
    offsets, exceptions = [0], {}
    for row, expression in enumerate(expressions):
        *own, odd = in_columns(expression)
        for column, part in zip(columns, own, strict=True):
            column += part
        offsets.append(len(columns[0]))
        if odd:
            exceptions[row] = odd
    if dimensions is None:
        dimensions = max(columns[0], default=-1) + 1
    return from_csr(dimensions, offsets, *columns, ids=ids, exceptions=exceptions)


def from_csr(
    dimensions: int,
    offsets: ArrayLike,
    attributes: ArrayLike,
    lo: ArrayLike,
    hi: ArrayLike,
    weights: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    exceptions: Mapping[int, Exceptions] | None = None,
) -> SparseCatalogue:
    """A sparse catalogue from arrays; within a row attributes must ascend."""
    where = np.array(offsets, dtype=np.int64)
    named = np.array(attributes)
    if named.size and named.dtype.kind not in "iu":
        raise CoverlayError(f"attributes must be whole numbers, not {quoted(attributes)}")
    columns = (("lo", lo), ("hi", hi), ("weights", weights))
    bounds = [np.array(numbers(what, values)) for what, values in columns]
    n = len(where) - 1
    if n < 0 or where[0] != 0 or where[-1] != len(named) or (np.diff(where) < 0).any():
        raise CoverlayError(f"offsets must rise from 0 to the number of predicates, {len(named)}")
    if any(values.shape != named.shape for values in bounds):
        raise CoverlayError("attributes, lo, hi and weights must have one value per predicate")
    _check_attributes(named, where, dimensions)
    _check_values(*bounds)
    low, high, weight = bounds
    named = named.astype(np.int32)
    return SparseCatalogue(dimensions, checked_ids(ids, n), where, named, low, high, weight, dict(exceptions or {}))


def _check_attributes(named: Ints, where: Ints, dimensions: int) -> None:
    if len(named) and not (named.min() >= 0 and named.max() < dimensions):
        wrong = named[(named < 0) | (named >= dimensions)][0]
        raise CoverlayError(f"attribute {wrong} is not one of 0 to {dimensions - 1}")
    rises = np.diff(named) > 0
    starts = where[1:-1]
    rises[starts[(starts > 0) & (starts < len(named))] - 1] = True  # a new row may begin anywhere
    if not rises.all():
        attribute = named[1:][~rises][0]
        raise CoverlayError(f"a row's attributes must ascend, one predicate each; attribute {attribute} does not fit")


def _check_values(lo: Floats, hi: Floats, weights: Floats) -> None:
    if np.isnan(lo).any() or np.isnan(hi).any():
        raise CoverlayError("bounds must not be NaN; use ±inf for unbounded")
    if (lo > hi).any():
        at = int(np.argmax(lo > hi))
        raise CoverlayError(f"predicate {at}: lo {lo[at]} is greater than hi {hi[at]}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise CoverlayError("weights must be finite and not negative: upper bounds rely on it")
