"""Ranked matching of Boolean expressions and of places: ours beside a full numba scan and what others would use.

All methods of a line get the same events in turns and must give the same answer; times are per single call, top-5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sim.bench import places
from sim.bench.sparse_peers import PEERS
from sim.bench.timing import mean_least
from sim.workloads.begen import Begen, Expressions, begen, dblp_like, unmatched
from topk import sparse

K = 5
SCAN, OURS = "scan (numba)", "pivot"
TREES = ("k-index", "be-tree", "be-star", "be-star-batch")
DBLP = {"author": 0.76, "title": 0.25}  # dense sets; of a million: the published sizes (Table III)
_EVENTS = 40
_PEER_EVENTS = 3  # peers take milliseconds to seconds
_ROUNDS = 5
_BATCH = 25  # times the events: long enough to keep all cores busy
_ALL_TREES = 100_000  # expressions up to which all the papers' structures are built; above, BE*-Tree's two


def run(quick: bool, progress: Callable[[str], None]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    tiny = begen(Begen(subscriptions=500, events=1))
    for name in sparse.METHODS:
        progress(f"compiling {name}")
        sparse.build(name, tiny.catalogue).top(tiny.events[0], K)
    for count in (20_000, 100_000) if quick else (100_000, 1_000_000):
        for distribution in ("uniform", "zipf"):
            progress(f"{count} {distribution} expressions")
            workload = begen(Begen(subscriptions=count, events=_EVENTS, distribution=distribution))
            names = ("scan", OURS, *TREES) if count <= _ALL_TREES else ("scan", OURS, "be-star", "be-star-batch")
            rows += _expressions(distribution, workload, names, progress)
        for kind, share in DBLP.items():
            progress(f"{int(count * share)} expressions like DBLP's, {kind}")
            workload = dblp_like(kind, int(count * share), _EVENTS)
            rows += _expressions(kind, workload, ("scan", OURS, "be-star"), progress)
    rows += places.run(100_000 if quick else 2_000_000, progress)
    return rows


def _expressions(
    data: str, workload: Expressions, names: tuple[str, ...], progress: Callable[[str], None]
) -> list[dict[str, object]]:
    catalogue, events = workload.catalogue, list(workload.events)
    built: dict[str, tuple[Any, float, float]] = {}
    for name in names:
        progress(f"{data}: building {name}")
        started = time.perf_counter()
        index = sparse.build(name, catalogue)
        seconds = time.perf_counter() - started
        built[SCAN if name == "scan" else name] = (index, seconds, index.overhead / len(catalogue))
    expected = [built[SCAN][0].top(event, K) for event in events]
    for name, (index, _, _) in built.items():
        assert [index.top(event, K) for event in events] == expected, f"{name} disagrees with the scan"
    progress(f"{data}: measuring")
    rows = []
    for case, asked in (("matching", events), ("nothing matches", list(unmatched(workload)))):
        times = mean_least({n: _asker(i[0]) for n, i in built.items()}, asked, _ROUNDS)
        for name, seconds in times.items():
            _, build_seconds, overhead = built[name]
            rows.append(_row(data, len(catalogue), case, name, seconds, times[SCAN], build_seconds, overhead))
        if case == "matching":
            rows.append(_in_batch(data, workload, built[OURS], times[SCAN]))
            if data not in DBLP:
                rows += _measure_peers(data, catalogue, events[:_PEER_EVENTS], expected, times[SCAN], progress)
    return rows


def _in_batch(
    data: str, workload: Expressions, built: tuple[Any, float, float], scan: float
) -> dict[str, object]:
    """Ours on many events at once, on all cores."""
    index, build_seconds, overhead = built
    many = sparse.Events.of(list(workload.events) * _BATCH, workload.catalogue.dimensions)
    seconds = mean_least({OURS: lambda events: index.top_many(events, K)}, [many], _ROUNDS)[OURS] / len(many)
    return _row(data, len(workload.catalogue), "matching", f"{OURS}, batch", seconds, scan, build_seconds, overhead)


def _measure_peers(
    data: str, catalogue: Any, events: list[Any], expected: list[Any], scan: float, progress: Callable[[str], None]
) -> list[dict[str, object]]:
    rows = []
    for name, make in PEERS.items():
        progress(f"{data}: {name}")
        started = time.perf_counter()
        answer = make(catalogue, K)
        if answer is None:
            continue
        seconds = time.perf_counter() - started
        for event, known in zip(events, expected, strict=False):
            assert [id for id, _ in answer(event)] == [id for id, _ in known], f"{name} disagrees with the scan"
        times = mean_least({name: answer}, events, 2)
        rows.append(_row(data, len(catalogue), "matching", name, times[name], scan, seconds, None))
    return rows


def _asker(index: Any) -> Callable[[Any], Any]:
    return lambda event: index.top(event, K)


def _row(
    data: str, count: int, case: str, method: str, seconds: float, scan: float, build: float, overhead: float | None
) -> dict[str, object]:
    return {
        "data": data,
        "subscriptions": count,
        "events": case,
        "method": method,
        "us_per_event": round(seconds * 1e6, 1),
        "times_scan": round(scan / seconds, 2),
        "build_s": round(build, 2),
        "bytes_per_subscription": None if overhead is None else round(overhead),
    }


def verdicts(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The aims at the largest size of each set."""
    largest: dict[str, int] = {}
    for row in rows:
        largest[str(row["data"])] = max(largest.get(str(row["data"]), 0), int(str(row["subscriptions"])))
    found: list[dict[str, object]] = []

    def aim(target: str, measured: float, met: bool, unit: str = "×") -> None:
        found.append({"target": target, "measured": f"{measured:.4g}{unit}", "met": met})

    for row in rows:
        data, method, ratio = str(row["data"]), row["method"], float(str(row["times_scan"]))
        matching, dense = row["events"] == "matching", data in DBLP
        what = f"{data}, {row['subscriptions']}, {row['events']}"
        if row["subscriptions"] != largest[data]:
            continue
        if method == "ri-tree":
            aim(f"{what}: R^I-tree at least 20× the scan", ratio, ratio >= 20)
        if method == OURS:
            least = 30 if not matching else 80 if dense else 150
            aim(f"{what}: pivot at least {least}× the scan", ratio, ratio >= least)
        if method == OURS and matching and data != "title":  # 35 predicates; the aims are for 8
            seconds, size = float(str(row["build_s"])), float(str(row["bytes_per_subscription"]))
            aim(f"{what}: pivot is built in at most 5 s", seconds, seconds <= 5, " s")
            aim(f"{what}: pivot adds at most 200 bytes per subscription", size, size <= 200, " bytes")
        if method == "be-star" and matching and not dense:
            seconds = float(str(row["build_s"]))
            aim(f"{what}: BE*-Tree at least 20× the scan", ratio, ratio >= 20)
            aim(f"{what}: BE*-Tree is built in under 60 s", seconds, seconds < 60, " s")
    return found
