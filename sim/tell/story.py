"""A few events of a run in words: who was served, at which rank, over how many hops, and because of which cover.

Events are chosen to show something: one that reached a subscriber because of a cover, one that more than k
subscriptions matched, then the first that were delivered at all. Where the k best of the whole network are served, see
story_ranked.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from broker.trace.schema import NOBODY
from sim.tell.truth import Ints, Truth
from sim.tell.walk import Walk

MOST_SERVED = 3  # subscriptions told per event


class Story:
    """The events of one run."""

    def __init__(self, truth: Truth) -> None:
        self.truth, self.trace, self.k, self._called = truth, truth.trace, truth.k, truth.trace.subscription

    def lines(self, count: int) -> Iterator[str]:
        told = self._choose(count)
        if not told:
            yield "No event reached anybody in this run."
            return
        events = len(self.truth.workload.events)
        many = f"{len(told)} of {events:,} events" if len(told) > 1 else "One event"
        yield f"{many} in words (seed {self.truth.run.seed}, {self._how()}):"
        for event in told:
            yield ""
            yield from self._event(event)

    def _how(self) -> str:
        return f"{self.truth.run.experiment.routing.strategy} routing"

    def _choose(self, count: int) -> list[int]:
        """Covered first, then cut at k, then any that was delivered; each kind in order of publication."""
        delivered = self.trace.read("deliveries").groupby("event").size()
        covered = self._arrived_for_another()
        cut = [int(event) for event in delivered.index if self.truth.matching(int(event)).size > delivered[event]]
        wanted = [*covered[:1], *cut[:1], *(int(event) for event in delivered.index)]
        return sorted(list(dict.fromkeys(wanted))[:count])

    def _arrived_for_another(self) -> list[int]:
        """Events whose best served subscription was held back somewhere, far ones first."""
        decisions, deliveries = (self.trace.read(table) for table in ("decisions", "deliveries"))
        held = set(decisions.loc[decisions["outcome"] == "suppressed", "subscription"])
        best = deliveries[(deliveries["rank"] == 1) & deliveries["subscription"].isin(held)]
        return [int(event) for event in best.sort_values(["hops", "event"], ascending=[False, True])["event"]]

    def _event(self, event: int) -> Iterator[str]:
        truth, names = self.truth, self.trace.names
        served = self.trace.about(event, "deliveries").sort_values(["rank", "hops", "subscription"])
        start, matching = self.trace.published[event].broker, truth.matching(event)
        yield f"Event {event}, published at {names[start]}: {truth.event_words(event)}"
        later = len(np.setdiff1d(served["subscription"], matching))
        also = f" and {later:,} that came later" if later else ""
        was, in_force = "was" if len(served) - later == 1 else "were", truth.count_in_force(event)
        yield (
            f"  {len(matching):,} of {in_force:,} subscriptions in force match, {len(served) - later:,} of these {was} "
            f"served{also}{self._limit()}. {len(truth.reached(event)):,} of {len(names):,} brokers saw it."
        )
        yield from self._shown(served)
        yield from self._not_served(event, served)

    def _limit(self) -> str:
        return "" if self.k is None else f"; each broker serves its {self.k} best"

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
            f"{row.latency:.1f} ms: subscription {self._called(subscription)}, {self.truth.words(subscription)}"
        )
        yield from self._held_back(int(row.event), subscription, int(self.truth.arrivals(int(row.event))[row.broker]))

    def _held_back(self, event: int, subscription: int, step: int) -> Iterator[str]:
        """On how many links covering held the subscription back when the event came, and because of whom."""
        version = self.trace.followed(event)
        coverers = [by for _, _, by in self.truth.knowledge.links(version, subscription, step)]
        held = [by for by in coverers if by]
        if not held:
            return
        links = f"{len(held)} of the {len(coverers)} links" if len(coverers) > 1 else "the one link"
        others = len(set(held)) - 1
        also = f" (elsewhere by {others} other{'s' * (others > 1)})" if others else ""
        by = " and ".join(map(self._coverer, held[0])) + " together" * (len(held[0]) > 1)
        yield f"    held back on {links} it had come to, covered by {by}{also}"

    def _coverer(self, entry: int) -> str:
        if entry < NOBODY:
            return "a merger"
        return f"subscription {self._called(entry)}, {self.truth.words(entry)}"

    def _not_served(self, event: int, served: pd.DataFrame) -> Iterator[str]:
        asking, missed = np.setdiff1d(self.truth.asking(event), served["subscription"]), self.truth.missed(event)
        beaten = np.setdiff1d(asking, missed)
        if len(beaten):
            yield f"  Matched but beaten: {len(beaten):,}, such as {self._example(beaten)}"
        if len(missed):
            yield f"  Due and not served: {len(missed):,}, such as {self._example(missed)}"
            walk = Walk(self.truth, event, int(missed[0]))
            yield f"    {walk.words(list(walk.hops())[-1]).strip()}"

    def _example(self, subscriptions: Ints) -> str:
        first = int(subscriptions[0])
        where = self.trace.names[int(self.truth.homes[first])]
        return f"subscription {self._called(first)} at {where}, {self.truth.words(first)}"
