"""Load over time: what each broker did in each part of a run, for the runs that the report draws.

Per broker and bin of BINS equal ones: messages whose service began there, how long they had waited, how long they were
served. From these follow the share of the time that a broker was busy, the mean wait, and, because every waiting
message adds its wait, the mean number of messages waiting (Little's law).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analysis.spark.metrics.counts import Columns, Count, Counted, each, in_units, parameter, without_event
from broker.trace.buckets import TIME_UNIT

if TYPE_CHECKING:
    from analysis.spark.parts import Rows
    from analysis.spark.traces import Run

BINS = 40


def takes_time(run: Run) -> bool:
    """Is there a message in this run that takes time or waits?"""
    service = parameter(run, "broker", "service") or {}
    limited = parameter(run, "links", "bandwidth") is not None
    return (service.get("kind", "none") != "none" or limited) and run.record["finished"] > 0


def _width(run: Run) -> float:
    return float(run.record["finished"] / BINS)


def _control(rows: Rows) -> pa.Table | None:
    return _messages(rows, pa.array(np.zeros(len(rows), np.int64)))


def _events(rows: Rows) -> pa.Table | None:
    return _messages(rows, each(rows))


def _replies(rows: Rows) -> pa.Table | None:
    found = _control(rows)
    return None if found is None else found.filter(without_event(rows))


def _messages(rows: Rows, events: pa.Array) -> pa.Table | None:
    if not (rows.drawn and takes_time(rows.run)):
        return None
    place = np.minimum(np.floor(rows["time"].to_numpy() / _width(rows.run)), BINS - 1).astype(np.int32)
    times = {name: in_units(rows[name], TIME_UNIT) for name in ("waited", "service")}
    return pa.table({"broker": rows["target"], "bin": place, "messages": each(rows), "events": events, **times})


TIMES = Count(
    "over_time",
    ("broker", "bin"),
    ("messages", "events", "waited", "service"),
    {"control": _control, "publications": _events, "ranked": _replies},
)


def per_broker(run: Counted) -> Columns:
    """broker, start, width (ms), messages, events (those among them that are events), waited, busy (ms, sums)."""
    rows, width = run[TIMES], _width(run.run)
    columns = {
        "broker": rows["broker"],
        "start": rows["bin"] * width,
        "width": np.full(len(rows["bin"]), width),
        "messages": rows["messages"],
        "events": rows["events"],
        "waited": rows["waited"] * TIME_UNIT,
        "busy": rows["service"] * TIME_UNIT,
    }
    order = np.lexsort([rows["bin"], rows["broker"]])
    return {name: values[order] for name, values in columns.items()}
