"""The one pass over each large table, which all metrics of that table share.

Each function counts the rows of a trace table by what metrics tell apart; what comes out has a few thousand rows per
run. Several jobs ask for the same counts: `shared` keeps them, so that Spark reads the table once. (It recognises a
plan that it has kept, so jobs need not know.)

Rows that sampling left out come from the `_rest` tables, already added up.

Durations and shares are added up in whole units, see broker/trace/buckets.py: in whatever order
parts of a table are added, on however many machines, the sum has the same last digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.trace.buckets import EXPONENT_BIAS, PARTS, SHARE_UNIT, SUBBITS, TIME_UNIT, WORK_UNIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def of_control(control: DataFrame) -> DataFrame:
    """run, source, target, kind: count."""
    from pyspark.sql import functions as F

    return control.groupBy("run", "source", "target", "kind").agg(F.count("*").alias("count"))


def of_publications(publications: DataFrame) -> DataFrame:
    """run, source, target: count, needless (not useful), waited (in units)."""
    from pyspark.sql import functions as F

    return publications.groupBy("run", "source", "target").agg(
        F.count("*").alias("count"),
        F.count_if(~F.col("useful")).alias("needless"),
        F.sum(in_units("waited", TIME_UNIT)).alias("waited"),
    )


def of_deliveries(deliveries: DataFrame, rest: DataFrame) -> DataFrame:
    """run, bucket (of the latency): count, hops, latency (in units); a bucket may come twice, once from the rest."""
    from pyspark.sql import functions as F

    latency, bucket = in_units("latency", TIME_UNIT), F.col("latency_bucket").alias("bucket")
    # Counted before the union: Spark reads and counts in one loop, but copies every row that goes into a union.
    rows = deliveries.groupBy("run", bucket).agg(
        F.count("*").alias("count"), F.sum("hops").alias("hops"), F.sum(latency).alias("latency")
    )
    return rows.union(rest.select("run", bucket, "count", F.col("hops") * F.col("count"), latency))


def of_decisions(decisions: DataFrame, rest: DataFrame) -> DataFrame:
    """run, outcome, capped, exact, at_home: count, probes, cubes, runs, pages, round_trips, volume, took (in units)."""
    from pyspark.sql import functions as F

    keys, work = ["run", "outcome", "capped", "exact", "at_home"], ["probes", "cubes", "runs", "pages", "round_trips"]
    volume, took = in_units("volume", SHARE_UNIT), in_units("took", WORK_UNIT)
    rows = decisions.groupBy(*keys).agg(
        F.count("*").alias("count"),
        # Emulated searches count probes by the trillion: their sum need not fit in 64 bits.
        *(F.sum(F.col(name).cast("double")).alias(name) for name in work),
        F.sum(volume).alias("volume"),
        F.sum(took).alias("took"),
    )
    return rows.union(rest.select(*keys, "count", *work, volume, took))


@contextmanager
def shared(tables: Mapping[str, DataFrame]) -> Iterator[None]:
    """While this lasts, counts that several jobs need are worked out once."""
    kept = [of_control(tables["control"]), of_publications(tables["publications"])]
    for counts in kept:
        counts.persist()
    try:
        yield
    finally:
        for counts in kept:
            counts.unpersist()


def in_units(column: str, unit: float) -> Column:
    from pyspark.sql import functions as F

    return F.rint(F.col(column) * (1 / unit)).cast("bigint")


def mean(total: Column, count: Column, unit: float) -> Column:
    """The mean of `count` values whose sum in units is `total`."""
    from pyspark.sql import functions as F

    return F.try_divide(total * F.lit(unit), count)


def percentiles(counts: DataFrame, percents: Mapping[str, int], *sums: str) -> DataFrame:
    """From (run, bucket, count, …), per run: the middle of each percentile's bucket, and the sums asked for.

    The p-th percentile is the smallest bucket that at least p % of the values do not exceed, so what is given is
    within buckets.RELATIVE_ERROR of the value of that rank.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    upwards = Window.partitionBy("run").orderBy("bucket")
    reached = F.sum("count").over(upwards.rangeBetween(Window.unboundedPreceding, 0))
    total = F.sum("count").over(Window.partitionBy("run"))
    ranked = counts.withColumn("reached", reached).withColumn("total", total)
    found = [
        _middle(F.min(F.when(F.col("reached") * 100 >= F.col("total") * percent, F.col("bucket")))).alias(name)
        for name, percent in percents.items()
    ]
    return ranked.groupBy("run").agg(*found, *(F.sum(name).alias(name) for name in ("count", *sums)))


def _middle(bucket: Column) -> Column:
    """The value of a bucket, see broker/trace/buckets.py."""
    from pyspark.sql import functions as F

    part = 1.0 + (bucket.bitwiseAND(PARTS - 1) + 0.5) / PARTS
    return F.when(bucket == 0, 0.0).when(
        bucket > 0, part * F.pow(F.lit(2.0), F.shiftright(bucket, SUBBITS) - EXPONENT_BIAS)
    )
