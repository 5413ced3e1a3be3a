"""What is coming, before a sweep starts: how many runs, by which engine and why, and how large they will be."""

from __future__ import annotations

from collections.abc import Iterator

from sim.experiment.engines import engine_for
from sim.experiment.plan import Plan
from sim.experiment.predict import predict, small_workload
from sim.random_streams import streams

WHY = {"compiled": "it supports all that is asked for", "simpy": "the compiled one does not support all of it"}


def coming(plan: Plan, jobs: int) -> Iterator[str]:
    """Sentences about a plan. Sizes are those of its first run: most sweeps change how, not how much."""
    first, count = plan.runs[0], len(plan.runs)
    many = f"{count} runs, {min(jobs, count)} at a time" if count > 1 else "one run"
    asked = sorted({run.experiment.run.engine for run in plan.runs})
    if len(asked) > 1:
        yield f"{many}, with the engines {', '.join(asked)}"
    else:
        chosen = engine_for(first.experiment, small_workload(first.experiment, streams(first.seed)))
        why = f"chosen: {WHY[chosen]}" if asked == ["auto"] else "as run.engine says"
        yield f"{many}, with the {chosen} engine ({why})"
    yield f"{'the first' if count > 1 else 'it'} is predicted to take {predict(first.experiment, first.seed)}"
