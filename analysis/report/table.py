"""The table people read first: one row per point, its swept keys, and the metrics that say something.

Terminal, page and notebook show the same table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.report.numbers import UNKNOWN, known, number_text, value_text
from analysis.report.summary import ROUTING_KEYS, Summary, is_covering, is_exact, is_flooding
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO

TABLE_METRICS = (
    "entries", "reduction", "control_messages", "recall", "check_time", "probes_per_check", "convergence_p95",
    "event_messages", "latency_p95", "latency_p99", "missed", "duplicates",
)  # fmt: skip
QUOTED_METRICS = ("reduction",)  # printed with their interval; ± beside every number would be hard to read
# Columns that stay next to each other, whichever column an answer puts first.
BESIDE = {"pruned": "entries", "reduction": "entries", "latency_p95": "latency_p99"}
# Shown only if they are above 0 somewhere.
RARE_METRICS = ("pruned", *(name for name in MUST_BE_ZERO if name not in TABLE_METRICS), *LOSSES, "repair_mean")
_SHORT_TITLES = {
    "missed_transient": "converging",
    "missed_dropped": "dropped",
    "missed_fault": "lost to faults",
    "missed_refused": "refused",
    "missed_unpublished": "publisher down",
    "repair_mean": "repair ms",
    "delivery_ratio": "delivered",
    "entries": "table entries",
    "reduction": "less than simple",
    "control_messages": "control msgs",
    "recall": "recall",
    "check_time": "µs/check",
    "probes_per_check": "probes/check",
    "event_messages": "event msgs",
    "latency_p95": "latency p95 ms",
    "latency_p99": "p99 ms",
    "latency_p50": "p50 ms",
    "event_load": "load",
    "convergence_p95": "settled p95 ms",
    "unsubscribe_mean": "leaving ms",
    "outage_mean": "outage ms",
    "control_per_event": "control/event",
    "missed": "missed",
    "pruned": "pruned",
    "duplicates": "dup.",
}
NONE = "none"  # of flooding, which keeps no tables and sends no subscriptions: a 0 would look like a success


@dataclass(frozen=True)
class Column:
    title: str
    numeric: bool
    metric: str | None = None  # its name in the catalogue; None for labels and swept keys


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


def table(
    summary: Summary,
    metrics: Sequence[str] | None = None,
    intervals: Collection[str] = (),
    points: Sequence[str] | None = None,
) -> Table:
    """One row per point: how it routes, its swept keys, then the metrics, those in `intervals` with ± half widths."""
    points = summary.order if points is None else points
    if metrics is None:
        metrics = table_metrics(summary)
    keys = summary.other_swept
    searches = any(is_covering(summary.labels(point)) for point in summary.order)
    columns = [Column("strategy", False), *([Column("ε", True)] if searches else [])]
    columns += [Column(_short(key), _is_numeric(summary, key)) for key in keys]
    columns += [Column(_SHORT_TITLES.get(m, CATALOGUE[m].title), True, m) for m in metrics]
    rows = []
    for point in points:
        have, values = summary.labels(point), json.loads(point)
        cells = [value_text(have["strategy"]), *([epsilon_text(have)] if searches else [])]
        cells += [value_text(values.get(key)) for key in keys]
        cells += [
            NONE if _no_tables(have, m) else metric_text(summary.value(point, m), m, m in intervals) for m in metrics
        ]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows), tuple(points))


def _short(key: str) -> str:
    """Routing keys go by their last word: tables are wide enough."""
    return key.partition(".")[2] if key.startswith(ROUTING_KEYS) else key


def _no_tables(labels: Mapping[str, Any], metric: str) -> bool:
    return is_flooding(labels) and metric in {"entries", "reduction", "pruned", "convergence_p95"}


def epsilon_text(labels: Mapping[str, Any]) -> str:
    if not is_covering(labels):
        return UNKNOWN
    return "0 (exact)" if is_exact(labels) else value_text(labels["epsilon"])


def metric_text(value: Mapping[str, Any], name: str, interval: bool = False) -> str:
    """A metric's mean as text, in its unit's usual form, with ± the half width of the interval if `interval`."""
    unit = CATALOGUE[name].unit
    text = number_text(value["mean"], unit)
    half = value["high"] - value["mean"] if known(value["high"]) else 0.0
    if interval and text != UNKNOWN and half > 0:
        text += f" ± {100 * half:.1f} points" if unit == "share" else f" ± {number_text(half, unit)}"
    return text


def _is_numeric(summary: Summary, key: str) -> bool:
    values = [json.loads(point).get(key) for point in summary.order]
    return all(isinstance(value, int | float | None) for value in values)
