"""Table II of ICDE 2012: the best capacity of an l-node by match probability, and what building takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from sim.bench.timing import timed
from sim.reproduce.icde12_bouts import BE, METHODS, STAR, bout, size_of
from sim.reproduce.measure import CLOCK, Bout
from sim.reproduce.rules import COUNTS
from sim.reproduce.series import Series
from sim.reproduce.sheet import Cause, Sheet
from sim.workloads.begen import Begen, Expressions, begen, dblp_like
from topk.sparse import build
from topk.sparse.be.star import BEStarPaper

_CAPACITIES = (5, 20, 160)  # of an l-node, Table II(a)


def construction(sheet: Sheet, base: Begen) -> None:
    """Table II(b): seconds to build by insertion, and what parts of it take. The kernels are compiled before."""
    method = METHODS[STAR][0]

    @cache
    def small() -> Any:
        """A few expressions, with which everything is compiled."""
        few = begen(replace(base, subscriptions=500, events=1)).catalogue
        build(method, few)
        return few

    share = base.subscriptions / 1_000_000
    sets: dict[str, tuple[Callable[[int], Expressions], float]] = {
        "uniform": (lambda seed: begen(replace(base, events=1, seed=seed)), 2.30),
        "zipf": (lambda seed: begen(replace(base, events=1, seed=seed, distribution="zipf")), 2.45),
        "author": (lambda seed: dblp_like("author", int(760_000 * share), 1, seed), 4.98),
        "title": (lambda seed: dblp_like("title", int(250_000 * share), 1, seed), 2.83),
    }
    for name, (make, published) in sets.items():

        def built(seed: int, make: Callable[[int], Expressions] = make) -> dict[str, float]:
            small()
            workload = make(seed)
            _, seconds = timed(partial(build, method, workload.catalogue), CLOCK)
            return {"seconds": seconds, "expressions": len(workload.catalogue)}

        def parts(make: Callable[[int], Expressions] = make) -> dict[str, float]:
            """µs per expression, one thing changed at a time."""
            catalogue = make(sheet.seeds[0]).catalogue
            tree, whole = timed(partial(BEStarPaper, catalogue), CLOCK)
            variants: dict[str, tuple[str, dict[str, Any]]] = {
                "BE* with 32 bounds per node": (method, {"slots": 32}),
                BE: METHODS[BE],
            }
            seconds = {"BE*": whole, "of it, nodes put in order at the end": timed(tree.lay_out, CLOCK)[1]}
            del tree
            for label, (other, options) in variants.items():
                build(other, small(), **options)  # it may compile
                seconds[label] = timed(partial(build, other, catalogue, **options), CLOCK)[1]
            return {label: 1e6 * taken / len(catalogue) for label, taken in seconds.items()}

        found = [sheet.kept(f"construction-{name}-{seed}", partial(built, seed)) for seed in sheet.seeds]
        first = found[0]
        measured = sheet.kept(f"construction-parts-{name}-{sheet.seeds[0]}", parts)
        sheet.judge(
            f"construction-{name}",
            [point["seconds"] / (published * share) for point in found],
            Cause("µs per insertion, with one part changed at a time", measured),
            size=f"{first['expressions']:,.0f} expressions",
            detail=f"{first['seconds']:.2f} s, {published * share:.2g} s in proportion to the published",
        )


def capacity(sheet: Sheet, base: Begen) -> None:
    """Table II(a): which capacity of an l-node is best at which match probability."""
    for probability, published in ((0.001, 5), (0.05, 20), (0.2, 160)):

        def point(seed: int, probability: float = probability) -> Bout:
            # All capacities in one point: they take turns, so a busy machine slows them alike.
            workload = begen(replace(base, match_probability=probability, seed=seed))
            every = {f"{STAR} A={c}": bout(workload, (STAR,), capacity=c) for c in _CAPACITIES}
            return Bout(
                {name: b.asks[STAR] for name, b in every.items()},
                next(iter(every.values())).events,
                next(iter(every.values())).warm_up,
                {name: b.empty[STAR] for name, b in every.items()},
                {name: b.work[STAR] for name, b in every.items()},
            )

        figure = f"table-2a-{probability:g}"
        swept = sheet.sweep(figure, f"Capacity at {probability:.1%}", "match probability", [(probability, point)])
        best = {name: points[probability] for name, points in swept.mean(COUNTS).items()}
        sheet.judge(
            f"capacity-{probability:g}",
            swept.each(partial(_over_best, f"{STAR} A={published}", probability)),
            Cause("operations per event by capacity", best),
            size=size_of(base),
            figure=figure,
            overhead=swept.overhead,
        )


def _over_best(name: str, x: float, series: Series) -> float:
    return series[name][x] / min(points[x] for points in series.values())
