"""What every sparse matcher offers. A matcher implements `search`; events, batches and updates are handled here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError
from topk.answers import NONE_FOUND, Batch, Found, Match
from topk.checks import Floats, Ints
from topk.container import new_id, stored_id
from topk.predicates import Predicate, SparseCatalogue, from_predicates
from topk.sparse.event import Event, Events, Extra
from topk.sparse.scores import HELP, Score, score_of
from topk.sparse.upkeep import COUNTED, StoredIndex

_NOTHING: Extra = (np.empty((0, 4), np.int64), np.empty(0))


class Workspace(NamedTuple):
    """What kernels write to while one thread searches."""

    event: Floats  # (3, d) low, high and weight of the event by attribute, NaN between uses
    codes: NDArray[np.uint32]  # (d, 2) its values as codes
    scores: Floats  # the best so far
    ids: Ints
    counts: Ints  # as `COUNTED`


class Scratch:
    """The workspace of one thread."""

    def __init__(self, dimensions: int) -> None:
        d = max(dimensions, 1)
        self.counts, self.first = np.zeros(len(COUNTED), np.int64), True
        event, codes = np.full((3, d), np.nan), np.zeros((d, 2), np.uint32)
        self.workspace = Workspace(event, codes, np.empty(0), np.empty(0, np.int64), self.counts)

    def room(self, k: int) -> None:
        if len(self.workspace.ids) < k:
            self.workspace = self.workspace._replace(scores=np.empty(k), ids=np.empty(k, np.int64))


class SparseIndex(StoredIndex[Scratch]):
    """The k best expressions that an event satisfies. Create one with `topk.create` from a sparse catalogue.

    >>> import topk
    >>> wanted = topk.Catalogue.from_predicates([[(3, "between", (1, 5), 0.4), (7, "!=", 2.0, 0.1)]], dimensions=9)
    >>> index = topk.create("pivot", wanted)
    >>> index.add(4, [(3, ">=", 2.0, 0.2)])
    >>> index.top({3: 4.0, 7: 1.0}, k=5)
    [(0, 0.5), (4, 0.2)]
    >>> index, sorted(index)
    (<matcher pivot: 2 subscriptions of 9 attributes, sum>, [0, 4])

    With one attribute, a number is an event:

    >>> topk.create("scan", topk.Catalogue.from_predicates([[(0, "<", 5, 0.3)], [(0, ">", 5, 0.9)]])).top(4, k=1)
    [(0, 0.3)]
    """

    scratch = Scratch
    options: ClassVar[Mapping[str, str]] = {"score": HELP}

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum") -> None:
        super().__init__(catalogue)
        self.score = score_of(score)  # keeps the compiled function of a custom score alive
        self._scoring = self.score.scoring

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._scoring = self.score.scoring  # the address of a custom score is another one in another process

    def _manner(self) -> str:
        return f", {self.score.name}"

    def _extra(self, event: Event | None = None) -> Extra | None:
        """The event's ≠, ∉ and ∈, for kernels; None if neither it nor an expression has any."""
        if event is not None and event.extra is not None:
            return event.extra
        return _NOTHING if self.store.exceptions else None

    @abstractmethod
    def search(self, event: Event, k: int, scratch: Scratch) -> int:
        """Leave the k best in the workspace, best first; returns how many there are."""

    # ---- queries ----------------------------------------------------------------------------------------

    def top(self, event: Any, k: int | None) -> list[Match]:
        """The k best matches (all of them for None) as (id, score), best first, ties by ascending id."""
        wanted, asked = self._count(k), Event.of(event, self.dimensions)
        return self._one(lambda scratch: self._answer(asked, wanted, scratch))

    def top_many(self, events: Any, k: int | None) -> Batch:
        """`top` for each event, on all cores."""
        wanted = self._count(k)
        many = Events.of(events, self.dimensions)
        return self._batch(len(many), lambda i, scratch: self._answer(many[i], wanted, scratch))

    def _answer(self, event: Event, k: int, scratch: Scratch) -> Found:
        if k == 0:
            return NONE_FOUND
        scratch.room(k)
        count = self.search(event, k, scratch)
        return scratch.workspace.ids[:count].copy(), scratch.workspace.scores[:count].copy()

    # ---- updates ----------------------------------------------------------------------------------------

    def add(self, id: int, expression: Sequence[Predicate | tuple[Any, ...]]) -> None:
        """Add one expression; CoverlayError if the id is taken or a predicate is not valid."""
        self.add_one(self._made(new_id(id, self), expression))

    def update(self, id: int, expression: Sequence[Predicate | tuple[Any, ...]]) -> None:
        """Replace a stored expression; on a mistake nothing changes."""
        one = self._made(stored_id(id, self), expression)
        self.remove(id)
        self.add_one(one)

    def add_many(self, catalogue: SparseCatalogue) -> None:
        """Add all expressions of a catalogue; on a mistake none is added."""
        if catalogue.dimensions > self.dimensions:
            raise CoverlayError(f"expressions over {catalogue.dimensions} attributes do not fit {self!r}")
        for id in catalogue.ids.tolist():
            new_id(id, self)
        for row in range(len(catalogue)):
            self.add_one(catalogue.row(row))

    def _made(self, id: int, expression: Sequence[Predicate | tuple[Any, ...]]) -> SparseCatalogue:
        return from_predicates([expression], dimensions=self.dimensions, ids=[id])

    def add_one(self, one: SparseCatalogue) -> None:
        """Add the only row of a catalogue."""
        self.insert(self.store.add(one))
        self.stats.inserts += 1


def columns_of(event: Event) -> tuple[Any, Floats, Floats, Floats]:
    return event.attributes, event.lo, event.hi, event.weights
