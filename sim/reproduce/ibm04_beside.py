"""What the IBM report says beside its figures: events that are not integers, updates, covering segments.

LCI as the paper has it walks all N bits of a vector, 625 words at R = 5,000 and L = 128. That LCI-BC takes "a little
longer" can only be true of an LCI that looks where a bit may be set, in the covering segment: both are measured.

Updates are timed where endpoints are new, at R = 250,000: IS-lists adjust themselves when a node is added or deleted.
At R = 5,000 every value is an endpoint already.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np

from sim.reproduce.ibm04_indexes import LARGE, MODERATE, idle_search, make, of_one, predicates
from sim.reproduce.measure import CLOCK, WARM_UP, Bout, counter, measure, net
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.sheet import Cause, Sheet
from topk.papers.interval.contract import PROBED

_UPDATES = 500
_ROUNDS, _TOGETHER = 15, 10
CHANGES = ("insert", "delete")
SEARCHED = ("LCI", "LCI-BC", "LCI-BV", "LCI-BV(DT)", "SCI-BV(DT)")
UPDATED = ("LCI-BC", "LCI-BV(DT)", "Dlist", "IS-lists", "IBS-tree")
SEGMENT = "LCI, covering segment"


def beside(sheet: Sheet) -> dict[str, float]:
    """Judge these claims, and return the words or headers that a search looks at, by index."""
    n = sheet.sized(16_000, 64_000)
    searched = _searched(sheet, n)
    first, size = searched[0], f"n = {n:,}, R = {MODERATE:,}"
    words: dict[str, float] = first["integers"][COUNTS]

    def judge(id: str, above: tuple[str, str], below: tuple[str, str], why: str) -> None:
        """What the values and index of `above` take ÷ what those of `below` take."""
        both = {
            TIME: [net(p[above[0]])[above[1]] / net(p[below[0]])[below[1]] for p in searched],
            COUNTS: [p[above[0]][COUNTS][above[1]] / p[below[0]][COUNTS][below[1]] for p in searched],
        }
        measured = {f"{name}, {what}": first[what][COUNTS][name] for what, name in (above, below)}
        overhead = {name: 1e6 * first[what]["overhead"][name] for what, name in (above, below)}
        sheet.judge(id, both, Cause(f"{why}: words or headers per search", measured), size=size, overhead=overhead)

    whole = "integers"
    judge("fig6-bc-segment", (whole, "LCI-BC"), (whole, SEGMENT), "both walk as many words, and C_min is added")
    judge("fig6-bc-words", (whole, "LCI"), (whole, SEGMENT), "a vector has few words")
    judge("footnote-3", ("between", "LCI-BV(DT)"), (whole, "LCI-BV(DT)"), "the tables are as long")
    judge("footnote-3-sci", ("between", "SCI-BV(DT)"), (whole, "SCI-BV(DT)"), "the tables are as long")
    _updating(sheet, n)
    return words


def _searched(sheet: Sheet, n: int) -> list[dict[str, Any]]:
    return [sheet.kept(f"searches-{n}-{seed}", partial(_searches, sheet, n, seed)) for seed in sheet.seeds]


def virtualized(sheet: Sheet) -> None:
    """That LCI-BV can take much longer than LCI is true if it does at some size."""
    sizes = (1_000, 4_000, 16_000) if sheet.quick else (4_000, 16_000, 64_000)
    points = {n: _searched(sheet, n) for n in (sheet.sized(size, size) for size in sizes)}
    n = max(points)
    ratios = {
        size: [net(p["integers"])["LCI-BV"] / net(p["integers"])[SEGMENT] for p in seeds]
        for size, seeds in points.items()
    }
    first = points[n][0]["integers"]
    sheet.judge(
        "fig6-bv-segment",
        {
            TIME: [max(each) for each in zip(*ratios.values(), strict=True)],
            COUNTS: [p["integers"][COUNTS]["LCI-BV"] / p["integers"][COUNTS][SEGMENT] for p in points[n]],
        },
        Cause(
            "divisions cost less than walking words: words or headers per search",
            {name: first[COUNTS][name] for name in ("LCI-BV", SEGMENT)},
        ),
        size=f"n = {', '.join(f'{size:,}' for size in points)}, R = {MODERATE:,}",
        detail="at most over n; by n: " + ", ".join(f"{size:,}: {median(r):.2f}×" for size, r in ratios.items()),
        overhead={name: 1e6 * first["overhead"][name] for name in ("LCI-BV", SEGMENT)},
    )


def _searches(sheet: Sheet, n: int, seed: int) -> dict[str, Any]:
    x, y = predicates(n, MODERATE, seed)
    indexes = {label: make(label, x, y, MODERATE) for label in SEARCHED}
    indexes[SEGMENT] = make("LCI", x, y, MODERATE, segment=True)
    empty = {label: idle_search("LCI" if label == SEGMENT else label, "locate") for label in indexes}
    few = sheet.sized(200, 2000)
    values = np.random.default_rng([MODERATE, seed]).integers(1, MODERATE, few + WARM_UP).astype(float)
    found: dict[str, Any] = {}
    for what, shift in (("integers", 0.0), ("between", 0.5)):
        asks = {label: index.locate for label, index in indexes.items()}
        work = {label: counter(index, lambda ix: ix.work[PROBED]) for label, index in indexes.items()}
        found[what] = measure(Bout(asks, values[WARM_UP:] + shift, values[:WARM_UP] + shift, empty, work))
    return found


def _updating(sheet: Sheet, n: int) -> None:
    points = {
        r: [sheet.kept(f"updates-{r}-{n}-{seed}", partial(_updates, r, n, seed)) for seed in sheet.seeds]
        for r in (MODERATE, LARGE)
    }
    for what in CHANGES:
        ratios = {
            r: [net(p[what])["IS-lists"] / net(p[what])["LCI-BV(DT)"] for p in seeds] for r, seeds in points.items()
        }
        measured = {
            f"{label}, R = {r:,}, µs": 1e6 * seconds
            for r, (p, *_) in points.items()
            for label, seconds in net(p[what]).items()
        }
        measured |= {f"endpoints that are new, R = {r:,}, %": 100.0 * p["new"] for r, (p, *_) in points.items()}
        sheet.judge(
            f"updates-{what}",
            ratios[LARGE],
            Cause(f"a {what} of IS-lists walks O(log n) edges and rarely has to adjust them", measured),
            size=f"n = {n:,}, R = {LARGE:,}",
            detail=f"{ratios[MODERATE][0]:.2g}× at R = {MODERATE:,}",
            overhead={label: 1e6 * points[LARGE][0][what]["overhead"][label] for label in ("IS-lists", "LCI-BV(DT)")},
        )


def _updates(r: int, n: int, seed: int) -> dict[str, Any]:
    """Seconds of an insertion and a deletion, less those on an index with next to nothing to do."""
    x, y = predicates(n + _UPDATES, r, seed)
    known = np.concatenate((x[:n], y[:n]))
    later = [(row, float(x[row]), float(y[row]), 0.0, row) for row in range(n, n + _UPDATES)]
    short = [(row, 1.0, 2.0, 0.0, row) for row in range(1, 1 + _UPDATES)]
    found: dict[str, Any] = {"new": float(1.0 - np.isin(np.concatenate((x[n:], y[n:])), known).mean())}
    gross = {label: _changing(make(label, x[:n], y[:n], r), later) for label in UPDATED}
    overhead = {label: _changing(of_one(label), short) for label in UPDATED}
    for what in CHANGES:
        net_of = {label: gross[label][what] - overhead[label][what] for label in UPDATED}
        found[what] = {TIME: net_of, "overhead": {label: overhead[label][what] for label in UPDATED}}
    return found


def _changing(index: Any, rows: list[tuple[Any, ...]]) -> dict[str, float]:
    """Seconds of an insertion and of a deletion: all rows in several rounds, the least time of each group counts."""
    few = [rows[at : at + _TOGETHER] for at in range(0, len(rows), _TOGETHER)]
    least = {what: np.full(len(few), np.inf) for what in CHANGES}
    for _ in range(_ROUNDS):
        for what in CHANGES:
            change = getattr(index, what)
            for i, part in enumerate(few):
                started = CLOCK()
                for row in part:
                    change(*row)
                least[what][i] = min(least[what][i], CLOCK() - started)
    return {what: float(times.sum()) / len(rows) for what, times in least.items()}
