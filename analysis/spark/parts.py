"""A sweep's tables cut into parts, each counted where Spark sends it; and a run's metrics from its counted parts.

A part is a file, or one row group of a large file. It is read row group by row group, only the columns that counts ask
for, and every page's checksum is verified. Nothing here uses Spark; aggregate.py makes a Spark job of it.

Cost: reading, plus one grouping per count (see metrics/definition.py); memory: the columns of one row group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.spark.metrics import COUNTS, JOBS, Count, load, missed_covers, over_time, table_size, traffic
from analysis.spark.metrics.counts import totals
from analysis.spark.metrics.definition import Columns, Counted, Rows
from analysis.spark.traces import Run
from broker.trace.schema import ALL

TABLES: dict[str, tuple[Count, ...]] = {
    table: tuple(count for count in COUNTS.values() if table in count.of)
    for table in ALL
    if any(table in count.of for count in COUNTS.values())
}
LARGE_BYTES = 32 * 2**20  # larger files are cut into their row groups
Tables = dict[str, pa.Table]  # by the name of a count


@dataclass(frozen=True)
class Part:
    """Rows of one table of one run; `drawn`: the report shows the run's brokers, links and misses too."""

    run: Run
    drawn: bool
    table: str
    nbytes: int
    group: int | None = None  # one row group; None: all

    def count(self) -> Tables:
        with pq.ParquetFile(self.run.path(self.table), page_checksum_verification=True) as file:
            groups = range(file.num_row_groups) if self.group is None else [self.group]
            return together(_counted(Rows(self.run, self.drawn, self.table, file, group)) for group in groups)


def _counted(rows: Rows) -> Tables:
    found = [(count, count.of[rows.table](rows)) for count in TABLES[rows.table]] if len(rows) else []
    return {count.name: count.fold(table) for count, table in found if table is not None}


@dataclass(frozen=True)
class Found:
    """What the aggregation says about a run: a value per metric and, if it is drawn, frames as columns."""

    run: str
    values: Mapping[str, float]  # NaN: unknown
    brokers: Columns = field(default_factory=dict)
    links: Columns = field(default_factory=dict)
    misses: Columns = field(default_factory=dict)
    times: Columns = field(default_factory=dict)


def parts_of(runs: Iterable[Run], drawn: set[str]) -> Iterator[Part]:
    """All parts of these runs; `drawn`: the names of the runs that the report draws."""
    for given in runs:
        run = replace(given, folder=given.folder.resolve())  # Spark's workers have another working directory
        for table in TABLES:
            if not run.has(table):
                continue
            path = run.path(table)
            nbytes = path.stat().st_size
            if nbytes <= LARGE_BYTES:
                yield Part(run, run.name in drawn, table, nbytes)
                continue
            groups = pq.read_metadata(path).num_row_groups
            for group in range(groups):
                yield Part(run, run.name in drawn, table, nbytes // groups, group)


def together(tables: Iterable[Tables]) -> Tables:
    """The counts of a run from those of its parts."""
    found: dict[str, list[pa.Table]] = {}
    for part in tables:
        for name, table in part.items():
            found.setdefault(name, []).append(table)
    return {
        name: several[0] if len(several) == 1 else COUNTS[name].fold(pa.concat_tables(several))
        for name, several in found.items()
    }


def conclude(run: Run, drawn: bool, tables: Tables) -> Found:
    """Metrics and frames of a run, from its counts."""
    counted = Counted(run, tables)
    values = {}
    for job in JOBS:
        computed = job.compute(counted)
        values.update({metric.name: _known(computed[metric.name], metric.empty) for metric in job.metrics})
    if not drawn:
        return Found(run.name, values)
    brokers, times = _per_broker(counted), over_time.per_broker(counted)
    return Found(run.name, values, brokers, traffic.per_link(counted), missed_covers.costliest_misses(counted), times)


# ── the two stages of the Spark job; here because Spark's workers import this module ─────────


def count_task(task: list[Part]) -> list[tuple[str, tuple[Run, bool, Tables]]]:
    """The counts of each run that has parts in this task."""
    found: dict[str, tuple[Run, bool, list[Tables]]] = {}
    for part in task:
        found.setdefault(part.run.name, (part.run, part.drawn, []))[2].append(part.count())
    return [(name, (run, drawn, together(tables))) for name, (run, drawn, tables) in found.items()]


def conclude_run(counted: tuple[str, Iterable[tuple[Run, bool, Tables]]]) -> Found:
    """Add up the counts of a run, and conclude."""
    several = list(counted[1])
    run, drawn, _ = several[0]
    return conclude(run, drawn, together(tables for _, _, tables in several))


def _known(value: float | None, empty: float | None) -> float:
    """The value or, if it is unknown, what the catalogue gives for a run without such rows."""
    if value is not None and not math.isnan(value):
        return float(value)
    return math.nan if empty is None else empty


def _per_broker(counted: Counted) -> Columns:
    """broker, processed, entries (of its neighbours, at the end)."""
    loads, sizes = load.per_broker(counted), counted[table_size.SIZES]
    return {**loads, "entries": totals(loads["broker"], (sizes["broker"], sizes["remote"]))}
