"""Subscriptions and events as clients write them: values, printed in the language of parser.py.

A predicate keeps the operator it was written with, so < and ≤ stay apart although they compile to closed
bounds. Printing and parsing are inverse: `parse_subscription(str(s)) == s` for all that they compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from broker.schema import Floats, Schema, Value
from coverlay import CoverlayError

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


SETS = (Operator.IN, Operator.NOT_IN)
DEFAULT_WEIGHT = 1.0
DEFAULT_SCORE = 1.0


@dataclass(frozen=True)
class Predicate:
    """`attribute operator values`, with the weight it adds to a relaxed score when it holds."""

    attribute: str
    operator: Operator
    values: tuple[Value, ...]
    weight: float = DEFAULT_WEIGHT
    # Where the attribute and each value stand in the text it was parsed from, to point at a mistake.
    places: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        wanted = 2 if self.operator is Operator.BETWEEN else 1
        if self.operator not in SETS and len(self.values) != wanted:
            raise CoverlayError(f"{self.attribute} {self.operator} takes {wanted} values, not {len(self.values)}")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise CoverlayError(f"weight {self.weight!r} of {self.attribute} must be a number of at least 0")

    def __str__(self) -> str:
        if self.operator in SETS:
            said = "{" + ", ".join(map(_literal, self.values)) + "}"
        else:
            said = " and ".join(map(_literal, self.values))
        weight = "" if self.weight == DEFAULT_WEIGHT else f" weight {_literal(self.weight)}"
        return f"{self.attribute} {self.operator} {said}{weight}"


@dataclass(frozen=True)
class Subscription:
    """A conjunction of predicates with an owner and a score; `text` is what it was parsed from."""

    predicates: tuple[Predicate, ...]
    id: int = 0
    owner: str = ""
    broker: int | None = None  # the broker it is made at, where the client says so
    score: float = DEFAULT_SCORE
    text: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise CoverlayError(f"score {self.score!r} of subscription {self.id} must be a finite number")

    @property
    def weights(self) -> tuple[float, ...]:
        """One per predicate."""
        return tuple(predicate.weight for predicate in self.predicates)

    def __str__(self) -> str:
        said = " and ".join(map(str, self.predicates)) or EVERYTHING
        return said if self.score == DEFAULT_SCORE else f"{said} score {_literal(self.score)}"


@dataclass(frozen=True)
class Event:
    """Attribute values; attributes may be missing."""

    values: Mapping[str, Value]
    id: int = 0
    broker: int | None = None

    def encode(self, schema: Schema) -> Floats:
        return schema.encode(self.values)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {_literal(value)}" for name, value in self.values.items())


def _literal(value: Value) -> str:
    # JSON's escapes are the language's escapes; repr of a float is its shortest exact form.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
