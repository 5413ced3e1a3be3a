"""The report: one self-contained page that answers the question an experiment asked.

It reads `<out>/results`, which the analysis wrote, and for the picture of the overlay the small tables of one run per
point. Everything is in the file: data, style, scripts, the drawing library. The template escapes text from files, the
JSON data writes `<`, `>` and `&` as escapes, and the page's own policy forbids it to load or send anything.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.report import plots, shown_settings
from analysis.report.answer import Answer, answer
from analysis.report.assets import asset
from analysis.report.costs import read_slides
from analysis.report.effects import Effects
from analysis.report.factors import factors_of
from analysis.report.facts import facts, made
from analysis.report.load import IDLE, LONG, MEASURES, Load, in_words, loads, may_be_overloaded, names_of
from analysis.report.numbers import and_all
from analysis.report.overlay_data import overlays
from analysis.report.page_data import charts_that_differ, plot_data
from analysis.report.page_tables import effect_tables, missed_covers, summary_table, trace_hashes
from analysis.report.places import ABOUT_STORES, STORES, Price
from analysis.report.rates import RATE
from analysis.report.replay import MOST_BESIDE, Words, alike, replays
from analysis.report.study import Case, is_study, places_of, study
from analysis.report.study_words import LEGEND, WHY_RECALL, grid, sensitivity_rows, verdicts
from analysis.report.summary import Summary, load
from analysis.report.thresholds import Thresholds
from analysis.report.told import Told, read_experiment, read_told
from analysis.report.truth import about_truth, truth_card
from analysis.report.words import Sentence, cards, title
from analysis.spark.metrics import CATALOGUE
from analysis.spark.traces import Run, canonical, open_run, run_folders, run_name
from broker.trace.disk import CURE, replaced_file, writing
from coverlay import CoverlayError, __version__


@dataclass(frozen=True)
class Asked:
    """What the caller asks of a report."""

    thresholds: Thresholds = field(default_factory=Thresholds)  # when approximation pays
    profiles: Mapping[str, Price] | None = None  # to compute costs under; None: those shipped when the sweep ran
    notes: tuple[str, ...] = ()  # to show on the page
    contents: Callable[[str], Words | None] | None = None  # what a run's events and subscriptions say, by its name


def write_report(out: Path, asked: Asked | None = None) -> Path:
    """Write `<out>/report.html` from the results in `out`, and return its path."""
    page = render(load(out), asked)
    path = out / "report.html"
    go_on = f"traces and results are kept: {CURE} and repeat `coverlay report {out}`"
    with writing(path, go_on), replaced_file(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return path


def render(summary: Summary, asked: Asked | None = None) -> str:
    """The whole page as text."""
    asked = asked or Asked()
    begun = begin(summary, asked)
    effects, told, answered = begun.effects, begun.told, begun.answer
    large, studied = shown_settings.is_large(summary), is_study(begun.cases)
    listed = shown_settings.rows(summary, begun.cases if studied else [])
    pictured = shown_settings.pictures(listed)
    runs, warnings = _runs(summary, pictured)
    experiment = begun.experiment
    notes = [*asked.notes, *summary.warnings, *warnings, *told.notes, *experiment.get("notes", ())]
    question = (
        told.held.question
        if told.held is not None
        else (experiment.get("question") or _question(effects, answered.metrics))
    )
    shown, alike = charts_that_differ(effects, answered)
    nets = overlays(effects, [run for run in runs if canonical(run.point) in pictured])
    busy = loads(effects, names_of(runs), pictured)
    drawn = _loads_drawn(busy)
    data = plot_data(effects, answered, [] if large else shown, nets, begun.cases)
    overloaded = [load for load in drawn if load.overloaded]
    data |= {"loads": [{"title": load.title, "lines": load.lines} for load in drawn], "loadMeasures": MEASURES}
    data |= {"defaultLoad": drawn.index(overloaded[0]) if overloaded else 0}
    data |= _overlay_data(runs, nets, data["defaultOverlay"], asked.contents)
    content = {
        "title": str(summary.runs["experiment"].iloc[0]) or "Experiment",
        "question": question,
        "facts": facts(summary),
        "made": made(summary),
        # The effects on many workloads together describe none of them, and a search for a rate has its own sentences.
        "cards": [*([] if studied or told.held is not None else cards(effects, answered.metrics)), truth_card(summary)],
        "answer": answered.sentences,
        "brief": [about_truth(summary), *(in_words(busy, effects) if told.held is None else ())],
        "answer_charts": data["answer"],
        "alike": alike,
        "loads": drawn,
        "overloaded": overloaded or drawn[: len(drawn) == 1],
        "loads_left_out": shown_settings.left_out(summary, drawn, "settings, those with an overloaded broker first"),
        "long": LONG,
        "stories": "\n".join(told.stories),
        "replays": data.get("replays", []),
        "replayed": nets[data["defaultOverlay"]]["title"] if nets else "",
        "coast": "coast" in data,
        "warnings": list(dict.fromkeys(notes)),
        "large": len(summary.order) if large else 0,
        "table": summary_table(effects, answered.metrics, listed),
        "rows_left_out": shown_settings.left_out(summary, listed),
        "points": bool(data["points"]),
        "bounds": len(data["bounds"]),
        "intervals": bool((summary.points["n"] > 1).any()),
        "charts": data["charts"],
        "overlays": nets,
        "overlays_left_out": shown_settings.left_out(summary, nets),
        "effects": effect_tables(effects, answered.metrics) if not studied else [],
        "misses": missed_covers(effects),
        "metrics": list(CATALOGUE.values()),
        "data": embed(data),
        "studied": studied,
        "study_charts": data["studyCharts"],
        **_study_section(begun.cases, summary.out),
        **_repeating_section(effects, begun.toml, runs[0] if runs else None),
        **_machinery(),
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["unbroken"] = _unbroken
    return environment.from_string(asset("report.html.jinja")).render(content)


@dataclass(frozen=True)
class Begun:
    """What page and terminal begin with."""

    effects: Effects
    told: Told
    cases: list[Case]  # where searches for covers can be compared
    answer: Answer
    toml: str  # the experiment's file; empty if it is gone
    experiment: Mapping[str, Any]  # its question, notes and what it asks

    @property
    def sentences(self) -> list[Sentence]:
        """All that the terminal says: the answer, brokers without time left, what the oracle found."""
        return [*self.answer.sentences, *self._overloaded(), about_truth(self.effects.summary)]

    def _overloaded(self) -> list[Sentence]:
        """A search for the highest rate overloads brokers on purpose."""
        summary = self.effects.summary
        if self.told.held is not None or not may_be_overloaded(summary):
            return []
        return in_words(loads(self.effects, names_of(_runs(summary, [])[0]), []), self.effects)


def begin(summary: Summary, asked: Asked | None = None) -> Begun:
    asked = asked or Asked()
    toml, experiment = read_experiment(summary.out)
    told = read_told(summary.out)
    effects = Effects(summary, factors_of(summary, apart=() if told.held is None else (RATE,)))
    cases = study(summary, asked.thresholds, asked.profiles)
    answered = answer(effects, told, cases if is_study(cases) else (), experiment.get("asks", ()))
    return Begun(effects, told, cases, answered, toml, experiment)


def _unbroken(text: object) -> str:
    """No line ends between a number and its unit or interval, or a key and its number."""
    return re.sub(
        r"(?<=\d) (?=%|ms\b|µs\b|s\b|points\b|times\b|±)|(?<=[%s]) (?=±)|(?<=[±=]) (?=\d)|(?<=\w) (?== \d)",
        "\u00a0",
        str(text),
    )


def _loads_drawn(busy: Sequence[Load]) -> Sequence[Load]:
    """At most MOST_PICTURES; if there are more, those with overloaded brokers come first. None if all are idle."""
    if all(load.busy < IDLE for load in busy):
        return []
    if len(busy) <= shown_settings.MOST_PICTURES:
        return busy
    return sorted(busy, key=lambda load: not load.overloaded)[: shown_settings.MOST_PICTURES]


def _overlay_data(
    runs: Sequence[Run],
    nets: Sequence[Mapping[str, Any]],
    chosen_first: int,
    contents: Callable[[str], Words | None] | None,
) -> dict[str, Any]:
    """What can be replayed on the overlay that is shown first, and the coastline if brokers are on a map."""
    found: dict[str, Any] = {}
    if nets:
        run, names = runs[chosen_first], [broker["name"] for broker in nets[chosen_first]["brokers"]]
        others = {net["title"]: other for net, other in zip(nets, runs, strict=False) if other is not run}
        same = {title: other for title, other in others.items() if alike(run, other)}
        found["replays"] = replays(run, names, dict(list(same.items())[:MOST_BESIDE]), contents and contents(run.name))
    if any(net["geographic"] for net in nets):
        found["coast"] = json.loads(asset("coast.json"))["rings"]
    return found


def _study_section(cases: list[Case], out: Path) -> dict[str, Any]:
    """When approximation pays, workload by workload."""
    return {
        "cases": len(cases),
        "verdicts": [str(sentence) for sentence in verdicts(cases)],
        "grid": grid(cases)[1],
        "legend": LEGEND,
        "thresholds": cases[0].thresholds if cases else None,
        "places": [place.title for place in places_of(cases)],
        "slides": read_slides(out) if cases else "",
        "about_stores": ABOUT_STORES if any(place in STORES for place in places_of(cases)) else "",
        "sensitivity": sensitivity_rows(cases) if cases else [],
        "why_recall": WHY_RECALL,
    }


def _repeating_section(effects: Effects, toml: str, sample: Run | None) -> dict[str, Any]:
    """What a reader needs to repeat the experiment and to compare the outcome."""
    summary = effects.summary
    parameters, versions = (sample.parameters, json.loads(sample.record["versions"])) if sample else ({}, {})
    return {
        "toml": toml,
        "parameters": json.dumps(parameters, indent=2, ensure_ascii=False),
        "versions": json.dumps(versions, indent=2, ensure_ascii=False),
        "runs": len(summary.runs),
        "hashes": trace_hashes(effects) if len(summary.runs) <= shown_settings.MOST_RUNS else [],
        "version": __version__,
    }


def _machinery() -> dict[str, Any]:
    """Style, scripts and the drawing library, and the pictures without their data."""
    pictures = (plots.lines, plots.bounds, plots.rows, plots.times, plots.trade, plots.curve)
    return {
        "specs": embed({picture.__name__: picture() for picture in pictures}),
        "vega": Markup(_drawing_library()),
        "css": Markup(asset("report.css")),
        "theme": Markup(asset("theme.js")),
        "js": Markup(asset("overlay.js") + asset("report.js")),
    }


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
    """The runs of the pictured points, in this order, then those with overloaded brokers, for their names; notes.

    If traces are missing, the report has everything else.
    """
    drawn = {summary.point_of[name]: name for name in dict.fromkeys(summary.brokers["run"])}
    wanted = [drawn[point] for point in pictured if point in drawn] + sorted(may_be_overloaded(summary))
    try:
        folders = {run_name(folder): folder for folder in run_folders(summary.out)}
        found = {name: open_run(folders[name]) for name in dict.fromkeys(wanted) if name in folders}
    except CoverlayError as error:
        return [], [f"no picture of the overlay: {error}"]
    notes = [f"no picture of run {name}: its trace is gone" for name in dict.fromkeys(wanted) if name not in found]
    return list(found.values()), notes


def _question(effects: Effects, metrics: Sequence[str]) -> str:
    """What an experiment without a question of its own is answered for."""
    titles = and_all([title(name) for name in metrics])
    factors = [factor.title for factor in effects.factors]
    if not factors:
        return f"How large {'is' if len(metrics) == 1 else 'are'} {titles}?"
    return f"How {'does' if len(factors) == 1 else 'do'} {and_all(factors)} change {titles}?"
