"""The table people read first: one row per setting, its level of every factor, and the metrics that answer.

Terminal, page and notebook show the same table. What is the same in every setting is one line above it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.report.effects import Effects, lacks, varied
from analysis.report.numbers import UNKNOWN, known, number_text, value_text
from analysis.report.summary import Summary
from analysis.report.words import title, with_unit
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO

TABLE_METRICS = (
    "entries", "reduction", "control_messages", "recall", "check_time", "probes_per_check", "convergence_p95",
    "event_messages", "latency_p95", "latency_p99", "missed", "duplicates",
)  # fmt: skip
# Columns that stay next to each other, whichever column an answer puts first.
BESIDE = {"pruned": "entries", "reduction": "entries", "latency_p95": "latency_p99"}
# Shown only if they are above 0 somewhere.
RARE_METRICS = (
    "pruned",
    *(name for name in MUST_BE_ZERO if name not in TABLE_METRICS),
    *LOSSES,
    "unavoidable",
    "switchover_messages",
    "repair_mean",
)
_SHORT_TITLES = {
    "missed_transient": "converging",
    "missed_dropped": "dropped",
    "missed_fault": "lost to faults",
    "missed_refused": "refused",
    "missed_unpublished": "publisher down",
    "unavoidable": "unavoidable",
    "switchover_mean": "switch-over ms",
    "switchover_messages": "switching msgs",
    "repair_mean": "repair ms",
    "delivery_ratio": "delivered",
    "entries": "table entries",
    "reduction": "less than simple",
    "control_messages": "control msgs",
    "recall": "recall",
    "check_time": "µs/check",
    "probes_per_check": "probes/check",
    "event_messages": "event msgs",
    "latency_p95": "p95 ms",
    "latency_p99": "p99 ms",
    "latency_p50": "p50 ms",
    "latency_mean": "mean ms",
    "waiting_mean": "wait ms",
    "event_load": "load",
    "event_rate_held": "events/s held",
    "convergence_p95": "settled p95 ms",
    "unsubscribe_mean": "leaving ms",
    "outage_mean": "outage ms",
    "control_per_event": "control/event",
    "messages_per_event": "msgs/event",
    "last_winner_mean": "last winner ms",
    "missed": "missed",
    "pruned": "pruned",
    "duplicates": "dup.",
}
NONE = "none"  # instead of a 0 that would look like a success; see `lacks`


@dataclass(frozen=True)
class Column:
    title: str
    numeric: bool
    metric: str | None = None  # its name in the catalogue; None for the levels of factors


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    points: tuple[str, ...]  # the point that each row shows

    @property
    def headers(self) -> tuple[str, ...]:
        return tuple(column.title for column in self.columns)


def table_metrics(summary: Summary, first: Sequence[str] = ()) -> tuple[str, ...]:
    """`first`, the usual metrics, and those of pruning, losses and repair if there were any; only known ones."""
    rare = [name for name in RARE_METRICS if summary.happened(name)]
    ratios = summary.means("delivery_ratio").values()
    some_lost = any(number_text(ratio, "share") != number_text(1.0, "share") for ratio in ratios)
    wanted = (*first, *TABLE_METRICS, *rare, *(("delivery_ratio",) if some_lost else ()))
    order = [name for name in dict.fromkeys(wanted) if summary.means(name)]
    for name, other in BESIDE.items():
        if name in order and other in order and name not in first:
            order.remove(name)
            order.insert(order.index(other) + 1, name)
    return tuple(order)


def answering(effects: Effects, metrics: Sequence[str]) -> list[str]:
    """The metrics that differ between settings, and what must be 0 and is not."""
    wrong = [name for name in MUST_BE_ZERO if effects.summary.happened(name)]
    return [*wrong, *varied(effects, metrics)]


def alike(effects: Effects, metrics: Sequence[str]) -> str:
    """One sentence about the metrics that are the same in every setting where they are known; empty if none is."""
    summary, words = effects.summary, []
    different = varied(effects, metrics)
    for name in metrics:
        means = list(summary.means(name).values())
        if means and name not in different:
            where = "" if len(means) == len(summary.order) else ", where known"
            words.append(f"{title(name)} {with_unit(means[0], name)}{where}")
    return f"The same in every setting: {'; '.join(words)}." if words and len(summary.order) > 1 else ""


def table(
    effects: Effects, metrics: Sequence[str], points: Sequence[str] | None = None, intervals: Collection[str] = ()
) -> Table:
    """One row per point: its level of every factor, then the metrics, those in `intervals` with ± half widths."""
    summary = effects.summary
    points = summary.order if points is None else points
    columns = [Column(factor.title, bool(factor.numbers)) for factor in effects.factors]
    columns = columns or [Column("strategy", False)]
    columns += [Column(short_title(name), True, name) for name in metrics]
    rows = []
    for point in points:
        have = summary.labels(point)
        cells = [
            value_text(json.loads(factor.of[point])[factor.keys[0]])
            if factor.numbers
            else factor.names[factor.of[point]]
            for factor in effects.factors
        ] or [value_text(have["strategy"])]
        cells += [
            NONE if lacks(have, name) else metric_text(summary.value(point, name), name, name in intervals)
            for name in metrics
        ]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows), tuple(points))


def short_title(metric: str) -> str:
    return _SHORT_TITLES.get(metric, title(metric))


def metric_text(value: Mapping[str, Any], name: str, interval: bool = False) -> str:
    """A metric's mean as text, in its unit's usual form, with ± the half width of the interval if `interval`."""
    unit = CATALOGUE[name].unit
    text = number_text(value["mean"], unit)
    half = value["high"] - value["mean"] if known(value["high"]) else 0.0
    if interval and text != UNKNOWN and half > 0:
        text += f" ± {100 * half:.1f} points" if unit == "share" else f" ± {number_text(half, unit)}"
    return text
