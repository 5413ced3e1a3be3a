"""Answers about load: the rate that a network holds, latency against the rate, and how matchers change both."""

from __future__ import annotations

import json
from typing import Any

from analysis.report.findings import (
    MOST_ROWS,
    Answer,
    Findings,
    differing,
    differs,
    drawn,
    same_everywhere,
    sentences,
    span,
)
from analysis.report.numbers import number_text, value_text
from analysis.report.sentences import without_processing
from analysis.spark.metrics import CATALOGUE

RATE, SECOND = "arrivals.publish_rate", 1000.0  # events per ms in files, per second in words and pictures
FULL = 1.0  # from this load on, a queue grows for as long as events come


def of_capacity(findings: Findings) -> Answer | None:
    """The rate that a search found, whatever else happened or was swept."""
    return of_load(findings) if findings.told.held is not None else None


def of_load(findings: Findings) -> Answer | None:
    """How latency and load grow with the rate of events, and which rate is held if that was searched for."""
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
    """A picture against the rate in events per second; those with the same title share a place, with a menu."""
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
    lines: dict[str, list[tuple[float, str]]] = {}
    for point in findings.points:
        lines.setdefault(findings.beside(RATE, point), []).append((SECOND * json.loads(point)[RATE], point))
    return [_bend(findings, name, sorted(line)) for name, line in list(lines.items())[:MOST_ROWS]]


def _bend(findings: Findings, name: str, line: list[tuple[float, str]]) -> str:
    (low, first), (high, last) = line[0], line[-1]
    within = (
        f"99 % of the deliveries arrive within {findings.text(first, 'latency_p99')} at {number_text(low, '')} "
        f"events/s and within {findings.text(last, 'latency_p99')} at {number_text(high, '')}"
    )
    loads = [(rate, findings.mean(point, "event_load")) for rate, point in line]
    # Events may be drawn closer together than the rate says: only a rate that is not held fills a queue for ever.
    held = {rate: findings.mean(point, "event_rate_held") for rate, point in line}
    full = next((rate for rate, load in loads if load >= FULL and not rate < held[rate]), None)
    most = max((load for _, load in loads if load == load), default=0.0)
    busy = f"the busiest broker has work for at most {number_text(most, 'share')} of the time in which events come"
    if full is not None:
        below = max((rate for rate, _ in loads if rate < full), default=None)
        not_yet = "" if below is None else f", not yet at {number_text(below, '')},"
        at = f"at {number_text(full, '')} events/s{not_yet}"
        busy = f"{at} a broker has more work than time: its queue grows for as long as events come"
    return f"{f'With {name}: ' if name else ''}{within}{f'; {busy}' if most else ''}."


def of_matchers(findings: Findings) -> Answer | None:
    """How matchers change the rate held and latency, along a swept number (say, subscriptions) if there is one."""
    if not findings.sweeps("matching.method"):
        return None
    wanted = ("event_rate_held", "latency_p99", "latency_p95", "latency_p50", "waiting_mean")
    metrics = differing(findings.summary, wanted)
    if not metrics:
        alike = same_everywhere(findings.summary, wanted)
        idle = without_processing(findings.summary)
        why = "Matching takes no simulated time here, so that no matcher is faster than another. " if idle else ""
        return Answer((why + alike,), wanted, ())
    key = next(iter(findings.numbers()), None)
    words = _rates_held(findings, key) if metrics[0] == "event_rate_held" else ()
    if not words:
        words = sentences(*(span(findings, metric, CATALOGUE[metric].title.capitalize()) for metric in metrics))
    return Answer(words, metrics, drawn(findings, metrics[:2], key))


def _rates_held(findings: Findings, key: str | None) -> tuple[str, ...]:
    """The matchers by the rate that they hold, at the largest and the smallest value of the key if there is a key."""
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
        if len(ranked) == 1:
            continue
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
