"""Results as frames, for notebooks and scripts: small answers as pandas, whole traces as Spark DataFrames.

    results = analysis.load("out/demo")        # or what sim.run returned
    analysis.table(results)                    # pandas, a row per setting: how it routes, then every metric's mean
    analysis.differences(results)              # pandas, paired differences by factor, with intervals
    analysis.compare("out/old", "out/new")     # what differs, paired; by="overlay.file" within one folder
    analysis.advice(results)                   # pandas, which search for covers to use, per workload and place
    analysis.trace("out/demo", "deliveries")   # Spark, a row per delivery of every run
    analysis.metric("out/demo", "entries")     # Spark, a row per run: run and entries
    analysis.metrics("out/demo")               # Spark, a row per run: run and every metric

Every function takes results or the folder that holds them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.report import shown_settings, summary
from analysis.report.compare import Comparison, compare_by, compare_results
from analysis.report.page import begin
from analysis.report.study import NOT_JUDGED, PAYS, study
from analysis.report.study_words import in_words, not_judged
from analysis.report.summary import Summary
from analysis.report.table import answering
from analysis.report.table import table as shown_table
from analysis.spark import metrics as catalogue
from analysis.spark import traces
from analysis.spark.frames import Frames
from analysis.spark.session import session
from broker.trace.disk import folder_at
from broker.trace.schema import ALL
from coverlay import CoverlayError, quoted, unknown_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Results(Summary):
    """A summary that notebooks show as its answer in words and its table."""

    @classmethod
    def of(cls, found: Summary) -> Results:
        return cls(**{part.name: getattr(found, part.name) for part in fields(Summary)})

    def _repr_html_(self) -> str:
        return as_html(self)


Given = Summary | str | Path


def load(out: str | Path) -> Results:
    """The results that `coverlay run`, `coverlay analyze` or `sim.run` wrote to a folder."""
    return Results.of(summary.load(_folder(out)))


def table(results: Given, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """One row per setting, in reading order: strategy, epsilon, other swept keys, then means over seeds."""
    have = _results(results)
    names = list(columns) if columns is not None else list(catalogue.CATALOGUE)
    rows = []
    for point in have.order:
        labels, values = have.labels(point), json.loads(point)
        row = {"strategy": labels["strategy"], "epsilon": labels["epsilon"]}
        if not summary.is_covering(labels):
            row["epsilon"] = float("nan")
        row |= {key: values.get(key) for key in have.other_swept}
        row |= {name: have.mean(point, catalogue.metric(name).name) for name in names}
        rows.append(row)
    return pd.DataFrame(rows)


def differences(results: Given) -> pd.DataFrame:
    """Paired differences by factor, to the baseline of each setting: mean, 95 % interval, effect size, `differs`."""
    return _results(results).differences


def advice(results: Given) -> pd.DataFrame:
    """Which search for covers to use, per workload and place of the index: the verdicts of the study.

    `search` is the cheapest that pays, else the cheapest exact one; `kept` is its share of exact covering's saving,
    `ratio` its cost as a multiple of exact search's. A place whose usual exact search was not run is not judged.
    """
    cases, metrics = study(_results(results)), ["check_time", "probes_per_check", "entries", "recall"]
    columns = ["title", "verdict", "search", "epsilon", "kept", "ratio", *metrics, "sentence"]
    rows = []
    for case in cases:
        for verdict in case.verdicts:
            title = f"{case.title}, {verdict.place.title}" if len(cases) > 1 else verdict.place.title
            best = (verdict.best if verdict.what == PAYS and verdict.best else verdict.exact).row
            numbers = [best.epsilon, best.kept.value, best.ratio[verdict.place.title].value]
            found = [title, verdict.what, best.name, *numbers, *(best.values[name] for name in metrics)]
            rows.append([*found, str(in_words(case, verdict))])
        for place in (one.place for one in case.unjudged):
            title = f"{case.title}, {place.title}" if len(cases) > 1 else place.title
            rows.append([title, NOT_JUDGED, *[None] * (len(columns) - 3), not_judged(place.said, place.lacking)])
    return pd.DataFrame(rows, columns=columns)


def trace(results: Given, name: str, master: str | None = None) -> DataFrame:
    """One table of the traces of all runs as a lazy Spark DataFrame; the column `run` has the run's name."""
    if name not in ALL:
        raise unknown_name("trace table", name, ALL)
    sweep = traces.find_runs(_folder(results))
    if not any(run.has(name) for run in sweep.runs):
        raise CoverlayError(f"no run in {_folder(results)} has the table {name}")
    return Frames(session(master), sweep)[name]


def metrics(results: Given, master: str | None = None) -> DataFrame:
    """Every metric, from the traces, as a lazy Spark DataFrame: a row per run, a column per metric."""
    return Frames(session(master), traces.find_runs(_folder(results))).metrics()


def metric(results: Given, name: str, master: str | None = None) -> DataFrame:
    """One metric as a lazy Spark DataFrame of run and value; Spark reads only the tables that it needs."""
    catalogue.metric(name)  # an unknown name is an error, before Spark starts
    return metrics(results, master).select("run", name)


def compare(*results: Given, by: str | None = None, metrics: Sequence[str] | None = None) -> Comparison:
    """What differs between results, the first being the baseline; with `by`, between the values of one swept key.

    `.table` is a pandas frame (setting, of, metric, a, b, n, difference, low, high, verdict), `.settings` what else
    differs, `.equal` whether every run has its equal.
    """
    if by is not None:
        if len(results) != 1:
            raise CoverlayError(f"by = {quoted(by)} compares settings of one result; {len(results)} are given")
        return compare_by(_results(results[0]), by, metrics or ())
    names = [str(_folder(given)) for given in results]
    if len(set(names)) < len(names):
        raise CoverlayError(f"the same results are given twice: {', '.join(names)}")
    return compare_results({name: _results(given) for name, given in zip(names, results, strict=True)}, metrics or ())


def _results(given: Given) -> Summary:
    return given if isinstance(given, Summary) else load(given)


def _folder(given: Given) -> Path:
    if isinstance(given, Summary):
        return given.out
    if not isinstance(given, str | Path):
        raise CoverlayError(f"results are {quoted(given)}; give what sim.run returned, or the folder that it wrote")
    return folder_at(given)


def as_html(results: Summary) -> str:
    """Results as a notebook shows them: the answer in words, the table, and where the page is."""
    points, begun = shown_settings.rows(results, ()), begin(results)
    shown = shown_table(begun.effects, answering(begun.effects, begun.answer.metrics), points)
    head = "".join(f"<th>{escape(header)}</th>" for header in shown.headers)
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in shown.rows)
    notes = [f"Note: {warning}." for warning in results.warnings]
    words = " ".join([*map(str, begun.sentences), shown_settings.left_out(results, points), *notes])
    page = results.out / "report.html"
    where = f"page: {page}" if page.is_file() else f"`coverlay report {results.out}` writes the page"
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<p>{escape(words)}</p><table><tr>{head}</tr>{body}</table><p>{escape(where)}</p>"
