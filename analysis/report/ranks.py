"""The answer where the k best of the whole network are served: what that takes, and what ranks leave of covering."""

from __future__ import annotations

import json
import math

from analysis.report.findings import Answer, Findings, differing, drawn, sentences, span
from analysis.report.summary import number_text

METRICS = ("messages_per_event", "last_winner_mean", "entries", "brokers_visited", "control_messages")
HOW = ("routing.visit", "routing.wave", "routing.threshold")  # change how events ask, not what tables hold


def of_ranks(findings: Findings) -> Answer | None:
    """Messages and time until the winners are served, and the share of covering's saving that ranks keep."""
    if not findings.happened("messages_per_event"):
        return None
    words = sentences(
        span(findings, "messages_per_event", "To find and serve the k best of the network an event takes"),
        span(findings, "last_winner_mean", "The last winner is served after, on average"),
        *saving_kept(findings)[:2],
    )
    key = next(iter(findings.numbers()), None)
    return Answer(words, METRICS, drawn(findings, differing(findings.summary, METRICS), key))


def saving_kept(findings: Findings) -> list[str]:
    """The share of plain covering's saving of entries that holding back by rank keeps, where both were run."""
    ways: dict[str, dict[str, str]] = {}  # other settings → rank → point
    for point in findings.points:
        if findings.summary.labels(point)["strategy"] == "covering":
            keys = {key: value for key, value in json.loads(point).items() if key not in HOW}
            rank = str(keys.pop("routing.rank", "none"))
            ways.setdefault(json.dumps(keys, sort_keys=True), {}).setdefault(rank, point)
    found = []
    for ranks in ways.values():
        whole = findings.mean(ranks["none"], "reduction") if "none" in ranks else math.nan
        kept = [
            f"{number_text(findings.mean(point, 'reduction') / whole, 'share')} with rank {rank}"
            for rank, point in ranks.items()
            if rank != "none" and whole > 0
        ]
        if kept:
            entries = findings.text(ranks["none"], "entries")
            found.append(
                f"Of what plain covering saves of the tables ({entries} are left) they keep {' and '.join(kept)}."
            )
    return found
