"""A line or two about the runs of a page: how many and how large, and when, where and how long they ran."""

from __future__ import annotations

import time
from pathlib import Path

from analysis.report.numbers import duration_text
from analysis.report.summary import Summary
from analysis.report.truth import NO_PROCESSING, without_processing


def facts(summary: Summary) -> str:
    """Sizes, settings, seeds."""
    runs = summary.runs
    words = []
    for what in ("broker", "subscription", "event"):
        low, high = int(runs[f"{what}s"].min()), int(runs[f"{what}s"].max())
        words.append(f"{f'{low:,} to ' * (low != high)}{high:,} {what}{'s' * (high != 1)}")
    overlay = sorted({Path(str(name)).stem for name in runs["overlay"]} - {""})
    if overlay:
        words.append(f"overlay {', '.join(overlay)}")
    settings, seeds = len(summary.order), runs["seed"].nunique()
    words.append(f"{settings} setting{'s' * (settings != 1)} × {seeds} seed{'s' * (seeds != 1)}")
    words.append(f"{len(runs)} run{'s' * (len(runs) != 1)}")
    if without_processing(summary):
        words.append(NO_PROCESSING)
    return " · ".join(words)


def made(summary: Summary) -> str:
    """When, where, and how long all runs took together; empty for traces of versions that did not record it."""
    runs = summary.runs
    if "made" not in runs or not (runs["made"] != "").all():
        return ""
    days = [_day(text) for text in sorted({text[:10] for text in runs["made"]})]
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    where = "; ".join(sorted(set(runs["machine"])))
    took = duration_text(1000 * float(runs["wall_seconds"].sum()))
    return f"Run on {when} (UTC) on {where}: {took} of simulating and judging, the sum over all runs"


def _day(text: str) -> str:
    """17 November 2026, from 2026-11-17."""
    return time.strftime("%d %B %Y", time.strptime(text, "%Y-%m-%d")).lstrip("0")
