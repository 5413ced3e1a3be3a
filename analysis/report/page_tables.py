"""The page's tables, as its template takes them: the summary, studies, differences, missed covers, trace hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.report.findings import Answer
from analysis.report.numbers import number_text
from analysis.report.study import Case
from analysis.report.study_words import called, row_cells, sentence, shape
from analysis.report.summary import Summary, point_title
from analysis.report.table import Table, metric_text, table, table_metrics
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import MUST_BE_ZERO

DIFFERENCE_METRICS = (
    "entries", "control_messages", "check_time", "probes_per_check", "convergence_p95", "event_messages", "latency_p95",
)  # fmt: skip
MOST_MISSES = 15  # rows of the ledger on the page; the file has the rest


def summary_table(summary: Summary, answered: Answer, points: Sequence[str]) -> dict[str, Any]:
    plain: Table = table(summary, table_metrics(summary, answered.metrics), points=points)
    rows = []
    for point, texts in zip(plain.points, plain.rows, strict=True):
        row = []
        for column, text in zip(plain.columns, texts, strict=True):
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


def study_tables(cases: list[Case]) -> list[dict[str, Any]]:
    """Each workload's verdicts, shape and table."""
    return [
        {
            "title": case.title,
            "kind": case.kind,
            "verdicts": [{"where": called(verdict.profile), "what": verdict.what} for verdict in case.verdicts],
            "sentence": sentence(case),
            "shape": shape(case),
            "columns": [{"title": title, "note": note} for title, note, _ in row_cells(case, case.rows[0])],
            "rows": [[text for _, _, text in row_cells(case, row)] for row in case.rows],
        }
        for case in cases
    ]


def difference_table(summary: Summary, points: Sequence[str]) -> dict[str, Any]:
    frame = summary.differences
    frame = frame[frame["metric"].isin(DIFFERENCE_METRICS) & frame["differs"].notna()]
    by_point = {point: {row["metric"]: row for row in _records(rows)} for point, rows in frame.groupby("point")}
    rows = []
    baselines = list(dict.fromkeys(frame["baseline"]))
    for point in points:
        if mine := by_point.get(point):
            texts = [_difference_text(mine.get(name), name) for name in DIFFERENCE_METRICS]
            rows.append({"title": point_title(summary, point), "cells": texts})
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


def missed_covers(summary: Summary) -> list[dict[str, Any]]:
    """The missed covers that cost most, over all settings."""
    frame = summary.misses.sort_values(["messages", "run", "subscription"], ascending=[False, True, True])
    rows = _records(frame.head(MOST_MISSES))
    return [{**row, "title": point_title(summary, summary.point_of[row["run"]])} for row in rows]


def trace_hashes(summary: Summary) -> list[dict[str, Any]]:
    return [{**row, "title": point_title(summary, row["point"])} for row in _records(summary.runs)]


def _records(frame: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows
