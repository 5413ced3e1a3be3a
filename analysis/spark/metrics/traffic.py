"""Traffic: messages over links, apart for control and events, and how many event messages were for nothing.

Messages between a client and its own broker do not cross a link and are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric
from broker.trace.schema import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# The control messages by what they are for; the kinds are those of the trace.
KINDS = {
    "subscribe_messages": ("subscribe",),
    "unsubscribe_messages": ("unsubscribe",),
    "advertise_messages": ("advertise", "unadvertise"),
    "recovery_messages": ("start", "summary", "differs", "done"),
}


def control_traffic(control: DataFrame, operations: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    traced = counts.of_control(control).where(F.col("source") != CLIENT).select("run", "kind", "count")
    # What spread before time 0 is counted per request.
    before = operations.where(F.col("kind") == "preload").select("run", F.lit("subscribe"), "messages")
    over_links = traced.union(before)
    of_kind = {name: F.when(F.col("kind").isin(*kinds), F.col("count")) for name, kinds in KINDS.items()}
    return over_links.groupBy("run").agg(
        F.sum("count").cast("double").alias("control_messages"),
        *(F.coalesce(F.sum(count), F.lit(0)).cast("double").alias(name) for name, count in of_kind.items()),
    )


def event_traffic(publications: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    over_links = counts.of_publications(publications).where(F.col("source") != CLIENT)
    messages, needless = F.sum("count"), F.sum("needless")
    return over_links.groupBy("run").agg(
        messages.cast("double").alias("event_messages"),
        needless.cast("double").alias("false_positives"),
        F.try_divide(needless, messages).alias("false_positive_share"),
    )


def per_link(control: DataFrame, publications: DataFrame) -> DataFrame:
    """Messages over each link, both directions: run, broker, neighbour, control, events, needless."""
    from pyspark.sql import functions as F

    ends = [F.least("source", "target").alias("broker"), F.greatest("source", "target").alias("neighbour")]
    zero, over_links = F.lit(0).cast("bigint"), F.col("source") != CLIENT
    subscriptions = counts.of_control(control).where(over_links)
    events = counts.of_publications(publications).where(over_links)
    both = subscriptions.select("run", *ends, F.col("count").alias("control"), zero, zero).union(
        events.select("run", *ends, zero, "count", "needless")
    )
    named = both.toDF("run", "broker", "neighbour", "control", "events", "needless")
    sums = [F.sum(name).alias(name) for name in ("control", "events", "needless")]
    return named.groupBy("run", "broker", "neighbour").agg(*sums)


CONTROL_JOB = Job(
    "control_traffic",
    ("control", "operations"),
    control_traffic,
    (
        Metric(
            "control_messages",
            "control messages",
            "messages",
            "Subscriptions, unsubscriptions, advertisements and recovery messages over links.",
            "count of control messages whose source is a broker + Σ messages over preload operations",
            ("control.source", "operations.kind", "operations.messages"),
            empty=0,
        ),
        *(
            Metric(
                name,
                name.replace("_", " "),
                "messages",
                f"The part of the control messages that {what}.",
                f"count of control messages of kind {', '.join(KINDS[name])} whose source is a broker"
                + " + Σ messages over preload operations" * (name == "subscribe_messages"),
                ("control.source", "control.kind"),
                empty=0,
            )
            for name, what in (
                ("subscribe_messages", "spread subscriptions, newly exposed ones and those before time 0 included"),
                ("unsubscribe_messages", "take subscriptions back"),
                ("advertise_messages", "spread or take back advertisements"),
                ("recovery_messages", "compare and repair tables after a failure"),
            )
        ),
    ),
)

EVENT_JOB = Job(
    "event_traffic",
    ("publications",),
    event_traffic,
    (
        Metric(
            "event_messages",
            "event messages",
            "messages",
            "Copies of events sent over links.",
            "count of publications whose source is a broker",
            ("publications.source",),
            empty=0,
        ),
        Metric(
            "false_positives",
            "false-positive forwards",
            "messages",
            "Event messages towards brokers behind which nothing matched.",
            "count of publications whose source is a broker and that are not useful",
            ("publications.source", "publications.useful"),
            empty=0,
        ),
        Metric(
            "false_positive_share",
            "false-positive share",
            "share",
            "The part of the event messages that was for nothing.",
            "false-positive forwards ÷ event messages",
            ("publications.source", "publications.useful"),
        ),
    ),
)
