"""What every sparse matcher offers. A matcher implements `_search`; events, batches and updates are handled here.

Batches run on all cores: kernels release the interpreter lock and each thread has its own scratch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from coverlay import CoverlayError
from topk.base import Batch, Found, Match, Stats
from topk.sparse.catalogue import Floats, Predicate, SparseCatalogue, from_predicates
from topk.sparse.event import Event, Events
from topk.sparse.scores import Score, score_of
from topk.sparse.store import Store
from topk.threads import WORKERS, in_threads


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


class SparseIndex(ABC):
    """The k best expressions that an event satisfies. Create one with `topk.create` from a sparse catalogue."""

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]] = {}  # option → one line of help

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum") -> None:
        self.dimensions = catalogue.dimensions
        self.score = score_of(score)  # keeps the compiled function of a custom score alive
        self.stats = Stats()
        self._scoring = self.score.scoring
        self._store = Store(catalogue)
        self._scratch = [Scratch(self.dimensions)]

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, id: object) -> bool:
        return id in self._store.row_of

    @abstractmethod
    def _search(self, event: Event, k: int, scratch: Scratch) -> int:
        """Leave the k best in scratch.ids and scratch.scores, best first; returns how many there are."""

    @property
    @abstractmethod
    def overhead(self) -> int:
        """Bytes beyond the expressions themselves."""

    @abstractmethod
    def check(self) -> None:
        """Verify the structure's invariants; AssertionError names the first one broken."""

    def _insert(self, row: int) -> None:  # noqa: B027 (a scan has nothing to do)
        """Take the stored row into the structure."""

    def _delete(self, row: int) -> None:  # noqa: B027
        """Take the row out; it is still stored."""

    def _before_search(self) -> None:
        """Finish postponed work; runs once per call, on the calling thread."""
        self._store.refresh()

    @property
    def nbytes(self) -> int:
        return self._store.nbytes + self.overhead

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
        while len(self._scratch) < WORKERS:
            self._scratch.append(Scratch(self.dimensions))

        def task(part: int) -> None:
            for i in range(part, len(many), WORKERS):
                scratch = self._scratch[part]
                found = self._answer(many[i], wanted, scratch)
                answers[i] = scratch.ids[:found].copy(), scratch.scores[:found].copy()

        in_threads(task, range(WORKERS))
        self._account(len(many))
        return Batch.of(answers)

    def _answer(self, event: Event, k: int, scratch: Scratch) -> int:
        if k == 0:
            return 0
        scratch.room(k)
        return self._search(event, k, scratch)

    def _account(self, queries: int) -> None:
        self.stats.queries += queries
        for scratch in self._scratch:
            self.stats.entries += int(scratch.counts[0])
            self.stats.nodes += int(scratch.counts[1])
            scratch.counts[:2] = 0

    def _count(self, k: int | None) -> int:
        if k is not None and k < 0:
            raise CoverlayError(f"k must be 0 or more, or None for all matches, not {k}")
        return len(self) if k is None else min(int(k), len(self))

    # ---- updates ----------------------------------------------------------------------------------------

    def add(self, id: int, expression: Sequence[Predicate | tuple[Any, ...]]) -> None:
        """Add one expression; CoverlayError if the id is taken or a predicate is not valid."""
        if id in self:
            raise CoverlayError(f"subscription {id} is already in the index")
        self.add_one(from_predicates([expression], dimensions=self.dimensions, ids=[id]))

    def add_one(self, one: SparseCatalogue) -> None:
        """Add the only row of a catalogue."""
        self._insert(self._store.add(one))
        self.stats.inserts += 1

    def remove(self, id: int) -> None:
        """Remove one expression; CoverlayError if it is not there."""
        if id not in self:
            raise CoverlayError(f"subscription {id} is not in the index")
        self._delete(self._store.row_of[id])
        self._store.remove(id)
        self.stats.deletes += 1


def columns_of(event: Event) -> tuple[Any, Floats, Floats, Floats]:
    return event.attributes, event.lo, event.hi, event.weights
