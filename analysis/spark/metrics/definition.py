"""What a metric is: a documented number per run, and the job that computes it.

A job is a function from trace DataFrames to one DataFrame with a column `run` and one column per metric.
Metrics that come from the same table share a job, so that the table is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Metric:
    """One number per run, and everything a reader needs to trust it."""

    name: str
    title: str
    unit: str
    definition: str
    formula: str
    columns: tuple[str, ...]  # the trace columns it needs, as table.column
    better: Better = "lower"
    signed: bool = False  # it can be below 0, and so can its interval
    empty: float | None = None  # its value in a run without such rows: 0 for a count, unknown for an average


@dataclass(frozen=True)
class Job:
    """One pass over the tables it names, for all its metrics at once."""

    name: str
    tables: tuple[str, ...]  # the arguments of `compute`, in this order
    compute: Callable[..., DataFrame]
    metrics: tuple[Metric, ...]
