"""Scalable Ranked Publish/Subscribe (VLDB 2008), section 4: Table 2 and Figures 6 to 9, with a verdict per claim.

Generator and defaults are those of Table 1. Matching is relaxed with the Threshold Algorithm, as in the paper, over
one index per dimension; events come from the same regions as the subscriptions. The paper's Java objects
become flat arrays, so bytes and times differ by constants; claims are about ratios and order. Sizes: full
as in the paper (a million subscriptions), quick a tenth or less. "Interval" and "R" are the scored
variants, as in the paper's experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import topk
from sim.reproduce.measure import WARM_UP, Bout, operations
from sim.reproduce.rules import COUNTS
from sim.reproduce.series import Series, Swept
from sim.reproduce.sheet import Cause, Sheet, Steps
from sim.reproduce.vldb08_beside import beside
from sim.reproduce.vldb08_data import AWAY, NAMES, K, behind, entries_of, generate, nothing, one_dimension
from sim.reproduce.vldb08_figure6 import figure6
from sim.reproduce.vldb08_parts import parts
from sim.workloads.points_in_regions import LENGTH_STEPS, SKEW_LENGTH

OURS = {**NAMES, "slices (ours)": "slices"}
_MEMORY = 8 << 30  # bytes an index may take before it is left out
_PER_INTERVAL = 170  # bytes of a segment tree per interval and dimension, about


def steps(sheet: Sheet) -> Steps:
    return {
        "table2": partial(table2, sheet),
        "fig6": partial(figure6, sheet),
        "fig7-8": partial(figures7and8, sheet),
        "fig9": partial(figure9, sheet),
        "beside": lambda: beside(sheet, NAMES, one_dimension, nothing()),
    }


# ---- Table 2 --------------------------------------------------------------------------------------------


def table2(sheet: Sheet) -> None:
    sizes = tuple(sheet.sized(n // 10, n) for n in (100_000, 200_000, 500_000, 1_000_000))

    def measured(n: int, seed: int) -> dict[str, int]:
        entries = entries_of(generate(n, 1, 1, seed=seed))
        return {label: topk.interval_indexes()[name](entries).nbytes for label, name in NAMES.items()}

    used = [
        {n: sheet.kept(f"table2-{n}-{seed}", partial(measured, n, seed), timed=False) for n in sizes}
        for seed in sheet.seeds
    ]
    sheet.table("table2", [{"index": label, "n": n, "bytes": used[0][n][label]} for n in sizes for label in NAMES])
    curves = {label: {float(n): used[0][n][label] for n in sizes} for label in NAMES}
    sheet.plot("table2", {"bytes": curves}, title="Table 2: bytes per index", x="subscriptions")
    last, size = [seed[sizes[-1]] for seed in used], f"n = {sizes[-1]:,}"
    per_interval = {f"bytes per interval, {label}": last[0][label] / sizes[-1] for label in NAMES}
    why = Cause(
        "every index of ours holds its intervals, the paper's share theirs, and list entries take 4 bytes instead of "
        "Java objects",
        per_interval,
    )
    rest = [[seed[label] for label in NAMES if label != "Segment"] for seed in last]
    for id, choose in (("table2-segment", max), ("table2-segment-most", min)):
        ratios = [seed["Segment"] / choose(other) for seed, other in zip(last, rest, strict=True)]
        sheet.judge(id, ratios, why, size=size, figure="table2")
    sheet.judge("table2-ir", [seed["IR"] / seed["Interval"] for seed in last], why, size=size, figure="table2")


# ---- Figures 7 to 9 -------------------------------------------------------------------------------------


def _relaxed(
    n: int, d: int, events: int, skew: float, labels: Mapping[str, str], seed: int, steps: int = LENGTH_STEPS
) -> Bout:
    """All indexes on the same subscriptions; a segment tree that would not fit in memory is left out."""
    middle, half, points = generate(n, d, events + WARM_UP, skew, seed, steps=steps)
    catalogue = topk.Catalogue.from_boxes(middle - half, middle + half, 1 - half)
    nothing = topk.Catalogue.from_boxes(*np.full((3, 1, d), AWAY))
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


def _parts(sheet: Sheet, n: int, d: int, skew: float) -> dict[str, float]:
    seed = sheet.seeds[0]

    def measured() -> dict[str, float]:
        middle, half, points = generate(n, d, 2 * WARM_UP, skew, seed)
        return parts(topk.Catalogue.from_boxes(middle - half, middle + half, 1 - half), points, K)

    found: dict[str, float] = sheet.kept(f"parts-{n}-{d}-{skew:g}-{seed}", measured)
    return found


def _judge(
    sheet: Sheet,
    swept: Swept,
    figure: str,
    size: str,
    made_of: Mapping[float, Mapping[str, float]],
    others: Mapping[str, Swept] | None = None,
) -> Callable[..., None]:
    """A function that judges by a figure; `made_of` says what a query at the figure's ends is made of, `others` is the
    same figure where an unpublished constant has other values."""
    counted = swept.mean(COUNTS)
    measured = {
        f"operations ÷ SOPT-R at {x:g}, {label}": counted[label][x] / counted["SOPT-R"][x]
        for x in made_of
        for label in NAMES
        if label != "SOPT-R" and x in counted[label]
    }
    measured |= {f"at {x:g}, {what}": amount for x, found in made_of.items() for what, amount in found.items()}

    def judge(id: str, value: Callable[[Series], float], why: str) -> None:
        elsewhere = {said: other.each(value) for said, other in (others or {}).items()}
        cause = Cause(why, measured)
        sheet.judge(id, swept.each(value), cause, size=size, figure=figure, overhead=swept.overhead, swept=elsewhere)

    return judge


def figures7and8(sheet: Sheet) -> None:
    n, events = sheet.many(30_000, 1_000_000), sheet.many(30, 1000)
    dimensions = (1, 2, 3, 4, 8)
    points = [(float(d), lambda seed, d=d: _relaxed(n, d, events, SKEW_LENGTH, OURS, seed)) for d in dimensions]
    swept = sheet.sweep("figure7", f"Figure 7: relaxed top-{K}, n = {n:,}", "dimensions", points)
    relative = {
        f"{basis} ÷ SOPT-R": {
            label: {d: amount / swept.mean(basis)["SOPT-R"][d] for d, amount in points.items()}
            for label, points in swept.mean(basis).items()
        }
        for basis in swept.by
    }
    sheet.plot("figure8", relative, title="Figure 8: relative to SOPT-R", x="dimensions")
    few = (1.0, 2.0, 3.0, 4.0)
    made_of = {float(d): _parts(sheet, n, d, SKEW_LENGTH) for d in (1, 4)}
    judge = _judge(sheet, swept, "figure8", f"n = {n:,}, {events:,} queries", made_of)
    alike = "the Threshold Algorithm's own work is the same for all, and the indexes differ little beside it"
    judge("fig8-benefit-1", lambda s: behind(s, 1.0, max), alike)
    judge("fig8-benefit-4", lambda s: behind(s, 4.0, max), alike)
    judge("fig8-best", lambda s: min(behind(s, d, min) for d in few), alike)
    judge("fig7-converge", lambda s: behind(s, 1.0, max) / behind(s, 8.0, max), "they do not converge")
    judge(
        "fig8-ir", lambda s: max(s["IR"][d] / s["SOPT-R"][d] for d in few), "it opens one R-tree per level of its path"
    )
    every = sheet.sized(30_000, 1_000_000)
    size = f"n = {every:,}, d = 8"

    def weighed(seed: int) -> int:
        return topk.interval_indexes()["segment-tree"](entries_of(generate(every, 1, 1, seed=seed))).nbytes

    seed = sheet.seeds[0]
    nbytes = sheet.kept(f"segment-tree-{every}-{seed}", partial(weighed, seed), timed=False)
    each = nbytes / every
    why = Cause(
        "4-byte ranks in flat lists fit where Java objects did not",
        {"bytes per interval and dimension": each, "published": 429.0},
    )
    beyond = "a million subscriptions are needed" if sheet.quick else ""
    sheet.judge("fig7-memory", [8 * nbytes / 2**30], why, size=size, figure="figure7", untestable=beyond)


_MORE_STEPS = (1000, 10_000, 100_000)  # of half-lengths; the paper does not say how many its Zipf law has


def figure9(sheet: Sheet) -> None:
    n, events = sheet.many(30_000, 1_000_000), sheet.many(30, 1000)
    skews = (0.25, 0.75, 1.5) if sheet.quick else (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    points = [(skew, lambda seed, skew=skew: _relaxed(n, 4, events, skew, NAMES, seed)) for skew in skews]
    swept = sheet.sweep("figure9", f"Figure 9: 4 dimensions, n = {n:,}", "skew of lengths", points)
    ends = skews[0], skews[-1]
    made_of = {skew: _parts(sheet, n, 4, skew) for skew in ends}
    others = _other_steps(sheet, n, events, ends)
    judge = _judge(sheet, swept, "figure9", f"n = {n:,}, d = 4, {events:,} queries", made_of, others)
    judge(
        "fig9-faster",
        lambda s: max(s[x][ends[1]] / s[x][ends[0]] for x in NAMES if x != "R"),
        "hardly fewer results are taken, and each costs more: between short intervals there are holes",
    )
    judge(
        "fig9-rtree",
        lambda s: s["R"][ends[1]] / s["R"][ends[0]],
        "fewer results are taken, and holes do not outweigh that",
    )
    judge(
        "fig9-best",
        lambda s: min(behind(s, skew, min) for skew in s["SOPT-R"]),
        "with short intervals the IR-tree and the segment tree meet fewer holes per result",
    )
    judge(
        "fig9-ir",
        lambda s: max(s["IR"][skew] / s["SOPT-R"][skew] for skew in s["SOPT-R"]),
        "it opens one R-tree per level",
    )


def _other_steps(sheet: Sheet, n: int, events: int, skews: tuple[float, ...]) -> dict[str, Swept]:
    """Both ends of Figure 9 where half-lengths have more steps."""
    found = {}
    for steps in _MORE_STEPS:
        points = [
            (skew, lambda seed, skew=skew, steps=steps: _relaxed(n, 4, events, skew, NAMES, seed, steps))
            for skew in skews
        ]
        title = f"{steps:,} steps of half-lengths, n = {n:,}"
        found[f"{steps:,} steps"] = sheet.sweep(f"figure9-steps-{steps}", title, "skew of lengths", points)
    return found
