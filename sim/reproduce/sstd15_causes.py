"""Why claims of SSTD 2015 do not hold, from what was counted: the reasons under its verdicts.

A method finds subscriptions (bounds nodes, merges lists, keeps queues) and compares their predicates with the event.
How the operations divide between the two, and how long one takes, tells why the method that examines least need not be
the fastest.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.report.claims import numeral
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Series, Swept
from sim.reproduce.sheet import Cause

SCAN, TAS, RT, RI = "SCAN", "TAS", "R^t-tree", "R^I-tree"
SUMMED = f"{RT}, text and place summed"  # its bound as if one α did not weigh both
EXAMINED, OPENED, FINDING = "subscriptions examined", "nodes opened", "operations to find them"
OPERATIONS, NANOS = "operations", "ns each"

UNIFORM_ALPHA = 1.2  # where U(0, 1) is drawn on the axis of α's mean
ALPHAS = {0.1: "N(.1, .05)", 0.5: "N(.5, .05)", 0.9: "N(.9, .05)", UNIFORM_ALPHA: "U(0, 1)"}


def compared(swept: Swept, names: Sequence[str], at: Sequence[float]) -> Cause:
    """Why the last of these methods is not as far ahead of the fastest other as published, at these x or on average."""
    *peers, ours = names
    at = at or list(swept.mean(TIME)[ours])
    millis, counts, held, sought = (swept.mean(basis) for basis in (TIME, COUNTS, EXAMINED, FINDING))
    predicates = _mean(counts, SCAN, at) / _mean(held, SCAN, at)  # of a subscription: a scan does nothing else
    peer = min(peers, key=lambda name: _mean(millis, name, at))
    measured: dict[str, float] = {}
    for name in (ours, peer):
        seen, finding, operations = (_mean(series, name, at) for series in (held, sought, counts))
        measured |= {
            f"{name}, {EXAMINED}": seen,
            f"{name}, {OPERATIONS}": operations,
            f"{name}, % to find them": 100.0 * finding / (finding + predicates * seen),
            f"{name}, {NANOS}": 1e6 * _mean(millis, name, at) / operations,
        }
    ratios = [measured[f"{ours}, {what}"] / measured[f"{peer}, {what}"] for what in (EXAMINED, OPERATIONS, NANOS)]
    examined, more, longer = (numeral(ratio, 2) for ratio in ratios)
    said = f"{examined} times the subscriptions of {peer}, {more} times its operations, each of {longer} times its time"
    return Cause(said, measured)


def changed(swept: Swept, names: Sequence[str], ends: Sequence[float]) -> Cause:
    """How the methods' work changes between two x, or over the figure."""
    counts, examined = swept.mean(COUNTS), swept.mean(EXAMINED)
    measured: dict[str, float] = {}
    for name in names:
        first, last = ends or (min(counts[name]), max(counts[name]))
        for what, series in ((OPERATIONS, counts), (EXAMINED, examined)):
            if series[name][first]:
                measured[f"{name}, {what}"] = series[name][last] / series[name][first]
    said = f"{_shown(ends[1])} ÷ {_shown(ends[0])}" if ends else "the right end of the figure ÷ the left one"
    return Cause(f"work: {said}", measured)


def _mean(series: Series, name: str, at: Sequence[float]) -> float:
    return sum(series[name][x] for x in at) / len(at)


def _shown(x: float) -> str:
    return ALPHAS.get(x) or numeral(x, 3)
