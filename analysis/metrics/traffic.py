"""Traffic: messages over links, apart for control and events, and how many event messages were for nothing.

Messages between a client and its own broker do not cross a link and are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.metrics.definition import Job, Metric
from broker.trace import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def control_traffic(control: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    over_links = control.where(F.col("source") != CLIENT)
    return over_links.groupBy("run").agg(
        F.count("*").cast("double").alias("control_messages"),
        F.count_if(F.col("kind") == "unsubscribe").cast("double").alias("unsubscribe_messages"),
    )


def event_traffic(publications: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    over_links = publications.where(F.col("hop") > 0)
    messages, needless = F.count("*"), F.count_if(~F.col("useful"))
    return over_links.groupBy("run").agg(
        messages.cast("double").alias("event_messages"),
        needless.cast("double").alias("false_positives"),
        F.try_divide(needless, messages).alias("false_positive_share"),
    )


def per_link(control: DataFrame, publications: DataFrame) -> DataFrame:
    """Messages over each link, both directions: run, broker, neighbour, control, events, needless."""
    from pyspark.sql import functions as F

    ends = [F.least("source", "target").alias("broker"), F.greatest("source", "target").alias("neighbour")]
    zero, one = F.lit(0), F.lit(1)
    subscriptions = control.where(F.col("source") != CLIENT).select(
        "run", *ends, one.alias("control"), zero.alias("events"), zero.alias("needless")
    )
    events = publications.where(F.col("hop") > 0).select(
        "run",
        *ends,
        zero.alias("control"),
        one.alias("events"),
        (~F.col("useful")).cast("int").alias("needless"),
    )
    counts = [F.sum(name).alias(name) for name in ("control", "events", "needless")]
    return subscriptions.unionByName(events).groupBy("run", "broker", "neighbour").agg(*counts)


CONTROL_JOB = Job(
    "control_traffic",
    ("control",),
    control_traffic,
    (
        Metric(
            "control_messages",
            "control messages",
            "messages",
            "Subscribe and unsubscribe messages over links.",
            "count of control messages whose source is a broker",
            ("control.source",),
            empty=0,
        ),
        Metric(
            "unsubscribe_messages",
            "unsubscribe messages",
            "messages",
            "The unsubscribe messages among the control messages.",
            "count of control messages of kind unsubscribe whose source is a broker",
            ("control.source", "control.kind"),
            empty=0,
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
            "count of publications with hop > 0",
            ("publications.hop",),
            empty=0,
        ),
        Metric(
            "false_positives",
            "false-positive forwards",
            "messages",
            "Event messages towards brokers behind which nothing matched.",
            "count of publications with hop > 0 that are not useful",
            ("publications.hop", "publications.useful"),
            empty=0,
        ),
        Metric(
            "false_positive_share",
            "false-positive share",
            "share",
            "The part of the event messages that was for nothing.",
            "false-positive forwards ÷ event messages",
            ("publications.hop", "publications.useful"),
        ),
    ),
)
