"""Events of the sparse matchers: a predicate and a weight per attribute that the event has; one event, or many.

An event is an expression too (ICDE 2012, §III-C): a value, a range, or ≠, ∈, ∉. Kernels compare intervals (Table I)
and then verify the rest exactly, as for expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError
from topk.sparse.catalogue import Floats, Int32s, Ints, Predicate, mapped

Extra = tuple[Ints, Floats]  # what intervals cannot say: (attribute, excluded?, first value, number of values), values
PLAIN: Extra = (np.empty((0, 4), np.int64), np.empty(0))


@dataclass(frozen=True)
class Event:
    """Attributes ascend; a point event has lo == hi."""

    attributes: Int32s
    lo: Floats
    hi: Floats
    weights: Floats
    extra: Extra = field(default=PLAIN)

    @classmethod
    def of(cls, event: Any, dimensions: int) -> Event:
        """From an Event, a mapping attribute → value or (low, high), predicates, or a dense vector with NaN gaps."""
        if isinstance(event, Event):
            if len(event.attributes) and event.attributes[-1] >= dimensions:
                raise CoverlayError(f"the event has attribute {event.attributes[-1]}; there are {dimensions}")
            return event
        if isinstance(event, Mapping):
            predicates = [
                Predicate(a, "between", v) if isinstance(v, tuple) else Predicate(a, "=", v) for a, v in event.items()
            ]
        elif isinstance(event, np.ndarray):
            if event.shape != (dimensions,):
                raise CoverlayError(f"a dense event must have shape ({dimensions},), not {event.shape}")
            present = np.flatnonzero(~np.isnan(event))
            return cls(present.astype(np.int32), event[present], event[present], np.ones(len(present)))
        else:
            predicates = [Predicate(*p) for p in event]
        return cls._from_predicates(sorted(predicates, key=lambda p: p.attribute), dimensions)

    @classmethod
    def _from_predicates(cls, predicates: Sequence[Predicate], dimensions: int) -> Event:
        attributes, lo, hi, weights = [], [], [], []
        table: list[tuple[int, int, int, int]] = []
        listed: list[float] = []
        for predicate in predicates:
            interval = mapped(predicate.operator, predicate.value)
            for values, excluded in ((interval.excluded, 1), (interval.allowed, 0)):
                if values is not None:
                    table.append((predicate.attribute, excluded, len(listed), len(values)))
                    listed.extend(values)
            attributes.append(predicate.attribute)
            lo.append(interval.lo)
            hi.append(interval.hi)
            weights.append(predicate.weight)
        extra = (np.array(table, np.int64), np.array(listed)) if table else PLAIN
        columns = [np.array(v, np.float64) for v in (lo, hi, weights)]
        made = cls(np.array(attributes, np.int32), columns[0], columns[1], columns[2], extra)
        _check(made, dimensions)
        return made


def _check(event: Event, dimensions: int) -> None:
    a = event.attributes
    if len(a) and not (a[0] >= 0 and a[-1] < dimensions):
        wrong = a[(a < 0) | (a >= dimensions)][0]
        raise CoverlayError(f"attribute {wrong} of the event is not one of 0 to {dimensions - 1}")
    if (np.diff(a) <= 0).any():
        raise CoverlayError("an event has at most one interval per attribute")
    if not (event.lo <= event.hi).all():
        raise CoverlayError(f"an event's low must not exceed its high: {event.lo} and {event.hi}")
    if not (np.isfinite(event.weights).all() and (event.weights >= 0).all()):
        raise CoverlayError("event weights must be finite and not negative")


class Events(Sequence[Event]):
    """Many events in CSR arrays, as the batch calls want them."""

    def __init__(
        self,
        offsets: Ints,
        attributes: Int32s,
        lo: Floats,
        hi: Floats,
        weights: Floats,
        extras: Mapping[int, Extra] | None = None,
    ) -> None:
        self.offsets = offsets
        self.attributes = attributes
        self.lo = lo
        self.hi = hi
        self.weights = weights
        self.extras = dict(extras or {})  # by number of the event

    @classmethod
    def of(cls, events: Any, dimensions: int) -> Events:
        if isinstance(events, Events):
            return events
        single = [Event.of(event, dimensions) for event in events]
        offsets = np.concatenate([[0], np.cumsum([len(e.attributes) for e in single], dtype=np.int64)])
        if not single:
            nothing = np.empty(0)
            return cls(np.zeros(1, np.int64), np.empty(0, np.int32), nothing, nothing, nothing)
        parts = zip(*((e.attributes, e.lo, e.hi, e.weights) for e in single), strict=True)
        columns = [np.concatenate(part) for part in parts]
        extras = {i: e.extra for i, e in enumerate(single) if e.extra is not PLAIN}
        return cls(offsets.astype(np.int64), columns[0], columns[1], columns[2], columns[3], extras)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        at = slice(self.offsets[i], self.offsets[i + 1])
        extra = self.extras.get(i, PLAIN) if self.extras else PLAIN
        return Event(self.attributes[at], self.lo[at], self.hi[at], self.weights[at], extra)

    def __iter__(self) -> Iterator[Event]:
        return (self[i] for i in range(len(self)))


def weighted(event: Event, weights: ArrayLike) -> Event:
    """The same event with other weights."""
    return Event(event.attributes, event.lo, event.hi, np.asarray(weights, dtype=np.float64), event.extra)
