"""Deliveries: how many, over how many hops, how fast; and how long a link's messages waited.

Percentiles are exact (Spark's `percentile`, linear between neighbours), all of a table in one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.metrics.definition import Job, Metric

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUANTILES = (0.5, 0.95, 0.99)


def deliveries(deliveries: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    grouped = deliveries.groupBy("run").agg(
        F.count("*").cast("double").alias("deliveries"),
        F.avg("hops").alias("hops"),
        F.avg("latency").alias("latency_mean"),
        F.percentile("latency", list(QUANTILES)).alias("latency"),
    )
    return grouped.select(
        "run",
        "deliveries",
        "hops",
        "latency_mean",
        F.col("latency")[0].alias("latency_p50"),
        F.col("latency")[1].alias("latency_p95"),
        F.col("latency")[2].alias("latency_p99"),
    )


def top_k(deliveries: DataFrame, run: DataFrame) -> DataFrame:
    """How much of what the brokers' own top k delivered belongs to the k best of the whole network."""
    from pyspark.sql import functions as F

    per_event = deliveries.groupBy("run", "event").agg(F.count("*").alias("delivered"))
    k = F.get_json_object("parameters", "$.matching.k").try_cast("int")
    best = F.when(F.col("k").isNotNull(), F.least("delivered", "k"))
    return (
        per_event.join(run.select("run", k.alias("k")), "run")
        .groupBy("run")
        .agg(F.try_divide(F.sum(best), F.sum("delivered")).alias("topk_overlap"))
    )


def waiting(publications: DataFrame, links: DataFrame) -> DataFrame:
    """Time an event message spends per hop beyond the latency of the link."""
    from pyspark.sql import functions as F

    here = links.select("run", F.col("broker").alias("source"), F.col("neighbour").alias("target"), "latency")
    back = links.select("run", F.col("neighbour").alias("source"), F.col("broker").alias("target"), "latency")
    wire = here.unionByName(back).dropDuplicates(["run", "source", "target"])
    hops = publications.where(F.col("hop") > 0).join(wire, ["run", "source", "target"])
    wait = F.col("time") - F.col("sent") - F.col("latency")
    grouped = hops.groupBy("run").agg(F.avg(wait).alias("mean"), F.percentile(wait, 0.95).alias("p95"))
    return grouped.select("run", F.col("mean").alias("waiting_mean"), F.col("p95").alias("waiting_p95"))


_LATENCY = ("deliveries.latency",)

DELIVERY_JOB = Job(
    "deliveries",
    ("deliveries",),
    deliveries,
    (
        Metric(
            "deliveries",
            "deliveries",
            "deliveries",
            "Events handed to subscribers.",
            "count of deliveries",
            ("deliveries.event",),
            "neither",
            empty=0,
        ),
        Metric(
            "hops",
            "hops",
            "links",
            "Links that a delivered event crossed, on average.",
            "mean of hops over deliveries",
            ("deliveries.hops",),
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
                f"latency_p{round(100 * q)}",
                f"latency, {'median' if q == 0.5 else f'{round(100 * q)}th percentile'}",
                "ms",
                f"Time from publication to delivery that {round(100 * q)} % of the deliveries stay within.",
                f"{q} quantile of latency over deliveries",
                _LATENCY,
            )
            for q in QUANTILES
        ),
    ),
)

WAITING_JOB = Job(
    "waiting",
    ("publications", "links"),
    waiting,
    (
        Metric(
            "waiting_mean",
            "waiting per hop, mean",
            "ms",
            "Time an event message spends per hop beyond the link's latency: queue, service, transmission.",
            "mean of time − sent − link latency over publications with hop > 0",
            ("publications.time", "publications.sent", "publications.hop", "links.latency"),
        ),
        Metric(
            "waiting_p95",
            "waiting per hop, 95th percentile",
            "ms",
            "Time per hop beyond the link's latency that 95 % of the event messages stay within.",
            "0.95 quantile of time − sent − link latency over publications with hop > 0",
            ("publications.time", "publications.sent", "publications.hop", "links.latency"),
        ),
    ),
)

TOP_K_JOB = Job(
    "top_k",
    ("deliveries", "run"),
    top_k,
    (
        Metric(
            "topk_overlap",
            "overlap with the global top k",
            "share",
            "Each broker delivers an event to its own k best subscriptions, and these include the k best of the "
            "whole network; this is the part of the deliveries that a network-wide top k would have made.",
            "Σ min(k, deliveries of the event) ÷ deliveries",
            ("deliveries.event", "run.parameters"),
            "neither",
        ),
    ),
)
