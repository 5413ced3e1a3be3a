"""Answers of matchers, and the work that they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topk.checks import Floats, Ints

Match = tuple[int, float]
Found = tuple[Ints, Floats]  # ids and scores, best first
NONE_FOUND: Found = (np.empty(0, np.int64), np.empty(0))


@dataclass
class Stats:
    """Work done since construction, or since the last `reset`."""

    queries: int = 0
    entries: int = 0  # subscriptions or predicates compared with an event
    nodes: int = 0  # tree nodes, cells, lists or blocks looked at
    comparisons: int = 0  # of an event's value with a predicate or a node's range, look-ups, weights read for bounds
    queued: int = 0  # keys pushed to, popped from or sorted in heaps and other queues
    probes: int = 0  # words of bitmaps and headers of lists looked at
    getnexts: int = 0  # results taken from one-dimensional iterators
    inserts: int = 0
    deletes: int = 0
    rebuilds: int = 0  # static structures built, the first one included

    def add(self, **counts: int) -> None:
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def reset(self) -> None:
        vars(self).update(vars(Stats()))


def pairs(found: Found) -> list[Match]:
    ids, scores = found
    return list(zip(ids.tolist(), scores.tolist(), strict=True))


class Batch(Sequence[list[Match]]):
    """The answers to many events as arrays; indexing gives one event's answer as a list of pairs."""

    def __init__(self, ids: Ints, scores: Floats, counts: Ints) -> None:
        self.ids = ids  # (m, k); row i is valid up to counts[i]
        self.scores = scores
        self.counts = counts

    @classmethod
    def of(cls, answers: Sequence[Found]) -> Batch:
        counts = np.array([len(ids) for ids, _ in answers], dtype=np.int64)
        width = int(counts.max(initial=0))
        ids = np.full((len(answers), width), -1, dtype=np.int64)
        scores = np.full((len(answers), width), np.nan)
        for i, (found, score) in enumerate(answers):
            ids[i, : len(found)] = found
            scores[i, : len(found)] = score
        return cls(ids, scores, counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        count = self.counts[i]
        return pairs((self.ids[i, :count], self.scores[i, :count]))
