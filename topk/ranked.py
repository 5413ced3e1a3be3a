"""What our own static matchers share: ranks, and batches over all cores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coverlay import kernel
from topk.answers import Batch
from topk.catalogue import Catalogue
from topk.checks import Floats, Ints
from topk.contract import TopKIndex
from topk.kernels.threads import WORKERS, in_threads

# ---- rank order: numpy sorts plain integers four times as fast as it finds a sorting permutation ---------


@kernel
def _keys(scores: Any, index_bits: int, keys: Any) -> None:
    """Keys that ascend as scores descend: the upper bits of a score, then the row."""
    sign = np.uint64(1) << np.uint64(63)
    low = (np.uint64(1) << np.uint64(index_bits)) - np.uint64(1)
    for i in range(len(scores)):
        keys[i] = scores[i] + 0.0  # −0.0 becomes 0.0, which it equals
    bits = keys.view(np.uint64)
    for i in range(len(scores)):
        word = bits[i] if bits[i] & sign else ~(bits[i] | sign)
        bits[i] = (word & ~low) | np.uint64(i)


@kernel
def _rows(keys: Any, index_bits: int, scores: Any, ids: Any, order: Any) -> bool:
    """Extract the rows from sorted keys; returns whether their order is right even where the upper bits tie."""
    shift = np.uint64(index_bits)
    low = (np.uint64(1) << shift) - np.uint64(1)
    right, row = True, np.int64(0)
    for t in range(len(keys)):
        before, row = row, np.int64(keys[t] & low)
        order[t] = row
        if t > 0 and keys[t] >> shift == keys[t - 1] >> shift:
            right &= scores[before] > scores[row] or (scores[before] == scores[row] and ids[before] < ids[row])
    return right


def ranked_order(scores: Floats, ids: Ints) -> Ints:
    """Rows best first, ties by ascending id."""
    index_bits = max(len(scores) - 1, 1).bit_length()
    keys, order = np.empty(len(scores)), np.empty(len(scores), np.int64)
    _keys(scores, index_bits, keys)
    words = keys.view(np.uint64)
    words.sort()
    if not _rows(words, index_bits, scores, ids, order):  # rare: equal scores with descending ids, or nearly equal ones
        order = np.lexsort((ids, -scores))
    return order


class RankedIndex(TopKIndex):
    """A static matcher over rows in rank order."""

    parallel: ClassVar[int] = 256  # events in a batch below which threads cost more than they save

    def __init__(self, catalogue: Catalogue, semantics: str) -> None:
        super().__init__(catalogue, semantics)
        self.stats.rebuilds += 1

    @abstractmethod
    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        """Answer events (m, d) into rows of ids and scores (m, k); work = (entries, nodes). Thread-safe."""

    def top_many(self, events: ArrayLike, k: int | None) -> Batch:
        points, wanted = self._events(events), self._count(k)
        if self._residuals or wanted == 0:
            return super().top_many(events, k)
        self.stats.queries += len(points)
        return self._many(points, wanted)

    def _many(self, events: Floats, k: int) -> Batch:
        """Answer all events with one kernel call per core."""
        count = len(events)
        ids, scores, counts = np.empty((count, k), np.int64), np.empty((count, k)), np.zeros(count, np.int64)
        work = np.zeros((WORKERS, 2), np.int64)
        edges = np.linspace(0, count, (WORKERS if count >= self.parallel else 1) + 1).astype(np.int64)

        def answer(w: int) -> None:
            part = slice(edges[w], edges[w + 1])
            self._batch(events[part], ids[part], scores[part], counts[part], work[w])

        in_threads(answer, list(range(len(edges) - 1)))
        entries, nodes = work.sum(axis=0).tolist()
        self.stats.add(entries=entries, nodes=nodes)
        return Batch(ids, scores, counts)
