"""What a metric is: a documented number per run, and the job that computes it.

A job is a function from a counted run (see counts.py) to one value per metric. Metrics that come from the same counts
share a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.spark.metrics.counts import Counted

Values = Mapping[str, float | None]  # by metric; None where it is unknown


@dataclass(frozen=True)
class Metric:
    """One number per run, and everything a reader needs to trust it."""

    name: str
    title: str
    unit: str
    definition: str
    formula: str
    signed: bool = False  # it can be below 0, and so can its interval
    empty: float | None = None  # its value in a run without such rows: 0 for a count, unknown for an average


@dataclass(frozen=True)
class Job:
    """Metrics that are computed together."""

    compute: Callable[[Counted], Values]
    metrics: tuple[Metric, ...]
