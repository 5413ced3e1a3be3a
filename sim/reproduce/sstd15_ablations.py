"""What the order of the methods of SSTD 2015 depends on: the data, and the bound of the R^t-tree.

The paper's expressions and events come from BEGen, whose correlation between the two is not published, and it does not
say by which bound the R^t-tree is walked. So one thing at a time is changed against the data of the figures, and the
R^t-tree is asked with both bounds. Counted and timed on a tenth of the subscriptions; no verdict rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sim.random_streams import streams
from sim.reproduce.measure import CLOCK, operations
from sim.reproduce.sheet import Sheet
from sim.reproduce.sstd15_causes import RI, RT, SUMMED, TAS
from sim.workloads.begen import Begen, begen
from sim.workloads.located import Located, LocatedWorkload, located_workload
from topk.places import PlacedEvent, PlacedIndex, build
from topk.places.ri_tree import RITreePaper
from topk.places.rt_tree import RTTreePaper
from topk.places.rtree_index import INSERTION
from topk.sparse import Event

_GROUP = 20  # attributes
_K, _WARM_UP, _EVENTS, _ROUNDS = 5, 10, 50, 3


def grouped(p: Located) -> LocatedWorkload:
    """Every subscription and every event names attributes of one group only."""
    one = located_workload(replace(p, dimensions=_GROUP))
    random, groups = streams(p.seed)("ablations.groups"), p.dimensions // _GROUP
    expressions = one.catalogue.expressions
    own = np.repeat(random.integers(0, groups, p.subscriptions), np.diff(expressions.offsets)) * _GROUP
    named = (expressions.attributes + own).astype(np.int32)
    moved = replace(expressions, dimensions=p.dimensions, attributes=named)
    events = []
    for placed in one.events:
        shift = np.int32(random.integers(0, groups) * _GROUP)
        event = replace(placed.event, attributes=placed.event.attributes + shift)
        events.append(PlacedEvent(event, placed.place))
    return LocatedWorkload(replace(one.catalogue, expressions=moved), events)


def topical(p: Located, matching: float = 0.01) -> LocatedWorkload:
    """Events and half of the expressions are about common topics, as in `sim.workloads.begen`.

    `matching` is the share of the subscriptions that an event matches in all its predicates.
    """
    placed = located_workload(p)
    parameters = Begen(
        p.subscriptions,
        p.events,
        p.dimensions,
        p.seed,
        distribution=p.distribution,
        cardinality=p.cardinality,
        clusters=0,
        subscription_size=p.subscription_size,
        event_size=p.event_size,
        match_probability=matching,
    )
    made = begen(parameters)
    expressions, e = made.catalogue, made.events
    sums = np.add.reduceat(expressions.weights, expressions.offsets[:-1])
    weights = expressions.weights / np.repeat(sums, np.diff(expressions.offsets))
    catalogue = replace(placed.catalogue, expressions=replace(expressions, weights=weights))
    spans = [slice(e.offsets[i], e.offsets[i + 1]) for i in range(p.events)]
    events = [Event(e.attributes[s], e.lo[s], e.hi[s], np.ones(s.stop - s.start)) for s in spans]
    return LocatedWorkload(
        catalogue, [PlacedEvent(own, at.place) for own, at in zip(events, placed.events, strict=True)]
    )


# What is changed → the data.
VARIANTS: dict[str, Callable[[Located], LocatedWorkload]] = {
    "as in the figures": located_workload,
    "equalities": lambda p: located_workload(replace(p, widest_range=1)),
    "ranges of 50 values": lambda p: located_workload(replace(p, widest_range=99)),
    f"groups of {_GROUP} attributes": grouped,
    "topics": topical,
    "topics, five times as many match": lambda p: topical(p, 0.05),
    "alpha of N(.5, .05)": lambda p: located_workload(replace(p, alpha=0.5)),
    "topics, alpha of N(.5, .05)": lambda p: topical(replace(p, alpha=0.5)),
}


def ablations(sheet: Sheet, base: Located) -> None:
    """A table per distribution of attributes: what each method takes per event, by variant of the data."""
    few = replace(base, subscriptions=base.subscriptions // 10, events=_WARM_UP + _EVENTS)
    name = f"ablations-{base.distribution}"
    rows = [
        {"data": variant, **row}
        for variant, make in VARIANTS.items()
        for row in sheet.kept(f"{name}-{variant}-{few.seed}", partial(_rows, make, few))
    ]
    sheet.table(name, rows)


def summed_beside(tree: RITreePaper) -> PlacedIndex:
    """The R^t-tree over the places of this tree, with text and place bounded apart."""
    found = RTTreePaper.beside(tree)
    found.tight = False
    return found


def _rows(make: Callable[[Located], LocatedWorkload], p: Located) -> list[dict[str, Any]]:
    workload = make(p)
    tree = RITreePaper(workload.catalogue)
    indexes: dict[str, PlacedIndex] = {
        TAS: build("tas", workload.catalogue, packing=INSERTION),
        RT: RTTreePaper.beside(tree),
        SUMMED: summed_beside(tree),
        RI: tree,
    }
    return [{"method": name, **_per_event(index, workload.events)} for name, index in indexes.items()]


def _per_event(index: PlacedIndex, events: Sequence[PlacedEvent]) -> dict[str, float]:
    """Examined, opened and all operations, counted; and milliseconds, the least of some rounds, calls included."""

    def ask(some: Sequence[PlacedEvent]) -> float:
        started = CLOCK()
        for event in some:
            index.top(event.event, event.place, _K)
        return CLOCK() - started

    ask(events[:_WARM_UP])
    index.stats.reset()
    measured = events[_WARM_UP:]
    seconds = ask(measured)
    counted = {"examined": index.stats.entries, "nodes": index.stats.nodes, "operations": operations(index)()}
    seconds = min(seconds, *(ask(measured) for _ in range(_ROUNDS - 1)))
    return {what: count / len(measured) for what, count in counted.items()} | {"ms": 1e3 * seconds / len(measured)}
