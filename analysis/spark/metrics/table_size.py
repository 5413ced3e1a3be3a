"""Routing tables: how many entries brokers keep once nothing is under way any more.

An entry is *remote* when it belongs to a neighbour: it says which events to send over that link. Entries of a
broker's own clients are needed under any strategy and are not counted. What simple routing would keep is in the run
record: in one spanning tree every active subscription at every broker but its own, in a tree per source every one at
each broker on its way to each source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics.definition import Job, Metric
from broker.trace.schema import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BYTES_PER_BOUND = 16  # a lower and an upper bound of eight bytes each, per attribute
BYTES_PER_ID = 8


def per_broker(tables: DataFrame) -> DataFrame:
    """Remote entries of each broker at the final sample: run, broker, entries."""
    from pyspark.sql import functions as F

    remote = tables.where(F.col("final") & (F.col("neighbour") != CLIENT))
    return remote.groupBy("run", "broker").agg(F.sum("entries").alias("entries"))


def table_size(tables: DataFrame, run: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    attributes = F.get_json_object("parameters", "$.workload.attributes").try_cast("int")
    entry = BYTES_PER_BOUND * attributes + BYTES_PER_ID
    remote = F.when(F.col("neighbour") != CLIENT, F.col("entries")).otherwise(0)
    pruned = F.coalesce(F.col("pruned"), F.lit(0))  # older traces have none
    # Local entries take memory too, though no strategy can save them, and pruned ones are still known.
    sums = F.sum(remote).alias("remote"), F.sum(F.col("entries") + pruned).alias("all"), F.sum(pruned).alias("left_out")
    sizes = tables.where("final").groupBy("run", "broker").agg(*sums)
    totals = sizes.groupBy("run").agg(
        F.sum("remote").alias("total"),
        F.max("remote").alias("largest"),
        F.sum("all").alias("stored"),
        F.sum("left_out").alias("left_out"),
    )
    entries = F.coalesce(F.col("total"), F.lit(0)).cast("double")
    return run.join(F.broadcast(totals), "run", "left").select(
        "run",
        entries.alias("entries"),
        F.try_divide(entries, F.col("brokers")).alias("entries_per_broker"),
        F.coalesce(F.col("largest"), F.lit(0)).cast("double").alias("entries_max"),
        (1 - F.try_divide(entries, F.col("simple_entries"))).alias("reduction"),
        F.coalesce(F.col("left_out"), F.lit(0)).cast("double").alias("pruned"),
        F.try_divide(F.coalesce("stored", F.lit(0)) * entry, F.col("brokers")).alias("memory_per_broker"),
    )


JOB = Job(
    "table_size",
    ("tables", "run"),
    table_size,
    (
        Metric(
            "entries",
            "routing-table entries",
            "entries",
            "Entries that brokers keep for their neighbours, all brokers together, at the end.",
            "Σ entries over brokers and neighbours, clients left out, final sample",
            ("tables.entries", "tables.neighbour", "tables.final"),
            empty=0,
        ),
        Metric(
            "entries_per_broker",
            "entries per broker",
            "entries",
            "Routing-table entries of an average broker.",
            "entries ÷ brokers",
            ("tables.entries", "tables.neighbour", "tables.final", "run.brokers"),
            empty=0,
        ),
        Metric(
            "entries_max",
            "largest table",
            "entries",
            "Routing-table entries of the broker that has most.",
            "max over brokers of Σ entries over its neighbours",
            ("tables.entries", "tables.neighbour", "tables.broker", "tables.final"),
            empty=0,
        ),
        Metric(
            "reduction",
            "reduction against simple routing",
            "share",
            "The part saved of the entries that simple routing would keep in the same trees: in one spanning tree "
            "every active subscription at every other broker, in a tree per source at each broker on its way there.",
            "1 − entries ÷ entries of simple routing",
            ("tables.entries", "tables.neighbour", "tables.final", "run.simple_entries"),
            "higher",
            signed=True,
        ),
        Metric(
            "pruned",
            "pruned entries",
            "entries",
            "Entries of neighbours that brokers know and hold no event against, because another entry of the same "
            "neighbour covers them.",
            "Σ pruned over brokers and neighbours, final sample",
            ("tables.pruned", "tables.final"),
            empty=0,
        ),
        Metric(
            "memory_per_broker",
            "memory per broker",
            "bytes",
            "What the entries of an average broker, its clients' and pruned ones included, take at least: bounds and "
            "ids, without any index over them.",
            f"Σ (entries + pruned) × ({BYTES_PER_BOUND} × attributes + {BYTES_PER_ID}) ÷ brokers",
            ("tables.entries", "tables.pruned", "tables.final", "run.parameters", "run.brokers"),
        ),
    ),
)
