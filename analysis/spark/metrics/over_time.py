"""Load over time: what each broker did in each part of a run, for the runs that the report draws.

Per broker and bin of BINS equal ones: messages whose service began there, how long they had waited, how long they were
served. From these follow the share of the time that a broker was busy, the mean wait, and, because every waiting
message adds its wait, the mean number of messages waiting (Little's law).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from broker.trace.buckets import TIME_UNIT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BINS = 40


def per_broker(control: DataFrame, publications: DataFrame, run: DataFrame) -> DataFrame:
    """run, broker, start, width (ms), messages, events (those among them that are events), waited, busy (ms, sums)."""
    from pyspark.sql import functions as F

    width = (F.col("finished") / BINS).alias("width")
    spans = F.broadcast(run.where(F.col("finished") > 0).select("run", width))
    times = [F.coalesce(name, F.lit(0.0)).alias(name) for name in ("waited", "service")]
    parts = ["run", F.col("target").alias("broker"), "time", *times]
    both = control.select(*parts, F.lit(0).alias("event")).union(publications.select(*parts, F.lit(1)))
    place = F.least(F.floor(F.col("time") / F.col("width")), F.lit(BINS - 1)).cast("int").alias("bin")
    # Added up in whole units, as everywhere: the same last digit whatever the order.
    sums = [F.sum(counts.in_units(name, TIME_UNIT)).alias(name) for name in ("waited", "service")]
    sums += [F.count("*").alias("messages"), F.sum("event").alias("events")]
    found = both.join(spans, "run").groupBy("run", "broker", "width", place).agg(*sums)
    return found.select(
        "run",
        "broker",
        (F.col("bin") * F.col("width")).alias("start"),
        "width",
        "messages",
        "events",
        (F.col("waited") * F.lit(TIME_UNIT)).alias("waited"),
        (F.col("service") * F.lit(TIME_UNIT)).alias("busy"),
    ).orderBy("run", "broker", "start")
