"""Timing on a machine that is not ours alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def mean_least(
    tasks: Mapping[str, Callable[[Any], Any]], events: Any, rounds: int, warm_up: Any = ()
) -> dict[str, float]:
    """Mean over events of the least of `rounds` times, methods taking turns: what a quiet machine would take.

    A process that is interrupted spoils single measurements, not the least of several; and each event is its own
    measurement, so that the least never picks the easiest event. `warm_up` events are answered before each turn and
    not timed: a method in use finds the caches as its own calls leave them, not as another method did.
    """
    least = {name: np.full(len(events), np.inf) for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            times = least[name]
            for event in warm_up:
                task(event)
            for i, event in enumerate(events):
                started = time.perf_counter()
                task(event)
                times[i] = min(times[i], time.perf_counter() - started)
    return {name: float(times.mean()) for name, times in least.items()}
