"""Who asks for an event, who should be served and who was: one run by brute force, beside its trace.

Unless it is given, the workload is drawn again from the run's parameters and seed. A subscription is in force from the
step at which its broker took it in to the step at which the broker heard that it left. Due are the k best of each
broker that match and are in force when the event comes there or, if it never does, when it is published; where
`matching.scope` is the network, the k best of all when it is published.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from broker.trace.schema import CLIENT, CRASHED
from sim.experiment.build import settings_of, workload_of
from sim.experiment.oracle_paths import row_of, with_mergers
from sim.experiment.oracle_truth import Floats, scores_of, terms_of
from sim.experiment.oracle_versions import Versions
from sim.experiment.plan import PlannedRun
from sim.random_streams import streams
from sim.tell.as_text import event_of, subscription_in_words
from sim.tell.knowledge import Knowledge
from sim.tell.run_trace import Trace
from sim.workloads import Workload
from sim.workloads.contract import filter_of

NEVER = np.iinfo(np.int64).max
Ints = np.ndarray[Any, np.dtype[np.int64]]


class Truth:
    """One run: its trace, and what its workload says about it."""

    def __init__(self, run: PlannedRun, trace: Trace, workload: Workload | None = None) -> None:
        self.run, self.trace = run, trace
        self.workload = workload_of(run.experiment, streams(run.seed)) if workload is None else workload
        self.k = run.experiment.matching.k
        self.network_wide = run.experiment.network_wide
        self._everything = with_mergers(self.workload, trace.arrow("decisions"))
        matching, ranking = run.experiment.matching, settings_of(run.experiment, self.workload).ranking
        kind = matching.semantics, matching.kind, ranking.max_distance, ranking.metric
        self._terms = terms_of(self._everything, *kind)
        self._semantics = matching.semantics
        count = len(self.workload.lo)
        self.homes = np.full(count, -1)
        self.homes[list(trace.homes)] = list(trace.homes.values())
        self._came, self._left, self._reranked = np.full(count, NEVER), np.full(count, NEVER), list[Any]()
        self._scores = lru_cache(maxsize=8)(self._all_scores)
        self._requests()
        self.knowledge = Knowledge.of(trace)

    def _requests(self) -> None:
        control = self.trace.read("control")
        asked = control[control["source"] == CLIENT]
        joins, leaves = (asked[asked["kind"] == kind] for kind in ("subscribe", "unsubscribe"))
        np.minimum.at(self._came, joins["subscription"].to_numpy(), joins["step"].to_numpy())  # the first, if repeated
        self._left[leaves["subscription"]] = leaves["step"]
        versions = Versions.of(self.workload, self.trace.arrow("operations"))
        steps = dict(zip(asked["operation"].tolist(), asked["step"].tolist(), strict=True))
        changes = zip(versions.number[versions.row].tolist(), versions.row.tolist(), versions.request, strict=True)
        self._reranked = sorted((steps.get(int(request), NEVER), number, row) for number, row, request in changes)

    # ── who asks for it ────────────────────────────────────────────────────────────────────────────────

    def in_force(self, subscriptions: int | Ints, step: int | Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which had been taken in by their own broker before a step, and had not left."""
        return np.asarray((self._came[subscriptions] < step) & (self._left[subscriptions] >= step))

    def made(self, subscription: int, step: int) -> bool:
        return bool(self._came[subscription] < step)

    def _all_scores(self, event: int) -> Floats:
        """Of every row, mergers last; NaN where the event does not match."""
        weights = None if self.workload.event_weights is None else self.workload.event_weights[event]
        return scores_of(self._terms, self.workload.events[event], weights)

    def matches(self, event: int, subscription: int) -> bool:
        """Does an event match a subscription or merger?"""
        return bool(self.matching_of(event, [subscription]))

    def matching_of(self, event: int, subscriptions: list[int]) -> list[int]:
        """Those of some subscriptions and mergers that an event matches, ascending; unknown mergers are left out."""
        scores = self._scores(event)
        given = np.array(sorted(subscriptions), dtype=np.int64)
        rows = row_of(given, len(self.workload.lo))
        known = rows < len(scores)
        found: list[int] = given[known][~np.isnan(scores[rows[known]])].tolist()
        return found

    def scores(self, event: int, subscriptions: Ints, step: int) -> Floats:
        """As they ranked at a step."""
        row = np.arange(len(self.workload.lo))
        for when, number, later in self._reranked:
            if when < step:
                row[number] = later
        found: Floats = self._scores(event)[row[subscriptions]]
        return found

    def matching(self, event: int) -> Ints:
        """The subscriptions that match and were in force when the event was published."""
        return self._asking(event, self.trace.published[event].step)

    def count_in_force(self, event: int) -> int:
        """How many subscriptions were in force when an event was published."""
        made = np.flatnonzero(self.homes >= 0)
        return int(self.in_force(made, self.trace.published[event].step).sum())

    def _asking(self, event: int, step: int | Ints) -> Ints:
        """The subscriptions that match and were in force at a step, or at one per subscription."""
        every = np.arange(len(self.workload.lo))
        mine = ~np.isnan(self._scores(event)[: len(every)]) & (self.homes >= 0) & self.in_force(every, step)
        return np.flatnonzero(mine)

    def cover_among(self, entries: list[int], subscription: int) -> int | None:
        """The first of some entries that matches every event which a subscription matches, other than itself."""
        known, others = self._everything, np.array([entry for entry in entries if entry != subscription], np.int64)
        rows = row_of(others, len(self.workload.lo))
        wide = (known.lo[rows] <= known.lo[subscription]) & (known.hi[rows] >= known.hi[subscription])
        narrow = filter_of(known, subscription)
        for place in np.flatnonzero(wide.all(axis=1)).tolist():
            filter = filter_of(known, int(rows[place]))
            alike = self._semantics == "exact" or filter.mentioned == narrow.mentioned
            if alike and filter.contains(narrow):
                return int(others[place])
        return None

    # ── who should be served, and who was ──────────────────────────────────────────────────────────────

    def arrivals(self, event: int) -> Ints:
        """For each broker, the step at which an event came there or, if it never did, was published."""
        steps = np.full(len(self.trace.names), self.trace.published[event].step)
        hops = self.trace.about(event, "publications")
        steps[hops["target"]] = hops["step"]
        return steps

    def asking(self, event: int) -> Ints:
        """The subscriptions that match and were in force when the event came to their broker, or was published."""
        return self._asking(event, self.arrivals(event)[self.homes])

    def due(self, event: int) -> Ints:
        """The subscriptions that an event is due to, ascending."""
        asking = self.matching(event) if self.network_wide else self.asking(event)
        if self.k is None or not len(asking):
            return asking
        arrivals = self.arrivals(event)
        step = self.trace.published[event].step
        if self.network_wide:
            return np.sort(asking[np.lexsort((asking, -self.scores(event, asking, step)))][: self.k])
        best = []
        for broker in np.unique(self.homes[asking]).tolist():
            local = asking[self.homes[asking] == broker]
            scores = self.scores(event, local, int(arrivals[broker]))
            best.append(local[np.lexsort((local, -scores))][: self.k])
        return np.sort(np.concatenate(best))

    def served(self, event: int) -> Ints:
        return np.sort(self.trace.about(event, "deliveries")["subscription"].to_numpy())

    def missed(self, event: int) -> Ints:
        """Those that an event was due to and that were not served."""
        return np.setdiff1d(self.due(event), self.served(event))

    def reached(self, event: int) -> set[int]:
        return set(self.trace.about(event, "publications")["target"].tolist())

    def crashed(self, event: int, broker: int) -> bool:
        """Was the event lost at a broker that crashed, before or while it was served there?"""
        mine = self.trace.about(event, "faults")
        return bool(((mine["broker"] == broker) & (mine["kind"] == CRASHED)).any())

    # ── in words ───────────────────────────────────────────────────────────────────────────────────────

    def words(self, subscription: int) -> str:
        matching = self.run.experiment.matching
        return subscription_in_words(self.workload, subscription, matching.kind, matching.semantics)

    def event_words(self, event: int) -> str:
        return str(event_of(self.workload, event))
