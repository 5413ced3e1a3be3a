"""What the events and subscriptions of a run say, for the replays of its page: the workload is drawn again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coverlay import CoverlayError
from sim.experiment.build import workload_of
from sim.random_streams import streams
from sim.tell.as_text import event_of, subscription_in_words
from sim.tell.run_trace import RunTrace

MOST = 100_000  # subscriptions or events; to draw a larger workload again takes longer than the page


def contents(out: Path) -> Callable[[str], Callable[[str, int], str] | None]:
    """By the name of a run: "event" or "subscription" and a number → what it says. None if that is not known."""

    def of_run(name: str) -> Callable[[str, int], str] | None:
        try:
            run = RunTrace(out, name).planned()
        except CoverlayError:  # an input file has changed since: `coverlay explain` says so
            return None
        given = run.experiment.workload
        if max(given.subscriptions or 0, given.events or 0) > MOST:
            return None
        workload = workload_of(run.experiment, streams(run.seed))
        matching = run.experiment.matching

        def said(kind: str, number: int) -> str:
            if kind == "event":
                return str(event_of(workload, number))
            return subscription_in_words(workload, number, matching.kind, matching.semantics)

        return said

    return of_run
