"""The points of the figures of SSTD 2015, and what is measured at each.

SCAN, TAS, R^t-tree and R^I-tree on located expressions (see `sim.workloads.located`), one parameter of Table 4 at a
time, the others at their defaults. The trees are those of the paper, grown by inserting places; our R^I-tree is drawn
beside them, for the first seed, and no verdict rests on it. Building takes most of the time. So points that differ only
in events or k use the same indexes, and the R^t-tree and the R^I-tree search the same tree.

The paper does not say by which bound the R^t-tree is walked, and calls Equation 8 that of the R^I-tree. With Equation 8
the R^t-tree is faster than TAS where α is close to .5; in Figure 11 it is slower, as it is with a bound that adds text
and place as if one α did not weigh both. The figures of full size were timed with Equation 8, and building takes hours.
So every point is measured a second time on fewer subscriptions, with both bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from sim.reproduce.measure import LEAST, WARM_UP, Bout, measure, net, operations
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Swept
from sim.reproduce.sheet import Sheet
from sim.reproduce.sstd15_ablations import summed_beside
from sim.reproduce.sstd15_causes import ALPHAS, EXAMINED, FINDING, OPENED, RI, RT, SCAN, SUMMED, TAS, UNIFORM_ALPHA
from sim.workloads.located import Located, located_events, located_workload
from topk.places import PlacedIndex, build
from topk.places.ri_tree import RITreePaper
from topk.places.rt_tree import RTTreePaper
from topk.places.rtree_index import INSERTION

OURS = "R^I-tree, ours"
_MOST_OF_OURS = 2_000_000  # subscriptions; of more, a second tree beside the published one does not fit into 16 GB
BOLD_K = 5
_BOTH = "both-bounds-"
_SHORTER = 0.1  # of the seconds that a point is timed: on fewer subscriptions rounds are short
Indexes = Mapping[str, PlacedIndex]
Found = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Point:
    """One measurement of a figure."""

    x: float
    workload: Located
    k: int = BOLD_K

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
    """On all subscriptions, the R^t-tree by Equation 8."""
    drawn = sheet.seeds[0]  # of ours
    return _swept(sheet, sweep, base, "", lambda p: partial(_measured, p, p.workload.seed == drawn), sheet.seeds)


def with_both_bounds(sheet: Sheet, sweep: Sweep, base: Located) -> Swept:
    """On fewer subscriptions, the R^t-tree by both bounds."""
    few = replace(base, subscriptions=fewer(sheet), events=WARM_UP + sheet.sized(20, 100))
    return _swept(sheet, sweep, few, _BOTH, lambda point: partial(_measured_with_both, point), sheet.seeds)


def default_with_both_bounds(sheet: Sheet, base: Located) -> Swept:
    """On all subscriptions, Table 4's bold values and the first data set: what building the trees once allows."""
    bold = Sweep("", "k", "k", (BOLD_K,), (BOLD_K,))
    return _swept(sheet, bold, base, _BOTH, lambda point: partial(_measured_with_both, point), sheet.seeds[:1])


def fewer(sheet: Sheet) -> int:
    return sheet.sized(2_000, 50_000)


def _swept(
    sheet: Sheet,
    sweep: Sweep,
    base: Located,
    prefix: str,
    measuring: Callable[[Point], Callable[[], Found]],
    seeds: Sequence[int],
) -> Swept:
    by: dict[str, list[dict[str, dict[float, float]]]] = {TIME: [], COUNTS: [], EXAMINED: [], FINDING: []}
    overhead: dict[str, float] = {}
    for seed in seeds:
        for found_in in by.values():
            found_in.append({})
        for point in sweep.points(replace(base, seed=seed), sheet.quick):
            found = sheet.kept(f"{prefix}{point.name}", measuring(point))
            overhead = overhead or {method: 1e6 * seconds for method, seconds in found["overhead"].items()}
            millis = {method: 1e3 * seconds for method, seconds in net(found).items()}
            for basis in by:
                for method, amount in (millis if basis == TIME else found[basis]).items():
                    by[basis][-1].setdefault(method, {})[point.x] = amount
    return Swept(by, overhead)


def _measured(point: Point, drawn: bool) -> Found:
    extra = (OURS,) if drawn else ()  # takes time and decides nothing
    p = _of_indexes(point)
    return _timed(point, _indexes(p, extra), built(replace(p, subscriptions=1), extra), 1.0)


def _measured_with_both(point: Point) -> Found:
    p = _of_indexes(point)
    return _timed(point, built(p, (SUMMED,)), built(replace(p, subscriptions=1), (SUMMED,)), _SHORTER)


def _of_indexes(point: Point) -> Located:
    """They depend on everything but the events."""
    return replace(point.workload, events=0, event_size=1)


def _timed(point: Point, full: Indexes, empty: Indexes, share: float) -> Found:
    events = located_events(point.workload)
    work = {name: operations(index) for name, index in full.items()}
    bout = Bout(asks(full, point.k), events[WARM_UP:], events[:WARM_UP], asks(empty, point.k), work)
    return {**measure(bout, share), **_spent(full, bout)}


def _spent(indexes: Indexes, bout: Bout) -> Found:
    """Work per event: subscriptions compared with it, nodes opened, and the operations that find these subscriptions
    (bounds, queues and heads of lists) instead of comparing their predicates."""
    few = bout.warm_up[:LEAST]
    found: Found = {EXAMINED: {}, OPENED: {}, FINDING: {}}
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
def _indexes(p: Located, extra: Sequence[str]) -> Indexes:
    return built(p, extra)


def built(p: Located, extra: Sequence[str]) -> Indexes:
    """An index per method, and these."""
    catalogue = located_workload(replace(p, events=0)).catalogue
    tree = RITreePaper(catalogue)
    found: dict[str, PlacedIndex] = {
        SCAN: build("scan", catalogue),
        TAS: build("tas", catalogue, packing=INSERTION),
        RT: RTTreePaper.beside(tree),
        RI: tree,
    }
    if OURS in extra and p.subscriptions <= _MOST_OF_OURS:
        found[OURS] = build("ri-tree", catalogue)
    if SUMMED in extra:
        found[SUMMED] = summed_beside(tree)
    return found


def asks(indexes: Indexes, k: int) -> dict[str, Callable[[Any], Any]]:
    def ask(index: PlacedIndex) -> Callable[[Any], Any]:
        return lambda event: index.top(event.event, event.place, k)

    return {name: ask(index) for name, index in indexes.items()}
