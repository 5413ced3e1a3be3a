"""A compiled subscription: what routing compares, suppresses and matches. It knows no names, only arrays.

A filter is a box of closed bounds, one row per attribute, and a residue (excluded and allowed values) for
what a box cannot say. An event is one number per attribute, NaN where the event lacks the attribute.

Meaning, which every faster matcher is tested against:
- an attribute is *mentioned* iff its row is bounded or the residue speaks about it;
- an attribute holds iff its value is present, within the row, not excluded, and in the allowed set if any;
- exact: the event matches iff all mentioned attributes hold, and scores `score`;
- relaxed: it scores the sum of the weights of the mentioned attributes that hold, nothing if none does.

`near` (latitude, longitude, α) ranks events that match and never rejects one, so plain routing ignores it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from covering.residue import EMPTY, Residue
from covering.subtraction import PIECES, left_over
from covering.widest_first import places

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Filter:
    """Box (d, 2), residue, which attributes are mentioned, their weights (0 where not), and the score."""

    box: Floats
    residue: Residue
    mentioned: tuple[bool, ...]
    weights: Floats
    score: float = 1.0
    near: tuple[float, float, float] | None = None

    @staticmethod
    def of_box(box: Floats, residue: Residue = EMPTY, weights: Floats | None = None, score: float = 1.0) -> Filter:
        """From bounds alone: an attribute is mentioned if it is bounded or in the residue; weight 1 each."""
        bounds = np.array(box, dtype=np.float64) + 0.0  # a copy, and −0.0 becomes 0.0: one set, one key
        spoken = np.isfinite(bounds[:, 0]) | np.isfinite(bounds[:, 1])
        for attribute, _ in (*residue.excluded, *residue.allowed):
            spoken[attribute] = True
        weight = np.where(spoken, 1.0 if weights is None else weights, 0.0).astype(np.float64)
        return Filter(bounds, residue, tuple(map(bool, spoken)), weight, float(score))

    @cached_property
    def key(self) -> bytes:
        """Equal for filters that admit the same events in the same canonical form; for identity routing."""
        parts = [np.packbits(self.mentioned).tobytes(), np.ascontiguousarray(self.box + 0.0).tobytes()]
        for tag, entries in ((b"-", self.residue.excluded), (b"+", self.residue.allowed)):
            for attribute, values in entries:
                parts.append(tag + struct.pack("<ii", attribute, len(values)))
                parts.append(np.array(values, dtype=np.float64).tobytes())
        return b"".join(parts)

    @cached_property
    def digest(self) -> int:
        """64 bits that tell filters apart, by all that brokers use: what they admit and how they rank."""
        ranks = struct.pack("<d", self.score) + self.weights.tobytes()
        near = b"" if self.near is None else struct.pack("<ddd", *self.near)
        return int.from_bytes(blake2b(self.key + ranks + near, digest_size=8).digest(), "little")

    @cached_property
    def named(self) -> NDArray[np.int32]:
        """The attributes that are mentioned, ascending: often a few of hundreds."""
        return np.flatnonzero(self.mentioned).astype(np.int32)

    @cached_property
    def bounds(self) -> Floats:
        """(mentioned, 2) the rows of the box for these attributes."""
        return self.box[self.named]

    @property
    def plain(self) -> bool:
        """The box says it all."""
        return self.residue == EMPTY

    def holds(self, attribute: int, value: float) -> bool:
        """Does this value satisfy what the filter says about the attribute? NaN satisfies nothing."""
        low, high = self.box[attribute]
        return (
            bool(low <= value <= high)
            and all(value not in values for a, values in self.residue.excluded if a == attribute)
            and all(value in values for a, values in self.residue.allowed if a == attribute)
        )

    def matches(self, event: Floats) -> bool:
        return all(self.holds(a, float(event[a])) for a in self.named.tolist())

    def relaxed_score(self, event: Floats) -> float | None:
        score = None
        for a in self.named.tolist():
            if self.holds(a, float(event[a])):
                # One after the other, as kernels add: `sum` rounds differently from Python 3.12 on.
                score = (score or 0.0) + float(self.weights[a])
        return score

    def contains(self, other: Filter, integral: tuple[bool, ...] | None = None) -> bool:
        """Does every event that matches `other` match this one (as far as `Residue.implied_by` can tell)?"""
        inside = (self.box[:, 0] <= other.box[:, 0]).all() and (self.box[:, 1] >= other.box[:, 1]).all()
        return bool(inside) and self.residue.implied_by(other.box, other.residue, integral)

    def check(self) -> None:
        """Raise AssertionError unless the parts fit together."""
        count = len(self.mentioned)
        assert self.box.shape == (count, 2), "one row of bounds per attribute"
        assert (self.box[:, 0] <= self.box[:, 1]).all(), "bounds are in order and not NaN"
        spoken = {a for a, _ in (*self.residue.excluded, *self.residue.allowed)}
        for attribute in range(count):
            bounded = bool(np.isfinite(self.box[attribute]).any())
            assert self.mentioned[attribute] == (bounded or attribute in spoken), "mentioned iff restricted"
        assert self.weights.shape == (count,), "one weight per attribute"
        assert not self.weights[~np.array(self.mentioned, dtype=bool)].any(), "no weight on the unmentioned"


def takes_no_more(boxes: Floats, box: Floats) -> NDArray[np.bool_]:
    """Which boxes leave unbounded every attribute that `box` does? Only these match events that lack it."""
    return np.asarray(np.isinf(boxes[:, np.isinf(box).all(axis=1)]).all(axis=(1, 2)))


def contain_together(filters: list[Filter], other: Filter, integral: tuple[bool, ...] | None = None) -> bool:
    """Does every event that matches `other` match one of these? It may only err towards no, like `contains`."""
    if len(filters) == 1:
        return filters[0].contains(other, integral)
    boxes = np.array([f.box for f in filters])
    fit = all(f.residue.implied_by(other.box, other.residue, integral) for f in filters)
    return fit and bool(takes_no_more(boxes, other.box).all()) and left_over(other.box, boxes, PIECES)[0] == 0


def widest_first(
    filters: Mapping[int, Filter], domain: Floats, finer: Callable[[int, Filter], tuple[float, ...]]
) -> list[int]:
    """Subscriptions, ordered so that nothing precedes what contains it; what is alike in the order given.

    `domain`: rows beyond the attributes of the filters, such as those for a rank, are left out.
    `finer`: what decides between filters of the same box, smaller for what contains more.
    """
    names = list(filters)
    if len(names) < 2:
        return names
    boxes = np.array([filters[name].box for name in names])
    place = places(boxes, domain[: boxes.shape[1]], lambda row: finer(names[row], filters[names[row]]))
    return [names[row] for row in np.argsort(place, kind="stable")]


class FilterTable:
    """Filters by subscription."""

    def __init__(self) -> None:
        self._filters: dict[int, Filter] = {}

    def add(self, subscription: int, filter: Filter) -> None:
        self._filters[subscription] = filter

    def remove(self, subscription: int) -> None:
        del self._filters[subscription]

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._filters

    @property
    def filters(self) -> Mapping[int, Filter]:
        return self._filters
