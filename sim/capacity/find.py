"""`coverlay capacity`: searches for all points of an experiment at once, each round of runs as one sweep.

The runs of a round are those of any sweep: they use cores or a Spark cluster, stay in the output folder, are judged by
the oracle, can be resumed, and give the load curve of the page. A point is an experiment without a rate; what it sweeps
beside the rate is searched point by point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from analysis.spark.traces import open_run, run_folders
from coverlay import CoverlayError, quoted
from sim.capacity.load import Load, load_of
from sim.capacity.search import LOWEST, Search
from sim.experiment import plan as plans
from sim.experiment.folder_lock import FolderLock
from sim.experiment.kinds import by_key
from sim.experiment.plan import Plan, PlannedRun
from sim.experiment.predict import sample
from sim.experiment.runner import run_folder
from sim.experiment.sweep import ONE_BY_ONE, SweepOptions, SweepResult, run_sweep
from sim.random_streams import streams
from sim.workloads.arrivals import arrival_options
from sim.workloads.publishing import SCALED
from sim.workloads.tables import gives

Place = tuple[str, float]  # a point without its rate, as JSON, and the rate
RATE = "arrivals.publish_rate"  # per ms, as all times of an experiment
SECOND = 1000.0  # ms
ENOUGH_EVENTS = 2000  # for a 99th percentile, and for a queue to show that it grows


@dataclass
class Capacity:
    """What was searched and found."""

    limit: float
    plan: Plan  # of all runs
    searches: dict[str, Search]  # by point, as JSON
    result: SweepResult = field(default_factory=SweepResult)


def checked_limit(limit: float) -> float:
    if not 0 < limit < math.inf:
        raise CoverlayError(f"--p99 is {limit:g}; it must be a number of milliseconds above 0")
    return limit


def prepare(experiment: str, settings: Iterable[str], plugins: Sequence[str] = ()) -> Plan:
    """The plan of the first round, with notes about what the search changes in the experiment."""
    given = list(settings)
    base = plans.load(experiment, given, plugins)
    first = base.runs[0].experiment
    for run in base.runs:
        _refuse_unlimited(run)
    if any(RATE in {**case, **case.get("sweep", {})} for case in base.data.get("case", [])):
        raise CoverlayError(f"a [[case]] sets {RATE}, which is what coverlay capacity searches for; remove it")
    changes, notes = [f'sweep."{RATE}"=[{LOWEST / SECOND}]'], []
    events, chosen = first.workload.events, by_key(dict(map(plans.parse_setting, given)))
    if not first.workload.from_files and events < ENOUGH_EVENTS and "workload.events" not in chosen:
        changes.append(f"workload.events={ENOUGH_EVENTS}")
        wins = "--set workload.events overrides this"
        notes.append(f"{ENOUGH_EVENTS:,} events instead of {events:,}, to see queues grow; {wins}")
    if gives(first.workload.events_file, "time") and first.arrivals.publishing is None:
        changes.append(f"arrivals.publishing={SCALED}")
        notes.append("the recorded times of the events are scaled to each rate; arrivals.publishing changes that")
    if RATE in base.data.get("sweep", {}) or "publish_rate" in base.data.get("arrivals", {}):
        notes.append(f"{RATE} is what is searched for: the rates of the experiment do not count")
    made = plans.load(experiment, [*given, *changes], plugins)
    return replace(made, notes=(*made.notes, *notes))


def _refuse_unlimited(run: PlannedRun) -> None:
    e = run.experiment
    if e.broker.immediate and e.links.bandwidth is None:
        raise CoverlayError(
            "nothing takes time here, so there is no limit to find: broker.service is none; "
            'set broker.service = { kind = "work" }, or another kind (constant, exponential, linear)'
        )
    if "publish_rate" not in arrival_options(e.arrivals.kind):
        raise CoverlayError(
            f"arrivals.kind = {quoted(e.arrivals.kind)} publishes while subscriptions come and go, at no rate of its "
            "own; a capacity can be found with static, preloaded and storm"
        )


def find(
    first: Plan, limit: float, out: Path, options: SweepOptions = ONE_BY_ONE, lock: FolderLock | None = None
) -> Capacity:
    """Search until every point has its rate, or none. Ends early when a run fails."""
    with FolderLock(out) if lock is None else nullcontext(lock) as lock:
        return _find(first, limit, out, options, lock)


def _find(first: Plan, limit: float, out: Path, options: SweepOptions, lock: FolderLock) -> Capacity:
    searches = {_place(run.point)[0]: Search(checked_limit(limit)) for run in first.runs}
    found = Capacity(limit, first, searches)
    asked = _known(first, out, options.resume, lock)
    options = replace(options, resume=True)  # keep what earlier rounds simulated
    while True:
        wanted = {(point, rate) for point, search in searches.items() for rate in search.ask()}
        if not wanted:
            return found
        asked |= wanted
        found.plan = at_rates(first, asked)
        result = run_sweep(found.plan, out, options, lock)
        options = replace(options, begun=ONE_BY_ONE.begun)  # only in the first round
        found.result.outcomes += result.outcomes
        found.result.failures += result.failures
        found.result.kept_broken = result.kept_broken  # those of earlier rounds are kept by the last one
        found.result.kept = len(found.plan.runs) - len(found.result.outcomes) - len(found.result.failures)
        if result.failures:
            return found
        for (point, rate), loads in _loads(found.plan, wanted, out):
            searches[point].tell(rate, loads)


def at_rates(first: Plan, asked: set[Place]) -> Plan:
    """The plan of these points and rates and no others, though the record shows every rate."""
    rates = [rate / SECOND for rate in sorted({rate for _, rate in asked})]
    whole = plans.plan({**first.data, "sweep": {**first.data["sweep"], RATE: rates}}, first.name)
    runs = [run for run in whole.runs if _place(run.point) in asked]
    return replace(whole, runs=runs, notes=first.notes)


def _place(point: Mapping[str, Any]) -> Place:
    """The point of a run without its rate, as JSON, and events per second, as they were asked for."""
    others = {key: value for key, value in point.items() if key != RATE}
    return json.dumps(others, sort_keys=True), float(f"{point[RATE] * SECOND:.12g}")


def _known(first: Plan, out: Path, resume: bool, lock: FolderLock) -> set[Place]:
    """What an earlier search in this folder asked for; without --resume its runs are deleted."""
    found: set[Place] = set()
    for folder in run_folders(out) if (out / "runs").is_dir() else ():
        with suppress(CoverlayError, KeyError, TypeError):  # the sweep will refuse it
            found.add(_place(open_run(folder).point))
    if found and not resume:
        lock.take()
        for run in at_rates(first, found).runs:
            rmtree(run_folder(out, run), ignore_errors=True)
        return set()
    return found


def _loads(plan: Plan, wanted: set[Place], out: Path) -> Iterator[tuple[Place, list[Load]]]:
    """What the runs of this round say, by point and rate."""
    for place in sorted(wanted):
        runs = [run for run in plan.runs if _place(run.point) == place]
        yield place, [load_of(run_folder(out, run), _attributes(run)) for run in runs]


def _attributes(run: PlannedRun) -> int:
    workload = run.experiment.workload
    if not workload.from_files or run.experiment.links.bandwidth is None:
        return workload.attributes
    return len(sample(run.experiment, streams(run.seed))[0].schema)
