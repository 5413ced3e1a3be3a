"""What the kinds of answers share: the findings of a sweep, what differs in it, and how it is said and drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analysis.report.numbers import number_text, value_text
from analysis.report.sentences import SAME, extremes, said
from analysis.report.study import Case, Price, study
from analysis.report.summary import Summary
from analysis.report.thresholds import Thresholds
from analysis.report.told import Told
from analysis.spark.metrics import CATALOGUE

MOST_PANELS = 3  # metrics in one picture
MOST_ROWS = 14  # settings in a picture that has one row each
GROWS = 3  # values of a swept number that make a curve
ALIKE_SHARE = 0.005  # shares that differ by no more count as equal
# What people ask about first; pictures show those of them that differ.
USUAL = (
    "entries", "latency_p99", "check_time", "convergence_p95", "event_messages", "control_messages", "probes_per_check",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What to say, which columns come first, and what to draw; see report.js for the kinds of pictures."""

    sentences: tuple[str, ...]
    metrics: tuple[str, ...]
    pictures: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Findings:
    """The results of a sweep, and what the simulator told about it."""

    summary: Summary
    told: Told = field(default_factory=Told)
    thresholds: Thresholds = field(default_factory=Thresholds)  # when approximation pays
    profiles: Mapping[str, Price] | None = None  # to compute costs under; None: those shipped when the sweep ran

    @cached_property
    def cases(self) -> list[Case]:
        return study(self.summary, self.thresholds, self.profiles)

    @property
    def points(self) -> list[str]:
        return self.summary.order

    def mean(self, point: str, metric: str) -> float:
        return self.summary.mean(point, metric)

    def text(self, point: str, metric: str) -> str:
        return with_unit(self.mean(point, metric), metric)

    def after_title(self, point: str, metric: str) -> str:
        """`text` to follow the metric's title, without a unit that the title names: control messages: 7,229."""
        unit = CATALOGUE[metric].unit
        return self.text(point, metric).removesuffix(unit if unit in CATALOGUE[metric].title.split() else "").rstrip()

    def beside(self, key: str, point: str) -> str:
        """The values of a point's other swept keys: strategy covering, brokers 20; empty if there are none."""
        values = json.loads(point)
        given = {other: values[other] for other in self.summary.swept if other != key and other in values}
        names = (f"{other.rpartition('.')[2].replace('_', ' ')} {value_text(value)}" for other, value in given.items())
        return ", ".join(names)

    def sweeps(self, *beginnings: str) -> bool:
        """Whether a key that starts with one of these has several values."""
        return any(key.startswith(beginnings) for key in self.summary.swept)

    def numbers(self) -> list[str]:
        """The swept keys with at least GROWS numbers, the key with the most first."""
        found = {}
        for key in self.summary.swept:
            values = {json.loads(point).get(key) for point in self.points}
            if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                found[key] = len(values)
        return [key for key in sorted(found, key=lambda key: -found[key]) if found[key] >= GROWS]


def with_unit(number: float, metric: str) -> str:
    """A metric with its unit: 49 ms, 12.3 %, 7,116 messages."""
    unit = CATALOGUE[metric].unit
    text = number_text(number, unit)
    return text if unit in {"share", "ratio", "0..1"} else f"{text} {unit}"


def differs(summary: Summary, metric: str) -> bool:
    """Whether the settings differ in a metric by enough to mention."""
    known = summary.means(metric).values()
    if len(known) < 2:
        return False
    if CATALOGUE[metric].unit == "share":
        return max(known) - min(known) > ALIKE_SHARE
    return max(known) - min(known) > SAME * max(abs(value) for value in known)


def differing(summary: Summary, metrics: Sequence[str], most: int = MOST_PANELS) -> tuple[str, ...]:
    """The first `most` metrics in which settings differ, without those that repeat another's numbers."""
    found: dict[tuple[float, ...], str] = {}
    for metric in metrics:
        if differs(summary, metric):
            found.setdefault(tuple(summary.mean(point, metric) for point in summary.order), metric)
    return tuple(found.values())[:most]


def same_everywhere(summary: Summary, metrics: Sequence[str]) -> str:
    """One sentence about the metrics that are alike in every setting where they are known; empty if there are none."""
    words, nearly = [], False
    for metric in metrics:
        known = summary.means(metric).values()
        if known and not differs(summary, metric):
            where = "" if len(known) == len(summary.order) else ", where it is known"
            least, most = number_text(min(known), CATALOGUE[metric].unit), with_unit(max(known), metric)
            ranges = with_unit(min(known), metric) != most
            nearly |= ranges
            words.append(f"{CATALOGUE[metric].title} ({f'{least} to ' * ranges}{most}{where})")
    same = "The same, or nearly so," if nearly else "The same"
    return f"{same} in every setting: {'; '.join(words)}." if words and len(summary.order) > 1 else ""


# ── pictures ───────────────────────────────────────────────────────────────────────────────────────────────


def pictures(metrics: Sequence[str], key: str | None = None) -> tuple[Mapping[str, Any], ...]:
    """One picture per metric: lines with `key` on the horizontal axis or, without a key, a row per setting."""
    kind, against = ("rows", {}) if key is None else ("lines", {"key": key})
    return tuple({"kind": kind, "metrics": [m], **against, "title": CATALOGUE[m].title} for m in metrics)


def drawn(findings: Findings, metrics: Sequence[str], key: str | None = None) -> tuple[Mapping[str, Any], ...]:
    """Pictures with lines along `key`; without it, rows if there are few settings, else lines along the longest key."""
    few = len(findings.points) <= MOST_ROWS
    return pictures(metrics, key or (None if few else _longest(findings.summary)))


def _longest(summary: Summary) -> str:
    counts = {key: len({json.dumps(json.loads(p).get(key)) for p in summary.order}) for key in summary.other_swept}
    return max(counts, key=lambda key: counts[key]) if counts else "strategy"


# ── sentences that several answers use ───────────────────────────────────────────────────────────────────────


def span(findings: Findings, metric: str, what: str) -> str:
    """`what`, then the least and the most with their settings; one value if all are alike."""
    ends = extremes(findings.summary, metric, findings.summary.routed)
    if ends is None:
        known = list(findings.summary.means(metric, findings.summary.routed))
        where = ", in every setting" if len(known) == len(findings.points) > 1 else ""
        return f"{what}: {findings.text(known[0], metric)}{where}." if known else ""
    low, high = (findings.text(point, metric) for point in ends)
    least, most = (said(findings.summary, point) for point in ends)
    return f"{what}: {low} with {least}, {high} with {most}."


def sentences(*found: str) -> tuple[str, ...]:
    return tuple(sentence for sentence in found if sentence)
