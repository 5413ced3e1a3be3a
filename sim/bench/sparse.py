"""Ranked matching of Boolean expressions and of places: ours beside a full numba scan and what others would use.

All methods of a line get the same events in turns and must give the same answer; times are per single call, top-5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sim.bench.sparse_peers import PEERS
from sim.bench.timing import mean_least
from sim.workloads.begen import Begen, Expressions, begen, dblp_like, unmatched
from sim.workloads.located import Located, located_workload
from topk import places, sparse

K = 5
SCAN, OURS = "scan (numba)", "pivot"
TREES = ("k-index", "be-tree", "be-star", "be-star-batch")
_EVENTS = 40
_PEER_EVENTS = 3  # peers take milliseconds to seconds
_ROUNDS = 5
_PEER_ROWS = 100_000  # peers that need a table of all predicates are measured up to here


def run(quick: bool, progress: Callable[[str], None]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for count in (20_000, 100_000) if quick else (100_000, 1_000_000):
        for distribution in ("uniform", "zipf"):
            progress(f"{count} {distribution} expressions")
            parameters = Begen(subscriptions=count, events=_EVENTS, distribution=distribution)
            rows += _expressions(distribution, begen(parameters), count <= _PEER_ROWS, quick, progress)
        progress(f"{count} author names")
        rows += _expressions("author", dblp_like("author", count, _EVENTS), False, quick, progress)
    rows += _places(100_000 if quick else 2_000_000, progress)
    return rows


def _expressions(
    data: str, workload: Expressions, peers: bool, quick: bool, progress: Callable[[str], None]
) -> list[dict[str, object]]:
    catalogue, events = workload.catalogue, list(workload.events)
    names: tuple[str, ...]
    names = ("scan", "pivot", "be-star") if data == "author" else ("scan", "pivot", *TREES)
    if not quick and len(catalogue) > _PEER_ROWS:
        names = ("scan", "pivot", "be-star", "be-star-batch")
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
        if peers and case == "matching":
            rows += _measure_peers(data, catalogue, events[:_PEER_EVENTS], expected, times[SCAN], progress)
    return rows


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


def _places(count: int, progress: Callable[[str], None]) -> list[dict[str, object]]:
    rows = []
    for distribution in ("uniform", "zipf"):
        progress(f"{count} placed {distribution} expressions")
        workload = located_workload(Located(subscriptions=count, events=_EVENTS // 2, distribution=distribution))
        built = {}
        for name in places.METHODS:
            progress(f"places, {distribution}: building {name}")
            started = time.perf_counter()
            built[name] = (places.build(name, workload.catalogue), time.perf_counter() - started)
        expected = list(built["scan"][0].top_many(workload.events, K))
        for name, (index, _) in built.items():
            assert list(index.top_many(workload.events, K)) == expected, f"{name} disagrees with the scan"
        times = mean_least({n: _placed_asker(i[0]) for n, i in built.items()}, workload.events, 3)
        for name, seconds in times.items():
            index, build_seconds = built[name]
            shown = SCAN if name == "scan" else name
            overhead = index.overhead / count
            data, scan = f"places, {distribution}", times["scan"]
            rows.append(_row(data, count, "matching", shown, seconds, scan, build_seconds, overhead))
    return rows


def _asker(index: Any) -> Callable[[Any], Any]:
    return lambda event: index.top(event, K)


def _placed_asker(index: Any) -> Callable[[Any], Any]:
    return lambda event: index.top(event.event, event.place, K)


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
    """The aims of the largest sizes measured."""
    largest = max(int(str(r["subscriptions"])) for r in rows if not str(r["data"]).startswith("places"))
    found: list[dict[str, object]] = []

    def aim(target: str, measured: float, met: bool, unit: str = "×") -> None:
        found.append({"target": target, "measured": f"{measured:.4g}{unit}", "met": met})

    for row in rows:
        data, ratio = str(row["data"]), float(str(row["times_scan"]))
        if data.startswith("places"):
            if row["method"] == "ri-tree":
                aim(f"{data}, {row['subscriptions']}: R^I-tree at least 20× the scan", ratio, ratio >= 20)
            continue
        if row["subscriptions"] != largest:
            continue
        what = f"{data}, {largest}, {row['events']}"
        if row["method"] == OURS:
            least = 30 if row["events"] != "matching" else 80 if data == "author" else 150
            aim(f"{what}: pivot at least {least}× the scan", ratio, ratio >= least)
            if row["events"] == "matching":
                seconds, size = float(str(row["build_s"])), float(str(row["bytes_per_subscription"]))
                aim(f"{what}: pivot is built in at most 5 s", seconds, seconds <= 5, " s")
                aim(f"{what}: pivot adds at most 200 bytes per subscription", size, size <= 200, " bytes")
        if row["method"] == "be-star" and row["events"] == "matching" and data != "author":
            seconds = float(str(row["build_s"]))
            aim(f"{what}: BE*-Tree at least 20× the scan", ratio, ratio >= 20)
            aim(f"{what}: BE*-Tree is built in under 60 s", seconds, seconds < 60, " s")
    return found
