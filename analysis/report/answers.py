"""The answer that a page opens with: sentences, the metrics that answer, and a picture of them.

Which one it is follows from what was swept and what happened: ANSWERS lists the kinds, the most particular first, and
the first that applies is taken. A kind is a function from the findings to an `Answer`, or None where it has nothing to
say; `in_general` always has. All choose among metrics by one rule, `differing`: what is the same everywhere is said in
a sentence, not drawn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from analysis.report.findings import (
    GROWS,
    MOST_PANELS,
    MOST_ROWS,
    USUAL,
    Answer,
    Findings,
    against,
    differing,
    differs,
    drawn,
    rows_of_settings,
    same_everywhere,
    sentences,
    span,
)
from analysis.report.ranks import of_ranks
from analysis.report.sentences import (
    about_latency,
    about_search,
    about_settling,
    about_tables,
    about_traffic,
    extremes,
    said,
)
from analysis.report.study_words import called, overall, sensitivity_sentence, trade_rows
from analysis.report.summary import is_covering, number_text, value_text
from analysis.spark.metrics import CATALOGUE

OFTEN = 0.01  # of the deliveries


def answer(findings: Findings) -> Answer:
    """The first of ANSWERS that applies."""
    return next(found for kind in ANSWERS if (found := kind(findings)) is not None)


def after_failures(findings: Findings) -> Answer | None:
    """What was lost while brokers crashed and links were cut, when, where, and how long repair took."""
    if not findings.happened("failures"):
        return None
    metrics = ("delivery_ratio", "missed_fault", "outage_mean", "repair_mean")
    told = findings.told.losses
    words = sentences(
        _lost(findings),
        span(findings, "outage_mean", "From a failure until everything is whole again it takes, on average"),
        span(findings, "repair_mean", "Repair itself, from the restart or the mended link on, takes"),
        *(loss.where() for loss in told[:1]),
    )
    over_time = {
        "kind": "times",
        "title": "Share of the deliveries lost, by time of publication",
        "y": "share lost",
        "unit": "share",
        "rows": _alike_as_one([loss.rows(_title(findings, loss.run)) for loss in told]),
        "marks": [mark for loss in told[:1] for mark in loss.marks],
    }
    pictures = (over_time,) if over_time["rows"] else rows_of_settings(differing(findings.summary, metrics))
    return Answer(words, metrics, pictures)


def _alike_as_one(lines: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of all lines; those that lie on each other are one line with all their names."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for line in lines:
        found.setdefault(json.dumps([(row["x"], row["y"]) for row in line]), []).append(line)
    return [
        {**row, "series": " = ".join(other[0]["series"] for other in same)}
        for same in found.values()
        if same[0]
        for row in same[0]
    ]


def _title(findings: Findings, run: str) -> str:
    runs = findings.summary.runs
    return said(findings.summary, str(runs.loc[runs["run"] == run, "point"].iloc[0]))


def _lost(findings: Findings) -> str:
    shares = {point: 1 - findings.mean(point, "delivery_ratio") for point in findings.points}
    known = {point: share for point, share in shares.items() if share == share}
    if not known:
        return ""
    least, most = min(known, key=lambda p: known[p]), max(known, key=lambda p: known[p])
    if number_text(known[least], "share") == number_text(known[most], "share"):
        return f"{number_text(known[most], 'share')} of the deliveries were lost, in every setting."
    low, high = number_text(known[least], "share"), number_text(known[most], "share")
    return (
        f"{low} of the deliveries were lost with {said(findings.summary, least)}, {high} with "
        f"{said(findings.summary, most)}."
    )


def of_epsilon(findings: Findings) -> Answer | None:
    """What an approximate search keeps of exact covering's saving, against what it costs."""
    cases = findings.cases
    if not cases:
        return None
    metrics = (
        "reduction",
        "control_messages",
        "entries",
        "check_time",
        "probes_per_check",
        "convergence_p95",
        "recall",
    )
    pictures = [
        {
            "kind": "trade",
            "title": f"Saving kept against the cost of searching, {called(profile)}",
            "x": f"{case.unit} per subscription",
            "y": "saving kept",
            "case": case.title,
            "rows": trade_rows(case, profile),
        }
        for profile in cases[0].profiles
        for case in cases
    ]
    return Answer((overall(cases), sensitivity_sentence(cases)), metrics, tuple(pictures))


RATE, SECOND = "arrivals.publish_rate", 1000.0  # events per ms in files, per second in words and pictures
FULL = 1.0  # the load from which on a queue grows for as long as events come


def of_capacity(findings: Findings) -> Answer | None:
    """The rate that a search found, whatever else happened or was swept."""
    return of_load(findings) if findings.told.held is not None else None


def of_load(findings: Findings) -> Answer | None:
    """How latency and load grow with the rate of events, and which rate is held where that was searched."""
    held = findings.told.held
    if RATE not in findings.numbers() or (held is None and not differs(findings.summary, "latency_p99")):
        return None
    words = held.sentences if held is not None else sentences(*_bends(findings))
    limits = [] if held is None else [{"y": held.limit, "name": f"limit {number_text(held.limit, 'ms')} ms"}]
    several = bool([key for key in findings.summary.swept if key != RATE])
    shown = ("latency_p99", "latency_p50")
    pictures = [
        _curve("Latency against the rate", "ms", metrics, limits)
        for metrics in ([(metric,) for metric in shown] if several else [shown])
    ]
    full = [{"y": FULL, "name": "as much work as time"}]
    pictures.append(_curve("Load of the busiest broker against the rate", "work ÷ time", ("event_load",), full))
    return Answer(words, (*shown, "event_load"), tuple(pictures))


def _curve(title: str, y: str, metrics: tuple[str, ...], marks: list[dict[str, Any]]) -> dict[str, Any]:
    """A picture against the rate in events per second; those of one title share a place, with a menu of their cases."""
    case = CATALOGUE[metrics[0]].title
    return {
        "kind": "curve",
        "title": title,
        "case": case,
        "metrics": list(metrics),
        "key": RATE,
        "per": SECOND,
        "x": "events per second",
        "y": y,
        "marks": marks,
    }


def _bends(findings: Findings) -> list[str]:
    """A sentence per setting, from its lowest rate to its highest."""
    others = [key for key in findings.summary.swept if key != RATE]
    lines: dict[str, list[tuple[float, str]]] = {}
    for point in findings.points:
        values = json.loads(point)
        name = ", ".join(f"{key.rpartition('.')[2]} {value_text(values[key])}" for key in others if key in values)
        lines.setdefault(name, []).append((SECOND * values[RATE], point))
    return [_bend(findings, name, sorted(line)) for name, line in list(lines.items())[:MOST_ROWS]]


def _bend(findings: Findings, name: str, line: list[tuple[float, str]]) -> str:
    (low, first), (high, last) = line[0], line[-1]
    within = (
        f"99 % of the deliveries arrive within {findings.text(first, 'latency_p99')} at {number_text(low, '')} "
        f"events/s and within {findings.text(last, 'latency_p99')} at {number_text(high, '')}"
    )
    loads = [(rate, findings.mean(point, "event_load")) for rate, point in line]
    full = next((rate for rate, load in loads if load >= FULL), None)
    most = max((load for _, load in loads if load == load), default=0.0)
    busy = f"the busiest broker has work for at most {number_text(most, 'share')} of the time"
    if full is not None:
        at = number_text(full, "")
        busy = f"from {at} events/s on a broker has more work than time, and its queue grows without end"
    return f"{f'With {name}: ' if name else ''}{within}{f'; {busy}' if most else ''}."


def of_matchers(findings: Findings) -> Answer | None:
    """What a matcher does to the event rate held and to latency, along the subscriptions where these are swept too."""
    if not findings.sweeps("matching.method"):
        return None
    wanted = ("event_rate_held", "latency_p99", "latency_p95", "latency_p50", "waiting_mean")
    metrics = differing(findings.summary, wanted)
    if not metrics:
        alike = same_everywhere(findings.summary, wanted)
        why = "Matching takes no simulated time here, so that no matcher is faster than another. "
        return Answer((why + alike,), wanted, ())
    key = next(iter(findings.numbers()), None)
    words = _rates_held(findings, key) if metrics[0] == "event_rate_held" else ()
    if not words:
        words = sentences(*(span(findings, metric, CATALOGUE[metric].title.capitalize()) for metric in metrics))
    return Answer(words, metrics, drawn(findings, metrics[:2], key))


def _rates_held(findings: Findings, key: str | None) -> tuple[str, ...]:
    """The matchers by the rate that they hold, at the largest and the smallest value of the key, if there is one."""
    last = json.loads(findings.points[-1])
    of = {key: 0, "matching.method": 0}
    line = [p for p in findings.points if {**json.loads(p), **of} == {**last, **of}]
    values: list[Any] = sorted({json.loads(p).get(key) for p in line}) if key else [None]
    words = []
    for value in values[::-1][:: max(1, len(values) - 1)]:
        alike = [p for p in line if key is None or json.loads(p)[key] == value]
        ranked = sorted(alike, key=lambda p: -findings.mean(p, "event_rate_held"))
        held = [f"{_matcher(p)} {'holds ' * (p == ranked[0])}{findings.text(p, 'event_rate_held')}" for p in ranked]
        where = f"With {_how_many(findings, key, value, ranked[0])}: " if key else ""
        words.append(f"{where}{', '.join(held)}.")
        best, plain = ranked[0], next((p for p in ranked[1:] if _matcher(p) == "scan"), ranked[-1])
        times = findings.mean(best, "event_rate_held") / findings.mean(plain, "event_rate_held")
        words.append(
            f"So {_matcher(best)} holds {number_text(times, 'ratio')} times as many as {_matcher(plain)}, and 99 % of "
            f"the deliveries arrive within {findings.text(best, 'latency_p99')} instead of "
            f"{findings.text(plain, 'latency_p99')}."
        )
    return (*words, "At the rate held the busiest broker has no time left; beyond it queues grow without bound.")


def _matcher(point: str) -> str:
    return str(json.loads(point)["matching.method"])


def _how_many(findings: Findings, key: str, value: float, point: str) -> str:
    if key != "workload.subscriptions":
        return f"{key.rpartition('.')[2].replace('_', ' ')} {value_text(value)}"
    runs = findings.summary.runs
    brokers = int(runs.loc[runs["point"] == point, "brokers"].iloc[0])
    return f"{value / brokers:,.0f} subscriptions per broker"


def of_churn(findings: Findings) -> Answer | None:
    """What arrivals and departures cost, and how soon the network has settled."""
    runs = findings.summary.runs
    most_left = bool((2 * runs["active"] < runs["subscriptions"]).all())
    leaving = findings.happened("unsubscribe_messages") and (most_left or findings.sweeps("arrivals."))
    if not leaving and not _met_on_their_way(findings):
        return None
    metrics = ("convergence_p95", "control_per_event", "unsubscribe_mean")
    words = sentences(
        span(findings, "convergence_p95", "95 % of the subscriptions have settled within"),
        span(findings, "control_per_event", "Control messages for every event that is published"),
        span(findings, "unsubscribe_mean", "A departure has settled after, on average"),
    )
    return Answer(words, metrics, drawn(findings, differing(findings.summary, metrics)))


def _met_on_their_way(findings: Findings) -> bool:
    """Whether events met subscriptions on their way, more than once in a while."""
    return any(
        findings.mean(point, "missed_transient") > OFTEN * findings.mean(point, "deliveries")
        for point in findings.points
    )


def of_trees(findings: Findings) -> Answer | None:
    """One spanning tree against a tree per source: entries against latency, all from one baseline."""
    summary = findings.summary
    pairs = _in_other_trees(findings.points)
    if not pairs:
        return None
    one, many = min(pairs, key=lambda pair: findings.mean(pair[0], "entries"))
    entries = findings.mean(many, "entries") / (findings.mean(one, "entries") or math.nan)
    fast, slow = findings.text(many, "latency_p95"), findings.text(one, "latency_p95")
    metrics = ("entries", "latency_p95", "hops", "latency_p99")
    words = (
        f"With {said(summary, one)} the brokers keep {findings.text(one, 'entries')}; a tree per source takes "
        f"{findings.text(many, 'entries')}, {number_text(entries, 'ratio')} times as many.",
        f"In return 95 % of the deliveries arrive within {fast} instead of {slow}, over "
        f"{number_text(findings.mean(many, 'hops'), 'links')} links instead of "
        f"{number_text(findings.mean(one, 'hops'), 'links')}.",
    )
    return Answer(words, metrics, drawn(findings, differing(summary, metrics)))


def _in_other_trees(points: list[str]) -> list[tuple[str, str]]:
    """Settings that differ in routing.trees alone: (spanning, per-source)."""
    found: dict[str, dict[str, str]] = {}
    for point in points:
        keys = json.loads(point)
        trees = keys.pop("routing.trees", None)
        found.setdefault(json.dumps(keys, sort_keys=True), {})[str(trees)] = point
    return [(of["spanning"], of["per-source"]) for of in found.values() if {"spanning", "per-source"} <= set(of)]


def of_topology(findings: Findings) -> Answer | None:
    """Where covering saves most, and how far events travel, by overlay."""
    if not findings.sweeps("overlay.kind", "overlay.file"):
        return None
    summary = findings.summary
    covering = [p for p in findings.points if is_covering(summary.labels(p)) and findings.mean(p, "reduction") > 0]
    ends = extremes(summary, "reduction", covering)
    words = []
    if ends is not None:
        low, high = (number_text(findings.mean(point, "reduction"), "share") for point in ends)
        words.append(
            f"Covering saves most entries on {_overlay(ends[1])} ({high}) and least on {_overlay(ends[0])} ({low})."
        )
    ends = extremes(summary, "hops", findings.points)
    if ends is not None:
        low, high = (number_text(findings.mean(point, "hops"), "links") for point in ends)
        words.append(
            f"On average a delivered event crosses {low} links on {_overlay(ends[0])} and {high} on "
            f"{_overlay(ends[1])}."
        )
    metrics = differing(summary, ("reduction", "entries", "latency_p99", "hops"))
    key = "overlay.kind" if findings.sweeps("overlay.kind") else "overlay.file"
    return Answer(sentences(*words), metrics, drawn(findings, metrics[:MOST_PANELS], key))


def _overlay(point: str) -> str:
    keys = {key.split(".")[1]: value for key, value in json.loads(point).items() if key.startswith("overlay.")}
    name = value_text(keys.get("kind") or keys.get("file"))
    brokers = keys.get("brokers")
    return f"{name} with {brokers} brokers" if brokers else name


def of_growth(findings: Findings) -> Answer | None:
    """How metrics grow with a number."""
    keys = findings.numbers()
    metrics = differing(findings.summary, USUAL)
    if not keys or not metrics:
        return None
    words = (_growth(findings, keys[0], metric) for metric in metrics)
    alike = same_everywhere(findings.summary, USUAL)
    return Answer((*sentences(*words), *sentences(alike)), metrics, against(keys[0], metrics))


def _growth(findings: Findings, key: str, metric: str) -> str:
    """From the smallest to the largest value of the key, everything else as in the last setting."""
    last = json.loads(findings.points[-1])
    line = [p for p in findings.points if {**json.loads(p), key: 0} == {**last, key: 0}]
    line = sorted((p for p in line if findings.mean(p, metric) >= 0), key=lambda p: json.loads(p)[key])
    if len(line) < GROWS:
        return ""
    first, final = line[0], line[-1]
    name = key.rpartition(".")[2].replace("_", " ")
    ends = [value_text(json.loads(point)[key]) for point in (first, final)]
    grown = (
        findings.mean(final, metric) / findings.mean(first, metric) if findings.mean(first, metric) > 0 else math.nan
    )
    times = f" ({number_text(grown, 'ratio')} times as many)" if grown == grown else ""
    if CATALOGUE[metric].unit == "ms":
        times = times.replace("as many", "as long")
    title = CATALOGUE[metric].title.capitalize()
    return (
        f"{title}: {findings.text(first, metric)} at {name} {ends[0]}, {findings.text(final, metric)} at "
        f"{ends[1]}{times}."
    )


def of_routing(findings: Findings) -> Answer | None:
    """What ways of routing cost: tables, control messages, events, search."""
    if not findings.sweeps("routing.", "covering."):
        return None
    summary = findings.summary
    metrics = differing(summary, USUAL, len(USUAL))
    about = (about_tables, about_search, about_traffic, about_settling, about_latency)
    return Answer(sentences(*(part(summary) for part in about)), metrics, drawn(findings, metrics[:MOST_PANELS]))


def in_general(findings: Findings) -> Answer:
    """Whatever was swept: the usual metrics that differ, and those that do not."""
    metrics = differing(findings.summary, USUAL)
    words = [span(findings, metric, CATALOGUE[metric].title.capitalize()) for metric in metrics]
    alike = same_everywhere(findings.summary, USUAL)
    if len(findings.points) == 1:
        only = findings.points[0]
        known = [metric for metric in USUAL if findings.mean(only, metric) == findings.mean(only, metric)]
        alike = "; ".join(f"{CATALOGUE[m].title}: {findings.text(only, m)}" for m in known) + "."
    return Answer(sentences(*words, alike), metrics or USUAL[:2], drawn(findings, metrics) if metrics else ())


ANSWERS: tuple[Callable[[Findings], Answer | None], ...] = (
    of_capacity,
    after_failures,
    of_ranks,
    of_epsilon,
    of_load,
    of_matchers,
    of_churn,
    of_trees,
    of_topology,
    of_growth,
    of_routing,
    in_general,
)
