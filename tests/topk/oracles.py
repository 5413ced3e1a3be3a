"""Slow, obvious twins of what topk computes fast."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from coverlay import EARTH_RADIUS_KM
from topk import Catalogue


def top(catalogue: Catalogue, event: Sequence[float], k: int | None, semantics: str) -> list[tuple[int, float]]:
    return overlapping(catalogue, event, event, k, semantics)


def overlapping(
    catalogue: Catalogue, lo: Sequence[float], hi: Sequence[float], k: int | None, semantics: str = "exact"
) -> list[tuple[int, float]]:
    """Every row, one predicate at a time, then a full sort."""
    answers = []
    for row in range(len(catalogue)):
        named = [j for j in range(catalogue.dimensions) if catalogue.mentioned[row, j]]
        held = [j for j in named if meets(catalogue, row, j, float(lo[j]), float(hi[j]))]
        if semantics == "exact" and held == named:
            answers.append((int(catalogue.ids[row]), float(catalogue.scores[row])))
        if semantics == "relaxed" and held:
            total = 0.0
            for j in held:
                total += float(catalogue.weights[row, j])
            answers.append((int(catalogue.ids[row]), total))
    answers.sort(key=lambda pair: (-pair[1], pair[0]))
    return answers if k is None else answers[:k]


def meets(catalogue: Catalogue, row: int, attribute: int, low: float, high: float) -> bool:
    """Does the predicate hold for some value from low to high? A missing attribute (NaN) fails."""
    if math.isnan(low):
        return False
    excluded, allowed = catalogue.residues.get(row, ((), ()))
    if low == high and any(a == attribute and low in values for a, values in excluded):
        return False
    if any(a == attribute and not any(low <= v <= high for v in values) for a, values in allowed):
        return False
    return bool(catalogue.lo[row, attribute] <= high and low <= catalogue.hi[row, attribute])


def constraint_edges(intervals: Sequence[tuple[float, float]]) -> set[tuple[int, int]]:
    """The constraint graph by its definition; intervals in descending score order. O(n³).

    Witness points: every endpoint, and one point inside every gap between neighbouring endpoints.
    """
    ends = sorted({e for pair in intervals for e in pair})
    points = [*ends, *((a + b) / 2 for a, b in itertools.pairwise(ends))]

    def inside(i: int, q: float) -> bool:
        return intervals[i][0] <= q <= intervals[i][1]

    return {
        (i, j)
        for j in range(len(intervals))
        for i in range(j)
        if any(inside(i, q) and inside(j, q) and not any(inside(m, q) for m in range(i + 1, j)) for q in points)
    }


def arrangement(intervals: Sequence[tuple[float, float]]) -> list[int]:
    """Algorithm 1 by its definition; intervals in descending score order."""
    edges = constraint_edges(intervals)
    left = set(range(len(intervals)))
    placed = []
    while left:
        free = [j for j in left if not any(i in left for i, target in edges if target == j)]
        best = min(free, key=lambda i: (intervals[i][0], i))
        placed.append(best)
        left.remove(best)
    return placed


def great_circle(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Kilometres by atan2 of sine and cosine of the angle (the spherical case of Vincenty's formula)."""
    (lat, lon), (other_lat, other_lon) = (map(math.radians, place) for place in (a, b))
    turn = other_lon - lon
    east = math.cos(other_lat) * math.sin(turn)
    north = math.cos(lat) * math.sin(other_lat) - math.sin(lat) * math.cos(other_lat) * math.cos(turn)
    cosine = math.sin(lat) * math.sin(other_lat) + math.cos(lat) * math.cos(other_lat) * math.cos(turn)
    return EARTH_RADIUS_KM * math.atan2(math.hypot(east, north), cosine)
