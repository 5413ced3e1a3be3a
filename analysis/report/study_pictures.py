"""The pictures of the study: what is kept and what is found against what it costs, with the slides' bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from analysis.report.numbers import number_text
from analysis.report.places import LOOKUPS, STORES, Place
from analysis.report.study import Case, Interval, Row, places_of
from analysis.report.study_words import cost_text, share_text, with_half

FARTHEST = 1000.0  # times the dearest search: a bound beyond would squeeze everything else into a corner
UPPER, LOWER = "slides’ upper bound on approximate search", "slides’ lower bound on exact search"
Dot = dict[str, Any]


def pictures(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """For each case: saving kept against time in each place of any index; saving and covers found against lookups."""
    found = []
    where = places_of(cases)
    for place in where:
        if place.unit != LOOKUPS:
            title = f"Saving kept against the cost of searching, {place.title}"
            found += [
                _picture(title, f"{place.unit} per subscription", kept_rows(case, [place]), case) for case in cases
            ]
    stores = [place for place in where if place.unit == LOOKUPS]
    if stores:
        title = "Saving kept against lookups, sorted keys only"
        found += [_picture(title, "lookups per subscription", kept_rows(case, stores), case) for case in cases]
        title, y = "Covers found against lookups, sorted keys only", {"y": "covers found, per check"}
        found += [{**_picture(title, "lookups per check", found_rows(case, stores), case), **y} for case in cases]
    return found


def _picture(title: str, x: str, rows: list[Dot], case: Case) -> dict[str, Any]:
    return {"kind": "trade", "title": title, "x": x, "y": "saving kept", "case": case.title, "rows": rows}


def kept_rows(case: Case, where: Sequence[Place]) -> list[Dot]:
    """A dot per search: what all its checks of a subscription cost and what it keeps, with 95 % intervals."""

    def of(row: Row) -> tuple[Interval, Interval, str]:
        cost = next(row.cost[place.title] for place in where if place.title in row.cost)
        text = cost_text(row, next(place for place in where if place.title in row.cost))
        return cost, row.kept, f"{text} per subscription, {with_half(row.kept)} of the saving"

    def checks(row: Row) -> float:
        return of(row)[0].mean / (row.values["round_trips_per_check"] or math.nan)

    rows = [row for row in case.rows if any(place.title in row.cost for place in where)]
    dots = _dots(rows, of)
    return [*dots, *_bounds(case, rows, dots, checks, lambda row: row.kept.mean)] if _in_lookups(where) else dots


def found_rows(case: Case, where: Sequence[Place]) -> list[Dot]:
    """A dot per search: the lookups of a check and the covers that it finds; means, because both are per check."""

    def of(row: Row) -> tuple[Interval, Interval, str]:
        cost, recall = row.values["round_trips_per_check"], row.values["recall"]
        text = f"{number_text(cost, '')} lookups per check, {share_text(recall)} of the covers"
        return Interval(cost, math.nan, math.nan), Interval(recall, math.nan, math.nan), text

    rows = [row for row in case.rows if any(place.title in row.cost for place in where)]
    dots = _dots(rows, of)
    return [*dots, *_bounds(case, rows, dots, lambda _: 1.0, lambda row: row.values["recall"])] if dots else []


def _in_lookups(where: Iterable[Place]) -> bool:
    return any(place in STORES for place in where)


def _dots(rows: Sequence[Row], of: Callable[[Row], tuple[Interval, Interval, str]]) -> list[Dot]:
    known = {row.point: values for row in rows if not math.isnan((values := of(row))[0].mean + values[1].mean)}
    best, front = -math.inf, set()
    for point, (_, kept, _) in sorted(known.items(), key=lambda item: (item[1][0].mean, -item[1][1].mean)):
        if kept.mean > best:
            best = kept.mean
            front.add(point)
    found = []
    for row in rows:
        if row.point in known:
            cost, kept, text = known[row.point]
            (low, high), (xlow, xhigh) = _ends(kept), _ends(cost)
            place = {"x": cost.mean, "y": kept.mean, "low": low, "high": high}
            place |= {"xlow": max(xlow, cost.mean / 10), "xhigh": xhigh}
            words = {"series": series(row), "name": row.name, "label": _label(row), "kind": "measured"}
            # Four digits are more than a picture shows, and a study has thousands of dots.
            found.append({**words, **_rounded(place), "front": row.point in front, "text": text})
    return found


def _rounded(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{number:.4g}") for name, number in numbers.items()}


def _ends(interval: Interval) -> tuple[float, float]:
    """The ends of the line through a dot; the dot itself for a single seed."""
    known = interval.low == interval.low
    return (interval.low, interval.high) if known else (interval.mean, interval.mean)


def series(row: Row) -> str:
    """The line of a search: its method with the resolution that was given, and what is changed along it."""
    words = [row.method, *([f"{row.given_bits} bits"] if row.given_bits else [])]
    if not row.exact and not row.epsilon > 0 and not row.in_store:
        words = [row.name.rsplit(" ", 1)[0]]  # budget, kdtree, node budget
    return ", ".join(words)


def _label(row: Row) -> str:
    """The name without what the legend already says: ε = 0.1 of the volume, 64, exact."""
    if row.exact:
        return "exact"
    if row.epsilon > 0:
        return next(words for words in row.name.split(", ") if words.startswith("ε"))
    return row.name.split(" ")[-1].strip("()")


def _bounds(
    case: Case, rows: Sequence[Row], dots: Sequence[Dot], checks: Callable[[Row], float], y: Callable[[Row], float]
) -> list[Dot]:
    """The slides' bounds as dots: where a search with this ε may be at most, and an exact one at least."""
    most = FARTHEST * max((dot["x"] for dot in dots), default=0.0)
    found = []
    for row in rows:
        theory = case.bounds.get(row.given_bits)
        if theory is None or not row.on_curve or not (row.exact or row.epsilon > 0):
            continue
        name = LOWER if row.exact else UPPER
        count = theory["exact_lower"] if row.exact else theory["upper"].get(f"{row.epsilon:g}", math.nan)
        x, kept = count * checks(row), y(row)
        if 0 < x <= most and kept == kept:
            place = _rounded({"x": x, "y": kept, "low": kept, "high": kept, "xlow": x, "xhigh": x})
            bits = f", {row.given_bits} bits" if row.given_bits else ""
            words = {"series": f"{name}{bits}", "name": f"{name}: {row.name}", "label": "", "kind": "theory"}
            found.append({**words, **place, "front": False, "text": f"{number_text(x, '')} lookups"})
    return found


def bound_rows(case: Case, bits: str) -> list[Dot]:
    """Measured probes of the curve methods and the bounds per ε, for the picture: series, x, y, text, kind.

    `bits`: the resolution that was given; empty: the searches that chose one.
    """
    theory, cubes = case.bounds[bits], "cubes of the greedy, closed form"
    curves = [row for row in case.rows if row.on_curve and row.given_bits == bits and (row.exact or row.epsilon > 0)]
    counts = [
        ("lower bound on exact search", 0.0, theory["exact_lower"], "theory"),
        ("runs of an exact search, closed form", 0.0, theory["exact_runs"], "theory"),
        (cubes, 0.0, theory["exact_cubes"], "theory"),
        *((cubes, float(epsilon), count, "theory") for epsilon, count in theory["greedy"].items()),
        *(("upper bound on approximate search", float(e), count, "theory") for e, count in theory["upper"].items()),
        *((f"{row.method}, measured", row.epsilon, row.values["probes_per_check"], "measured") for row in curves),
    ]
    found = []
    for series, epsilon, count, kind in sorted(counts, key=lambda count: count[1]):
        if count > 0:
            x = "0 (exact)" if epsilon == 0 else f"{epsilon:g}"
            found.append({"series": series, "x": x, "y": count, "text": number_text(count, ""), "kind": kind})
    return found
