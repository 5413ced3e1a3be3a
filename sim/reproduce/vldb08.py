"""Scalable Ranked Publish/Subscribe (VLDB 2008), section 4: Table 2 and Figures 6 to 9, with a verdict per
claim.

Generator and defaults of Table 1. Matching is relaxed with the Threshold Algorithm, as in the paper, over
one index per dimension; events come from the same regions as the subscriptions. The paper's Java objects
become flat arrays, so bytes and times differ by constants; claims are about ratios and order. Sizes: full
as in the paper (a million subscriptions), quick a tenth or less. "Interval" and "R" are the scored
variants, as in the paper's experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

import topk
from sim.reproduce.measure import WARM_UP, Bout, Series, counter, operations
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.sheet import Cause, Sheet, Swept
from sim.reproduce.vldb08_beside import beside
from sim.workloads.regional_zipf import regional_zipf, zipf_lengths
from topk.papers.interval.contract import Entries

NAMES = {
    "Interval": "scored-interval-tree",
    "R": "scored-rtree",
    "Segment": "segment-tree",
    "IR": "ir-tree",
    "SOPT-R": "sopt-rtree",
}
OURS = {**NAMES, "slices (ours)": "slices"}
K = 20
SEED = 2008
_MEMORY = 8 << 30  # bytes an index may take before it is left out
_PER_INTERVAL = 170  # bytes of a segment tree per interval and dimension, about

Data = tuple[Any, Any, Any]  # middles, half-lengths, events


def run(sheet: Sheet) -> None:
    for part in (table2, figure6, figures7and8, figure9):
        part(sheet)
    beside(sheet, NAMES, _one_dimension, _nothing())


def generate(n: int, d: int, events: int, skew_length: float = 0.75, seed: int = 1) -> Data:
    rng = np.random.default_rng([SEED, n, d, seed])  # the same regions and points for every skew_length
    points = regional_zipf(rng, n + events, d)
    return points[:n], zipf_lengths(rng, n, d, skew_length), points[n:]


def _entries(data: Data) -> Entries:
    middle, half = data[0][:, 0], data[1][:, 0]
    n = len(middle)
    return Entries(np.arange(n), middle - half, middle + half, 1 - half, np.arange(n))


def _one_dimension(n: int, seed: int) -> tuple[Entries, Any]:
    data = generate(n, 1, 1000 + WARM_UP, seed=seed)
    return _entries(data), data[2][:, 0]


_AWAY = 2.0  # outside of the domain: an interval there is never stabbed


def _nothing() -> Entries:
    """As good as empty; an index that really is takes short cuts."""
    away = np.full(1, _AWAY)
    return Entries(np.arange(1), away, away, away, np.arange(1))


def others(series: Series, x: float) -> dict[str, float]:
    """What the paper's other indexes take at x."""
    return {name: series[name][x] for name in NAMES if name != "SOPT-R" and x in series[name]}


def _behind(series: Series, x: float, choose: Callable[..., float]) -> float:
    """The best or the slowest other ÷ SOPT-R."""
    return choose(others(series, x).values()) / series["SOPT-R"][x]


# ---- Table 2 --------------------------------------------------------------------------------------------


def table2(sheet: Sheet) -> None:
    sizes = (10_000, 20_000, 50_000, 100_000) if sheet.quick else (100_000, 200_000, 500_000, 1_000_000)

    def measured(n: int, seed: int) -> dict[str, int]:
        entries = _entries(generate(n, 1, 1, seed=seed))
        return {label: topk.interval_indexes()[name](entries).nbytes for label, name in NAMES.items()}

    used = [{n: sheet.kept(f"table2-{n}-{seed}", partial(measured, n, seed)) for n in sizes} for seed in sheet.seeds]
    sheet.table("table2", [{"index": label, "n": n, "bytes": used[0][n][label]} for n in sizes for label in NAMES])
    curves = {label: {float(n): used[0][n][label] for n in sizes} for label in NAMES}
    sheet.plot("table2", {"bytes": curves}, title="Table 2: bytes per index", x="subscriptions")
    last, size = [seed[sizes[-1]] for seed in used], f"n = {sizes[-1]:,}"
    per_interval = {f"{label}, bytes per interval": last[0][label] / sizes[-1] for label in NAMES}
    why = Cause(
        "list entries take 4 bytes instead of Java objects, and bounds count in every index of ours", per_interval
    )
    rest = [[seed[label] for label in NAMES if label != "Segment"] for seed in last]
    for id, choose in (("table2-segment", max), ("table2-segment-most", min)):
        ratios = [seed["Segment"] / choose(other) for seed, other in zip(last, rest, strict=True)]
        sheet.judge(id, ratios, why, size=size, figure="table2")
    sheet.judge("table2-ir", [seed["IR"] / seed["Interval"] for seed in last], why, size=size, figure="table2")


# ---- Figure 6 -------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _stabbed(n: int, seed: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
    data = generate(n, 1, 1000 + WARM_UP, seed=seed)
    entries = _entries(data)
    kinds = topk.interval_indexes()
    return (
        {label: kinds[name](entries) for label, name in NAMES.items()},
        {label: kinds[name](_nothing()) for label, name in NAMES.items()},
        data[2][:, 0],
    )


def _fetching(index: Any, count: int) -> Callable[[float], Any]:
    return lambda value: index.stab(value).fetch(count)


def figure6(sheet: Sheet) -> None:
    n = 100_000 if sheet.quick else 1_000_000
    calls = (1, 10, 100, 1000, 10_000) if sheet.quick else (1, 10, 100, 1000, 10_000, 100_000)

    def bout(count: int, seed: int) -> Bout:
        indexes, empty, values = _stabbed(n, seed)
        return Bout(
            {label: _fetching(index, count) for label, index in indexes.items()},
            values[WARM_UP : WARM_UP + (200 if sheet.quick else 1000)],
            values[:WARM_UP],
            {label: _fetching(index, count) for label, index in empty.items()},
            {label: counter(index, lambda ix: ix.work.sum()) for label, index in indexes.items()},
        )

    points = [(float(count), partial(bout, count)) for count in calls]
    swept = sheet.sweep("figure6", f"Figure 6: total per query, n = {n:,}", "getnext() calls", points)
    size = f"n = {n:,}; {calls[0]} to {calls[-1]:,} calls"
    few = [c for c in calls if c <= 1000]
    shown = swept.mean(TIME)

    def judge(id: str, value: Callable[[Series], float], why: str, **more: Any) -> None:
        counted = swept.mean(COUNTS)
        cause = Cause(
            why,
            {
                f"{label} ÷ SOPT-R operations at {c:,}": counted[label][c] / counted["SOPT-R"][c]
                for c in (calls[0], calls[-1])
                for label in NAMES
                if label != "SOPT-R"
            },
        )
        sheet.judge(id, swept.each(value), cause, size=size, figure="figure6", overhead=swept.overhead, **more)

    fastest = ", ".join(f"{c:,}: {min(NAMES, key=lambda x: shown[x][c])}" for c in calls)
    judge(
        "fig6-sopt",
        lambda s: min(_behind(s, c, min) for c in calls),
        "another index does less where many results are taken",
        detail=f"fastest at {fastest}",
    )
    judge(
        "fig6-sopt-factor", lambda s: max(_behind(s, c, max) for c in calls), "the slowest other does too little more"
    )
    judge(
        "fig6-interval",
        lambda s: min(s["Interval"][c] / max(s[x][c] for x in NAMES if x != "Interval") for c in few),
        "another index does more work per result than the interval tree's first scan",
    )
    judge("fig6-interval-first", lambda s: s["Interval"][1] / s["SOPT-R"][1], "its scan for the first result is short")
    judge(
        "fig6-holes",
        lambda s: max(s["R"][c] / s["SOPT-R"][c] for c in calls[1:]) / (s["R"][calls[0]] / s["SOPT-R"][calls[0]]),
        "holes per result fall with the calls: they are met among the best scores, whose intervals are the shortest",
    )
    judge(
        "fig6-close",
        lambda s: max(max(s["Segment"][c] / s["IR"][c], s["IR"][c] / s["Segment"][c]) for c in calls),
        "merging ranks and walking R-trees are different work",
    )
    judge(
        "fig6-converge",
        lambda s: _behind(s, calls[0], max) / _behind(s, calls[-1], max),
        "the slowest does not come closer",
    )


# ---- Figures 7 to 9 -------------------------------------------------------------------------------------


def _relaxed(n: int, d: int, events: int, skew: float, labels: Mapping[str, str], seed: int) -> Bout:
    """All indexes on the same subscriptions; a segment tree that would not fit in memory is left out."""
    middle, half, points = generate(n, d, events + WARM_UP, skew, seed)
    catalogue = topk.Catalogue.from_boxes(middle - half, middle + half, 1 - half)
    nothing = topk.Catalogue.from_boxes(*np.full((3, 1, d), _AWAY))
    fits = {label: name for label, name in labels.items() if name != "segment-tree" or d * n * _PER_INTERVAL <= _MEMORY}
    indexes = {label: topk.create(name, catalogue, semantics="relaxed") for label, name in fits.items()}
    empty = {label: topk.create(name, nothing, semantics="relaxed") for label, name in fits.items()}
    answers = {label: [index.top(point, K) for point in points[:3]] for label, index in indexes.items()}
    for label, found in answers.items():
        assert found == answers["SOPT-R"], f"{label} disagrees"
    return Bout(
        {label: _topping(index) for label, index in indexes.items()},
        points[WARM_UP:],
        points[:WARM_UP],
        {label: _topping(index) for label, index in empty.items()},
        {label: operations(index) for label, index in indexes.items()},
    )


def _topping(index: topk.TopKIndex) -> Callable[[Any], Any]:
    return lambda event: index.top(event, K)


def _judge(sheet: Sheet, swept: Swept, figure: str, size: str, xs: tuple[float, float]) -> Callable[..., None]:
    counted = swept.mean(COUNTS)
    measured = {
        f"{label} ÷ SOPT-R operations at {x:g}": counted[label][x] / counted["SOPT-R"][x]
        for x in xs
        for label in NAMES
        if label != "SOPT-R" and x in counted[label]
    }

    def judge(id: str, value: Callable[[Series], float], why: str) -> None:
        sheet.judge(id, swept.each(value), Cause(why, measured), size=size, figure=figure, overhead=swept.overhead)

    return judge


def figures7and8(sheet: Sheet) -> None:
    n, events = (30_000, 30) if sheet.quick else (1_000_000, 1000)
    dimensions = (1, 2, 3, 4, 8)
    points = [(float(d), lambda seed, d=d: _relaxed(n, d, events, 0.75, OURS, seed)) for d in dimensions]
    swept = sheet.sweep("figure7", f"Figure 7: relaxed top-{K}, n = {n:,}", "dimensions", points)
    relative = {
        basis: {
            label: {d: amount / swept.mean(basis)["SOPT-R"][d] for d, amount in points.items()}
            for label, points in swept.mean(basis).items()
        }
        for basis in swept.by
    }
    sheet.plot("figure8", relative, title="Figure 8: relative to SOPT-R", x="dimensions")
    few = (1.0, 2.0, 3.0, 4.0)
    judge = _judge(sheet, swept, "figure8", f"n = {n:,}, {events:,} queries", (1.0, 4.0))
    judge("fig8-benefit-1", lambda s: _behind(s, 1.0, max), "the slowest other does too little more")
    judge("fig8-benefit-4", lambda s: _behind(s, 4.0, max), "the slowest other does too little more")
    judge("fig8-best", lambda s: min(_behind(s, d, min) for d in few), "another index does less")
    judge("fig7-converge", lambda s: _behind(s, 1.0, max) / _behind(s, 8.0, max), "they do not converge")
    judge(
        "fig8-ir", lambda s: max(s["IR"][d] / s["SOPT-R"][d] for d in few), "it opens one R-tree per level of its path"
    )
    size = f"n = {n:,}, d = 8"
    if sheet.quick:
        sheet.untestable("fig7-memory", size, "a million subscriptions are needed")
        return
    tree = topk.interval_indexes()["segment-tree"](_entries(generate(n, 1, 1)))
    each = tree.nbytes / n
    why = Cause("4-byte ranks in flat lists fit where Java objects did not", {"bytes per interval and dimension": each})
    sheet.judge("fig7-memory", [8 * tree.nbytes / 2**30], why, size=size, figure="figure7")


def figure9(sheet: Sheet) -> None:
    n, events = (30_000, 30) if sheet.quick else (1_000_000, 1000)
    skews = (0.25, 0.75, 1.5) if sheet.quick else (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    points = [(skew, lambda seed, skew=skew: _relaxed(n, 4, events, skew, NAMES, seed)) for skew in skews]
    swept = sheet.sweep("figure9", f"Figure 9: 4 dimensions, n = {n:,}", "skew_length", points)
    first, last = skews[0], skews[-1]
    judge = _judge(sheet, swept, "figure9", f"n = {n:,}, d = 4, {events:,} queries", (first, last))
    judge("fig9-faster", lambda s: max(s[x][last] / s[x][first] for x in NAMES if x != "R"), "one of them does more")
    judge(
        "fig9-rtree", lambda s: s["R"][last] / s["R"][first], "fewer results are taken, and holes do not outweigh that"
    )
    judge("fig9-best", lambda s: min(_behind(s, skew, min) for skew in skews), "another index does less")
    judge(
        "fig9-ir", lambda s: max(s["IR"][skew] / s["SOPT-R"][skew] for skew in skews), "it opens one R-tree per level"
    )
