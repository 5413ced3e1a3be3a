"""The report: one self-contained page that answers the question an experiment asked.

Reads `<out>/results` (what the analysis wrote) and, for the picture of the overlay, the small tables of one
run per point. Everything is in the file: data, style, scripts, the drawing library. Text from files goes
through the template's escaping, data through JSON in which `<`, `>` and `&` are written as escapes, and the
page's own policy forbids it to load or send anything.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.report import chosen, plots
from analysis.report.advisor import advise
from analysis.report.answers import answer
from analysis.report.assets import asset
from analysis.report.data import answer_charts, charts_that_differ, dimensions_of, plot_data, study_data
from analysis.report.facts import facts, made
from analysis.report.findings import Answer, Findings
from analysis.report.load import LONG, MEASURES, in_words, loads, may_be_overloaded, names_of
from analysis.report.overlay_data import overlays
from analysis.report.replay import replays
from analysis.report.sentences import about_truth, brief, judged_share, loss_words
from analysis.report.study import Case, Price, Thresholds
from analysis.report.study_grid import LEGEND, NEARLY, grid
from analysis.report.study_words import (
    MANY,
    WHY_RECALL,
    by_size,
    called,
    columns,
    overall,
    row_texts,
    sensitivity_rows,
    sentence,
    shape,
)
from analysis.report.summary import (
    Summary,
    Table,
    load,
    may_miss,
    metric_text,
    number_text,
    point_title,
    table,
    table_metrics,
)
from analysis.report.told import read_told
from analysis.spark.metrics import CATALOGUE
from analysis.spark.traces import Run, canonical, open_run, run_folders, run_name
from broker.trace.disk import replaced_file, writing
from broker.trace.schema import LOSSES, MUST_BE_ZERO
from coverlay import CoverlayError, __version__

DIFFERENCE_METRICS = (
    "entries",
    "control_messages",
    "check_time",
    "probes_per_check",
    "convergence_p95",
    "event_messages",
    "latency_p95",
)
MOST_MISSES = 15  # rows of the ledger on the page; the file has the rest


def _misses(summary: Summary) -> list[dict[str, Any]]:
    """The missed covers that cost most, over all settings."""
    points = dict(zip(summary.runs["run"], summary.runs["point"], strict=True))
    frame = summary.misses.sort_values(["messages", "run", "subscription"], ascending=[False, True, True])
    return [{**row, "title": point_title(summary, points[row["run"]])} for row in _records(frame.head(MOST_MISSES))]


@dataclass(frozen=True)
class Asked:
    """What the caller of a report says about it."""

    thresholds: Thresholds = field(default_factory=Thresholds)  # when approximation pays
    profiles: Mapping[str, Price] | None = None  # under which; None: those that were shipped when the sweep ran
    notes: tuple[str, ...] = ()


def write_report(out: Path, asked: Asked | None = None) -> Path:
    """Write `<out>/report.html` from the results in `out`, and return its path."""
    page = render(load(out), asked)
    path = out / "report.html"
    go_on = f"traces and results are kept: make room and repeat `coverlay report {out}`"
    with writing(path, go_on), replaced_file(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return path


def render(summary: Summary, asked: Asked | None = None) -> str:
    """The whole page as text."""
    asked = asked or Asked()
    findings = Findings(summary, read_told(summary.out), asked.thresholds, asked.profiles)
    told, cases, answered = findings.told, findings.cases, answer(findings)
    large, listed = chosen.is_large(summary), chosen.rows(summary, cases)
    pictured = chosen.pictures(listed)
    runs, warnings = _runs(summary, pictured)
    advice = [] if large and cases else advise(summary)  # the study says more, workload by workload
    shown, alike = charts_that_differ(summary)
    nets = overlays(summary, [run for run in runs if canonical(run.point) in pictured])
    sample = runs[0] if runs else None
    toml = _toml(summary.out)
    notes = [*asked.notes, *summary.warnings, *warnings, *told.notes, *_said(toml, "notes", [])]
    data = plot_data(summary, answered, [] if large else shown, advice, nets, cases)
    many = len(cases) > MANY
    if many:
        data |= study_data(cases)
    if nets:
        names = [broker["name"] for broker in nets[data["defaultOverlay"]]["brokers"]]
        data["replays"] = replays(runs[data["defaultOverlay"]], names)
    busy = loads(summary, names_of(runs), pictured)
    drawn = busy
    if len(busy) > chosen.MOST_PICTURES:
        drawn = sorted(busy, key=lambda load: not load.overloaded)[: chosen.MOST_PICTURES]
    data["loads"] = [{"title": load.title, "lines": load.lines} for load in drawn]
    data["loadMeasures"] = {name: {"title": title, "unit": unit} for name, (title, unit) in MEASURES.items()}
    if any(net["geographic"] for net in nets):
        data["coast"] = json.loads(asset("coast.json"))["rings"]
    content = {
        "title": str(summary.runs["experiment"].iloc[0]) or "Experiment",
        "question": told.held.question if told.held is not None else _question(summary, _said(toml, "question", "")),
        "facts": facts(summary),
        "made": made(summary),
        # The smallest and the largest of many workloads say nothing about any of them.
        "cards": [_truth_card(summary)] if many else _cards(summary),
        "brief": [words for words in _in_short(summary, many) if words not in answered.sentences],
        "answer": [*answered.sentences, *(in_words(busy, summary) if told.held is None else ())],
        "answer_charts": answer_charts(answered),
        "alike": alike,
        "loads": drawn,
        "loads_left_out": chosen.left_out(summary, drawn, "settings, those with an overloaded broker first"),
        "long": LONG,
        "stories": "\n".join(told.stories),
        "replays": data.get("replays", []),
        "replayed": nets[data["defaultOverlay"]]["title"] if nets else "",
        "coast": "coast" in data,
        "advice": advice,
        "warnings": list(dict.fromkeys(notes)),
        "large": len(summary.order) if large else 0,
        "table": _table(summary, answered, listed),
        "rows_left_out": chosen.left_out(summary, listed),
        "points": bool(data["points"]),
        "study": _study(cases),
        "study_overall": " ".join([overall(cases), *by_size(cases)]),
        "grid": grid(cases) if many else None,
        "grid_legend": LEGEND,
        "grid_nearly": NEARLY,
        "thresholds": cases[0].thresholds if cases else None,
        "places": [called(profile) for profile in cases[0].profiles] if cases else [],
        "sensitivity": sensitivity_rows(cases) if cases else [],
        "why_recall": WHY_RECALL,
        "bounds": len(data["study"]),
        "intervals": bool((summary.points["n"] > 1).any()),
        "charts": data["charts"],
        "overlays": nets,
        "overlays_left_out": chosen.left_out(summary, nets),
        "differences": _differences(summary, listed),
        "misses": _misses(summary),
        "toml": toml,
        "parameters": _pretty(sample.parameters if sample else {}),
        "versions": _pretty(_json(sample.record["versions"]) if sample else {}),
        "runs": len(summary.runs),
        "hashes": _hashes(summary) if len(summary.runs) <= chosen.MOST_RUNS else [],
        "metrics": list(CATALOGUE.values()),
        "version": __version__,
        "data": embed(data),
        "specs": embed(
            {
                "lines": plots.lines(),
                "front": plots.front(),
                "bounds": plots.bounds(),
                "rows": plots.rows(),
                "times": plots.times(),
                "trade": plots.trade(),
                "curve": plots.curve(),
            }
        ),
        "vega": Markup(_drawing_library()),
        "css": Markup(asset("report.css")),
        "theme": Markup(asset("theme.js")),
        "js": Markup(asset("overlay.js") + asset("report.js")),
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(asset("report.html.jinja")).render(content)


def said_first(summary: Summary) -> tuple[Findings, Answer, list[str]]:
    """The answer, and its sentences with whoever is overloaded: what the terminal shows of the page's beginning.

    A search for the highest rate overloads brokers on its way and says itself who is full first.
    """
    findings = Findings(summary, read_told(summary.out))
    answered = answer(findings)
    busy = []
    if findings.told.held is None and may_be_overloaded(summary):
        busy = loads(summary, names_of(_runs(summary, [])[0]), [])
    return findings, answered, [*answered.sentences, *in_words(busy, summary)]


def embed(value: Any) -> Markup:
    """JSON that may be put inside a script element: nothing in it can end the element or start another."""
    text = json.dumps(_without_nan(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _drawing_library() -> str:
    """Vega, Vega-Lite and Vega-Embed in the version altair writes for, as one script."""
    import altair
    import vl_convert

    version = altair.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)
    return bundle.replace("</script", "<\\/script")


def _runs(summary: Summary, pictured: Sequence[str]) -> tuple[list[Run], list[str]]:
    """The runs that overlays are drawn from, in this order, then those whose overloaded brokers have to be named.

    Without their traces a report has everything else.
    """
    points = dict(zip(summary.runs["run"], summary.runs["point"], strict=True))
    drawn = {points[name]: name for name in dict.fromkeys(summary.brokers["run"])}
    wanted = [drawn[point] for point in pictured if point in drawn] + sorted(may_be_overloaded(summary))
    try:
        folders = {run_name(folder): folder for folder in run_folders(summary.out)}
        found = {name: open_run(folders[name]) for name in dict.fromkeys(wanted) if name in folders}
    except CoverlayError as error:
        return [], [f"no picture of the overlay: {error}"]
    notes = [f"no picture of run {name}: its trace is gone" for name in dict.fromkeys(wanted) if name not in found]
    return list(found.values()), notes


def _hashes(summary: Summary) -> list[dict[str, Any]]:
    return [{**row, "title": point_title(summary, row["point"])} for row in _records(summary.runs)]


def _question(summary: Summary, asked: str) -> str:
    if asked:
        return asked
    names = [dimension["title"] for dimension in dimensions_of(summary)]
    if len(summary.order) == 1:
        return "How large do the routing tables get, and what do messages and deliveries cost?"
    verb = "does" if len(names) == 1 else "do"
    return f"How {verb} {' and '.join(names)} change routing tables, search cost, traffic and latency?"


def _in_short(summary: Summary, many: bool) -> list[str]:
    return [about_truth(summary)] if many else brief(summary)


def _cards(summary: Summary) -> list[dict[str, str]]:
    cards = []
    saving = [(summary.value(p, "reduction")["mean"], p) for p in summary.order if _routes(summary, p)]
    saving = [(share, point) for share, point in saving if share == share]
    if saving:
        share, point = max(saving)
        alike = len(saving) > 1 and min(saving)[0] == share
        where = "in every setting" if alike else f"at best ({point_title(summary, point)})"
        text = f"fewer table entries than simple routing, {where}"
        cards.append({"figure": number_text(share, "share"), "text": text, "tone": ""})
    rough = [point for point in summary.order if may_miss(summary.labels(point))]
    recalls = [(recall, point) for point in rough if (recall := summary.value(point, "recall")["mean"]) == recall]
    if recalls:
        recall, point = min(recalls)
        where = "" if len(recalls) == len(rough) else f" where it is known, in {len(recalls)} of {len(rough)} settings"
        text = f"of the covers found, at worst{where} ({point_title(summary, point)})"
        cards.append({"figure": number_text(recall, "share"), "text": text, "tone": ""})
    slowest = max((summary.value(p, "latency_p95")["mean"] for p in summary.order), default=math.nan)
    if slowest == slowest:
        text = "within which 95 % of deliveries arrive, in the slowest setting"
        cards.append({"figure": f"{number_text(slowest, 'ms')} ms", "text": text, "tone": ""})
    return [*cards, _truth_card(summary)]


def _truth_card(summary: Summary) -> dict[str, str]:
    """What the oracle found, and what that covers: green only where nothing at all was lost."""
    wrong = int(summary.runs[list(MUST_BE_ZERO)].sum().sum())
    share = judged_share(summary)
    if share == 0.0:
        return {"figure": "Not checked", "text": "run.sample_oracle chose no event for the oracle", "tone": "warn"}
    which = "" if share == 1.0 else f", those of {100 * share:.3g} % of the events (run.sample_oracle),"
    checked = f"{int(summary.runs['deliveries'].sum()):,} deliveries{which} checked against the oracle: "
    if wrong:
        titles = [CATALOGUE[name].title for name in MUST_BE_ZERO if summary.runs[name].sum() > 0]
        return {"figure": f"{wrong:,} wrong", "text": checked + ", ".join(titles), "tone": "bad"}
    losses = loss_words(summary)
    if losses:
        lost = int(summary.runs[list(LOSSES)].sum().sum())
        settled = "after repair" if summary.runs["missed_fault"].sum() > 0 else "once the network had settled"
        text = f"{checked}none doubled or spurious, none missed {settled}; {losses}"
        return {"figure": f"{lost:,} lost", "text": text, "tone": "warn"}
    if not summary.runs["deliveries"].sum():
        return {"figure": "No delivery", "text": "and nobody who asked for an event went without it", "tone": "warn"}
    return {"figure": "All correct", "text": f"{checked}none missed, doubled or spurious", "tone": "good"}


def _routes(summary: Summary, point: str) -> bool:
    """Flooding keeps no tables at all: saving them all is no achievement."""
    return summary.labels(point)["strategy"] != "flooding"


def _table(summary: Summary, answered: Answer, points: Sequence[str]) -> dict[str, Any]:
    plain: Table = table(summary, table_metrics(summary, answered.metrics), points=points)
    rows = []
    for point, cells in zip(plain.points, plain.rows, strict=True):
        row = []
        for column, text in zip(plain.columns, cells, strict=True):
            half, alarm = "", False
            if column.metric:
                value = summary.value(point, column.metric)
                _, _, half = metric_text(value, column.metric, interval=True).partition(" ± ")
                alarm = column.metric in MUST_BE_ZERO and value["mean"] > 0
            row.append({"text": text, "half": half, "alarm": alarm, "numeric": column.numeric})
        rows.append(row)
    columns = [
        {"title": c.title, "numeric": c.numeric, "note": CATALOGUE[c.metric].definition if c.metric else ""}
        for c in plain.columns
    ]
    return {"columns": columns, "rows": rows}


def _study(cases: list[Case]) -> list[dict[str, Any]]:
    """Each workload's verdicts, shape and table."""
    return [
        {
            "title": case.title,
            "verdicts": [{"where": called(verdict.profile), "what": verdict.what} for verdict in case.verdicts],
            "sentence": sentence(case),
            "shape": shape(case),
            "columns": [{"title": title, "note": note} for title, note in columns(case)],
            "rows": [row_texts(case, row) for row in case.rows],
        }
        for case in cases
    ]


def _differences(summary: Summary, points: Sequence[str]) -> dict[str, Any]:
    frame = summary.differences
    frame = frame[frame["metric"].isin(DIFFERENCE_METRICS) & frame["differs"].notna()]
    by_point = {point: {row["metric"]: row for row in _records(rows)} for point, rows in frame.groupby("point")}
    rows = []
    baselines = list(dict.fromkeys(frame["baseline"]))
    for point in points:
        if mine := by_point.get(point):
            cells = [_difference_text(mine.get(name), name) for name in DIFFERENCE_METRICS]
            rows.append({"title": point_title(summary, point), "cells": cells})
    baseline = point_title(summary, baselines[0]) if len(baselines) == 1 else "the baseline of its family"
    titles = [CATALOGUE[name].title for name in DIFFERENCE_METRICS]
    return {"rows": rows, "baseline": baseline, "titles": titles}


def _difference_text(row: Mapping[str, Any] | None, name: str) -> str:
    if row is None or row["mean"] != row["mean"]:
        return "–"
    if not row["differs"]:
        return "equal" if row["low"] == row["high"] else "not shown"
    unit = CATALOGUE[name].unit
    sign = "+" if row["mean"] > 0 else "−"
    half = number_text(row["high"] - row["mean"], unit)
    return f"{sign}{number_text(abs(row['mean']), unit)} ± {half}"


def _records(frame: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows


def _toml(out: Path) -> str:
    try:
        return (out / "experiment.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _said(toml: str, key: str, otherwise: Any) -> Any:
    """What an experiment's file says in its own words: its question, its notes."""
    try:
        found = tomllib.loads(toml).get(key, otherwise)
    except tomllib.TOMLDecodeError:
        return otherwise
    return found if isinstance(found, type(otherwise)) else otherwise


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
