"""The catalogue of metrics: every number of a report, with its definition, formula and trace columns.

To add one, write a function from trace DataFrames to (run, value) in a module here, describe it with a
`Metric`, and add its `Job` to JOBS: the aggregation, the summary and the report take it from there.
"""

from __future__ import annotations

from analysis.spark.metrics import convergence, covering, delivery, load, ranked, service, table_size, traffic, truth
from analysis.spark.metrics.definition import Job, Metric
from coverlay import unknown_name

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
    """The metric of that name, or an error that lists the names there are."""
    if name not in CATALOGUE:
        raise unknown_name("metric", name, CATALOGUE)
    return CATALOGUE[name]


__all__ = ["CATALOGUE", "JOBS", "Job", "Metric", "metric"]
