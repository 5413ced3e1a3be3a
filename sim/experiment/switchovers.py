"""What fail-over did in a run and what it cost, for the run record.

Heartbeats are not simulated. Every broker that is up sends one over each of its links at every multiple of
`routing.heartbeat`, from the first on; a failure comes before the heartbeats of its moment, and so does a repair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from broker.settings import Failover
from broker.trace.schema import CLIENT, CRASH, CUT, DETECTED, RESTART, SWITCHED
from routing.overlay.graph import Overlay
from sim.experiment.oracle_floor import down_times
from sim.experiment.oracle_paths import columns, is_kind


def switchovers(
    tables: Mapping[str, pa.Table], overlay: Overlay, failover: Failover | None, finished: float
) -> dict[str, float]:
    """Columns of the run record; sums are of times in ms."""
    if failover is None:
        return dict.fromkeys(("detections", "switchovers", "switchover_messages", "heartbeats"), 0) | {
            "detecting": 0.0,
            "switching": 0.0,
        }
    detecting = _detecting(tables["faults"])
    return {
        "detections": len(detecting),
        "detecting": math.fsum(detecting),
        "switchovers": int(is_kind(tables["faults"], "kind", SWITCHED).sum()),
        "switching": math.fsum(_switching(tables)),
        "switchover_messages": _messages(tables),
        "heartbeats": _heartbeats(tables["faults"], overlay, failover, finished),
    }


def _detecting(faults: pa.Table) -> list[float]:
    """From each failure that was noticed until then."""
    found, failed = [], dict[tuple[int, int], float]()
    for time, kind, *target in _rows(faults):
        if kind in (CRASH, CUT):
            failed[target[0], target[1]] = time
        elif kind == DETECTED:
            found.append(time - failed[target[0], target[1]])
    return found


def _switching(tables: Mapping[str, pa.Table]) -> list[float]:
    """From the first notice that called for other trees until events followed them."""
    if "versions" not in tables:
        return []
    found = dict[float, float]()
    waiting = math.inf
    for began, serves in zip(*columns(tables["versions"], "began", "serves"), strict=True):
        waiting = min(waiting, began)
        if not math.isnan(serves):  # else a newer one took over before it was filled
            found[serves] = max(found.get(serves, 0.0), serves - waiting)
            waiting = math.inf
    return list(found.values())


def _messages(tables: Mapping[str, pa.Table]) -> int:
    """Messages over links by which versions of trees began and ended."""
    ours = np.flatnonzero(is_kind(tables["operations"], "kind", "switch", "retire"))
    operation, source = columns(tables["control"], "operation", "source")
    return int((np.isin(operation, ours) & (source != CLIENT)).sum())


def _heartbeats(faults: pa.Table, overlay: Overlay, failover: Failover, finished: float) -> int:
    every, crashed, beats = failover.heartbeat, down_times(faults, CRASH, RESTART), 0
    for broker, links in overlay.graph.degree:
        missing = sum(
            max(0, math.ceil(min(end, finished) / every) - max(math.ceil(begin / every), 1))
            for begin, end in crashed.get((broker, -1), ())
        )
        beats += (math.floor(finished / every) - missing) * links
    return beats


def _rows(faults: pa.Table) -> zip[tuple[float, str, int, int]]:
    return zip(*(faults.column(name).to_pylist() for name in ("time", "kind", "broker", "neighbour")), strict=True)
