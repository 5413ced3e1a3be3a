"""Further aspects of the matching benchmark: interval events, size, space, upkeep."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import topk
from sim.bench import Progress, Row
from sim.bench.timing import mean_least
from sim.bench.topk_common import OURS, ROUNDS, K, asking, paced, workload
from topk.papers.interval.contract import Entries
from topk.papers.interval.ir_tree import IRTree
from topk.papers.interval.sopt_rtree import SoptRTree


def intervals(n: int, progress: Progress) -> list[Row]:
    """Events that are intervals, on the paper's subscriptions: a hundredth and a millionth of the domain wide."""
    rng = np.random.default_rng(29)
    lo, hi, scores, values = workload("paper, elsewhere", n, 200, rng)
    catalogue = topk.Catalogue.from_boxes(lo, hi, scores)
    rows: list[Row] = []
    indexes = {}
    for name in ("scan", OURS, "scored-rtree", "sopt-rtree", "ir-tree", "segment-tree"):
        progress(f"interval events, n = {n:,}: building {name}")
        indexes[name] = topk.create(name, catalogue)
    for width in (1e-2, 1e-6):
        events = [(v[None], v[None] + width) for v in values[:50]]
        expected = [indexes["scan"].top_overlapping(*event, K) for event in events[:10]]
        for name, index in indexes.items():
            assert [index.top_overlapping(*event, K) for event in events[:10]] == expected, f"{name} disagrees"
        times = paced({name: _meeting(index.top_overlapping) for name, index in indexes.items()}, events, progress)
        rows += [
            {
                "case": f"interval events, {width:g} wide", "n": n, "method": name,
                "us_single": seconds * 1e6, "times_ours": seconds / times[OURS],
            }
            for name, seconds in times.items()
        ]  # fmt: skip
    return rows


def _meeting(search: Callable[[Any, Any, int], Any]) -> Callable[[Any], Any]:
    return lambda event: search(event[0], event[1], K)


def scale(sizes: tuple[int, ...], progress: Progress) -> list[Row]:
    """Our index at every size: build, bytes, peak of the build, µs per query."""
    rows: list[Row] = []
    for n in sizes:
        progress(f"{OURS} at n = {n:,}")
        lo, hi, scores, values = workload("short", n, 1000, np.random.default_rng(31))
        catalogue = topk.Catalogue.from_boxes(lo, hi, scores)
        tracemalloc.start()
        topk.create(OURS, catalogue)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        started = time.perf_counter()
        index = topk.create(OURS, catalogue)
        build = time.perf_counter() - started
        events = values[:, None]
        single = mean_least({OURS: asking(index.top)}, list(events[:200]), ROUNDS)[OURS]
        batch = mean_least({OURS: asking(index.top_many)}, [events], 7)[OURS]
        rows.append(
            {
                "case": "scale, short",
                "n": n,
                "method": OURS,
                "build_ms": build * 1e3,
                "bytes": index.nbytes,
                "peak_bytes": peak,
                "us_single": single * 1e6,
                "us_batch": batch / len(events) * 1e6,
            }
        )
    return rows


def upkeep(n: int, progress: Progress) -> list[Row]:
    """Amortised µs per insertion, deletion and score update, n of them one by one into an empty index."""
    rng = np.random.default_rng(5)
    lo, hi, scores, _ = workload("paper", n, 1, rng)
    rows: list[Row] = []
    for name in ("scan", "ir-tree", "sopt-rtree", OURS):
        progress(f"upkeep of {name}, n = {n:,}")
        for warm in (True, False):  # once small, for the compiler
            index = topk.create(name, topk.Catalogue.empty(1))
            count = 3000 if warm else n
            started = time.perf_counter()
            for i in range(count):
                index.add(i, lo[i : i + 1], hi[i : i + 1], scores[i])
            added = time.perf_counter()
            built = index.stats.rebuilds
            for i in range(0, count, 4):
                index.update_score(i, scores[i] / 2)
            updated = time.perf_counter()
            rebuilt = index.stats.rebuilds - built
            for i in range(0, count, 4):
                index.remove(i)
            removed = time.perf_counter()
        rows.append(
            {
                "case": "upkeep",
                "n": n,
                "method": name,
                "us_add": (added - started) / n * 1e6,
                "us_update": (updated - added) / (n / 4) * 1e6,
                "us_remove": (removed - updated) / (n / 4) * 1e6,
                "rebuilds": built,
                "rebuilds_of_updates": rebuilt,
            }
        )
    return rows


def space(n: int) -> list[Row]:
    """Bytes of the two recommended trees against the interval data they hold."""
    rng = np.random.default_rng(3)
    lo, hi, scores, _ = workload("paper", n, 1, rng)
    entries = Entries(np.arange(n), lo, hi, scores, np.arange(n))
    data = {SoptRTree: 24 * n, IRTree: 32 * n}  # bounds and row; the updatable one also score and id
    return [
        {
            "case": "space", "n": n, "method": cls.name, "bytes": (size := cls(entries).nbytes),
            "bytes_over_data": size / data[cls],
        }
        for cls in (SoptRTree, IRTree)
    ]  # fmt: skip
