"""The obvious, slow twin of every sparse matcher: predicates as written, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

Condition = tuple[str, Any]  # operator and value
Expression = list[tuple[int, str, Any, float]]
Described = dict[int, tuple[str, Any, float]]  # an event: attribute → operator, value, weight

# total, weight, event weight → total; and where it starts
SCORES: dict[str, tuple[Callable[[float, float, float], float], float]] = {
    "sum": (lambda t, w, e: t + w * e, 0.0),
    "max": (lambda t, w, e: max(t, w * e), 0.0),
    "min": (lambda t, w, e: min(t, w * e), math.inf),
    "product": (lambda t, w, e: t * (w * e), 1.0),
    "noisy-or": (lambda t, w, e: 1.0 - (1.0 - t) * (1.0 - min(w * e, 1.0)), 0.0),
}


def satisfied(operator: str, value: Any, x: float | Fraction) -> bool:
    """Whether x satisfies `x operator value`."""
    if operator == "between":
        return value[0] <= x <= value[1]
    if operator in ("in", "not in"):
        return (x in value) == (operator == "in")
    return {
        "=": x == value, "!=": x != value, "<": x < value, "<=": x <= value, ">": x > value, ">=": x >= value,
    }[operator]  # fmt: skip


def meet(one: Condition, other: Condition) -> bool:
    """Whether some x satisfies both: one of the values mentioned, or one beside or between them, computed exactly."""
    mentioned: set[float] = set()
    for operator, value in (one, other):
        mentioned |= set(value) if operator in ("in", "not in", "between") else {value}
    finite = [Fraction(v) for v in sorted(mentioned) if math.isfinite(v)] or [Fraction(0)]
    candidates: list[float | Fraction] = [*mentioned, finite[0] - 1, finite[-1] + 1, -math.inf, math.inf]
    candidates += [(a + b) / 2 for a, b in pairwise(finite)]
    return any(satisfied(*one, x) and satisfied(*other, x) for x in candidates)


def top(
    expressions: dict[int, Expression], event: Described, k: int | None, score: str = "sum", relaxed: bool = False
) -> list[tuple[int, float]]:
    found = []
    step, start = SCORES[score]
    for id, expression in expressions.items():
        held = [(a, w) for a, op, v, w in expression if a in event and meet((op, v), event[a][:2])]
        if held if relaxed else len(held) == len(expression):
            total = start
            for a, w in sorted(held):
                total = step(total, w, event[a][2])
            found.append((id, total))
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return found if k is None else found[:k]


def as_predicates(event: Described) -> list[tuple[int, str, Any, float]]:
    return [(a, operator, value, weight) for a, (operator, value, weight) in event.items()]


def close(got: list[tuple[int, float]], expected: list[tuple[int, float]]) -> bool:
    """Equal ids; equal scores, which all methods add in the same order."""
    return [i for i, _ in got] == [i for i, _ in expected] and all(
        math.isclose(a, b, rel_tol=1e-12) for (_, a), (_, b) in zip(got, expected, strict=True)
    )
