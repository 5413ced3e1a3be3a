"""Which run of a sweep is told, and by which kind of story."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from routing.strategies import strategy
from sim.experiment.plan import Plan, PlannedRun
from sim.experiment.runner import run_folder
from sim.tell.run_trace import RunTrace
from sim.tell.story import Story
from sim.tell.story_ranked import RankedStory
from sim.tell.truth import Truth


def tell(plan: Plan, out: Path, count: int) -> Iterator[str]:
    """Lines about `count` events of one run of the plan, preferably with covering, which has most to tell."""
    there = [run for run in plan.runs if run_folder(out, run).exists()]
    run = min(there or plan.runs, key=_most_to_tell)
    kept = run.experiment.run
    if min(kept.sample_decisions, kept.sample_deliveries) < 1:
        yield "No story: these runs keep a sample of decisions or deliveries only."
        return
    if not there:
        yield "No story: every run failed."
        return
    yield from story_of(Truth(run, RunTrace(out, run.run_id))).lines(count)


def story_of(truth: Truth) -> Story:
    return (RankedStory if truth.network_wide else Story)(truth)


def _most_to_tell(run: PlannedRun) -> tuple[bool, int, int]:
    routing = run.experiment.routing
    how = strategy(routing.strategy)
    plain = how.searches and not how.merges and how.sends_to == "all"
    return not plain, ("cover", "skyband", "none").index(routing.rank), run.seed
