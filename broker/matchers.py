"""The matcher of a broker's own clients: rows that both engines share, or any index of `topk`.

`scan` and `auto` on boxes are kernels over rows (local_rows.py). Every other method is an index that is built in bulk:
changes are collected until an event asks. A few are then applied one by one; for many, the index is built anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from broker import local_rows, served_rows
from broker.filter_rows import FilterRows
from routing.filter import Filter

if TYPE_CHECKING:
    from broker.ranking import Ranking

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Answer = tuple[Ints, Floats, int, int]  # ids and scores, best first; entries compared; nodes looked at

FEW = 16  # up to this many changes are always applied one by one


class RowMatcher:
    """`scan` and `auto`."""

    def __init__(self, dimensions: int, known: FilterRows, semantics: str, method: str) -> None:
        self._residues = known.residues
        self._rows = local_rows.new_rows(dimensions, known.residues, known.scratch, semantics, method)
        self._address = self._rows.address
        self._place: dict[int, int] = {}
        self._joined: dict[int, Filter] = {}  # not yet in the rows: they are entered in bulk
        self._changed = False  # since the last event asked

    def __len__(self) -> int:
        return len(self._place) + len(self._joined)

    def add(self, subscription: int, filter: Filter) -> None:
        self._changed = True
        self._joined[subscription] = filter

    def _enter(self) -> None:
        if not self._joined:
            return
        ids, filters = list(self._joined), list(self._joined.values())
        first = local_rows.enter(
            self._rows,
            np.array(ids, np.int64),
            np.array([filter.box for filter in filters]),
            np.array([filter.weights for filter in filters]),
            np.array([filter.mentioned for filter in filters]),
            np.array([filter.score for filter in filters], np.float64),
            np.array([self._residues.number(filter.residue) for filter in filters], np.int64),
        )
        self._place.update(zip(ids, range(first, first + len(ids)), strict=True))
        self._joined.clear()

    def remove(self, subscription: int) -> None:
        self._changed = True
        self._enter()
        place = self._place.pop(subscription)
        moved = local_rows.leave(self._rows, place)
        if moved >= 0:
            self._place[moved] = place

    def _catch_up(self) -> None:
        self._changed = False
        self._enter()
        if local_rows.stale(self._rows):
            ids = local_rows.build(self._rows).tolist()
            self._place = dict(zip(ids, range(len(ids)), strict=True))

    def serve(self, event: Floats, k: int | None, weights: Floats | None, served: Any) -> tuple[int, int, int]:
        if self._changed:
            self._catch_up()
        return local_rows.serve(self._address, served.address, event, -1 if k is None else k)

    def top(self, event: Floats, k: int | None, weights: Floats | None) -> Answer:
        if self._changed:
            self._catch_up()
        most = len(self._place) if k is None else min(k, len(self._place))
        ids, scores = np.empty(most, np.int64), np.empty(most)
        size, entries, nodes = local_rows.top(self._address, event, ids, scores)
        return (ids, scores, entries, nodes) if size == most else (ids[:size], scores[:size], entries, nodes)

    def check(self) -> None:
        self._enter()
        local_rows.check(self._rows, self._place)


class IndexMatcher:
    """An index of `topk` and the changes that it does not have yet."""

    def __init__(self, ranking: Ranking) -> None:
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

    def serve(self, event: Floats, k: int | None, weights: Floats | None, served: Any) -> tuple[int, int, int]:
        ids, scores, entries, nodes = self.top(event, k, weights)
        served_rows.add(served, ids, scores, np.arange(1, len(ids) + 1))
        return len(ids), entries, nodes

    def _catch_up(self) -> None:
        changes = len(self._joined) + len(self._left)
        if changes > max(FEW, len(self._index) // local_rows.CHANGED_SHARE):
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
