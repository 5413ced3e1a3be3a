"""Why an event did or did not reach a subscriber: the hops of one run, read from its trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from broker.trace.schema import CLIENT, CRASHED, LINK_DOWN, NOBODY, PUBLISHER_DOWN, QUEUE_FULL
from coverlay import CoverlayError
from routing.overlay.trees import SHARED
from sim.tell import explain_ranked
from sim.tell.run_trace import RunTrace
from sim.tell.story import Story
from sim.tell.story_ranked import NEED_NOT_ASK, RankedStory

# What happened to a lost copy of an event, in words; {neighbour} is who it was for, or came from.
FAULTS = {
    QUEUE_FULL: "dropped: its queue was full",
    LINK_DOWN: "lost: the link to {neighbour} was down",
    CRASHED: "lost in the queue of a broker that crashed",
    PUBLISHER_DOWN: "never published: its broker was down",
}
MOST_NAMED = 10  # most subscriptions named of a broker that did not get an event
# Where events are sent on whether a subscription asks for them or not.
UNASKED = {"flooding": "as every event is", "hierarchical": "as every event is, towards the root"}


def explain(folder: Path, event: int, called: str | int | None, run_id: str | None = None) -> Iterator[str]:
    """Sentences, one per hop; `called`: the number or id of a subscription."""
    if event < 0:  # the trace has -1 where a message is about none
        raise CoverlayError(f"--event is {event}; events are numbered from 0")
    trace = RunTrace(folder, run_id)
    hops = trace.about(event, "publications")
    if hops.empty:
        faults = trace.about(event, "faults")
        why = f": {_lost(trace, faults.iloc[0])}" if len(faults) else ""
        raise CoverlayError(f"event {event} was not published in run {trace.run_id}{why}")
    trace.refuse_left_out("deliveries", event)
    subscription = None if called is None else trace.subscription_called(called, float(hops.iloc[0].published))
    if subscription is not None:
        trace.refuse_left_out("decisions", subscription)
    deliveries, k = trace.about(event, "deliveries"), trace.network_wide
    yield trace.which
    if subscription is None:
        yield f"event {event} published at {trace.names[hops.iloc[0].target]} at {hops.iloc[0].published:.3f} ms"
        if k is None:
            yield from _walk_event(trace, hops, deliveries)
        else:
            yield from explain_ranked.conversation(trace.names, trace.about(event, "ranked"))
        rows: list[Any] = list(trace.about(event, "faults").itertuples())
        for fault in rows:
            yield f"  {fault.time:10.3f} ms  {trace.names[fault.broker]}: {_lost(trace, fault)}"
        if k is None:
            yield from _unserved(trace, event, hops, deliveries)
        else:
            yield from explain_ranked.winners(trace, deliveries, k)
    elif k is None:
        yield from _walk_to_subscriber(trace, event, subscription, hops, deliveries)
    else:
        home = int(_requests(trace, subscription).iloc[0].broker)
        yield f"subscription {trace.subscription(subscription)} lives at {trace.names[home]}"
        run, said = trace.planned(), trace.about(event, "ranked")
        place, why_not = RankedStory(run, trace).place(event, subscription), NEED_NOT_ASK[run.experiment.routing.rank]
        asked = bool(((said["target"] == home) & (said["kind"] == "query")).any())
        words = "its broker was asked and named none better" if asked else f"its broker was not asked: {why_not}"
        yield f"  {explain_ranked.verdict(trace, subscription, deliveries, k, place, words)}"


def _unserved(trace: RunTrace, event: int, hops: pd.DataFrame, deliveries: pd.DataFrame) -> Iterator[str]:
    """Who asked for the event and did not get it, broker by broker, and why."""
    try:
        story = Story(trace.planned(), trace)
    except CoverlayError as error:  # input files are gone or changed; all that the trace tells has been told
        yield f"who else asked for it is not known: {error}"
        return
    matching = story.matching(event)
    without = np.setdiff1d(matching, deliveries["subscription"])
    yield f"{len(matching):,} subscriptions in force match it; served: {len(matching) - len(without):,}"
    missed = 0
    for broker, _, missing in story.due(event):
        if not missing:
            continue
        missed += missing
        mine = [number for number in without.tolist() if story.homes[number] == broker]
        shown = ", ".join(map(trace.subscription, mine[:MOST_NAMED])) + (", …" if len(mine) > MOST_NAMED else "")
        which = f"of {len(mine)} " if len(mine) > missing else ""  # some would rank below the k best anyway
        came = broker in set(hops["target"])
        why = "though the event reached the broker" if came else "the event did not reach the broker"
        yield f"  {missing} {which}at {trace.names[broker]} did not get it, {why}: {shown}"
    if len(without) > missed:
        yield f"  {len(without) - missed:,} rank below the {story.k} best of their broker"
    if missed:
        yield "  --subscription with one of these follows the event towards it"


def _walk_event(trace: RunTrace, hops: pd.DataFrame, deliveries: pd.DataFrame) -> Iterator[str]:
    for hop in hops.itertuples():
        came = "from its publisher" if hop.source == CLIENT else f"from {trace.names[hop.source]}"
        served = deliveries[deliveries["broker"] == hop.target].sort_values("rank")
        rows: list[Any] = list(served.itertuples())
        to = ", ".join(f"{trace.subscription(r.subscription)} (rank {r.rank}, score {r.score:g})" for r in rows)
        yield (
            f"  {hop.time:10.3f} ms  {trace.names[hop.target]} {came}{_spent(hop)}: "
            f"delivered to {to or 'nobody'}; sent on to {hop.forwarded} neighbour{'s' * (hop.forwarded != 1)}"
        )


def _lost(trace: RunTrace, fault: Any) -> str:
    return FAULTS[fault.kind].format(neighbour=trace.names.get(fault.neighbour))


def _requests(trace: RunTrace, subscription: int) -> pd.DataFrame:
    """What its client asked for, in order."""
    operations = trace.read("operations")
    mine = operations[operations["subscription"] == subscription]
    if mine.empty:
        raise CoverlayError(f"subscription {subscription} was never made in run {trace.run_id}")
    return mine


def _spent(hop: Any) -> str:
    """How long a message waited and was served, where that took time."""
    parts = [f"{word} {spent:.3f} ms" for word, spent in (("waited", hop.waited), ("served in", hop.service)) if spent]
    return f" ({', '.join(parts)})" if parts else ""


def _walk_to_subscriber(
    trace: RunTrace, event: int, subscription: int, hops: pd.DataFrame, deliveries: pd.DataFrame
) -> Iterator[str]:
    mine = _requests(trace, subscription)
    home, start = int(mine.iloc[0].broker), hops.iloc[0]
    called, since = trace.subscription(subscription), f"since {mine.iloc[0].time:.3f} ms"
    yield f"subscription {called} lives at {trace.names[home]}, {since}"
    for left in mine.loc[mine["kind"] == "unsubscribe", "time"]:
        yield f"  it left at {left:.3f} ms"
    yield f"event {event} was published at {start.published:.3f} ms at {trace.names[start.target]}"
    path = trace.path(int(start.target), home)
    untraced = _untraced(trace, subscription, mine)
    rows: list[Any] = list(hops.itertuples())
    reached = {int(hop.target): hop for hop in rows}
    decisions = trace.read("decisions")
    decisions = decisions[decisions["tree"].isin([SHARED, path[0]])]
    for here, following in zip(path, [*path[1:], None], strict=True):
        if here not in reached:
            break
        hop = reached[here]
        if following is None:
            yield from _at_home(trace, subscription, home, hop, deliveries)
            continue
        decided = decisions[(decisions["broker"] == following) & (decisions["neighbour"] == here)]
        decided = decided[(decided["subscription"] == subscription) & (decided["time"] <= hop.time)]
        sent, not_sent = untraced if decided.empty else _why(trace, decided.iloc[-1])
        if following in reached and reached[following].source == here:
            arrow, why = "→", f"sent on, {sent}"
        else:
            arrow, why = "✗", _lost_between(trace, here, following, event) or f"not sent on, {not_sent}"
        yield f"  {hop.time:10.3f} ms  {trace.names[here]} {arrow} {trace.names[following]}: {why}"


def _untraced(trace: RunTrace, subscription: int, mine: pd.DataFrame) -> tuple[str, str]:
    """For links on which the trace has no decision about it: why an event was sent on there, and why not."""
    routing = trace.parameters["routing"]["strategy"]
    if mine.iloc[0].kind == "preload":  # spread before time 0, where traces begin
        look = f"`coverlay tables {trace.folder} --subscription {subscription}` says who has it"
        sent, not_sent = f"for it or for another; {look}", f"no entry there matched the event; {look}"
    else:
        sent = "for another subscription (this one was not known there)"
        not_sent = "the subscription had not come this far yet, or was no longer there"
    return UNASKED.get(routing, sent), not_sent


def _at_home(trace: RunTrace, subscription: int, home: int, hop: Any, deliveries: pd.DataFrame) -> Iterator[str]:
    mine = deliveries[(deliveries["subscription"] == subscription) & (deliveries["broker"] == home)]
    if len(mine):
        row = mine.iloc[0]
        yield f"  {row.time:10.3f} ms  {trace.names[home]}: delivered, rank {int(row['rank'])}, score {row.score:g}"
        return
    served = int((deliveries["broker"] == home).sum())
    yield (
        f"  {hop.time:10.3f} ms  {trace.names[home]}: not delivered; the event reached the broker and was served "
        f"to {served} others: the subscription does not match it, was not in force, or ranked below the top k"
    )


def _why(trace: RunTrace, decision: Any) -> tuple[str, str]:
    """Why an event was sent on over a link where this was decided about a subscription, and why it was not."""
    sent, not_sent = f"for the subscription itself ({decision.outcome})", "the subscription does not match the event"
    if decision.witness != NOBODY:
        who = f"{trace.subscription(decision.witness)}, which{' with others' * (decision.outcome == 'united')}"
        sent = f"for subscription {who} covers it"
        not_sent = f"neither it nor {who} represents it here, matches the event"
    if decision.outcome == "dormant":
        not_sent = "the subscription was dormant: nothing advertised behind the link overlapped it"
    return sent, not_sent


def _lost_between(trace: RunTrace, here: int, following: int, event: int) -> str:
    """What happened to the event on this link, or in a queue at either end; empty if nothing did."""
    faults, ends = trace.about(event, "faults"), [here, following]
    dropped = faults[faults["broker"].isin(ends) & faults["neighbour"].isin([*ends, CLIENT])]
    return f"{_lost(trace, dropped.iloc[0])}, at {dropped.iloc[0].time:.3f} ms" if len(dropped) else ""
