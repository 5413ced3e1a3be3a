"""The small frames that an analysis leaves behind, and the table people read first.

Everything here fits in memory by construction: a row per run, per point and metric, per broker or per link
of one run per point. `load` reads back what `analysis.spark.aggregate.analyze` wrote, for the report and for
notebooks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO
from coverlay import CoverlayError

# Column names of the labels that every result carries beside the point itself.
LABELS = ("strategy", "mode", "method", "epsilon", "overlay")
# The keys that labels and metrics show already, so that a table does not show them twice: where exact covering was not
# asked, its recall is unknown.
_LABEL_KEYS = {"routing.strategy", "covering.epsilon", "covering.recall"}
# From least to most routing state saved; unknown strategies come last.
STRATEGY_ORDER = ("flooding", "simple", "identity", "covering", "merging")
COVERING_STRATEGIES = {"covering", "merging"}  # those that search for covers, so that ε means something
# A family is what is compared with each other: points that differ only in how they route.
ROUTING_KEYS = ("routing.", "covering.")

TABLE_METRICS = (
    "entries",
    "reduction",
    "control_messages",
    "recall",
    "check_time",
    "probes_per_check",
    "convergence_p95",
    "event_messages",
    "latency_p95",
    "latency_p99",
    "missed",
    "duplicates",
)
MISSING_OPTIONS = ("budget", "node_budget", "accept_missing")  # by which a search may miss, beside ε
QUOTED_METRICS = ("reduction",)  # printed with their interval; ± beside every number would hide the numbers
ALARM_METRICS = tuple(name for name in MUST_BE_ZERO if name not in TABLE_METRICS)  # shown where there are any
LOSS_METRICS = (*LOSSES, "repair_mean")
_SHORT_TITLES = {
    "missed_transient": "converging",
    "missed_dropped": "dropped",
    "missed_fault": "lost to faults",
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
UNKNOWN = "–"
NONE = "none"  # flooding keeps no tables and tells nobody of a subscription: no achievement
LARGE = 1e9  # from here on powers of ten: nobody reads 17,709,270,733,157
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Summary:
    """What a sweep showed. All frames are small pandas frames."""

    out: Path
    runs: pd.DataFrame  # a row per run: run, seed, point, labels, one column per metric
    points: pd.DataFrame  # a row per point and metric: n, mean, sd, low, high (95 % over seeds), min, max
    differences: pd.DataFrame  # a row per point and metric: paired difference to the baseline of its family
    brokers: pd.DataFrame  # first seed of each point: run, broker, entries, processed
    links: pd.DataFrame  # first seed of each point: run, broker, neighbour, control, events, needless
    misses: pd.DataFrame  # first seed of each point: the missed covers that cost most, by subscription
    # First seed of each point in which work takes time: run, broker, start, width, messages, events, waited, busy.
    times: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = field(default=())

    @cached_property
    def order(self) -> list[str]:
        """The points, in the order in which tables and plots show them."""
        return sorted(self._labels, key=lambda point: _sort_key(json.loads(point), self._labels[point]))

    @cached_property
    def _labels(self) -> dict[str, dict[str, Any]]:
        first = self.runs.drop_duplicates("point")
        return {row["point"]: {name: row[name] for name in LABELS} for row in first.to_dict("records")}

    @cached_property
    def _values(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        rows: Any = self.points.to_dict("records")
        return {(row["point"], row["metric"]): row for row in rows}

    def labels(self, point: str) -> dict[str, Any]:
        """strategy, mode, method, epsilon and overlay of a point."""
        return self._labels[point]

    def value(self, point: str, metric: str) -> Mapping[str, Any]:
        """n, mean, sd, low, high, min and max of one metric at one point; NaN where it is unknown."""
        return self._values[point, metric]

    @cached_property
    def swept(self) -> list[str]:
        """The keys of which the points have more than one value; a point need not have all of them.

        To lack a key that others of the same strategy have is a value too: the rows would look alike without it.
        """
        points = [(self.labels(point)["strategy"], json.loads(point)) for point in self.order]
        keys = dict.fromkeys(key for _, values in points for key in values)
        return [key for key in keys if self._varies(key, points)]

    @staticmethod
    def _varies(key: str, points: list[tuple[str, dict[str, Any]]]) -> bool:
        given = {json.dumps(values[key]) for _, values in points if key in values}
        having = {strategy for strategy, values in points if key in values}
        lacking = {strategy for strategy, values in points if key not in values}
        return len(given) > 1 or bool(having & lacking)

    @cached_property
    def epsilon_methods(self) -> set[str]:
        """The methods that were given an ε."""
        return {labels["method"] for labels in self._labels.values() if labels["epsilon"] > 0}

    def _repr_html_(self) -> str:
        """As a notebook shows it: the answer in words, the table, and where the page is."""
        from analysis.report import chosen
        from analysis.report.sentences import brief

        points = chosen.rows(self, ())
        shown = table(self, points=points)
        head = "".join(f"<th>{escape(header)}</th>" for header in shown.headers)
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in shown.rows)
        words = " ".join(
            [*brief(self), chosen.left_out(self, points), *(f"Note: {warning}." for warning in self.warnings)]
        )
        page = self.out / "report.html"
        where = f"page: {page}" if page.is_file() else f"`coverlay report {self.out}` writes the page"
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p>{escape(words)}</p><table><tr>{head}</tr>{body}</table><p>{escape(where)}</p>"

    @property
    def other_swept(self) -> list[str]:
        """The swept keys that the labels strategy and ε do not show already."""
        return [key for key in self.swept if key not in _LABEL_KEYS]


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
    """`first`, the usual metrics, those of pruning, losses and repair where there were any; none that nobody has."""

    def happened(name: str) -> bool:
        return any(summary.value(point, name)["mean"] > 0 for point in summary.order)

    def known(name: str) -> bool:
        return any(_known(summary.value(point, name)["mean"]) for point in summary.order)

    alarms = [name for name in ALARM_METRICS if happened(name)]
    losses = [name for name in LOSS_METRICS if happened(name)]
    ratios = [summary.value(point, "delivery_ratio")["mean"] for point in summary.order]
    some_lost = any(number_text(ratio, "share") != number_text(1.0, "share") for ratio in ratios if _known(ratio))
    usual = list(TABLE_METRICS)
    if happened("pruned"):
        usual.insert(usual.index("entries") + 1, "pruned")
    wanted = (*first, *usual, *alarms, *losses, *(("delivery_ratio",) if some_lost else ()))
    return tuple(name for name in dict.fromkeys(wanted) if known(name))


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
    labels = ["strategy"]
    if any(is_covering(summary.labels(point)) for point in summary.order):
        labels.append("epsilon")
    columns = [Column({"epsilon": "ε"}.get(name, name), name == "epsilon") for name in labels]
    columns += [Column(_short(key), _is_numeric(summary, key)) for key in keys]
    columns += [Column(_SHORT_TITLES.get(m, CATALOGUE[m].title), True, m) for m in metrics]
    rows = []
    for point in points:
        have, values = summary.labels(point), json.loads(point)
        cells = [label_text(have, name) for name in labels]
        cells += [value_text(values.get(key)) for key in keys]
        cells += [
            NONE if _no_tables(have, m) else metric_text(summary.value(point, m), m, m in intervals) for m in metrics
        ]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows), tuple(points))


def _short(key: str) -> str:
    """The keys of how to route are known by their last word; tables are wide enough."""
    return key.partition(".")[2] if key.startswith(ROUTING_KEYS) else key


def _no_tables(labels: Mapping[str, Any], metric: str) -> bool:
    return labels["strategy"] == "flooding" and metric in {"entries", "reduction", "pruned", "convergence_p95"}


def is_exact(labels: Mapping[str, Any]) -> bool:
    """Whether covering finds every cover there is; a search that may miss for another reason has no ε."""
    return bool(labels["epsilon"] == 0)


def is_covering(labels: Mapping[str, Any]) -> bool:
    return labels["strategy"] in COVERING_STRATEGIES


def may_miss(labels: Mapping[str, Any]) -> bool:
    """Whether it searches for covers, and not exactly."""
    return is_covering(labels) and not is_exact(labels)


def label_text(labels: Mapping[str, Any], name: str) -> str:
    value = labels[name]
    if name in {"epsilon", "method"} and not is_covering(labels):
        return UNKNOWN
    if name == "epsilon" and value == 0:
        return "0 (exact)"
    return value_text(value)


def value_text(value: Any) -> str:
    """A value from an experiment file as a table shows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return value if isinstance(value, str) else json.dumps(value)


def point_title(summary: Summary, point: str) -> str:
    """A point in a few words, for legends and menus: `covering ε=0.05, overlay.brokers=50`."""
    labels = summary.labels(point)
    words = value_text(labels["strategy"])
    if is_covering(labels) and _known(labels["epsilon"]):
        words += " exact" if is_exact(labels) else f" ε={value_text(labels['epsilon'])}"
    return ", ".join([words, *other_keys(summary, point)])


def other_keys(summary: Summary, point: str) -> list[str]:
    """The point's swept keys beside strategy and ε, as `key=value`."""
    values = json.loads(point)
    return [f"{key}={value_text(values[key])}" for key in summary.other_swept if key in values]


def metric_text(value: Mapping[str, Any], name: str, interval: bool = False) -> str:
    """A metric's mean as text, in its unit's usual form, with ± the half width of the interval if asked."""
    unit = CATALOGUE[name].unit
    text = number_text(value["mean"], unit)
    half = value["high"] - value["mean"] if _known(value["high"]) else 0.0
    if interval and text != UNKNOWN and half > 0:
        text += f" ± {100 * half:.1f} points" if unit == "share" else f" ± {number_text(half, unit)}"
    return text


def number_text(number: Any, unit: str) -> str:
    if not _known(number):
        return UNKNOWN
    if unit == "share":
        return f"{100 * number:.1f} %"
    if abs(number) >= LARGE:
        digits, _, exponent = f"{number:.2e}".partition("e")
        return f"{digits}×10{str(int(exponent)).translate(_RAISED)}"
    if abs(number) >= 100 or number == round(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def duration_text(milliseconds: Any) -> str:
    """In the unit one says it in: 0.27 µs, 91.5 ms, 2.1 hours."""
    if not _known(milliseconds):
        return UNKNOWN
    largest_first = ((3.6e6, "hours"), (6e4, "minutes"), (1e3, "s"), (1.0, "ms"))
    for size, unit in largest_first:
        if milliseconds >= size:
            return (
                f"{milliseconds / size:,.3g} {unit}"
                if milliseconds < 1000 * size
                else f"{milliseconds / size:,.0f} {unit}"
            )
    return f"{1000 * milliseconds:.3g} µs"


def search_name(summary: Summary, point: str) -> str:
    """How a point searches for covers, in a few words: ε = 0.1, budget 32; the method first where several take an ε."""
    labels, values = summary.labels(point), json.loads(point)
    if labels["epsilon"] > 0:
        name = f"ε = {value_text(labels['epsilon'])}"
        return f"{labels['method']} at {name}" if len(summary.epsilon_methods) > 1 else name
    for option in MISSING_OPTIONS:
        if f"covering.{option}" in values:
            told = "" if option == labels["method"] else f"{labels['method']}, "
            return f"{told}{option.replace('_', ' ')} {value_text(values[f'covering.{option}'])}"
    return str(labels["method"])


def load(out: Path) -> Summary:
    """The results that an earlier analysis left in `out`."""
    if not out.is_dir():
        raise CoverlayError(f"there is no folder {out}: `coverlay run … --out {out}` makes it")
    folder = out / "results"
    missing = [f"{file}.parquet" for file in FILES.values() if not (folder / f"{file}.parquet").is_file()]
    if missing:
        part = len(missing) < len(FILES)  # an earlier version knew fewer tables
        lacks = f", or by another version: {folder} lacks {', '.join(missing)}" if part else ""
        run = f"run `coverlay analyze {out}` {'again' if part else 'first'}"
        raise CoverlayError(f"{out} has not been analysed yet{lacks}; {run}")
    try:
        frames = {
            name: pd.read_parquet(folder / f"{file}.parquet", page_checksum_verification=True)
            for name, file in FILES.items()
        }
        notes = json.loads((folder / "notes.json").read_text(encoding="utf-8"))
        lacking = set(CATALOGUE) - set(frames["points"]["metric"]) | set(CATALOGUE) - set(frames["runs"].columns)
        if lacking:
            raise ValueError(f"another version wrote it, without {min(lacking)}")
        return Summary(out, **frames, warnings=tuple(notes["warnings"]))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        why = f"{folder} cannot be read ({error})"
        raise CoverlayError(f"{why}; run `coverlay analyze {out}` again") from error


# What each frame of a Summary is called on disk.
FILES = {
    "runs": "run_metrics",
    "points": "summary",
    "differences": "differences",
    "brokers": "broker_metrics",
    "links": "link_metrics",
    "misses": "missed_covers",
    "times": "broker_times",
}


def family(point: Mapping[str, Any]) -> str:
    """What points have in common that differ only in how they route."""
    rest = {key: value for key, value in point.items() if not key.startswith(ROUTING_KEYS)}
    return json.dumps(rest, sort_keys=True)


def _sort_key(point: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[Any, ...]:
    rest = [(key, _ordered(value)) for key, value in sorted(point.items()) if key not in _LABEL_KEYS]
    family_keys = [item for item in rest if not item[0].startswith(ROUTING_KEYS)]
    routing_keys = [item for item in rest if item[0].startswith(ROUTING_KEYS)]
    strategy = labels["strategy"]
    rank = STRATEGY_ORDER.index(strategy) if strategy in STRATEGY_ORDER else len(STRATEGY_ORDER)
    return (family_keys, rank, str(strategy), routing_keys, _ordered(labels["epsilon"]))


def _ordered(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then everything else by name: values of one key may mix both."""
    if isinstance(value, int | float) and _known(value):
        return (0, float(value), "")
    return (1, 0.0, str(value))


def _is_numeric(summary: Summary, key: str) -> bool:
    values = [json.loads(point).get(key) for point in summary.order]
    return all(isinstance(value, int | float | None) for value in values)


def _known(number: Any) -> bool:
    return number is not None and not math.isnan(number)
