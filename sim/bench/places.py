"""Ranked matching of expressions with a place: all methods on the paper's default workload (Table 4 of SSTD 2015).

All get the same events in turns and must give the same answer; times are per single call, top-5, and for the R^I-tree
also per event of a batch on all cores. The R^t-tree and the R^I-tree search the same tree, which is built once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sim.bench import Progress, Row
from sim.bench.timing import mean_least
from sim.workloads.located import Located, located_workload
from topk.places import PlacedCatalogue, PlacedIndex, build
from topk.places.ri_tree import RITree
from topk.places.rt_tree import RTTree

K = 5
SCAN, MATCHING = "scan (numba)", "matching"
SETS = ("places, uniform", "places, zipf")
_EVENTS = 20
_ROUNDS = 3
_BATCH = 10  # times the events: long enough to keep all cores busy


def run(count: int, progress: Progress) -> list[Row]:
    rows = []
    for data in SETS:
        said = f"{data}, {count} expressions"
        progress(f"{said}: generating")
        workload = located_workload(Located(subscriptions=count, events=_EVENTS, distribution=data.split()[-1]))
        built = _built(workload.catalogue, said, progress)
        progress(f"{said}: measuring")
        expected = list(built["scan"][0].top_many(workload.events, K))
        for name, (index, _) in built.items():
            assert list(index.top_many(workload.events, K)) == expected, f"{name} disagrees with the scan"
        single = mean_least({n: _asker(index) for n, (index, _) in built.items()}, workload.events, _ROUNDS)
        many = workload.events * _BATCH
        tree, seconds = built[RITree.name]
        each = mean_least({tree.name: partial(tree.top_many, k=K)}, [many], _ROUNDS)[tree.name] / len(many)
        sizes = {name: index.overhead / count for name, (index, _) in built.items()}
        for name, (_, taken) in built.items():
            rows.append(measured(data, count, MATCHING, name, single[name], single["scan"], taken, sizes[name]))
        rows.append(
            measured(data, count, MATCHING, f"{tree.name}, batch", each, single["scan"], seconds, sizes[tree.name])
        )
    return rows


def _built(catalogue: PlacedCatalogue, said: str, progress: Progress) -> dict[str, tuple[PlacedIndex, float]]:
    """Every method with the seconds that it took to build."""
    built: dict[str, tuple[PlacedIndex, float]] = {}
    for name in ("scan", "tas", RITree.name):
        progress(f"{said}: building {name}")
        started = time.perf_counter()
        built[name] = (build(name, catalogue), time.perf_counter() - started)
    tree, seconds = built[RITree.name]
    assert isinstance(tree, RITree)
    return {**built, RTTree.name: (RTTree.beside(tree), seconds)}


def _asker(index: PlacedIndex) -> Callable[[Any], Any]:
    return lambda event: index.top(event.event, event.place, K)


def measured(
    data: str, count: int, events: str, method: str, seconds: float, scan: float, build: float, size: float | None
) -> Row:
    """A row of the table; `size` is in bytes per subscription beyond the catalogue."""
    return {
        "data": data,
        "subscriptions": count,
        "events": events,
        "method": SCAN if method == "scan" else method,
        "us_per_event": round(seconds * 1e6, 1),
        "times_scan": round(scan / seconds, 2),
        "build_s": round(build, 2),
        "bytes_per_subscription": None if size is None else round(size),
    }
