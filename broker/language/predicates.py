"""Subscriptions and events as clients write them: values, printed in the language of parser.py.

A predicate keeps the operator it was written with, so < and ≤ stay apart although they compile to closed
bounds. Printing and parsing are inverse: `parse_subscription(str(s)) == s` for every field that is compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from broker.language.schema import PLACE, PLACE_BOUNDS, Floats, Schema, Value
from coverlay import CoverlayError, quoted

EVERYTHING = "true"  # how a subscription without predicates is written


class Operator(StrEnum):
    LESS = "<"
    AT_MOST = "<="
    EQUAL = "="
    DIFFERENT = "!="
    AT_LEAST = ">="
    GREATER = ">"
    IN = "in"
    NOT_IN = "not in"
    BETWEEN = "between"
    PREFIX = "prefix"


SETS = (Operator.IN, Operator.NOT_IN)
DEFAULT_WEIGHT = 1.0
DEFAULT_SCORE = 1.0
DEFAULT_ALPHA = 0.5  # as in the example of Hu et al. (SSTD 2015)


@dataclass(frozen=True)
class Predicate:
    """`attribute operator values`, with the weight it adds to a relaxed score when it holds."""

    attribute: str
    operator: Operator
    values: tuple[Value, ...]
    weight: float = DEFAULT_WEIGHT
    # Where the attribute and each value are in the text it was parsed from, to point at a mistake.
    places: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        wanted = 2 if self.operator is Operator.BETWEEN else 1
        if self.operator not in SETS and len(self.values) != wanted:
            raise CoverlayError(
                f"{self.attribute} {self.operator} takes {wanted} value{'s' * (wanted > 1)}, not {len(self.values)}"
            )
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise CoverlayError(f"weight {quoted(self.weight)} of {self.attribute} must be a number of at least 0")

    def __str__(self) -> str:
        if self.operator in SETS:
            said = "{" + ", ".join(map(_literal, self.values)) + "}"
        else:
            said = " and ".join(map(_literal, self.values))
        weight = "" if self.weight == DEFAULT_WEIGHT else f" weight {_literal(self.weight)}"
        return f"{self.attribute} {self.operator} {said}{weight}"


@dataclass(frozen=True)
class Near:
    """Where a subscription would like events to happen, and how much that counts: α from 0 to 1.

    It ranks and never rejects: to insist on a region, restrict latitude and longitude with predicates.
    """

    latitude: float
    longitude: float
    alpha: float = DEFAULT_ALPHA
    place: int = field(default=0, compare=False, repr=False)  # where it is in the text

    def __post_init__(self) -> None:
        degrees(self.latitude, self.longitude)
        if not 0 <= self.alpha <= 1:
            raise CoverlayError(f"alpha {quoted(self.alpha)} must be a number from 0 to 1")

    def __str__(self) -> str:
        alpha = "" if self.alpha == DEFAULT_ALPHA else f" alpha {_literal(self.alpha)}"
        return f"near ({_literal(self.latitude)}, {_literal(self.longitude)}){alpha}"


def degrees(latitude: float, longitude: float) -> None:
    """Refuse what is not a place on the globe."""
    for kind, value in zip(PLACE, (latitude, longitude), strict=True):
        low, high = PLACE_BOUNDS[kind]
        if not low <= value <= high:
            raise CoverlayError(f"{kind} {quoted(value)} must be a number from {low:g} to {high:g}")


@dataclass(frozen=True)
class Subscription:
    """A conjunction of predicates with a score; `text` is what it was parsed from."""

    predicates: tuple[Predicate, ...]
    id: int = 0
    score: float = DEFAULT_SCORE
    near: Near | None = None
    text: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise CoverlayError(f"score {quoted(self.score)} of subscription {self.id} must be a finite number")

    def __str__(self) -> str:
        terms = [*self.predicates, *([] if self.near is None else [self.near])]
        said = " and ".join(map(str, terms)) or EVERYTHING
        return said if self.score == DEFAULT_SCORE else f"{said} score {_literal(self.score)}"


@dataclass(frozen=True)
class Event:
    """Attribute values, and perhaps how much each counts; attributes may be missing."""

    values: Mapping[str, Value]
    at: tuple[float, float] | None = None  # latitude and longitude
    weights: Mapping[str, float] = field(default_factory=dict)  # of attributes whose weight is not 1

    def __post_init__(self) -> None:
        if self.at is not None:
            degrees(*self.at)

    def encode(self, schema: Schema) -> Floats:
        """One number per attribute, the place included; NaN where there is none."""
        values = dict(self.values)
        if self.at is not None:
            if schema.place is None:
                raise CoverlayError('"at" needs attributes of the kinds latitude and longitude in the schema')
            for column, number in zip(schema.place, self.at, strict=True):
                if schema.names[column] in values:
                    raise CoverlayError(f'{schema.names[column]} has a value already; "at" would give it another')
                values[schema.names[column]] = number
        return schema.encode(values)

    def encode_weights(self, schema: Schema) -> Floats:
        """One weight per attribute, 1 where the event says nothing."""
        weights = np.ones(len(schema))
        for name, weight in self.weights.items():
            weights[schema.index(name)] = weight
        return weights

    def __str__(self) -> str:
        said = ", ".join(f"{name} = {_literal(value)}{self._weight(name)}" for name, value in self.values.items())
        if self.at is None:
            return said
        return f"{said} at ({_literal(self.at[0])}, {_literal(self.at[1])})".lstrip()

    def _weight(self, name: str) -> str:
        weight = self.weights.get(name, DEFAULT_WEIGHT)
        return "" if weight == DEFAULT_WEIGHT else f" weight {_literal(weight)}"


def _literal(value: Value) -> str:
    # JSON's escapes are the language's escapes; repr of a float is its shortest exact form.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
