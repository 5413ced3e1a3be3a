"""The answer that a page and the terminal begin with: sentences made from effects, the metrics asked about, pictures.

What is asked is in the experiment's `asks`; without it, what usually matters where this was swept or happened.
A study of approximate covering says its verdicts (study_words), and has pictures of its own; a search for the highest
rate has its own sentences (rates).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.report import words
from analysis.report.effects import Effects, varied
from analysis.report.numbers import number_text
from analysis.report.rates import RATE, rate_sentences
from analysis.report.study import Case
from analysis.report.study_words import verdicts
from analysis.report.told import Loss, Told
from analysis.spark.metrics import CATALOGUE, metric

MOST = 6  # metrics that answer
MOST_PANELS = 3  # metrics in one picture
MOST_LINES = 6  # with a legend
MOST_ROWS = 14  # settings in a picture that has one row each
SECOND = 1000.0  # events per ms in files, per second in pictures
FULL = 1.0  # from this load on, a queue grows for as long as events come
USUAL = ("entries", "control_messages", "event_messages", "check_time", "latency_p99", "convergence_p95")
# What is asked about without being told: the first line that has happened, or was swept.
USUAL_IF_HAPPENED = (
    (
        "switchovers",
        ("delivery_ratio", "unavoidable_share", "spare_share", "outage_mean", "switchover_mean", "switchover_messages"),
    ),
    (
        "failures",
        ("delivery_ratio", "unavoidable_share", "spare_share", "outage_mean", "repair_mean", "control_messages"),
    ),
    (
        "messages_per_event",
        ("messages_per_event", "last_winner_mean", "brokers_visited", "entries", "control_messages"),
    ),
)
USUAL_IF_SWEPT = (
    (RATE, ("latency_p99", "latency_p50", "event_load")),
    ("matching.method", ("event_rate_held", "latency_p99", "latency_p50", "waiting_mean")),
    ("overlay.", ("entries", "control_messages", "event_messages", "hops", "latency_p99")),
)
OF_A_STUDY = ("control_messages", "entries", "check_time", "probes_per_check", "convergence_p95", "recall")


@dataclass(frozen=True)
class Answer:
    """What to say, which columns come first, and what to draw; see report.js for the kinds of pictures."""

    sentences: tuple[words.Sentence, ...]
    metrics: tuple[str, ...]
    pictures: tuple[Mapping[str, Any], ...] = ()


def asked(effects: Effects, wanted: Sequence[str] = (), cases: Sequence[Case] = ()) -> tuple[str, ...]:
    """The metrics that answer, those that are known."""
    summary = effects.summary
    swept = [key for factor in effects.factors for key in factor.keys]
    usual = [
        *([OF_A_STUDY] if cases else []),
        *(names for name, names in USUAL_IF_HAPPENED if summary.happened(name)),
        *(names for start, names in USUAL_IF_SWEPT if any(key.startswith(start) for key in swept)),
        USUAL,
    ]
    names = [metric(name).name for name in wanted] or usual[0]
    return tuple(name for name in names if summary.means(name))[:MOST] or tuple(
        name for name in USUAL if summary.means(name)
    )


def answer(
    effects: Effects, told: Told | None = None, cases: Sequence[Case] = (), wanted: Sequence[str] = ()
) -> Answer:
    told, metrics = told or Told(), asked(effects, wanted, cases)
    if told.held is not None:
        found = rate_sentences(effects, told.held)
    else:
        found = verdicts(cases) or words.sentences(effects, metrics)
    drawn = () if cases else _pictures(effects, told, metrics)
    return Answer(tuple(s for s in found if s.text), metrics, tuple(drawn))


# ── pictures ───────────────────────────────────────────────────────────────────────────────────────────────


def _pictures(effects: Effects, told: Told, metrics: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    lost = _lost_over_time(effects, told)
    by_rate = [factor for factor in effects.factors if factor.keys == (RATE,) and len(factor.levels) > 2]
    if told.held is not None or by_rate:
        return _curves(effects, told)
    return [*lost, *drawn(effects, differing(effects, metrics)[: MOST_PANELS - len(lost)])]


def differing(effects: Effects, metrics: Sequence[str]) -> list[str]:
    """The metrics in which settings differ, without those that repeat another's numbers."""
    found: dict[tuple[str, ...], str] = {}
    for name in varied(effects, metrics):
        means = [effects.summary.mean(point, name) for point in effects.summary.order]
        shown = tuple(number_text(mean, CATALOGUE[name].unit) for mean in means)
        if len(set(shown)) > 1:
            found.setdefault(shown, name)
    return list(found.values())


def drawn(effects: Effects, metrics: Sequence[str]) -> list[Mapping[str, Any]]:
    """A picture per metric: a row per setting if there are few, else lines along the factor with most levels."""
    of: dict[str, Any] = {"kind": "rows"}
    number = next((factor for factor in effects.factors if factor.numbers and len(factor.levels) > 2), None)
    if number is not None or len(effects.summary.order) > MOST_ROWS:
        along = number or max(effects.factors, key=lambda factor: len(factor.levels))
        wide = len(effects.summary.order) > MOST_LINES * len(along.levels)  # their names are beside them
        of = {"kind": "lines", "key": along.title, "wide": wide}
    return [{**of, "metrics": [name], "title": CATALOGUE[name].title} for name in metrics]


def _curves(effects: Effects, told: Told) -> list[Mapping[str, Any]]:
    """Latency and load against the rate in events per second; pictures with the same title share a place."""
    held = told.held
    limits = [] if held is None else [{"y": held.limit, "name": f"limit {number_text(held.limit, 'ms')} ms"}]
    full = [{"y": FULL, "name": "as much work as time"}]
    latencies = [("latency_p99",), ("latency_p50",)] if len(effects.factors) > 1 else [("latency_p99", "latency_p50")]
    key = next((factor.title for factor in effects.factors if RATE in factor.keys), "")
    shared = {"kind": "curve", "key": key, "per": SECOND, "x": "events per second"}
    found: list[Mapping[str, Any]] = [
        {**shared, "title": "Latency against the rate", "case": CATALOGUE[names[0]].title, "metrics": list(names),
         "y": "ms", "marks": limits}
        for names in latencies
    ]  # fmt: skip
    load = {"title": "Load of the busiest broker against the rate", "case": CATALOGUE["event_load"].title}
    return [*found, {**shared, **load, "metrics": ["event_load"], "y": "work ÷ time", "marks": full}] if key else []


def _lost_over_time(effects: Effects, told: Told) -> list[Mapping[str, Any]]:
    """A line per setting, and below it whose clients lost; settings alike in both are one."""
    if not effects.summary.happened("failures"):
        return []
    found: dict[tuple[Any, ...], tuple[Loss, list[str]]] = {}
    for loss in told.losses:
        if loss.run in effects.summary.point_of:
            title = effects.title(effects.summary.point_of[loss.run])
            found.setdefault((loss.times, loss.brokers), (loss, []))[1].append(title)
    lines = [("\u00a0= ".join(titles), loss) for loss, titles in found.values()]
    picture = {
        "kind": "times",
        "wide": True,  # its names are long
        "title": "Share of the deliveries lost, by time of publication",
        "y": "share lost",
        "unit": "share",
        "rows": [row for name, loss in lines for row in loss.rows(name)],
        "lost": [f"{name}: {loss.in_words()}" for name, loss in lines],
        "marks": [mark for _, loss in lines[:1] for mark in loss.marks],
    }
    return [picture] if lines else []
