"""The story where the k best of the whole network are served: who got the most wanted events, and why others did not.

Events are those that most subscriptions match, most first: there the ranking decides most. Subscriptions that matched
and rank behind the winners are counted by where they live: at a broker that was asked, at one that only got the event
for a winner, or where nobody asked. Why nobody did is said where it follows from the tables of that moment: the
best matching entry of a link on the way does not beat the last winner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sim.tell.story import Story
from sim.tell.truth import Ints, Truth

ASKED = "at brokers that were asked"
FOR_A_WINNER = "at brokers that got it for a winner and were not asked"
BOUNDED = "behind links whose best entry does not beat that: nobody asked there"
IN_TABLES = "elsewhere: nobody is asked, the tables of the publisher's broker have the winners"
NOT_REACHED = "at brokers that the event did not reach"
NOT_ASKED = "at brokers that were not asked"


class Place(NamedTuple):
    """Where a subscription is among those that match an event and were in force when it was published."""

    score: float | None  # None: it does not match
    rank: int | None  # from 1; None: it was not in force
    matching: int


class RankedStory(Story):
    """The events of one run in which the k best of the whole network are served."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self.said = self.trace.read("ranked")

    def _how(self) -> str:
        return f"{super()._how()}, rank {self.truth.run.experiment.routing.rank}; those that most subscriptions match"

    def _choose(self, count: int) -> list[int]:
        wanted = {e: len(self.truth.matching(e)) for e in self.trace.read("deliveries")["event"].unique().tolist()}
        return sorted(wanted, key=lambda event: (-wanted[event], event))[:count]

    def _limit(self) -> str:
        return f"; the {self.k} best of the whole network are"

    def place(self, event: int, subscription: int) -> Place:
        matching = self.truth.matching(event)
        score = float(self._scores(event, np.array([subscription]))[0])
        if math.isnan(score):
            return Place(None, None, len(matching))
        if subscription not in matching:
            return Place(score, None, len(matching))
        return Place(score, self.best_first(event, matching).index(subscription) + 1, len(matching))

    def best_first(self, event: int, subscriptions: Ints) -> list[int]:
        found: list[int] = subscriptions[np.lexsort((subscriptions, -self._scores(event, subscriptions)))].tolist()
        return found

    def _scores(self, event: int, subscriptions: Ints) -> np.ndarray[Any, np.dtype[np.float64]]:
        """As they ranked when the event was published."""
        return self.truth.scores(event, subscriptions, self.trace.published[event].step)

    def _shown(self, served: pd.DataFrame) -> Iterator[str]:
        rows: list[Any] = list(served.sort_values("rank").itertuples())
        yield from self._served(rows[0])
        rest = [f"{self._called(r.subscription)} at {self.trace.names[r.broker]} ({r.score:.4g})" for r in rows[1:]]
        if rest:
            yield f"  Then, best first: {', '.join(rest)}. The last was served after {served['latency'].max():.1f} ms."

    def _not_served(self, event: int, served: pd.DataFrame) -> Iterator[str]:
        missed = self.truth.missed(event)
        skipped = np.setdiff1d(self.truth.matching(event), [*served["subscription"], *missed])
        if len(skipped):
            counts: dict[str, int] = {}
            for subscription in skipped.tolist():
                where = self.where(event, subscription)
                counts[where] = counts.get(where, 0) + 1
            why = "; ".join(f"{counts[where]:,} {where}" for where in sorted(counts, key=_ORDER.index))
            yield f"  Skipped: {len(skipped):,} that match rank behind the {self.k} best: {why}."
            best = self.best_first(event, skipped)[0]
            score = float(self._scores(event, np.array([best]))[0])
            yield f"  The best of them, with {score:.4g}: {self._example(np.array([best]))}"
        if len(missed):
            yield f"  Among the {self.k} best and not served: {len(missed):,}, such as {self._example(missed)}"

    def where(self, event: int, subscription: int) -> str:
        """Whether the broker of a subscription that lost was asked, and why not where that is known."""
        said, home = self.said[self.said["event"] == event], int(self.truth.homes[subscription])
        if home in set(said.loc[said["kind"] == "query", "target"]):
            return ASKED
        if home in set(said.loc[said["carries"], "target"]):
            return FOR_A_WINNER
        rank = self.truth.run.experiment.routing.rank
        if rank == "skyband":
            return IN_TABLES
        if rank == "none":
            return NOT_REACHED
        return BOUNDED if self._bounded(event, home) else NOT_ASKED

    def _bounded(self, event: int, home: int) -> bool:
        """Did the entries of the link on the way to a broker at which the asking ended, rank behind the last winner?"""
        truth = self.truth
        served = self.trace.about(event, "deliveries")
        if len(served) < (self.k or 0):
            return False
        last = served.sort_values("rank").iloc[-1]
        said = self.said[(self.said["event"] == event) & (self.said["kind"] == "query")]
        steps = dict(zip(said["target"].tolist(), said["step"].tolist(), strict=True))
        start = self.trace.published[event].broker
        version = self.trace.followed(event)
        way = pairwise(version.path(start, home))
        here, there = next((here, there) for here, there in way if there not in steps)
        if here not in steps:
            return False
        held = truth.knowledge.table(here, there, version.begun(here, there), steps[here])
        entries = np.array(truth.matching_of(event, list(held)), dtype=np.int64)
        keys = zip((-truth.scores(event, entries, steps[here])).tolist(), entries.tolist(), strict=True)
        return bool(len(entries)) and min(keys) > (-float(last.score), int(last.subscription))


_ORDER = (ASKED, FOR_A_WINNER, BOUNDED, NOT_REACHED, IN_TABLES, NOT_ASKED)
