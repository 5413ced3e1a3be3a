"""Kernels that keep the k best (score, id) pairs: a bounded heap with the worst on top.

The order everywhere: higher score first, then lower id. `worse(a, b)` is that order reversed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.catalogue import Floats, Ints


@kernel(inline="always")
def worse(score_a: float, id_a: int, score_b: float, id_b: int) -> Any:
    return score_a < score_b or (score_a == score_b and id_a > id_b)


@kernel
def _sink(scores: Any, ids: Any, size: int, score: float, id: int) -> None:
    """Put a pair in place of the top of a heap of `size` pairs."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and worse(scores[child + 1], ids[child + 1], scores[child], ids[child]):
            child += 1
        if not worse(scores[child], ids[child], score, id):
            break
        scores[i] = scores[child]
        ids[i] = ids[child]
        i = child
    scores[i] = score
    ids[i] = id


@kernel
def push(scores: Any, ids: Any, size: int, score: float, id: int) -> int:
    """Offer a pair to the heap of capacity len(ids) holding `size` pairs; returns the new size."""
    if size < len(ids):
        i = size
        while i > 0:
            parent = (i - 1) >> 1
            if not worse(score, id, scores[parent], ids[parent]):
                break
            scores[i] = scores[parent]
            ids[i] = ids[parent]
            i = parent
        scores[i] = score
        ids[i] = id
        return size + 1
    if not worse(scores[0], ids[0], score, id):
        return size
    _sink(scores, ids, size, score, id)
    return size


@kernel
def in_order(scores: Any, ids: Any, size: int) -> int:
    """Turn the heap of `size` pairs into the order of an answer, in place; returns the size."""
    for last in range(size - 1, 0, -1):
        score, id = scores[last], ids[last]
        scores[last], ids[last] = scores[0], ids[0]
        _sink(scores, ids, last, score, id)
    return size


def best_first(ids: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Sort pairs into the order of an answer."""
    order = np.lexsort((ids, -scores))
    return ids[order], scores[order]
