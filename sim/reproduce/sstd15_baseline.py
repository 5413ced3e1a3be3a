"""The R^t-tree that SSTD 2015 compares with: its bound adds text and place as if one α did not weigh both.

The paper does not say by which bound the R^t-tree is walked, and calls Equation 8 that of the R^I-tree. With Equation 8
the R^t-tree is faster than TAS where α is close to .5; in Figure 11 it is slower, as it is with the summed bound. The
figures of full size were timed with Equation 8. So both bounds are measured here on the same trees of fewer
subscriptions, one parameter at a time, and claims about the R^t-tree itself rest on this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sim.reproduce.measure import WARM_UP, Bout, measure, net, operations
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Swept
from sim.reproduce.sheet import Sheet
from sim.reproduce.sstd15_ablations import summed_beside
from sim.reproduce.sstd15_causes import RI, RT, SUMMED, TAS
from sim.workloads.located import Located, located_events, located_workload
from topk.places import PlacedIndex, build
from topk.places.ri_tree import RITreePaper
from topk.places.rt_tree import RTTreePaper
from topk.places.rtree_index import INSERTION

_K = 5
_TIMING = 0.1  # of the seconds that a point of a figure is timed

# Parameter → its values: Figures 7 and 11 whole, of Figure 10 both ends. 0 as α: uniform.
VARIED: Mapping[str, tuple[float, ...]] = {
    "cardinality": (10, 50, 100, 250, 500),
    "alpha": (0.1, 0.5, 0.9, 0),
    "k": (1, 9),
}


def fewer(sheet: Sheet) -> int:
    """Subscriptions: the trees are built anew for most points, and SCAN is left out, which is slower than all."""
    return sheet.sized(2_000, 50_000)


def baseline(sheet: Sheet, base: Located, field: str) -> Swept:
    """Time and operations of TAS, the R^t-tree with either bound and the R^I-tree, for the first seed."""
    base = replace(base, subscriptions=fewer(sheet), events=WARM_UP + sheet.sized(20, 100))
    by: dict[str, list[dict[str, dict[float, float]]]] = {TIME: [], COUNTS: []}
    for seeds in by.values():
        seeds.append({})
    for value in VARIED[field]:
        name = f"baseline-{base.distribution}-{field}-{value:g}-{base.seed}"
        found = sheet.kept(name, partial(_point, base, field, value), aside=field == "alpha")
        for basis, amounts in ((TIME, net(found)), (COUNTS, found[COUNTS])):
            for method, amount in amounts.items():
                by[basis][-1].setdefault(method, {})[value] = 1e3 * amount if basis == TIME else amount
    swept = Swept(by)
    title = f"{field.replace('_', ' ')}, {base.distribution}, {base.subscriptions:,} subscriptions"
    named = {value: f"{value:g}" if value else "U(0, 1)" for value in VARIED[field]} if field == "alpha" else None
    sheet.draw(f"baseline-{base.distribution}-{field}", title, field, swept, named)
    return swept


def _point(base: Located, field: str, value: float) -> dict[str, dict[str, float]]:
    k = int(value) if field == "k" else _K
    changed: dict[str, Any] = {} if field == "k" else {field: (value or None) if field == "alpha" else int(value)}
    workload = replace(base, **changed)
    full, empty = _built(workload), _built(replace(workload, subscriptions=1))
    events = located_events(workload)
    work = {name: operations(index) for name, index in full.items()}
    bout = Bout(_asks(full, k), events[WARM_UP:], events[:WARM_UP], _asks(empty, k), work)
    return measure(bout, _TIMING)


def _built(p: Located) -> dict[str, PlacedIndex]:
    catalogue = located_workload(replace(p, events=0)).catalogue
    tree = RITreePaper(catalogue)
    return {
        TAS: build("tas", catalogue, packing=INSERTION),
        RT: RTTreePaper.beside(tree),
        SUMMED: summed_beside(tree),
        RI: tree,
    }


def _asks(indexes: Mapping[str, PlacedIndex], k: int) -> dict[str, Callable[[Any], Any]]:
    def ask(index: PlacedIndex) -> Callable[[Any], Any]:
        return lambda event: index.top(event.event, event.place, k)

    return {name: ask(index) for name, index in indexes.items()}
