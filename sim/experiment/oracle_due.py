"""What was due: for every event that a client tried to publish and every broker, the k best subscriptions in force.

In force when the event arrived at the broker or, if it never did, when it was published. Deliveries are not looked at
here. All comparisons are by step, the one order in which brokers processed messages: at equal times only steps tell
what came first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sim.experiment.oracle_truth import Bools, Chunk, Floats, Ints, Terms, all_reached, scores_of_pairs

NEVER = np.iinfo(np.int64).max


class Lives(NamedTuple):
    """Per row: its number, and the steps at which it came, settled and left. Sorted by home, then as it is ranked."""

    first: Ints  # (brokers + 1,) where the rows of a home begin; after the last home: rows that never came
    number: Ints
    came: Ints  # its broker accepted it
    left: Ints  # its broker removed it, or NEVER
    settled: Ints  # the last message by which it, or one that stands for it, spread

    @property
    def brokers(self) -> int:
        return len(self.first) - 1

    @property
    def home(self) -> Ints:
        """The broker of each row; of those that never came, one more than there are."""
        return np.searchsorted(self.first, np.arange(len(self.number)), side="right") - 1


@dataclass(frozen=True)
class Truth:
    """What decides who is due, the same for all events."""

    terms: Terms
    chunks: list[Chunk]  # of the rows that came
    lives: Lives
    home: Ints
    by_rank: bool  # rows of a home are sorted by score, which does not depend on the event
    k: int


@dataclass(frozen=True)
class Due:
    """What was due in some events, sorted by event, broker and rank."""

    event: Ints  # the place of the event among those that are judged together
    broker: Ints
    row: Ints
    number: Ints
    rank: Ints
    score: Floats


def due_of(truth: Truth, values: Floats, weights: Floats, at: Ints) -> Due:
    """`at`: (events, brokers) the step at which who is in force is due; negative: nobody is."""
    lives, home, brokers = truth.lives, truth.home, truth.lives.brokers
    found = []
    for chunk in truth.chunks:
        event, row = all_reached(truth.terms, chunk, values)
        step = at[event, home[row]]
        kept = in_force(lives, row, step)
        event, row = event[kept], row[kept]
        if truth.by_rank:
            best = _places(event * brokers + home[row]) < truth.k  # of this chunk: others may be better
            event, row = event[best], row[best]
        found.append((event, row))
    event, row = (np.concatenate([np.empty(0, np.int64), *(pair[side] for pair in found)]) for side in (0, 1))
    scores = scores_of_pairs(truth.terms, values, weights, event, row)
    group = event * brokers + home[row]
    order = np.argsort(group, kind="stable") if truth.by_rank else np.lexsort((lives.number[row], -scores, group))
    places = _places(group[order])
    order, places = order[places < truth.k], places[places < truth.k]
    event, row = event[order], row[order]
    return Due(event, home[row], row, lives.number[row], places + 1, scores[order])


def in_force(lives: Lives, row: Ints, step: Ints) -> Bools:
    """Was each row in force at a step? Messages with smaller steps had been processed, others had not."""
    inside: Bools = (lives.came[row] < step) & (step <= lives.left[row])
    return inside


def _places(groups: Ints) -> Ints:
    """The place of each element among the equal ones beside it, from 0 on."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    counts = np.diff(starts, append=len(groups))
    return np.arange(len(groups)) - np.repeat(starts, counts)
