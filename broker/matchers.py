"""The matcher of a broker's own clients: rows in the order of their scores, or any index of `topk`.

`scan` and `auto` on boxes compare rows (topk/first_matches.py). Every other method is an index that is built in bulk:
changes are collected until an event asks. A few are then applied one by one; for many, the index is built anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import topk
from routing.filter import Filter
from topk.first_matches import FirstMatches
from topk.scan import Scan

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Answer = tuple[Ints, Floats, int, int]  # ids and scores, best first; entries compared; nodes looked at

ROW_METHODS = (Scan.name, topk.AUTO)  # of boxes, whose work is that of RowMatcher in both engines
FEW = 16  # up to this many changes are always applied one by one
CHANGED_SHARE = 8  # more are too many beyond this part of an index: each then pays for building 8 rows


class RowMatcher(FirstMatches[Filter]):
    """`scan` and `auto`: exact scores are known before an event is, so the first k matches are the k best."""

    def __init__(self, dimensions: int, semantics: str) -> None:
        super().__init__(dimensions, semantics, lambda filters: ((-filter.score,) for filter in filters))

    def top(self, event: Floats, k: int | None, weights: Floats | None) -> Answer:
        if self.relaxed:
            ids, scores = self.scored(event)
            best = np.lexsort((ids, -scores))[:k]
            return ids[best], scores[best], len(self), 0
        return *self.first(event, k), 0


class Indexes(Protocol):
    """How a ranking uses the indexes of its method."""

    def new_index(self, filters: Mapping[int, Filter]) -> Any: ...
    def add(self, index: Any, subscription: int, filter: Filter) -> None: ...
    def top(self, index: Any, event: Floats, weights: Floats | None, k: int | None) -> list[tuple[int, float]]: ...


class IndexMatcher:
    """An index of `topk` and the changes that it does not have yet."""

    def __init__(self, ranking: Indexes) -> None:
        self._ranking = ranking
        self._index = ranking.new_index({})
        self._filters: dict[int, Filter] = {}
        self._joined: dict[int, None] = {}  # not yet in the index
        self._left: dict[int, None] = {}  # still in the index; one that left and joined again is in both

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, subscription: int, filter: Filter) -> None:
        self._filters[subscription] = filter
        self._joined[subscription] = None

    def remove(self, subscription: int) -> None:
        del self._filters[subscription]
        if subscription in self._joined:
            del self._joined[subscription]
        else:
            self._left[subscription] = None

    def top(self, event: Floats, k: int | None, weights: Floats | None) -> Answer:
        if self._joined or self._left:
            self._catch_up()
        stats = self._index.stats
        entries, nodes = stats.entries, stats.nodes
        found = self._ranking.top(self._index, event, weights, k)
        ids, scores = zip(*found, strict=True) if found else ((), ())
        return np.array(ids, np.int64), np.array(scores), stats.entries - entries, stats.nodes - nodes

    def _catch_up(self) -> None:
        changes = len(self._joined) + len(self._left)
        if changes > max(FEW, len(self._index) // CHANGED_SHARE):
            self._index = self._ranking.new_index(self._filters)
        else:
            for subscription in self._left:
                self._index.remove(subscription)
            for subscription in self._joined:
                self._ranking.add(self._index, subscription, self._filters[subscription])
        self._joined.clear()
        self._left.clear()

    def check(self) -> None:
        self._index.check()
        assert len(self._index) + len(self._joined) - len(self._left) == len(self._filters)


Matcher = RowMatcher | IndexMatcher
