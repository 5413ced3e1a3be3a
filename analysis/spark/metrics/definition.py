"""What a metric is, and the SQL that metrics are made of.

A `Query` is a text of SQL over trace tables, over `runs` (analysis/spark/records.py) and over other queries. Spark
turns it into a DataFrame (analysis/spark/frames.py). Nothing here needs Java, and DuckDB understands almost all of it,
so the tests compute the same texts twice.

`Totals` are queries with one row per run. A `Metric` is an expression over the columns of all totals and of `runs`, so
these have different names.

Sums of durations and shares are taken in whole units (broker/trace/buckets.py): their last digit does not depend on how
Spark divides a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCE = re.compile(r"\b(from|join) (\w+)")


@dataclass(frozen=True)
class Query:
    """SQL; the names after `from` and `join` are tables of the trace, `runs`, or other queries."""

    name: str
    sql: str

    @property
    def sources(self) -> set[str]:
        return {name for _, name in _SOURCE.findall(self.sql)}

    @property
    def template(self) -> str:
        """The text with its sources in braces, for `spark.sql(template, **frames)`."""
        return _SOURCE.sub(r"\1 {\2}", self.sql)


class Totals(Query):
    """A query with at most one row per run."""


Trace = Callable[[str], "DataFrame"]  # from the name of a table
Compute = Callable[[Trace], "DataFrame"]


@dataclass(frozen=True)
class Metric:
    """One number per run, and everything a reader needs to trust it."""

    name: str
    title: str
    unit: str
    definition: str
    formula: str
    sql: str = ""  # over the columns of totals and of `runs`; empty: the column that has the metric's name
    signed: bool = False  # it can be below 0
    empty: float | None = None  # its value in a run without such rows; None: unknown, as of an average
    # A metric of a plug-in: a function of the trace tables, and the tables that it may ask for.
    compute: Compute | None = field(default=None, repr=False)
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Amount(Metric):
    """A metric that adds up: in a run without such rows it is 0."""

    empty: float | None = 0


# ── expressions ──────────────────────────────────────────────────────────────────────────────


def words(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def in_units(column: str, unit: float) -> str:
    """Whole units; a value that an earlier version did not write is 0."""
    return f"rint(coalesce({column}, 0) / {unit!r})"


def of_units(total: str, unit: float) -> str:
    return f"{total} * {unit!r}"


def ratio(part: str, whole: str) -> str:
    """Unknown if there is no whole."""
    return f"{part} / nullif({whole}, 0)"
