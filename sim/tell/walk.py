"""The way of an event towards one subscription, broker by broker: what happened there, and why.

Every `Hop` says only what follows from the trace, from what brokers knew at that step (knowledge.py) and from brute
force (truth.py). Its reason is one of those below; `who` is the entry that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from broker.trace.schema import CLIENT, CRASHED, LINK_DOWN, NOBODY, PUBLISHER_DOWN, QUEUE_FULL
from routing.overlay.trees import SHARED, reaches
from routing.strategies import strategy
from sim.experiment.oracle_paths import untraced
from sim.tell.run_trace import Trace
from sim.tell.truth import Truth

# How a copy of an event was lost.
FAULTS = {
    QUEUE_FULL: "dropped: the queue of {broker} was full",
    LINK_DOWN: "lost: the link to {neighbour} was down",
    CRASHED: "lost: {broker} crashed before it had served it",
    PUBLISHER_DOWN: "lost: {broker}, the broker of its publisher, was down",
}
# Why it was sent on.
AS_ALL = "as every event is"
UPWARDS = "as every event is, towards the root"
ITSELF = "for the subscription itself"
COVER = "for {who}, which covers it"
ALIKE = "for {who}, which matches too"
OTHER = "for {who}; this one does not match"
UNKNOWN = "for an entry that the trace does not tell; {look} says who has it"
# Why it was not.
NO_MATCH = "it does not match the event"
NOT_MADE = "its broker had not taken it in yet"
LEFT = "it had left"
FORGOTTEN = "its broker had lost its memory, and its client was not back"
ASLEEP = "nothing advertised behind the link {here} → {there} overlapped {who}"
NOT_THERE = "{who} had not come from {here} to {there}"
UNTOLD = "no entry there matched; {look} says who has it"
# Why it was not delivered where it came.
CRASHED_HERE = "its broker crashed before it had served it"
BEATEN = "{number} others of its broker rank before it, and {k} are served"
UNEXPLAINED = "though it was due"


# What became of it at a broker.
SENT, KEPT, LOST, DELIVERED, NOT_DELIVERED = "sent on, ", "not sent on, ", "", "delivered, ", "not delivered, "


class Hop(NamedTuple):
    """What became of an event at a broker, and why."""

    time: float
    here: int
    there: int | None  # where it was sent or should have been; None: it was to be served here
    what: str
    why: str
    who: int = NOBODY  # the entry that the reason names
    link: tuple[int, int] = (NOBODY, NOBODY)  # the link that the reason names
    number: int = 0  # how many it names


def lost(trace: Trace, fault: Any) -> str:
    """How a copy of an event was lost, in words."""
    return FAULTS[fault.kind].format(broker=trace.names[fault.broker], neighbour=trace.names.get(fault.neighbour))


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


class Walk:
    """One event and one subscription."""

    def __init__(self, truth: Truth, event: int, subscription: int) -> None:
        self.truth, self.trace, self.event, self.subscription = truth, truth.trace, event, subscription
        self.home, self.start = int(truth.homes[subscription]), truth.trace.published[event].broker
        self.version = truth.trace.followed(event)
        self.path = self.version.path(self.start, self.home)
        self.matches = truth.matches(event, subscription)
        self.faults = self.trace.about(event, "faults")
        self.reached = {int(hop.target): hop for hop in _rows(self.trace.about(event, "publications"))}

    def hops(self) -> Iterator[Hop]:
        """From the publisher's broker to the subscriber's, or as far as it came."""
        if self.start not in self.reached:
            for fault in _rows(self.faults):
                yield Hop(fault.time, self.start, None, LOST, lost(self.trace, fault))
            return
        for here, there in pairwise(self.path):
            hop = self.reached[here]
            if there not in self.reached:
                yield self._stopped(hop, here, there)
                return
            yield Hop(hop.time, here, there, SENT, *self._sent(int(hop.step), here, there))
        yield self._arrived(self.reached[self.home])

    def _sent(self, step: int, here: int, there: int) -> tuple[str, int]:
        sends_to = strategy(self.trace.parameters["routing"]["strategy"]).sends_to
        if there in reaches(self.version.tree, here, sends_to)[1]:
            return (AS_ALL if sends_to == "nobody" else UPWARDS), NOBODY
        truth, mine = self.truth, self.subscription
        table = sorted(truth.knowledge.table(here, there, self.version.begun(here, there), step))
        entries = truth.matching_of(self.event, table)
        pruned = self.trace.parameters["routing"].get("mode") == "prune"
        if not entries:
            return UNKNOWN, NOBODY
        if not self.matches:
            return OTHER, entries[0]
        cover = truth.cover_among(entries, mine)
        if mine in entries and not (pruned and cover is not None):  # events are not compared with what is pruned
            return ITSELF, NOBODY
        return (ALIKE, entries[0]) if cover is None else (COVER, cover)

    def _stopped(self, hop: Any, here: int, there: int) -> Hop:
        """It came here, and did not come to the next broker."""
        rows = self.faults
        over = (rows["broker"] == here) & (rows["neighbour"] == there) & (rows["kind"] == LINK_DOWN)
        there_lost = (rows["broker"] == there) & (rows["neighbour"] == here) & (rows["kind"] != LINK_DOWN)
        in_service = (rows["broker"] == here) & (rows["kind"] == CRASHED)
        for fault in _rows(rows[over | there_lost | in_service]):
            return Hop(fault.time, here, there, LOST, lost(self.trace, fault))
        why, who, link = self._absent(int(hop.step), [*reversed(self.path[self.path.index(there) :]), here])
        return Hop(hop.time, here, there, KEPT, why, who, link)

    def _absent(self, step: int, way: list[int]) -> tuple[str, int, tuple[int, int]]:
        """Why no entry for the subscription was in the table at the end of a way from its broker."""
        truth, nobody, nowhere = self.truth, NOBODY, (NOBODY, NOBODY)
        if not self.matches:
            return NO_MATCH, nobody, nowhere
        gone = self._not_at_home(step)
        if gone:
            return gone, nobody, nowhere
        spread_before = untraced({"operations": self.trace.arrow("operations")})
        if spread_before or self.trace.parameters.get("run", {}).get("sample_decisions", 1.0) < 1.0:
            return UNTOLD, nobody, nowhere
        gap = truth.knowledge.gap(
            way, self.version, self.subscription, step, lambda standing: truth.matches(self.event, standing)
        )
        if gap is None:
            return UNEXPLAINED, nobody, nowhere
        return (ASLEEP if gap.asleep else NOT_THERE), gap.standing, (gap.here, gap.there)

    def _not_at_home(self, step: int) -> str:
        """Why the subscriber's own broker did not have the subscription at a step; empty if it did."""
        if not self.truth.made(self.subscription, step):
            return NOT_MADE
        if not self.truth.in_force(self.subscription, step):
            return LEFT
        own = self.truth.knowledge.table(self.home, CLIENT, SHARED, step)
        return "" if self.subscription in own else FORGOTTEN

    def _arrived(self, hop: Any) -> Hop:
        truth = self.truth
        mine = self.trace.about(self.event, "deliveries")
        mine = mine[mine["subscription"] == self.subscription]
        if len(mine):
            row = mine.iloc[0]
            return Hop(float(row.time), self.home, None, DELIVERED, f"rank {int(row['rank'])}, score {row.score:g}")
        step, number = int(hop.step), 0
        why = NO_MATCH if not self.matches else self._not_at_home(step)
        if not why:
            asking = truth.asking(self.event)
            local = asking[truth.homes[asking] == self.home]
            scores = dict(zip(local.tolist(), (-truth.scores(self.event, local, step)).tolist(), strict=True))
            own = scores[self.subscription], self.subscription
            number = sum((score, other) < own for other, score in scores.items())
            beaten = truth.k is not None and number >= truth.k
            why = BEATEN if beaten else CRASHED_HERE if truth.crashed(self.event, self.home) else UNEXPLAINED
        return Hop(float(hop.time), self.home, None, NOT_DELIVERED, why, number=number)

    def words(self, hop: Hop) -> str:
        """A hop in one line."""
        names = self.trace.names
        who = self.called(hop.who) if hop.who != NOBODY else ""
        here, there = (names.get(broker, "") for broker in hop.link)
        why = hop.why.format(who=who, here=here, there=there, number=hop.number, k=self.truth.k, look=self._look)
        link = "" if hop.there is None else f" {'→' if hop.what == SENT else '✗'} {names[hop.there]}"
        return f"{hop.time:10.3f} ms  {names[hop.here]}{link}: {hop.what}{why}"

    def called(self, entry: int) -> str:
        """A subscription or merger by name."""
        return f"merger {NOBODY - entry}" if entry < NOBODY else self.trace.subscription(entry)

    @property
    def _look(self) -> str:
        return self.trace.look_at_tables(self.subscription)
