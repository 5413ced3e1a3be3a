"""k-index: conjunctions grouped by size, posting lists per value (Whang et al., "Indexing Boolean expressions", 2009).

Expressions of size K are in partition K. There, every (attribute, value) that a predicate accepts has a posting list
of rows; a range is enumerated value by value. For each K up to its own size, an event walks the lists of its values
together. With the lists in the order of their current rows, the row of the K-th is the next that can be in K lists,
and all lists before it skip to that row. A row in K lists has all its predicates accepted.

Top-k (their §5, as ICDE 2012 compares it): every list knows its largest weight; a partition whose K largest products
cannot reach the k-th score is skipped, and so is a row whose K lists cannot. The structure is flat: bounds are
computed once at the top and never refined, which is what the BE*-Tree paper criticises.

Posting lists are in `k_lists`; every candidate is verified, so answers are exact for all predicates. `k-index` files a
range of more than 16 values in the attribute's list for any value; `k-index-paper` enumerates it, as published.

Theirs is static. Ours keeps runs, each a static k-index. Rows added later are scanned while there are few, then become
a run, which absorbs runs that are not twice as large; so a row is rebuilt O(log n) times. Removed rows are marked, and
a run is rebuilt when more than half of it is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from coverlay import CoverlayError, kernel
from topk.checks import Ints
from topk.kernels.heaps import in_order, offer
from topk.kernels.rows import fitted
from topk.predicates import SparseCatalogue
from topk.sparse.contract import Scratch, SparseIndex, Workspace, columns_of
from topk.sparse.event import Event
from topk.sparse.k_lists import ENUMERABLE, build_lists, merge_lists, open_lists
from topk.sparse.rows import Rows, clear, holds, row_score, spread
from topk.sparse.scores import MAX, SUM, Score, Scoring, at_most, raised
from topk.sparse.upkeep import COMPARISONS, ENTRIES, NODES, QUEUED

_LATER = 1024  # rows that are scanned before they become a run


@kernel(inner=True)
def best_possible(weight: Any, event_weight: Any, count: int, take: int, score: Scoring) -> float:
    """The largest score that `take` of the lists can give."""
    if score.code == SUM:
        ordered = np.sort(weight[:count] * event_weight[:count])
        return raised(ordered[max(0, count - take) :].sum())
    total = score.start
    for i in range(count):
        total = at_most(score, total, weight[i], event_weight[i])
    return raised(total)


@kernel
def conjunctions(
    rows: Rows, run: Any, columns: Any, extra: Any, space: Workspace, k: int, score: Scoring, size: int
) -> int:
    """The conjunction algorithm over all partitions of a run; rows that have left the run are passed over.

    run = (its posting lists, the run of each row, its number, its largest expression).
    """
    lists, run_of, number, largest = run
    room = 2 * len(columns[0]) + 1
    at, end, weight, event_weight = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room)
    event, scores, found, counts = space.event, space.scores[:k], space.ids[:k], space.counts
    point = True
    for i in range(len(columns[0])):
        point = point and columns[1][i] == columns[2][i]
    lookups = (2 if point else 4) * len(columns[0])
    for want in range(1, min(largest, len(columns[0])) + 1):
        counts[COMPARISONS] += lookups
        posted = lists.row
        if point:
            count = open_lists(lists, want, columns, at, end, weight, event_weight)
        else:
            count, posted = merge_lists(lists, want, columns, at, end, weight, event_weight)
        counts[NODES] += count
        if count < want:
            continue
        if size == k:
            counts[COMPARISONS] += count  # largest weights
            if best_possible(weight, event_weight, count, want, score) < scores[0]:
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
            counts[ENTRIES] += 1
            counts[QUEUED] += count  # cursors that are put in order
            if posted[at[0]] == target:
                hopeless = False
                if size == k and (score.code == SUM or score.code == MAX):  # others depend on the lists' order
                    counts[COMPARISONS] += want  # largest weights
                    hopeless = best_possible(weight, event_weight, want, want, score) < scores[0]
                counts[COMPARISONS] += want
                if not hopeless and run_of[target] == number and holds(rows, target, event, extra):
                    counts[QUEUED] += 1
                    size = offer(scores, found, size, row_score(rows, target, event, score), rows.ids[target])
                target += 1
            kept = 0
            for i in range(count):
                before = at[i]
                while at[i] < end[i] and posted[at[i]] < target:
                    at[i] += 1
                counts[COMPARISONS] += at[i] - before
                if at[i] < end[i]:
                    at[kept], end[kept] = at[i], end[i]
                    weight[kept], event_weight[kept] = weight[i], event_weight[i]
                    kept += 1
            count = kept
    return size


@kernel
def scan_these(rows: Rows, which: Any, extra: Any, space: Workspace, k: int, score: Scoring, size: int) -> int:
    event, scores, found, counts = space.event, space.scores[:k], space.ids[:k], space.counts
    for row in which:
        counts[COMPARISONS] += rows.length[row]
        if holds(rows, row, event, extra):
            counts[QUEUED] += 1
            size = offer(scores, found, size, row_score(rows, row, event, score), rows.ids[row])
    counts[ENTRIES] += len(which)
    return size


class _Run:
    """A static k-index over some rows."""

    def __init__(self, rows: Rows, members: Ints, most_values: int) -> None:
        self.members = members
        self.lists = build_lists(rows, members, most_values)
        self.largest = int(rows.length[members].max(initial=0))
        self.left = 0  # rows that have been removed since

    @property
    def nbytes(self) -> int:
        return int(self.members.nbytes) + sum(int(column.nbytes) for column in self.lists)


class KIndex(SparseIndex):
    """Posting lists per size, attribute and value; rows found by counting.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("k-index", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "k-index"
    calibrated = True
    options: ClassVar[Mapping[str, str]] = {
        **SparseIndex.options,
        "most_values": "whole values of a range up to which it is enumerated; a wider one is in the list for any value",
    }

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum", *, most_values: int = 16) -> None:
        super().__init__(catalogue, score)
        if not 1 <= most_values <= ENUMERABLE:
            raise CoverlayError(f"most_values must be from 1 to {ENUMERABLE}, not {most_values}")
        self._most_values = int(most_values)
        rows, used = self.store.rows, self.store.used
        self._runs: list[_Run] = []
        # The number of each row's run, −1 for none. A removed row leaves its run but not its lists.
        self._run_of = np.full(len(rows.ids), -1, np.int64)
        live = np.flatnonzero(rows.length[:used] >= 0)
        # Expressions without predicates are in no list: always scanned.
        self._scanned: dict[int, None] = dict.fromkeys(live[rows.length[live] == 0].tolist())
        self._waiting: Ints | None = None  # the scanned rows; None: to be listed
        self._add_run(live[rows.length[live] > 0])

    def _add_run(self, members: Ints) -> None:
        """Build a run, which absorbs those before it that are not twice as large."""
        while self._runs and len(self._runs[-1].members) < 2 * len(members):
            members = np.union1d(self._members(len(self._runs) - 1), members)
            self._runs.pop()
        self._run_of[members] = len(self._runs)
        self._runs.append(_Run(self.store.rows, members, self._most_values))
        self.stats.rebuilds += 1

    def _members(self, number: int) -> Ints:
        """The rows of a run that have not left it."""
        members = self._runs[number].members
        return members[self._run_of[members] == number]

    def insert(self, row: int) -> None:
        if row >= len(self._run_of):
            self._run_of = fitted(self._run_of, len(self.store.rows.ids), -1)
        self._scanned[row], self._waiting = None, None
        if len(self._scanned) > _LATER:
            waiting = np.array(sorted(self._scanned), dtype=np.int64)
            empty = self.store.rows.length[waiting] == 0
            self._scanned = dict.fromkeys(waiting[empty].tolist())
            if not empty.all():
                self._add_run(waiting[~empty])

    def delete(self, row: int) -> None:
        if row in self._scanned:
            del self._scanned[row]
            self._waiting = None
            return
        number = int(self._run_of[row])
        self._run_of[row] = -1
        self._runs[number].left += 1
        if 2 * self._runs[number].left > len(self._runs[number].members):
            self._runs[number] = _Run(self.store.rows, self._members(number), self._most_values)
            self.stats.rebuilds += 1

    def _before_search(self) -> None:
        super()._before_search()
        if self._waiting is None:
            self._waiting = np.array(list(self._scanned), dtype=np.int64)

    def search(self, event: Event, k: int, scratch: Scratch) -> int:
        columns, extra, rows = columns_of(event), self._extra(event), self.store.rows
        space, score, size = scratch.workspace, self._scoring, 0
        spread(space.event, *columns)
        for number, run in enumerate(self._runs):
            part = (run.lists, self._run_of, number, run.largest)
            size = conjunctions(rows, part, columns, extra, space, k, score, size)
        if self._waiting is not None and len(self._waiting):
            size = scan_these(rows, self._waiting, extra, space, k, score, size)
        clear(space.event, columns[0])
        return in_order(space.scores, space.ids, size)

    @property
    def overhead(self) -> int:
        return sum(run.nbytes for run in self._runs) + int(self._run_of.nbytes)

    def check(self) -> None:
        self.store.check()
        rows = self.store.rows
        listed = np.zeros(len(rows.length), np.int64)  # how often, by row
        for number, run in enumerate(self._runs):
            lists = run.lists
            assert len(run.members) - len(self._members(number)) == run.left, f"run {number} counts who left"
            which = np.repeat(np.arange(len(lists.size)), np.diff(lists.begin))
            members = lists.row[: len(which)]
            assert (np.diff(members)[which[1:] == which[:-1]] > 0).all(), "a list's rows ascend"
            here = self._run_of[members] == number
            sizes = rows.length[members[here]] == lists.size[which[here]]
            assert sizes.all(), f"row {members[here][~sizes][:1]} is in the partition of its size"
            np.add.at(listed, members[here], 1)
        assert not listed[list(self._scanned)].any(), "a row is listed or scanned"
        for row in self.store.row_of.values():
            scanned = row in self._scanned
            assert scanned or listed[row] >= rows.length[row], f"row {row} is listed once per predicate"


class KIndexPaper(KIndex):
    """k-index as published, to compare with: wide ranges are enumerated, which is larger and slower to build.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("k-index-paper", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "k-index-paper"

    def __init__(
        self, catalogue: SparseCatalogue, score: str | Score = "sum", *, most_values: int = ENUMERABLE
    ) -> None:
        super().__init__(catalogue, score, most_values=most_values)
