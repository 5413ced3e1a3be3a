"""Widest first: an order of filters in which nothing precedes what contains it.

The key of a box, each part larger for what contains it, or equal:

1. its unbounded *sides* (faces: an attribute has two);
2. its size: the distances from each bounded side to the opposite end of the domain, in widths of the domain, added up
   attribute by attribute. With as many unbounded sides as what it contains, a box has the same ones;
3. the bounds themselves, (−lo, hi) of each attribute in turn, where rounding hides the difference.

A box that strictly contains another is therefore strictly before it. Among equal boxes `finer` decides.

Cost: O(n · d), a sort of n keys, and one of the boxes that are equal in 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FARTHEST = 1e300  # a distance beyond this counts as this, so that a sum of them is a number


def sizes(boxes: Floats, domain: Floats) -> tuple[Ints, Floats]:
    """(unbounded sides, size) of boxes (n, d, 2): neither is smaller for a box than for one that it contains.

    Sizes of boxes with different unbounded sides say nothing about containment.
    """
    bounded = boxes != np.array([-np.inf, np.inf])  # a box [inf, inf] has one bounded side
    size = np.zeros(len(boxes))
    with np.errstate(over="ignore", invalid="ignore"):
        widths = domain[:, 1] - domain[:, 0]
        widths = np.where(np.isfinite(widths) & (widths > 0.0), widths, 1.0)
        for j, (low, high) in enumerate(domain):
            for side, distance in ((0, high - boxes[:, j, 0]), (1, boxes[:, j, 1] - low)):
                share = np.clip(distance / widths[j], -_FARTHEST, _FARTHEST)
                size += np.where(bounded[:, j, side], share, 0.0)
    return (~bounded).sum(axis=(1, 2)), size


def places(boxes: Floats, domain: Floats, finer: Callable[[int], Any] | None = None) -> Ints:
    """The place of each box (n, d, 2) among these, widest first. Equal boxes share a place, unless `finer` differs.

    `finer`: a key of the n-th one, smaller for what contains more, asked only where boxes are equal.
    """
    sides, size = sizes(boxes, domain)
    place = _numbered([-sides, -size])
    tied = _sharing(place)
    if len(tied):
        bounds = [column for row in boxes[tied].transpose(1, 2, 0) for column in (row[0], -row[1])]
        place = _apart(place, tied, bounds)
    if finer is not None and len(tied := _sharing(place)):
        keys = [finer(row) for row in tied.tolist()]
        order = {key: number for number, key in enumerate(sorted(set(keys)))}
        place = _apart(place, tied, [np.array([order[key] for key in keys])])
    return place


def _numbered(columns: Sequence[NDArray[Any]]) -> Ints:
    """Numbers that ascend as the columns do, the first column first; equal rows share one."""
    order = np.lexsort(columns[::-1])
    differs = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    numbers = np.empty(len(order), np.int64)
    numbers[order[:1]], numbers[order[1:]] = 0, np.cumsum(differs)
    return numbers


def _sharing(place: Ints) -> Ints:
    """The rows whose place another one has too."""
    return np.flatnonzero(np.bincount(place)[place] > 1)


def _apart(place: Ints, tied: Ints, columns: Sequence[NDArray[Any]]) -> Ints:
    """The places once columns of the tied rows tell these apart."""
    among = np.zeros_like(place)
    among[tied] = _numbered(columns)
    return _numbered([place, among])
