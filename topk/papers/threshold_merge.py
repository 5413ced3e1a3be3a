"""Multi-dimensional matching on top of any one-dimensional index (VLDB 2008, sections 1 and 4).

One index per attribute, over the subscriptions that mention it, and per event one iterator per attribute
the event has, over what contains its value or meets its interval.

Exact: iterators run in the order of the subscription's score. A subscription matches once it has come out
of as many iterators as it mentions attributes. Everything up to the *horizon*, the least advanced
iterator's last result, is then final. So the iterator that holds the horizon back is advanced next, in
blocks that double. Subscriptions that mention nothing match everything and are kept in a sorted list. An
attribute that all subscriptions mention ends the search with its iterator.

Relaxed: iterators run in the order of that attribute's weight. Fagin's Threshold Algorithm takes them
round-robin, looks up the whole score of each subscription it meets, and stops when the k-th best exceeds
the combination of the weights last seen; strictly, because a tie could still have a smaller id. Any
monotone combination will do.

Ours works for sparse subscriptions and incomplete events, which the paper leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np

from coverlay import CoverlayError, unknown_name
from topk.answers import NONE_FOUND, Found
from topk.catalogue import Catalogue
from topk.checks import Floats, Ints
from topk.contract import TopKIndex
from topk.kernels.heaps import best_first, offer
from topk.papers.interval.contract import COUNTERS, Entries, IntervalIndex
from topk.papers.threshold_rounds import FIRST_BLOCK, Marks, absorb, threshold_rounds, within
from topk.store import Store

_LARGEST_BLOCK = 1 << 16
_COMBINATIONS = ("sum", "max")
_EXAMPLE = """
    >>> import topk
    >>> index = topk.create("{name}", topk.Catalogue.from_boxes([[0, 0], [2, 2]], [[5, 5], [9, 9]], scores=[1.0, 4.0]))
    >>> index.top([3, 4], k=2)
    [(1, 4.0), (0, 1.0)]
    """


class StreamIndex(TopKIndex):
    """A matcher over one index per attribute; `over` makes the class for an interval index."""

    interval_index: ClassVar[type[IntervalIndex]]

    def __init__(
        self,
        catalogue: Catalogue,
        semantics: str = "exact",
        combine: str | Callable[[Floats], float] = "sum",
        **options: Any,
    ) -> None:
        super().__init__(catalogue, semantics)
        if not callable(combine) and combine not in _COMBINATIONS:
            raise unknown_name("combination", combine, _COMBINATIONS)
        if combine != "sum" and semantics == "exact":
            raise CoverlayError("combine applies to relaxed matching; exact matching ranks by the given score")
        self._combine = combine
        self._options = options
        self.store = Store(catalogue, stable=True)
        self._indexes: dict[int, IntervalIndex] = {}
        self._capacity_changed()
        for j in range(self.dimensions):
            if catalogue.mentioned[:, j].any() or not self.interval_index.dynamic:
                self._indexes[j] = self.interval_index(self._entries(j), **options)
        self.stats.rebuilds += 1

    def __reduce__(self) -> Any:
        return _unbuilt, (self.interval_index,), vars(self)  # a class that `over` made has no place in a module

    # ---- rows -------------------------------------------------------------------------------------------

    def _capacity_changed(self) -> None:
        c = self.store.columns
        capacity = len(c.ids)
        live = np.zeros(capacity, np.bool_)
        live[list(self.store.row_of.values())] = True
        self._needs = np.where(live, c.mentioned.sum(axis=0), -1).astype(np.int32)
        self._spare = [Marks.of(capacity)]  # a search takes one, or makes one, and gives it back
        self._everything: Ints | None = None  # rows that mention nothing, best first; None: to be sorted
        if self.semantics == "relaxed":
            self._triples = np.empty((capacity, self.dimensions, 3))
            self._copy_triples(slice(None))

    def _copy_triples(self, rows: slice) -> None:
        """(lo, hi, weight) of these rows, attribute by attribute; an empty interval where one is not mentioned."""
        c = self.store.columns
        self._triples[rows, :, 0] = np.where(c.mentioned[:, rows], c.lo[:, rows], np.inf).T
        self._triples[rows, :, 1] = np.where(c.mentioned[:, rows], c.hi[:, rows], -np.inf).T
        self._triples[rows, :, 2] = c.weights[:, rows].T

    def _gain(self, attribute: int) -> Floats:
        """What ranks the iterator of an attribute."""
        c = self.store.columns
        return c.scores if self.semantics == "exact" else c.weights[attribute]

    def _entries(self, j: int) -> Entries:
        c = self.store.columns
        rows = np.flatnonzero((c.mentioned[j] == 1) & (self._needs > 0))
        return Entries(rows, c.lo[j, rows], c.hi[j, rows], self._gain(j)[rows], c.ids[rows])

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, id: object) -> bool:
        return id in self.store.row_of

    @property
    def catalogue(self) -> Catalogue:
        return self.store.catalogue()

    def subscription(self, id: int) -> Catalogue:
        return self.store.subscription(id)

    # ---- exact ------------------------------------------------------------------------------------------

    def search(self, low: Floats, high: Floats, k: int) -> Found:
        before = self._work()
        try:
            marks = self._spare.pop()
        except IndexError:  # others search too
            marks = Marks.of(len(self._needs))
        found = (self._exact if self.semantics == "exact" else self._relaxed)(low, high, k, marks)
        self._spare.append(marks)
        nodes, compared, queued, probed = (self._work() - before).tolist()
        self.stats.add(nodes=nodes, entries=compared, comparisons=compared, queued=queued, probes=probed)
        return found

    def _work(self) -> Ints:
        return sum((index.work for index in self._indexes.values()), np.zeros(COUNTERS, np.int64))

    def _exact(self, low: Floats, high: Floats, k: int, marks: Marks) -> Found:
        c, counts, complete = self.store.columns, marks.counts, marks.hits
        cursors, last, mandatory = {}, {}, set()
        for j, index in self._indexes.items():
            everywhere = len(index) == len(self)
            if np.isnan(low[j]) or len(index) == 0:
                if everywhere and len(index):
                    return NONE_FOUND
                continue
            cursors[j] = index.overlapping(low[j], high[j])
            last[j] = (-np.inf, -1)  # of its last result: −score, id
            if everywhere:
                mandatory.add(j)
        free = self._matching_all()[:k]
        size = len(free)
        complete[:size] = free
        blocks: list[Ints] = []
        width = dict.fromkeys(cursors, max(k, FIRST_BLOCK))
        while cursors:
            j = min(cursors, key=lambda a: last[a])
            block = cursors[j].fetch(width[j])
            self.stats.getnexts += len(block)
            size = absorb(block, counts, self._needs, complete, size)
            blocks.append(block)
            if len(block):
                last[j] = (-float(c.scores[block[-1]]), int(c.ids[block[-1]]))
            if len(block) < width[j]:
                del cursors[j]
                if j in mandatory and all(last[a] >= last[j] for a in cursors):
                    break  # every match is in this iterator, and the others have passed its end
            else:
                width[j] = min(2 * width[j], _LARGEST_BLOCK)
            if cursors and size >= k:
                score, id = min(last[a] for a in cursors)  # the horizon
                if within(complete[:size], c.scores, c.ids, -score, id) >= k:
                    break
        hits = complete[:size].copy()
        for block in blocks:
            counts[block] = 0
        ids, scores = best_first(c.ids[hits], c.scores[hits])
        return ids[:k], scores[:k]

    def _matching_all(self) -> Ints:
        if self._everything is None:
            rows = np.flatnonzero(self._needs == 0)
            c = self.store.columns
            self._everything = rows[np.lexsort((c.ids[rows], -c.scores[rows]))]
        return self._everything

    # ---- relaxed ----------------------------------------------------------------------------------------

    def _relaxed(self, low: Floats, high: Floats, k: int, marks: Marks) -> Found:
        attributes = [j for j, ix in sorted(self._indexes.items()) if len(ix) and not np.isnan(low[j])]
        cursors = [self._indexes[j].overlapping(low[j], high[j]) for j in attributes]
        take = self._python_rounds if callable(self._combine) else self._kernel_rounds
        best_scores, best_ids, counts = np.empty(k), np.empty(k, np.int64), np.zeros(2, np.int64)
        state = (np.array(attributes, np.int64), marks.seen, self.store.columns.ids, best_scores, best_ids, counts)
        buffers = np.empty((len(cursors), 0), np.int64)
        lengths = np.zeros(len(cursors), np.int64)
        block, done, passed = max(k + 1, FIRST_BLOCK), 0, not cursors
        while not passed:
            wider = np.empty((len(cursors), done + block), np.int64)
            wider[:, :done] = buffers
            buffers = wider
            for s, cursor in enumerate(cursors):
                if lengths[s] == done:  # not exhausted before
                    part = cursor.fetch(block)
                    buffers[s, done : done + len(part)] = part
                    lengths[s] += len(part)
            stop = int(lengths.max())
            before = done
            done, passed = take(buffers, lengths, before, stop, (low, high), state)
            self.stats.getnexts += sum(min(length, done) - before for length in lengths.tolist() if length > before)
            passed = passed or stop < before + block
            block = min(2 * block, _LARGEST_BLOCK)
        for s in range(len(cursors)):
            marks.seen[buffers[s, : lengths[s]]] = 0
        size, offered = counts.tolist()
        self.stats.queued += offered * k.bit_length()
        self.stats.comparisons += offered * self.dimensions
        return best_first(best_ids[:size], best_scores[:size])

    def _kernel_rounds(self, *state: Any) -> tuple[int, bool]:
        """One call per block: the algorithm's own work, which reproductions time."""
        taken: tuple[int, bool] = threshold_rounds(self._triples, self._combine == "max", *state)
        return taken

    def _python_rounds(
        self, buffers: Ints, lengths: Ints, begin: int, stop: int, box: tuple[Floats, Floats], state: Any
    ) -> tuple[int, bool]:
        """As `threshold_rounds`, for a combination that is a Python function of all attributes' weights."""
        attributes, seen, ids, best_scores, best_ids, counts = state  # counts: candidates kept, candidates offered
        low, high = box
        for p in range(begin, stop):
            seen_last = np.zeros(self.dimensions)
            for s, j in enumerate(attributes):
                if p >= lengths[s]:
                    continue
                row = buffers[s, p]
                lo, hi, weights = self._triples[row].T
                seen_last[j] = weights[j]
                if not seen[row]:
                    seen[row] = 1
                    score = self._combined(np.where((lo <= high) & (low <= hi), weights, 0.0))
                    counts[0] = offer(best_scores, best_ids, int(counts[0]), score, int(ids[row]))
                    counts[1] += 1
            if counts[0] == len(best_ids) and best_scores[0] > self._combined(seen_last):
                return p + 1, True
        return stop, False

    def _combined(self, weights: Floats) -> float:
        if callable(self._combine):
            return float(self._combine(weights))
        return float(weights.max()) if self._combine == "max" else super()._combined(weights)

    # ---- updates ----------------------------------------------------------------------------------------

    def insert(self, one: Catalogue) -> None:
        capacity = len(self.store.columns.ids)
        row = self.store.add(one)
        if len(self.store.columns.ids) != capacity:
            self._capacity_changed()
        c = self.store.columns
        self._needs[row] = one.mentioned.sum()
        self._everything = None
        if self.semantics == "relaxed":
            self._copy_triples(slice(row, row + 1))
        for j in np.flatnonzero(one.mentioned[0]).tolist():
            if j not in self._indexes:
                self._indexes[j] = self.interval_index(Entries.none(), **self._options)
            gain = float(self._gain(j)[row])
            self._indexes[j].insert(row, float(c.lo[j, row]), float(c.hi[j, row]), gain, int(c.ids[row]))

    def delete(self, id: int) -> None:
        row = self.store.row_of[id]
        c = self.store.columns
        for j in np.flatnonzero(c.mentioned[:, row]).tolist():
            gain = float(self._gain(j)[row])
            self._indexes[j].delete(row, float(c.lo[j, row]), float(c.hi[j, row]), gain, id)
        self.store.remove(id)
        self._needs[row] = -1
        self._everything = None

    @property
    def nbytes(self) -> int:
        own = self._needs.nbytes + sum(column.nbytes for marks in self._spare for column in marks)
        own += self._triples.nbytes if self.semantics == "relaxed" else 0
        return self.store.nbytes + own + sum(index.nbytes for index in self._indexes.values())

    def check(self) -> None:
        self.store.check()
        for marks in self._spare:
            assert not marks.counts.any(), "counts are cleared after each query"
            assert not marks.seen.any(), "seen marks are cleared after each query"
        mentions = self.store.columns.mentioned[:, list(self.store.row_of.values())].sum(axis=1)
        for j, index in self._indexes.items():
            assert len(index) == mentions[j], f"attribute {j} indexes those that mention it"
            index.check()


@cache
def over(index: type[IntervalIndex]) -> type[StreamIndex]:
    """The matcher class whose attributes are indexed by `index`, under the same name."""
    combine = {"combine": "relaxed score of the weights that hold: sum, max or a monotone function"}
    members = {
        "name": index.name,
        "dynamic": index.dynamic,
        "options": {**index.options, **combine},
        "interval_index": index,
        "__doc__": f"{index.__doc__}\n{_EXAMPLE.format(name=index.name)}",
    }
    return type(f"{index.__name__}Matcher", (StreamIndex,), members)


def _unbuilt(index: type[IntervalIndex]) -> StreamIndex:
    """A matcher without attributes, for copies."""
    made = over(index)
    return made.__new__(made)
