"""Why an event did or did not reach a subscriber: the hops of one run, read from its trace."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from broker.trace.schema import CLIENT
from coverlay import CoverlayError
from sim.tell import explain_ranked
from sim.tell.run_trace import RunTrace, Trace
from sim.tell.story_ranked import RankedStory
from sim.tell.truth import Ints, Truth
from sim.tell.walk import Walk, lost
from sim.workloads import Workload

MOST_NAMED = 10  # most subscriptions named of a broker that did not get an event


def explain(folder: Path, event: int, called: str | int | None, run_id: str | None = None) -> Iterator[str]:
    """Sentences, one per hop; `called`: the number or id of a subscription."""
    if event < 0:  # the trace has -1 where a message is about none
        raise CoverlayError(f"--event is {event}; events are numbered from 0")
    return Explainer(RunTrace(folder, run_id)).sentences(event, called)


class Explainer:
    """The events of one run."""

    def __init__(self, trace: Trace, workload: Workload | None = None) -> None:
        self.trace, self._workload = trace, workload

    @cached_property
    def truth(self) -> Truth:
        """Raises a CoverlayError if input files are gone or changed; the trace can still be told."""
        return Truth(self.trace.planned(), self.trace, self._workload)

    def sentences(self, event: int, called: str | int | None) -> Iterator[str]:
        trace = self.trace
        if event not in trace.published:
            raise CoverlayError(f"event {event} was not published in {trace.which}")
        trace.refuse_left_out("deliveries", event)
        if called is None:
            yield trace.which
            yield from self._event(event)
            return
        start = trace.published[event]
        subscription = trace.subscription_called(called, start.time)
        trace.refuse_left_out("decisions", subscription)
        if subscription not in trace.homes:
            raise CoverlayError(f"subscription {subscription} was never made in {trace.which}")
        yield trace.which
        yield from self._lives(subscription)
        yield f"event {event} was published at {start.time:.3f} ms at {trace.names[start.broker]}"
        yield from self._tree(event)
        try:
            truth = self.truth
        except CoverlayError as error:
            yield f"  what became of it on the way is not known: {error}"
            return
        if truth.network_wide:
            yield f"  {explain_ranked.verdict(RankedStory(truth), event, subscription)}"
        else:
            walk = Walk(truth, event, subscription)
            yield from (f"  {walk.words(hop)}" for hop in walk.hops())

    def _tree(self, event: int) -> Iterator[str]:
        """Which tree an event follows, where others than the first took over, and which one came too late for it."""
        trace, start = self.trace, self.trace.published[event]
        its = trace.followed(event)
        if its.joined:
            yield f"  it follows {its.words(trace.names)}"
        lost = not trace.about(event, "faults").empty
        later = (v for v in trace.versions(start.broker) if v.serves is not None and v.first > its.first)
        if lost and (following := next(later, None)) is not None:
            yield f"  too late for it was {following.words(trace.names)}"

    def _lives(self, subscription: int) -> Iterator[str]:
        """Where a subscription lives, and from when to when its client asked for it."""
        trace, operations = self.trace, self.trace.read("operations")
        mine = operations[operations["subscription"] == subscription]
        since = mine.loc[mine["kind"].isin(["preload", "subscribe"]), "time"].iloc[0]
        home = trace.names[trace.homes[subscription]]
        yield f"subscription {trace.subscription(subscription)} lives at {home}, since {since:.3f} ms"
        for left in mine.loc[mine["kind"] == "unsubscribe", "time"]:
            yield f"  it left at {left:.3f} ms"

    def _event(self, event: int) -> Iterator[str]:
        """All hops of an event, what was lost, and who was served."""
        trace = self.trace
        start = trace.published[event]
        yield f"event {event} published at {trace.names[start.broker]} at {start.time:.3f} ms"
        yield from self._tree(event)
        deliveries = trace.about(event, "deliveries")
        if trace.network_wide is None:
            hops: list[Any] = list(trace.about(event, "publications").itertuples())
            for hop in hops:
                came = "from its publisher" if hop.source == CLIENT else f"from {trace.names[hop.source]}"
                rows: list[Any] = list(deliveries[deliveries["broker"] == hop.target].sort_values("rank").itertuples())
                to = ", ".join(f"{trace.subscription(r.subscription)} (rank {r.rank}, score {r.score:g})" for r in rows)
                yield (
                    f"  {hop.time:10.3f} ms  {trace.names[hop.target]} {came}{_spent(hop)}: "
                    f"delivered to {to or 'nobody'}; sent on to {hop.forwarded} neighbour{'s' * (hop.forwarded != 1)}"
                )
        else:
            yield from explain_ranked.conversation(trace.names, trace.about(event, "ranked"))
        faults: list[Any] = list(trace.about(event, "faults").itertuples())
        for fault in faults:
            yield f"  {fault.time:10.3f} ms  {trace.names[fault.broker]}: {lost(trace, fault)}"
        if trace.network_wide is None:
            yield from self._unserved(event)
        else:
            yield from explain_ranked.winners(trace, deliveries, trace.network_wide)

    def _unserved(self, event: int) -> Iterator[str]:
        """Who asked for the event and did not get it, broker by broker, and why."""
        trace = self.trace
        try:
            truth = self.truth
        except CoverlayError as error:
            yield f"who else asked for it is not known: {error}"
            return
        matching, served, missed = truth.matching(event), truth.served(event), truth.missed(event)
        later = len(np.setdiff1d(served, matching))
        also = f", and {later:,} that came later" if later else ""
        yield f"{len(matching):,} subscriptions in force match it; served: {len(served) - later:,} of them{also}"
        reached, homes = truth.reached(event), truth.homes
        asking = np.setdiff1d(truth.asking(event), served)
        for broker in np.unique(homes[missed]).tolist():
            lacking, mine = int((homes[missed] == broker).sum()), asking[homes[asking] == broker]
            which = f"of {len(mine)} " if len(mine) > lacking else ""  # the others are beyond the k best
            who, why = f"{lacking} {which}at {trace.names[broker]}", _why(truth, event, broker, reached)
            yield f"  {who} did not get it, {why}: {_named(trace, mine)}"
        gone, beaten = np.setdiff1d(matching, [*asking, *served]), len(np.setdiff1d(asking, missed))
        if beaten:
            yield f"  {beaten:,} rank below the {truth.k} best of their broker"
        if len(gone):
            yield f"  {len(gone):,} had left when it came: {_named(trace, gone)}"
        if len(missed):
            yield f"  {trace.look_closer}"


def _spent(hop: Any) -> str:
    """How long a message waited and was served, where that took time."""
    parts = [f"{word} {spent:.3f} ms" for word, spent in (("waited", hop.waited), ("served in", hop.service)) if spent]
    return f" ({', '.join(parts)})" if parts else ""


def _why(truth: Truth, event: int, broker: int, reached: set[int]) -> str:
    if broker not in reached:
        return "the event did not reach the broker"
    crashed = truth.crashed(event, broker)
    return "the broker crashed before it had served it" if crashed else "though the event reached the broker"


def _named(trace: Trace, subscriptions: Ints) -> str:
    shown = ", ".join(map(trace.subscription, subscriptions[:MOST_NAMED].tolist()))
    return shown + (", …" if len(subscriptions) > MOST_NAMED else "")
