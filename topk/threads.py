"""Kernels on all cores: numba code that releases the interpreter lock, run by a small pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import TypeVar

WORKERS = min(cpu_count() or 1, 16)
_POOL = ThreadPoolExecutor(WORKERS, thread_name_prefix="topk")

T = TypeVar("T")


def in_threads(task: Callable[[T], object], parts: Sequence[T]) -> None:
    """Run task on every part, the first one on this thread; returns when all are done."""
    others = [_POOL.submit(task, part) for part in parts[1:]]
    for part in parts[:1]:
        task(part)
    for other in others:
        other.result()
