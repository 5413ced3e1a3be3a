"""Covering: how often brokers asked, what the search cost, and how many covers it found.

A *check* is one decision whether to send a subscription over a link (forwarded, exposed or suppressed). The
other outcomes answer no question of covering: a retraction follows from such a decision, a merger invents a
cover, and a dormant subscription waits for an advertisement. They count neither as checks nor in the recall,
only their search cost does. Decisions that sampling left out count through `decisions_rest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric
from broker.trace.buckets import SHARE_UNIT, WORK_UNIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MICROSECONDS = 1000.0  # in a millisecond
CHECKS = ("forwarded", "exposed", "suppressed")


def covering_work(decisions: DataFrame, rest: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    check = F.col("outcome").isin(*CHECKS)
    coverable = check & F.col("exact")  # unknown counts as neither
    found = coverable & (F.col("outcome") == "suppressed")

    def count(condition: Column) -> Column:
        return F.sum(F.when(condition, F.col("count")).otherwise(0))

    checks, first = count(check), F.col("at_home")
    return (
        counts.of_decisions(decisions, rest)
        .groupBy("run")
        .agg(
            checks.cast("double").alias("checks"),
            F.sum("probes").alias("probes"),
            F.try_divide(F.sum(F.when(check, F.col("probes"))), checks).alias("probes_per_check"),
            F.when(
                F.sum("took") > 0, counts.mean(F.sum(F.when(check, F.col("took"))), checks, WORK_UNIT * MICROSECONDS)
            ).alias("check_time"),
            F.try_divide(F.sum(F.when(check, F.col("pages"))), checks).alias("pages_per_check"),
            F.try_divide(F.sum(F.when(check, F.col("round_trips"))), checks).alias("round_trips_per_check"),
            F.sum("cubes").alias("cubes"),
            F.sum("runs").alias("key_ranges"),
            counts.mean(F.sum(F.when(check, F.col("volume"))), checks, SHARE_UNIT).alias("volume"),
            F.try_divide(count(check & F.col("capped")), checks).alias("capped"),
            F.try_divide(count(found), count(coverable)).alias("recall"),
            F.when(count(F.col("exact").isNotNull()) > 0, count(coverable) - count(found))
            .cast("double")
            .alias("missed_covers"),
            F.try_divide(count(found & first), count(coverable & first)).alias("recall_first_hop"),
        )
    )


_SEARCH = ("decisions.outcome",)

JOB = Job(
    "covering_work",
    ("decisions", "decisions_rest"),
    covering_work,
    (
        Metric(
            "checks",
            "covering checks",
            "checks",
            "Decisions whether a subscription must be sent over a link.",
            "count of decisions forwarded, exposed or suppressed",
            _SEARCH,
            empty=0,
        ),
        Metric(
            "probes",
            "probes",
            "probes",
            "Stored entries or key ranges looked at by all searches, those of retractions and mergers included.",
            "Σ probes over decisions",
            ("decisions.probes",),
            empty=0,
        ),
        Metric(
            "probes_per_check",
            "probes per check",
            "probes",
            "Search cost of an average covering check.",
            "Σ probes over checks ÷ checks",
            ("decisions.probes", *_SEARCH),
        ),
        Metric(
            "check_time",
            "time per check",
            "µs",
            "What an average covering check takes, by the profile of broker.service; unknown for other kinds.",
            "mean of took over checks",
            ("decisions.took", *_SEARCH),
        ),
        Metric(
            "pages_per_check",
            "pages per check",
            "pages",
            "Pages of 4 KB that an average covering check would touch, were the index on disk.",
            "Σ pages over checks ÷ checks",
            ("decisions.pages", *_SEARCH),
        ),
        Metric(
            "round_trips_per_check",
            "round trips per check",
            "round trips",
            "Times that an average covering check would ask, were the index on another machine.",
            "Σ round_trips over checks ÷ checks",
            ("decisions.round_trips", *_SEARCH),
        ),
        Metric(
            "cubes",
            "standard cubes",
            "cubes",
            "Standard cubes searched by curve methods; other methods have none.",
            "Σ cubes over decisions",
            ("decisions.cubes",),
            empty=0,
        ),
        Metric(
            "key_ranges",
            "key ranges",
            "ranges",
            "Ranges of curve keys searched, after neighbouring cubes were merged.",
            "Σ runs over decisions",
            ("decisions.runs",),
            empty=0,
        ),
        Metric(
            "volume",
            "searched volume",
            "share",
            "Part of the search region that an average check searched; 1 is exhaustive.",
            "mean of volume over checks",
            ("decisions.volume", *_SEARCH),
            "neither",
        ),
        Metric(
            "capped",
            "capped searches",
            "share",
            "Part of the checks that a probe cap or a budget ended before all possible covers were seen.",
            "capped checks ÷ checks",
            ("decisions.capped", *_SEARCH),
        ),
        Metric(
            "recall",
            "recall of covering",
            "share",
            "Of the checks in which exact covering finds a cover, the part in which this method did.",
            "suppressed checks with a cover ÷ checks with a cover",
            ("decisions.exact", *_SEARCH),
            "higher",
        ),
        Metric(
            "missed_covers",
            "missed covers",
            "checks",
            "Subscriptions sent although a cover was there: each is one needless entry at the neighbour.",
            "checks with a cover − suppressed checks with a cover",
            ("decisions.exact", *_SEARCH),
        ),
        Metric(
            "recall_first_hop",
            "recall at the first hop",
            "share",
            "Recall of covering among the checks at the subscriber's own broker: later hops repeat the question about "
            "what the first let through.",
            "suppressed checks with a cover ÷ checks with a cover, where the broker is the subscriber's",
            ("decisions.exact", "decisions.at_home", *_SEARCH),
            "higher",
        ),
    ),
)
