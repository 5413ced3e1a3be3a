"""The queries of metrics as Spark DataFrames: lazy, each made once and used by all that need it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from analysis.spark import traces
from analysis.spark.metrics import CATALOGUE, QUERIES, Metric, Query, all_metrics, computed
from analysis.spark.records import records
from analysis.spark.traces import Sweep
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Several queries use these; what is kept of them is small.
SHARED = ("control_links", "event_links", "duration_counts", "table_sizes")


class Frames:
    """`frames["entries"]`: trace tables, `runs` and queries of a sweep, by name."""

    def __init__(self, spark: SparkSession, sweep: Sweep, drawn: Collection[str] = ()) -> None:
        self.spark, self.sweep = spark, sweep
        self._made = {"runs": spark.createDataFrame(records(sweep.runs, drawn))}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            query = QUERIES.get(name)
            self._made[name] = self.of(query) if query else traces.read(self.spark, self.sweep, name)
        return self._made[name]

    def of(self, query: Query) -> DataFrame:
        return self.spark.sql(query.template, **{name: self[name] for name in query.sources})

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Meanwhile SHARED are computed once. All frames must have been made: `spark.sql` drops the view that it makes
        of a frame, and with it what Spark keeps of that frame."""
        kept = [self[name].persist() for name in SHARED]
        try:
            yield
        finally:
            with suppress(Exception):  # Spark may be gone
                for frame in kept:
                    frame.unpersist()

    def metrics(self) -> DataFrame:
        """A row per run, a column per metric."""
        found = self.of(all_metrics())
        for metric in CATALOGUE.values():
            if metric.compute is not None:
                found = found.join(self._computed(metric), "run", "left")
        defaults = {name: CATALOGUE[name].empty for name in computed() if CATALOGUE[name].empty is not None}
        return found.fillna(defaults).select("run", *computed())

    def values_of(self, metric: Metric) -> dict[str, float | None]:
        """The value of each run; None if it has none."""
        found = dict.fromkeys((run.name for run in self.sweep.runs), metric.empty)
        rows = self._computed(metric).collect()
        return {**found, **{row["run"]: row[metric.name] for row in rows if row[metric.name] is not None}}

    def _computed(self, metric: Metric) -> DataFrame:
        """The metric of a plug-in, with one value per run."""
        from pyspark.sql import functions as F

        def trace(table: str) -> DataFrame:
            if table not in metric.reads:
                raise CoverlayError(f"metric {metric.name} asks for the table {table}, which its `reads` does not name")
            return self[table]

        assert metric.compute is not None
        try:
            found = metric.compute(trace)
            columns = [name for name in found.columns if name != "run"]
        except CoverlayError:
            raise
        except Exception as error:  # whatever a user's function raises
            line = next(iter(str(error).splitlines()), "")
            raise CoverlayError(f"metric {metric.name} fails: {type(error).__name__}: {line}") from error
        if len(columns) != 1 or "run" not in found.columns:
            raise CoverlayError(
                f"metric {metric.name} gives the columns {', '.join(found.columns)}; it must give run and its value"
            )
        several = F.concat(F.lit(f"metric {metric.name} has more than one value for run "), F.col("run"))
        value = F.when(F.count("*") == 1, F.first(columns[0]).cast("double")).otherwise(F.raise_error(several))
        return found.groupBy("run").agg(value.alias(metric.name))
