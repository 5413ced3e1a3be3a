"""What every sparse matcher offers. A matcher implements `_search`; events, batches and updates are handled here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from topk.contract import Batch, Found, Match
from topk.sparse.catalogue import Floats, Predicate, SparseCatalogue, from_predicates
from topk.sparse.event import Event, Events
from topk.sparse.scores import Score, score_of
from topk.sparse.upkeep import StoredIndex


class Scratch:
    """What one thread needs while it searches."""

    def __init__(self, dimensions: int) -> None:
        self.event = np.full((3, max(dimensions, 1)), np.nan)
        self.codes = np.zeros((max(dimensions, 1), 2), np.uint32)
        self.scores = np.empty(0)
        self.ids = np.empty(0, np.int64)
        self.counts = np.zeros(4, np.int64)  # entries, nodes, and what a matcher wants

    def room(self, k: int) -> None:
        if len(self.ids) < k:
            self.scores, self.ids = np.empty(k), np.empty(k, np.int64)


class SparseIndex(StoredIndex[Scratch]):
    """The k best expressions that an event satisfies. Create one with `topk.create` from a sparse catalogue."""

    scratch = Scratch

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum") -> None:
        super().__init__(catalogue)
        self.score = score_of(score)  # keeps the compiled function of a custom score alive
        self._scoring = self.score.scoring

    @abstractmethod
    def _search(self, event: Event, k: int, scratch: Scratch) -> int:
        """Leave the k best in scratch.ids and scratch.scores, best first; returns how many there are."""

    def _before_search(self) -> None:
        """Finish postponed work; runs once per call, on the calling thread."""
        self._store.refresh()

    # ---- queries ----------------------------------------------------------------------------------------

    def top(self, event: Any, k: int | None) -> list[Match]:
        """The k best matches (all of them for None) as (id, score), best first, ties by ascending id."""
        wanted = self._count(k)
        self._before_search()
        scratch = self._scratch[0]
        found = self._answer(Event.of(event, self.dimensions), wanted, scratch)
        self._account(1)
        return list(zip(scratch.ids[:found].tolist(), scratch.scores[:found].tolist(), strict=True))

    def count_matches(self, event: Any) -> int:
        """How many expressions match, before any top-k."""
        return len(self.top(event, None))

    def top_many(self, events: Any, k: int | None) -> Batch:
        """`top` for each event, on all cores."""
        wanted = self._count(k)
        many = Events.of(events, self.dimensions)
        self._before_search()
        answers: list[Found] = [(np.empty(0, np.int64), np.empty(0))] * len(many)

        def task(i: int, scratch: Scratch) -> None:
            found = self._answer(many[i], wanted, scratch)
            answers[i] = scratch.ids[:found].copy(), scratch.scores[:found].copy()

        self._for_each(len(many), task)
        return Batch.of(answers)

    def _answer(self, event: Event, k: int, scratch: Scratch) -> int:
        if k == 0:
            return 0
        scratch.room(k)
        return self._search(event, k, scratch)

    # ---- updates ----------------------------------------------------------------------------------------

    def add(self, id: int, expression: Sequence[Predicate | tuple[Any, ...]]) -> None:
        """Add one expression; CoverlayError if the id is taken or a predicate is not valid."""
        self.add_one(from_predicates([expression], dimensions=self.dimensions, ids=[self._fresh(id)]))

    def add_one(self, one: SparseCatalogue) -> None:
        """Add the only row of a catalogue."""
        self._insert(self._store.add(one))
        self.stats.inserts += 1


def columns_of(event: Event) -> tuple[Any, Floats, Floats, Floats]:
    return event.attributes, event.lo, event.hi, event.weights
