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
so answers are exact for all. A value between two whole ones is looked up at the lower: a range with whole ends that
contains it contains that one too. Where the event itself is a range, the lists of its values (which lie
side by side) are merged into one, so that a row counts once per attribute.

Theirs is static. Ours keeps runs, each a static k-index: rows added later are scanned while few, then become a run,
which swallows runs that are not twice as large; a row is rebuilt O(log n) times. Removed rows are marked, and a run
is built anew when half of it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from topk.select import in_order, push
from topk.sparse.base import Scratch, SparseIndex, columns_of
from topk.sparse.catalogue import Floats, Ints, SparseCatalogue
from topk.sparse.event import Event
from topk.sparse.scores import HELP, MAX, SUM, Score, Scoring, at_most, raised
from topk.sparse.store import Rows, clear, holds, row_score, spread

_MOST_VALUES = 16  # "a handful of values", §VII-A of the comparison
_LATER = 1024  # rows that are scanned before they become a run
_WHOLE = 2.0**52  # floats below have a fraction
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
    if lo == np.floor(lo) and hi == np.floor(hi) and hi - lo < _MOST_VALUES and abs(lo) < _WHOLE:
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
    order = _by_list(postings)
    postings, weight = postings[order], weight[order]
    changes = np.any(postings[1:, :3] != postings[:-1, :3], axis=1)
    begin = np.concatenate([[0], np.flatnonzero(changes) + 1]) if total else np.zeros(0, np.int64)
    top = np.maximum.reduceat(weight, begin) if total else np.zeros(0)
    size, attribute, value = (np.ascontiguousarray(postings[begin, i]) for i in range(3))
    return Lists(size, attribute, value, np.append(begin, total), top, postings[:, 3].astype(np.int32))


def _by_list(postings: Ints) -> Ints:
    """The order by (size, attribute, value); rows ascend as they come. One key where it fits into 63 bits."""
    if not len(postings):
        return np.zeros(0, np.int64)
    size, attribute, value = postings[:, 0], postings[:, 1], postings[:, 2]
    known = value[value != _ANY]
    low, high = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    attributes, values = int(attribute.max()) + 1, high - low + 2
    if (int(size.max()) + 1) * attributes * values < 2**63:
        place = np.where(value == _ANY, 0, value - low + 1)
        return np.argsort((size * attributes + attribute) * values + place, kind="stable")
    return np.lexsort((value, attribute, size))


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
def open_lists(lists: Lists, size: int, columns: Any, at: Any, end: Any, weight: Any, event_weight: Any) -> int:
    """Cursors of a point event in partition `size`: positions, ends and largest weights; returns how many.

    Per attribute the list of its value and the one for any value: a row is in at most one of them.
    """
    count = 0
    for i in range(len(columns[0])):
        for value in (_ANY, whole_part(columns[1][i])):
            found = locate(lists, size, columns[0][i], value)
            if found == len(lists.size) or lists.size[found] != size or lists.value[found] != value:
                continue
            if lists.attribute[found] == columns[0][i]:
                at[count], end[count] = lists.begin[found], lists.begin[found + 1]
                weight[count], event_weight[count] = lists.top[found], columns[3][i]
                count += 1
    return count


@njit(cache=True, nogil=True)
def whole_part(value: float) -> Any:
    return np.int64(np.floor(min(max(value, -_WHOLE), _WHOLE)))


@njit(cache=True, nogil=True)
def merge_lists(lists: Lists, size: int, columns: Any, at: Any, end: Any, weight: Any, event_weight: Any) -> Any:
    """The same for an event with ranges: one merged list per attribute; returns how many, and the postings."""
    count, used, flat = 0, 0, np.empty(64, np.int32)
    for i in range(len(columns[0])):
        a = columns[0][i]
        first = locate(lists, size, a, whole_part(columns[1][i]))
        last = locate(lists, size, a, whole_part(columns[2][i]) + 1)
        anything = locate(lists, size, a, _ANY)
        others = locate(lists, size, a, _ANY + 1)
        members = np.concatenate((
            lists.row[lists.begin[first] : lists.begin[last]],
            lists.row[lists.begin[anything] : lists.begin[others]],
        ))  # fmt: skip
        if len(members) == 0:
            continue
        members.sort()
        if used + len(members) > len(flat):
            flat = np.concatenate((flat[:used], np.empty(used + len(members), np.int32)))
        at[count], weight[count], event_weight[count] = used, 0.0, columns[3][i]
        for j in range(len(members)):
            if j == 0 or members[j] != members[j - 1]:
                flat[used] = members[j]
                used += 1
        for j in range(first, last):
            weight[count] = max(weight[count], lists.top[j])
        for j in range(anything, others):
            weight[count] = max(weight[count], lists.top[j])
        end[count] = used
        count += 1
    return count, flat


@njit(cache=True, nogil=True)
def best_possible(weight: Any, event_weight: Any, count: int, take: int, score: Scoring) -> float:
    """The largest score that `take` of the lists can give."""
    if score.code == SUM:
        ordered = np.sort(weight[:count] * event_weight[:count])
        return raised(ordered[max(0, count - take) :].sum())
    total = score.start
    for i in range(count):
        total = at_most(score, total, weight[i], event_weight[i])
    return raised(total)


@njit(cache=True, nogil=True)
def conjunctions(
    rows: Rows, lists: Lists, run_of: Any, run: int, largest: int, columns: Any, extra: Any, event: Any, k: int,
    score: Scoring, best: Any, ids: Any, size: int, counts: Any,
) -> int:  # fmt: skip
    """The conjunction algorithm over all partitions of a run; rows that have left the run are passed over."""
    room = 2 * len(columns[0]) + 1
    at, end, weight, event_weight = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room)
    scores, found = best[:k], ids[:k]
    point = True
    for i in range(len(columns[0])):
        point = point and columns[1][i] == columns[2][i]
    for want in range(1, min(largest, len(columns[0])) + 1):
        posted = lists.row
        if point:
            count = open_lists(lists, want, columns, at, end, weight, event_weight)
        else:
            count, posted = merge_lists(lists, want, columns, at, end, weight, event_weight)
        counts[1] += count
        if count < want or (size == k and best_possible(weight, event_weight, count, want, score) < scores[0]):
            continue
        while count >= want:
            # Insertion sort by current row: the order changes little from step to step.
            for i in range(1, count):
                j = i
                while j > 0 and posted[at[j]] < posted[at[j - 1]]:
                    at[j], at[j - 1] = at[j - 1], at[j]
                    end[j], end[j - 1] = end[j - 1], end[j]
                    weight[j], weight[j - 1] = weight[j - 1], weight[j]
                    event_weight[j], event_weight[j - 1] = event_weight[j - 1], event_weight[j]
                    j -= 1
            target = posted[at[want - 1]]
            counts[0] += 1
            if posted[at[0]] == target:
                hopeless = False
                if size == k and (score.code == SUM or score.code == MAX):  # the lists are no longer in order
                    hopeless = best_possible(weight, event_weight, want, want, score) < scores[0]
                if not hopeless and run_of[target] == run and holds(rows, target, event, extra):
                    size = push(scores, found, size, row_score(rows, target, event, score), rows.ids[target])
                target += 1
            kept = 0
            for i in range(count):
                while at[i] < end[i] and posted[at[i]] < target:
                    at[i] += 1
                if at[i] < end[i]:
                    at[kept], end[kept] = at[i], end[i]
                    weight[kept], event_weight[kept] = weight[i], event_weight[i]
                    kept += 1
            count = kept
    return size


@njit(cache=True, nogil=True)
def scan_these(
    rows: Rows, which: Any, extra: Any, event: Any, k: int, score: Scoring, best: Any, ids: Any, size: int, counts: Any
) -> int:
    scores, found = best[:k], ids[:k]
    for row in which:
        if holds(rows, row, event, extra):
            size = push(scores, found, size, row_score(rows, row, event, score), rows.ids[row])
    counts[0] += len(which)
    return size


class _Run:
    """A static k-index over some rows."""

    def __init__(self, rows: Rows, members: Ints) -> None:
        self.members = members
        self.lists = build_lists(rows, members)
        self.largest = int(rows.length[members].max(initial=0))
        self.left = 0  # rows that have been removed since

    @property
    def nbytes(self) -> int:
        return int(self.members.nbytes) + sum(int(column.nbytes) for column in self.lists)


class KIndex(SparseIndex):
    """Posting lists per size, attribute and value; rows found by counting."""

    name = "k-index"
    options: ClassVar[Mapping[str, str]] = {"score": HELP}

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum") -> None:
        super().__init__(catalogue, score)
        rows, used = self._store.rows, self._store.used
        self._runs: list[_Run] = []
        # The number of each row's run, −1 for none. A removed row leaves its run but not its lists.
        self._run_of = np.full(len(rows.ids), -1, np.int64)
        live = np.flatnonzero(rows.length[:used] >= 0)
        # Expressions without predicates are in no list: always scanned.
        self._scanned: dict[int, None] = dict.fromkeys(live[rows.length[live] == 0].tolist())
        self._add_run(live[rows.length[live] > 0])

    def _add_run(self, members: Ints) -> None:
        """Build a run; it swallows those before it that are not twice as large."""
        while self._runs and len(self._runs[-1].members) < 2 * len(members):
            members = np.union1d(self._members(len(self._runs) - 1), members)
            self._runs.pop()
        self._run_of[members] = len(self._runs)
        self._runs.append(_Run(self._store.rows, members))
        self.stats.rebuilds += 1

    def _members(self, number: int) -> Ints:
        """The rows of a run that have not left it."""
        members = self._runs[number].members
        return members[self._run_of[members] == number]

    def _insert(self, row: int) -> None:
        if row >= len(self._run_of):
            missing = len(self._store.rows.ids) - len(self._run_of)
            self._run_of = np.concatenate([self._run_of, np.full(missing, -1, np.int64)])
        self._scanned[row] = None
        if len(self._scanned) > _LATER:
            waiting = np.array(sorted(self._scanned), dtype=np.int64)
            empty = self._store.rows.length[waiting] == 0
            self._scanned = dict.fromkeys(waiting[empty].tolist())
            if not empty.all():
                self._add_run(waiting[~empty])

    def _delete(self, row: int) -> None:
        if row in self._scanned:
            del self._scanned[row]
            return
        number = int(self._run_of[row])
        self._run_of[row] = -1
        self._runs[number].left += 1
        if 2 * self._runs[number].left > len(self._runs[number].members):
            self._runs[number] = _Run(self._store.rows, self._members(number))
            self.stats.rebuilds += 1

    def _before_search(self) -> None:
        super()._before_search()
        self._waiting = np.array(list(self._scanned), dtype=np.int64)

    def _search(self, event: Event, k: int, scratch: Scratch) -> int:
        columns, rows = columns_of(event), self._store.rows
        spread(scratch.event, *columns)
        size = 0
        for number, run in enumerate(self._runs):
            size = conjunctions(
                rows, run.lists, self._run_of, number, run.largest, columns, event.extra, scratch.event, k,
                self._scoring, scratch.scores, scratch.ids, size, scratch.counts,
            )  # fmt: skip
        size = scan_these(
            rows, self._waiting, event.extra, scratch.event, k, self._scoring, scratch.scores, scratch.ids, size,
            scratch.counts,
        )  # fmt: skip
        clear(scratch.event, columns[0])
        return int(in_order(scratch.scores, scratch.ids, size))

    @property
    def overhead(self) -> int:
        return sum(run.nbytes for run in self._runs) + int(self._run_of.nbytes)

    def check(self) -> None:
        self._store.check()
        rows = self._store.rows
        listed: dict[int, int] = {}
        for number, run in enumerate(self._runs):
            lists = run.lists
            assert len(run.members) - len(self._members(number)) == run.left, f"run {number} counts who left"
            for i in range(len(lists.size)):
                members = lists.row[lists.begin[i] : lists.begin[i + 1]]
                assert (np.diff(members) > 0).all(), "a list's rows ascend"
                for row in members[self._run_of[members] == number].tolist():
                    assert rows.length[row] == lists.size[i], f"row {row} is in the partition of its size"
                    listed[row] = listed.get(row, 0) + 1
        assert not (set(listed) & set(self._scanned)), "a row is listed or scanned"
        for row in self._store.row_of.values():
            scanned = row in self._scanned
            assert scanned or listed.get(row, 0) >= rows.length[row], f"row {row} is listed once per predicate"
