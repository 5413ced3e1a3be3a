"""The page's tables, as its template takes them: the summary, studies, effects, missed covers, trace hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.report import words
from analysis.report.effects import CHANCE, EQUAL, Effects, Paired, varied
from analysis.report.factors import Factor
from analysis.report.study import Case, places_of
from analysis.report.study_words import in_words, row_cells, shape
from analysis.report.table import short_title, table, table_metrics
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import MUST_BE_ZERO

MOST_METRICS = 8  # columns of effects
MOST_EFFECTS = 150  # rows of them; results/differences.csv has all
MOST_MISSES = 15  # rows of the ledger on the page; the file has the rest


def summary_table(effects: Effects, metrics: Sequence[str], points: Sequence[str]) -> dict[str, Any]:
    """Every column; those that do not answer are hidden until they are asked for."""
    summary = effects.summary
    shown = table_metrics(summary, metrics)
    plain = table(effects, shown, points, intervals=shown)
    first = {*metrics, *(name for name in MUST_BE_ZERO if summary.happened(name))}
    rows = []
    for point, texts in zip(plain.points, plain.rows, strict=True):
        cells = []
        for column, whole in zip(plain.columns, texts, strict=True):
            text, _, half = whole.partition(" ± ")
            mean = summary.mean(point, column.metric) if column.metric else None
            alarm = column.metric in MUST_BE_ZERO and mean is not None and mean > 0
            cells.append({"text": text, "half": half, "alarm": alarm, "numeric": column.numeric, "value": mean})
        rows.append({"number": summary.order.index(point), "cells": cells})
    columns = [
        {
            "title": c.title,
            "numeric": c.numeric,
            "note": CATALOGUE[c.metric].definition if c.metric else "",
            "more": c.metric is not None and c.metric not in first,
        }
        for c in plain.columns
    ]
    return {"columns": columns, "rows": rows, "more": any(column["more"] for column in columns)}


def study_tables(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Each workload's verdicts in words, shape and table."""
    where = places_of(cases)
    return [
        {
            "title": case.title,
            "kind": case.kind,
            "verdicts": [verdict.what for verdict in case.verdicts],
            "sentences": [str(in_words(case, verdict)) for verdict in case.verdicts],
            "shape": shape(case),
            "columns": [title for title, _, _ in row_cells(case, case.rows[0], where)],
            "rows": [[text for _, _, text in row_cells(case, row, where)] for row in case.rows],
        }
        for case in cases
    ]


def effect_tables(effects: Effects, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """By factor: a row per comparison and combination of the other factors, a column per metric that differs."""
    known = varied(effects, table_metrics(effects.summary, metrics))
    found, room = [], MOST_EFFECTS
    for factor in effects.factors:
        pairs, rows = [(base, level) for level, base in factor.base.items()], []
        shown = [name for name in known if any(_changes(effects, factor, pair, name) for pair in pairs)][:MOST_METRICS]
        for base, level in pairs:
            of = {name: effects.compare(factor, base, level, name) for name in shown}
            parts = {name: {part.rest: part for part in effect.parts} for name, effect in of.items() if effect}
            for rest in dict.fromkeys(rest for mine in parts.values() for rest in mine):
                cells = [cell(parts.get(name, {}).get(rest), name) for name in shown]
                rows.append([words.head(factor, base, level), effects.rest_in_words(rest, factor), *cells])
        if shown and rows and room > 0:
            others = ", ".join(other.title for other in effects.factors if other is not factor)
            titles, left = [short_title(name) for name in shown], max(0, len(rows) - room)
            found.append({"title": factor.title, "others": others, "titles": titles, "rows": rows[:room], "left": left})
            room -= len(rows[:room])
    return found


def _changes(effects: Effects, factor: Factor, pair: tuple[str, str], metric: str) -> bool:
    effect = effects.compare(factor, *pair, metric)
    return effect is not None and effect.verdict != EQUAL


def cell(part: Paired | None, metric: str) -> str:
    """−69.2 % ± 10.8; = for a tie; ~ before what may be chance."""
    if part is None:
        return "–"
    if part.verdict == EQUAL:
        return "="
    text = (
        words.change_text(part, metric)
        or f"{words.with_unit(part.base, metric)} → {words.with_unit(part.value, metric)}"
    )
    return f"~ {text}" if part.verdict == CHANCE else text


def missed_covers(effects: Effects) -> list[dict[str, Any]]:
    """The missed covers that cost most, over all settings."""
    summary = effects.summary
    frame = summary.misses.sort_values(["messages", "run", "subscription"], ascending=[False, True, True])
    rows = _records(frame.head(MOST_MISSES))
    return [{**row, "title": effects.title(summary.point_of[row["run"]])} for row in rows]


def trace_hashes(effects: Effects) -> list[dict[str, Any]]:
    return [{**row, "title": effects.title(row["point"])} for row in _records(effects.summary.runs)]


def _records(frame: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows
