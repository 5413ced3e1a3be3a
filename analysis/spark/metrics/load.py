"""Load: how evenly the messages are spread over the brokers.

The Gini coefficient of n loads x₁ ≤ … ≤ xₙ is 2 Σ i·xᵢ ÷ (n Σ xᵢ) − (n+1)/n: 0 if all are equal, near
1 if one broker does everything. Brokers that processed nothing count as 0.
"""

from __future__ import annotations

import numpy as np

from analysis.spark.metrics.counts import BROKERS, CONTROL, PUBLICATIONS, REPLIES, ratio, totals
from analysis.spark.metrics.definition import Columns, Counted, Job, Metric, Values


def per_broker(run: Counted) -> Columns:
    """broker, processed: the messages that each broker processed, those of its clients included."""
    brokers = np.sort(run[BROKERS]["broker"])
    messages = ((rows["target"], rows["count"]) for rows in (run[CONTROL], run[PUBLICATIONS], run[REPLIES]))
    return {"broker": brokers, "processed": totals(brokers, *messages)}


def load(run: Counted) -> Values:
    processed = np.sort(per_broker(run)["processed"])
    n, total = len(processed), int(processed.sum())
    weighted = int((np.arange(1, n + 1) * processed).sum())
    return {
        "load_max_mean": ratio(processed.max(initial=0) * n, total),
        "load_gini": 2 * weighted / (n * total) - (n + 1) / n if total else None,
    }


JOB = Job(load, (
    Metric("load_max_mean", "load imbalance, busiest to mean", "ratio",
           "Messages processed by the busiest broker against the mean of all brokers; 1 is even.",
           "max ÷ mean over brokers of messages processed"),
    Metric("load_gini", "load imbalance, Gini", "0..1",
           "Gini coefficient of messages processed per broker: 0 is even, 1 is one broker doing it all.",
           "2 Σ i·xᵢ ÷ (n Σ xᵢ) − (n+1)/n, x ascending"),
))  # fmt: skip
