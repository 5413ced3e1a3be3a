"""The truth where the k best of the whole network are served: worked out centrally, event by event.

Due are the k best of all subscriptions in force when the event was published. While requests are under way, brokers may
disagree about who takes part. A subscription is *there* for an event if the event reaches it, its broker accepted it
before the event was over, and its end had not reached every broker when the event was published. It is *firm* if it
also had settled when the event was published, and stayed until the event was over. Where ranks change, each rank is a
row (oracle_versions.py), and the best of the rows that are there counts. So

- a firm subscription that fewer than k that are there outrank is due and must be served: else it is *missed*;
- each one served must be there, be served at home, and be outranked by fewer than k firm ones: else it is *spurious*.
  Nobody is served twice, and no more than k are. Where all are firm, ranks are 1, 2, 3, … in the order of scores, ties
  by id, and scores are right;
- anything else that is due and lacking is *transient*. A fault or a full queue may cost any winner, and lets the next
  ones be served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from broker.trace.schema import CLIENT
from sim.experiment.oracle_due import Truth, in_force
from sim.experiment.oracle_events import (
    AFTER,
    COUNTED,
    DELIVERED,
    DUE,
    DUPLICATES,
    DURING,
    MISSED,
    SAME_SCORE,
    SPURIOUS,
    TRANSIENT,
    UNAVOIDABLE,
    UNDUE,
    Fates,
    Served,
)
from sim.experiment.oracle_floor import Floor
from sim.experiment.oracle_paths import ROUNDING, Columns, latencies
from sim.experiment.oracle_truth import Bools, Floats, Ints, all_reached, scores_of_pairs


@dataclass(frozen=True)
class Subscriptions:
    """All subscriptions of the network."""

    truth: Truth
    gone: Ints  # per row, the step of the last message by which it ended, NEVER if it stayed


@dataclass(frozen=True)
class Under:
    """The steps between which an event was under way, and why it may have been lost meanwhile."""

    published: int
    ended: int
    cause: int  # MISSED: nothing went wrong
    flooded: Bools | None = None  # the brokers that flooding reaches; None: all


def judge_event(known: Subscriptions, reached: Ints, scores: Floats, under: Under, served: Served) -> Ints:
    """Counts as in COUNTED; `reached`: the rows that one event reaches, `served`: its deliveries."""
    counts = np.zeros(len(COUNTED), np.int64)
    lives, home, k = known.truth.lives, known.truth.home, known.truth.k
    order = np.lexsort((lives.number[reached], -scores))  # best first
    reached, scores = reached[order], scores[order]
    entitled_rows = reached[in_force(lives, reached, np.array(under.published))][:k]
    entitled = lives.number[entitled_rows]
    score_of = dict(zip(reached.tolist(), scores.tolist(), strict=True))
    rows = reached[(lives.came[reached] <= under.ended) & (known.gone[reached] >= under.published)]
    rows = rows[np.sort(np.unique(lives.number[rows], return_index=True)[1])]  # the best rank of each
    firm = (lives.settled[rows] < under.published) & (lives.left[rows] > under.ended)
    outranked = dict(zip(rows.tolist(), (np.cumsum(firm) - firm).tolist(), strict=True))  # by how many firm ones
    required = lives.number[rows[:k][firm[:k]]]

    row_of = dict(zip(lives.number[rows].tolist(), rows.tolist(), strict=True))
    given = list(zip(served.subscription.tolist(), served.broker.tolist(), strict=True))
    unique = dict.fromkeys(number for number, _ in given)
    at_home = {number for number, broker in given if broker in home[lives.number == number]}
    right = [number for number in unique if number in at_home and outranked.get(row_of.get(number, -1), k) < k]
    made = np.isin(entitled, list(at_home))
    lost = entitled[~made]
    if under.flooded is not None:
        counts[UNAVOIDABLE] += (~under.flooded[home[entitled_rows[~made]]]).sum()
    counts[DUE] += len(entitled)
    counts[DELIVERED] += made.sum()
    counts[UNDUE] += len(unique) - made.sum()
    counts[DUPLICATES] += len(given) - len(unique)
    if under.cause != MISSED:
        counts[under.cause] += len(lost)
        return counts
    missed = int(np.isin(lost, required).sum())
    counts[MISSED] += missed
    counts[TRANSIENT] += len(lost) - missed
    extra = len(unique) - len(right) + max(0, len(right) - k)
    counts[SPURIOUS] += extra
    if not extra and firm.all() and len(given) == len(unique):
        by_rank = np.argsort(served.rank, kind="stable")
        in_order = served.subscription[by_rank].tolist() == lives.number[rows[: len(given)]].tolist()
        ranks = served.rank[by_rank].tolist() == list(range(1, len(given) + 1))
        expected = [score_of[row_of[number]] for number, _ in given]
        alike = np.allclose(served.score, expected, SAME_SCORE, SAME_SCORE)
        counts[SPURIOUS] += not (in_order and ranks and alike) and not missed  # right ones, wrong order or score
    return counts


def judge_events(
    known: Subscriptions, values: Floats, weights: Floats, fates: Fates, served: Served, floor: Floor | None
) -> Ints:
    """Counts as in COUNTED of some events; `floor`: None where nothing ever failed."""
    truth, counts = known.truth, np.zeros(len(COUNTED), np.int64)
    parts = [all_reached(truth.terms, chunk, values) for chunk in truth.chunks]
    event, row = (np.concatenate([np.empty(0, np.int64), *(part[side] for part in parts)]) for side in (0, 1))
    scores = scores_of_pairs(truth.terms, values, weights, event, row)
    order, causes = np.argsort(event, kind="stable"), fates.cause
    edges = np.searchsorted(event[order], np.arange(len(values) + 1))
    edges_served = np.searchsorted(served.event, np.arange(len(values) + 1))
    for place in np.flatnonzero(fates.published >= 0).tolist():
        some = order[edges[place] : edges[place + 1]]
        rows = slice(*edges_served[place : place + 2])
        takes = None if floor is None else floor.takes(int(fates.publisher[place]), float(fates.since[place]))
        flooded = None if takes is None else np.isfinite(takes)
        under = Under(int(fates.published[place]), int(fates.ended[place]), int(causes[place]), flooded)
        got = Served(*(column[rows] for column in vars(served).values()))
        its = judge_event(known, row[some], scores[some], under, got)
        its[DURING] = its[[DUE, DELIVERED, UNAVOIDABLE]] * fates.during[place]
        its[AFTER] = its[[DUE, DELIVERED]] * fates.after[place]
        counts += its
    return counts


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
