"""The metrics of the catalogue in Polars: lazy frames over the same Parquet files, see spark_peers.py."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl

from analysis.metrics.covering import CHECKS
from analysis.metrics.delivery import PERCENTS
from analysis.metrics.traffic import KINDS
from analysis.metrics.truth import LOST
from broker.buckets import EXPONENT_BIAS, PARTS, SUBBITS
from broker.trace import CLIENT

over_links = pl.col("source") != CLIENT


def metrics(base: Path) -> pd.DataFrame:
    """Every metric of every run."""

    def scan(name: str) -> pl.LazyFrame:
        return pl.scan_parquet(base / "run=*" / f"{name}.parquet", hive_schema={"run": pl.String})

    run = scan("run").collect()
    # The shared steps first, each one pass over its table; Polars plans all of them together.
    shared = pl.collect_all([
        scan("control").group_by("run", "source", "target", "kind").agg(pl.len().alias("count")),
        scan("publications").group_by("run", "source", "target").agg(
            pl.len().alias("count"), (~pl.col("useful")).sum().alias("needless"), pl.col("waited").sum()
        ),
        scan("publications").filter(over_links).group_by("run", pl.col("waited_bucket").alias("bucket")).agg(
            pl.len().alias("count")
        ),
        scan("publications").filter(pl.col("served") > 0).group_by("run", "event").agg(pl.col("served").sum()),
        _decisions(scan("decisions"), scan("decisions_rest")),
        _deliveries(scan("deliveries"), scan("deliveries_rest")),
        scan("operations"),
        scan("tables").filter("final"),
        scan("faults"),
        scan("brokers").select("run", "broker"),
    ])  # fmt: skip
    control, publications, waits, events, decisions, deliveries, operations, tables, faults, brokers = shared
    wide = run.select("run")
    for part in (
        _table_size(tables, run),
        _control(control, operations),
        _covering(decisions),
        _events(publications),
        _latency(deliveries),
        _top_k(events, run),
        _waiting(publications, waits),
        _load(control, publications, brokers),
        _convergence(operations),
        _faults(faults),
        _truth(run),
    ):
        wide = wide.join(part, "run", "left")
    return wide.to_pandas().set_index("run")


def _decisions(rows: pl.LazyFrame, rest: pl.LazyFrame) -> pl.LazyFrame:
    keys, sums = ["run", "outcome", "capped", "exact", "at_home"], ["probes", "cubes", "runs", "volume"]
    typed = [pl.col("outcome").cast(pl.String), *(pl.col(name).cast(pl.Float64) for name in sums)]
    counted = rows.with_columns(pl.col(name).cast(pl.Float64) for name in sums[:3]).group_by(keys)
    found = counted.agg(pl.len().cast(pl.Int64).alias("count"), *(pl.col(name).sum() for name in sums))
    both = [frame.with_columns(typed).select(*keys, "count", *sums) for frame in (found, rest)]
    return pl.concat(both)


def _deliveries(rows: pl.LazyFrame, rest: pl.LazyFrame) -> pl.LazyFrame:
    columns = ["run", "bucket", "count", "hops", "latency"]
    counted = rows.group_by("run", pl.col("latency_bucket").alias("bucket")).agg(
        pl.len().cast(pl.Int64).alias("count"), pl.col("hops").cast(pl.Int64).sum(), pl.col("latency").sum()
    )
    others = rest.rename({"latency_bucket": "bucket"}).with_columns(
        (pl.col("hops").cast(pl.Int64) * pl.col("count")).alias("hops")
    )
    return pl.concat([counted.select(columns), others.select(columns)])


def _percentile(counts: pl.DataFrame, name: str, percent: int) -> pl.DataFrame:
    """The middle of the smallest bucket that `percent` of the values do not exceed."""
    ranked = counts.sort("run", "bucket").with_columns(
        pl.col("count").cum_sum().over("run").alias("reached"), pl.col("count").sum().over("run").alias("total")
    )
    bucket = ranked.filter(pl.col("reached") * 100 >= pl.col("total") * percent).group_by("run").agg(pl.min("bucket"))
    b = pl.col("bucket").cast(pl.Int64)
    part = 1 + (b % PARTS + 0.5) / PARTS
    middle = part * pl.lit(2.0).pow((b // 2**SUBBITS - EXPONENT_BIAS).cast(pl.Float64))
    return bucket.select("run", pl.when(b == 0).then(0.0).otherwise(middle).alias(name))


def _table_size(final: pl.DataFrame, run: pl.DataFrame) -> pl.DataFrame:
    remote = pl.when(pl.col("neighbour") != CLIENT).then("entries").otherwise(0)
    sizes = final.group_by("run", "broker").agg(remote.sum().alias("remote"), pl.col("entries").sum().alias("all"))
    totals = sizes.group_by("run").agg(
        pl.col("remote").sum().alias("total"), pl.col("remote").max().alias("largest"), pl.col("all").sum()
    )
    entry = 16 * pl.col("parameters").str.json_path_match("$.workload.attributes").cast(pl.Int64) + 8
    entries, brokers = pl.col("total").fill_null(0), pl.col("brokers")
    return run.join(totals, "run", "left").select(
        "run",
        entries.alias("entries"),
        (entries / brokers).alias("entries_per_broker"),
        pl.col("largest").fill_null(0).alias("entries_max"),
        (1 - entries / (pl.col("active") * (brokers - 1))).alias("reduction"),
        (pl.col("all").fill_null(0) * entry / brokers).alias("memory_per_broker"),
    )


def _control(counts: pl.DataFrame, operations: pl.DataFrame) -> pl.DataFrame:
    count, kind = pl.col("count"), pl.col("kind").cast(pl.String)
    traced = counts.filter(over_links).select("run", kind, count.cast(pl.Int64))
    loaded = operations.filter(kind == "preload")
    before = loaded.select("run", pl.lit("subscribe").alias("kind"), pl.col("messages").alias("count"))
    return pl.concat([traced, before]).group_by("run").agg(
        count.sum().alias("control_messages"),
        *(count.filter(kind.is_in(kinds)).sum().alias(name) for name, kinds in KINDS.items()),
    )


def _covering(counts: pl.DataFrame) -> pl.DataFrame:
    check = pl.col("outcome").is_in(CHECKS)
    coverable = check & pl.col("exact")
    found = coverable & (pl.col("outcome") == "suppressed")

    def total(of: str, where: pl.Expr) -> pl.Expr:
        return pl.col(of).filter(where).sum()

    checks, first = total("count", check), pl.col("at_home")
    return counts.group_by("run").agg(
        checks.alias("checks"),
        pl.col("probes").sum(),
        (total("probes", check) / checks).alias("probes_per_check"),
        pl.col("cubes").sum(),
        pl.col("runs").sum().alias("key_ranges"),
        (total("volume", check) / checks).alias("volume"),
        (total("count", check & pl.col("capped")) / checks).alias("capped"),
        (total("count", found) / total("count", coverable)).alias("recall"),
        (total("count", coverable) - total("count", found)).alias("missed_covers"),
        (total("count", found & first) / total("count", coverable & first)).alias("recall_first_hop"),
    )


def _events(counts: pl.DataFrame) -> pl.DataFrame:
    messages, needless = pl.col("count").sum(), pl.col("needless").sum()
    return counts.filter(over_links).group_by("run").agg(
        messages.alias("event_messages"),
        needless.alias("false_positives"),
        (needless / messages).alias("false_positive_share"),
    )


def _latency(counts: pl.DataFrame) -> pl.DataFrame:
    count = pl.col("count").sum()
    found = counts.group_by("run").agg(
        count.alias("deliveries"),
        (pl.col("hops").sum() / count).alias("hops"),
        (pl.col("latency").sum() / count).alias("latency_mean"),
    )
    for percent in PERCENTS:
        found = found.join(_percentile(counts, f"latency_p{percent}", percent), "run")
    return found


def _top_k(events: pl.DataFrame, run: pl.DataFrame) -> pl.DataFrame:
    k = run.select("run", pl.col("parameters").str.json_path_match("$.matching.k").cast(pl.Int64).alias("k"))
    best = pl.min_horizontal("served", "k").sum() / pl.col("served").sum()
    return events.join(k.filter(pl.col("k").is_not_null()), "run").group_by("run").agg(best.alias("topk_overlap"))


def _waiting(counts: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    mean = pl.col("waited").sum() / pl.col("count").sum()
    means = counts.filter(over_links).group_by("run").agg(mean.alias("waiting_mean"))
    return means.join(_percentile(waits, "waiting_p95", 95), "run")


def _load(control: pl.DataFrame, publications: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    columns = "run", pl.col("target").alias("broker"), "count"
    both = pl.concat([control.select(columns), publications.select(columns)])
    sums = both.group_by("run", "broker").agg(pl.col("count").cast(pl.Int64).sum().alias("processed"))
    loads = brokers.join(sums, ["run", "broker"], "left").with_columns(pl.col("processed").fill_null(0))
    rank = pl.int_range(1, pl.len() + 1).over("run").alias("rank")
    ranked = loads.sort("run", "processed", "broker").with_columns(rank)
    n, total = pl.len(), pl.col("processed").sum()
    weighted = (pl.col("rank") * pl.col("processed")).sum()
    return ranked.group_by("run").agg(
        (pl.col("processed").max() * n / total).alias("load_max_mean"),
        (2 * weighted / (n * total) - (n + 1) / n).alias("load_gini"),
    )


def _convergence(operations: pl.DataFrame) -> pl.DataFrame:
    lasted, kind = pl.col("finished") - pl.col("time"), pl.col("kind").cast(pl.String)
    found = operations.group_by("run").agg(
        lasted.filter(kind == "subscribe").mean().alias("convergence_mean"),
        lasted.filter(kind == "unsubscribe").mean().alias("unsubscribe_mean"),
        pl.col("messages").filter(kind.is_in(["subscribe", "preload"])).mean().alias("messages_per_subscribe"),
    )
    bucket = pl.col("lasted_bucket").alias("bucket")
    counts = operations.filter(kind == "subscribe").group_by("run", bucket).agg(pl.len().alias("count"))
    return found.join(_percentile(counts, "convergence_p95", 95), "run")


def _faults(faults: pl.DataFrame) -> pl.DataFrame:
    kind = pl.col("kind").cast(pl.String)
    return faults.group_by("run").agg(
        kind.is_in(["crash", "cut"]).sum().alias("failures"), kind.is_in(LOST).sum().alias("dropped")
    )


def _truth(run: pl.DataFrame) -> pl.DataFrame:
    counts = ["missed", "duplicates", "spurious", "missed_transient", "missed_dropped", "missed_fault"]
    lost = pl.sum_horizontal("missed", "missed_transient", "missed_dropped", "missed_fault")
    return run.select(
        "run",
        *counts,
        (pl.col("deliveries") / (pl.col("deliveries") + lost)).alias("delivery_ratio"),
        (pl.col("control_messages") / pl.col("events")).alias("control_per_event"),
        pl.col("finished").alias("simulated_time"),
        "wall_seconds",
    )
