"""Load over time: what each broker did in each part of a run, for the runs that the report draws.

A run is cut into BINS bins of equal width. Per broker and bin: the messages whose service began in it and how long they
had waited, how long the broker was busy, and the time that messages spent waiting. From these follow the mean wait, the
share of the time that a broker was busy, and the mean number of messages waiting. A wait or a service may last for many
bins; each bin gets the part within it. So a queue that is worked off falls, though its last message waited longest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analysis.spark.metrics.counts import parameter, processed, without_event
from analysis.spark.metrics.definition import Columns, Count, Counted, Rows
from analysis.spark.traces import Run
from broker.trace.buckets import TIME_UNIT, in_units

BINS = 40
COLUMNS = frozenset(("broker", "start", "width", "messages", "events", "waited", "queued", "busy"))  # of `per_broker`
Floats = NDArray[np.float64]


def takes_time(run: Run) -> bool:
    """Can messages of this run take time or wait?"""
    service = parameter(run, "broker", "service") or {}
    limited = parameter(run, "links", "bandwidth") is not None
    return (service.get("kind", "none") != "none" or limited) and run.record["finished"] > 0


def _width(run: Run) -> float:
    return float(run.record["finished"] / BINS)


def _messages(rows: Rows, events: bool, chosen: Callable[[Rows], pa.Array] | None = None) -> pa.Table | None:
    if not (rows.drawn and takes_time(rows.run)):
        return None
    kept = slice(None) if chosen is None else chosen(rows).to_numpy(zero_copy_only=False)
    target, began, waited, service = (
        rows[name].fill_null(0).to_numpy(zero_copy_only=False)[kept] for name in ("target", "time", "waited", "service")
    )
    width, finished = _width(rows.run), rows.run.record["finished"]
    cells = int(rows.run.record["brokers"]) * BINS
    messages = np.bincount(target * BINS + _bin(began, width), minlength=cells)
    found = {
        "broker": np.repeat(np.arange(cells // BINS), BINS),
        "bin": np.tile(np.arange(BINS), cells // BINS),
        "messages": messages,
        "events": messages * events,
        "waited": _total(target * BINS + _bin(began, width), waited, cells),
        **_within("queued", target, began - waited, began, width, cells),
        **_within("busy", target, began, np.minimum(began + service, finished), width, cells),
    }
    return pa.table({name: found[name] for name in TIMES.columns})


def _bin(time: Floats, width: float) -> NDArray[np.int64]:
    return np.clip(np.floor(time / width), 0, BINS - 1).astype(np.int64)


def _total(cell: NDArray[np.int64], times: Floats, cells: int) -> Floats:
    return np.bincount(cell, in_units(times, TIME_UNIT), cells).astype(np.float64)  # integers if there are no rows


def _within(name: str, broker: NDArray[Any], start: Floats, end: Floats, width: float, cells: int) -> dict[str, Any]:
    """How much of these times lies in each bin: the parts in their first and last bins, and the change in the number of
    times that fill a whole bin in between."""
    first, last = _bin(start, width), _bin(end, width)
    same = first == last
    head = np.where(same, end - start, (first + 1) * width - start)
    tail = np.where(same, 0.0, end - last * width)
    at_first, at_last = broker * BINS + first, broker * BINS + last
    ends = _total(at_first, head, cells) + _total(at_last, tail, cells)
    filling = np.bincount(at_first[~same] + 1, minlength=cells) - np.bincount(at_last[~same], minlength=cells)
    return {name: ends, f"{name}_filling": filling}


TIMES = Count(
    "over_time",
    ("broker", "bin"),
    ("messages", "events", "waited", "queued", "queued_filling", "busy", "busy_filling"),
    {
        "control": lambda rows: _messages(rows, False, processed),
        "publications": lambda rows: _messages(rows, True),
        "ranked": lambda rows: _messages(rows, False, without_event),
    },
)


def per_broker(run: Counted) -> Columns:
    """broker, start, width (ms), messages, events (of these messages), and in ms: waited (by these messages, before
    their service), queued (by all messages within the bin) and busy (the broker, within the bin)."""
    rows, width = run[TIMES], _width(run.run)
    order = np.lexsort([rows["bin"], rows["broker"]])
    rows = {name: values[order] for name, values in rows.items()}

    def lasting(name: str) -> Floats:
        filled = np.cumsum(rows[f"{name}_filling"].reshape(-1, BINS), axis=1).ravel()
        return np.asarray(rows[name] * TIME_UNIT + filled * width)

    columns = {
        "broker": rows["broker"],
        "start": rows["bin"] * width,
        "width": np.full(len(rows["bin"]), width),
        "messages": rows["messages"],
        "events": rows["events"],
        "waited": rows["waited"] * TIME_UNIT,
        "queued": lasting("queued"),
        "busy": lasting("busy"),
    }
    something = (columns["messages"] > 0) | (columns["queued"] > 0) | (columns["busy"] > 0)
    return {name: values[something] for name, values in columns.items()}
