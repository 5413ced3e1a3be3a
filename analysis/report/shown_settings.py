"""Which settings are shown one by one: all of a small sweep; of a large one those that its answer names, or the first.

With a table row, a picture of the overlay and a chart line for each of a thousand settings, a page would have tens of
megabytes that nobody reads. The page says what it leaves out; results/*.csv have everything.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized

from analysis.report.study import Case
from analysis.report.summary import Summary

MOST_ROWS = 120  # of a table; a sweep with more settings is called large
MOST_PICTURES = 24  # of the overlay, and of load over time; each takes about 30 kB
MOST_RUNS = 600  # listed with their trace hashes


def is_large(summary: Summary) -> bool:
    return len(summary.order) > MOST_ROWS


def rows(summary: Summary, cases: Sequence[Case]) -> list[str]:
    """The points that tables show, in their order."""
    if not is_large(summary):
        return summary.order
    found = (of for case in cases for verdict in case.verdicts for of in (verdict.exact, verdict.best) if of)
    named = {of.row.point for of in found}
    return [point for point in summary.order if not named or point in named][:MOST_ROWS]


def pictures(points: Sequence[str]) -> list[str]:
    """Those of these points that pictures show, evenly spread."""
    step = max(1.0, len(points) / MOST_PICTURES)
    return [points[int(number * step)] for number in range(min(len(points), MOST_PICTURES))]


def left_out(summary: Summary, shown: Sized, what: str = "settings") -> str:
    """A sentence if not all are shown, else nothing."""
    total = len(summary.order)
    return "" if len(shown) == total else f"{len(shown)} of {total:,} {what}; results/summary.csv has all."
