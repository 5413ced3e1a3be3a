"""The pictures of the study: what is kept and what is found against what it costs, with the slides' bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from analysis.report.effects import Paired
from analysis.report.numbers import number_text
from analysis.report.places import LOOKUPS, STORES, Place
from analysis.report.study import Case, Row, places_of
from analysis.report.study_words import cost_text, share_text, with_half

FARTHEST = 1000.0  # times the dearest search: a bound beyond would squeeze everything else into a corner
SHARE = " of the (volume|covers)"  # what an ε is a share of
UPPER, LOWER = "slides’ upper bound, approximate", "slides’ lower bound, exact"
Dot = dict[str, Any]


def pictures(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """For each case: saving kept against time in each place of any index; saving and covers found against lookups."""
    where = places_of(cases)
    stores = [place for place in where if place.unit == LOOKUPS]
    found = []
    for places in [*([place] for place in where if place not in stores), *([stores] if stores else [])]:
        against = "lookups, sorted keys only" if places is stores else f"the cost of searching, {places[0].title}"
        x = f"{places[0].unit} per subscription"
        found += [_picture(f"Saving kept against {against}", x, kept_rows(case, places), case) for case in cases]
    if stores:
        title, y = "Covers found against lookups, sorted keys only", {"y": "covers found, per check"}
        found += [{**_picture(title, "lookups per check", found_rows(case, stores), case), **y} for case in cases]
    return found


def _picture(title: str, x: str, rows: list[Dot], case: Case) -> dict[str, Any]:
    """With a caption: seeds, intervals, the setting."""
    several = any(row["low"] != row["high"] for row in rows)
    bars = "bars: 95 % over seeds; across, of the cost as a multiple of exact search’s" if several else "means"
    grey = "Grey: no other search is cheaper and keeps as much, by the means. A dot without a name has no room for it."
    dashed = " Dashed: the slides’ bounds." if any(row["kind"] == "theory" for row in rows) else ""
    caption = f"{case.title}; {seeds_in_words(case)}; {bars}. {grey}{dashed}"
    found = {"kind": "trade", "title": title, "x": x, "y": "saving kept", "case": case.title, "rows": rows}
    return {**found, "caption": caption}


def seeds_in_words(case: Case) -> str:
    return f"{case.seeds} seed{'s' * (case.seeds != 1)}"


def kept_rows(case: Case, where: Sequence[Place]) -> list[Dot]:
    """A dot per search: what all its checks of a subscription cost and what it keeps, with 95 % intervals."""
    rows = {row.point: place for row in case.rows for place in reversed(where) if place.title in row.costs}

    def of(row: Row) -> tuple[Dot, str]:
        place = rows[row.point]
        cost, ratio = row.cost(place), row.ratio[place.title]
        text = f"{cost_text(row, place)} per subscription, {with_half(row.kept)} of the saving"
        return _place(cost, row.kept.value, cost * _half(ratio) / ratio.value, _half(row.kept)), text

    def checks(row: Row) -> float:
        return row.cost(rows[row.point]) / (row.values["round_trips_per_check"] or math.nan)

    shown = [row for row in case.rows if row.point in rows]
    dots = _dots(shown, of)
    return [*dots, *_bounds(case, shown, dots, checks, lambda row: row.kept.value)] if where[0] in STORES else dots


def found_rows(case: Case, where: Sequence[Place]) -> list[Dot]:
    """A dot per search: the lookups of a check and the covers that it finds; means, because both are per check."""

    def of(row: Row) -> tuple[Dot, str]:
        cost, recall = row.values["round_trips_per_check"], row.values["recall"]
        return _place(cost, recall), f"{number_text(cost, '')} lookups per check, {share_text(recall)} of the covers"

    shown = [row for row in case.rows if any(place.title in row.costs for place in where)]
    dots = _dots(shown, of)
    return [*dots, *_bounds(case, shown, dots, lambda _: 1.0, lambda row: row.values["recall"])] if dots else []


def _place(x: float, y: float, across: float = 0.0, half: float = 0.0) -> Dot:
    """Where a dot and the ends of its bars are; four digits are more than a picture shows."""
    ends = {"x": x, "y": y, "low": y - half, "high": y + half, "xlow": max(x - across, x / 10), "xhigh": x + across}
    return {name: float(f"{number:.4g}") for name, number in ends.items()}


def _half(ratio: Paired) -> float:
    return ratio.half if ratio.half == ratio.half else 0.0


def _dots(rows: Sequence[Row], of: Callable[[Row], tuple[Dot, str]]) -> list[Dot]:
    known = {row.point: here for row in rows if not math.isnan((here := of(row))[0]["x"] + here[0]["y"])}
    best, front = -math.inf, set()
    for point, (at, _) in sorted(known.items(), key=lambda item: (item[1][0]["x"], -item[1][0]["y"])):
        if at["y"] > best:
            best = at["y"]
            front.add(point)
    lines, found = {row.point: series(row) for row in rows if row.point in known}, []
    shares = {
        lines[row.point]: share[0] for row in rows if row.point in known and (share := re.search(SHARE, row.name))
    }
    for row in rows:
        if row.point in known:
            (at, text), line = known[row.point], lines[row.point]
            label = parameter(row) if [*lines.values()].count(line) > 1 else ""
            words = {"series": line + (f", ε{shares[line]}" if line in shares else ""), "name": row.name}
            found.append({**words, "label": label, "kind": "measured", **at, "front": row.point in front, "text": text})
    return found


def series(row: Row) -> str:
    """The line of a search: its method with the resolution that was given, and what is changed along it."""
    words = [row.method, *([f"{row.given_bits} bits"] if row.given_bits else [])]
    if not row.exact and not row.epsilon > 0 and not row.in_store:
        words = [row.name.rsplit(" ", 1)[0]]  # budget, kdtree, node budget
    return ", ".join(words)


def parameter(row: Row) -> str:
    """What tells a search from the others of its line, which says of what ε is a share: exact; ε = 0.1; 64."""
    epsilon = re.search(r"ε = [^\s,]+", row.name)
    return "exact" if row.exact else epsilon[0] if epsilon else row.name.rsplit(" ", 1)[-1]


def _bounds(
    case: Case, rows: Sequence[Row], dots: Sequence[Dot], checks: Callable[[Row], float], y: Callable[[Row], float]
) -> list[Dot]:
    """The slides' bounds as dots: where a search with this ε may be at most, and an exact one at least."""
    most = FARTHEST * max((dot["x"] for dot in dots), default=0.0)
    found: list[Dot] = []
    for row in rows:
        theory = case.bounds.get(row.given_bits)
        if theory is None or not row.on_curve or not (row.exact or row.epsilon > 0):
            continue
        name = LOWER if row.exact else UPPER
        count = theory["exact_lower"] if row.exact else theory["upper"].get(f"{row.epsilon:g}", math.nan)
        x, kept = count * checks(row), y(row)
        if 0 < x <= most and kept == kept:
            bits = f", {row.given_bits} bits" if row.given_bits else ""
            line = f"{name}{bits}"
            words = {"series": line, "name": f"{name}: {row.name}", "label": "", "kind": "theory"}
            found.append({**words, **_place(x, kept), "front": False, "text": f"{number_text(x, '')} lookups"})
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
