"""k-index: conjunctions grouped by size, posting lists per value (Whang et al., "Indexing Boolean expressions", 2009).

Expressions of size K are in partition K. There, every (attribute, value) that a predicate accepts has a posting list
of rows; a range is enumerated value by value. An event walks, for each K up to its own size, the lists of its
values at once: with the lists in the order of their current rows, the K-th decides which row can be the next that
is in K lists, all before it skip there. A row in K lists has all its predicates accepted.

Top-k (their §5, as ICDE 2012 compares it): every list knows its largest weight; a partition whose K largest products
cannot reach the k-th score is skipped, and so is a row whose K lists cannot. A flat structure: bounds are
computed once at the top and never refined, which is what BE*-Tree criticises.

Enumeration needs few whole values per range (ours: at most _MOST_VALUES; the paper's blow-up is real). Anything
else (continuous or wide ranges, ≠, ∉) is filed in the attribute's list for any value; every candidate is verified,
so answers are exact for all. Static: rows added later are scanned until they are an eighth, then it is built anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from topk.select import push
from topk.sparse.base import Scratch, SparseIndex, columns_of
from topk.sparse.catalogue import Floats, Ints, SparseCatalogue
from topk.sparse.event import Event
from topk.sparse.store import SUM, Rows, clear, holds, row_score, spread

_MOST_VALUES = 16  # "a handful of values", §VII-A of the comparison
_LATER = 1024  # rows scanned before a rebuild, at least
_ANY = -(2**62)  # stands for the value in the lists of wide predicates


class Lists(NamedTuple):
    """Posting lists sorted by (size, attribute, value)."""

    size: Ints  # (lists,)
    attribute: Ints
    value: Ints
    begin: Ints  # (lists + 1,)
    top: Floats  # (lists,) largest weight
    row: NDArray[np.int32]  # ascending within a list


@njit(cache=True)
def _values_of(lo: float, hi: float) -> int:
    """How many whole values a predicate accepts, 0 when they are not to be enumerated."""
    if lo == np.floor(lo) and hi == np.floor(hi) and hi - lo < _MOST_VALUES and abs(lo) < 2.0**52:
        return int(hi - lo) + 1
    return 0


@njit(cache=True)
def enumerate_postings(rows: Rows, live: Any, fill: bool, out: Any, weight: Any) -> int:
    """Postings (size, attribute, value, row) of the live rows; with fill=False only their number."""
    count = 0
    for row in live:
        begin = rows.start[row]
        for p in range(begin, begin + rows.length[row]):
            number = _values_of(rows.lo[p], rows.hi[p])
            for i in range(max(number, 1)):
                if fill:
                    out[count, 0] = rows.length[row]
                    out[count, 1] = rows.attribute[p]
                    out[count, 2] = np.int64(rows.lo[p]) + i if number else _ANY
                    out[count, 3] = row
                    weight[count] = rows.weight[p]
                count += 1
    return count


def build_lists(rows: Rows, live: Ints) -> Lists:
    nothing = np.empty((0, 4), np.int64)
    total = enumerate_postings(rows, live, False, nothing, np.empty(0))
    postings, weight = np.empty((total, 4), np.int64), np.empty(total)
    enumerate_postings(rows, live, True, postings, weight)
    order = np.lexsort((postings[:, 3], postings[:, 2], postings[:, 1], postings[:, 0]))
    postings, weight = postings[order], weight[order]
    changes = np.any(postings[1:, :3] != postings[:-1, :3], axis=1)
    begin = np.concatenate([[0], np.flatnonzero(changes) + 1]) if total else np.zeros(0, np.int64)
    top = np.maximum.reduceat(weight, begin) if total else np.zeros(0)
    size, attribute, value = (np.ascontiguousarray(postings[begin, i]) for i in range(3))
    return Lists(size, attribute, value, np.append(begin, total), top, postings[:, 3].astype(np.int32))


@njit(cache=True, nogil=True)
def locate(lists: Lists, size: int, attribute: int, value: int) -> int:
    """The first list not before (size, attribute, value)."""
    low, high = 0, len(lists.size)
    while low < high:
        middle = (low + high) >> 1
        before = lists.size[middle] < size
        if lists.size[middle] == size:
            before = lists.attribute[middle] < attribute
            if lists.attribute[middle] == attribute:
                before = lists.value[middle] < value
        if before:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def open_lists(lists: Lists, size: int, columns: Any, at: Any, end: Any, bound: Any) -> int:
    """Cursors of an event in partition `size`: positions, ends and products' bounds; returns how many.

    Per attribute the lists of its values and the one for any value. Only point events: a row is in at most one.
    """
    count = 0
    for i in range(len(columns[0])):
        low = columns[1][i]
        for turn in range(2):
            whole = abs(low) < 2.0**52 and low == np.floor(low)
            if turn == 1 and not whole:
                continue
            value = np.int64(low) if turn == 1 else _ANY
            found = locate(lists, size, columns[0][i], value)
            if found == len(lists.size) or lists.size[found] != size or lists.value[found] != value:
                continue
            if lists.attribute[found] == columns[0][i]:
                at[count], end[count] = lists.begin[found], lists.begin[found + 1]
                bound[count] = lists.top[found] * columns[3][i]
                count += 1
    return count


@njit(cache=True, nogil=True)
def best_possible(bound: Any, count: int, take: int, mode: int) -> float:
    """The largest score that `take` of the lists can give."""
    ordered = np.sort(bound[:count])
    total = 0.0
    for i in range(max(0, count - take), count):
        total = total + ordered[i] if mode == SUM else max(total, ordered[i])
    return total * (1.0 + 1e-12)


@njit(cache=True, nogil=True)
def conjunctions(
    rows: Rows, lists: Lists, dead: Any, largest: int, columns: Any, event: Any, k: int, mode: int, best: Any, ids: Any,
    size: int, counts: Any,
) -> int:  # fmt: skip
    """The conjunction algorithm over all partitions; dead rows are passed over."""
    room = 2 * len(columns[0]) + 1
    at, end, bound = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    scores, found = best[:k], ids[:k]
    for want in range(1, min(largest, len(columns[0])) + 1):
        count = open_lists(lists, want, columns, at, end, bound)
        counts[1] += count
        if count < want or (size == k and best_possible(bound, count, want, mode) < scores[0]):
            continue
        while True:
            # Insertion sort by current row: the order changes little from step to step.
            for i in range(1, count):
                j = i
                while j > 0 and lists.row[at[j]] < lists.row[at[j - 1]]:
                    at[j], at[j - 1] = at[j - 1], at[j]
                    end[j], end[j - 1] = end[j - 1], end[j]
                    bound[j], bound[j - 1] = bound[j - 1], bound[j]
                    j -= 1
            target = lists.row[at[want - 1]]
            counts[0] += 1
            if lists.row[at[0]] == target:
                possible = 0.0
                for i in range(want):
                    possible = possible + bound[i] if mode == SUM else max(possible, bound[i])
                hopeless = size == k and possible * (1.0 + 1e-12) < scores[0]
                if not hopeless and not dead[target] and holds(rows, target, event):
                    size = push(scores, found, size, row_score(rows, target, event, mode), rows.ids[target])
                target += 1
            kept = 0
            for i in range(count):
                while at[i] < end[i] and lists.row[at[i]] < target:
                    at[i] += 1
                if at[i] < end[i]:
                    at[kept], end[kept], bound[kept] = at[i], end[i], bound[i]
                    kept += 1
            count = kept
            if count < want:
                break
    return size


@njit(cache=True, nogil=True)
def scan_these(
    rows: Rows, which: Any, event: Any, k: int, mode: int, best: Any, ids: Any, size: int, counts: Any
) -> int:
    scores, found = best[:k], ids[:k]
    for row in which:
        if rows.length[row] >= 0 and holds(rows, row, event):
            size = push(scores, found, size, row_score(rows, row, event, mode), rows.ids[row])
    counts[0] += len(which)
    return size


class KIndex(SparseIndex):
    """Posting lists per size, attribute and value; rows found by counting."""

    name = "k-index"
    options: ClassVar[Mapping[str, str]] = {"score": "how products of weights combine: sum or max"}

    def __init__(self, catalogue: SparseCatalogue, score: str = "sum") -> None:
        super().__init__(catalogue, score)
        self._build()

    def _build(self) -> None:
        rows, used = self._store.rows, self._store.used
        live = np.flatnonzero(rows.length[:used] >= 0)
        self._lists = build_lists(rows, live[rows.length[live] > 0])
        self._dead = np.zeros(len(rows.ids), np.bool_)
        self._later = live[rows.length[live] == 0].tolist()  # expressions without predicates are in no list
        self._largest = int(rows.length[:used].max(initial=0))
        self.stats.rebuilds += 1

    def _insert(self, row: int) -> None:
        self._later.append(row)
        if len(self._later) > max(_LATER, len(self) // 8):
            self._build()

    def _delete(self, row: int) -> None:
        if row in self._later:
            self._later.remove(row)
        else:
            self._dead[row] = True

    def _before_search(self) -> None:
        super()._before_search()
        self._scanned = np.array(self._later, dtype=np.int64)

    def _search(self, event: Event, k: int, scratch: Scratch) -> int:
        columns, rows = columns_of(event), self._store.rows
        spread(scratch.event, *columns)
        if (event.lo == event.hi).all():
            size = conjunctions(
                rows, self._lists, self._dead, self._largest, columns, scratch.event, k, self._mode, scratch.scores,
                scratch.ids, 0, scratch.counts,
            )  # fmt: skip
            which = self._scanned
        else:
            # An event that is a range would have to be enumerated too; its lists may be any number. Scanned instead.
            size, which = 0, np.arange(self._store.used)
        found = scan_these(
            rows, which, scratch.event, k, self._mode, scratch.scores, scratch.ids, size, scratch.counts
        )
        clear(scratch.event, columns[0])
        return int(found)

    @property
    def overhead(self) -> int:
        return sum(int(column.nbytes) for column in self._lists) + int(self._dead.nbytes)

    def check(self) -> None:
        self._store.check()
        lists, rows = self._lists, self._store.rows
        listed: dict[int, int] = {}
        for i in range(len(lists.size)):
            members = lists.row[lists.begin[i] : lists.begin[i + 1]]
            assert (np.diff(members) > 0).all(), "a list's rows ascend"
            for row in members.tolist():
                if not self._dead[row]:
                    assert rows.length[row] == lists.size[i], f"row {row} is in the partition of its size"
                    listed[row] = listed.get(row, 0) + 1
        for row in self._store.row_of.values():
            later = row in self._later
            assert later != (row in listed), f"row {row} is listed or waits"
            assert later or listed[row] >= rows.length[row], f"row {row} is listed once per predicate or more"
