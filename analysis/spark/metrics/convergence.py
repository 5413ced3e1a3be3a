"""Convergence: how long a client request keeps the network busy, and a failure keeps it broken.

An operation is finished when its last message, exposures included, has been processed; until then an event
may miss the subscription. One that needs no message at all took no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric
from broker.trace.buckets import RELATIVE_ERROR, TIME_UNIT
from broker.trace.schema import CONVERGED, FAILURES, REPAIRS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def convergence(operations: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    lasted = F.rint((F.col("finished") - F.col("time")) * (1 / TIME_UNIT)).cast("bigint")
    subscribe, unsubscribe = F.col("kind") == "subscribe", F.col("kind") == "unsubscribe"
    joined = subscribe | (F.col("kind") == "preload")  # before time 0, and so without a duration
    buckets = operations.groupBy("run", F.when(subscribe, F.col("lasted_bucket")).alias("bucket")).agg(
        F.count_if(subscribe).alias("count"),
        F.sum(F.when(subscribe, lasted)).alias("lasted"),
        F.count_if(joined).alias("joined"),
        F.sum(F.when(joined, F.col("messages"))).alias("messages"),
        F.count_if(unsubscribe).alias("left"),
        F.sum(F.when(unsubscribe, lasted)).alias("leaving"),
    )
    sums = ("lasted", "joined", "messages", "left", "leaving")
    found = counts.percentiles(buckets, {"convergence_p95": 95}, *sums)
    return found.select(
        "run",
        counts.mean(F.col("lasted"), F.col("count"), TIME_UNIT).alias("convergence_mean"),
        "convergence_p95",
        counts.mean(F.col("leaving"), F.col("left"), TIME_UNIT).alias("unsubscribe_mean"),
        F.try_divide("messages", "joined").alias("messages_per_subscribe"),
    )


def repair(faults: DataFrame) -> DataFrame:
    """From each failure, and from each repair's start, to the moment when everything is whole again."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    later = Window.partitionBy("run").orderBy("time").rangeBetween(0, Window.unboundedFollowing)
    whole = F.min(F.when(F.col("kind") == CONVERGED, F.col("time"))).over(later)
    lasted = F.col("whole") - F.col("time")
    failed, repaired = F.col("kind").isin(*FAILURES), F.col("kind").isin(*REPAIRS)
    return (
        faults.withColumn("whole", whole)
        .groupBy("run")
        .agg(
            F.count_if(failed).cast("double").alias("failures"),
            F.avg(F.when(failed, lasted)).alias("outage_mean"),
            F.avg(F.when(repaired, lasted)).alias("repair_mean"),
        )
    )


_TIMES = ("operations.kind", "operations.time", "operations.finished")

JOB = Job(
    "convergence",
    ("operations",),
    convergence,
    (
        Metric(
            "convergence_mean",
            "convergence of a subscription, mean",
            "ms",
            "Time from a client's subscribe until its last message has been processed.",
            "mean of finished − time over subscribe operations",
            _TIMES,
        ),
        Metric(
            "convergence_p95",
            "convergence of a subscription, 95th percentile",
            "ms",
            "Time within which 95 % of the subscriptions have converged.",
            f"95th percentile of finished − time over subscribe operations, within {100 * RELATIVE_ERROR:.1f} %",
            ("operations.kind", "operations.lasted_bucket"),
        ),
        Metric(
            "unsubscribe_mean",
            "convergence of an unsubscription, mean",
            "ms",
            "Time from a client's unsubscribe until its last message, exposures included, is processed.",
            "mean of finished − time over unsubscribe operations",
            _TIMES,
        ),
        Metric(
            "messages_per_subscribe",
            "messages per subscription",
            "messages",
            "Link messages that an average subscribe causes.",
            "mean of messages over subscribe and preload operations",
            ("operations.kind", "operations.messages"),
        ),
    ),
)

_FAULTS = ("faults.kind", "faults.time")

REPAIR_JOB = Job(
    "repair",
    ("faults",),
    repair,
    (
        Metric(
            "failures",
            "failures",
            "failures",
            "Brokers that crashed and links that were cut.",
            "count of faults of kind crash or cut",
            _FAULTS,
            "neither",
            empty=0,
        ),
        Metric(
            "outage_mean",
            "outage, mean",
            "ms",
            "Time from a failure until everything is whole again.",
            "mean over crash and cut of time of the next converged − time",
            _FAULTS,
        ),
        Metric(
            "repair_mean",
            "repair, mean",
            "ms",
            "Time from a restart or a healed link until everything is whole again.",
            "mean over restart and heal of time of the next converged − time",
            _FAULTS,
        ),
    ),
)
