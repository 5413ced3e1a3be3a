"""A few events of a run in words: who was served, at which rank, over how many hops, and because of which cover.

Told from the trace, with the subscriptions and events of the workload, which is drawn again from the run's parameters
and seed. Events are chosen to show something: one that reached a subscriber because of a cover, one that more than k
subscriptions matched, then the first that were delivered at all. Where the k best of the whole network are served, see
story_ranked.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from broker.trace.schema import NOBODY
from sim.experiment.build import workload_of
from sim.experiment.oracle_truth import scores_of, terms_of
from sim.experiment.plan import Plan, PlannedRun
from sim.experiment.runner import run_folder
from sim.random_streams import streams
from sim.tell.as_text import event_of, subscription_of
from sim.tell.run_trace import RunTrace
from sim.workloads import Workload

EVERYTHING = "which asks for every event"
MOST_SERVED = 3  # subscriptions told per event
Ints = np.ndarray[Any, np.dtype[np.int64]]


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
    yield from story_of(run, RunTrace(out, run.run_id)).lines(count)


def story_of(run: PlannedRun, trace: RunTrace) -> Story:
    from sim.tell.story_ranked import RankedStory  # which imports this module

    return (RankedStory if run.experiment.network_wide else Story)(run, trace)


def _most_to_tell(run: PlannedRun) -> tuple[bool, int, int]:
    routing = run.experiment.routing
    return routing.strategy != "covering", ("cover", "skyband", "none").index(routing.rank), run.seed


class Story:
    """One run: its trace and its workload."""

    def __init__(self, run: PlannedRun, trace: RunTrace) -> None:
        self.run, self.trace, self._called = run, trace, trace.subscription
        self.workload: Workload = workload_of(run.experiment, streams(run.seed))
        matching = run.experiment.matching
        self.k = matching.k
        self.terms = terms_of(self.workload, matching.semantics)  # who is reached; ranks and scores are in the trace
        # Under exact matching of boxes the score counts; everywhere else the weights do.
        self.counts = "exact" if (matching.kind, matching.semantics) == ("boxes", "exact") else "relaxed"
        self.hops, self.deliveries = trace.read("publications"), trace.read("deliveries")
        self.decisions, self.operations = trace.read("decisions"), trace.read("operations")
        first = self.operations.drop_duplicates("subscription")
        self.homes: dict[int, int] = dict(zip(first["subscription"].tolist(), first["broker"].tolist(), strict=True))

    def lines(self, count: int) -> Iterator[str]:
        told = self._choose(count)
        if not told:
            yield "No event reached anybody in this run."
            return
        many = f"{len(told)} of {len(self.workload.events):,} events" if len(told) > 1 else "One event"
        yield f"{many} in words (seed {self.run.seed}, {self._how()}):"
        for event in told:
            yield ""
            yield from self._event(event)

    def _how(self) -> str:
        return f"{self.run.experiment.routing.strategy} routing"

    def _choose(self, count: int) -> list[int]:
        """Covered first, then cut at k, then any that was delivered; each kind in order of publication."""
        delivered = self.deliveries.groupby("event").size()
        covered = self._arrived_for_another()
        cut = [int(event) for event in delivered.index if self.matching(int(event)).size > delivered[event]]
        wanted = [*covered[:1], *cut[:1], *(int(event) for event in delivered.index)]
        return sorted(list(dict.fromkeys(wanted))[:count])

    def _arrived_for_another(self) -> list[int]:
        """Events whose best served subscription was held back on the way, far ones first."""
        held = set(self.decisions.loc[self.decisions["outcome"] == "suppressed", "subscription"])
        best = self.deliveries[(self.deliveries["rank"] == 1) & self.deliveries["subscription"].isin(held)]
        return [int(event) for event in best.sort_values(["hops", "event"], ascending=[False, True])["event"]]

    def _time_of(self, event: int) -> float:
        return float(self.hops.loc[self.hops["event"] == event, "published"].iloc[0])

    def matching(self, event: int) -> Ints:
        """The subscriptions in force at publication that match, by brute force."""
        published = self._time_of(event)
        asked = self.operations[self.operations["time"] <= published]
        made = asked.loc[asked["kind"].isin(["subscribe", "preload"]), "subscription"]
        left = asked.loc[asked["kind"] == "unsubscribe", "subscription"]
        scores = scores_of(self.terms, self.workload.events[event])
        in_force = np.setdiff1d(made, left)
        return in_force[~np.isnan(scores[in_force])]

    def due(self, event: int) -> Iterator[tuple[int, int, int]]:
        """For each broker: how many an event was due to, and how many of these missed it."""
        served = self.deliveries.loc[self.deliveries["event"] == event, "broker"].value_counts()
        homes, counts = np.unique([self.homes[s] for s in self.matching(event).tolist()], return_counts=True)
        for broker, count in zip(homes.tolist(), counts.tolist(), strict=True):
            due = count if self.k is None else min(count, self.k)
            yield broker, due, max(0, due - int(served.get(broker, 0)))

    def _event(self, event: int) -> Iterator[str]:
        hops = self.hops[self.hops["event"] == event]
        served = self.deliveries[self.deliveries["event"] == event].sort_values(["rank", "hops", "subscription"])
        names, start = self.trace.names, hops.iloc[0]
        yield f"Event {event}, published at {names[start.target]}: {event_of(self.workload, event)}"
        matching = self.matching(event)
        limit = "" if self.k is None else f"; each broker serves its {self.k} best"
        if self.run.experiment.network_wide:
            limit = f"; the {self.k} best of the whole network are"
        was, asked = "was" if len(served) == 1 else "were", len(self.workload.lo)
        yield (
            f"  {len(matching):,} of {asked:,} subscriptions match, {len(served):,} {was} served{limit}. "
            f"{len(hops):,} of {len(names):,} brokers saw it."
        )
        yield from self._shown(served)
        yield from self._beaten(event, served, matching)

    def _shown(self, served: pd.DataFrame) -> Iterator[str]:
        shown = served.drop_duplicates("broker").head(MOST_SERVED)
        for row in shown.itertuples():
            yield from self._served(row)
        if len(served) > len(shown):
            yield f"  … and {len(served) - len(shown):,} more."

    def _served(self, row: Any) -> Iterator[str]:
        subscription = int(row.subscription)
        far = "no hop" if row.hops == 0 else f"{row.hops} hop{'s' * (row.hops != 1)}"
        yield (
            f"  Served at {self.trace.names[row.broker]} as number {row.rank}, score {row.score:.4g}, after {far} and "
            f"{row.latency:.1f} ms: subscription {self._called(subscription)}, {self._words(subscription)}"
        )
        yield from self._held_back(subscription)

    def _held_back(self, subscription: int) -> Iterator[str]:
        """On how many links covering held the subscription back, and because of whom."""
        mine = self.decisions[self.decisions["subscription"] == subscription]
        last = mine.drop_duplicates(["broker", "neighbour", "tree"], keep="last")
        held = last[(last["witness"] != NOBODY) & (last["outcome"] != "forwarded")]
        if held.empty:
            return
        witness = int(held["witness"].iloc[0])
        links = f"{len(held)} of the {len(last)} links" if len(last) > 1 else "the one link"
        others = held["witness"].nunique() - 1
        also = f" (and {others} more)" if others else ""
        known = f"subscription {self._called(witness)}, {self._words(witness)}" if witness >= 0 else "a merger"
        yield f"    held back on {links} it came to, covered by {known}{also}"

    def _beaten(self, event: int, served: pd.DataFrame, matching: Ints) -> Iterator[str]:
        beaten = np.setdiff1d(matching, served["subscription"])
        if self.k is None or not len(beaten):
            return
        first = int(beaten[0])
        where = self.trace.names[self.homes[first]]
        who = f"subscription {self._called(first)} at {where}, {self._words(first)}"
        yield f"  Matched but beaten: {len(beaten):,}, such as {who}"

    def _words(self, subscription: int) -> str:
        asked = subscription_of(self.workload, subscription, self.counts)
        return str(asked) if asked.predicates or asked.near else EVERYTHING
