"""Convergence: how long a client request keeps the network busy, and how long a failure keeps it broken.

An operation is finished when its last message, exposures included, has been processed; until then an event
may miss the subscription. An operation that needs no message takes no time.
"""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark.metrics.counts import each, in_units, percentile, ratio
from analysis.spark.metrics.definition import Amount, Count, Counted, Job, Metric, Rows, Values
from broker.trace.buckets import RELATIVE_ERROR, TIME_UNIT
from broker.trace.schema import CONVERGED, FAILURES, LOST, REPAIRS


def _operations(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "kind": rows["kind"],
            "bucket": rows["lasted_bucket"],
            "count": each(rows),
            "lasted": in_units(pc.subtract(rows["finished"], rows["time"]), TIME_UNIT),
            "messages": rows["messages"],
        }
    )


def _faults(rows: Rows) -> pa.Table:
    """Lost copies may be many, so only their number is kept, without times."""
    lost = pc.is_in(rows["kind"].cast(pa.string()), pa.array(LOST))
    time = pc.if_else(lost, None, rows["time"])
    return pa.table({"kind": rows["kind"], "time": time, "count": each(rows)})


OPERATIONS = Count("operations", ("kind", "bucket"), ("count", "lasted", "messages"), {"operations": _operations})
FAULTS = Count("faults", ("kind", "time"), ("count",), {"faults": _faults})
COUNTS = (OPERATIONS, FAULTS)


def convergence(run: Counted) -> Values:
    rows = run[OPERATIONS]
    subscribe, unsubscribe = rows["kind"] == "subscribe", rows["kind"] == "unsubscribe"
    joined = subscribe | (rows["kind"] == "preload")  # preloads happen before time 0 and have no duration

    def mean(chosen: Any) -> float | None:
        return ratio(rows["lasted"][chosen].sum() * TIME_UNIT, rows["count"][chosen].sum())

    return {
        "subscribe_requests": rows["count"][subscribe].sum(),
        "convergence_mean": mean(subscribe),
        "convergence_p95": percentile(rows["bucket"][subscribe], rows["count"][subscribe], 95),
        "unsubscribe_mean": mean(unsubscribe),
        "messages_per_subscribe": ratio(rows["messages"][joined].sum(), rows["count"][joined].sum()),
    }


def repair(run: Counted) -> Values:
    """The time from each failure, and from the start of each repair, until everything is whole again."""
    rows = run[FAULTS]
    whole = np.sort(rows["time"][rows["kind"] == CONVERGED])
    failed, repaired = np.isin(rows["kind"], FAILURES), np.isin(rows["kind"], REPAIRS)

    def mean(chosen: Any) -> float | None:
        times, counts = rows["time"][chosen], rows["count"][chosen]
        place = np.searchsorted(whole, times)
        ended = place < len(whole)
        lasted = (whole[place[ended]] - times[ended]) * counts[ended]
        return ratio(fsum(lasted), counts[ended].sum())

    return {"failures": rows["count"][failed].sum(), "outage_mean": mean(failed), "repair_mean": mean(repaired)}


JOB = Job(convergence, (
    Amount("subscribe_requests", "subscriptions that came", "subscriptions",
           "Subscribe requests of clients; subscriptions that exist before time 0 are not counted.",
           "count of subscribe operations"),
    Metric("convergence_mean", "convergence of a subscription, mean", "ms",
           "Time from a client's subscribe until its last message has been processed.",
           "mean of finished − time over subscribe operations"),
    Metric("convergence_p95", "convergence of a subscription, 95th percentile", "ms",
           "Time within which 95 % of the subscriptions have converged.",
           f"95th percentile of finished − time over subscribe operations, within {100 * RELATIVE_ERROR:.1f} %"),
    Metric("unsubscribe_mean", "convergence of an unsubscription, mean", "ms",
           "Time from a client's unsubscribe until its last message, exposures included, is processed.",
           "mean of finished − time over unsubscribe operations"),
    Metric("messages_per_subscribe", "messages per subscription", "messages",
           "Link messages that an average subscribe causes.",
           "mean of messages over subscribe and preload operations"),
))  # fmt: skip

REPAIR_JOB = Job(repair, (
    Amount("failures", "failures", "failures",
           "Brokers that crashed and links that were cut.",
           "count of faults of kind crash or cut"),
    Metric("outage_mean", "outage, mean", "ms",
           "Time from a failure until everything is whole again.",
           "mean over crash and cut of time of the next converged − time"),
    Metric("repair_mean", "repair, mean", "ms",
           "Time from a restart or a healed link until everything is whole again.",
           "mean over restart and heal of time of the next converged − time"),
))  # fmt: skip
