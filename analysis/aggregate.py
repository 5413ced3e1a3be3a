"""From the traces of a sweep to its results: the Spark side of the laboratory.

Metrics and pictures are SQL over the trace tables (spark/metrics), made into DataFrames by spark/frames.py. Here they
are computed, a query for all metrics and one for each picture. Only these small frames reach the driver: a row per run,
and per broker, link, missed cover and moment of one run per point. Statistics over seeds are computed from them.

Results, in `<out>/results`, a folder that is replaced as a whole: the frames of a Summary, each as Parquet and CSV
(report.summary.FILES has their names), notes.json, and digests.json: of the results, and of the runs they come from.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq

from analysis.report.effects import baselines
from analysis.report.factors import factors_of
from analysis.report.summary import DESCRIBED, FILES, LABELS, METRICS, SETTINGS, SIMPLE_ENTRIES, Summary, described
from analysis.spark import statistics
from analysis.spark.frames import Frames
from analysis.spark.jobs import finished
from analysis.spark.metrics import CATALOGUE, computed
from analysis.spark.records import is_older, parameter
from analysis.spark.session import lost, session
from analysis.spark.traces import Run, Sweep, canonical, compacted, find_runs, missing_tables
from analysis.spark.verify import damages, write_digests
from broker.trace.buckets import RELATIVE_ERROR
from broker.trace.disk import CURE, remove_leftovers, replaced_folder, writing
from broker.trace.schema import FACTS, MUST_BE_ZERO
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
QUICK_BYTES = 256 * 2**20  # below this, starting Spark takes longer than reading
UNSEEN = "FAILED_READ_FILE.FILE_NOT_EXIST"  # Spark's name for a file that is gone, or that only others see
NO_SPACE = os.strerror(errno.ENOSPC)  # Java quotes the system's message too
SAID_BY_US = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?) SQLSTATE")  # by raise_error in a query
# Columns of a run's record that are kept beside its metrics.
_EVERY = ("experiment", "seed", "engine", "trace_hash", "brokers", "subscriptions", "active", "events")
_LATER = ("made", "machine")  # empty in traces of earlier versions
RECORD_COLUMNS = (*FACTS, *_EVERY, *_LATER, SIMPLE_ENTRIES)
# What the report draws: the query of each frame of a Summary, and what its rows are sorted by within a run.
PICTURES = {
    "brokers": ("drawn_brokers", ["broker"]),
    "links": ("drawn_links", ["broker", "neighbour"]),
    "misses": ("drawn_misses", ["rank"]),
    "times": ("drawn_times", ["broker", "start"]),
}


def analyze(out: Path, master: str | None = None, progress: Progress | None = None) -> Summary:
    """Aggregate every run below `out` on Spark, write the results, and return them."""
    say = progress or _silent
    sweep = compacted(find_runs(out, say), say)
    for warning in sweep.warnings:
        say(warning)
    say("starting Spark")
    spark = session(master, quick=sweep.nbytes < QUICK_BYTES)
    many = len(sweep.runs)
    say(f"aggregating {many} run{'s' * (many != 1)} on Spark ({spark.sparkContext.master})")
    try:
        found = aggregated(spark, sweep, say)
    except CoverlayError:
        raise
    except Exception as error:  # Spark wraps a damaged file in one of many exceptions
        cause = _cause(error, sweep)
        if cause is None:
            raise
        raise CoverlayError(cause) from error
    summary = _summary(sweep, **found)
    say("writing results")
    _write(summary, sweep)
    return summary


def _cause(error: Exception, sweep: Sweep) -> str | None:
    """Why Spark failed and how to go on; None if it was a bug of ours."""
    go_on = f"the traces are kept: `coverlay analyze {sweep.out}` starts over"
    if lost():
        return f"Spark's Java process ended in the middle of the aggregation, killed or out of memory; {go_on}"
    if UNSEEN in str(error) and not any(missing_tables(run.folder) for run in sweep.runs):
        shared = "it must be on storage that this machine and all workers see under the same path"
        return f"a worker does not find files of {sweep.out} that this machine finds: {shared}"
    if NO_SPACE in str(error):
        where = "make room, or name another place in SPARK_LOCAL_DIRS"
        return f"Spark found no space left for its temporary files: {where}; {go_on}"
    if said := SAID_BY_US.search(str(error)):
        return f"{said[1]}; {go_on}"
    return next((sentence for run in sweep.runs for sentence in damages(run.folder)), None)


def _silent(_: str) -> None:
    """Progress that is not shown."""


def aggregated(spark: SparkSession, sweep: Sweep, say: Progress = _silent) -> dict[str, pd.DataFrame]:
    """`values`: a row per run, a column per metric; and the frames of PICTURES. Runs are in the order of the sweep."""
    frames = Frames(spark, sweep, drawn=[run.name for run in representatives(sweep.runs)])
    queries = {"values": frames.metrics(), **{name: frames[query] for name, (query, _) in PICTURES.items()}}

    def compute() -> dict[str, pd.DataFrame]:
        # All at once: one alone would leave cores idle at its end.
        with frames.shared(), ThreadPoolExecutor(len(queries)) as pool:
            return dict(
                zip(queries, pool.map(lambda frame: frame.toArrow().to_pandas(), queries.values()), strict=True)
            )

    context = spark.sparkContext
    found = finished(context, compute, lambda: say(_how_far(context)))
    place = {run.name: i for i, run in enumerate(sweep.runs)}
    keys = {"values": [], **{name: keys for name, (_, keys) in PICTURES.items()}}
    return {name: _sorted(frame, place, keys[name]) for name, frame in found.items()}


def _sorted(frame: pd.DataFrame, place: dict[str, int], keys: list[str]) -> pd.DataFrame:
    order = frame.assign(place=frame["run"].map(place)).sort_values(["place", *keys]).index
    return frame.loc[order].reset_index(drop=True)


def _how_far(spark: SparkContext) -> str:
    tracker = spark.statusTracker()
    stages = [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage is not None]
    done, tasks = (sum(getattr(stage, name) for stage in stages) for name in ("numCompletedTasks", "numTasks"))
    return f"{done} of {tasks} tasks of this stage"


def _summary(sweep: Sweep, values: pd.DataFrame, **pictures: pd.DataFrame) -> Summary:
    """The small frames of a sweep."""
    rows = metric_values(sweep, values)
    runs = _run_frame(sweep, values)
    points = _labelled(sweep, statistics.over_seeds(rows))
    notes = (*_warnings(sweep, runs), *_no_longer_computed(sweep.out))
    summary = Summary(sweep.out, runs, points, pd.DataFrame(), **pictures, warnings=notes)
    compared = baselines(summary.order, factors_of(summary))
    return replace(summary, differences=_labelled(sweep, statistics.paired(rows, compared)))


def metric_values(sweep: Sweep, values: pd.DataFrame) -> pd.DataFrame:
    """run, point, seed, metric, value."""
    known = pd.DataFrame([(run.name, canonical(run.point), run.record["seed"]) for run in sweep.runs])
    known.columns = ["run", "point", "seed"]
    return known.merge(values, on="run", validate="1:1").melt(["run", "point", "seed"], None, "metric", "value")


def labels(run: Run) -> dict[str, Any]:
    """What a run is called in tables: how it routes, and on which overlay."""
    routing, covering, overlay = (run.parameters.get(name, {}) for name in ("routing", "covering", "overlay"))
    epsilon = covering.get("epsilon")
    if epsilon == 0 and run.record.get("may_miss") is not False:
        epsilon = None  # not exact, though no single ε says so; or an earlier version did not record it
    return {
        "strategy": str(routing.get("strategy", "")),
        "mode": str(routing.get("mode", "")),
        "method": str(covering.get("method", "")),
        "epsilon": float(epsilon) if isinstance(epsilon, int | float) else float("nan"),
        "overlay": str(overlay.get("file") or overlay.get("kind") or ""),
        **{fact: run.record.get(fact) for fact in FACTS},
    }


def _in_force(run: Run, keys: Iterable[str]) -> dict[str, Any]:
    """The values of these keys in a run, by default or by its point."""
    found: dict[str, Any] = {}
    for key in keys:
        value: Any = run.parameters
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            found[key] = value
    return found


def _run_frame(sweep: Sweep, values: pd.DataFrame) -> pd.DataFrame:
    swept = sorted({key for run in sweep.runs for key in run.point})
    left = [
        {
            "run": run.name,
            "point": canonical(run.point),
            SETTINGS: json.dumps(_in_force(run, swept)),
            **labels(run),
            **{name: run.record[name] for name in _EVERY},
            **{name: run.record.get(name) or "" for name in _LATER},
            SIMPLE_ENTRIES: run.record.get(SIMPLE_ENTRIES),
        }
        for run in sweep.runs
    ]
    return pd.DataFrame(left).merge(values, on="run", validate="1:1")


def _labelled(sweep: Sweep, frame: pd.DataFrame) -> pd.DataFrame:
    by_point = {canonical(run.point): labels(run) for run in sweep.runs}
    for name in reversed(LABELS):
        frame.insert(1, name, [by_point[point][name] for point in frame["point"]])
    frame["unit"] = [CATALOGUE[name].unit for name in frame["metric"]]
    return frame.sort_values(["point", "metric"], ignore_index=True)


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
            f"only {few} seed{'s' * (few != 1)}{' for some points' * int(seeds.max() > few)}: "
            + ("there are no intervals" if few == 1 else "intervals are very wide")
            + f"; {statistics.FEW_SEEDS} or more are needed to tell a difference from chance"
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
            f"the oracle judged a sample of the events, in one run {100 * least:.3g} %; its counts are of that sample "
            "(run.sample_oracle = 1 judges all)"
        )
    if any(pq.read_metadata(run.path("deliveries_rest")).num_rows for run in sweep.runs):
        found.append(
            "percentiles of latencies are the middle of a bucket, within "
            f"{100 * RELATIVE_ERROR:.1f} %, where deliveries were sampled (run.sample_deliveries)"
        )
    if older := [run.name for run in sweep.runs if is_older(run)]:
        found.append(
            f"an earlier version of Coverlay wrote {len(older)} of these runs (e.g. {older[0]}): when events were "
            "published, and what existed before time 0, was counted from its tables"
        )
    if (runs["capped"] > 0).any():
        found.append("a probe cap or a budget ended some covering searches early, which costs recall")
    unasked = int((runs["missed_covers"].isna() & (runs["checks"] > 0)).sum())
    if unasked:
        found.append(
            f"{unasked} of {len(runs)} runs did not ask exact covering (covering.recall = false): what their searches "
            "missed is unknown"
        )
    if any(parameter(run, "arrivals", "kind") == "preloaded" for run in sweep.runs):
        found.append(
            "preloaded subscriptions count in tables and control messages; searches, their times and the load of "
            "brokers and links count only what came after time 0"
        )
    return found


def _no_longer_computed(out: Path) -> list[str]:
    """A note about metrics in the results that are replaced, whose plug-in was not given again."""
    gone = sorted({metric.name for metric in described(out / "results")} - set(computed()))
    cure = "coverlay analyze --plugin FILE computes them again"
    return [f"the results had metrics of plug-ins that were not given: {', '.join(gone)}; {cure}"] if gone else []


def _write(summary: Summary, sweep: Sweep) -> None:
    """All results at once, so that no reader sees a mixture of this analysis and an earlier one."""
    remove_leftovers(summary.out, "results")
    with (
        writing(summary.out / "results", f"the traces are kept: {CURE} and repeat `coverlay analyze {summary.out}`"),
        replaced_folder(summary.out / "results") as folder,
    ):
        for attribute, name in FILES.items():
            frame: pd.DataFrame = getattr(summary, attribute)
            frame.to_parquet(folder / f"{name}.parquet", write_page_checksum=True)
            frame.to_csv(folder / f"{name}.csv", index=False)
        known = [{name: getattr(CATALOGUE[metric], name) for name in DESCRIBED} for metric in computed()]
        pd.DataFrame(known).to_csv(folder / METRICS, index=False)
        (folder / "notes.json").write_text(json.dumps({"warnings": summary.warnings}, indent=2), encoding="utf-8")
        write_digests(folder, sweep.runs)
