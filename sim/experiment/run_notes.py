"""What the user should know about a run: settings without effect, coarse times, what the oracle does not judge."""

from __future__ import annotations

import math

from coverlay import CoverlayError
from sim.experiment.config import Experiment
from sim.experiment.effects import idle
from sim.experiment.engines import Ready
from sim.experiment.faults import read_faults
from sim.experiment.oracle import Verdict
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, Timeline

FINEST = 1e-5  # ms between two times that can be told apart; work takes microseconds


def notes_of(ready: Ready, engine: str, finished: float, verdict: Verdict) -> tuple[str, ...]:
    """Sentences about a run that this engine finished at a simulated time."""
    experiment, workload, timeline = ready.experiment, ready.workload, ready.timeline
    return (
        *ready.overlay.warnings,
        *workload.warnings,
        *_shifted(experiment, workload, timeline),
        *_without_effect(experiment, engine),
        *_unused_weights(experiment, workload),
        *_late_faults(experiment, timeline),
        *_coarse(finished),
        *_not_judged(verdict),
    )


def refuse_endless(finished: float) -> None:
    if not math.isfinite(finished):
        raise CoverlayError(
            "simulated time went beyond the largest number, 1.8e308 ms: a rate is too low, or a time too high"
        )


def _late_faults(experiment: Experiment, timeline: Timeline) -> tuple[str, ...]:
    """A note about faults of a file that come when nobody subscribes or publishes any more."""
    file = experiment.faults.file
    faults = read_faults(file) if file is not None else []
    end = float(timeline.time[-1]) if len(timeline) else 0.0
    late = sum(fault.time > end for fault in faults)
    if not late:
        return ()
    note = f"{late} of {len(faults)} faults in {file} begin after the last thing that a client does"
    return (f"{note}; they can harm only what is still under way then",)


def _shifted(experiment: Experiment, workload: Workload, timeline: Timeline) -> tuple[str, ...]:
    """A note that recorded events come later than recorded."""
    published = timeline.time[timeline.kind == PUBLISH]
    kept = experiment.arrivals.publishing is not None or workload.times is None or not len(published)
    if kept or published[0] == workload.times[0]:  # type: ignore[index]
        return ()
    note = f"times in {experiment.workload.events_file} count from when the subscriptions have come and settled"
    return (f"{note}, not from 0: subscriptions have no times (arrivals.settle)",)


def _coarse(finished: float) -> tuple[str, ...]:
    """A note about how coarse times are at the end of a run; they are doubles, and recordings may count from 1970."""
    step = math.ulp(finished)
    coarse = f"times reach {finished:.2g} ms, where they go in steps of {step * 1000:.2g} µs"
    return () if step <= FINEST else (f"{coarse}, and so do latencies; let recorded times begin near 0",)


def _without_effect(experiment: Experiment, engine: str) -> tuple[str, ...]:
    """What a setting cannot do in the engine that was chosen for this run."""
    chosen = experiment.model_copy(update={"run": experiment.run.model_copy(update={"engine": engine})})
    return tuple(f"{item.key} has no effect: {item.reason}" for item in idle(chosen) if item.misleads)


def _unused_weights(experiment: Experiment, workload: Workload) -> tuple[str, ...]:
    """What events say about the weight of their attributes counts for predicates alone."""
    if (
        experiment.matching.kind == "predicates"
        or workload.event_weights is None
        or (workload.event_weights == 1).all()
    ):
        return ()
    return (f"weights of events have no effect: matching.kind = {experiment.matching.kind!r}, not 'predicates'",)


def _not_judged(verdict: Verdict) -> tuple[str, ...]:
    """What the oracle says nothing about."""
    if verdict.strays is not None:
        return ()
    spread = "subscriptions that exist before time 0 spread untraced, so the trace does not tell what tables hold"
    return (f"stray events (sent where no table entry matches) are not judged: {spread}; all else is",)
