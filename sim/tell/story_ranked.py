"""The story where the k best of the whole network are served: who got the most wanted events, and why others did not.

Events are those that most subscriptions match, most first: there the ranking decides most. Subscriptions that matched
and were not served are counted by where they live: at a broker that was asked and named none better, at one that only
got the event for a winner, or behind links over which nobody asked, because no entry there beats the k-th best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from sim.experiment.build import settings_of
from sim.experiment.oracle_truth import scores_of, terms_of
from sim.experiment.oracle_versions import Versions
from sim.experiment.plan import PlannedRun
from sim.tell.explain_ranked import Place
from sim.tell.run_trace import RunTrace
from sim.tell.story import Ints, Story

WHY_NOT_ASKED = {
    "none": "at brokers that the event did not reach",
    "cover": "behind links whose best entry does not beat that: nobody asked there",
    "skyband": "elsewhere: the publisher's broker has all possible winners in its tables and asked nobody",
}
NEED_NOT_ASK = {
    "none": "the event did not reach it",
    "cover": "the best entry on the way to it does not beat that",
    "skyband": "the publisher's broker has all possible winners in its tables",
}


class RankedStory(Story):
    """One run in which the k best of the whole network are served."""

    def __init__(self, run: PlannedRun, trace: RunTrace) -> None:
        super().__init__(run, trace)
        matching, ranking = run.experiment.matching, settings_of(run.experiment, self.workload).ranking
        far, metric = ranking.max_distance, ranking.metric
        self.terms = terms_of(self.workload, matching.semantics, matching.kind, far, metric)
        self.ranked = trace.read("ranked")
        self.versions = Versions.of(self.workload, trace.arrow("operations"))

    def _how(self) -> str:
        return f"{super()._how()}, rank {self.run.experiment.routing.rank}; those that most subscriptions match"

    def _choose(self, count: int) -> list[int]:
        wanted = {event: len(self.matching(event)) for event in self.deliveries["event"].unique().tolist()}
        return sorted(wanted, key=lambda event: (-wanted[event], event))[:count]

    def place(self, event: int, subscription: int) -> Place:
        """Where a subscription is among those that match an event."""
        matching = self.matching(event)
        score = float(self._scores(event, np.array([subscription]))[0])
        if math.isnan(score):
            return Place(None, None, len(matching))
        scores = self._scores(event, matching)
        better = (scores > score) | ((scores == score) & (matching < subscription))
        return Place(score, int(better.sum()) + 1 if subscription in matching else None, len(matching))

    def due(self, event: int) -> Iterator[tuple[int, int, int]]:
        matching = self.matching(event)
        assert self.k is not None
        best = matching[np.lexsort((matching, -self._scores(event, matching)))][: self.k]
        homes = np.array([self.homes[s] for s in best.tolist()], dtype=np.int64)
        missed = ~np.isin(best, self.deliveries.loc[self.deliveries["event"] == event, "subscription"])
        for broker in np.unique(homes).tolist():
            yield broker, int((homes == broker).sum()), int((missed & (homes == broker)).sum())

    def _shown(self, served: pd.DataFrame) -> Iterator[str]:
        rows: list[Any] = list(served.sort_values("rank").itertuples())
        yield from self._served(rows[0])
        rest = [f"{self._called(r.subscription)} at {self.trace.names[r.broker]} ({r.score:.4g})" for r in rows[1:]]
        if rest:
            yield f"  Then, best first: {', '.join(rest)}. The last was served after {served['latency'].max():.1f} ms."

    def _beaten(self, event: int, served: pd.DataFrame, matching: Ints) -> Iterator[str]:
        skipped = np.setdiff1d(matching, served["subscription"])
        if not len(skipped):
            return
        said = self.ranked[self.ranked["event"] == event]
        asked = set(said.loc[said["kind"] == "query", "target"].tolist())
        came = set(said.loc[said["carries"], "target"].tolist()) - asked
        homes = np.array([self.homes[s] for s in skipped.tolist()])
        groups = [
            (np.isin(homes, list(asked)), "at brokers that were asked and named none better"),
            (np.isin(homes, list(came)), "at brokers that got it for a winner and were not asked"),
            (~np.isin(homes, [*asked, *came]), WHY_NOT_ASKED[self.run.experiment.routing.rank]),
        ]
        why = "; ".join(f"{int(mine.sum()):,} {where}" for mine, where in groups if mine.any())
        last = served.sort_values("rank").iloc[-1]
        yield f"  Skipped: {len(skipped):,} that match rank behind number {len(served)} ({last.score:.4g}): {why}."
        scores = self._scores(event, skipped)
        best = int(skipped[np.lexsort((skipped, -scores))[0]])
        yield (
            f"  The best of them, with {scores.max():.4g}: subscription {self._called(best)} at "
            f"{self.trace.names[self.homes[best]]}, {self._words(best)}"
        )

    def _scores(self, event: int, subscriptions: Ints) -> np.ndarray[Any, np.dtype[np.float64]]:
        """As they ranked when the event was published."""
        weights = None if self.workload.event_weights is None else self.workload.event_weights[event]
        rows = self.versions.at(subscriptions, np.full(len(subscriptions), self._time_of(event)))
        return scores_of(self.terms, self.workload.events[event], weights)[rows]
