"""What the IBM report says beside its figures: events that are no integers, updates, covering segments.

LCI as the paper has it walks all N bits of a vector, 625 words at R = 5,000 and L = 128. That LCI-BC takes "a little
longer" can only be true of an LCI that looks where a bit may be set, in the covering segment: both are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sim.reproduce.measure import CLOCK, WARM_UP, Bout, counter, measure
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.sheet import Cause, Sheet

_UPDATES = 200
LABELS = {"LCI": "lci", "LCI-BC": "lci-bc", "LCI-BV(DT)": "lci-bv-dt", "SCI-BV(DT)": "sci-bv-dt"}
UPDATED = {**LABELS, "Dlist": "dlist", "IS-lists": "is-list", "IBS-tree": "ibs-tree"}
SEGMENT = "LCI, covering segment"

Make = Callable[..., Any]  # method, endpoints and options → an index


def beside(sheet: Sheet, cells: int, predicates: Callable[[int, int], tuple[Any, Any]], make: Make) -> None:
    n = 16_000 if sheet.quick else 64_000
    points = [
        sheet.kept(f"beside-{n}-{seed}", partial(_point, sheet, cells, predicates, make, n, seed))
        for seed in sheet.seeds
    ]
    size, first = f"n = {n:,}, R = {cells:,}", points[0]

    def judge(id: str, what: str, other: str, label: str, why: str, bases: tuple[str, ...] = (TIME, COUNTS)) -> None:
        both = {basis: [p[what][basis][other] / p[what][basis][label] for p in points] for basis in bases}
        measured = {f"{name}, probes": amount for name, amount in first[what].get(COUNTS, {}).items()}
        sheet.judge(id, both, Cause(why, measured or first[what][TIME]), size=size)

    judge(
        "fig6-bc-segment", "integers", "LCI-BC", SEGMENT, "both walk the same words, and C_min is added to a few bits"
    )
    judge("fig6-bc-words", "integers", "LCI", SEGMENT, "a vector has few words", (COUNTS, TIME))
    for id, label in (("footnote-3", "LCI-BV(DT)"), ("footnote-3-sci", "SCI-BV(DT)")):
        both = {
            basis: [p["between"][basis][label] / p["integers"][basis][label] for p in points]
            for basis in (TIME, COUNTS)
        }
        sheet.judge(id, both, Cause("probes of an integer", {label: first["integers"][COUNTS][label]}), size=size)
    for what in ("insert", "delete"):
        ours = [p[what]["IS-lists"] / p[what]["LCI-BV(DT)"] for p in points]
        sheet.judge(f"updates-{what}", ours, Cause(f"µs of a {what}", first[what]), size=size)


def _point(
    sheet: Sheet, cells: int, predicates: Callable[[int, int], tuple[Any, Any]], make: Make, n: int, seed: int
) -> dict[str, Any]:
    x, y = predicates(n + _UPDATES, seed)
    indexes = {label: make(name, x[:n], y[:n]) for label, name in UPDATED.items()}
    searched = {label: indexes[label] for label in LABELS}
    searched[SEGMENT] = make("lci", x[:n], y[:n], segment=True)
    few = 200 if sheet.quick else 2000
    values = np.random.default_rng([cells, seed]).integers(1, cells, few + WARM_UP).astype(float)
    found: dict[str, Any] = {}
    for what, shift in (("integers", 0.0), ("between", 0.5)):
        asks = {label: index.locate for label, index in searched.items()}
        work = {label: counter(index, lambda ix: ix.work.sum()) for label, index in searched.items()}
        found[what] = measure(Bout(asks, values[WARM_UP:] + shift, values[:WARM_UP] + shift, {}, work))
    for what in ("insert", "delete"):
        found[what] = {label: _update(index, what, n, x, y) for label, index in indexes.items()}
    return found


def _update(index: Any, what: str, n: int, x: Any, y: Any) -> float:
    """Microseconds of one; a few before it, which may compile."""
    change = getattr(index, what)
    rows = [(row, float(x[row]), float(y[row]), 0.0, row) for row in range(n, n + _UPDATES)]
    for row in rows[:10]:
        change(*row)
    started = CLOCK()
    for row in rows[10:]:
        change(*row)
    return 1e6 * (CLOCK() - started) / len(rows[10:])
