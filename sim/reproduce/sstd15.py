"""Hu, Cheng, Wu & Jin, "Efficient Top-k Subscription Matching for Location-Aware Publish/Subscribe" (SSTD 2015):
Figures 5 to 11, for uniformly and Zipf distributed attributes.

The figures of full size have the R^t-tree by Equation 8, those of fewer subscriptions also by the bound that the paper
measured (sstd15_points.py). So the R^t-tree is judged on fewer subscriptions, and where it is not the next best, the
others on all. What Equation 8 would give is shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from sim.reproduce.measure import WARM_UP
from sim.reproduce.rules import TIME
from sim.reproduce.series import Series, Swept, growth, next_best
from sim.reproduce.sheet import Cause, Sheet, Steps
from sim.reproduce.sstd15_ablations import ablations
from sim.reproduce.sstd15_causes import ALPHAS, FINDING, RI, RT, SCAN, SUMMED, TAS, UNIFORM_ALPHA, changed, compared
from sim.reproduce.sstd15_points import (
    BOLD_K,
    SWEEPS,
    Sweep,
    default_with_both_bounds,
    fewer,
    measured,
    with_both_bounds,
)
from sim.reproduce.tables.sstd15 import DISTRIBUTIONS, FACTORS, OTHER_ALPHAS
from sim.workloads.located import Located, located_workload
from topk.places.ri_tree import RITreePaper

BY_8 = f"{RT} by Equation 8"
_ALL = (SCAN, TAS, RT, RI)


def steps(sheet: Sheet) -> Steps:
    subscriptions, events = sheet.sized(50_000, 2_000_000), WARM_UP + sheet.sized(20, 1000)
    base = Located(subscriptions=subscriptions, events=events, seed=sheet.seeds[0])
    sheet.size = f"{base.subscriptions:,} subscriptions where they are not varied, {base.events - WARM_UP:,} events"
    found: dict[str, Callable[[], None]] = {}
    for d in DISTRIBUTIONS:
        here = replace(base, distribution=d)
        found |= {f"{sweep.figure}-{d}": partial(_figure, sheet, sweep, here) for sweep in SWEEPS}
        found[f"bound-{d}"] = partial(_bound, sheet, here)
        found[f"space-{d}"] = partial(_space, sheet, here)
        found[f"ablations-{d}"] = partial(ablations, sheet, here)
    return found


def _figure(sheet: Sheet, sweep: Sweep, base: Located) -> None:
    swept, few = measured(sheet, sweep, base), with_both_bounds(sheet, sweep, base)
    report(sheet, base.distribution, sweep, swept, few, f"{fewer(sheet):,} subscriptions")


def report(sheet: Sheet, d: str, sweep: Sweep, swept: Swept, few: Swept, small: str) -> None:
    """The figure and its verdicts. `few`: both bounds of the R^t-tree, on fewer subscriptions, as `small` says."""
    figure = sweep.figure
    ticks = ALPHAS if sweep.field == "alpha" else None
    sheet.draw(f"{figure}-{d}", f"{sweep.x}, {d}", sweep.x, _renamed(swept, {RT: BY_8}), ticks)
    sheet.draw(f"{figure}-{d}-few", f"{sweep.x}, {d}, {small}", sweep.x, _renamed(few, {RT: BY_8}), ticks)
    few_by_8, few = few, _renamed(few, {RT: "", SUMMED: RT})

    def by_8(names: Sequence[str], value: Callable[[Series], float]) -> dict[str, list[float]]:
        return {f"{TIME}, {BY_8}": _of(swept, names, value)[TIME]} if RT in names else {}

    def ahead(id: str, names: Sequence[str], value: Callable[[Series], float], *at: float) -> None:
        """A claim that the R^I-tree is ahead of these, at these x or over all. It compares methods, so all must have as
        many subscriptions: fewer, unless on these it makes no difference whether the R^t-tree is there."""
        others: Sequence[str] = [name for name in names if name != RT]
        if _of(few, names, value)[TIME] == _of(few, others, value)[TIME]:
            source, among, size = swept, others, sheet.size
            beside = {f"{TIME}, {small}": _of(few, names, value)[TIME]}
        else:
            source, among, size = few, names, small
            beside = {f"{TIME}, {BY_8}, {small}": _of(few_by_8, names, value)[TIME]}
        values = {**_of(source, among, value), **beside, **by_8(names, value)}
        drawn = f"{figure}-{d}{'-few' if source is few else ''}"
        why = partial(compared, source, among, at)
        sheet.judge(id, values, why, figure=drawn, overhead=source.overhead, size=size)

    own = Swept(  # the R^t-tree on fewer, the others on all
        {
            basis: [{**s, RT: t[RT]} for s, t in zip(seeds, few.by[basis], strict=True)]
            for basis, seeds in swept.by.items()
        },
        swept.overhead,
    )

    def changes(id: str, names: Sequence[str], value: Callable[[Series], float], *ends: float) -> None:
        """A claim about how much each of these methods changes, between two x or over the figure."""
        size = f"{sheet.size}; {RT}: {small}" if RT in names else sheet.size
        values, why = {**_of(own, names, value), **by_8(names, value)}, partial(changed, own, names, ends)
        sheet.judge(id, values, why, figure=f"{figure}-{d}", overhead=own.overhead, size=size)

    if figure in FACTORS:
        ahead(f"{figure}-{d}", (RT, RI) if figure == "fig-7" else _ALL, partial(next_best, ours=RI))
    if figure == "fig-5":
        changes(f"fig-5-smooth-{d}", _ALL, _growth_over_the_least_other)
    if figure == "fig-6":
        changes(f"fig-6-tas-{d}", (TAS,), (lambda s: 1.0 / growth(s, TAS)) if d == "uniform" else _least_growth)
        changes(f"fig-6-flat-{d}", (SCAN, RT, RI), _swing)
    if figure == "fig-7":
        changes(f"fig-7-slower-{d}", (RT, RI), _least_growth)
    if figure == "fig-8":
        changes(f"fig-8-slower-{d}", _ALL, _least_growth)
    if figure == "fig-9":
        changes(f"fig-9-flat-{d}", _ALL, _swing)
        changes(f"fig-9-slower-{d}", (RT, RI), _least_growth)
    if figure == "fig-10":
        changes(f"fig-10-k-{d}", (RT, RI), lambda s: max(growth(s, name) for name in s))
        for name in (SCAN, TAS, RT):
            ahead(f"fig-10-{name.lower()}-{d}", (name, RI), partial(_over_next, 9), 9)
    if figure == "fig-11":
        for id, alpha in (("fig-11", 0.5), *((f"fig-11-{alpha:g}", alpha) for alpha in OTHER_ALPHAS)):
            ahead(f"{id}-{d}", _ALL, partial(_over_next, alpha), alpha)
            normal = id.replace("fig-11", "fig-11-normal")
            changes(f"{normal}-{d}", (RI,), partial(_over_uniform, alpha), alpha, UNIFORM_ALPHA)


def _of(some: Swept, names: Sequence[str], value: Callable[[Series], float]) -> dict[str, list[float]]:
    """A value of these methods by way of measuring. The cost of finding explains verdicts, it is not one."""
    each = some.each(lambda s: value({name: s[name] for name in names}))
    return {basis: values for basis, values in each.items() if basis != FINDING}


def _renamed(swept: Swept, names: Mapping[str, str]) -> Swept:
    """Methods by other names; one whose name is empty is left out."""
    return replace(
        swept,
        by={
            basis: [{name: s[old] for old in s if (name := names.get(old, old))} for s in seeds]
            for basis, seeds in swept.by.items()
        },
    )


def _bound(sheet: Sheet, base: Located) -> None:
    """Whether the R^t-tree of the paper is behind TAS: where it is, the next best does not depend on it."""
    few = [with_both_bounds(sheet, sweep, base) for sweep in SWEEPS]
    every = [[_behind(s, x) for s in seeds for x in s[TAS]] for seeds in zip(*(f.by[TIME] for f in few), strict=True)]
    whole = default_with_both_bounds(sheet, base)
    each = _of(whole, (SUMMED, TAS), lambda s: _behind(s, BOLD_K))
    at = f"{fewer(sheet):,} subscriptions"
    each |= {
        f"{TIME}, {at}, the {what} of all points": [of(s) for s in every]
        for what, of in (("least", min), ("most", max))
    }
    cause = partial(compared, whole, (SUMMED, TAS), ())
    sheet.judge(f"bound-{base.distribution}", each, cause, overhead=whole.overhead)


def _space(sheet: Sheet, base: Located) -> None:
    """§5.1: the interval trees of a node need space in proportion to its intervals."""

    def weighed(seed: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for share in (4, 1):
            p = replace(base, subscriptions=base.subscriptions // share, events=0, seed=seed)
            tree = RITreePaper(located_workload(p).catalogue)
            found[f"{p.subscriptions:,}"] = tree.nbytes / p.subscriptions
        return found

    points = [
        sheet.kept(f"space-{base.distribution}-{seed}", partial(weighed, seed), timed=False) for seed in sheet.seeds
    ]
    cause = Cause("bytes per subscription", points[0])
    sheet.judge(f"space-{base.distribution}", [_last(found) / _first(found) for found in points], cause)


def _first(found: Mapping[str, float]) -> float:
    return next(iter(found.values()))


def _last(found: Mapping[str, float]) -> float:
    return list(found.values())[-1]


def _behind(series: Series, x: float) -> float:
    return series[SUMMED][x] / series[TAS][x]


def _over_next(x: float, series: Series) -> float:
    """The best other ÷ the R^I-tree; infinite where there is no other."""
    return min((series[name][x] for name in series if name != RI), default=inf) / series[RI][x]


def _over_uniform(x: float, series: Series) -> float:
    """The R^I-tree with uniform α ÷ with α from N(x, .05)."""
    return series[RI][UNIFORM_ALPHA] / series[RI][x]


def _swing(series: Series) -> float:
    """The longest time ÷ the shortest, of the method that changes most."""
    return max(max(points.values()) / min(points.values()) for points in series.values())


def _least_growth(series: Series) -> float:
    return min(growth(series, name) for name in series)


def _growth_over_the_least_other(series: Series) -> float:
    return growth(series, RI) / min(growth(series, name) for name in series if name != RI)
