"""The ledger of missed covers: what each one cost downstream.

A cover is missed where an approximate search sent a subscription over a link although exact covering would have
held it back. The neighbour then keeps an entry that it did not need, and searches in turn: what it sends on is
covered there too, so every later hop of the subscription is such a needless message itself. A subscription's
misses are therefore the messages, and at their neighbours the entries, that the first one caused; an
unsubscription over the same link costs one more message and frees the entry. Where decisions were sampled, these are
the costliest of the sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 10  # subscriptions per run, the costliest first
LINK = ("run", "subscription", "broker", "neighbour")


def costliest_misses(decisions: DataFrame, control: DataFrame, most: int = MOST) -> DataFrame:
    """Per run, the subscriptions whose missed covers cost most: links, messages, and entries left at the end."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    missed = decisions.where(F.col("outcome").isin("forwarded", "exposed") & F.col("exact"))
    sent = missed.groupBy(*LINK).agg(F.count("*").alias("sent"), F.min("time").alias("time"))
    left = (
        control.where(F.col("kind") == "unsubscribe")
        .groupBy("run", "subscription", F.col("source").alias("broker"), F.col("target").alias("neighbour"))
        .agg(F.count("*").alias("left"))
    )
    links = sent.join(left, list(LINK), "left").fillna(0, ["left"])
    gone = F.least("left", "sent")
    costs = links.groupBy("run", "subscription").agg(
        F.min_by("broker", F.struct("time", "broker")).alias("first_broker"),
        F.count("*").alias("links"),
        F.sum(F.col("sent") + gone).alias("messages"),
        F.sum(F.col("sent") - gone).alias("entries"),
    )
    rank = F.row_number().over(Window.partitionBy("run").orderBy(F.desc("messages"), "subscription"))
    return costs.withColumn("rank", rank).where(F.col("rank") <= most).orderBy("run", "rank")
