"""Hu, Cheng, Wu & Jin, "Efficient Top-k Subscription Matching for Location-Aware Publish/Subscribe" (SSTD 2015):
Figures 5 to 11.

SCAN, TAS, R^t-tree and R^I-tree on located expressions (see `sim.workloads.located`), one parameter of Table 4 at a
time, the others at their defaults, for uniformly and Zipf distributed attributes. The trees are those of the paper,
grown by inserting places; our R^I-tree is drawn beside them, for the first seed, and no verdict rests on it. Building
takes most of the time. So points that differ only in events or k use the same indexes, and the R^t-tree and the
R^I-tree search the same tree. By which bound the R^t-tree is walked is in sstd15_baseline.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from sim.reproduce.measure import LEAST, WARM_UP, Bout, measure, net, operations
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Series, Swept, growth, next_best
from sim.reproduce.sheet import Cause, NotMeasured, Sheet, Steps
from sim.reproduce.sstd15_ablations import ablations
from sim.reproduce.sstd15_baseline import VARIED, baseline, fewer
from sim.reproduce.sstd15_causes import (
    ALPHAS,
    EXAMINED,
    FINDING,
    OPENED,
    RI,
    RT,
    SCAN,
    SUMMED,
    TAS,
    UNIFORM_ALPHA,
    changed,
    compared,
)
from sim.reproduce.tables.sstd15 import DISTRIBUTIONS, FACTORS, OTHER_ALPHAS
from sim.workloads.located import Located, located_events, located_workload
from topk.places import PlacedIndex, build
from topk.places.ri_tree import RITreePaper
from topk.places.rt_tree import RTTreePaper
from topk.places.rtree_index import INSERTION

OURS = "R^I-tree, ours"
BY_8 = "R^t-tree by Equation 8"
_OTHERS, _ALL = (SCAN, TAS, RT), (SCAN, TAS, RT, RI)
# Of the figures: the R^t-tree of the paper sums text and place, and is behind TAS wherever it was measured.
_PEERS = (SCAN, TAS)
_MOST_OF_OURS = 2_000_000  # subscriptions; of more, a second tree beside the published one does not fit into 16 GB
_K = 5


def steps(sheet: Sheet) -> Steps:
    subscriptions, events = sheet.sized(50_000, 2_000_000), WARM_UP + sheet.sized(20, 1000)
    base = Located(subscriptions=subscriptions, events=events, seed=sheet.seeds[0])
    sheet.size = f"{base.subscriptions:,} subscriptions where they are not varied, {base.events - WARM_UP:,} events"
    found: dict[str, Callable[[], None]] = {}
    for d in DISTRIBUTIONS:
        here = replace(base, distribution=d)
        found |= {f"{sweep.figure}-{d}": partial(_figure, sheet, sweep, here) for sweep in SWEEPS}
        found[f"space-{d}"] = partial(_space, sheet, here)
        found[f"ablations-{d}"] = partial(ablations, sheet, here)
    return found


def _figure(sheet: Sheet, sweep: Sweep, base: Located) -> None:
    few = None
    with suppress(NotMeasured):  # where nothing is measured, by Equation 8
        few = baseline(sheet, base, sweep.field) if sweep.field in VARIED else None
    report(sheet, base.distribution, sweep, measured(sheet, sweep, base), few, fewer(sheet))


@dataclass(frozen=True)
class Point:
    """One measurement of a figure."""

    x: float
    workload: Located
    k: int = _K

    @property
    def name(self) -> str:
        """Points of different figures that ask the same have the same name, and are measured once."""
        w = self.workload
        varied = (w.subscriptions, w.dimensions, w.cardinality, w.subscription_size, w.event_size, w.alpha)
        return "-".join(map(str, (w.distribution, *varied, self.k, w.seed)))


@dataclass(frozen=True)
class Sweep:
    """One figure: a parameter of Table 4 and its values."""

    figure: str
    field: str
    x: str
    full: tuple[float, ...]
    quick: tuple[float, ...]

    def points(self, base: Located, quick: bool) -> Iterator[Point]:
        for value in self.quick if quick else self.full:
            if self.field == "k":
                yield Point(value, base, int(value))
                continue
            share = base.subscriptions if self.field == "subscriptions" else 1
            given = None if self.field == "alpha" and value == UNIFORM_ALPHA else value
            changed: Any = {self.field: given if given is None or self.field == "alpha" else int(share * value)}
            yield Point(value if share == 1 else share * value, replace(base, **changed))


SWEEPS = (  # those that vary neither subscriptions nor their attributes first: they share indexes
    Sweep("fig-10", "k", "k", (1, 3, 5, 7, 9), (1, 5, 9)),
    Sweep("fig-9", "event_size", "event length", (6, 8, 10, 12, 14), (6, 10, 14)),
    Sweep("fig-5", "subscriptions", "subscriptions", (0.5, 1, 1.5, 2, 2.5), (0.5, 1, 2)),
    Sweep("fig-6", "dimensions", "dimensions", (50, 100, 400, 600, 800), (50, 400, 800)),
    Sweep("fig-7", "cardinality", "cardinality", (10, 50, 100, 250, 500), (10, 100, 500)),
    Sweep("fig-8", "subscription_size", "subscription length", (2, 3, 4, 5, 6), (2, 4, 6)),
    Sweep("fig-11", "alpha", "distribution of alpha", tuple(ALPHAS), tuple(ALPHAS)),
)


def measured(sheet: Sheet, sweep: Sweep, base: Located) -> Swept:
    by: dict[str, list[dict[str, dict[float, float]]]] = {TIME: [], COUNTS: [], EXAMINED: [], FINDING: []}
    overhead: dict[str, float] = {}
    for seed in sheet.seeds:
        for seeds in by.values():
            seeds.append({})
        for point in sweep.points(replace(base, seed=seed), sheet.quick):
            found = sheet.kept(point.name, partial(_measure, point, drawn=seed == sheet.seeds[0]))
            overhead = overhead or {method: 1e6 * seconds for method, seconds in found["overhead"].items()}
            millis = {method: 1e3 * seconds for method, seconds in net(found).items()}
            for basis in by:
                for method, amount in (millis if basis == TIME else found[basis]).items():
                    by[basis][-1].setdefault(method, {})[point.x] = amount
    return Swept(by, overhead)


def _measure(point: Point, drawn: bool) -> dict[str, dict[str, float]]:
    # Indexes depend on everything but the events.
    subscriptions = replace(point.workload, events=0, event_size=1)
    full, empty = _indexes(subscriptions, drawn), built(replace(subscriptions, subscriptions=1), drawn)
    events = located_events(point.workload)
    work = {name: operations(index) for name, index in full.items()}
    bout = Bout(asks(full, point.k), events[WARM_UP:], events[:WARM_UP], asks(empty, point.k), work)
    return {**measure(bout), **_spent(full, bout)}


def _spent(indexes: Mapping[str, PlacedIndex], bout: Bout) -> dict[str, dict[str, float]]:
    """Work per event: subscriptions compared with it, nodes opened, and the operations that find these subscriptions
    (bounds, queues and heads of lists) instead of comparing their predicates."""
    few = bout.warm_up[:LEAST]
    found: dict[str, dict[str, float]] = {EXAMINED: {}, OPENED: {}, FINDING: {}}
    for name, index in indexes.items():
        before = _counted(index)
        for event in few:
            bout.asks[name](event)
        for what, now in _counted(index).items():
            found[what][name] = (now - before[what]) / len(few)
        predicates = index.placed.rows.length[: len(index)].mean()  # of a subscription
        found[FINDING][name] -= predicates * found[EXAMINED][name]
    found[FINDING].pop(OURS, None)  # it does not compare every subscription that it examines
    return found


def _counted(index: PlacedIndex) -> dict[str, float]:
    return {EXAMINED: index.stats.entries, OPENED: index.stats.nodes, FINDING: operations(index)()}


@lru_cache(maxsize=1)  # points that differ in events or k alone follow each other
def _indexes(subscriptions: Located, drawn: bool) -> dict[str, PlacedIndex]:
    return built(subscriptions, drawn)


def built(p: Located, drawn: bool) -> dict[str, PlacedIndex]:
    """An index per method; ours, which takes time and decides nothing, only if it is to be drawn."""
    catalogue = located_workload(replace(p, events=0)).catalogue
    tree = RITreePaper(catalogue)
    found: dict[str, PlacedIndex] = {
        SCAN: build("scan", catalogue),
        TAS: build("tas", catalogue, packing=INSERTION),
        RT: RTTreePaper.beside(tree),
        RI: tree,
    }
    fits = p.subscriptions <= _MOST_OF_OURS
    return found | {OURS: build("ri-tree", catalogue)} if drawn and fits else found


def asks(indexes: Mapping[str, PlacedIndex], k: int) -> dict[str, Callable[[Any], Any]]:
    def ask(index: PlacedIndex) -> Callable[[Any], Any]:
        return lambda event: index.top(event.event, event.place, k)

    return {name: ask(index) for name, index in indexes.items()}


def report(sheet: Sheet, d: str, sweep: Sweep, swept: Swept, few: Swept | None, small: int) -> None:
    """The figure and its verdicts. `few`: both bounds of the R^t-tree, on fewer subscriptions (`small`)."""
    figure = sweep.figure
    sheet.draw(f"{figure}-{d}", f"{sweep.x}, {d}", sweep.x, swept, ALPHAS if sweep.field == "alpha" else None)
    # The cost of finding explains verdicts; the document did not measure it.
    judged = Swept({basis: seeds for basis, seeds in swept.by.items() if basis != FINDING}, swept.overhead)

    def each(value: Callable[[Series], float], *left_out: str) -> dict[str, list[float]]:
        return judged.each(lambda s: value({name: points for name, points in s.items() if name not in left_out}))

    def judge(id: str, values: dict[str, list[float]], cause: Callable[[], Cause], detail: str, size: str = "") -> None:
        sheet.judge(
            id, values, cause, figure=f"{figure}-{d}", overhead=swept.overhead, detail=detail, size=size or sheet.size
        )

    def ahead(id: str, value: Callable[[Series], float], peers: Sequence[str] = _PEERS, *at: float) -> None:
        """A claim that the R^I-tree is faster than the fastest of these peers, at these values of x or over all."""
        by_8 = {f"{TIME}, {BY_8}": each(value, OURS)[TIME]} if len(peers) > 1 else {}
        judge(
            id, each(value, OURS, RT) | by_8, partial(compared, swept, peers, at), _behind(few) if few and by_8 else ""
        )

    def beside_few(id: str, value: Callable[[Series, str], float]) -> None:
        """A claim about the R^t-tree and the R^I-tree: on fewer subscriptions, and by Equation 8 on all."""
        if few is None:
            judge(id, each(lambda s: value(s, RT), OURS), partial(compared, swept, (RT,), ()), f"{BY_8} only")
            return
        values = few.each(lambda s: value(s, SUMMED))
        values |= {
            f"{TIME}, {BY_8}": few.each(lambda s: value(s, RT))[TIME],
            f"{TIME}, {BY_8}, all subscriptions": each(lambda s: value(s, RT))[TIME],
        }
        cause = Cause(*few.work(SUMMED, RT, RI))
        judge(id, values, lambda: cause, "the R^t-tree by text and place summed", f"{small:,} subscriptions")

    def changes(id: str, value: Callable[[Series], float], names: Sequence[str], *ends: float) -> None:
        """A claim about how the cost of these methods changes between two values of x, or over the figure."""
        judge(id, each(value, OURS), partial(changed, swept, names, ends), BY_8 if RT in names else "")

    if figure == "fig-7":
        beside_few(f"fig-7-{d}", lambda s, rt: next_best({name: s[name] for name in (rt, RI)}, RI))
        beside_few(f"fig-7-slower-{d}", lambda s, rt: min(growth(s, name) for name in (rt, RI)))
    elif figure in FACTORS:
        ahead(f"{figure}-{d}", lambda s: next_best(s, RI))
    if figure == "fig-5":
        changes(f"fig-5-smooth-{d}", lambda s: growth(s, RI) / min(growth(s, name) for name in _OTHERS), _ALL)
    if figure == "fig-6":
        changes(f"fig-6-tas-{d}", lambda s: (1.0 / growth(s, TAS)) if d == "uniform" else growth(s, TAS), (TAS,))
        changes(f"fig-6-flat-{d}", lambda s: max(_swing(s, name) for name in (SCAN, RT, RI)), (SCAN, RT, RI))
    if figure == "fig-8":
        changes(f"fig-8-slower-{d}", lambda s: min(growth(s, name) for name in s), _ALL)
    if figure == "fig-9":
        changes(f"fig-9-flat-{d}", lambda s: max(_swing(s, name) for name in s), _ALL)
        changes(f"fig-9-slower-{d}", lambda s: min(growth(s, name) for name in (RT, RI)), (RT, RI))
    if figure == "fig-10":
        beside_few(f"fig-10-k-{d}", lambda s, rt: max(growth(s, name) for name in (rt, RI)))
        for label in (SCAN, TAS):
            ahead(f"fig-10-{label.lower()}-{d}", partial(_over, label, 9), (label,), 9)
        beside_few(f"fig-10-{RT.lower()}-{d}", lambda s, rt: _over(rt, 9, s))
    if figure == "fig-11":
        ahead(f"fig-11-{d}", partial(_over_next, 0.5), _PEERS, 0.5)
        changes(f"fig-11-normal-{d}", partial(_over_uniform, 0.5), (RI,), 0.5, UNIFORM_ALPHA)
        for alpha in OTHER_ALPHAS:
            ahead(f"fig-11-{alpha:g}-{d}", partial(_over_next, alpha), _PEERS, alpha)
            changes(f"fig-11-normal-{alpha:g}-{d}", partial(_over_uniform, alpha), (RI,), alpha, UNIFORM_ALPHA)


def _behind(few: Swept) -> str:
    """That the summed R^t-tree is not the next best."""
    ratios = [series[SUMMED][x] / series[TAS][x] for series in few.by[TIME] for x in series[TAS]]
    return f"the R^t-tree, text and place summed, takes {min(ratios):.2g} to {max(ratios):.2g} times as long as TAS"


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


def _over(name: str, x: float, series: Series) -> float:
    return series[name][x] / series[RI][x]


def _over_next(x: float, series: Series) -> float:
    """The best other ÷ the R^I-tree."""
    return min(_over(name, x, series) for name in series if name != RI)


def _over_uniform(x: float, series: Series) -> float:
    """The R^I-tree with uniform α ÷ with α from N(x, .05)."""
    return series[RI][UNIFORM_ALPHA] / series[RI][x]


def _swing(series: Series, name: str) -> float:
    return max(series[name].values()) / min(series[name].values())
