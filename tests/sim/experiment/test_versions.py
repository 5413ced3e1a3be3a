"""Subscriptions whose rank changes, as the oracle sees them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from broker.language.schema import Schema
from sim.experiment.oracle_due import NEVER, Lives, Truth
from sim.experiment.oracle_events import MISSED, SPURIOUS, Served
from sim.experiment.oracle_network import Subscriptions, Under, judge_event
from sim.experiment.oracle_truth import chunks_of, terms_of
from sim.experiment.oracle_versions import Versions
from sim.workloads import Workload

# Rows 0, 2, 3 are one subscription; 1 is another.
REQUESTS = [
    ("subscribe", 0, 0.0, 1.0),
    ("subscribe", 1, 5.0, 6.0),
    ("rerank", 0, 10.0, 14.0),
    ("rerank", 0, 20.0, 23.0),
]


def workload(scores=(1.0, 2.0, 3.0, 0.5)):
    whole = np.zeros((4, 1)), np.ones((4, 1))
    came, left = np.array([0.0, 5.0, 10.0, 20.0]), np.array([10.0, np.inf, 20.0, np.inf])
    made = Workload(
        Schema.uniform(1),
        *whole,
        np.ones((4, 1), dtype=bool),
        np.array(scores),
        np.ones((4, 1)),
        np.array([[0.5]]),
        came=came,
        left=left,
        reranks=np.array([-1, -1, 0, 2]),
    )
    made.check()
    return made


def versions():
    columns = zip(*REQUESTS, strict=True)
    kind, subscription, time, finished = map(list, columns)
    operations = {"operation": range(4), "kind": kind, "subscription": subscription, "time": time, "finished": finished}
    return Versions.of(workload(), pa.table({name: list(values) for name, values in operations.items()}))


def test_which_row_a_subscription_is_when():
    found = versions()
    assert found.number.tolist() == [0, 1, 0, 0]
    assert found.at(np.array([0, 0, 0, 1, 0, -2]), np.array([9.0, 10.0, 19.9, 30.0, 30.0, 30.0])).tolist() == [
        *[0, 2, 2, 1, 3, -2]
    ]
    since, until = found.over_time(np.array([0.0, 5.0, 99.0, 99.0]), np.array([50.0, np.inf, 99.0, 99.0]))
    assert since.tolist() == [0.0, 5.0, 10.0, 20.0]
    assert until.tolist() == [10.0, np.inf, 20.0, 50.0]
    assert found.ended(np.array([60.0, np.inf, np.inf, np.inf])).tolist() == [14.0, np.inf, 23.0, 60.0]
    assert found.caused(np.array([0, 0, 1, 0]), np.array([0, 2, 2, 3])).tolist() == [0, 2, 1, 3]


def test_a_subscription_with_two_ranks_counts_once():
    """With k = 2 and 0 at scores 3 and 1 while its rank changes, 1 between them must still be served."""
    data = workload(scores=(3.0, 2.0, 2.5, 0.5))
    lives = Lives(
        np.array([0, 4]),
        np.array([0, 1, 0, 0]),
        np.array([0, 5, 10, 20]),
        np.array([10, NEVER, 20, NEVER]),
        np.array([1, 6, 14, 23]),
    )
    terms = terms_of(data, "exact")
    truth = Truth(terms, chunks_of(terms, 4), lives, lives.home, by_rank=True, k=2)
    known = Subscriptions(truth, np.array([14, NEVER, 23, NEVER]))

    def counted(*served):
        ranks = np.arange(1, 1 + len(served))
        got = Served(np.zeros(len(served)), np.zeros(len(served)), np.array(served), ranks, np.ones(len(served)))
        counts = judge_event(known, np.arange(4), data.scores, Under(12, 13, MISSED), got)
        return counts[MISSED], counts[SPURIOUS]

    assert counted(0, 1) == (0, 0)
    assert counted(1) == (0, 0), "who ranks differently while an event is under way may be missed"
    assert counted(0) == (1, 0)
