"""Ready answers: where few intervals matter, the ranked answer to every value, made in advance.

1. The best `depth` at a value change only where an interval that matters begins (its lo) or has ended (the first
   float after its hi). Between two neighbouring such cuts the answer is constant; equal neighbours are joined.
2. So an event needs no comparison with any interval: the position of its value among the cuts, and a copy of the
   first k pairs that are there. All of that is the interpreter's own C code; turning 20 results of a kernel into
   Python objects takes longer.
3. The range of the cuts is divided into equal buckets, 16 per cut. Arithmetic finds the bucket, and most have no
   cut inside; in the others bisection finds it, in the worst case among all cuts in one bucket.

All answers are made when the index is built, none when it is asked. They stand behind each other in one list: a list
each would cost the garbage collector more than their making. They share their (id, score) pairs, which are made in
the order in which values first meet them, so that those of one answer lie together in memory.

What is outside (below the first cut, from the last one on, NaN, more than `depth` results) is left to the caller.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from math import inf, nextafter
from sys import getsizeof
from typing import Any

import numpy as np
from numba import njit

from topk.base import Match, Quick
from topk.canopy_query import FLAGS, HI, ID, LO, SCORE
from topk.catalogue import Floats
from topk.position import encode
from topk.threads import parts, results

READY_DEPTH = 20  # results that answers are kept for, as in the papers; more make the index slower to build
_WIDEST = np.finfo(np.float64).max / 4  # cuts beyond are left out, and the values there: differences must be finite
_NARROWEST = 1e300  # buckets per unit
_BUCKETS = 16  # per cut: with 8, and bisection twice as often, an answer takes 8 % longer
_POINTER = 8
_MANY = 64  # cuts in one cell that are worth a real sort
_NOWHERE = np.iinfo(np.int32).max
_PLACE = 8 + 4 * _BUCKETS  # bytes of a cut and its buckets
_PAIR = getsizeof((0, 0.0)) + getsizeof(1 << 32) + getsizeof(0.0)


def most_bytes(intervals: int, depth: int) -> int:
    """What the answers for so many intervals that matter can take: two cuts each, if no neighbours are joined."""
    return intervals * (2 * (_PLACE + _POINTER * depth) + _PAIR)


@njit(cache=True, nogil=True)
def _cells_of(views: Any, cells: Any) -> None:
    """Where the lists of the cells are in which each record begins and ends; −1 and _NOWHERE if it does not."""
    table, records, starts, _ = views
    for r in range(len(records)):
        lo, hi = records[r, LO], records[r, HI]
        cells[r, 0] = -1 if lo == -np.inf else starts[encode(table, lo)]
        cells[r, 1] = _NOWHERE if hi == np.inf else starts[encode(table, hi)]


@njit(cache=True, nogil=True)
def _cuts_of_cell(at: int, ranks: Any, records: Any, cells: Any, inside: Any, values: Any, entries: Any) -> Any:
    """Where the intervals of a cell's list begin (entry p) and have ended (entry ~p) in it, ascending; how many.

    `inside` tells which of them contain the cell's first value, unless they begin there.
    """
    count = 0
    for p in range(len(ranks)):
        r = ranks[p]
        inside[p] = cells[r, 0] < at
        if cells[r, 0] == at:
            values[count], entries[count] = records[r, LO], p
            count += 1
        if cells[r, 1] == at:
            values[count], entries[count] = np.nextafter(records[r, HI], np.inf), ~p
            count += 1
    if count > _MANY:
        order = np.argsort(values[:count])
        values[:count], entries[:count] = values[:count][order], entries[:count][order]
        return count
    for e in range(1, count):
        value, entry = values[e], entries[e]
        while e > 0 and values[e - 1] > value:
            values[e], entries[e] = values[e - 1], entries[e - 1]
            e -= 1
        values[e], entries[e] = value, entry
    return count


@njit(cache=True, nogil=True)
def _enter(best: Any, found: int, rank: int, number: int) -> Any:
    """Put a rank and its number among the best; how many there are then. There is room for one too many."""
    t = found
    while t > 0 and best[0, t - 1] > rank:
        best[0, t], best[1, t] = best[0, t - 1], best[1, t - 1]
        t -= 1
    best[0, t], best[1, t] = rank, number
    return min(found + 1, best.shape[1] - 1)


@njit(cache=True, nogil=True)
def _leave(best: Any, found: int, rank: int) -> None:
    """Take a rank out of the best."""
    at = 0
    while best[0, at] != rank:
        at += 1
    for t in range(at, found - 1):
        best[0, t], best[1, t] = best[0, t + 1], best[1, t + 1]


@njit(cache=True, nogil=True)
def _number(numbers: Any, rank: int, used: Any, count: int, base: int) -> Any:
    """A rank's number, from `base` on in the order of first use; how many have one."""
    if numbers[rank] < 0:
        numbers[rank] = base + count
        used[count] = rank
        count += 1
    return count


@njit(cache=True, nogil=True)
def _sweep(views: Any, cells: Any, part: Any, base: int, kept: Any, answers: Any, used: Any) -> Any:
    """Cuts and answers from the cell whose list is at part[0] to the one before part[1]; how many, and ranks used.

    A row of answers holds the numbers of ranks; it is filled up with −1.
    """
    records, lists, depth = views[1], views[3], answers.shape[1]
    numbers = np.full(len(records), -1, np.int64)
    best = np.full((2, depth + 1), -1, np.int64)  # ranks and their numbers
    inside, values, entries = np.empty(0, np.bool_), np.empty(0), np.empty(0, np.int64)
    places = 0
    known: Any = 0
    found: Any = 0
    changed = False
    value = -np.inf
    at = part[0]
    while at < part[1]:
        size = np.int64(lists[at] >> FLAGS)
        if size > len(inside):
            inside, values, entries = np.empty(2 * size, np.bool_), np.empty(4 * size), np.empty(4 * size, np.int64)
        ranks = lists[at + 1 : at + 1 + size]
        cuts = _cuts_of_cell(at, ranks, records, cells, inside, values, entries)
        if at == part[0]:
            for p in range(size):
                if inside[p] and found < depth:
                    known = _number(numbers, ranks[p], used, known, base)
                    found = _enter(best, found, ranks[p], numbers[ranks[p]])
        at += 1 + size
        for e in range(cuts + 1):
            if e == cuts and at < part[1]:
                break  # the next cell may begin with the same value
            if changed and (e == cuts or values[e] > value):
                changed = False
                if abs(value) <= _WIDEST:
                    kept[places] = value
                    for t in range(found):
                        answers[places, t] = best[1, t]
                    for t in range(found, depth):
                        answers[places, t] = -1
                    places += 1
            if e == cuts:
                break
            value = values[e]
            p = entries[e]
            enters = p >= 0
            p = p if enters else ~p
            rank = ranks[p]
            inside[p] = enters
            last = best[0, found - 1] if found == depth else len(records)  # everything else is among the best
            if rank > last:
                continue
            changed = True
            if enters:
                known = _number(numbers, rank, used, known, base)
                found = _enter(best, found, rank, numbers[rank])
                continue
            _leave(best, found, rank)
            found -= 1
            if last < len(records):
                while p < size and not (inside[p] and ranks[p] > last):
                    p += 1
                if p < size:
                    known = _number(numbers, ranks[p], used, known, base)
                    found = _enter(best, found, ranks[p], numbers[ranks[p]])
    return places, known


@njit(cache=True, nogil=True)
def _fill_buckets(cuts: Any, low: float, scale: float, depth: int, buckets: Any) -> None:
    """Per bucket where the answer to its values is; for one with cuts inside the complement of how many are before.

    Behind the last bucket, which has the last cut, there is one more.
    """
    cut = 0
    for b in range(len(buckets)):
        before = cut
        while cut < len(cuts) and np.int64((cuts[cut] - low) * scale) == b:
            cut += 1
        buckets[b] = (before - 1) * depth if cut == before else ~before


class Ready:
    """The answers of one canopy, from its unpacked buffer."""

    def __init__(self, views: Any, depth: int, otherwise: Quick) -> None:
        _, records, starts, lists = views
        cells = np.empty((len(records), 2), np.int32)
        _cells_of(views, cells)
        workers = len(parts(len(records), 2 * len(records) * depth))
        # Equal shares of the lists, each from the list of one cell to that of another.
        end = int(starts[-1]) + 1 + (int(lists[starts[-1]]) >> FLAGS)
        edges = starts[np.searchsorted(starts, end * np.arange(workers) // workers)]
        edges = np.append(edges, end).astype(np.int64)
        # The (id, score) pairs of each share, and at the end the None that answers are filled up with.
        pairs = np.empty(workers * len(records) + 1, object)

        def sweep(w: int) -> tuple[Any, Any, Any]:
            most = 2 * len(records)  # each begins and ends once
            kept, rows, used = np.empty(most), np.empty((most, depth), np.int64), np.empty(len(records), np.int64)
            places, known = _sweep(views, cells, edges[w : w + 2], w * len(records), kept, rows, used)
            return kept[:places], rows[:places], records[used[:known]]

        swept = results(sweep, list(range(workers)))
        for w in range(workers):
            kept, rows, used = swept[w]
            ids, scores = used.view(np.int64)[:, ID].tolist(), used[:, SCORE].tolist()
            at = w * len(records)
            pairs[at : at + len(used)] = np.fromiter(zip(ids, scores, strict=True), object, len(used))
            following = swept[w + 1][0] if w + 1 < workers else kept[:0]
            if len(kept) and len(following) and kept[-1] == following[0]:  # one cut, seen from both sides
                swept[w] = kept[:-1], rows[:-1], used
        self.depth = depth
        self._pairs = sum(len(used) for _, _, used in swept)
        all_rows = np.concatenate([rows for _, rows, _ in swept])
        self._answers: list[Match | None] = np.take(pairs, all_rows.ravel(), mode="wrap").tolist()
        self._set_buckets(np.concatenate([kept for kept, _, _ in swept]))
        self.top, self.take_calls = self._searcher(otherwise)

    def _set_buckets(self, cuts: Floats) -> None:
        self._cuts = array("d", cuts.tobytes())
        self._low = float(cuts[0]) if len(cuts) else inf
        self._high = float(cuts[-1]) if len(cuts) else inf
        width = self._high - self._low
        # A range too narrow for arithmetic is one bucket.
        count = _BUCKETS * len(cuts)
        self._scale = count / width if width * _NARROWEST > count else 0.0
        self._buckets = array("i", [0]) * (int(width * self._scale) + 2 if len(cuts) else 1)
        _fill_buckets(cuts, self._low, self._scale, self.depth, np.frombuffer(self._buckets, np.int32))

    def _searcher(self, otherwise: Quick) -> tuple[Quick, Callable[[], int]]:
        """`top`, as a closure, because looking up attributes would take as long as the bisection; and its counter."""
        answers, cuts, buckets, depth = self._answers, self._cuts, self._buckets, self.depth
        low, high, scale = self._low, self._high, self._scale
        calls = 0

        def among_cuts(value: float) -> int:
            """Where the answer is in a bucket with cuts."""
            bucket = int((value - low) * scale)
            following = buckets[bucket + 1]
            before_next = following // depth + 1 if following >= 0 else ~following
            return depth * (bisect_right(cuts, value, ~buckets[bucket], before_next) - 1)

        def top(event: Any, k: Any) -> list[Match] | None:
            """A fresh list of the k best; what has no ready answer, bad arguments included, is left to `otherwise`."""
            nonlocal calls
            try:
                if isinstance(event, float):
                    value = event
                else:
                    (value,) = event.tolist()
                if low <= value < high and 0 < k <= depth and isinstance(value, float):
                    at = buckets[int((value - low) * scale)]
                    if at < 0:
                        at = among_cuts(value)
                    answer: list[Any] = answers[at : at + k]
                    if answer[-1] is None:  # fewer match
                        del answer[answer.index(None) :]
                    calls += 1
                    return answer
            except (AttributeError, TypeError, ValueError):
                pass  # not a number or an array of one, or k not a number
            return otherwise(event, k)

        def take_calls() -> int:
            """How many were answered since the last time."""
            nonlocal calls
            taken, calls = calls, 0
            return taken

        return top, take_calls

    def __len__(self) -> int:
        return len(self._cuts)

    @property
    def nbytes(self) -> int:
        """With the Python objects behind the pointers."""
        return len(self._answers) * _POINTER + len(self._cuts) * _PLACE + self._pairs * _PAIR

    def check(self, stab: Callable[[float, int], list[Match]]) -> None:
        """Against the lists: `stab` gives the k best at a value. Both ends and the middle of every segment."""
        assert list(self._cuts) == sorted(set(self._cuts)), "cuts ascend"
        assert len(self._answers) == len(self._cuts) * self.depth, "an answer per cut"
        before: list[Match] | None = None
        self.take_calls()
        asked = 0
        for cut, following in pairwise(self._cuts):
            found = None
            for value in (cut, cut / 2 + following / 2, nextafter(following, -inf)):
                if cut <= value < following:
                    asked += 1
                    found = self.top(np.array([value]), self.depth)
                    assert found == stab(value, self.depth), f"the ready answer at {value}"
            assert found != before, "equal neighbours are joined"
            before = found
        assert self.take_calls() == asked, "all of these were ready"
