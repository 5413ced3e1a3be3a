"""What the user should know about a run: what its files lack, coarse times, what the oracle does not judge."""

from __future__ import annotations

import math
from collections.abc import Iterator

from coverlay import CoverlayError
from sim.experiment.config import Experiment
from sim.experiment.engines import RunInputs
from sim.experiment.faults import read_faults
from sim.experiment.oracle import Verdict
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, Timeline

FINEST = 1e-5  # ms: steps of time should not be coarser, since work takes microseconds


def notes_of(inputs: RunInputs, finished: float, verdict: Verdict) -> Iterator[str]:
    """Sentences about a run that was over at a simulated time."""
    experiment, workload, timeline = inputs.experiment, inputs.workload, inputs.timeline
    yield from inputs.overlay.warnings
    yield from workload.warnings
    yield from _shifted(experiment, workload, timeline)
    weights, kind = workload.event_weights, experiment.matching.kind
    if kind != "predicates" and weights is not None and not (weights == 1).all():
        yield f"weights of events have no effect: matching.kind = {kind!r}, not 'predicates'"
    yield from _late_faults(experiment.faults.file, timeline)
    step = math.ulp(finished)  # times are doubles, and recordings may count from 1970
    if step > FINEST:
        coarse = f"times and latencies are precise only to {step * 1000:.2g} µs"
        yield f"times reach {finished:.2g} ms, so {coarse}; let recorded times begin near 0"
    if verdict.strays is None:
        spread = "subscriptions that exist before time 0 spread untraced, so the trace does not tell what tables hold"
        yield f"stray events (sent where no table entry matches) are not judged: {spread}; all else is"


def refuse_endless(finished: float) -> None:
    if not math.isfinite(finished):
        raise CoverlayError(
            "simulated time went beyond the largest number, 1.8e308 ms: a rate is too low, or a time too high"
        )


def _late_faults(file: str | None, timeline: Timeline) -> Iterator[str]:
    """A note about faults of a file that come after the last action of a client."""
    faults = read_faults(file) if file is not None else []
    end = float(timeline.time[-1]) if len(timeline) else 0.0
    late = sum(fault.time > end for fault in faults)
    if late:
        note = f"{late} of {len(faults)} faults in {file} begin after the last action of a client"
        yield f"{note}; they can affect only messages that are still under way"


def _shifted(experiment: Experiment, workload: Workload, timeline: Timeline) -> Iterator[str]:
    """A note that events are published later than recorded."""
    published = timeline.time[timeline.kind == PUBLISH]
    recorded = experiment.arrivals.publishing is None and workload.times is not None and len(published) > 0
    if recorded and published[0] != workload.times[0]:  # type: ignore[index]
        note = f"times in {experiment.workload.events_file} count from when the subscriptions have come and settled"
        yield f"{note}, not from 0: subscriptions have no times (arrivals.settle)"
