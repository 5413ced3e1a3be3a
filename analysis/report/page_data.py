"""The data of the report's pictures: every point's metrics, the axes to choose from, a study's workloads.

The page contains it as JSON; templates/report.js draws it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.report.answer import Answer, differing
from analysis.report.effects import Effects, lacks
from analysis.report.numbers import value_text
from analysis.report.overlay_data import MEASURES
from analysis.report.page_tables import study_tables
from analysis.report.shown_settings import is_large
from analysis.report.study import MAYBE, PAYS, Case, is_study
from analysis.report.study_pictures import bound_rows, pictures, seeds_in_words
from analysis.report.table import NONE, alike, metric_text
from analysis.spark.metrics import CATALOGUE

# The pictures every report has, in this order: heading, metrics, what to look for.
CHARTS = (
    ("Table size", ("entries",), "Routing-table entries of all brokers together, at the end. Less is better."),
    ("Recall of covering", ("recall",), "Covers found, of those that exact covering finds."),
    ("Search cost", ("check_time",), "What a covering check takes, in µs, by the profile of broker.service."),
    (
        "Probes",
        ("probes_per_check",),
        "Stored entries or key ranges looked at per covering check. A probe is not the same in every method.",
    ),
    ("Time to settle", ("convergence_p95", "convergence_mean"), "Until a subscription is known wherever it must be."),
    ("Control messages", ("control_messages",), "Over links: subscribing, unsubscribing, advertisements, recovery."),
    ("Event messages", ("event_messages", "false_positives"), "Events over links, and those that were needless."),
    ("Latency", ("latency_p95", "latency_p50", "latency_p99"), "From publication to delivery, in ms."),
)


def charts_that_differ(effects: Effects, answered: Answer) -> tuple[list[dict[str, Any]], str]:
    """The pictures of CHARTS that differ and that the answer lacks; a sentence about what does not differ.

    What repeats the numbers of a picture before it is no picture: control messages where none of them is taken back.
    """
    before = [name for picture in answered.pictures for name in picture.get("metrics", ())]
    drawn, same = [], []
    for number, (title, metrics, caption) in enumerate(CHARTS):
        known = [name for name in metrics if effects.summary.means(name)]
        different = differing(effects, known)
        if not different:
            same += known
        elif not {*before} & {*known}:
            new = [name for name in differing(effects, [*before, *different]) if name not in before]
            before += new
            drawn += [{"id": f"chart-{number}", "title": title, "metrics": new, "caption": caption}] if new else []
    return drawn, alike(effects, same)


def bounded(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """mean, low, high and n; intervals are cut to the range of the quantity, and one seed has none."""
    metric, shown = CATALOGUE[name], {key: value[key] for key in ("mean", "low", "high", "n")}
    if value["n"] < 2:
        return {**shown, "mean": _short(shown["mean"]), "low": None, "high": None}
    if not metric.signed:
        shown["low"] = max(0.0, shown["low"])
    if metric.unit == "share":
        shown["high"] = min(1.0, shown["high"])
    return {key: _short(number) for key, number in shown.items()}


def _short(number: float) -> float:
    """Six digits: a picture shows no more, and the page of a large sweep would be twice as long."""
    return float(f"{number:.6g}")


def dimensions_of(effects: Effects) -> list[dict[str, Any]]:
    """What a plot can be drawn against: every factor, its levels in order, and the level of each point.

    Numbers first, if there are enough for a line; then what has most levels.
    """
    found = []
    for factor in sorted(
        effects.factors, key=lambda factor: (not factor.numbers or len(factor.levels) < 3, -len(factor.levels))
    ):
        values = {
            level: value_text(json.loads(level)[factor.keys[0]]) if factor.numbers else factor.names[level]
            for level in factor.levels
        }
        found.append(
            {
                "name": factor.title,
                "title": factor.title,
                "values": [*values.values()],
                "numeric": bool(factor.numbers),
                "said": f"{factor.title} " if factor.numbers else "",
                "of": {point: values[level] for point, level in factor.of.items()},
            }
        )
    only = str(effects.summary.labels(effects.summary.order[0])["strategy"])
    alone = {"name": "strategy", "title": "strategy", "values": [only], "numeric": False, "said": ""}
    return found or [{**alone, "of": dict.fromkeys(effects.summary.order, only)}]


def plot_data(
    effects: Effects,
    answer: Answer,
    charts: list[dict[str, Any]],
    nets: list[dict[str, Any]],
    cases: list[Case],
) -> dict[str, Any]:
    summary = effects.summary
    dimensions = dimensions_of(effects)
    points = []
    shown = [name for name in CATALOGUE if summary.means(name)]
    if is_large(summary):  # then only metrics that are drawn
        drawn = {*answer.metrics, *(name for _, metrics, _ in CHARTS for name in metrics)}
        shown = [name for name in shown if name in drawn]
    # A large study has pictures of its own.
    for point in summary.order if not (is_study(cases) and is_large(summary)) else ():
        values = {}
        for name in shown:
            value = summary.value(point, name)
            values[name] = {**bounded(value, name), "text": metric_text(value, name, interval=True)}
            if lacks(summary.labels(point), name):
                values[name] |= {"mean": None, "low": None, "high": None, "text": NONE}
        keys = {dimension["name"]: dimension["of"].get(point) for dimension in dimensions}
        points.append({"keys": keys, "title": effects.title(point), "values": values})
    return {
        "dimensions": [{k: v for k, v in d.items() if k != "of"} for d in dimensions],
        "defaultKey": dimensions[0]["name"],
        "points": points,
        "metrics": {
            name: {key: getattr(CATALOGUE[name], key) for key in ("title", "unit", "definition", "formula")}
            for name in shown
        },
        "answer": charts_by_title("answer", answer.pictures),
        "charts": [] if is_study(cases) else charts,
        **study_data(cases),
        "bounds": [
            {
                "title": f"{case.title}, {bits} bits given" if bits else case.title,
                "caption": f"{case.title}; {seeds_in_words(case)}.",
                "rows": bound_rows(case, bits),
            }
            for case in cases
            for bits in case.bounds
        ],
        "overlays": nets,
        "measures": [
            {"key": key, **measure} for key, measure in MEASURES.items() if nets and key in nets[0]["brokers"][0]
        ],
        "defaultOverlay": _first_shown(nets),
        "none": NONE,
    }


def _first_shown(nets: Sequence[Mapping[str, Any]]) -> int:
    """The overlay to open with: one with covering, of the last family, whose numbers are often the largest."""
    covering = [number for number, net in enumerate(nets) if net["covering"]]
    return next((number for number in covering if nets[number]["family"] == nets[covering[-1]]["family"]), 0)


def study_data(cases: Sequence[Case]) -> dict[str, Any]:
    """The workloads of a study, shown one at a time; the first where approximation pays is shown first."""
    tables = study_tables(cases)
    named = [number for what in (PAYS, MAYBE) for number, of in enumerate(tables) if what in of["verdicts"]]
    return {
        "cases": [{key: table[key] for key in ("kind", "title", "sentences", "shape", "rows")} for table in tables],
        "caseColumns": tables[0]["columns"] if tables else [],
        "defaultCase": named[0] if named else 0,
        "studyCharts": charts_by_title("study", pictures(cases)),
    }


def charts_by_title(prefix: str, pictures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pictures by place; those with the same title share a place, with a menu of their cases."""
    places: dict[str, dict[str, Any]] = {}
    for picture in pictures:
        title = picture["title"]
        places.setdefault(title, {"id": f"{prefix}-{len(places)}", "title": title, "of": []})["of"].append(picture)
    return list(places.values())
