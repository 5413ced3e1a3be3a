"""The truth where the k best of the whole network are served: worked out centrally, event by event.

A subscription is *there* for an event if the event reaches it, its client asked for it before the event was over, and
its end had not reached every broker when the event was published. It is *firm* if it also had settled when the event
was published, and stayed until the event was over. Brokers may disagree about the others while the event is under way.
Where ranks change, each rank is a row (oracle_versions.py), and the best of the rows that are there counts. So

- a firm subscription that fewer than k that are there outrank must be served: else it is *missed*;
- each one served must be there, be served at home, and be outranked by fewer than k firm ones: else it is *spurious*.
  Nobody is served twice, and no more than k are. Where all are firm, ranks are 1, 2, 3, … in the order of scores, ties
  by id, and scores are right;
- anything else that is lacking, up to k of those in force when the event was published, is *transient*. A fault or a
  full queue may cost any winner, and lets the next ones be served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from broker.trace.schema import CLIENT
from sim.experiment.oracle_events import (
    A_COPY_DROPPED,
    A_COPY_LOST,
    COUNTED,
    DROPPED,
    DUPLICATES,
    FAULT,
    MISSED,
    SAME_SCORE,
    SPURIOUS,
    TRANSIENT,
    Lives,
)
from sim.experiment.oracle_paths import ROUNDING, Columns, Part, latencies
from sim.experiment.oracle_truth import Floats, Ints, Terms, scores_of


@dataclass(frozen=True)
class Subscriptions:
    """One value per row of the terms that is a subscription."""

    terms: Terms
    lives: Lives
    home: Ints
    gone: Floats  # when the messages of its end had been processed, inf if it stayed

    @staticmethod
    def of(terms: Terms, lives: Lives, gone: Floats) -> Subscriptions:
        home = np.searchsorted(lives.first, np.arange(len(lives.number)), side="right") - 1
        return Subscriptions(terms, lives, home, gone)


@dataclass(frozen=True)
class Under:
    """When an event was under way, and what went wrong meanwhile."""

    published: float
    ended: float
    faulty: bool
    dropped: bool

    @staticmethod
    def way(published: float, ended: float, happened: int, broken: Floats) -> Under:
        faulty = bool(happened & A_COPY_LOST) or bool(((broken[:, 0] <= ended) & (published <= broken[:, 1])).any())
        return Under(published, ended, faulty, bool(happened & A_COPY_DROPPED))


def judge_event(
    known: Subscriptions, values: Floats, weights: Floats, under: Under, served: Columns, k: int, counts: Ints
) -> None:
    """Add to the counts of COUNTED; `served`: the deliveries of one event."""
    lives = known.lives
    count = len(lives.number)
    scores = scores_of(known.terms, values, weights)[:count]
    there = ~np.isnan(scores) & (lives.asked <= under.ended) & (known.gone > under.published)
    firm = there & (lives.settled <= under.published) & (lives.asked_to_leave > under.ended)
    rows = np.flatnonzero(there)
    rows = rows[np.lexsort((lives.number[rows], -scores[rows]))]  # best first
    in_force = int(((lives.asked[rows] <= under.published) & (lives.asked_to_leave[rows] > under.published)).sum())
    rows = rows[np.sort(np.unique(lives.number[rows], return_index=True)[1])]  # the best rank of each
    outranked = np.full(count, count)
    outranked[rows] = np.cumsum(firm[rows]) - firm[rows]  # by how many firm ones
    required = rows[:k][firm[rows[:k]]]

    row_of = dict(zip(lives.number.tolist(), range(count), strict=True)) if len(served["subscription"]) else {}
    row_of.update(zip(lives.number[rows].tolist(), rows.tolist(), strict=True))
    got = [row_of.get(s, -1) for s in served["subscription"].tolist()]
    unique = np.array(sorted(set(got)), dtype=np.int64)
    at_home = {(r, b) for r, b in zip(got, served["broker"].tolist(), strict=True) if r >= 0 and known.home[r] == b}
    right = np.array([r for r in unique.tolist() if r >= 0 and (r, int(known.home[r])) in at_home], dtype=np.int64)
    right = right[outranked[right] < k]
    counts[DUPLICATES] += len(got) - len(unique)
    missed = len(np.setdiff1d(required, right))
    lacking = max(0, min(k, in_force) - len(right) - missed)
    if under.faulty or under.dropped:
        counts[FAULT if under.faulty else DROPPED] += missed + lacking
        return
    counts[MISSED] += missed
    counts[TRANSIENT] += lacking
    extra = len(unique) - len(right) + max(0, len(right) - k)
    counts[SPURIOUS] += extra
    if not extra and firm[rows].all() and len(got) == len(unique):
        by_rank = np.argsort(served["rank"], kind="stable")
        in_order = np.array(got, dtype=np.int64)[by_rank].tolist() == rows[: len(got)].tolist()
        ranks = served["rank"][by_rank].tolist() == list(range(1, len(got) + 1))
        alike = np.allclose(served["score"], scores[got], SAME_SCORE, SAME_SCORE)
        counts[SPURIOUS] += not (in_order and ranks and alike) and not missed  # right ones, wrong order or score


def judge_events(
    known: Subscriptions,
    numbers: Ints,
    hops: Part,
    said: Part,
    served: Part,
    values: Floats,
    weights: Floats,
    happened: Ints,
    broken: Floats,
    k: int,
) -> tuple[Ints, Ints]:
    """Counts as in COUNTED of events `numbers`, and which rows of `said` are about events that lost no copy.

    `hops`, `said` and `served`: publications, ranked messages and deliveries.
    """
    counts, sound = np.zeros(len(COUNTED), np.int64), [np.empty(0, np.int64)]
    for place, number in enumerate(numbers.tolist()):
        of_hops, of_said, of_served = (slice(*part.first[place : place + 2]) for part in (hops, said, served))
        if of_hops.start == of_hops.stop:
            continue  # never published in this run
        published = float(hops.columns["published"][of_hops.start])
        ended = float((said.columns["time"][of_said] + said.columns["service"][of_said]).max(initial=published))
        under = Under.way(published, ended, int(happened[number]), broken)
        rows = {name: column[of_served] for name, column in served.columns.items()}
        judge_event(known, values[number], weights[min(number, len(weights) - 1)], under, rows, k, counts)
        if not (under.faulty or under.dropped):
            sound.append(np.arange(of_said.start, of_said.stop))
    return counts, np.concatenate(sound)


def wrong_times(said: Columns, sound: Ints, served: Columns, links: Any, brokers: int, instant: bool) -> int:
    """Messages and deliveries whose recorded times do not follow from their links, waits and services.

    A message or delivery leaves its broker when the service of a message about the same event ends there. `sound`: the
    rows of `said` to judge. Where something failed or was refused, brokers go on when they notice, and no message
    says when that was.
    """
    said = {name: column[sound] for name, column in said.items()}
    first = said["source"] == CLIENT
    wire = np.where(first, 0.0, latencies(links, brokers, said["source"], said["target"]))
    slack = ROUNDING * (1.0 + np.abs(said["time"]))
    right = np.abs(said["time"] - said["sent"] - wire - said["waited"]) <= slack
    right &= (said["waited"] >= 0.0) & (said["service"] >= 0.0)
    if instant:
        right &= (said["waited"] <= slack) & (said["service"] == 0.0)
    left = said["time"] + said["service"]
    ends = set(zip(said["event"].tolist(), said["target"].tolist(), left.tolist(), strict=True))
    begins = zip(said["event"].tolist(), said["source"].tolist(), said["sent"].tolist(), strict=True)
    caused = np.array([begin in ends for begin in begins], dtype=bool)
    judged = set(said["event"].tolist())
    wrong = int((~right).sum() + (~caused & ~first).sum())
    deliveries = zip(served["event"].tolist(), served["broker"].tolist(), served["time"].tolist(), strict=True)
    return wrong + sum(delivery[0] in judged and delivery not in ends for delivery in deliveries)
