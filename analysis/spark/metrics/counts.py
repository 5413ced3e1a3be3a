"""Counts that several metrics share, and helpers that compute counts and metrics.

Durations and shares are added up in whole units (broker/trace/buckets.py), so the sum has the same last digit in
whatever order parts of a table are added, on however many machines.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analysis.spark.metrics.definition import Count, Rows
from analysis.spark.traces import Run
from broker.trace import buckets
from broker.trace.buckets import TIME_UNIT, WORK_UNIT
from broker.trace.schema import CLIENT

RUNS_AT_ONCE = 16  # whose publication period and number of preloads a process caches


def parameter(run: Run, section: str, name: str) -> Any:
    """A setting of a run's experiment; None if it is not set."""
    return (run.parameters.get(section) or {}).get(name)


# ── for the tables of a count ──────────────────────────────────────────────────────────────────────────────


def each(rows: Rows) -> pa.Array:
    """How many rows a row counts for: one, or as many as sampling added up in it."""
    return rows["count"] if rows.table.endswith("_rest") else pa.array(np.ones(len(rows), np.int64))


def in_units(column: pa.Array, unit: float) -> pa.Array:
    """Whole numbers of units; values that an earlier version did not write are 0."""
    known = column.fill_null(0) if column.null_count else column
    return pa.array(buckets.in_units(known.to_numpy(zero_copy_only=False), unit))


def from_broker(rows: Rows) -> pa.Array:
    """Which messages came over a link, not from a client of the broker."""
    return pc.not_equal(rows["source"], CLIENT)


def _control(rows: Rows) -> pa.Table:
    service = in_units(rows["service"], WORK_UNIT)
    return pa.table({
        **{name: rows[name] for name in CONTROL.keys},
        "count": each(rows),
        "waited": in_units(rows["waited"], TIME_UNIT),
        "service": service,
        "on_covering": in_units(rows["on_covering"], WORK_UNIT),
        "asked": _meanwhile(rows, service),
    }).filter(processed(rows))  # fmt: skip


def processed(rows: Rows) -> pa.Array:
    """Which control messages a broker served: requests before time 0 are in the trace but were never messages."""
    before = 0
    if parameter(rows.run, "arrivals", "kind") == "preloaded":
        before = _preloaded(rows.run.folder, rows.run.record["trace_hash"])
    return pc.or_(from_broker(rows), pc.greater_equal(rows["operation"], before))


@lru_cache(RUNS_AT_ONCE)
def _preloaded(folder: Path, trace_hash: str) -> int:
    """How many subscriptions existed before time 0; their operations are the first ones."""
    with pq.ParquetFile(folder / "operations.parquet", page_checksum_verification=True) as file:
        kinds = (batch.column(0).cast(pa.string()) for batch in file.iter_batches(columns=["kind"], use_threads=False))
        return sum(pc.sum(pc.equal(kind, "preload")).as_py() or 0 for kind in kinds)


def _meanwhile(rows: Rows, service: pa.Array) -> pa.Array:
    """The service time of control messages sent while events were published, 0 for others."""
    if not pc.max(service).as_py():
        return service
    first, last = _period(rows.run.folder, rows.run.record["trace_hash"])
    sent = rows["sent"]
    return pc.if_else(pc.and_(pc.greater_equal(sent, first), pc.less_equal(sent, last)), service, 0)


@lru_cache(RUNS_AT_ONCE)
def _period(folder: Path, trace_hash: str) -> tuple[float, float]:
    """When the first and the last event of this trace were published; (∞, −∞) if there were none."""
    first, last = np.inf, -np.inf
    with pq.ParquetFile(folder / "publications.parquet", page_checksum_verification=True) as file:
        for batch in file.iter_batches(columns=["published"], use_threads=False):
            times = batch.column(0).to_numpy()
            first, last = min(first, times.min(initial=np.inf)), max(last, times.max(initial=-np.inf))
    return float(first), float(last)


def _publications(rows: Rows) -> pa.Table:
    return pa.table({
        **{name: rows[name] for name in PUBLICATIONS.keys},
        "count": each(rows),
        "needless": pc.invert(rows["useful"]).cast(pa.int64()),
        "waited": in_units(rows["waited"], TIME_UNIT),
        **{name: in_units(rows[name], WORK_UNIT) for name in ("service", "on_tables", "on_matching")},
        "first": rows["published"],
        "last": rows["published"],
    })  # fmt: skip


def without_event(rows: Rows) -> pa.Array:
    """Which ranked messages are answers and awards without the event: those with it are publications too."""
    return pc.invert(rows["carries"])


def _replies(rows: Rows) -> pa.Table:
    return pa.table({
        "target": rows["target"],
        "count": each(rows),
        "waited": in_units(rows["waited"], TIME_UNIT),
        "service": in_units(rows["service"], WORK_UNIT),
    }).filter(without_event(rows))  # fmt: skip


# The messages of each link, a client's to its broker included; `waited` in TIME_UNIT, the work in WORK_UNIT.
CONTROL = Count(
    "control",
    ("source", "target", "kind"),
    ("count", "waited", "service", "on_covering", "asked"),
    {"control": _control},
)
PUBLICATIONS = Count(
    "publications",
    ("source", "target"),
    ("count", "needless", "waited", "service", "on_tables", "on_matching"),
    {"publications": _publications},
    least=("first",),
    most=("last",),
)
# Messages about an event that do not carry it, where the k best of the whole network are served.
REPLIES = Count("replies", ("target",), ("count", "waited", "service"), {"ranked": _replies})
BROKERS = Count(
    "brokers",
    ("broker",),
    ("count",),
    {"brokers": lambda rows: pa.table({"broker": rows["broker"], "count": each(rows)})},
)


# ── for the metrics of a run ───────────────────────────────────────────────────────────────────────────────


def ratio(part: Any, whole: Any) -> float | None:
    """part ÷ whole; None if either is unknown or the whole is 0."""
    if part is None or whole is None or not whole:
        return None
    return float(part / whole)


def totals(of: NDArray[Any], *rows: tuple[NDArray[Any], NDArray[Any]]) -> NDArray[Any]:
    """For each number in `of` (ascending), the sum of its amounts over all (numbers, amounts)."""
    found = np.zeros(len(of), np.result_type(np.int64, *(amounts for _, amounts in rows)))
    for numbers, amounts in rows:
        place = np.minimum(np.searchsorted(of, numbers), len(of) - 1)
        listed = of[place] == numbers if len(of) else np.zeros(len(numbers), bool)
        np.add.at(found, place[listed], amounts[listed])
    return found


def percentile(numbers: NDArray[Any], counts: NDArray[Any], percent: int) -> float | None:
    """The middle of the first bucket at which `percent` % of the values are reached.

    It is within buckets.RELATIVE_ERROR of the value at that rank.
    """
    if not counts.sum():
        return None
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(counts[order])
    return float(buckets.middle_of(numbers[order[np.searchsorted(100 * reached, percent * reached[-1])]]))
