"""The obvious meaning of predicates, on values as written: what compiled filters must agree with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.language import Operator, Predicate, Subscription

MEANING: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.LESS: lambda x, v: x < v[0],
    Operator.AT_MOST: lambda x, v: x <= v[0],
    Operator.EQUAL: lambda x, v: x == v[0],
    Operator.DIFFERENT: lambda x, v: x != v[0],
    Operator.AT_LEAST: lambda x, v: x >= v[0],
    Operator.GREATER: lambda x, v: x > v[0],
    Operator.IN: lambda x, v: x in v,
    Operator.NOT_IN: lambda x, v: x not in v,
    Operator.BETWEEN: lambda x, v: v[0] <= x <= v[1],
}


def holds(predicate: Predicate, values: dict[str, Any]) -> bool:
    return predicate.attribute in values and MEANING[predicate.operator](values[predicate.attribute], predicate.values)


def matches(subscription: Subscription, values: dict[str, Any]) -> bool:
    return all(holds(predicate, values) for predicate in subscription.predicates)


def relaxed_score(subscription: Subscription, values: dict[str, Any]) -> float | None:
    """Predicates on one attribute stand or fall together."""
    total, any_holds = 0.0, False
    for attribute in {p.attribute for p in subscription.predicates}:
        own = [p for p in subscription.predicates if p.attribute == attribute]
        if all(holds(p, values) for p in own):
            total, any_holds = total + sum(p.weight for p in own), True
    return total if any_holds else None
