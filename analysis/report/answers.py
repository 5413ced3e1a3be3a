"""The answer that a page opens with: sentences, the metrics that answer, and pictures of them.

The kind of answer follows from what was swept and what happened. ANSWERS lists the kinds, the most specific first; the
first that applies is taken. A kind is a function from the findings to an `Answer`, or None if it has nothing to say;
`in_general` always applies. All choose among metrics by one rule, `differing`: what is the same everywhere is said in a
sentence, not drawn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from analysis.report.findings import (
    GROWS,
    MOST_PANELS,
    USUAL,
    Answer,
    Findings,
    differing,
    drawn,
    pictures,
    same_everywhere,
    sentences,
    span,
)
from analysis.report.load_answers import of_capacity, of_load, of_matchers
from analysis.report.numbers import number_text, value_text
from analysis.report.ranks import of_ranks
from analysis.report.sentences import about_routing, extremes, said
from analysis.report.study_words import by_size, called, overall, sensitivity_sentence, trade_rows
from analysis.report.summary import is_covering
from analysis.spark.metrics import CATALOGUE

OFTEN = 0.01  # of the deliveries: more losses than this are worth an answer


def answer(findings: Findings) -> Answer:
    """The first of ANSWERS that applies and has something to say."""
    return next(found for kind in ANSWERS if (found := kind(findings)) is not None and found.sentences)


def after_failures(findings: Findings) -> Answer | None:
    """What was lost while brokers crashed and links were cut, when, where, and how long repair took."""
    if not findings.summary.happened("failures"):
        return None
    metrics = ("delivery_ratio", "missed_fault", "outage_mean", "repair_mean")
    told = findings.told.losses
    titles = [said(findings.summary, findings.summary.point_of[loss.run]) for loss in told]
    words = sentences(
        _lost(findings),
        span(findings, "outage_mean", "From a failure until everything is whole again it takes, on average"),
        span(findings, "repair_mean", "Repair itself, from the restart or the mended link on, takes"),
        *(loss.where(titles[0] if len(told) > 1 else "") for loss in told[:1]),
    )
    over_time = {
        "kind": "times",
        "title": "Share of the deliveries lost, by time of publication",
        "y": "share lost",
        "unit": "share",
        "rows": _alike_as_one([loss.rows(title) for loss, title in zip(told, titles, strict=True)]),
        "marks": [mark for loss in told[:1] for mark in loss.marks],
    }
    drawings = (over_time,) if over_time["rows"] else pictures(differing(findings.summary, metrics))
    return Answer(words, metrics, drawings)


def _alike_as_one(lines: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of all lines; lines with the same values become one line with all their names."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for line in lines:
        found.setdefault(json.dumps([(row["x"], row["y"]) for row in line]), []).append(line)
    return [
        {**row, "series": " = ".join(other[0]["series"] for other in same)}
        for same in found.values()
        for row in same[0]
    ]


def _lost(findings: Findings) -> str:
    known = {point: 1 - made for point, made in findings.summary.means("delivery_ratio").items()}
    if not known:
        return ""
    ends = [choose(known, key=lambda point: known[point]) for choose in (min, max)]
    low, high = (number_text(known[point], "share") for point in ends)
    least, most = (said(findings.summary, point) for point in ends)
    if low == high:
        return f"{high} of the deliveries were lost{', in every setting' if len(known) > 1 else ''}."
    return f"{low} of the deliveries were lost with {least}, {high} with {most}."


def of_epsilon(findings: Findings) -> Answer | None:
    """What an approximate search keeps of exact covering's saving, and what it costs."""
    cases = findings.cases
    if not cases:
        return None
    metrics = (
        "reduction", "control_messages", "entries", "check_time", "probes_per_check", "convergence_p95", "recall",
    )  # fmt: skip
    trades = [
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
    return Answer((overall(cases), *by_size(cases), sensitivity_sentence(cases)), metrics, tuple(trades))


def of_churn(findings: Findings) -> Answer | None:
    """What arrivals and departures cost, and how soon the network settles."""

    def met_on_their_way(point: str) -> bool:
        """Whether more than a few events were published while a matching subscription was on its way."""
        return findings.mean(point, "missed_transient") > OFTEN * findings.mean(point, "deliveries")

    runs = findings.summary.runs
    most_left = bool((2 * runs["active"] < runs["subscriptions"]).all())
    leaving = findings.summary.happened("unsubscribe_messages") and (most_left or findings.sweeps("arrivals."))
    if not leaving and not any(met_on_their_way(point) for point in findings.points):
        return None
    metrics = ("convergence_p95", "control_per_event", "unsubscribe_mean")
    words = sentences(
        span(findings, "convergence_p95", "95 % of the subscriptions have settled within"),
        span(findings, "control_per_event", "Control messages for every event that is published"),
        span(findings, "unsubscribe_mean", "A departure has settled after, on average"),
    )
    return Answer(words, metrics, drawn(findings, differing(findings.summary, metrics)))


def of_trees(findings: Findings) -> Answer | None:
    """One spanning tree against a tree per source: more entries, less latency."""
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
        least, most = (f"{_overlay(p)} ({number_text(findings.mean(p, 'reduction'), 'share')})" for p in ends)
        words.append(f"Covering saves most entries on {most} and least on {least}.")
    ends = extremes(summary, "hops", findings.points)
    if ends is not None:
        low, high = (number_text(findings.mean(point, "hops"), "links") for point in ends)
        near, far = (_overlay(point) for point in ends)
        words.append(f"On average a delivered event crosses {low} links on {near} and {high} on {far}.")
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
    return Answer(sentences(*words, same_everywhere(findings.summary, USUAL)), metrics, pictures(metrics, keys[0]))


def _growth(findings: Findings, key: str, metric: str) -> str:
    """From the smallest to the largest value of the key, all else as in the last setting."""
    last = json.loads(findings.points[-1])
    line = [p for p in findings.points if {**json.loads(p), key: 0} == {**last, key: 0}]
    line = sorted((p for p in line if findings.mean(p, metric) >= 0), key=lambda p: json.loads(p)[key])
    if len(line) < GROWS:
        return ""
    first, final = line[0], line[-1]
    name = key.rpartition(".")[2].replace("_", " ")
    ends = [value_text(json.loads(point)[key]) for point in (first, final)]
    times, start = "", findings.mean(first, metric)
    if start > 0:
        much = "long" if CATALOGUE[metric].unit in {"ms", "µs"} else "many"
        times = f" ({number_text(findings.mean(final, metric) / start, 'ratio')} times as {much})"
    beside = findings.beside(key, final)
    title = f"{CATALOGUE[metric].title.capitalize()}{f' (with {beside})' if beside else ''}"
    low, high = (findings.after_title(point, metric) for point in (first, final))
    return f"{title}: {low} at {name} {ends[0]}, {high} at {ends[1]}{times}."


def of_routing(findings: Findings) -> Answer | None:
    """What each way of routing costs: tables, control messages, events, search."""
    if not findings.sweeps("routing.", "covering."):
        return None
    summary = findings.summary
    metrics = differing(summary, USUAL, len(USUAL))
    return Answer(tuple(about_routing(summary)), metrics, drawn(findings, metrics[:MOST_PANELS]))


def in_general(findings: Findings) -> Answer:
    """Whatever was swept: the usual metrics that differ, and those that do not."""
    metrics = differing(findings.summary, USUAL)
    words = [span(findings, metric, CATALOGUE[metric].title.capitalize()) for metric in metrics]
    alike = same_everywhere(findings.summary, USUAL)
    if len(findings.points) == 1:
        only = findings.points[0]
        known = [metric for metric in USUAL if findings.summary.means(metric)]
        listed = "; ".join(f"{CATALOGUE[metric].title}: {findings.after_title(only, metric)}" for metric in known)
        alike = f"{listed[:1].upper()}{listed[1:]}."
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
