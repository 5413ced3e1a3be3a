"""The small frames that an analysis writes, and the names of its points.

Everything here fits in memory: a row per run, per point and metric, per broker or per link of one run per point.
`load` reads what `analysis.aggregate.analyze` wrote, for the report and for notebooks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from analysis.report.numbers import UNKNOWN, known, number_text, value_text
from analysis.spark.metrics import OURS, Metric, describe
from analysis.spark.metrics.over_time import COLUMNS
from broker.trace.schema import FACTS
from coverlay import CoverlayError

# Columns that label every result, beside the point itself.
LABELS = ("strategy", "mode", "method", "epsilon", "overlay")
# Keys that a table need not show, because labels or metrics do: without `covering.recall` the recall is unknown.
_LABEL_KEYS = {"routing.strategy", "covering.epsilon", "covering.recall"}
# Points that differ only in these keys are a family, and are compared with each other.
ROUTING_KEYS = ("routing.", "covering.")
METRICS = "metrics.csv"  # in results: what each metric is, those of plug-ins too
DESCRIBED = ("name", "title", "unit", "definition", "formula", "signed")  # its columns
_UNKNOWN = dict.fromkeys(("mean", "sd", "low", "high", "min", "max"), math.nan) | {"n": 0}
SETTINGS = "settings"  # a run's value of every swept key, also of those that its point does not name, as JSON
SIMPLE_ENTRIES = "simple_entries"  # in a run's record: what simple routing would keep in the same trees


@dataclass(frozen=True)
class Summary:
    """What a sweep showed. All frames are small pandas frames."""

    out: Path
    runs: pd.DataFrame  # a row per run: run, seed, point, labels, one column per metric
    points: pd.DataFrame  # a row per point and metric: n, mean, sd, low, high (95 % over seeds), min, max
    differences: pd.DataFrame  # a row per point, factor and metric: paired difference to the baseline in that factor
    brokers: pd.DataFrame  # first seed of each point: run, broker, entries, processed
    links: pd.DataFrame  # first seed of each point: run, broker, neighbour, control, events, needless
    misses: pd.DataFrame  # first seed of each point: the missed covers that cost most, by subscription
    # First seed of each point in which work takes time: run and the COLUMNS of over_time.
    times: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = field(default=())

    @cached_property
    def order(self) -> list[str]:
        """The points, in the order in which tables and plots show them."""
        return sorted(self._labels, key=lambda point: _sort_key(json.loads(point), self._labels[point]))

    @cached_property
    def routed(self) -> list[str]:
        """The points that keep routing tables; others send no subscriptions, so they are always the least."""
        return [point for point in self.order if not is_flooding(self.labels(point))]

    @cached_property
    def point_of(self) -> dict[str, str]:
        """The point of each run."""
        return dict(zip(self.runs["run"], self.runs["point"], strict=True))

    @cached_property
    def _labels(self) -> dict[str, dict[str, Any]]:
        first = self.runs.drop_duplicates("point").to_dict("records")
        return {row["point"]: self._of_record(row) for row in first}

    def _of_record(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """The labels of a point by a run's record. Where a cap ended searches, no ε says what they may miss."""
        found = {name: row[name] for name in (*LABELS, *FACTS)}
        wanted = known(found["epsilon"]) or "covering.epsilon" in json.loads(row["point"])
        ended = wanted and self.mean(row["point"], "capped") > 0
        cap = self._cap([row["point"]], found["cap"]) if ended else ""
        return {**found, "ended": cap, "epsilon": math.nan if ended else found["epsilon"]}

    def _cap(self, points: Sequence[str], cap: float) -> str:
        """cap of 64, 20.8 % to 22.3 % searched."""
        shares = self.means("volume", points).values()
        ends = dict.fromkeys(number_text(end, "share") for end in (min(shares), max(shares))) if shares else ["?"]
        return f"cap{f' of {int(cap):,}' if known(cap) and cap > 0 else ''}, {' to '.join(ends)} searched"

    def labels_of(self, points: Sequence[str]) -> dict[str, Any]:
        """The labels that several points share; if a cap ended searches at one of them, how much all have seen."""
        labels = next((of for of in map(self.labels, points) if of["ended"]), self.labels(points[0]))
        return {**labels, "ended": self._cap(points, labels["cap"])} if labels["ended"] else labels

    @cached_property
    def _values(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        rows: Any = self.points.to_dict("records")
        return {(row["point"], row["metric"]): row for row in rows}

    def settings(self, point: str) -> dict[str, Any]:
        """The value of every swept key at a point, by default or named by it; none where a key does not exist."""
        return self._settings[point]

    @cached_property
    def _settings(self) -> dict[str, dict[str, Any]]:
        first = self.runs.drop_duplicates("point")
        return {point: json.loads(text) for point, text in zip(first["point"], first[SETTINGS], strict=True)}

    def labels(self, point: str) -> dict[str, Any]:
        """LABELS of a point, and the FACTS that its strategy and its covering method declare.

        `ended` says which cap ended some of its searches, and how much of the region an average search has seen; its ε
        is NaN then.
        """
        return self._labels[point]

    def value(self, point: str, metric: str) -> Mapping[str, Any]:
        """n, mean, sd, low, high, min and max of one metric at one point; NaN where it is unknown."""
        return self._values.get((point, metric), _UNKNOWN)

    def mean(self, point: str, metric: str) -> float:
        return float(self.value(point, metric)["mean"])

    def means(self, metric: str, points: Sequence[str] | None = None) -> dict[str, float]:
        """The known means of a metric, by point; of all points unless some are given."""
        of = {point: self.mean(point, metric) for point in (self.order if points is None else points)}
        return {point: mean for point, mean in of.items() if known(mean)}

    def happened(self, metric: str) -> bool:
        """Whether the metric is above 0 at any point."""
        return any(mean > 0 for mean in self.means(metric).values())

    @cached_property
    def swept(self) -> list[str]:
        """The keys that have more than one value; not every point has all of them.

        Lacking a key that another point of the same strategy has counts as a value: the rows would look alike.
        """
        points = [(self.labels(point)["strategy"], json.loads(point)) for point in self.order]
        found = []
        for key in dict.fromkeys(key for _, values in points for key in values):
            given = {json.dumps(values[key]) for _, values in points if key in values}
            having, lacking = ({s for s, values in points if (key in values) == has} for has in (True, False))
            if len(given) > 1 or having & lacking:
                found.append(key)
        return found

    @property
    def other_swept(self) -> list[str]:
        """The swept keys that labels or metrics do not show already."""
        return [key for key in self.swept if key not in _LABEL_KEYS]


def is_exact(labels: Mapping[str, Any]) -> bool:
    """Whether the search finds every cover; the ε of one that may miss for another reason is NaN."""
    return bool(labels["epsilon"] == 0)


def is_covering(labels: Mapping[str, Any]) -> bool:
    """Whether it searches for covers, so that ε has a meaning."""
    return bool(labels["searches"])


def is_plain_covering(labels: Mapping[str, Any]) -> bool:
    """Whether it searches for covers in all directions and merges nothing."""
    return is_covering(labels) and not labels["merges"] and labels["sends_to"] == "all"


def is_simple(labels: Mapping[str, Any]) -> bool:
    """Whether every subscription is sent to every broker: what others are compared with."""
    return labels["sends_to"] == "all" and not labels["holds_back"]


def is_flooding(labels: Mapping[str, Any]) -> bool:
    """Whether no subscription is sent: there are no routing tables."""
    return bool(labels["sends_to"] == "nobody")


def may_miss(labels: Mapping[str, Any]) -> bool:
    """Whether it searches for covers, but not exactly."""
    return is_covering(labels) and not is_exact(labels)


def epsilon_text(labels: Mapping[str, Any]) -> str:
    """What may be missed, with its meaning: 0 (exact), 0.1 of the volume, cap of 64, 9 % searched."""
    if is_exact(labels):
        return "0 (exact)"
    if labels["epsilon"] > 0:
        return f"{value_text(labels['epsilon'])} of the {labels['epsilon_of'] or 'volume'}"
    return str(labels["ended"]) or UNKNOWN


def approximation(labels: Mapping[str, Any]) -> str:
    """ε = 0.1 of the volume, or the cap that decided instead; empty if neither says what may be missed."""
    return f"ε = {epsilon_text(labels)}" if labels["epsilon"] > 0 else str(labels["ended"])


def search_name(summary: Summary, point: str) -> str:
    """How a point searches for covers, in a few words: zorder at ε = 0.1 of the volume; budget 32; exact (auto)."""
    labels, values = summary.labels(point), json.loads(point)
    told = {key: value for key, value in values.items() if key not in {*_LABEL_KEYS, "covering.method"}}
    options = {key.removeprefix("covering."): told[key] for key in told if key.startswith("covering.")}
    if labels["ended"]:  # says the cap already
        options = {option: value for option, value in options.items() if value != labels["cap"]}
    words = [f"{option.replace('_', ' ')} {value_text(value)}" for option, value in options.items()]
    method = str(labels["method"])
    if is_exact(labels):
        return f"exact ({', '.join([method, *words])})"
    if limit := approximation(labels):
        return ", ".join([f"{method}, {limit}", *words])
    return ", ".join(words if method in options else [method, *words])


def load(out: Path) -> Summary:
    """The results that an earlier analysis wrote to `out`."""
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
        lacking = OURS - set(frames["points"]["metric"])
        lacking |= {*OURS, *FACTS, SETTINGS, SIMPLE_ENTRIES} - set(frames["runs"].columns)
        lacking |= {"factor"} - set(frames["differences"].columns)
        if len(frames["times"]):
            lacking |= COLUMNS - set(frames["times"].columns)
        if lacking:
            raise ValueError(f"another version wrote it, without {min(lacking)}")
        for metric in described(folder):
            describe(metric)
        return Summary(out, **frames, warnings=tuple(notes["warnings"]))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        why = f"{folder} cannot be read ({error})"
        raise CoverlayError(f"{why}; run `coverlay analyze {out}` again") from error


def described(folder: Path) -> list[Metric]:
    """What each metric in results is; none if an earlier version wrote them, which had only ours."""
    if not (folder / METRICS).is_file():
        return []
    rows: Any = pd.read_csv(folder / METRICS, keep_default_na=False).to_dict("records")
    return [Metric(**row) for row in rows]


# The file name of each frame of a Summary.
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
    """What a point shares with those that differ only in how they route."""
    rest = {key: value for key, value in point.items() if not key.startswith(ROUTING_KEYS)}
    return json.dumps(rest, sort_keys=True)


def _sort_key(point: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[Any, ...]:
    rest = [(key, _ordered(value)) for key, value in sorted(point.items()) if key not in _LABEL_KEYS]
    family_keys = [item for item in rest if not item[0].startswith(ROUTING_KEYS)]
    routing_keys = [item for item in rest if item[0].startswith(ROUTING_KEYS)]
    # From no tables to the smallest ones: flooding, simple, others without a search, covering, merging, hierarchies.
    kind = [not is_flooding(labels), not is_simple(labels), is_covering(labels), labels["sends_to"] == "root"]
    order = [*kind, bool(labels["merges"]), str(labels["strategy"])]
    return (family_keys, order, routing_keys, _ordered(point.get("covering.epsilon", labels["epsilon"])))


def _ordered(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then everything else by name: a key may have both."""
    if isinstance(value, int | float) and known(value):
        return (0, float(value), "")
    return (1, 0.0, str(value))
