"""What the readable scenarios share: chance, row by row, and workloads made of subscriptions in the language.

A scenario (stocks.py, ads.py, jobs.py, sensors.py) is a schema and two functions that write one subscription
and one event in the words of the language; the compiler that reads users' files makes columns of them. Every row
draws from its own line of uniform numbers, so that a prefix never changes (see contract.py). `attributes` = n keeps
the first n of the schema and drops what rows say about the others.

Cost: about 50 µs per row, for the compiler; fine for the thousands of rows that people look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from broker.language import Operator, Predicate, Subscription, compile_subscription
from broker.language.schema import Schema, Value
from coverlay import CoverlayError
from sim.random_streams import Stream
from sim.workloads.contract import Floats, Generator, Workload, from_filters
from sim.workloads.zipf_law import zipf_probabilities

T = TypeVar("T")
LINE = 24  # uniform numbers per row: more than any of our rows asks for


class Luck:
    """One row's line of uniform numbers, each used once."""

    def __init__(self, line: Floats) -> None:
        self._line = iter(line.tolist())

    def number(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * float(next(self._line))

    def chance(self, share: float) -> bool:
        return self.number() < share

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.number() * len(items))]

    def popular(self, items: Sequence[T], law: Floats) -> T:
        """One of the items by a cumulative law over their positions."""
        return items[min(int(np.searchsorted(law, self.number(), side="right")), len(items) - 1)]

    def around(self, middle: float, spread: float) -> float:
        """Roughly normal (Irwin–Hall of three): bounded by 3 spreads, so that values stay plausible."""
        return middle + 2.0 * spread * (self.number() + self.number() + self.number() - 1.5)


def popularity(count: int, skew: float) -> Floats:
    """The cumulative Zipf law over `count` ranks."""
    return np.cumsum(np.asarray(zipf_probabilities(count, skew)))


def rounded(value: float, step: float) -> float:
    """To the nearest step: people ask for round numbers, and so their wishes cover each other."""
    return round(round(value / step) * step, 6) + 0.0


def at_least(name: str, value: Value, weight: float = 1.0) -> Predicate:
    return Predicate(name, Operator.AT_LEAST, (value,), weight)


def at_most(name: str, value: Value, weight: float = 1.0) -> Predicate:
    return Predicate(name, Operator.AT_MOST, (value,), weight)


def between(name: str, low: Value, high: Value, weight: float = 1.0) -> Predicate:
    return Predicate(name, Operator.BETWEEN, (low, high), weight)


def one_of(name: str, values: Sequence[Value], weight: float = 1.0) -> Predicate:
    distinct = tuple(dict.fromkeys(values))
    return Predicate(name, Operator.EQUAL if len(distinct) == 1 else Operator.IN, distinct, weight)


def written(
    schema: Schema, subscribe: Callable[[Luck], Subscription], publish: Callable[[Luck], Mapping[str, Value]]
) -> Generator:
    """A scenario: `subscribe` and `publish` write one row each."""

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        if attributes > len(schema):
            names = ", ".join(schema.names)
            raise CoverlayError(f"workload.attributes is {attributes}; this scenario has {len(schema)}: {names}")
        if schema.place and len(set(schema.place) & set(range(attributes))) == 1:
            last = schema.names[attributes]
            raise CoverlayError(f"workload.attributes is {attributes}, which leaves half a place; {last} is missing")
        kept = Schema(schema.attributes[:attributes])
        asked = [subscribe(Luck(line)) for line in stream("workload.subscriptions").random((subscriptions, LINE))]
        happened = [publish(Luck(line)) for line in stream("workload.events").random((events, LINE))]
        points = np.full((events, attributes), np.nan)
        for row, values in enumerate(happened):
            points[row] = kept.encode({name: value for name, value in values.items() if name in kept.names})
        return from_filters(kept, [compile_subscription(kept, _about(wish, kept)) for wish in asked], points)

    return draw


def _about(subscription: Subscription, schema: Schema) -> Subscription:
    kept = tuple(p for p in subscription.predicates if p.attribute in schema.names)
    return replace(subscription, predicates=kept, near=subscription.near if schema.place else None)
