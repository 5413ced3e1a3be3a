"""The catalogue of metrics: every number of a report, with its definition and formula.

To add one, compute it from the counts in a job of a module here, and describe it with a `Metric`: the aggregation, the
summary and the report then include it. If the counts are not enough for it, add a key or an amount to a `Count`.

- `definition`, `counts`: what a count and a metric are; counts that several share
- `table_size`, `traffic`, `covering`, `missed_covers`: what brokers keep, send, search, and fail to find
- `delivery`, `ranked`, `truth`: what arrived and how fast, the k best of the network, what the oracle found
- `load`, `service`, `over_time`, `convergence`: who has how much to do, when, and how long until all is quiet
"""

from __future__ import annotations

from analysis.spark.metrics import (
    convergence,
    counts,
    covering,
    delivery,
    load,
    missed_covers,
    over_time,
    ranked,
    service,
    table_size,
    traffic,
    truth,
)
from analysis.spark.metrics.definition import Count, Job, Metric
from coverlay import unknown_name

COUNTS: dict[str, Count] = {
    count.name: count
    for count in (
        counts.CONTROL,
        counts.PUBLICATIONS,
        counts.REPLIES,
        counts.BROKERS,
        *convergence.COUNTS,
        covering.DECISIONS,
        *delivery.COUNTS,
        missed_covers.LINKS,
        over_time.TIMES,
        *ranked.COUNTS,
        table_size.SIZES,
    )
}

JOBS: tuple[Job, ...] = (
    table_size.JOB,
    traffic.CONTROL_JOB,
    covering.JOB,
    traffic.EVENT_JOB,
    delivery.DELIVERY_JOB,
    delivery.TOP_K_JOB,
    delivery.WAITING_JOB,
    load.JOB,
    ranked.JOB,
    service.JOB,
    convergence.JOB,
    convergence.REPAIR_JOB,
    truth.TRUTH_JOB,
    truth.DROPS_JOB,
)

CATALOGUE: dict[str, Metric] = {metric.name: metric for job in JOBS for metric in job.metrics}


def metric(name: str) -> Metric:
    """The metric of that name, or an error that lists all names."""
    if name not in CATALOGUE:
        raise unknown_name("metric", name, CATALOGUE)
    return CATALOGUE[name]


__all__ = ["CATALOGUE", "COUNTS", "JOBS", "Count", "Job", "Metric", "metric"]
