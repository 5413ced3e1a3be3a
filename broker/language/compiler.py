"""From a subscription to a filter: all predicates on one attribute become one row of bounds and a set of values.

Each attribute is narrowed predicate by predicate: bounds intersect, excluded values unite, allowed sets
intersect. An open bound becomes the next float64 (or whole number) inside, which is exactly the same set of
values. The outcome is then brought to one canonical form, so that differently written but equal conditions
share a key and cover each other:

1. allowed values that are out of bounds or excluded are deleted, and the bounds become the hull of the others;
2. excluded values at a bound move the bound, those beyond it are deleted;
3. for whole-number attributes, gaps within the hull are listed as excluded or as allowed values, whichever
   list is shorter; categories start from the full list, so all their conditions are sets.

The weights of several predicates on one attribute add up and count when all of them hold.

If nothing is left, the subscription can never match. That is an error, because it is always a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from broker.language.parser import pointing
from broker.language.predicates import Operator, Predicate, Subscription
from broker.language.schema import Attribute, Schema, Value
from broker.language.text_code import ONE
from covering.residue import Residue
from coverlay import CoverlayError, quoted, shortened
from routing.filter import Filter


def compile_subscription(schema: Schema, subscription: Subscription) -> Filter:
    """The filter that admits exactly the events the subscription describes."""
    count = len(schema)
    box = np.array([(-math.inf, math.inf)] * count)
    weights = np.zeros(count)
    excluded: dict[int, Iterable[float]] = {}
    allowed: dict[int, Iterable[float]] = {}
    narrowed: dict[int, _Range] = {}
    for predicate in subscription.predicates:
        try:
            column = schema.index(predicate.attribute)
        except CoverlayError as error:
            raise _located(subscription, predicate, 0, str(error)) from None
        if column not in narrowed:
            narrowed[column] = _Range(schema.attributes[column])
        _narrow(narrowed[column], subscription, predicate)
        weights[column] += predicate.weight
    for column, range_ in narrowed.items():
        if not range_.settle():
            name = schema.names[column]
            said = " and ".join(str(p) for p in subscription.predicates if p.attribute == name)
            raise CoverlayError(f"subscription {subscription.id} can never match: {shortened(said)}")
        box[column] = range_.low, range_.high
        if range_.excluded:
            excluded[column] = range_.excluded
        if range_.allowed is not None:
            allowed[column] = range_.allowed
    mentioned = tuple(column in narrowed for column in range(count))
    near = _near(schema, subscription)
    return Filter(box, Residue.of(excluded, allowed), mentioned, weights, float(subscription.score), near)


def _near(schema: Schema, subscription: Subscription) -> tuple[float, float, float] | None:
    near = subscription.near
    if near is None:
        return None
    if schema.place is None:
        message = "near needs attributes of the kinds latitude and longitude in the schema"
        if subscription.text is None:
            raise CoverlayError(f"{shortened(str(near))}: {message}")
        raise pointing(subscription.text, near.place, message)
    return float(near.latitude), float(near.longitude), float(near.alpha)


def _located(subscription: Subscription, predicate: Predicate, place: int, message: str) -> CoverlayError:
    """The message, pointing into the text if there is one; place 0 is the attribute, 1… the values."""
    if subscription.text is None or place >= len(predicate.places):
        return CoverlayError(f"{shortened(str(predicate))}: {message}")
    return pointing(subscription.text, predicate.places[place], message)


def _narrow(range_: _Range, subscription: Subscription, predicate: Predicate) -> None:
    attribute, operator = range_.attribute, predicate.operator
    if attribute.kind in ("categorical", "text") and operator in _ORDERED:
        message = f"{attribute.name} is {attribute.kind} and has no order; use =, !=, in, not in or prefix"
        raise _located(subscription, predicate, 0, message)
    if operator is Operator.NOT_IN and not predicate.values:
        # It would restrict nothing and yet demand that the event has the attribute, which a box cannot express.
        raise _located(subscription, predicate, 0, f"{predicate} leaves nothing out; omit it")
    if operator is Operator.PREFIX:
        try:
            range_.meet(*_starting_with(attribute, predicate.values[0]))
        except CoverlayError as error:
            raise _located(subscription, predicate, 1, str(error)) from None
        return
    numbers = []
    for place, value in enumerate(predicate.values, start=1):
        try:
            numbers.append(_number(attribute, value, operator))
        except CoverlayError as error:
            raise _located(subscription, predicate, place, str(error)) from None
    range_.meet(operator, numbers)


_ORDERED = (Operator.LESS, Operator.AT_MOST, Operator.AT_LEAST, Operator.GREATER, Operator.BETWEEN)


def _starting_with(attribute: Attribute, prefix: Value) -> tuple[Operator, list[float]]:
    """What a prefix says: an interval of texts, or the categories that begin with it."""
    if not isinstance(prefix, str):
        raise CoverlayError(f"a prefix is a text in quotes, not {quoted(prefix)}")
    if attribute.kind == "categorical":
        return Operator.IN, [float(code) for text, code in attribute.codes.items() if text.startswith(prefix)]
    if attribute.kind != "text":
        raise CoverlayError(f"{attribute.name} is {attribute.kind}; prefix is for text and categorical attributes")
    if not prefix:
        return Operator.BETWEEN, list(attribute.domain)
    return Operator.BETWEEN, ONE.prefix(prefix)[0].tolist()


def _number(attribute: Attribute, value: Value, operator: Operator) -> float:
    """Bounds of an integer attribute may lie between whole numbers, values may not."""
    result = attribute.number(value)
    if attribute.kind == "text":
        return float(ONE.equals(str(value))[0, 0])  # refuses what is too long to be told apart
    if attribute.integral and operator not in _ORDERED and not result.is_integer():
        raise CoverlayError(f"{attribute.name} is integer; {quoted(value)} is not a whole number")
    return result


class _Range:
    """What the predicates seen so far leave of one attribute."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.low, self.high = -math.inf, math.inf
        self.excluded: set[float] = set()
        self.allowed: set[float] | None = None
        if attribute.kind == "categorical":
            self.low, self.high = 0.0, float(len(attribute.categories) - 1)

    def meet(self, operator: Operator, numbers: list[float]) -> None:
        match operator:
            case Operator.LESS:
                self.high = min(self.high, self._below(numbers[0]))
            case Operator.AT_MOST:
                self.high = min(self.high, numbers[0])
            case Operator.AT_LEAST:
                self.low = max(self.low, numbers[0])
            case Operator.GREATER:
                self.low = max(self.low, -self._below(-numbers[0]))
            case Operator.BETWEEN:
                self.low, self.high = max(self.low, numbers[0]), min(self.high, numbers[1])
            case Operator.EQUAL | Operator.IN:
                self.allowed = set(numbers) if self.allowed is None else self.allowed & set(numbers)
            case Operator.DIFFERENT | Operator.NOT_IN:
                self.excluded |= set(numbers)

    def _below(self, number: float) -> float:
        """The largest value below `number`; with both signs changed it serves > as well."""
        if self.attribute.integral:
            # Beyond 2^53 whole numbers are further apart than 1.
            return min(math.ceil(number) - 1.0, math.nextafter(number, -math.inf))
        return math.nextafter(number, -math.inf) + 0.0

    def settle(self) -> bool:
        """Bring what is left to the canonical form; False if nothing is left."""
        if self.attribute.integral:
            # Infinite bounds stay; the others move to the nearest whole number inside.
            self.low = float(math.ceil(self.low)) if math.isfinite(self.low) else self.low
            self.high = float(math.floor(self.high)) if math.isfinite(self.high) else self.high
        if self.allowed is not None:
            left = sorted(v for v in self.allowed if self.low <= v <= self.high and v not in self.excluded)
            self.excluded = set()
            if not left:
                return False
            self.low, self.high, self.allowed = left[0], left[-1], set(left) if len(left) > 1 else None
        else:
            while self.low in self.excluded:
                self.low = -self._below(-self.low)
            while self.high in self.excluded:
                self.high = self._below(self.high)
            self.low, self.high = self.low + 0.0, self.high + 0.0  # no −0.0
            self.excluded = {v for v in self.excluded if self.low <= v <= self.high}
            # Infinite on the wrong side: an open bound at the very end of the float64 range.
            if self.low > self.high or self.low == math.inf or self.high == -math.inf:
                return False
        if self.attribute.integral:
            self._say_gaps()
        return True

    def _say_gaps(self) -> None:
        """List gaps as excluded values if they are at most half of the hull, else list the allowed ones."""
        size = self.high - self.low + 1
        gaps = len(self.excluded) if self.allowed is None else size - len(self.allowed)
        if (2 * gaps <= size) == (self.allowed is None):
            return
        listed = self.excluded if self.allowed is None else self.allowed
        others = {v for v in map(float, range(int(self.low), int(self.high) + 1)) if v not in listed}
        self.excluded, self.allowed = (set(), others) if self.allowed is None else (others, None)
