"""Subscriptions whose rank changed, as the oracle sees them: a row per rank, from one request to the next.

A trace names a subscription by its first row. Each `rerank` request begins the next of its rows. Until the messages of
the request have been processed, brokers may rank it by either row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.experiment.oracle_paths import columns, is_kind
from sim.experiment.oracle_truth import Ints
from sim.workloads import Workload


@dataclass(frozen=True)
class Versions:
    """Which row of the workload a subscription has at which time."""

    number: Ints  # (rows,) what the trace calls it
    row: Ints  # (changes,) the row that a request begins
    before: Ints  # (changes,) the row that it ends
    request: Ints  # (changes,) the operation
    asked: NDArray[Any]  # (changes,) times, or steps if that is what is compared
    finished: NDArray[Any]  # (changes,)

    @staticmethod
    def of(workload: Workload, operations: pa.Table) -> Versions:
        count = len(workload.lo)
        number = np.arange(count)
        changing = is_kind(operations, "kind", "rerank")
        request, who, asked, finished = (
            column[changing] for column in columns(operations, "operation", "subscription", "time", "finished")
        )
        rows = np.empty((len(request), 2), np.int64)
        if len(request):
            assert workload.reranks is not None
            number = workload.first_rows
            later = {int(before): row for row, before in enumerate(workload.reranks.tolist()) if before >= 0}
            now: dict[int, int] = {}
            for place, subscription in enumerate(who.tolist()):
                before = now.get(subscription, subscription)
                now[subscription] = later[before]
                rows[place] = now[subscription], before
        return Versions(number, rows[:, 0], rows[:, 1], request, asked, finished)

    def over_time(self, since: NDArray[Any], until: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """From when and until when each row counts, given when its subscription comes and leaves."""
        since, until = since[self.number], until[self.number]
        since[self.row] = self.asked
        until[self.before] = self.asked
        return since, until

    def ended(self, gone: NDArray[Any]) -> NDArray[Any]:
        """When all brokers knew that a row had ended, given when they knew that its subscription had."""
        gone = gone[self.number]
        gone[self.before] = self.finished
        return gone

    def caused(self, subscription: Ints, cause: Ints) -> Ints:
        """The row that a decision about a subscription is about: the one that `cause` began, or the first."""
        if not len(self.row):
            return subscription
        begun = np.full(int(max(cause.max(initial=0), self.request.max())) + 1, -1)
        begun[self.request] = self.row
        row = begun[cause]
        mine = (row >= 0) & (self.number[row] == subscription)
        found: Ints = np.where(mine, row, subscription)
        return found

    def at(self, subscription: Ints, time: NDArray[np.float64]) -> Ints:
        """The row that the last request up to a time gave a subscription."""
        if not len(self.row):
            return subscription
        times = np.unique(self.asked)
        every = len(times) + 1
        begins = self.number[self.row] * every + 1 + np.searchsorted(times, self.asked)
        order = np.argsort(begins)
        wanted = subscription * every + np.searchsorted(times, time, side="right")
        place = np.searchsorted(begins[order], wanted, side="right") - 1
        row = self.row[order][place]
        mine = (place >= 0) & (subscription >= 0) & (self.number[row] == subscription)
        found: Ints = np.where(mine, row, subscription)
        return found
