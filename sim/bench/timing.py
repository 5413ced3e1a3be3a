"""Timing on a machine that is not ours alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
_BETWEEN = 20e-6  # seconds between two readings of the clock, at least: a reading takes 0.1 µs, some answers 0.6
_WARM = 0.02  # seconds that a method warms up: an answer of 0.6 µs takes 0.9 right after another method's turn


def timed(task: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    """What a call returns, and how many seconds it took."""
    started = clock()
    return task(), clock() - started


def cpu_seconds(java: int) -> float:
    """CPU seconds that this process and a Java process have taken so far, as Linux tells."""
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _warm(task: Callable[[Any], Any], events: Sequence[Any]) -> None:
    """As many events as there is time for, at least one."""
    until = time.perf_counter() + _WARM
    for event in events:
        task(event)
        if time.perf_counter() > until:
            return


def mean_least(
    tasks: Mapping[str, Callable[[Any], Any]],
    events: Any,
    rounds: int,
    warm_up: Sequence[Any] = (),
    clock: Callable[[], float] | None = None,
    between: float = _BETWEEN,
) -> dict[str, float]:
    """Mean over events of the least of `rounds` times, methods taking turns: what a quiet machine would take.

    An interruption spoils single measurements, not the least of several; and each event is its own measurement, so that
    the least never picks the easiest event. Events that are answered in a few microseconds are measured in groups, as
    large as the first round suggests. `warm_up` events are answered before each turn and not timed, for some
    milliseconds: a method in use finds caches, address translation and branch prediction as its own calls leave them,
    not as another method did. A clock that is slower to read than the wall clock needs more seconds `between` readings.
    """
    events, read = list(events), clock or time.perf_counter
    groups = {name: [[event] for event in events] for name in tasks}
    least = {name: np.full(len(events), np.inf) for name in tasks}
    for turn in range(rounds):
        for name, task in tasks.items():
            if turn == 1:
                together = min(max(int(between / max(least[name].mean(), 1e-9)), 1), len(events))
                if together > 1:
                    groups[name] = [events[i : i + together] for i in range(0, len(events), together)]
                    least[name] = np.full(len(groups[name]), np.inf)
            times = least[name]
            _warm(task, warm_up)
            for i, group in enumerate(groups[name]):
                started = read()
                for event in group:
                    task(event)
                times[i] = min(times[i], read() - started)
    return {name: float(times.sum()) / len(events) for name, times in least.items()}
