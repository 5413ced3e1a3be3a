"""The one heap and the one sort of kernels against sorted lists: pairs, plain numbers, and the k best."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coverlay import kernel
from topk.kernels import heaps
from topk.kernels.rows import ascending

PAIRS = st.lists(st.tuples(st.integers(-3, 3).map(float), st.integers(0, 50)), max_size=40, unique=True)
SOME = settings(max_examples=80)


def by_heap(pair: tuple[float, int]) -> tuple[float, int]:
    """The smallest key first, among equal keys the largest item."""
    return pair[0], -pair[1]


@SOME
@given(PAIRS, st.booleans())
def test_pairs_come_out_in_order(pairs: list[tuple[float, int]], at_once: bool) -> None:
    keys, items = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=np.int64)
    size = len(pairs)
    if at_once:
        heaps.heapify(keys, items, size)
    else:
        keys, items, size = np.empty(len(pairs)), np.empty(len(pairs), np.int64), 0
        for key, item in pairs:
            size = heaps.push(keys, items, size, key, item)
    found = []
    while size:
        found.append((float(keys[0]), int(items[0])))
        size = heaps.pop(keys, items, size)
    assert found == sorted(pairs, key=by_heap)


@SOME
@given(PAIRS, st.integers(1, 12))
def test_the_best_are_kept_and_put_in_the_order_of_an_answer(pairs: list[tuple[float, int]], k: int) -> None:
    scores, ids, size = np.empty(k), np.empty(k, np.int64), 0
    for score, id in pairs:
        size = heaps.offer(scores, ids, size, score, id)
    heaps.in_order(scores, ids, size)
    found = list(zip(scores[:size].tolist(), ids[:size].tolist(), strict=True))
    assert found == sorted(pairs, key=lambda pair: (-pair[0], pair[1]))[:k]


@SOME
@given(st.lists(st.integers(-20, 20), max_size=40))
def test_plain_numbers_are_their_own_items(numbers: list[int]) -> None:
    heap, size = np.array(numbers, dtype=np.int64), len(numbers)
    heaps.heapify(heap, heap, size)
    found = []
    while size:
        found.append(int(heap[0]))
        size = heaps.pop(heap, heap, size)
    assert found == sorted(numbers)


@kernel
def order_of(keys: Any, sign: float) -> Any:
    return ascending(keys, sign)


@SOME
@given(st.lists(st.floats(allow_nan=False) | st.integers(-3, 3).map(float), max_size=90), st.sampled_from([1.0, -1.0]))
def test_keys_are_put_in_order_and_equal_ones_stay_in_theirs(keys: list[float], sign: float) -> None:
    values = np.array(keys, np.float64)
    assert order_of(values, sign).tolist() == np.argsort(sign * values, kind="stable").tolist()
