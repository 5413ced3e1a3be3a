"""Ready answers: where few intervals matter, the ranked answer to every value, made in advance.

1. The best `depth` at a value change only where an interval that matters begins (its lo) or has ended (the first
   float after its hi). Between two neighbouring such cuts the answer is constant; equal neighbours are joined.
2. So an event needs no comparison with any interval: the position of its value among the cuts, and a copy of the
   first k pairs that are there. All of that is the interpreter's and numpy's own C code; turning 20 results of a
   kernel into Python objects takes longer.
3. The range of the cuts is divided into equal buckets, eight per cut. Arithmetic finds the bucket, and most have no
   cut inside; in the others bisection finds it, in the worst case among all cuts in one bucket.

All answers are made when the index is built, none when it is asked. They are rows of one array of pointers: as lists
they would cost the garbage collector more than their making. They share their (id, score) pairs, which are made in
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
from topk.catalogue import Floats, Ints
from topk.position import encode
from topk.threads import parts, results

READY_DEPTH = 24  # results that answers are kept for; more would make the index slower to build
_WIDEST = np.finfo(np.float64).max / 4  # cuts beyond are left out, and the values there: differences must be finite
_NARROWEST = 1e300  # buckets per unit
_BUCKETS = 8  # per cut
_POINTER = 8
_PLACE = 8 + 4 * _BUCKETS  # bytes of a cut and its buckets
_PAIR = getsizeof((0, 0.0)) + getsizeof(1 << 32) + getsizeof(0.0)


def most_bytes(intervals: int, depth: int) -> int:
    """What the answers for so many intervals that matter can take: two cuts each, if no neighbours are joined."""
    return intervals * (2 * (_PLACE + _POINTER * depth) + _PAIR)


@njit(cache=True, nogil=True)
def _sweep(views: Any, cuts: Any, part: Any, depth: int, kept: Any, answers: Any, used: Any) -> Any:
    """Answers at the ascending cuts part[0] … part[1]−1, neighbours joined; (how many, how many ranks are used).

    `kept` are the cuts that remain. A row of answers holds numbers in `used`, which has the ranks in the
    order of their first use; it is filled up with −1.
    """
    table, records, starts, lists = views
    number = np.full(len(records), -1, np.int64)
    ranks, lows, highs = np.empty(0, np.int64), np.empty(0), np.empty(0)
    row, last = np.empty(depth + 1, np.int64), np.empty(depth + 1, np.int64)
    begin = part[0]
    places = 0
    numbers = 0
    before: Any = -1  # results at the last cut
    at = -1
    size: Any = 0
    for c in range(max(begin - 1, 0), part[1]):
        value = cuts[c]  # the one before the part is only compared with; its own part has kept it, or its equal
        start = starts[encode(table, value)]
        if start != at:  # another cell: its intervals side by side
            at = start
            size = np.int64(lists[at] >> FLAGS)
            if size > len(ranks):
                ranks, lows, highs = np.empty(2 * size, np.int64), np.empty(2 * size), np.empty(2 * size)
            for t in range(size):
                ranks[t] = lists[at + 1 + t]
                lows[t], highs[t] = records[ranks[t], LO], records[ranks[t], HI]
        found: Any = 0
        for t in range(size):
            row[found] = ranks[t]
            found += np.int64(lows[t] <= value) & np.int64(value <= highs[t])
            if found == depth:
                break
        if before == found:
            differ: Any = np.int64(0)
            for t in range(found):
                differ |= row[t] ^ last[t]
            if differ == 0:
                continue
        row, last, before = last, row, found
        if c < begin:
            continue
        for t in range(found):
            if number[last[t]] < 0:
                number[last[t]] = numbers
                used[numbers] = last[t]
                numbers += 1
            answers[places, t] = number[last[t]]
        answers[places, found:depth] = -1
        kept[places] = value
        places += 1
    return places, numbers


def _pairs(records: Any) -> Any:
    """Their (id, score) pairs, and behind them the None that rows are filled up with."""
    pairs = np.empty(len(records) + 1, object)
    ids, scores = records.view(np.int64)[:, ID].tolist(), records[:, SCORE].tolist()
    pairs[:-1] = np.fromiter(zip(ids, scores, strict=True), object, len(records))
    return pairs


class Ready:
    """The answers of one canopy, from its unpacked buffer."""

    def __init__(self, views: Any, depth: int, otherwise: Quick) -> None:
        records = views[1]
        with np.errstate(over="ignore"):  # nothing is behind the last float
            ends = np.concatenate((records[:, LO], np.nextafter(records[:, HI], np.inf)))
        cuts = np.sort(ends[np.abs(ends) <= _WIDEST])

        def sweep(part: Ints) -> tuple[Any, Any, Any]:
            most = int(part[1] - part[0])
            kept, rows = np.empty(most), np.empty((most, depth), np.int64)
            used = np.empty(len(records), np.int64)
            places, numbers = _sweep(views, cuts, part, depth, kept, rows, used)
            return kept[:places], rows[:places], records[used[:numbers]]

        swept = results(sweep, parts(len(cuts), len(cuts) * depth))
        self.depth = depth
        self._cuts = array("d", np.concatenate([kept for kept, _, _ in swept]).tobytes())
        self._pairs = sum(len(used) for _, _, used in swept)
        # A place is the number of cuts ≤ value: the first row, in front of all cuts, is never looked up.
        self._answers = np.empty((1 + len(self._cuts)) * depth, object)
        at = depth
        for _, rows, used in swept:
            np.take(_pairs(used), rows.ravel(), out=self._answers[at : at + rows.size], mode="wrap")
            at += rows.size
        self._set_buckets(np.array(self._cuts))
        self.top, self.take_calls = self._searcher(otherwise)

    def _set_buckets(self, cuts: Floats) -> None:
        """first[b] is how many cuts are in the buckets before b."""
        self._low = float(cuts[0]) if len(cuts) else inf
        self._high = float(cuts[-1]) if len(cuts) else inf
        width = self._high - self._low
        # A range too narrow for arithmetic is one bucket.
        buckets = _BUCKETS * len(cuts)
        self._scale = buckets / width if width * _NARROWEST > buckets else 0.0
        sizes = np.bincount(((cuts - self._low) * self._scale).astype(np.int64), minlength=1)
        self._first = array("i", np.concatenate(([0], np.cumsum(sizes))).astype(np.int32).tobytes())

    def _searcher(self, otherwise: Quick) -> tuple[Quick, Callable[[], int]]:
        """`top`, as a closure, because looking up attributes would take as long as the bisection; and its counter."""
        answers, cuts, first, depth = self._answers, self._cuts, self._first, self.depth
        low, high, scale = self._low, self._high, self._scale
        calls = 0

        def top(event: Any, k: Any) -> list[Match] | None:
            """A fresh list of the k best; what has no ready answer, bad arguments included, is left to `otherwise`."""
            nonlocal calls
            try:
                (value,) = event.tolist()
                if low <= value < high and 0 < k <= depth and type(value) is float:
                    bucket = int((value - low) * scale)
                    place, end = first[bucket], first[bucket + 1]
                    if place != end:
                        place = bisect_right(cuts, value, place, end)
                    place *= depth
                    answer: list[Match] = answers[place : place + k].tolist()
                    if answer[-1] is None:  # fewer match
                        del answer[answer.index(None) :]
                    calls += 1
                    return answer
            except (AttributeError, TypeError, ValueError):
                pass  # not an array of one number, or k not a number
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
        return self._answers.nbytes + len(self._cuts) * _PLACE + self._pairs * _PAIR

    def check(self, stab: Callable[[float, int], list[Match]]) -> None:
        """Against the lists: `stab` gives the k best at a value. Both ends and the middle of every segment."""
        assert list(self._cuts) == sorted(set(self._cuts)), "cuts ascend"
        assert len(self._answers) == (len(self._cuts) + 1) * self.depth, "an answer per cut, and one before"
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
