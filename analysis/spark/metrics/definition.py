"""What is counted, and what a metric is.

One pass over a trace table counts its rows by every key that some metric distinguishes. A `Count` says which keys and
which amounts a row has. Rows with the same keys are folded into one, first within each part of a table, on whatever
machine reads it, then across the parts of a run. Folding is the same both times, so it does not matter how a table is
divided. The result is a few thousand rows per run; all metrics are computed from these.

Several tables may feed one count: rows that sampling left out come from the `_rest` tables, already added up.

A metric is a documented number per run. A `Job` is a function from a counted run to one value per metric; metrics that
come from the same counts share a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analysis.spark.traces import Run
from broker.trace.schema import ALL

Columns = Mapping[str, NDArray[Any]]
Values = Mapping[str, float | None]  # by metric; None where it is unknown
LABELS = {"kind", "outcome"}  # keys that are words


@dataclass(frozen=True)
class Rows:
    """The rows of a row group of one table of a run; a column is read when it is first asked for."""

    run: Run
    drawn: bool  # the report shows the run's brokers, links and misses too
    table: str
    file: pq.ParquetFile
    group: int
    columns: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.file.metadata.row_group(self.group).num_rows)

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self.columns:
            self.columns[name] = self._read(name)
        return self.columns[name]

    def _read(self, name: str) -> pa.Array:
        if name not in self._names:  # an earlier version did not write it
            return pa.nulls(len(self), ALL[self.table].field(name).type)
        table = self.file.read_row_group(self.group, columns=[name], use_threads=False)
        return table.column(0).combine_chunks()

    @cached_property
    def _names(self) -> set[str]:
        return set(self.file.schema_arrow.names)


@dataclass(frozen=True)
class Count:
    """Rows counted by `keys`, and the amounts that are added up."""

    name: str
    keys: tuple[str, ...]
    amounts: tuple[str, ...]
    of: Mapping[str, Callable[[Rows], pa.Table | None]]  # by table; None: not needed for this run
    least: tuple[str, ...] = ()  # columns whose smallest value is kept,
    most: tuple[str, ...] = ()  # and whose largest

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *self.amounts, *self.least, *self.most)

    def fold(self, rows: pa.Table) -> pa.Table:
        """One row per combination of keys; a sum is unknown only if all its values are."""
        words = {}
        for name in self.keys:
            column = rows.column(name)
            if pa.types.is_dictionary(column.type):  # grouping by the words' codes is several times as fast
                coded = _whole(column)
                words[name] = coded.dictionary
                rows = rows.set_column(rows.schema.get_field_index(name), name, coded.indices)
        ways = {"sum": self.amounts, "min": self.least, "max": self.most}
        asked = [(name, way) for way, names in ways.items() for name in names]
        known = pc.ScalarAggregateOptions(min_count=1)
        found = rows.group_by(list(self.keys), use_threads=False).aggregate([(*one, known) for one in asked])
        columns = {name: found.column(name) for name in self.keys}
        columns |= {name: words[name].take(_whole(columns[name])) for name in words}
        return pa.table({**columns, **{name: found.column(f"{name}_{way}") for name, way in asked}})


@dataclass(frozen=True)
class Counted:
    """A whole run, counted. `counted[COUNT]` has the count's columns as arrays: Booleans as 1, 0 or NaN (unknown)."""

    run: Run
    tables: Mapping[str, pa.Table]  # by the name of the count

    def __getitem__(self, count: Count) -> Columns:
        table = self.tables.get(count.name)
        if table is None:
            return {name: np.zeros(0, object if name in LABELS else np.int64) for name in count.columns}
        return {name: _array(table.column(name)) for name in count.columns}


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8()).cast(pa.float64())
    return column.to_numpy()


@dataclass(frozen=True)
class Metric:
    """One number per run, and everything a reader needs to trust it."""

    name: str
    title: str
    unit: str
    definition: str
    formula: str
    signed: bool = False  # it can be below 0
    empty: float | None = None  # its value in a run without such rows; None: unknown, as of an average


@dataclass(frozen=True)
class Amount(Metric):
    """A metric that adds up: in a run without such rows it is 0."""

    empty: float | None = 0


@dataclass(frozen=True)
class Job:
    """Metrics that are computed together."""

    compute: Callable[[Counted], Values]
    metrics: tuple[Metric, ...]
