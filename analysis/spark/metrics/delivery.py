"""Deliveries: how many, over how many hops, how fast; and how long event messages waited at each hop.

Percentiles come from counts per bucket (broker/trace/buckets.py), within 0.4 % of the value at that rank. Rows are
neither sorted nor collected on one machine.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark.metrics.counts import PUBLICATIONS, each, from_broker, in_units, parameter, percentile, ratio
from analysis.spark.metrics.definition import Amount, Count, Counted, Job, Metric, Rows, Values
from broker.trace.buckets import RELATIVE_ERROR, TIME_UNIT
from broker.trace.schema import CLIENT

PERCENTS = (50, 95, 99)
WITHIN = f", within {100 * RELATIVE_ERROR:.1f} %"


def _deliveries(rows: Rows) -> pa.Table:
    count = each(rows)
    hops = pc.multiply(rows["hops"].cast(pa.int64()), count)
    latency = in_units(rows["latency"], TIME_UNIT)
    return pa.table({"bucket": rows["latency_bucket"], "count": count, "hops": hops, "latency": latency})


def _served(rows: Rows) -> pa.Table | None:
    if parameter(rows.run, "matching", "k") is None:
        return None
    served = pa.table({"event": rows["event"], "served": rows["served"].cast(pa.int64())})
    return served.filter(pc.greater(rows["served"], 0))


def _waits(rows: Rows) -> pa.Table:
    return pa.table({"bucket": rows["waited_bucket"], "count": each(rows)}).filter(from_broker(rows))


DELIVERIES = Count(
    "deliveries",
    ("bucket",),
    ("count", "hops", "latency"),
    {"deliveries": _deliveries, "deliveries_rest": _deliveries},
)
SERVED = Count("served", ("event",), ("served",), {"publications": _served})
WAITS = Count("waits", ("bucket",), ("count",), {"publications": _waits})
COUNTS = (DELIVERIES, SERVED, WAITS)


def deliveries(run: Counted) -> Values:
    rows = run[DELIVERIES]
    count = rows["count"].sum()
    return {
        "deliveries": count,
        "hops": ratio(rows["hops"].sum(), count),
        "latency_mean": ratio(rows["latency"].sum() * TIME_UNIT, count),
        **{f"latency_p{percent}": percentile(rows["bucket"], rows["count"], percent) for percent in PERCENTS},
    }


def top_k(run: Counted) -> Values:
    """The share of the deliveries by the brokers' own top k that a network-wide top k would make too."""
    k, delivered = parameter(run.run, "matching", "k"), run[SERVED]["served"]
    overlap = None if k is None else ratio(np.minimum(delivered, k).sum(), delivered.sum())
    return {"topk_overlap": overlap}


def waiting(run: Counted) -> Values:
    """Time that an event message spends per hop beyond the latency of the link."""
    rows, waits = run[PUBLICATIONS], run[WAITS]
    over_links = rows["source"] != CLIENT
    return {
        "waiting_mean": ratio(rows["waited"][over_links].sum() * TIME_UNIT, rows["count"][over_links].sum()),
        "waiting_p95": percentile(waits["bucket"], waits["count"], 95),
    }


DELIVERY_JOB = Job(deliveries, (
    Amount("deliveries", "deliveries", "deliveries",
           "Events handed to subscribers.",
           "count of deliveries, those that sampling added up included"),
    Metric("hops", "hops", "links",
           "Links that a delivered event crossed, on average.",
           "mean of hops over deliveries"),
    Metric("latency_mean", "latency, mean", "ms",
           "Time from publication to delivery, on average.",
           "mean of latency over deliveries"),
    *(
        Metric(f"latency_p{percent}", f"latency, {'median' if percent == 50 else f'{percent}th percentile'}", "ms",
               f"Time from publication to delivery that {percent} % of the deliveries do not exceed.",
               f"{percent}th percentile of latency over deliveries{WITHIN}")
        for percent in PERCENTS
    ),
))  # fmt: skip

WAITING_JOB = Job(waiting, (
    Metric("waiting_mean", "waiting per hop, mean", "ms",
           "Time an event message spends per hop beyond the link's latency: queue, service, transmission.",
           "mean of waited over publications whose source is a broker"),
    Metric("waiting_p95", "waiting per hop, 95th percentile", "ms",
           "Time per hop beyond the link's latency that 95 % of the event messages do not exceed.",
           f"95th percentile of waited over publications whose source is a broker{WITHIN}"),
))  # fmt: skip

TOP_K_JOB = Job(top_k, (
    Metric("topk_overlap", "overlap with the global top k", "share",
           "Each broker delivers an event to its own k best subscriptions, and these include the k best of the "
           "whole network; this is the part of the deliveries that a network-wide top k would have made.",
           "Σ min(k, deliveries of the event) ÷ deliveries"),
))  # fmt: skip
