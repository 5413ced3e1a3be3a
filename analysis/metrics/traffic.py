"""Traffic: messages over links, apart for control and events, and how many event messages were for nothing.

Messages between a client and its own broker do not cross a link and are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.metrics.definition import Job, Metric
from broker.trace import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# The control messages by what they are for; the kinds are those of the trace.
KINDS = {
    "subscribe_messages": ("subscribe",),
    "unsubscribe_messages": ("unsubscribe",),
    "advertise_messages": ("advertise", "unadvertise"),
    "recovery_messages": ("start", "summary", "differs", "done"),
}


def control_traffic(control: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    over_links = control.where(F.col("source") != CLIENT)
    return over_links.groupBy("run").agg(
        F.count("*").cast("double").alias("control_messages"),
        *(F.count_if(F.col("kind").isin(*kinds)).cast("double").alias(name) for name, kinds in KINDS.items()),
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
            "Subscriptions, unsubscriptions, advertisements and recovery messages over links.",
            "count of control messages whose source is a broker",
            ("control.source",),
            empty=0,
        ),
        *(
            Metric(
                name,
                name.replace("_", " "),
                "messages",
                f"The part of the control messages that {what}.",
                f"count of control messages of kind {', '.join(KINDS[name])} whose source is a broker",
                ("control.source", "control.kind"),
                empty=0,
            )
            for name, what in (
                ("subscribe_messages", "spread subscriptions, newly exposed ones included"),
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
