"""What a sweep writes beside its traces, for its page: `told.json` in its folder (read by analysis/report/told.py), and
the bounds of theory for a study (sim/tell/study_bounds.py).

Notes and stories are those of the terminal. What was lost when and where is counted here, because only the workload
says who should have been served (sim/tell/truth.py): those that each event was due to, whether its publisher's broker
took it in or not, compared with the deliveries in the trace.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.report.told import FILE, Held, read_told
from broker.trace.disk import replaced_file, writing
from broker.trace.schema import FAILURES, LOSSES, REPAIRS
from sim.experiment.plan import Plan, PlannedRun
from sim.experiment.runner import run_folder, runs_kept
from sim.experiment.sweep import SweepResult
from sim.tell.run_trace import RunTrace
from sim.tell.stories import tell
from sim.tell.study_bounds import write_bounds
from sim.tell.truth import Truth

BINS = 40  # of the time in which events are published
MOST_RUNS = 8  # lines in the picture of losses
MOST_BROKERS = 10


def keep(plan: Plan, out: Path, result: SweepResult, held: Held | None = None) -> list[str]:
    """Write notes, stories and losses of a sweep, and what a search for rates `held`; returns the stories' lines."""
    # The notes of runs that were not repeated are in the file that the earlier command wrote.
    earlier = read_told(out).notes if result.kept else ()
    notes = list(dict.fromkeys([*plan.notes, *earlier, *result.warnings]))
    stories = list(tell(plan, out, count)) if (count := int(plan.data.get("tell", 0))) else []
    told = {"notes": notes, "stories": stories, "losses": list(_losses(plan, out))}
    told |= {} if held is None else {"held": asdict(held)}
    with writing(out / FILE, partial(runs_kept, out)), replaced_file(out / FILE) as unfinished:
        unfinished.write_text(json.dumps(told, ensure_ascii=False, indent=1), encoding="utf-8")
    write_bounds(plan, out)
    return stories


def _losses(plan: Plan, out: Path) -> Iterable[dict[str, Any]]:
    """The losses of the first seed of each point, where it lost something and kept all deliveries."""
    first: dict[str, PlannedRun] = {}
    for run in sorted(plan.runs, key=lambda run: run.seed):
        if run_folder(out, run).is_dir():
            first.setdefault(json.dumps(run.point, sort_keys=True), run)
    told = 0
    for run in first.values():
        if told < MOST_RUNS and run.experiment.run.sample_deliveries == 1:
            trace = RunTrace(out, run.run_id)
            if sum(int(trace.record.get(name) or 0) for name in LOSSES):
                told += 1
                yield losses(run, trace)


def losses(run: PlannedRun, trace: RunTrace) -> dict[str, Any]:
    """Deliveries required and lost, by time of publication, and lost by broker."""
    truth = Truth(run, trace)
    times = [at.time for at in trace.published.values()]
    start, end = min(times), max(times)
    width = (end - start) / BINS or 1.0
    required, lost = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    by_broker: Counter[int] = Counter()
    for event, time in zip(trace.published, times, strict=True):
        at, missed = min(int((time - start) / width), BINS - 1), truth.missed(event)
        required[at] += len(truth.due(event))
        lost[at] += len(missed)
        by_broker.update(truth.homes[missed].tolist())
    most = sorted(by_broker.items(), key=lambda item: (-item[1], item[0]))[:MOST_BROKERS]
    return {
        "run": run.run_id,
        "times": [[start + i * width, int(required[i]), int(lost[i])] for i in range(BINS)],
        "brokers": [[trace.names[broker], count] for broker, count in most],
        "marks": _marks(trace),
    }


def _marks(trace: RunTrace) -> Sequence[dict[str, Any]]:
    """When something failed or was repaired."""
    faults = trace.read("faults")
    shown = faults[faults["kind"].isin([*FAILURES, *REPAIRS])]
    rows: list[Any] = list(shown.itertuples())
    return [{"x": float(row.time), "kind": str(row.kind), "name": trace.names[int(row.broker)]} for row in rows]
