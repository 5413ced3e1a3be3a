"""From the traces of a sweep to its results: the Spark side of the laboratory.

One Spark job of two stages aggregates the whole sweep (parts.py). The first counts parts of tables where Spark sends
them, the second adds up the counts of a run and computes its metrics. Reading takes most of the time, and is divided by
row groups; only counts are shuffled. Only aggregates reach the driver: a value per run and metric, and per broker and
link of one run per point. Statistics over seeds are computed from these.

Results, in `<out>/results`, a folder that is replaced as a whole: the frames of a Summary, each as Parquet and CSV
(report.summary.FILES has their names), notes.json, and digests.json: of the results, and of the runs they come from.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.report.summary import (
    FILES,
    LABELS,
    SIMPLE_ENTRIES,
    Summary,
    family,
    is_exact,
    is_plain_covering,
    is_simple,
)
from analysis.spark import statistics
from analysis.spark.metrics import CATALOGUE
from analysis.spark.metrics.counts import parameter
from analysis.spark.parts import Found, Part, conclude_run, count_task, parts_of
from analysis.spark.session import context, lost
from analysis.spark.traces import Run, Sweep, canonical, find_runs
from analysis.spark.verify import damages, write_digests
from broker.trace.disk import CURE, remove_leftovers, replaced_folder, writing
from broker.trace.schema import FACTS, MUST_BE_ZERO
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark import SparkContext

Progress = Callable[[str], None]
QUICK_BYTES = 256 * 2**20  # below this, starting Spark takes longer than reading
TASK_BYTES = 16 * 2**20  # that a task reads; less if cores would be idle,
LEAST_BYTES = 2**20  # but never less: reading this takes as long as starting a Python process
NO_SPACE = os.strerror(errno.ENOSPC)  # Java quotes the system's message too
TICK = 2.0  # seconds between two progress reports
# Columns of a run's record that are kept beside its metrics.
_RECORD_COLUMNS = ("experiment", "seed", "engine", "trace_hash", "brokers", "subscriptions", "active", "events")
_LATER_COLUMNS = ("made", "machine")  # empty in traces of earlier versions


def analyze(out: Path, master: str | None = None, progress: Progress | None = None) -> Summary:
    """Aggregate every run below `out` on Spark, write the results, and return them."""
    say = progress or _silent
    sweep = find_runs(out)
    for warning in sweep.warnings:
        say(warning)
    say("starting Spark")
    spark = context(master, quick=sweep.nbytes < QUICK_BYTES)
    many = len(sweep.runs)
    say(f"aggregating {many} run{'s' * (many != 1)} on Spark ({spark.master})")
    try:
        found = aggregated(spark, sweep, say)
    except Exception as error:  # Spark wraps a damaged file in one of many exceptions
        cause = _cause(error, spark, sweep)
        if cause is None:
            raise
        raise CoverlayError(cause) from error
    summary = _summary(sweep, found)
    say("writing results")
    _write(summary, sweep)
    return summary


def _cause(error: Exception, spark: SparkContext, sweep: Sweep) -> str | None:
    """Why Spark failed and how to go on; None if it was a bug of ours."""
    go_on = f"the traces are kept: `coverlay analyze {sweep.out}` starts over"
    if lost(spark):
        return f"Spark's Java process ended in the middle of the aggregation, killed or out of memory; {go_on}"
    if NO_SPACE in str(error):
        where = "make room, or name another place in SPARK_LOCAL_DIRS"
        return f"Spark found no space left for its temporary files: {where}; {go_on}"
    return next((sentence for run in sweep.runs for sentence in damages(run.folder)), None)


def _silent(_: str) -> None:
    """Progress that is not shown."""


def aggregated(spark: SparkContext, sweep: Sweep, say: Progress = _silent) -> list[Found]:
    """What the traces of every run say, in the order of the runs."""
    parts = list(parts_of(sweep.runs, {run.name for run in representatives(sweep.runs)}))
    tasks = _tasks(parts, spark.defaultParallelism)
    counted = spark.parallelize(tasks, len(tasks)).flatMap(count_task)
    found = counted.groupByKey(min(len(tasks), len(sweep.runs))).map(conclude_run)
    by_name = {run.run: run for run in _collected(spark, found, say)}
    return [by_name[run.name] for run in sweep.runs]


def _tasks(parts: list[Part], cores: int) -> list[list[Part]]:
    """The parts shared out by size, those of one run next to each other."""
    total = sum(part.nbytes for part in parts)
    number = min(len(parts), max(cores, total // TASK_BYTES), 1 + total // LEAST_BYTES)
    tasks: list[list[Part]] = [[] for _ in range(number)]
    before = 0
    for part in parts:
        tasks[min(before * number // max(total, 1), number - 1)].append(part)
        before += part.nbytes
    return [task for task in tasks if task]


def _collected(spark: SparkContext, found: Any, say: Progress) -> list[Found]:
    """What Spark found; reports progress every TICK seconds."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(found.collect)
        while not wait([job], TICK).done:
            say(_how_far(spark))
        return job.result()


def _how_far(spark: SparkContext) -> str:
    tracker = spark.statusTracker()
    stages = [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage is not None]
    done, tasks = (sum(getattr(stage, name) for stage in stages) for name in ("numCompletedTasks", "numTasks"))
    return f"{done} of {tasks} tasks of this stage"


def _summary(sweep: Sweep, found: list[Found]) -> Summary:
    """The small frames of a sweep."""
    rows = metric_values(sweep, found)
    runs = _run_frame(sweep, rows)
    points = _labelled(sweep, statistics.over_seeds(rows))
    differences = _labelled(sweep, statistics.paired(rows, _baselines(sweep)))
    brokers, links, misses, times = (_frame(found, name) for name in ("brokers", "links", "misses", "times"))
    notes = tuple(_warnings(sweep, runs))
    return Summary(sweep.out, runs, points, differences, brokers, links, misses, times, notes)


def metric_values(sweep: Sweep, found: list[Found]) -> pd.DataFrame:
    """run, point, seed, metric, value."""
    rows = [
        (run.name, canonical(run.point), run.record["seed"], metric, value)
        for run, its in zip(sweep.runs, found, strict=True)
        for metric, value in its.values.items()
    ]
    return pd.DataFrame(rows, columns=["run", "point", "seed", "metric", "value"])


def _frame(found: list[Found], name: str) -> pd.DataFrame:
    """One frame of all runs that are drawn."""
    frames = [pd.DataFrame({"run": its.run, **columns}) for its in found if (columns := getattr(its, name))]
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


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


def _run_frame(sweep: Sweep, rows: pd.DataFrame) -> pd.DataFrame:
    wide = rows.pivot(index="run", columns="metric", values="value")[list(CATALOGUE)]
    left = [
        {
            "run": run.name,
            "point": canonical(run.point),
            **labels(run),
            **{name: run.record[name] for name in _RECORD_COLUMNS},
            **{name: run.record.get(name) or "" for name in _LATER_COLUMNS},
            SIMPLE_ENTRIES: run.record.get(SIMPLE_ENTRIES),
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
    the family's first point. A point that is alone in its family is its own baseline."""
    best: dict[str, tuple[bool, bool, str]] = {}  # by family; the least is the baseline
    for run in sweep.runs:
        name, have = family(run.point), labels(run)
        exact = is_plain_covering(have) and is_exact(have)
        mine = not exact, not is_simple(have), canonical(run.point)
        best[name] = min(best.get(name, mine), mine)
    return {canonical(run.point): best[family(run.point)][2] for run in sweep.runs}


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
        (folder / "notes.json").write_text(json.dumps({"warnings": summary.warnings}, indent=2), encoding="utf-8")
        write_digests(folder, sweep.runs)
