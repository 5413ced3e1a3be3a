"""What is coming, before a sweep starts: how many runs, by which engine and why, how large and how long they are."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim.experiment.engines import engine_for
from sim.experiment.plan import Plan
from sim.experiment.predict import about, predict, small_workload
from sim.random_streams import streams


def coming(plan: Plan, jobs: int) -> Iterator[str]:
    """Sentences about a plan. Sizes are those of its first run: most sweeps change how, not how much."""
    first, count = plan.runs[0], len(plan.runs)
    many = f"{count} runs, {min(jobs, count)} at a time" if count > 1 else "one run"
    asked = sorted({run.experiment.run.engine for run in plan.runs})
    size = predict(first.experiment, first.seed)
    if len(asked) > 1:
        yield f"{many}, with the engines {', '.join(asked)}"
    else:
        small = small_workload(first.experiment, streams(first.seed))
        chosen, why = engine_for(first.experiment, small, math.inf, lambda: size)
        yield f"{many}, {'the first ' if count > 1 else ''}with the {chosen} engine ({why})"
    yield f"{'the first' if count > 1 else 'it'} is predicted to take {size}"
    if len(asked) == 1:
        each = about(size.seconds(chosen))
        swept = any(run.point != first.point for run in plan.runs)
        whose = " of the first, others may take longer" if swept else " of each" if count > 1 else ""
        yield f"predicted time{whose}: {each} to simulate and judge, compiling and Spark apart"
