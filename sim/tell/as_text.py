"""Columns back into text: any subscription or event of a workload in the language that clients write.

The inverse of the compiler up to spelling: compiling the text gives the same filter again. An open bound was compiled
to the next number inside; it is recognised because its neighbour outside has the shorter decimal form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from broker.language import Event, Near, Operator, Predicate, Subscription
from broker.language.schema import Attribute, Schema, Value
from broker.language.text_code import ONE
from routing.filter import Filter
from sim.workloads import Workload
from sim.workloads.contract import from_filters

EVERYTHING = "which asks for every event"


def subscription_of(workload: Workload, row: int, semantics: str | None = None) -> Subscription:
    """Subscription `row` as a client would have written it.

    `semantics` leaves out what does not count there: weights under exact matching, the score under relaxed.
    """
    predicates: list[Predicate] = []
    excluded, allowed = dict(workload.residue(row).excluded), dict(workload.residue(row).allowed)
    for column, attribute in enumerate(workload.schema.attributes):
        if workload.mentioned[row, column]:
            bounds = float(workload.lo[row, column]), float(workload.hi[row, column])
            said = _said(attribute, bounds, excluded.get(column, ()), allowed.get(column))
            weights = _shares(float(workload.weights[row, column]), len(said), semantics)
            predicates += [
                Predicate(attribute.name, operator, values, weight)
                for (operator, values), weight in zip(said, weights, strict=True)
            ]
    score = float(workload.scores[row]) if semantics != "relaxed" else 1.0
    nearest = workload.nearest(row)
    near = None if nearest is None else Near(*nearest)
    return Subscription(tuple(predicates), id=row, score=score, near=near)


def subscription_in_words(workload: Workload, row: int, kind: str, semantics: str) -> str:
    """Under exact matching of boxes the score counts; everywhere else the weights do."""
    counts = "exact" if (kind, semantics) == ("boxes", "exact") else "relaxed"
    asked = subscription_of(workload, row, counts)
    return str(asked) if asked.predicates or asked.near else EVERYTHING


def filter_in_words(schema: Schema, filter: Filter) -> str:
    """A compiled subscription as a client would have written it."""
    return str(subscription_of(from_filters(schema, [filter], np.empty((0, len(schema)))), 0))


def event_of(workload: Workload, row: int) -> Event:
    values = workload.schema.decode(workload.events[row])
    weights: dict[str, float] = {}
    if workload.event_weights is not None:
        own = zip(workload.schema.names, workload.event_weights[row].tolist(), strict=True)
        weights = {name: weight for name, weight in own if name in values and weight != 1.0}
    return Event(values, weights=weights)


def _shares(weight: float, count: int, semantics: str | None) -> list[float]:
    """Weights that add up to the attribute's: 1 each where that fits, else all of it on the first."""
    if semantics == "exact" or weight == count:
        return [1.0] * count
    return [weight, *([0.0] * (count - 1))]


Numbers = tuple[float, ...]
Said = list[tuple[Operator, tuple[Value, ...]]]


def _said(attribute: Attribute, bounds: tuple[float, float], excluded: Numbers, allowed: Numbers | None) -> Said:
    if attribute.kind == "categorical":
        return _categories(attribute, bounds, excluded, allowed)
    if attribute.kind == "text" and allowed is None:
        return _texts(attribute, *bounds, excluded)
    if allowed is not None:
        return [(Operator.IN, tuple(_value(attribute, value) for value in allowed))]
    return [*_bounds(attribute, *bounds), *_different([_value(attribute, value) for value in excluded])]


def _different(values: Sequence[Value]) -> Said:
    """None of these values."""
    return [(Operator.DIFFERENT if len(values) == 1 else Operator.NOT_IN, tuple(values))] if values else []


def _texts(attribute: Attribute, low: float, high: float, excluded: Numbers) -> Said:
    """One text, or a prefix; where the prefix itself is excluded, the lower bound is one higher."""
    if low == high and len(str(attribute.decode(low)).encode()) < ONE.longest:
        return [(Operator.EQUAL, (attribute.decode(low),))]
    said: Said = []
    if math.isfinite(low):
        start = attribute.decode(low)
        said.append((Operator.PREFIX, (start,)))
        if low > attribute.number(start):
            excluded = (attribute.number(start), *excluded)
    return [*said, *_different([attribute.decode(value) for value in excluded])]


def _categories(attribute: Attribute, bounds: tuple[float, float], excluded: Numbers, allowed: Numbers | None) -> Said:
    """The allowed or the excluded categories, whichever are fewer."""
    codes = np.arange(bounds[0], bounds[1] + 1) if allowed is None else np.array(allowed)
    inside = [attribute.categories[int(code)] for code in codes if code not in excluded]
    outside = [category for category in attribute.categories if category not in inside]
    if outside and len(outside) < len(inside):
        return _different(outside)
    return [(Operator.EQUAL if len(inside) == 1 else Operator.IN, tuple(inside))]


def _bounds(attribute: Attribute, low: float, high: float) -> Said:
    if low == high:
        return [(Operator.EQUAL, (_value(attribute, low),))]
    below, above = _opened(attribute, low, -math.inf), _opened(attribute, high, math.inf)
    if math.isfinite(low) and math.isfinite(high) and below is None and above is None:
        return [(Operator.BETWEEN, (_value(attribute, low), _value(attribute, high)))]
    said: Said = []
    if math.isfinite(low):
        said.append((Operator.AT_LEAST, (_value(attribute, low),)) if below is None else (Operator.GREATER, (below,)))
    if math.isfinite(high):
        said.append((Operator.AT_MOST, (_value(attribute, high),)) if above is None else (Operator.LESS, (above,)))
    return said


def _opened(attribute: Attribute, bound: float, outwards: float) -> float | None:
    """The bound that was open, if this one looks like the number just inside it."""
    if attribute.integral or not math.isfinite(bound):
        return None
    neighbour = math.nextafter(bound, outwards)
    return neighbour if len(repr(neighbour)) < len(repr(bound)) else None


def _value(attribute: Attribute, number: float) -> Value:
    return attribute.decode(number) if attribute.integral else number
