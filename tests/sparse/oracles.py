"""The obvious, slow twin of every sparse matcher: predicates as written, one by one."""

from __future__ import annotations

import math
from typing import Any

Expression = list[tuple[int, str, Any, float]]
Ranges = dict[int, tuple[float, float, float]]  # attribute → low, high, weight


def satisfied(operator: str, value: Any, low: float, high: float) -> bool:
    """Whether some x in [low, high] satisfies `x operator value`."""
    if operator == "between":
        return value[0] <= high and low <= value[1]
    if operator == "in":
        return any(low <= v <= high for v in value)
    if operator in ("!=", "not in"):
        values = {value} if operator == "!=" else set(value)
        return low != high or low not in values
    if operator == "=":
        return low <= value <= high
    return {"<": low < value, "<=": low <= value, ">": high > value, ">=": high >= value}[operator]


def top(
    expressions: dict[int, Expression], event: Ranges, k: int | None, score: str = "sum"
) -> list[tuple[int, float]]:
    found = []
    for id, expression in expressions.items():
        held = all(a in event and satisfied(op, v, event[a][0], event[a][1]) for a, op, v, _ in expression)
        if held:
            products = [w * event[a][2] for a, _, _, w in sorted(expression, key=lambda p: p[0])]
            total = 0.0
            for product in products:
                total = total + product if score == "sum" else max(total, product)
            found.append((id, total))
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return found if k is None else found[:k]


def as_predicates(event: Ranges) -> list[tuple[int, str, tuple[float, float], float]]:
    return [(a, "between", (low, high), weight) for a, (low, high, weight) in event.items()]


def close(got: list[tuple[int, float]], expected: list[tuple[int, float]]) -> bool:
    """Equal ids; equal scores, which all methods add in the same order."""
    return [i for i, _ in got] == [i for i, _ in expected] and all(
        math.isclose(a, b, rel_tol=1e-12) for (_, a), (_, b) in zip(got, expected, strict=True)
    )
