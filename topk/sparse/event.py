"""Events of the sparse matchers: a predicate and a weight per attribute that the event has; one event, or many.

An event is an expression too (ICDE 2012, §III-C): a value, a range, or ≠, ∈, ∉. Kernels compare intervals (Table I)
and then verify the rest exactly, as for expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coverlay import CoverlayError, kernel, quoted
from topk.checks import Floats, Ints, numbers
from topk.predicates import Int32s, in_columns

Extra = tuple[Ints, Floats]  # what intervals cannot say: (attribute, excluded?, first value, number of values), values

_FINE, _NEGATIVE, _TWICE, _MISSING, _INVERTED, _WEIGHT = range(6)
_COMPLAINTS = {
    _NEGATIVE: "attribute {attribute} of the event is negative; attributes are numbered from 0",
    _TWICE: "an event's attributes must ascend, one interval each; attribute {attribute} does not fit",
    _MISSING: "attribute {attribute} of the event is not a number; leave out what the event does not have",
    _INVERTED: "an event's low must not exceed its high: {lo} and {hi}",
    _WEIGHT: "event weights must be finite and not negative, not {weight}",
}


@kernel
def _first_flaw(offsets: Any, attributes: Any, lo: Any, hi: Any, weights: Any) -> Any:
    """What is wrong with these events first, and with which interval."""
    for e in range(len(offsets) - 1):
        for i in range(offsets[e], offsets[e + 1]):
            if attributes[i] < 0:
                return _NEGATIVE, i
            if i > offsets[e] and attributes[i] <= attributes[i - 1]:
                return _TWICE, i
            if np.isnan(lo[i]) or np.isnan(hi[i]):
                return _MISSING, i
            if lo[i] > hi[i]:
                return _INVERTED, i
            if not 0.0 <= weights[i] < np.inf:
                return _WEIGHT, i
    return _FINE, 0


def _checked(offsets: Ints, attributes: Any, *columns: Any) -> tuple[Any, ...]:
    """The columns as kernels take them; CoverlayError if they are not valid intervals of these events."""
    named = np.asarray(attributes)
    if named.size and (named.dtype.kind not in "iu" or (named != named.astype(np.int32)).any()):
        raise CoverlayError(f"an event's attributes must be whole numbers of 32 bits, not {quoted(attributes)}")
    named = np.ascontiguousarray(named, np.int32)
    values = [np.ascontiguousarray(numbers("an event's intervals and weights", column)) for column in columns]
    if named.ndim != 1 or any(column.shape != named.shape for column in values):
        raise CoverlayError("an event has one attribute, low, high and weight per interval")
    if offsets[0] != 0 or offsets[-1] != len(named) or (np.diff(offsets) < 0).any():
        raise CoverlayError(f"offsets of events must rise from 0 to the number of their intervals, {len(named)}")
    flaw, at = _first_flaw(offsets, named, *values)
    if flaw != _FINE:
        lo, hi, weight = (column[at] for column in values)
        raise CoverlayError(_COMPLAINTS[flaw].format(attribute=named[at], lo=lo, hi=hi, weight=weight))
    return (named, *values)


def _check_dimensions(attributes: Int32s, dimensions: int) -> None:
    if len(attributes) and attributes.max() >= dimensions:
        raise CoverlayError(f"attribute {attributes.max()} of the event is not one of 0 to {dimensions - 1}")


@dataclass(frozen=True)
class Event:
    """Attributes ascend; a point event has lo == hi."""

    attributes: Int32s
    lo: Floats
    hi: Floats
    weights: Floats
    extra: Extra | None = None  # None for most

    def __post_init__(self) -> None:
        ends = np.array([0, len(np.atleast_1d(self.attributes))])
        columns = _checked(ends, self.attributes, self.lo, self.hi, self.weights)
        for name, column in zip(("attributes", "lo", "hi", "weights"), columns, strict=True):
            object.__setattr__(self, name, column)

    @classmethod
    def of(cls, event: Any, dimensions: int) -> Event:
        """From an Event, a mapping attribute → value or (low, high), predicates, or a dense vector with NaN gaps."""
        made = event if isinstance(event, Event) else cls._made(event, dimensions)
        _check_dimensions(made.attributes, dimensions)
        return made

    @classmethod
    def _made(cls, event: Any, dimensions: int) -> Event:
        if isinstance(event, np.ndarray):
            values = numbers("an event", event)
            if values.shape != (dimensions,):
                raise CoverlayError(f"a dense event must have shape ({dimensions},), not {values.shape}")
            present = np.flatnonzero(~np.isnan(values))
            return cls(present.astype(np.int32), values[present], values[present], np.ones(len(present)))
        if dimensions == 1 and isinstance(event, (int, float, np.number)) and not isinstance(event, bool):
            event = {0: event}
        if isinstance(event, Mapping):
            event = [(a, "between" if isinstance(v, tuple) else "=", v) for a, v in event.items()]
        if isinstance(event, str) or not isinstance(event, Iterable):
            raise CoverlayError(f"an event is a mapping, predicates or an array of numbers, not {quoted(event)}")
        attributes, lo, hi, weights, odd = in_columns(event)
        table: list[tuple[int, int, int, int]] = []
        listed: list[float] = []
        for attribute, excluded, these in odd:
            table.append((attribute, excluded, len(listed), len(these)))
            listed.extend(these)
        extra = (np.array(table, np.int64), np.array(listed)) if table else None
        return cls(np.array(attributes, np.int64), np.array(lo), np.array(hi), np.array(weights, object), extra)


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
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        self.attributes, self.lo, self.hi, self.weights = _checked(self.offsets, attributes, lo, hi, weights)
        self.extras = dict(extras or {})  # by number of the event

    @classmethod
    def of(cls, events: Any, dimensions: int) -> Events:
        if isinstance(events, Events):
            _check_dimensions(events.attributes, dimensions)
            return events
        if isinstance(events, str) or not isinstance(events, Iterable):
            raise CoverlayError(f"events must be a sequence of events, not {quoted(events)}")
        single = [Event.of(event, dimensions) for event in events]
        offsets = np.cumsum([0, *(len(e.attributes) for e in single)])
        columns = ([getattr(e, name) for e in single] for name in ("attributes", "lo", "hi", "weights"))
        joined: Any = (np.concatenate(column) if single else np.empty(0) for column in columns)
        attributes, lo, hi, weights = joined
        extras = {i: e.extra for i, e in enumerate(single) if e.extra is not None}
        return cls(offsets, attributes, lo, hi, weights, extras)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        at = slice(self.offsets[i], self.offsets[i + 1])
        return Event(self.attributes[at], self.lo[at], self.hi[at], self.weights[at], self.extras.get(i))
