"""The answer where the k best of the whole network are served: what that costs, and what covering still saves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.report.findings import Answer, Findings, differing, drawn, sentences, span
from analysis.report.numbers import value_text
from analysis.report.study import Interval
from analysis.report.study_words import with_half
from analysis.report.summary import is_exact, is_plain_covering

METRICS = ("messages_per_event", "last_winner_mean", "entries", "brokers_visited", "control_messages", "reduction")
WHICH = ("routing.strategy", "routing.rank")
HOW = ("routing.visit", "routing.wave", "routing.threshold")  # how events ask; they do not change the tables


def of_ranks(findings: Findings) -> Answer | None:
    """Messages and time until the winners are served, and the share of covering's saving that ranks keep."""
    if not findings.summary.happened("messages_per_event"):
        return None
    words = sentences(
        span(findings, "messages_per_event", "To find and serve the k best of the network an event takes"),
        span(findings, "last_winner_mean", "The last winner is served after, on average"),
        saving_kept(findings),
    )
    key = next(iter(findings.numbers()), None)
    return Answer(words, METRICS, drawn(findings, differing(findings.summary, METRICS), key))


def saving_kept(findings: Findings) -> str:
    """The share of plain exact covering's table saving that is kept under each `routing.rank`."""
    found: dict[str, dict[str, Interval]] = {}  # rank → other settings → kept
    for point in findings.points:
        keys = json.loads(point)
        rank = str(keys.get("routing.rank", "none"))
        plain = _plain(findings, keys)
        if not is_plain_covering(findings.summary.labels(point)) or rank == "none" or plain is None:
            continue
        whole = _saved(findings, plain)
        kept = Interval.of(np.asarray(_saved(findings, point) / whole.where(whole > 0), np.float64))
        if kept.mean == kept.mean:
            others = [key for key in findings.summary.swept if key in keys and key not in (*HOW, *WHICH)]
            settings = ", ".join(f"{key.rpartition('.')[2]} = {value_text(keys[key])}" for key in others)
            if not settings and not findings.summary.labels(point)["epsilon"]:
                settings = "exact search"
            found.setdefault(rank, {}).setdefault(settings, kept)
    words = [f"rank {rank} keeps {_range(kept)}" for rank, kept in found.items()]
    return f"Of what plain covering saves of the tables, {' and '.join(words)}." if words else ""


def _plain(findings: Findings, keys: Mapping[str, Any]) -> str | None:
    """Plain covering with the most exact search and otherwise the same settings, if it was run."""
    alike = {}
    for point in findings.points:
        other, labels = json.loads(point), findings.summary.labels(point)
        if is_plain_covering(labels) and other.get("routing.rank", "none") == "none":
            common = [key for key in other if key in keys and key not in (*HOW, *WHICH, "covering.epsilon")]
            if all(other[key] == keys[key] for key in common):
                alike[point] = not is_exact(labels), labels["epsilon"]
    return min(alike, key=lambda point: alike[point]) if alike else None


def _range(kept: Mapping[str, Interval]) -> str:
    least, most = (choose(kept, key=lambda settings: kept[settings].mean) for choose in (min, max))
    if kept[least].mean == kept[most].mean:
        return with_half(kept[least])
    return f"{with_half(kept[least])} ({least}) to {with_half(kept[most])} ({most})"


def _saved(findings: Findings, point: str) -> pd.Series[float]:
    """The share of the entries of simple routing that a point saves, by seed."""
    runs = findings.summary.runs
    return runs[runs["point"] == point].set_index("seed")["reduction"]
