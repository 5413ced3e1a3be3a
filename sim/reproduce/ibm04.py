"""Efficient Interval Indexing for Content-Based Subscription (IBM, 2004), section 5: Figures 5 to 7.

What the paper calls event matching time cannot include reading the lists: at n = 1,024,000 and R = 5,000 an
event has 20,000 matches, and it reports less than 10 µs. So we measure both: *locate* (which lists hold the
matches) and *all* (the matches themselves). For IS-lists, whose library returns the matches, the paper can
only have measured the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sim.reproduce.ibm04_beside import beside, virtualized
from sim.reproduce.ibm04_indexes import LARGE, MODERATE, SEED, idle_search, make, predicates
from sim.reproduce.ibm04_search import search_claims
from sim.reproduce.ibm04_storage import figure5, storage_claims
from sim.reproduce.measure import WARM_UP, Bout, measure, net
from sim.reproduce.rules import ACCOUNTED, ALLOCATED, TIME
from sim.reproduce.series import Series, Swept
from sim.reproduce.sheet import Sheet, Steps

_CELLS = 300_000_000  # list cells we allow: 2.4 GB, where the paper's machine ran out of memory
_SEARCHES = 10_000  # random ones, as in the paper
NEAR = ("LCI", "LCI-BC", "LCI-BV", "LCI-BV(DT)", "Dlist", "IS-lists")  # in Figures 6(a) and 7(a)
FAR = ("LCI-BC", "LCI-BV", "LCI-BV(DT)", "IS-lists")  # in Figures 6(b) and 7(b)


def steps(sheet: Sheet) -> Steps:
    return {
        "fig5": partial(figure5, sheet),
        "fig6-7": partial(_figures6and7, sheet),
        "fig6-sizes": partial(virtualized, sheet),
    }


def _figures6and7(sheet: Sheet) -> None:
    words = beside(sheet)
    all_sizes = [1000 * 2**i for i in range(11)]
    sizes = tuple(sheet.sized(n, n) for n in (all_sizes[:7:2] if sheet.quick else all_sizes))
    near = _swept(sheet, "a", MODERATE, sizes, NEAR)
    wide = _swept(sheet, "b", LARGE, sizes, FAR)
    search_claims(sheet, near, wide, [float(n) for n in sizes], words)
    storage_claims(sheet, near["bytes"], wide["bytes"], [float(n) for n in sizes])


def _indexes(sheet: Sheet, attribute_range: int, n: int, labels: Sequence[str], seed: int) -> dict[str, Any]:
    x, y = predicates(n, attribute_range, seed)
    found = {}
    for label in labels:
        if label == "Dlist" and (y - x + 1).sum() > _CELLS:
            sheet.progress(f"R = {attribute_range:,}, n = {n:,}: {label} left out, it would need too much memory")
            continue
        found[label] = make(label, x, y, attribute_range)
    return found


def _point(sheet: Sheet, attribute_range: int, n: int, labels: Sequence[str], seed: int) -> dict[str, Any]:
    """Time to locate the lists and to return all matches, and bytes, of every index."""
    indexes = _indexes(sheet, attribute_range, n, labels, seed)
    rng = np.random.default_rng([SEED, attribute_range, seed])
    searches = sheet.sized(200, _SEARCHES)
    values = rng.integers(1, attribute_range + 1, searches + WARM_UP).astype(float)
    assert len({len(np.unique(index.stabbed(values[0]))) for index in indexes.values()}) == 1, "the indexes disagree"
    found: dict[str, Any] = {}
    for what in ("locate", "stabbed"):
        asks = {label: getattr(index, what) for label, index in indexes.items()}
        empty = {label: idle_search(label, what) for label in indexes}
        found[what] = measure(Bout(asks, values[WARM_UP:], values[:WARM_UP], empty))
    # Bytes without what only our generalisation to floats needs.
    found[ACCOUNTED] = {label: index.nbytes - index.known_bytes for label, index in indexes.items()}
    found[ALLOCATED] = {label: index.allocated_bytes - index.known_bytes for label, index in indexes.items()}
    return found


def _seconds(what: str, point: dict[str, Any]) -> dict[str, float]:
    return net(point[what])


def _bytes(basis: str, point: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = point[basis]
    return found


def _swept(
    sheet: Sheet, part: str, attribute_range: int, sizes: Sequence[int], labels: Sequence[str]
) -> dict[str, Swept]:
    """locate, stabbed and bytes as figures over n."""
    points = {
        (seed, n): sheet.kept(f"figures67{part}-{n}-{seed}", partial(_point, sheet, attribute_range, n, labels, seed))
        for seed in sheet.seeds
        for n in sizes
    }

    def series(pick: Callable[[str, Any], dict[str, float]], what: str, scale: float) -> list[Series]:
        return [
            {
                label: {
                    float(n): scale * pick(what, points[seed, n])[label]
                    for n in sizes
                    if label in points[seed, n][ACCOUNTED]
                }
                for label in labels
            }
            for seed in sheet.seeds
        ]

    found = {
        what: Swept(
            {TIME: series(_seconds, what, 1e6)},
            {label: 1e6 * s for label, s in points[sheet.seeds[0], sizes[0]][what]["overhead"].items()},
        )
        for what in ("locate", "stabbed")
    }
    found["bytes"] = Swept({basis: series(_bytes, basis, 2.0**-20) for basis in (ACCOUNTED, ALLOCATED)})
    for what, y in (("locate", "µs"), ("stabbed", "µs"), ("bytes", "MB")):
        title = f"{'Figure 7' if what == 'bytes' else 'Figure 6'}({part}): {what}, R = {attribute_range:,}"
        panels = {y if basis == TIME else f"{y}, {basis}": seeds[0] for basis, seeds in found[what].by.items()}
        sheet.plot(f"figure{part}-{what}", panels, title=title, x="n", log_x=True)
    sheet.table(
        f"figure7{part}",
        [
            {"index": label, "n": n, "bytes": basis, "MB": found["bytes"].by[basis][0][label].get(float(n))}
            for basis in (ACCOUNTED, ALLOCATED)
            for label in labels
            for n in sizes
        ],
    )
    return found
