"""Kernels on all cores: numba code that releases the interpreter lock, run by a small pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from os import cpu_count
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

WORKERS = min(cpu_count() or 1, 16)
_POOL = ThreadPoolExecutor(WORKERS, thread_name_prefix="topk")

_WORTH_IT = 1 << 16  # things to do below which threads cost more than they save

T = TypeVar("T")


def in_threads(task: Callable[[T], object], parts: Sequence[T], things: float = inf) -> None:
    """Run the task on every part and wait. This thread takes the first part, or all if there are few things to do."""
    mine = len(parts) if things <= _WORTH_IT else 1
    others = [_POOL.submit(task, part) for part in parts[mine:]]
    for part in parts[:mine]:
        task(part)
    for other in others:
        other.result()


def parts(count: int, things: int) -> list[NDArray[np.int64]]:
    """0 … count in equal (begin, end) parts, one per thread; a single one if there are few things to do."""
    workers = WORKERS if things > _WORTH_IT else 1
    edges = np.linspace(0, count, workers + 1).astype(np.int64)
    return [edges[w : w + 2] for w in range(workers)]


def in_parts(kernel: Callable[..., object], count: int, *columns: Any) -> None:
    """Run a kernel on equal slices of the columns, all of length `count`, on all cores."""
    in_threads(lambda part: kernel(*(column[part[0] : part[1]] for column in columns)), parts(count, count))
