"""What was due against what was delivered: each due delivery was made or has one cause of loss.

A broker must have served the k best subscriptions in force that the event reaches, best first (oracle_due.py). What
follows is set against set, event by event and broker by broker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.experiment.oracle_due import Due, Lives
from sim.experiment.oracle_floor import Floor
from sim.experiment.oracle_truth import Bools, Floats, Ints

# What is counted, in the order of the array of counts.
COUNTED = (
    *("missed", "duplicates", "spurious", "strays", "missed_transient", "missed_dropped", "missed_fault"),
    *("missed_refused", "missed_unpublished", "due", "due_delivered", "undue", "unavoidable"),
    *("due_during", "due_delivered_during", "unavoidable_during", "due_after", "due_delivered_after"),
)
MISSED, DUPLICATES, SPURIOUS, STRAYS, TRANSIENT, DROPPED, FAULT, REFUSED, UNPUBLISHED = range(9)
DUE, DELIVERED, UNDUE, UNAVOIDABLE = range(9, 13)
DURING, AFTER = slice(13, 16), slice(16, 18)  # of these, those of events published while something was down, and later
CAUSES = (MISSED, TRANSIENT, DROPPED, FAULT, REFUSED, UNPUBLISHED)  # of a loss: each has exactly one
SAME_SCORE = 1e-9  # relative to 1 + score: weights added up in another order differ in their last bits
# Bits: what happened to copies of an event, or to the event before its broker took it in.
A_COPY_DROPPED, A_COPY_LOST, NO_ROOM, NO_BROKER = 1, 2, 4, 8


@dataclass(frozen=True)
class Fates:
    """What became of some events; one value per event."""

    published: Ints  # step; −1: no client published it
    publisher: Ints  # its broker
    since: Floats  # time
    ended: Ints  # the last step of a message about it; before `published` where there is none
    entered: Bools  # the publisher's broker took it in
    happened: Ints  # bits
    broken: Floats  # times in which something was down or under repair, (n, 2)
    faulty: Bools  # a copy was lost to a fault, or something was down or under repair meanwhile
    during: Bools  # published while something was down
    after: Bools  # published when something had been down, and all was back

    def met_repair(self, since: Floats, until: Floats) -> Bools:
        """Was something down or under repair between these times?"""
        return _met(self.broken, since, until)

    @property
    def cause(self) -> Ints:
        """The cause of what is lost, unless the subscription itself was on its way or leaving."""
        cause = np.where(self.happened & A_COPY_DROPPED, DROPPED, MISSED)
        cause = np.where(self.faulty, FAULT, cause)
        cause = np.where(~self.entered & (self.happened & NO_ROOM != 0), REFUSED, cause)
        return np.where(~self.entered & (self.happened & NO_BROKER != 0), UNPUBLISHED, cause)


@dataclass(frozen=True)
class Served:
    """The deliveries of some events."""

    event: Ints  # its place
    broker: Ints
    subscription: Ints
    rank: Ints
    score: Floats


def fates_of(
    published: Ints,
    publisher: Ints,
    since: Floats,
    messages: tuple[Ints, Ints, Floats],
    happened: Ints,
    broken: Floats,
    down: Floats,
) -> Fates:
    """`messages`: which events they were about, their steps, and when each was over; `down`: as `broken`, in Fates."""
    hop_event, step, until = messages
    ended, over = published - 1, since.copy()
    np.maximum.at(ended, hop_event, step)
    np.maximum.at(over, hop_event, until)
    faulty = (happened & A_COPY_LOST != 0) | _met(broken, since, over)
    entered = np.bincount(hop_event, minlength=len(published)) > 0
    during = np.zeros(len(since), bool)
    for begin, end in down:
        during |= (begin <= since) & (since < end)
    after = (since >= down[:, 0].min(initial=np.inf)) & ~during
    return Fates(published, publisher, since, ended, entered, happened, broken, faulty, during, after)


def _met(broken: Floats, since: Floats, until: Floats) -> Bools:
    met = np.zeros(len(since), bool)
    for begin, end in broken:
        met |= (begin <= until) & (since <= end)
    return met


def compare(due: Due, served: Served, fates: Fates, lives: Lives, reached: Bools, floor: Floor | None) -> Ints:
    """Counts as in COUNTED, without strays; `reached`: (events, brokers) whether an event arrived at a broker.

    `floor`: None where nothing ever failed.
    """
    counts = np.zeros(len(COUNTED), np.int64)
    brokers, many = lives.brokers, int(max(due.number.max(initial=0), served.subscription.max(initial=0))) + 1
    due_group, group = due.event * brokers + due.broker, served.event * brokers + served.broker
    due_key, key = due_group * many + due.number, group * many + served.subscription
    first = np.zeros(len(key), bool)
    first[np.unique(key, return_index=True)[1]] = True
    as_due, made = np.isin(key, due_key) & first, np.isin(due_key, key)
    extra, lost = first & ~as_due, np.flatnonzero(~made)

    faulty = fates.faulty[served.event]
    counts[DUE], counts[DELIVERED], counts[UNDUE] = len(due_key), as_due.sum(), extra.sum()
    counts[DUPLICATES] += (~first).sum()
    # A broker that lost its memory serves others until its clients are back.
    counts[SPURIOUS] += (extra & ~faulty).sum() + _disordered(due, due_group, made, served, group, as_due)
    event = due.event[lost]
    arrival = fates.since[event]
    if floor is not None:
        arrival = floor.arrival(fates.publisher[event], arrival, due.broker[lost])
    counts += np.bincount(_causes(due, lost, fates, lives, reached, arrival), minlength=len(COUNTED))
    nowhere = np.isinf(arrival)
    counts[UNAVOIDABLE] = nowhere.sum()
    about = due.event, served.event[as_due], event[nowhere]
    counts[DURING] = [fates.during[events].sum() for events in about]
    counts[AFTER] = [fates.after[events].sum() for events in about[:2]]
    return counts


def _causes(due: Due, lost: Ints, fates: Fates, lives: Lives, reached: Bools, arrival: Floats) -> Ints:
    """The cause of each lost delivery; `arrival`: of a flood at its broker, ∞ where no way led there."""
    event, row = due.event[lost], due.row[lost]
    cause = fates.cause[event]
    no_way = np.isinf(arrival) | fates.met_repair(fates.since[event], arrival)
    cause = np.where(no_way & (cause == MISSED), FAULT, cause)
    arrived = reached[event, due.broker[lost]]
    cause = np.where(arrived & (cause == DROPPED), MISSED, cause)  # a copy that was dropped was not this one
    # While it spreads or leaves, tables may lack it; an event that nobody took in is lost to all.
    sure = (lives.settled[row] < fates.published[event]) & (lives.left[row] > fates.ended[event])
    outside = np.isin(cause, (REFUSED, UNPUBLISHED))
    return np.where(arrived | sure | outside, cause, TRANSIENT)


def _disordered(due: Due, due_group: Ints, made: Bools, served: Served, group: Ints, as_due: Bools) -> int:
    """Brokers that served the right ones for an event, in the wrong order or with a wrong rank or score."""
    wrong = np.concatenate([due_group[~made], group[~as_due]])
    here, there = ~np.isin(due_group, wrong), ~np.isin(group, wrong)
    order = np.flatnonzero(there)
    order = order[np.lexsort((served.rank[order], group[order]))]
    alike = due.number[here] == served.subscription[order]
    alike &= due.rank[here] == served.rank[order]
    alike &= np.abs(due.score[here] - served.score[order]) <= SAME_SCORE * (1.0 + np.abs(due.score[here]))
    return len(np.unique(due_group[here][~alike]))
