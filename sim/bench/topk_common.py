"""What the parts of the matching benchmark share: workloads, and times of methods that differ a thousandfold."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sim.bench import Progress
from sim.bench.timing import mean_least
from sim.bench.topk_peers import snap
from sim.workloads.regional_zipf import regional_zipf, zipf_lengths

K = 20
OURS = "auto"
ROUNDS = 50  # on a busy machine some of them run undisturbed; a neighbour on the same core slows one by half
_QUICK = 0.0005  # seconds per event below which all events are answered in all rounds
_SLOW = 0.02


def workload(kind: str, n: int, events: int, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """lo, hi, scores, event values."""
    if kind.startswith("paper"):
        points = regional_zipf(rng, n + events, 1)[:, 0]
        half = zipf_lengths(rng, n, 1)[:, 0]
        values = points[n:] if kind == "paper" else regional_zipf(rng, events, 1)[:, 0]
        return snap(points[:n] - half), snap(points[:n] + half), 1 - half, snap(values)
    start = rng.random(n)
    if kind == "short":
        return snap(start), snap(start + 20 / n * rng.random(n)), rng.random(n), snap(rng.random(events))
    return snap(start * 0.05), snap(1 - 0.05 * rng.random(n)), rng.random(n), snap(rng.random(events))


def paced(tasks: dict[str, Callable[[Any], Any]], events: list[Any], progress: Progress) -> dict[str, float]:
    """Seconds per event. Slow methods answer fewer of the events, fast ones more often."""
    seconds: dict[str, float] = {}
    paces: dict[tuple[int, int], dict[str, Callable[[Any], Any]]] = {}
    for name, task in tasks.items():
        once = min(_seconds(task, event) for event in events[:3])
        pace = (200, ROUNDS) if once < _QUICK else (20, 5) if once < _SLOW else (5, 2)
        paces.setdefault(pace, {})[name] = task
    for (count, rounds), group in paces.items():
        progress(f"timing {', '.join(group)}")
        # As in the paper's experiments: some queries to warm up, then others are measured.
        seconds |= mean_least(group, events[:count], rounds, warm_up=events[count:])
    return seconds


def _seconds(task: Callable[[Any], Any], event: Any) -> float:
    started = time.perf_counter()
    task(event)
    return time.perf_counter() - started


def asking(search: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
    return lambda event: search(event, K)
