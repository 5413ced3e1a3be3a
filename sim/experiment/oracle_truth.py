"""Who is reached by an event, and with what score, from the columns of the workload alone.

Only mentioned attributes are looked at, row by row and attribute by attribute. Sums are added in that order
everywhere, so that scores agree to the last bit. No code is shared with the brokers' matching.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import EARTH_RADIUS_KM, kernel
from sim.workloads import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
KINDS = BOXES, PREDICATES, PLACES = 0, 1, 2
_KIND_OF = dict(zip(("boxes", "predicates", "places"), KINDS, strict=True))


PREDICATE = np.dtype(
    [("attribute", "i8"), ("lo", "f8"), ("hi", "f8"), ("weight", "f8"), ("first_list", "i8"), ("last_list", "i8")]
)


class Terms(NamedTuple):
    """All predicates, row by row, attributes ascending; and what else decides who is reached, with what score."""

    first: Ints  # (rows + 1,) where the predicates of a row begin
    predicates: NDArray[Any]  # of PREDICATE: bounds, weight, and where its lists of values begin and end
    lists: Ints  # (lists, 3) begin and end in `listed`; 1: these are excluded, 0: only these are allowed
    listed: Floats
    score: Floats  # (rows,) as the subscription has it
    near: Floats  # (rows, 3) latitude, longitude and α; NaN where it has no place
    kind: int
    relaxed: bool
    place: tuple[int, int]  # the attributes that are an event's place
    far: float  # distance at which closeness is 0
    globe: bool  # distances are great circles in kilometres; else Euclidean in degrees


def terms_of(
    workload: Workload,
    semantics: str,
    kind: str = "boxes",
    max_distance: float = 1.0,
    metric: str | None = None,
    order: Ints | None = None,
) -> Terms:
    """The predicates of a workload; row i of the result is row `order[i]` of the workload.

    Kind, distance and metric decide scores only; without them the terms say who is reached.
    """
    order = np.arange(len(workload.lo)) if order is None else order
    row, attribute = np.nonzero(workload.mentioned[order])
    at = order[row], attribute
    weight = workload.weights[at].astype(np.float64)
    if kind == "places":
        sums = np.bincount(row, weight, len(order))
        weight = weight / np.where(sums > 0, sums, 1.0)[row]
    near = np.full((len(order), 3), np.nan) if workload.near is None else workload.near[order]
    first = np.searchsorted(row, np.arange(len(order) + 1))
    first_list, lists, listed = _lists(workload, order, first, attribute)
    predicates = np.empty(len(row), PREDICATE)
    predicates["attribute"], predicates["weight"] = attribute, weight
    predicates["lo"], predicates["hi"] = workload.lo[at], workload.hi[at]
    predicates["first_list"], predicates["last_list"] = first_list[:-1], first_list[1:]
    return Terms(
        first,
        predicates,
        lists,
        listed,
        workload.scores[order].astype(np.float64),
        np.ascontiguousarray(near, dtype=np.float64),
        _KIND_OF[kind],
        semantics == "relaxed",
        workload.schema.place or (0, 0),
        float(max_distance),
        metric == "great-circle",
    )


def _lists(workload: Workload, order: Ints, first: Ints, attribute: Ints) -> tuple[Ints, Ints, Floats]:
    """Values that predicates exclude or allow (≠, in): where a predicate's lists begin, the lists, their values."""
    found: list[tuple[int, tuple[float, ...], bool]] = []
    for row in np.flatnonzero(np.isin(order, list(workload.residues))).tolist() if workload.residues else ():
        residue = workload.residues[int(order[row])]
        names = attribute[first[row] : first[row + 1]].tolist()
        for entries, excludes in ((residue.excluded, True), (residue.allowed, False)):
            found += [(int(first[row]) + names.index(a), values, excludes) for a, values in entries if a in names]
    found.sort(key=lambda item: item[0])
    ends = np.cumsum([len(values) for _, values, _ in found], dtype=np.int64)
    begins = ends - np.array([len(values) for _, values, _ in found], dtype=np.int64)
    lists = np.column_stack([begins, ends, np.array([excludes for *_, excludes in found], dtype=np.int64)])
    first_list = np.searchsorted(np.array([p for p, *_ in found], dtype=np.int64), np.arange(len(attribute) + 1))
    return first_list, lists, np.array([value for _, values, _ in found for value in values], dtype=np.float64)


# Arrays are passed one by one and inlined: unpacking a tuple for every row costs far more than the test.
inlined = kernel(inner=True, inline="always")


@inlined
def _holds(predicates: Any, lists: Any, listed: Any, predicate: int, values: Any) -> bool:
    """NaN (missing) fails every comparison."""
    it = predicates[predicate]
    value = values[it.attribute]
    holds = (it.lo <= value) & (value <= it.hi)
    for number in range(it.first_list, it.last_list):
        found = False
        for at in range(lists[number, 0], lists[number, 1]):
            found |= listed[at] == value
        holds &= found != (lists[number, 2] == 1)
    return holds


@inlined
def reached(first: Any, predicates: Any, lists: Any, listed: Any, relaxed: bool, row: int, values: Any) -> bool:
    """Exact: all predicates hold. Relaxed: at least one does. No branches: which ones fail is unpredictable."""
    held = 0
    for predicate in range(first[row], first[row + 1]):
        held += _holds(predicates, lists, listed, predicate, values)
    return held > 0 if relaxed else held == first[row + 1] - first[row]


@kernel(inner=True)
def _across(north: float, east: float, other_north: float, other_east: float) -> float:
    """Degrees between two places of a plane."""
    up, aside = north - other_north, east - other_east
    return math.sqrt(up * up + aside * aside)


@kernel(inner=True)
def _around(north: float, east: float, other_north: float, other_east: float) -> float:
    """Kilometres between two places of the globe, from the chord between them; NaN if the other one is unknown."""
    if math.isnan(other_north) or math.isnan(other_east):
        return math.nan
    lift, turn = math.radians(north), math.radians(east)
    other_lift, other_turn = math.radians(other_north), math.radians(other_east)
    x = math.cos(lift) * math.cos(turn) - math.cos(other_lift) * math.cos(other_turn)
    y = math.cos(lift) * math.sin(turn) - math.cos(other_lift) * math.sin(other_turn)
    z = math.sin(lift) - math.sin(other_lift)
    half = 0.5 * math.sqrt(x * x + y * y + z * z)
    return 2.0 * EARTH_RADIUS_KM * math.asin(min(half, 1.0))


@kernel(inner=True)
def score_of(terms: Any, row: int, values: Any, weights: Any) -> float:
    """The score of a row that is reached; `weights`: how much each attribute of the event counts."""
    if terms.kind == BOXES and not terms.relaxed:
        return float(terms.score[row])
    predicates, lists, listed = terms.predicates, terms.lists, terms.listed
    total = 0.0
    for predicate in range(terms.first[row], terms.first[row + 1]):
        if _holds(predicates, lists, listed, predicate, values):
            it = predicates[predicate]
            total += it.weight * weights[it.attribute] if terms.kind == PREDICATES else it.weight
    if terms.kind != PLACES:
        return total
    # ψ of Hu et al. (SSTD 2015), Eq. 1 to 4; without a place: α = 0.
    latitude, longitude, alpha = terms.near[row, 0], terms.near[row, 1], terms.near[row, 2]
    if math.isnan(alpha):
        return total
    there = values[terms.place[0]], values[terms.place[1]]
    apart = _around(latitude, longitude, *there) if terms.globe else _across(latitude, longitude, *there)
    close = 1.0 - apart / terms.far
    if not close > 0.0:  # too far away, or the event has no place
        close = 0.0
    return float((1.0 - alpha) * total + alpha * close)


@kernel
def _scores(terms: Any, values: Any, weights: Any) -> Any:
    scores = np.full(len(terms.score), np.nan)
    first, predicates, lists, listed, relaxed = terms.first, terms.predicates, terms.lists, terms.listed, terms.relaxed
    for row in range(len(scores)):
        if reached(first, predicates, lists, listed, relaxed, row, values):
            scores[row] = score_of(terms, row, values, weights)
    return scores


def scores_of(terms: Terms, values: Floats, weights: Floats | None = None) -> Floats:
    """The score of every row for one event; NaN where the event does not reach it."""
    weights = np.ones(len(values)) if weights is None else np.array(weights)
    found: Floats = _scores(terms, np.array(values), weights)  # copies: never read-only
    return found
