"""Why a subscription was or was not among the k best of the whole network: who was asked, who answered, who won."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from broker.trace.schema import CLIENT
from sim.tell.run_trace import Trace
from sim.tell.story_ranked import ASKED, BOUNDED, FOR_A_WINNER, IN_TABLES, NOT_ASKED, NOT_REACHED, RankedStory

# Of the broker of one subscription.
WHERE = {
    ASKED: "its broker was asked",
    FOR_A_WINNER: "its broker got the event for a winner, and was not asked",
    BOUNDED: "its broker was not asked: the best entry on the way to it does not beat that",
    IN_TABLES: "its broker was not asked: the tables of the publisher's broker have the winners",
    NOT_REACHED: "the event did not reach its broker",
    NOT_ASKED: "its broker was not asked",
}


def winners(trace: Trace, deliveries: pd.DataFrame, k: int) -> Iterator[str]:
    """Who won an event, best first."""
    best = deliveries.sort_values("rank")
    yield f"served: {len(best)}, of at most {k} in the whole network"
    rows: list[Any] = list(best.itertuples())
    for row in rows:
        who = f"{trace.subscription(row.subscription)} at {trace.names[row.broker]}"
        yield f"  rank {row.rank:3}  {who}, score {row.score:g}, {row.time:.3f} ms"


def conversation(names: Mapping[int, str], ranked: pd.DataFrame) -> Iterator[str]:
    """Who asked whom, who answered and who was told of winners, in order."""
    rows: list[Any] = list(ranked[ranked["source"] != CLIENT].itertuples())
    for row in rows:
        source, target = names[row.source], names[row.target]
        yield f"  {row.time:10.3f} ms  {_said(row, source, target)}"


def _said(row: Any, source: str, target: str) -> str:
    if row.kind == "answer":
        return f"{source} answered {target}: {row.results} that may win"
    if row.kind == "award":
        with_event = ", with the event" if row.carries else ""
        return f"{source} told {target} of {_winners(row.results)} there or beyond{with_event}"
    known = "" if row.limit != row.limit else f" for better than {row.limit:g}"
    also = f", and told of {_winners(row.results)}" if row.results else ""
    return f"{source} asked {target}{known}{also}"


def _winners(count: int) -> str:
    return "one winner" if count == 1 else f"{count} winners"


def verdict(story: RankedStory, event: int, subscription: int) -> str:
    """One sentence about one subscription."""
    trace, k = story.trace, story.k
    best = trace.about(event, "deliveries").sort_values("rank")
    mine = best[best["subscription"] == subscription]
    if len(mine):
        row = mine.iloc[0]
        return f"it was served as number {int(row['rank'])} of {k}, with score {row.score:g}, at {row.time:.3f} ms"
    place = story.place(event, subscription)
    if place.score is None:
        return "it does not match the event"
    if place.rank is None:
        return f"it matches the event with score {place.score:g}, and was not in force when the event was published"
    placed = f"it matches the event with score {place.score:g}, number {place.rank:,} of {place.matching:,} that match"
    if place.rank <= (k or 0):
        return f"{placed}, and so among the {k} best; it was not served: a change, fault or full queue was in the way"
    last = best.iloc[-1] if len(best) else None
    beaten = ""
    if last is not None:
        worst = f"{trace.subscription(int(last.subscription))} at {trace.names[int(last.broker)]}"
        beaten = f"; the last one served was {worst} ({last.score:g})"
    return f"{placed}: not among the {k} best of the whole network{beaten}; {WHERE[story.where(event, subscription)]}"
