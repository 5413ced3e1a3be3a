"""Load: how evenly the messages are spread over the brokers.

The Gini coefficient of n loads x₁ ≤ … ≤ xₙ is 2 Σ i·xᵢ ÷ (n Σ xᵢ) − (n+1)/n: 0 when all are equal, towards
1 when one broker does everything. Brokers that processed nothing count as 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def per_broker(control: DataFrame, publications: DataFrame, brokers: DataFrame) -> DataFrame:
    """Messages that each broker processed, its clients' included: run, broker, processed."""
    from pyspark.sql import functions as F

    both = (
        counts.of_control(control)
        .select("run", "target", "count")
        .union(counts.of_publications(publications).select("run", "target", "count"))
    )
    messages = both.groupBy("run", F.col("target").alias("broker")).agg(F.sum("count").alias("messages"))
    joined = brokers.select("run", "broker").join(messages, ["run", "broker"], "left")
    return joined.select("run", "broker", F.coalesce("messages", F.lit(0)).alias("processed"))


def load(control: DataFrame, publications: DataFrame, brokers: DataFrame) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    loads = per_broker(control, publications, brokers)
    by_load = Window.partitionBy("run").orderBy("processed", "broker")
    ranked = loads.withColumn("rank", F.row_number().over(by_load))
    n, total = F.count("*"), F.sum("processed")
    weighted = F.sum(F.col("rank") * F.col("processed"))
    return ranked.groupBy("run").agg(
        F.try_divide(F.max("processed") * n, total).alias("load_max_mean"),
        (F.try_divide(2 * weighted, n * total) - F.try_divide(n + 1, n)).alias("load_gini"),
    )


_COLUMNS = ("control.target", "publications.target", "brokers.broker")

JOB = Job(
    "load",
    ("control", "publications", "brokers"),
    load,
    (
        Metric(
            "load_max_mean",
            "load imbalance, busiest to mean",
            "ratio",
            "Messages processed by the busiest broker against the mean of all brokers; 1 is even.",
            "max ÷ mean over brokers of messages processed",
            _COLUMNS,
        ),
        Metric(
            "load_gini",
            "load imbalance, Gini",
            "0..1",
            "Gini coefficient of messages processed per broker: 0 is even, 1 is one broker doing it all.",
            "2 Σ i·xᵢ ÷ (n Σ xᵢ) − (n+1)/n, x ascending",
            _COLUMNS,
        ),
    ),
)
