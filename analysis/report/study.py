"""The study of ε: for each workload what approximate search saves and costs, with the bounds beside it, in words.

A case is a family of points (everything but routing and covering held fixed) with exact covering and several ε.
"Kept away" are the messages that simple routing, which covers nothing, would send and this setting does not. In a
tree without departures simple routing sends every subscription over every link: active × (brokers − 1) messages, as
many as it has table entries; elsewhere the ratios to no covering are unknown.

A probe of a curve method is a range of keys looked up, one of a k-d tree a word compared: of the same order, not the
same. "Pays" therefore asks for a margin (`CHEAPER`) over the cheapest exact search that the sweep has, and for nearly
all of what exact covering keeps away (`KEEPS`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.report.summary import Summary, family, number_text, value_text

BOUNDS_FILE = "bounds.json"  # written by sim/reproduce/theory_bounds.py, which may import the theory
LEAST = 5  # values of ε above 0 from which on a sweep is a study of ε
KEEPS = 0.95  # of what exact covering keeps away
CHEAPER = 0.5  # times the probes of the cheapest exact search
WORTH = 0.5  # of what exact covering keeps away: less is no trade
HARDLY = 0.01  # of the messages kept away: less is nothing to save
LEAST_SHARE = 1e-5  # below, a share is called less than this
USUAL = 0.1  # the ε to speak of where none keeps enough
CURVE_METHODS = {"zorder", "zorder-emulated", "hilbert"}  # those that the slides' bounds speak of


PAYS, TRADE, EXACT, NOTHING = "pays", "a trade", "use exact", "hardly any covers"


@dataclass(frozen=True)
class Row:
    """One method at one ε; NaN is unknown."""

    point: str
    method: str
    epsilon: float
    recall: float
    first_hop: float
    probes: float  # per check
    ranges: float  # key ranges per check
    volume: float
    entries: float
    messages: float
    entries_exact: float  # ratio to exact covering by the same method
    entries_none: float  # ratio to no covering
    messages_exact: float
    messages_none: float
    kept: float  # of what exact covering keeps away


@dataclass(frozen=True)
class Case:
    """One workload: its rows by method and ε, what theory says, and the verdict."""

    title: str
    rows: tuple[Row, ...]
    bounds: Mapping[str, Any]  # empty where unknown; see sim/reproduce/theory_bounds.py
    verdict: str  # PAYS, TRADE, EXACT or NOTHING
    sentence: str

    @property
    def pays(self) -> bool:
        return self.verdict == PAYS


def study(summary: Summary) -> list[Case]:
    """The cases of a sweep, by title; none where ε was not swept."""
    groups: dict[str, list[str]] = {}
    for point in summary.order:
        labels = summary.labels(point)
        if labels["strategy"] == "covering" and labels["epsilon"] == labels["epsilon"]:
            groups.setdefault(family(json.loads(point)), []).append(point)
    theory = read_bounds(summary.out)
    cases = []
    for name, points in groups.items():
        rows = _rows(summary, points)
        if rows and len({row.epsilon for row in rows if row.epsilon > 0}) >= LEAST:
            cases.append(_case(name, rows, theory.get(name, {})))
    return sorted(cases, key=lambda case: case.title)


def read_bounds(out: Path) -> dict[str, Mapping[str, Any]]:
    """The bounds that the sweep left in its folder, by family."""
    try:
        entries = json.loads((out / BOUNDS_FILE).read_text(encoding="utf-8"))
        return {entry["family"]: entry for entry in entries}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _rows(summary: Summary, points: list[str]) -> list[Row]:
    """A row per point whose method was also run exactly."""
    values = {point: _values(summary, point) for point in points}
    exact = {summary.labels(p)["method"]: values[p] for p in points if summary.labels(p)["epsilon"] == 0}
    rows = []
    for point in points:
        labels, mine = summary.labels(point), values[point]
        if labels["method"] not in exact:
            continue
        base, none = exact[labels["method"]], mine["none"]
        saved = none - base["messages"]
        rows.append(
            Row(
                point,
                str(labels["method"]),
                float(labels["epsilon"]),
                mine["recall"],
                mine["recall_first_hop"],
                mine["probes_per_check"],
                mine["key_ranges"] / mine["checks"] if mine["checks"] else math.nan,
                mine["volume"],
                mine["entries"],
                mine["messages"],
                _ratio(mine["entries"], base["entries"]),
                1 - mine["reduction"],
                _ratio(mine["messages"], base["messages"]),
                _ratio(mine["messages"], none),
                _ratio(none - mine["messages"], saved) if saved > 0 else math.nan,
            )
        )
    return rows


def _values(summary: Summary, point: str) -> dict[str, float]:
    names = ("recall", "recall_first_hop", "probes_per_check", "key_ranges", "checks", "volume", "entries", "reduction")
    values = {name: float(summary.value(point, name)["mean"]) for name in names}
    values["messages"] = float(summary.value(point, "control_messages")["mean"])
    runs = summary.runs[summary.runs["point"] == point]
    static = float(summary.value(point, "unsubscribe_messages")["mean"]) == 0
    values["none"] = float((runs["active"] * (runs["brokers"] - 1)).mean()) if static else math.nan
    return values


def _case(name: str, rows: list[Row], theory: Mapping[str, Any]) -> Case:
    verdict, sentence = _verdict(rows)
    return Case(_title(json.loads(name)), tuple(rows), theory, verdict, sentence)


def overall(cases: list[Case]) -> str:
    """How many workloads have which verdict, in one sentence."""
    count = {verdict: sum(case.verdict == verdict for case in cases) for verdict in (PAYS, TRADE, EXACT, NOTHING)}
    return (
        f"Of {len(cases)} workload{'s' * (len(cases) != 1)}, approximation pays in {count[PAYS]} and trades covers for "
        f"probes in {count[TRADE]}; in {count[EXACT]} exact search is the better choice, and in {count[NOTHING]} there "
        "is hardly anything to cover."
    )


def _title(fixed: Mapping[str, Any]) -> str:
    """What was held fixed, as one would say it: narrow uniform, d = 1."""
    words = [value for _, value in sorted(fixed.items(), reverse=True) if isinstance(value, str)]
    numbers = [
        f"{'d' if key == 'workload.attributes' else key} = {value_text(value)}"
        for key, value in sorted(fixed.items())
        if not isinstance(value, str)
    ]
    return ", ".join([*([" ".join(words)] if words else []), *numbers]) or "all"


def _verdict(rows: list[Row]) -> tuple[str, str]:
    """Does some ε pay, and the sentences that say so: what there is to save, what the greedy does, what is cheapest."""
    exact = min((row for row in rows if row.epsilon == 0), key=lambda row: row.probes)
    rough = [row for row in rows if row.epsilon > 0]
    away = 1 - exact.messages_none
    words = [f"Exact covering keeps {_share(away)} of the messages away."] if away == away else []
    if away < HARDLY:
        words.append("There is hardly anything to find, so that no search pays, exact or not.")
        return NOTHING, " ".join(words)
    curve = [row for row in rows if row.method in CURVE_METHODS]
    if curve:
        words.append(_greedy(curve))
    if not curve or exact.method not in CURVE_METHODS:
        words.append(f"Exact search by {exact.method} takes {_count(exact.probes)} probes.")
    worthy = [row for row in rough if row.probes <= CHEAPER * exact.probes and _keeps(row) >= KEEPS]
    if worthy:
        best = min(worthy, key=lambda row: (row.probes, row.messages))
        words.append(
            f"Approximation pays: {best.method} at ε = {best.epsilon:g} keeps {_share(_keeps(best))} of that for "
            f"{_share(best.probes / exact.probes)} of the probes of the cheapest exact search."
        )
        return PAYS, " ".join(words)
    cheap = [row for row in rough if row.probes <= CHEAPER * exact.probes]
    if cheap:
        best = max(cheap, key=lambda row: (_keeps(row), -row.probes))
        trade = _keeps(best) >= WORTH
        words.append(
            f"What takes at most half of these keeps {_share(_keeps(best))} of that at best ({best.method}, "
            f"ε = {best.epsilon:g}, {_count(best.probes)} probes): {'a trade' if trade else 'use exact covering'}."
        )
        return TRADE if trade else EXACT, " ".join(words)
    words.append("No ε takes half of these or less: use exact covering.")
    return EXACT, " ".join(words)


def _greedy(rows: list[Row]) -> str:
    """What the slides' search keeps and costs against itself at ε = 0: at the largest ε that keeps enough, else .1."""
    own = next(row for row in rows if row.epsilon == 0)
    rough = [row for row in rows if row.epsilon > 0 and row.method == own.method]
    enough = [row for row in rough if _keeps(row) >= KEEPS]
    shown = max(enough, key=lambda row: row.epsilon) if enough else min(rough, key=lambda row: abs(row.epsilon - USUAL))
    return (
        f"The greedy search over cubes ({own.method}) at ε = {shown.epsilon:g} keeps {_share(_keeps(shown))} of that "
        f"for {_share(_ratio(shown.probes, own.probes))} of its own probes at ε = 0 ({_count(shown.probes)} instead of "
        f"{_count(own.probes)} per check)."
    )


def _keeps(row: Row) -> float:
    """The share of exact covering's saving, or of its covers where the saving is unknown."""
    return row.kept if row.kept == row.kept else row.recall


def _ratio(one: float, other: float) -> float:
    return one / other if other else math.nan


def _share(share: float) -> str:
    if share >= HARDLY or share != share:
        return number_text(share, "share")
    if share <= 0:
        return "0 %"
    return f"{100 * share:.2g} %" if share >= LEAST_SHARE else f"less than {100 * LEAST_SHARE:g} %"


def _count(count: float) -> str:
    return number_text(count, "")


COLUMNS = (
    ("ε", "What may be skipped of the search region."),
    ("recall", "Covers found, of those that exact covering finds, per check."),
    ("first hop", "The same at the subscriber's own broker."),
    ("probes/check", "Key ranges looked up (curve methods) or words compared (k-d tree)."),
    (
        "bound",
        "The slides' upper bound on approximate search, constant 1, mean over regions; for ε = 0 their lower "
        "bound on exact search.",
    ),
    ("key ranges/check", "Cubes, or merged runs of cubes, of the curve methods."),
    ("searched", "Mean fraction of the search region that was searched."),
    ("table entries", "Of all brokers together, at the end."),
    ("× exact", "Entries as a multiple of exact covering's."),
    ("× none", "Entries as a multiple of routing without covering."),
    ("messages", "Control messages over links."),
    ("× exact", "Messages as a multiple of exact covering's."),
    ("× none", "Messages as a multiple of routing without covering."),
)


def row_texts(case: Case, row: Row) -> list[str]:
    """A row as text, in the order of COLUMNS."""
    return [
        "0 (exact)" if row.epsilon == 0 else f"{row.epsilon:g}",
        number_text(row.recall, "share"),
        number_text(row.first_hop, "share"),
        number_text(row.probes, ""),
        number_text(bound(case, row), ""),
        number_text(row.ranges, "") if row.ranges else "–",
        number_text(row.volume, "share"),
        number_text(row.entries, ""),
        number_text(row.entries_exact, ""),
        number_text(row.entries_none, ""),
        number_text(row.messages, ""),
        number_text(row.messages_exact, ""),
        number_text(row.messages_none, ""),
    ]


def bound(case: Case, row: Row) -> float:
    """The slides' bound for a curve method's row, NaN for other methods, which it says nothing about."""
    if not case.bounds or row.method not in CURVE_METHODS:
        return math.nan
    if row.epsilon == 0:
        return float(case.bounds["exact_lower"])
    return float(case.bounds["upper"].get(f"{row.epsilon:g}", math.nan))


def picture_rows(case: Case) -> list[dict[str, Any]]:
    """Measured probes and the bounds per ε, for the picture: series, x, y, text, kind."""
    found = []

    def add(series: str, epsilon: float, count: float, kind: str) -> None:
        if count == count and count > 0:
            x = "0 (exact)" if epsilon == 0 else f"{epsilon:g}"
            found.append({"series": series, "x": x, "y": count, "text": number_text(count, ""), "kind": kind})

    for row in case.rows:
        add(f"{row.method}, measured", row.epsilon, row.probes, "measured")
    theory = case.bounds
    if theory:
        add("lower bound on exact search", 0, theory["exact_lower"], "theory")
        add("runs of an exact search, closed form", 0, theory["exact_runs"], "theory")
        add("cubes of the greedy, closed form", 0, theory["exact_cubes"], "theory")
        for epsilon, count in theory["greedy"].items():
            add("cubes of the greedy, closed form", float(epsilon), count, "theory")
        for epsilon, count in theory["upper"].items():
            add("upper bound on approximate search", float(epsilon), count, "theory")
    return found


def shape(case: Case) -> str:
    """α and the shortest side, in words."""
    if not case.bounds:
        return ""
    alpha = case.bounds["alpha"]
    return (
        f"D = {case.bounds['dimensions']}, {case.bounds['bits']} bits per coordinate; aspect ratio α from "
        f"{alpha['low']} to {alpha['high']}, median {alpha['median']:g}; shortest side {case.bounds['shortest']:g} "
        f"cells at the median ({case.bounds['regions']} search regions)."
    )
