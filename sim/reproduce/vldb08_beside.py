"""What VLDB 2008 says beside its results: Theorems 3.1 to 3.3, build times, conventional trees, Figure 1.

Space is counted twice. By the paper's accounting (`Space` in topk/papers/interval/contract.py) a structure has
references, extents and nodes; the theorems count every reference with its interval, Table 2 without. Allocated bytes
are what our arrays take; the IR-tree's also have a score and an id in every slot, for updates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import log
from typing import Any

import numpy as np

import topk
from sim.reproduce.measure import CLOCK, WARM_UP, Bout, counter, measure, net
from sim.reproduce.rules import ACCOUNTED, ALLOCATED, COUNTS, TIME
from sim.reproduce.sheet import Cause, Sheet
from topk.papers.interval.contract import Entries

CONVENTIONAL = {
    "conventional interval": "interval-tree",
    "conventional R": "rtree",
    "aggregate R": "aggregate-rtree",
}
K = 20
_FULL = 1_000_000  # subscriptions of the paper

Make = Callable[[int, int], tuple[Entries, Any]]  # n and seed → intervals, and values to stab them with


def beside(sheet: Sheet, names: Mapping[str, str], make: Make, nothing: Entries) -> None:
    n = sheet.many(100_000, _FULL)
    points = [
        sheet.kept(f"beside-{n}-{seed}", partial(_point, sheet, names, make, nothing, n, seed)) for seed in sheet.seeds
    ]
    points = [{**point, TIME: net(point)} for point in points]
    _space(sheet, names, points, n)
    _building(sheet, names, points, n)
    _searching(sheet, names, points, n)


def _point(sheet: Sheet, names: Mapping[str, str], make: Make, nothing: Entries, n: int, seed: int) -> dict[str, Any]:
    """Seconds to build, space by every account, and time and operations of the first K results."""
    kinds, every = topk.interval_indexes(), {**names, **CONVENTIONAL}
    entries, values = make(n, seed)
    found: dict[str, Any] = {what: {} for what in ("seconds", "tenth", "whole", "shared", ALLOCATED)}
    indexes = {}
    for label, name in every.items():
        for what, part in (("compiled", 100), ("tenth", n // 10), ("seconds", n)):
            some = entries.take(np.arange(part))
            started = CLOCK()
            indexes[label] = kinds[name](some)
            found.setdefault(what, {})[label] = CLOCK() - started
        found["whole"][label], found["shared"][label] = indexes[label].space.whole, indexes[label].space.shared
        found[ALLOCATED][label] = indexes[label].allocated_bytes
        sheet.progress(f"beside the figures: {label} built")
    bout = Bout(
        {label: _first(index) for label, index in indexes.items()},
        values[WARM_UP : WARM_UP + sheet.many(100, 1000)],
        values[:WARM_UP],
        {label: _first(kinds[name](nothing)) for label, name in every.items()},
        {label: counter(index, lambda ix: ix.work.sum()) for label, index in indexes.items()},
    )
    return {**found, **measure(bout)}


def _first(index: Any) -> Callable[[float], Any]:
    return lambda value: index.stab(value).fetch(K)


def _space(sheet: Sheet, names: Mapping[str, str], points: list[dict[str, Any]], n: int) -> None:
    size, first = f"n = {n:,}, b = 50", points[0]
    why = Cause(
        "bytes per interval by the theorems' accounting, by Table 2's, and allocated",
        {f"{label}, {what}": first[what][label] / n for label in names for what in ("whole", "shared", ALLOCATED)},
    )
    ratios = {
        "theorem-3.1": ("IR", "Interval", "whole"),
        "table2-ir-counted": ("IR", "Interval", "shared"),
    }
    for id, (label, to, what) in ratios.items():
        both = {
            basis: [p[key][label] / p[key][to] for p in points]
            for basis, key in ((ACCOUNTED, what), (ALLOCATED, ALLOCATED))
        }
        sheet.judge(id, both, why, size=size)
    both = {
        ACCOUNTED: [p["whole"]["SOPT-R"] / (20 * n) for p in points],
        ALLOCATED: [p[ALLOCATED]["SOPT-R"] / (20 * n) for p in points],
    }
    sheet.judge("theorem-3.2", both, why, size=size)
    segment = {
        basis: [p[key]["Segment"] / max(p[key][label] for label in names if label != "Segment") for p in points]
        for basis, key in ((ACCOUNTED, "shared"), (ALLOCATED, ALLOCATED))
    }
    sheet.judge("table2-segment-counted", segment, why, size=size)


def _building(sheet: Sheet, names: Mapping[str, str], points: list[dict[str, Any]], n: int) -> None:
    why = Cause("seconds to build", {label: points[0]["seconds"][label] for label in names})
    slowest = [max(p["seconds"][label] for label in names) for p in points]
    beyond = "it is about a million subscriptions" if n < _FULL else ""
    sheet.judge("build", slowest, why, size=f"n = {n:,}, one dimension", untestable=beyond)
    ideal = 10 * log(n) / log(n / 10)
    growth = [p["seconds"]["SOPT-R"] / p["tenth"]["SOPT-R"] / ideal for p in points]
    sheet.judge("theorem-3.3", growth, why, size=f"n = {n // 10:,} and {n:,}")


def _searching(sheet: Sheet, names: Mapping[str, str], points: list[dict[str, Any]], n: int) -> None:
    size, overhead = f"n = {n:,}, first {K} results", {k: 1e6 * s for k, s in points[0]["overhead"].items()}
    first = points[0]
    why = Cause("operations per query", {label: first[COUNTS][label] for label in (*names, *CONVENTIONAL)})
    beyond = "what is collected before the first result grows with n, to a million there" if n < _FULL else ""
    for id, slow, fast in (
        ("conventional-interval", "conventional interval", "Interval"),
        ("conventional-r", "conventional R", "R"),
    ):
        both = {basis: [p[basis][slow] / p[basis][fast] for p in points] for basis in (TIME, COUNTS)}
        sheet.judge(id, both, why, size=size, overhead=overhead, untestable=beyond)
    for id, label in (("fig1-ir", "IR"), ("fig1-sopt", "SOPT-R")):
        both = {basis: [_corner(p, basis, names, label) for p in points] for basis in (TIME, COUNTS)}
        sheet.judge(id, both, why, size=size, overhead=overhead)


def _corner(point: dict[str, Any], basis: str, names: Mapping[str, str], label: str) -> float:
    """How far from the corner of Figure 1: its time ÷ the least, or its space ÷ the least, whichever is more."""
    return max(point[what][label] / min(point[what][other] for other in names) for what in (basis, "whole"))
