"""Ready answers: where few intervals matter, the ranked answer to every value, made in advance.

1. The best `depth` at a value change only where an interval that matters begins (its lo) or has ended (the first
   float after its hi). Between two neighbouring such cuts the answer is constant; equal neighbours are joined.
2. So an event needs no comparison with any interval: the position of its value among the cuts, and a copy of the
   first k pairs that are there. All of that is the interpreter's own C code; turning 20 results of a kernel into
   Python objects takes longer.
3. The range of the cuts is divided into equal buckets, 32 per cut. Arithmetic finds the bucket, and most have no
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
from math import inf, nan, nextafter
from sys import getsizeof
from typing import Any

import numpy as np

from coverlay import kernel
from topk.base import Match, Quick
from topk.canopy_query import FLAGS, ID, SCORE
from topk.catalogue import Floats
from topk.ready_sweep import cells_of, sweep
from topk.threads import parts, results

READY_DEPTH = 20  # results that answers are kept for, as in the papers; more make the index slower to build
_NARROWEST = 1e300  # buckets per unit
_BUCKETS = 32  # per cut: with 16, and bisection twice as often, an answer takes 8 % longer
_POINTER = 8
_PLACE = 8 + 4 * _BUCKETS  # bytes of a cut and its buckets
_PAIR = getsizeof((0, 0.0)) + getsizeof(1 << 32) + getsizeof(0.0)


def most_bytes(intervals: int, depth: int) -> int:
    """What the answers for so many intervals that matter can take: two cuts each, if no neighbours are joined."""
    return intervals * (2 * (_PLACE + _POINTER * depth) + _PAIR)


@kernel
def _fill_buckets(cuts: Any, rows: Any, low: float, scale: float, buckets: Any) -> None:
    """Per bucket where the answer to its values is, if all have the same, and a full one; else ~cuts before it.

    Behind the last bucket, which has the last cut, there is one more.
    """
    cut, depth = 0, rows.shape[1]
    for b in range(len(buckets)):
        before = cut
        while cut < len(cuts) and np.int64((cuts[cut] - low) * scale) == b:
            cut += 1
        simple = cut == before and rows[before - 1, depth - 1] >= 0  # the first bucket has the first cut
        buckets[b] = (before - 1) * depth if simple else ~before


class Ready:
    """The answers of one canopy, from its unpacked buffer."""

    def __init__(self, views: Any, depth: int, otherwise: Quick) -> None:
        _, records, starts, lists = views
        cells = np.empty((len(records), 2), np.int32)
        cells_of(views, cells)
        workers = len(parts(len(records), 2 * len(records) * depth))
        # Equal shares of the lists, each from the list of one cell to that of another.
        end = int(starts[-1]) + 1 + (int(lists[starts[-1]]) >> FLAGS)
        bins = np.searchsorted(starts, end * np.arange(workers) // workers)
        edges = np.append(starts[np.minimum(bins, len(starts) - 1)], end).astype(np.int64)
        # The (id, score) pairs of each share, and at the end the None that answers are filled up with.
        pairs = np.empty(workers * len(records) + 1, object)

        def swept_share(w: int) -> tuple[Any, Any, Any]:
            most = 2 * len(records)  # each begins and ends once
            kept, rows, used = np.empty(most), np.empty((most, depth), np.int64), np.empty(len(records), np.int64)
            places, known = sweep(views, cells, edges[w : w + 2], w * len(records), kept, rows, used)
            return kept[:places], rows[:places], records[used[:known]]

        swept = results(swept_share, list(range(workers)))
        for w, (_, _, used) in enumerate(swept):
            ids, scores = used.view(np.int64)[:, ID].tolist(), used[:, SCORE].tolist()
            at = w * len(records)
            pairs[at : at + len(used)] = np.fromiter(zip(ids, scores, strict=True), object, len(used))
        cuts, rows = (np.concatenate([share[i] for share in swept]) for i in (0, 1))
        again = np.flatnonzero(cuts[1:] == cuts[:-1])  # a cut between two shares that both have seen: the latter knows
        if len(again):
            cuts, rows = np.delete(cuts, again), np.delete(rows, again, axis=0)
        self.depth = depth
        self._pairs = sum(len(used) for _, _, used in swept)
        self._answers: list[Match | None] = np.take(pairs, rows.ravel(), mode="wrap").tolist()
        self._set_buckets(cuts, rows)
        self.top, self.take_calls = self._searcher(otherwise)

    def _set_buckets(self, cuts: Floats, rows: Any) -> None:
        self._cuts = array("d", cuts.tobytes())
        self._low = float(cuts[0]) if len(cuts) else inf
        self._high = float(cuts[-1]) if len(cuts) else inf
        width = self._high - self._low
        # A range too narrow for arithmetic is one bucket.
        count = _BUCKETS * len(cuts)
        self._scale = count / width if width * _NARROWEST > count else 0.0
        self._buckets = array("i", [0]) * (int(width * self._scale) + 2 if len(cuts) else 1)
        if len(cuts):
            _fill_buckets(cuts, rows, self._low, self._scale, np.frombuffer(self._buckets, np.int32))

    def _searcher(self, otherwise: Quick) -> tuple[Quick, Callable[[], int]]:
        """`top`, as a closure, because looking up attributes would take as long as the bisection; and its counter."""
        answers, cuts, buckets, depth = self._answers, self._cuts, self._buckets, self.depth
        low, high, scale = self._low, self._high, self._scale
        calls = 0

        def look_closer(value: float, k: int) -> list[Match]:
            """In a bucket with cuts, or where fewer than `depth` match."""
            bucket = int((value - low) * scale)
            following = buckets[bucket + 1]
            before_next = following // depth + 1 if following >= 0 else ~following
            at = depth * (bisect_right(cuts, value, ~buckets[bucket], before_next) - 1)
            answer: list[Any] = answers[at : at + k]
            if answer[-1] is None:
                del answer[answer.index(None) :]
            return answer

        def top(event: Any, k: Any) -> list[Match] | None:
            """A fresh list of the k best; what has no ready answer, bad arguments included, is left to `otherwise`."""
            nonlocal calls
            try:
                if isinstance(event, float):
                    value = event
                else:
                    (value,) = event.tolist()
                    value = value if isinstance(value, float) else nan
                if low <= value and 0 < k <= depth:
                    at = buckets[int((value - low) * scale)]
                    if at >= 0:
                        calls += 1
                        answer: list[Any] = answers[at : at + k]
                        return answer
                    if value < high:
                        calls += 1
                        return look_closer(value, k)
            except (AttributeError, TypeError, ValueError, IndexError, OverflowError):
                pass  # not a number or an array of one, k not a number, or beyond all buckets
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
