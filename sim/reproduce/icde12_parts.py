"""Parts of ICDE 2012 that are counted: the search space of a split, k-index's memory, and what each part is worth."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sim.reproduce.icde12_ablations import VARIANTS, ablation, drift
from sim.reproduce.measure import WARM_UP
from sim.reproduce.sheet import Cause, Sheet
from sim.workloads.begen import Begen, begen, dblp_like
from topk.sparse import SparseCatalogue, build
from topk.sparse.be.arena import OWN_HI, OWN_LO
from topk.sparse.be.star import BEStarPaper

_CHOSEN = {"alpha": "0.1", "beta": "4", "splitting": "exhaustive"}
_SPAN = 0.001  # share of the domain that a range covers, whatever the cardinality
_CARDINALITIES = (2_500, 25_000, 250_000)


def report(sheet: Sheet, base: Begen) -> None:
    few = Begen(subscriptions=base.subscriptions // 5, events=WARM_UP, distribution="zipf")
    first = sheet.seeds[0]
    for name, variants in VARIANTS.items():
        rows = [
            sheet.kept(f"ablation-{name}-{seed}", partial(_ablation, few, variants, seed), timed=False)
            for seed in sheet.seeds
        ]
        _show(sheet, f"ablation-{name}", name, rows[0])
        if name in _CHOSEN:
            values = [_over_best(found, _CHOSEN[name]) for found in rows]
            measured = {str(row["variant"]): float(row["comparisons, all"]) for row in rows[0]}
            cause = Cause("comparisons per event by variant", measured)
            sheet.judge(f"chosen-{name}", values, cause, size=f"{few.subscriptions:,}", figure=f"ablation-{name}")
    for kind in ("author", "title"):
        words = partial(_of_words, kind, few.subscriptions, first)
        found = sheet.kept(f"ablation-bounds-{kind}-{first}", words, timed=False)
        _show(sheet, f"ablation-bounds-{kind}", f"bounds, {kind}", found)
    _drift(sheet, few)
    _memory(sheet)
    _search_space(sheet)


def _ablation(parameters: Begen, variants: Any, seed: int) -> list[dict[str, object]]:
    return ablation(begen(replace(parameters, seed=seed)), variants)


def _of_words(kind: str, count: int, seed: int) -> list[dict[str, object]]:
    return ablation(dblp_like(kind, count, WARM_UP, seed), VARIANTS["bounds"])


def _over_best(rows: list[dict[str, Any]], chosen: str) -> float:
    compared = {row["variant"]: float(row["comparisons, all"]) for row in rows}
    return compared[chosen] / min(compared.values())


def _show(sheet: Sheet, figure: str, x: str, rows: list[dict[str, Any]]) -> None:
    sheet.table(figure, rows)
    series = {
        which: {float(i): float(row[f"comparisons, {which}"]) for i, row in enumerate(rows)}
        for which in ("all", "best")
    }
    ticks = {float(i): str(row["variant"]).replace("1e+300", "∞") for i, row in enumerate(rows)}
    sheet.plot(figure, {"comparisons per event": series}, title=f"BE*-Tree: {x}", x=x, ticks=ticks)


def _drift(sheet: Sheet, base: Begen) -> None:
    seed = sheet.seeds[0]
    drifting = partial(drift, Begen(subscriptions=base.subscriptions // 4, events=WARM_UP, seed=seed), 5, 50)
    rows = sheet.kept(f"drift-{seed}", drifting, timed=False)
    sheet.table("drift", rows)
    names = ("recycling", "never", "built anew")
    series = {name: {float(row["phase"]): float(row[name]) for row in rows} for name in names}
    sheet.plot("drift", {"comparisons per event": series}, title="BE*-Tree: topics drift", x="phase")


def _memory(sheet: Sheet) -> None:
    """§VII-C: ranges that keep their share of the domain, enumerated."""

    def weighed(seed: int) -> dict[str, float]:
        found = {}
        for cardinality in _CARDINALITIES:
            catalogue = _ranges(np.random.default_rng(seed), 500, cardinality)
            for method in ("k-index-paper", "be-star-paper"):
                found[f"{method} at {cardinality:,}"] = float(build(method, catalogue).nbytes)
        return found

    points = [sheet.kept(f"memory-{seed}", partial(weighed, seed), timed=False) for seed in sheet.seeds]
    first, last = (f"{cardinality:,}" for cardinality in (_CARDINALITIES[0], _CARDINALITIES[-1]))
    values = []
    for found in points:
        grown = {m: found[f"{m} at {last}"] / found[f"{m} at {first}"] for m in ("k-index-paper", "be-star-paper")}
        values.append(grown["k-index-paper"] / grown["be-star-paper"])
    sheet.judge("memory-k-ind", values, Cause("bytes", points[0]), size="500 expressions of 8 predicates")


def _ranges(rng: np.random.Generator, count: int, cardinality: int) -> SparseCatalogue:
    """Expressions of 8 predicates over 50 attributes."""
    named = np.sort(np.stack([rng.permutation(50)[:8] for _ in range(count)]), axis=1).ravel().astype(np.int32)
    lo = np.floor(rng.random(len(named)) * cardinality)
    hi = lo + np.floor(rng.random(len(named)) * 2.0 * _SPAN * cardinality)
    return SparseCatalogue(50, np.arange(count), 8 * np.arange(count + 1), named, lo, hi, np.ones(len(named)))


def _search_space(sheet: Sheet) -> None:
    """§V-A3: one split of uniform ranges of one attribute, and point events where its overlapping bucket is."""

    def shares(seed: int) -> dict[str, float]:
        rng, count = np.random.default_rng(seed), 3000
        lo = rng.random(count)
        hi = lo + rng.random(count) * 0.2
        named, offsets = np.zeros(count, np.int32), np.arange(count + 1)
        catalogue = SparseCatalogue(1, np.arange(count), offsets, named, lo, hi, np.ones(count))
        tree = BEStarPaper(catalogue, capacity=count - 1, window=0)
        root = int(tree._tree.pnode[0].root)
        low, high = (float(tree._tree.box[root, side, 0]) for side in (OWN_LO, OWN_HI))
        found = []
        for value in np.linspace(low, high, 200).tolist():
            before = tree.stats.entries
            tree.top({0: value}, 1)
            found.append((tree.stats.entries - before) / count)
        return {
            "mean": float(np.mean(found)),
            "most": max(found),
            "overlapping": float(tree._tree.node[root].count) / count,
        }

    points = [sheet.kept(f"search-space-{seed}", partial(shares, seed), timed=False) for seed in sheet.seeds]
    cause = Cause("shares of the expressions, and of the overlapping bucket", points[0])
    values = [found["most"] for found in points]
    sheet.judge(
        "search-space", values, cause, size="3,000 ranges of one attribute", detail=f"mean {points[0]['mean']:.2f}"
    )
