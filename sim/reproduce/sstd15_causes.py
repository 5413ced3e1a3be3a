"""Why claims of SSTD 2015 do not hold, from what was counted: the reasons under its verdicts.

A method finds subscriptions (bounds nodes, merges lists, keeps queues) and compares their predicates with the event.
How the operations divide between the two, and how long one takes, tells why the method that examines least need not be
the fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis.report.claims import numeral
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Series, Swept
from sim.reproduce.sheet import Cause

SCAN, TAS, RT, RI = "SCAN", "TAS", "R^t-tree", "R^I-tree"
SUMMED = f"{RT}, text and place summed"  # its bound as if one α did not weigh both
EXAMINED, OPENED, FINDING = "subscriptions examined", "nodes opened", "operations to find them"

UNIFORM_ALPHA = 1.2  # where U(0, 1) is drawn on the axis of α's mean
ALPHAS = {0.1: "N(.1, .05)", 0.5: "N(.5, .05)", 0.9: "N(.9, .05)", UNIFORM_ALPHA: "U(0, 1)"}


def compared(swept: Swept, peers: Sequence[str], at: Sequence[float]) -> Cause:
    """Why the R^I-tree is not as far ahead of the fastest of its peers as published, at these x or on average."""
    at = at or list(swept.mean(TIME)[RI])
    millis, counts, held, sought = (swept.mean(basis) for basis in (TIME, COUNTS, EXAMINED, FINDING))
    predicates = _mean(counts, SCAN, at) / _mean(held, SCAN, at)  # of a subscription: a scan does nothing else
    peer = min(peers, key=lambda name: _mean(millis, name, at))
    measured: dict[str, float] = {}
    said = []
    for name in (RI, peer):
        examined, finding, operations = (_mean(series, name, at) for series in (held, sought, counts))
        share = 100.0 * finding / (finding + predicates * examined)
        nanos = 1e6 * _mean(millis, name, at) / operations
        measured |= {
            f"{name}, {EXAMINED}": examined,
            f"{name}, operations": operations,
            f"{name}, % of them to find the subscriptions": share,
            f"{name}, ns per operation": nanos,
        }
        said.append(
            f"{name} examines {numeral(examined, 3)} subscriptions per event and takes {numeral(operations, 3)} "
            f"operations, {share:.0f} % of them to find these, of {nanos:.0f} ns each"
        )
    return Cause("; ".join(said), measured)


def changed(swept: Swept, names: Iterable[str], ends: Sequence[float]) -> Cause:
    """How the methods' work changes between two x, or over the figure."""
    counts, examined = swept.mean(COUNTS), swept.mean(EXAMINED)
    measured: dict[str, float] = {}
    said = []
    for name in names:
        first, last = ends or (min(counts[name]), max(counts[name]))
        ratios = []
        for what, series in (("operations", counts), (EXAMINED, examined)):
            here, there = series[name][first], series[name][last]
            measured |= {f"{name}, {what} at {_shown(x)}": series[name][x] for x in (first, last)}
            ratios.append(f"{numeral(there / here, 2) if here else '–'} times the {what}")
        said.append(f"{name} has {' and '.join(ratios)} at {_shown(last)} that it has at {_shown(first)}")
    return Cause("; ".join(said), measured)


def _mean(series: Series, name: str, at: Sequence[float]) -> float:
    return sum(series[name][x] for x in at) / len(at)


def _shown(x: float) -> str:
    return ALPHAS.get(x) or numeral(x, 3)
