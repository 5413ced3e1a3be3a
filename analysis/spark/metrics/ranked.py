"""Where the k best of the whole network are served: what it takes to find them. Other runs have no values here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics.definition import Job, Metric
from broker.trace.schema import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def ranked(ranked: DataFrame, deliveries: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    over_link = F.col("source") != CLIENT
    messages = ranked.groupBy("run").agg(
        F.countDistinct("event").alias("published"),
        F.count_if(over_link).alias("over_links"),
        F.sum(F.when(over_link, F.col("bytes"))).alias("size"),
        F.count_if("carries").alias("copies"),
    )
    last = deliveries.groupBy("run", "event").agg(F.max("latency").alias("latency"))
    waits = last.groupBy("run").agg(F.avg("latency").alias("last_winner_mean"))
    return messages.join(waits, "run", "left").select(
        "run",
        F.try_divide("over_links", "published").alias("messages_per_event"),
        F.try_divide("size", "published").alias("bytes_per_event"),
        F.try_divide("copies", "published").alias("brokers_visited"),
        "last_winner_mean",
    )


JOB = Job(
    "ranked_routing",
    ("ranked", "deliveries"),
    ranked,
    (
        Metric(
            "messages_per_event",
            "messages per event",
            "messages",
            "Messages over links by which the k best of the network are found and served: queries, answers, awards.",
            "count of ranked messages whose source is a broker ÷ events published",
            ("ranked.source", "ranked.event"),
        ),
        Metric(
            "bytes_per_event",
            "bytes per event",
            "bytes",
            "The size of these messages.",
            "Σ bytes over ranked messages whose source is a broker ÷ events published",
            ("ranked.bytes", "ranked.event"),
        ),
        Metric(
            "brokers_visited",
            "brokers visited",
            "brokers",
            "Brokers that an event comes to, the publisher's own included.",
            "count of ranked messages that carry the event ÷ events published",
            ("ranked.carries", "ranked.event"),
        ),
        Metric(
            "last_winner_mean",
            "time to the last winner",
            "ms",
            "From the publication of an event until the last of its k best is served.",
            "mean over events of the largest latency of their deliveries (those in the trace)",
            ("deliveries.event", "deliveries.latency"),
        ),
    ),
)
