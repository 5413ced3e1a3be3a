"""From the traces of a sweep to its results: the Spark side of the laboratory.

Every job of the catalogue is one Spark query over the whole sweep and gives one row per run. The statistics
over seeds are two more queries on those few rows. Only aggregates reach the driver: a row per run and
metric, per broker, per link.

Results, in `<out>/results`, a folder that is replaced as a whole: run_metrics, summary, differences,
broker_metrics, link_metrics (Parquet and CSV), and notes.json.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.report.summary import FILES, LABELS, Summary, family
from analysis.spark import statistics
from analysis.spark.metrics import CATALOGUE, JOBS, Job, counts, ledger, load, over_time, table_size, traffic
from analysis.spark.session import for_small_data, lost, session
from analysis.spark.traces import Run, Sweep, canonical, find_runs, read
from analysis.spark.verify import damages
from broker.trace.disk import remove_leftovers, replaced_folder, writing
from broker.trace.schema import MUST_BE_ZERO
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str], None]
SMALL_BYTES = 16 * 2**20  # below this, planning for one partition without generated code is faster
QUICK_BYTES = 256 * 2**20  # below this, starting Spark and compiling takes longer than reading
NO_SPACE = os.strerror(errno.ENOSPC)  # Java quotes the system's words too
AT_ONCE = 6  # jobs under way: while one is planned or ends with a single task, others keep the cores busy
VALUES = "run string, point string, seed bigint, metric string, value double"
# What of a run's record is kept beside its metrics.
_RECORD_COLUMNS = (
    "experiment",
    "seed",
    "engine",
    "trace_hash",
    "brokers",
    "subscriptions",
    "active",
    "events",
)


def analyze(out: Path, master: str | None = None, progress: Progress | None = None) -> Summary:
    """Aggregate every run below `out` on Spark, write the results, and return them."""
    say = progress or _silent
    sweep = find_runs(out)
    for warning in sweep.warnings:
        say(warning)
    say("starting Spark")
    spark = session(master, quick=sweep.nbytes < QUICK_BYTES)
    many = len(sweep.runs)
    say(f"aggregating {many} run{'s' * (many != 1)} on Spark ({spark.sparkContext.master})")
    try:
        with warnings.catch_warnings():
            # pyspark warns with the whole stack trace before it raises; the sentence below is enough.
            warnings.filterwarnings("ignore", message="toPandas attempted Arrow")
            with for_small_data(spark, sweep.nbytes < SMALL_BYTES):
                summary = _aggregate(spark, sweep, say)
    except Exception as error:  # Spark wraps a damaged file in one of many exceptions
        cause = _cause(error, spark, sweep)
        if cause is None:
            raise
        raise CoverlayError(cause) from error
    say("writing results")
    _write(summary)
    return summary


def _cause(error: Exception, spark: SparkSession, sweep: Sweep) -> str | None:
    """What made Spark fail, if it is none of our own mistakes, and how to go on."""
    go_on = f"the traces are kept: `coverlay analyze {sweep.out}` starts over"
    if lost(spark):
        return f"Spark's Java process ended in the middle of the aggregation, killed or out of memory; {go_on}"
    if NO_SPACE in str(error):
        where = "make room, or name another place in SPARK_LOCAL_DIRS"
        return f"Spark found no space left for its temporary files: {where}; {go_on}"
    return next((sentence for run in sweep.runs for sentence in damages(run.folder)), None)


def _silent(_: str) -> None:
    """Progress nobody listens to."""


def _aggregate(spark: SparkSession, sweep: Sweep, say: Progress) -> Summary:
    tables = _tables(spark, sweep)
    with counts.shared(tables):
        rows = run_values(sweep, tables, say)
        say("traffic per broker and link")
        brokers, links, misses = _pictures(sweep, tables)
        times = _over_time(sweep, tables)
    runs = _run_frame(sweep, rows)
    say("statistics over seeds")
    # Back to Spark as a plain small frame: a plan that carried all jobs would cost more than the statistics.
    values = spark.createDataFrame(rows, VALUES).coalesce(1)
    points = _labelled(sweep, statistics.over_seeds(values).toPandas())
    baselines = spark.createDataFrame(list(_baselines(sweep).items()), "point string, baseline string")
    differences = _labelled(sweep, statistics.paired(values, baselines).toPandas())
    notes = tuple(_warnings(sweep, runs))
    return Summary(sweep.out, runs, points, differences, brokers, links, misses, times, notes)


def _tables(spark: SparkSession, sweep: Sweep) -> dict[str, DataFrame]:
    asked = {name for job in JOBS for name in job.tables}
    return {name: read(spark, sweep, name) for name in sorted(asked) if sweep.has(name)}


def metric_values(spark: SparkSession, sweep: Sweep) -> pd.DataFrame:
    """Every metric of every run, and nothing else: what `coverlay bench spark` measures."""
    tables = _tables(spark, sweep)
    with counts.shared(tables):
        return run_values(sweep, tables, _silent)


def run_values(sweep: Sweep, tables: dict[str, DataFrame], say: Progress) -> pd.DataFrame:
    """Every metric of every run, by one Spark query per job: run, point, seed, metric, value.

    A run without rows for a metric has the value that the catalogue gives for that case. A job about a table that no
    run has is not run.
    """
    keys = pd.DataFrame(
        [(run.name, canonical(run.point), run.record["seed"]) for run in sweep.runs],
        columns=["run", "point", "seed"],
    )

    def found(job: Job) -> pd.DataFrame:
        if not all(name in tables for name in job.tables):
            return pd.DataFrame(columns=["run", *(metric.name for metric in job.metrics)])
        return job.compute(*(tables[name] for name in job.tables)).toPandas()

    parts = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, (job, values) in enumerate(zip(JOBS, pool.map(found, JOBS), strict=True), 1):
            say(f"{job.name.replace('_', ' ')} ({number} of {len(JOBS)})")
            wide = keys.merge(values, "left", "run")
            for metric in job.metrics:
                value = wide[metric.name].astype("float64")  # a metric that no run has comes as a column of objects
                part = wide[["run", "point", "seed"]].assign(metric=metric.name, value=value)
                parts.append(part if metric.empty is None else part.fillna({"value": metric.empty}))
    return pd.concat(parts, ignore_index=True)


def labels(run: Run) -> dict[str, Any]:
    """What a run is called in tables: how it routes, and on what."""
    routing, covering = _section(run, "routing"), _section(run, "covering")
    overlay = _section(run, "overlay")
    epsilon = None if may_miss_otherwise(covering) else covering.get("epsilon")
    return {
        "strategy": str(routing.get("strategy", "")),
        "mode": str(routing.get("mode", "")),
        "method": str(covering.get("method", "")),
        "epsilon": float(epsilon) if isinstance(epsilon, int | float) else float("nan"),
        "overlay": str(overlay.get("file") or overlay.get("kind") or ""),
    }


def may_miss_otherwise(covering: Mapping[str, Any]) -> bool:
    """Does a search end early for another reason than an ε? Then an ε of 0 does not make it exact."""
    return covering.get("method") == "budget" or not {"node_budget", "accept_missing"}.isdisjoint(covering)


def _section(run: Run, name: str) -> dict[str, Any]:
    value = run.parameters.get(name)
    return value if isinstance(value, dict) else {}


def _run_frame(sweep: Sweep, rows: pd.DataFrame) -> pd.DataFrame:
    wide = rows.pivot(index="run", columns="metric", values="value")[list(CATALOGUE)]
    left = [
        {
            "run": run.name,
            "point": canonical(run.point),
            **labels(run),
            **{name: run.record[name] for name in _RECORD_COLUMNS},
        }
        for run in sweep.runs
    ]
    return pd.DataFrame(left).merge(wide, left_on="run", right_index=True, validate="1:1")


def _labelled(sweep: Sweep, frame: pd.DataFrame) -> pd.DataFrame:
    by_point = {canonical(run.point): labels(run) for run in sweep.runs}
    for name in reversed(LABELS):
        frame.insert(1, name, [by_point[point][name] for point in frame["point"]])
    frame["unit"] = [CATALOGUE[name].unit for name in frame["metric"]]
    return frame.sort_values(["point", "metric"], ignore_index=True)


def _baselines(sweep: Sweep) -> dict[str, str]:
    """The point that each point is compared with: exact covering in its family, else simple routing, else
    the first; a point in a family of its own is compared with nothing but itself."""
    families: dict[str, dict[str, Run]] = {}
    for run in sweep.runs:
        families.setdefault(family(run.point), {}).setdefault(canonical(run.point), run)

    def preference(item: tuple[str, Run]) -> tuple[bool, bool, str]:
        have = labels(item[1])
        exact = have["strategy"] == "covering" and have["epsilon"] == 0
        return (not exact, have["strategy"] != "simple", item[0])

    found: dict[str, str] = {}
    for members in families.values():
        baseline = min(members.items(), key=preference)[0]
        found.update(dict.fromkeys(members, baseline))
    return found


def _pictures(sweep: Sweep, tables: dict[str, DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """For one run of each point, per broker and per link: what the overlay is drawn with; and its costliest misses."""
    one = [run.name for run in representatives(sweep.runs)]
    control, publications = tables["control"], tables["publications"]
    loads = load.per_broker(control, publications, tables["brokers"])
    sizes = table_size.per_broker(tables["tables"])
    brokers = loads.join(sizes, ["run", "broker"], "left").fillna(0, ["entries"])
    links = traffic.per_link(control, publications)
    # `run` is a folder, so Spark opens those of the chosen runs only.
    chosen = {name: table.where(table["run"].isin(one)) for name, table in tables.items()}
    misses = ledger.costliest_misses(chosen["decisions"], chosen["control"])
    return (
        brokers.where(brokers["run"].isin(one)).orderBy("run", "broker").toPandas(),
        links.where(links["run"].isin(one)).orderBy("run", "broker", "neighbour").toPandas(),
        misses.toPandas(),
    )


def _over_time(sweep: Sweep, tables: dict[str, DataFrame]) -> pd.DataFrame:
    """What brokers did when, for those of the drawn runs in which a message takes time or waits."""
    one = [run.name for run in representatives(sweep.runs) if _takes_time(run)]
    if not one:
        return pd.DataFrame(columns=["run", "broker", "start", "width", "messages", "events", "waited", "busy"])
    chosen = (tables[name].where(tables[name]["run"].isin(one)) for name in ("control", "publications", "run"))
    return over_time.per_broker(*chosen).toPandas()


def _takes_time(run: Run) -> bool:
    service = _section(run, "broker").get("service") or {}
    return service.get("kind", "none") != "none" or _section(run, "links").get("bandwidth") is not None


def representatives(runs: tuple[Run, ...]) -> list[Run]:
    """The run with the smallest seed of each point."""
    first: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: (run.record["seed"], run.name)):
        first.setdefault(canonical(run.point), run)
    return list(first.values())


def _warnings(sweep: Sweep, runs: pd.DataFrame) -> list[str]:
    found = list(sweep.warnings)
    seeds = runs.groupby("point")["seed"].nunique()
    if seeds.min() < statistics.FEW_SEEDS:
        few = int(seeds.min())
        found.append(
            f"only {few} seed{'s' * (few != 1)} for some points: "
            + ("there are no intervals" if few == 1 else "intervals are very wide")
            + f"; {statistics.FEW_SEEDS} or more are needed to call a difference one"
        )
    for run, row in zip(sweep.runs, runs.to_dict("records"), strict=True):
        # Dropped messages were sent but never processed, so only runs without drops must agree.
        for name in ("control_messages", "event_messages", "deliveries"):
            if row["dropped"] == 0 and row[name] != run.record[name]:
                found.append(
                    f"{run.folder} recorded {run.record[name]} {name.replace('_', ' ')} but its trace has "
                    f"{row[name]:.0f}: do not trust this run"
                )
        wrong = {name: row[name] for name in MUST_BE_ZERO if row[name] > 0}
        if wrong:
            listed = ", ".join(f"{count:.0f} {CATALOGUE[name].title}" for name, count in wrong.items())
            found.append(f"run {run.name} broke a guarantee: {listed}")
    if (runs["judged_share"] < 1).any():
        least = runs["judged_share"].min()
        found.append(
            f"the oracle judged a sample of the events, in one run {100 * least:.3g} %: what it counted is of these "
            "(run.sample_oracle = 1 judges all)"
        )
    if (runs["capped"] > 0).any():
        found.append("a probe cap or a budget ended some covering searches early, which costs recall")
    return found


def _write(summary: Summary) -> None:
    """All results at once, so that no reader meets some of this analysis and some of an earlier one."""
    remove_leftovers(summary.out, "results")
    with (
        writing(summary.out / "results", f"the traces are kept: make room and repeat `coverlay analyze {summary.out}`"),
        replaced_folder(summary.out / "results") as folder,
    ):
        for attribute, name in FILES.items():
            frame: pd.DataFrame = getattr(summary, attribute)
            frame.to_parquet(folder / f"{name}.parquet", write_page_checksum=True)
            frame.to_csv(folder / f"{name}.csv", index=False)
        (folder / "notes.json").write_text(json.dumps({"warnings": summary.warnings}, indent=2), encoding="utf-8")
