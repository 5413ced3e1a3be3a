"""The methods of ICDE 2012 as they are published, with ours beside them, and how they answer the same events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sim.reproduce.measure import WARM_UP, Bout, operations
from sim.reproduce.series import Series, Swept
from sim.reproduce.sheet import Cause, Sheet
from sim.workloads.begen import Begen, Expressions
from topk.sparse import METHODS as REGISTERED
from topk.sparse import build, from_predicates
from topk.sparse.be.star import AS_PUBLISHED
from topk.sparse.be.tree import TABLE

SCAN, KIND, BE, BATCH, STAR, OURS = "SCAN", "k-ind", "BE", "BE*-B", "BE*", "BE*, ours"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    SCAN: ("scan", {}),
    KIND: ("k-index-paper", {}),
    BE: ("be-tree", {"capacity": TABLE}),
    BATCH: ("be-star-batch", AS_PUBLISHED),
    STAR: ("be-star-paper", {}),
    OURS: ("be-star", {}),
}
DISTRIBUTIONS = ("uniform", "zipf")

Ks = Mapping[str, Sequence[int | None]]


def bout(workload: Expressions, names: Sequence[str], ks: Ks | None = None, **options: Any) -> Bout:
    """Every method's answer to one event, for all matches or for each of its ks; each built once."""
    nothing = from_predicates([[(0, "=", -1.0, 1.0)]], dimensions=workload.catalogue.dimensions)  # never matched
    asks, empty, work = {}, {}, {}
    for name in names:
        method, own = METHODS[name]
        # No maintenance while matching is timed: moving expressions between events is measured apart (`drift`).
        given = own | {o: value for o, value in {**options, "window": 0}.items() if o in REGISTERED[method].options}
        index, idle = build(method, workload.catalogue, **given), build(method, nothing, **given)
        for k in (ks or {}).get(name, (None,)):
            label = name if k is None else f"{name}({k})"
            asks[label], empty[label], work[label] = partial(index.top, k=k), partial(idle.top, k=k), operations(index)
    events = list(workload.events)
    return Bout(asks, events[WARM_UP:], events[:WARM_UP], empty, work)


def drawn(sheet: Sheet, methods: Iterable[str], seed: int) -> tuple[str, ...]:
    """These methods; ours, which takes time and decides nothing, for the first seed only."""
    return tuple(name for name in methods if name != OURS or seed == sheet.seeds[0])


def size_of(base: Begen) -> str:
    return f"{base.subscriptions:,} expressions, {base.events - WARM_UP:,} events"


def judge(sheet: Sheet, id: str, swept: Swept, value: Callable[[Series], float], figure: str, *names: str) -> None:
    sheet.judge(id, swept.each(value), Cause(*swept.work(*names)), figure=figure, overhead=swept.overhead)
