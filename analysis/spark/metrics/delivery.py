"""Deliveries: how many, over how many hops, how fast; and how long a link's messages waited.

Percentiles come from counts of buckets (broker/trace/buckets.py): within 0.4 % of the value at that rank. Spark's exact
percentile takes fifty times as long as DuckDB's, counting buckets about as long as any other grouping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric
from broker.trace.buckets import RELATIVE_ERROR, TIME_UNIT
from broker.trace.schema import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PERCENTS = (50, 95, 99)
WITHIN = f", within {100 * RELATIVE_ERROR:.1f} %"


def deliveries(deliveries: DataFrame, rest: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    names = {f"latency_p{percent}": percent for percent in PERCENTS}
    found = counts.percentiles(counts.of_deliveries(deliveries, rest), names, "hops", "latency")
    return found.select(
        "run",
        F.col("count").cast("double").alias("deliveries"),
        F.try_divide("hops", "count").alias("hops"),
        counts.mean(F.col("latency"), F.col("count"), TIME_UNIT).alias("latency_mean"),
        *names,
    )


def top_k(publications: DataFrame, run: DataFrame) -> DataFrame:
    """How much of what the brokers' own top k delivered belongs to the k best of the whole network."""
    from pyspark.sql import functions as F

    k = F.get_json_object("parameters", "$.matching.k").try_cast("int")
    limited = run.select("run", k.alias("k")).where("k is not null")
    per_event = (
        publications.where(F.col("served") > 0)
        .join(F.broadcast(limited), "run")
        .groupBy("run", "event", "k")
        .agg(F.sum("served").alias("delivered"))
    )
    overlap = F.try_divide(F.sum(F.least("delivered", "k")), F.sum("delivered"))
    return per_event.groupBy("run").agg(overlap.alias("topk_overlap"))


def waiting(publications: DataFrame) -> DataFrame:
    """Time an event message spends per hop beyond the latency of the link."""
    from pyspark.sql import functions as F

    # Buckets by link would be many groups of few rows; reading two columns again costs less.
    buckets = (
        publications.where(F.col("source") != CLIENT)
        .groupBy("run", F.col("waited_bucket").alias("bucket"))
        .agg(F.count("*").alias("count"))
    )
    sums = (
        counts.of_publications(publications)
        .where(F.col("source") != CLIENT)
        .groupBy("run")
        .agg(counts.mean(F.sum("waited"), F.sum("count"), TIME_UNIT).alias("waiting_mean"))
    )
    found = counts.percentiles(buckets, {"waiting_p95": 95})
    return sums.join(F.broadcast(found), "run").select("run", "waiting_mean", "waiting_p95")


_LATENCY = ("deliveries.latency", "deliveries_rest.latency")

DELIVERY_JOB = Job(
    "deliveries",
    ("deliveries", "deliveries_rest"),
    deliveries,
    (
        Metric(
            "deliveries",
            "deliveries",
            "deliveries",
            "Events handed to subscribers.",
            "count of deliveries, those that sampling added up included",
            ("deliveries.event", "deliveries_rest.count"),
            "neither",
            empty=0,
        ),
        Metric(
            "hops",
            "hops",
            "links",
            "Links that a delivered event crossed, on average.",
            "mean of hops over deliveries",
            ("deliveries.hops", "deliveries_rest.hops"),
        ),
        Metric(
            "latency_mean",
            "latency, mean",
            "ms",
            "Time from publication to delivery, on average.",
            "mean of latency over deliveries",
            _LATENCY,
        ),
        *(
            Metric(
                f"latency_p{percent}",
                f"latency, {'median' if percent == 50 else f'{percent}th percentile'}",
                "ms",
                f"Time from publication to delivery that {percent} % of the deliveries stay within.",
                f"{percent}th percentile of latency over deliveries{WITHIN}",
                ("deliveries.latency_bucket", "deliveries_rest.latency_bucket"),
            )
            for percent in PERCENTS
        ),
    ),
)

WAITING_JOB = Job(
    "waiting",
    ("publications",),
    waiting,
    (
        Metric(
            "waiting_mean",
            "waiting per hop, mean",
            "ms",
            "Time an event message spends per hop beyond the link's latency: queue, service, transmission.",
            "mean of waited over publications whose source is a broker",
            ("publications.waited", "publications.source"),
        ),
        Metric(
            "waiting_p95",
            "waiting per hop, 95th percentile",
            "ms",
            "Time per hop beyond the link's latency that 95 % of the event messages stay within.",
            f"95th percentile of waited over publications whose source is a broker{WITHIN}",
            ("publications.waited_bucket", "publications.source"),
        ),
    ),
)

TOP_K_JOB = Job(
    "top_k",
    ("publications", "run"),
    top_k,
    (
        Metric(
            "topk_overlap",
            "overlap with the global top k",
            "share",
            "Each broker delivers an event to its own k best subscriptions, and these include the k best of the "
            "whole network; this is the part of the deliveries that a network-wide top k would have made.",
            "Σ min(k, deliveries of the event) ÷ deliveries",
            ("publications.event", "publications.served", "run.parameters"),
            "neither",
        ),
    ),
)
