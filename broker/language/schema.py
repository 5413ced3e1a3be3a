"""The schema: which attributes events have, what values they take, and how values become numbers.

Inside, every value is a float64: a continuous value is itself, an integer is the same whole number, a
category is its position in the list. Integers are limited to ±2⁵³, beyond which float64 skips some.
The bounds of an attribute are what events may carry; a subscription may reach beyond them.

A `text` is the number of its first six bytes (text_code.py), which keeps their order: a prefix is an interval. Longer
texts of events are cut to six bytes, so subscriptions name prefixes of up to six bytes and whole texts of up to five.

The place of an event is two attributes like any other, of the kinds `latitude` and `longitude` (degrees), both or
neither. Subscriptions restrict them with the usual predicates, or rank by nearness to a place (`near`).
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.language.text_code import ONE
from coverlay import CoverlayError, quoted, unknown_name

Floats = NDArray[np.float64]
Value = float | int | str

PLACE = ("latitude", "longitude")  # the kinds that make a place, and their bounds unless others are given
PLACE_BOUNDS = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 180.0)}
KINDS = ("continuous", "integer", "categorical", "text", *PLACE)
KEYWORDS = frozenset({"and", "between", "in", "not", "score", "true", "weight"})  # of the subscription language
NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Attribute:
    """One attribute; `continuous`, `integer`, `categorical` and `degrees` make one."""

    name: str
    kind: str
    low: float = 0.0
    high: float = 1.0
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name) or self.name.lower() in KEYWORDS:
            raise CoverlayError(
                f"attribute name {quoted(self.name)} must be a word of letters, digits, _ and ., not beginning with a "
                f"digit, that is not one of: {', '.join(sorted(KEYWORDS))}"
            )
        if self.kind not in KINDS:
            raise unknown_name(f"kind of attribute {self.name}:", self.kind, KINDS)
        if self.kind == "categorical":
            self._check_categories()
        elif self.kind != "text":
            self._check_bounds()

    def _check_categories(self) -> None:
        if not self.categories or not all(isinstance(c, str) for c in self.categories):
            raise CoverlayError(f"attribute {self.name} needs a list of texts as categories, at least one")
        repeated = [c for c in self.categories if self.categories.count(c) > 1]
        if repeated:
            raise CoverlayError(f"attribute {self.name} lists category {quoted(repeated[0])} more than once")

    def _check_bounds(self) -> None:
        for which, value in (("low", self.low), ("high", self.high)):
            if _finite(value) is None:
                raise CoverlayError(f"attribute {self.name}: {which} is {quoted(value)}; it must be a finite number")
            if self.kind == "integer" and not (float(value).is_integer() and abs(value) <= LARGEST_INTEGER):
                raise CoverlayError(
                    f"attribute {self.name}: {which} is {quoted(value)}; it must be a whole number within ±2^53"
                )
        if not self.low < self.high:
            raise CoverlayError(f"attribute {self.name}: low {quoted(self.low)} must be below high {quoted(self.high)}")
        if self.categories:
            raise CoverlayError(f"attribute {self.name} is {self.kind} and cannot have categories")
        if self.kind in PLACE:
            least, most = PLACE_BOUNDS[self.kind]
            if not (least <= self.low and self.high <= most):
                raise CoverlayError(
                    f"attribute {self.name} is a {self.kind} from {self.low!r} to {self.high!r}; "
                    f"degrees go from {least:g} to {most:g}"
                )

    @property
    def integral(self) -> bool:
        """Only whole numbers occur (integers, the positions of categories, the numbers of texts)."""
        return self.kind in ("integer", "categorical", "text")

    @property
    def domain(self) -> tuple[float, float]:
        """The bounds as numbers; a single category still gets a domain of positive width."""
        if self.kind == "categorical":
            return 0.0, float(max(len(self.categories) - 1, 1))
        if self.kind == "text":
            low, high = ONE.domain[0].tolist()
            return low, high
        return float(self.low), float(self.high)

    @cached_property
    def codes(self) -> dict[str, int]:
        return {category: code for code, category in enumerate(self.categories)}

    def number(self, value: object) -> float:
        """The number for a value in a subscription or an event; bounds are not enforced."""
        if self.kind == "categorical":
            if not isinstance(value, str) or value not in self.codes:
                shown = ", ".join(self.categories[:10]) + (", …" if len(self.categories) > 10 else "")
                raise CoverlayError(f"{self.name} has no category {quoted(value)}; there are: {shown}")
            return float(self.codes[value])
        if self.kind == "text":
            if not isinstance(value, str):
                raise CoverlayError(f"{self.name} is text; {quoted(value)} is not a text in quotes")
            return float(ONE.value(value)[0])
        result = _finite(value)
        if result is None:
            raise CoverlayError(f"{self.name} is {self.kind}; {quoted(value)} is not a finite number")
        if self.kind == "integer" and abs(result) > LARGEST_INTEGER:
            raise CoverlayError(f"{self.name} is integer; {quoted(value)} is beyond ±2^53")
        return result

    def encode(self, value: object) -> float:
        """The number for a value that an event carries."""
        result = self.number(value)
        if self.kind == "integer" and not result.is_integer():
            raise CoverlayError(f"{self.name} is integer; {quoted(value)} is not a whole number")
        low, high = self.domain
        if not low <= result <= high:
            raise CoverlayError(f"{self.name} is {quoted(value)}, outside its bounds {self.low!r} to {self.high!r}")
        return result

    def decode(self, number: float) -> Value:
        """The value behind a number that `encode` made."""
        if self.kind == "categorical":
            return self.categories[int(number)]
        if self.kind == "text":
            return ONE.text(number)
        return int(number) if self.kind == "integer" else float(number)


def _finite(value: object) -> float | None:
    """A value as a float; None if it is not a finite number that fits. Booleans do not count as numbers."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        result = float(value) + 0.0  # −0.0 becomes 0.0
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def continuous(name: str, low: float = 0.0, high: float = 1.0) -> Attribute:
    return Attribute(name, "continuous", low, high)


def integer(name: str, low: int, high: int) -> Attribute:
    return Attribute(name, "integer", low, high)


def degrees(name: str, kind: str, low: float | None = None, high: float | None = None) -> Attribute:
    """A latitude or longitude, from pole to pole and around the globe unless bounded."""
    least, most = PLACE_BOUNDS[kind]
    return Attribute(name, kind, least if low is None else low, most if high is None else high)


def categorical(name: str, categories: Sequence[str]) -> Attribute:
    return Attribute(name, "categorical", categories=tuple(categories))


@dataclass(frozen=True)
class Schema:
    """Attributes in a fixed order; their order is the order of the columns everywhere."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise CoverlayError("a schema needs at least one attribute")
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise CoverlayError(f"the schema names attribute {quoted(repeated[0])} more than once")
        found = [sum(a.kind == kind for a in self.attributes) for kind in PLACE]
        if found not in ([0, 0], [1, 1]):
            raise CoverlayError(
                f"the schema has {found[0]} attributes of kind latitude and {found[1]} of kind longitude; "
                "a place is one of each"
            )

    @staticmethod
    def uniform(count: int, low: float = 0.0, high: float = 1.0) -> Schema:
        """`count` continuous attributes a0, a1, … with the same bounds."""
        return Schema(tuple(continuous(f"a{i}", low, high) for i in range(count)))

    @staticmethod
    def from_table(table: Mapping[str, Any]) -> Schema:
        """From the [schema] table of an experiment file: name → {kind, low, high} or {kind, categories}."""
        if not isinstance(table, Mapping):
            raise CoverlayError(f"schema is {quoted(table)}; it must be a table of attributes")
        made = []
        for name, entry in table.items():
            if not isinstance(entry, Mapping) or "kind" not in entry:
                raise CoverlayError(f"schema.{name} is {quoted(entry)}; it must be a table with a kind")
            kind = entry["kind"]
            if kind not in KINDS:
                raise unknown_name(f"kind of attribute {name}:", kind, KINDS)
            needed = {"kind", *{"categorical": ("categories",), "text": ()}.get(kind, ("low", "high"))}
            optional = {"low", "high"} if kind in PLACE else set()
            if not needed - optional <= set(entry) <= needed:
                raise CoverlayError(
                    f"schema.{name} has the keys {', '.join(map(str, entry))}; "
                    f"a {kind} attribute has: {', '.join(sorted(needed))}"
                )
            categories, (low, high) = entry.get("categories", ()), PLACE_BOUNDS.get(kind, (0.0, 1.0))
            if isinstance(categories, str) or not isinstance(categories, Sequence):
                raise CoverlayError(f"schema.{name}.categories must be a list of texts")
            bounds = entry.get("low", low), entry.get("high", high)
            made.append(Attribute(name, kind, *bounds, tuple(categories)))
        return Schema(tuple(made))

    def __len__(self) -> int:
        return len(self.attributes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @cached_property
    def domain(self) -> Floats:
        """(d, 2) bounds as numbers."""
        return np.array([a.domain for a in self.attributes], dtype=np.float64)

    @cached_property
    def integral(self) -> tuple[bool, ...]:
        return tuple(a.integral for a in self.attributes)

    @cached_property
    def place(self) -> tuple[int, int] | None:
        """The columns of latitude and longitude, where events have a place."""
        columns = {a.kind: column for column, a in enumerate(self.attributes)}
        return (columns["latitude"], columns["longitude"]) if "latitude" in columns else None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """The column of an attribute."""
        if name not in self._positions:
            raise unknown_name("attribute", name, self.names)
        return self._positions[name]

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def encode(self, values: Mapping[str, object]) -> Floats:
        """An event as one number per attribute, NaN where it has no value."""
        event = np.full(len(self), np.nan)
        for name, value in values.items():
            event[self.index(name)] = self[name].encode(value)
        return event

    def decode(self, event: Floats) -> dict[str, Value]:
        """The values of an event; attributes it lacks are left out."""
        return {
            a.name: a.decode(float(number))
            for a, number in zip(self.attributes, event, strict=True)
            if not math.isnan(number)
        }
