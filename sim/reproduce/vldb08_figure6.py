"""Figure 6 of VLDB 2008: what it takes to fetch the best results of one dimension, by how many are fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import topk
from sim.reproduce.measure import WARM_UP, Bout, counter
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Series
from sim.reproduce.sheet import Cause, Sheet
from sim.reproduce.vldb08_data import NAMES, behind, entries_of, generate, nothing

_PER_CALL = 10  # subscriptions: 100,000 calls are made where there are a million


@lru_cache(maxsize=1)
def _stabbed(n: int, seed: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
    data = generate(n, 1, 1000 + WARM_UP, seed=seed)
    entries = entries_of(data)
    kinds = topk.interval_indexes()
    return (
        {label: kinds[name](entries) for label, name in NAMES.items()},
        {label: kinds[name](nothing()) for label, name in NAMES.items()},
        data[2][:, 0],
    )


def _fetching(index: Any, count: int) -> Callable[[float], Any]:
    return lambda value: index.stab(value).fetch(count)


def figure6(sheet: Sheet) -> None:
    n = sheet.many(100_000, 1_000_000)
    calls = [count for count in (1, 10, 100, 1000, 10_000, 100_000) if count <= max(n // _PER_CALL, 10)]

    def bout(count: int, seed: int) -> Bout:
        indexes, empty, values = _stabbed(n, seed)
        return Bout(
            {label: _fetching(index, count) for label, index in indexes.items()},
            values[WARM_UP : WARM_UP + sheet.many(200, 1000)],
            values[:WARM_UP],
            {label: _fetching(index, count) for label, index in empty.items()},
            {label: counter(index, lambda ix: ix.work.sum()) for label, index in indexes.items()},
        )

    points = [(float(count), partial(bout, count)) for count in calls]
    swept = sheet.sweep("figure6", f"Figure 6: total per query, n = {n:,}", "getnext() calls", points)
    size = f"n = {n:,}; {calls[0]} to {calls[-1]:,} calls"
    few = [c for c in calls if c <= 1000]
    shown = swept.mean(TIME)

    def judge(
        id: str,
        value: Callable[[Series], float],
        why: str,
        labels: tuple[str, ...],
        at: Sequence[int] = (calls[0], calls[-1]),
        per: str = "query",
        **more: Any,
    ) -> None:
        measured = {
            f"{label}, {what} per {per}, at {c:,}": scale * swept.mean(basis)[label][c] / (1 if per == "query" else c)
            for what, basis, scale in (("operations", COUNTS, 1.0), ("µs", TIME, 1e3))
            for label in labels
            for c in at
        }
        cause = Cause(why, measured)
        sheet.judge(id, swept.each(value), cause, size=size, figure="figure6", overhead=swept.overhead, **more)

    fastest = ", ".join(f"{c:,}: {min(NAMES, key=lambda x: shown[x][c])}" for c in calls)
    judge(
        "fig6-sopt",
        lambda s: min(behind(s, c, min) for c in calls),
        "the IR-tree's nodes hold shorter lists, so it meets fewer intervals that are not stabbed at these calls",
        ("IR", "SOPT-R"),
        calls,
        detail=f"fastest at {fastest}",
    )
    judge(
        "fig6-sopt-factor",
        lambda s: max(behind(s, c, max) for c in calls),
        "the slowest other does too little more",
        ("Interval", "R", "SOPT-R"),
    )
    judge(
        "fig6-interval",
        lambda s: min(s["Interval"][c] / max(s[x][c] for x in NAMES if x != "Interval") for c in few),
        "its first scan is long and runs through memory; the R-tree's holes add up to more time",
        ("Interval", "R"),
        few,
    )
    judge(
        "fig6-interval-first",
        lambda s: s["Interval"][1] / s["SOPT-R"][1],
        "its scan for the first result is short",
        ("Interval", "SOPT-R"),
    )
    judge(
        "fig6-holes",
        lambda s: max(s["R"][c] / s["SOPT-R"][c] for c in calls[1:]) / (s["R"][calls[0]] / s["SOPT-R"][calls[0]]),
        "holes per result fall with the calls: they are met among the best scores, whose intervals are the shortest",
        ("R", "SOPT-R"),
        calls,
        per="result",
    )
    judge(
        "fig6-close",
        lambda s: max(max(s["Segment"][c] / s["IR"][c], s["IR"][c] / s["Segment"][c]) for c in calls),
        "merging the lists of a path and walking the R-trees of one are different work for few results",
        ("Segment", "IR"),
        calls,
    )
    judge(
        "fig6-converge",
        lambda s: behind(s, calls[0], max) / behind(s, calls[-1], max),
        "the slowest does not come closer",
        ("Interval", "R", "SOPT-R"),
    )
