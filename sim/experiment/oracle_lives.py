"""When subscriptions came, settled and left, as steps: the places of messages in the one order of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from broker.trace.schema import CLIENT, NOBODY
from sim.experiment.oracle_due import NEVER, Lives
from sim.experiment.oracle_paths import columns, is_kind, row_of
from sim.experiment.oracle_truth import Floats, Ints
from sim.experiment.oracle_versions import Versions


@dataclass(frozen=True)
class Requests:
    """The requests of clients: which steps belong to each."""

    last: Ints  # (requests,) the last message that it caused, processed or lost; NEVER where there is none
    leaves: Ints  # the numbers of those by which subscriptions leave
    leaving: Ints  # and these subscriptions
    versions: Versions  # by time
    by_step: Versions

    @staticmethod
    def of(tables: Mapping[str, pa.Table], versions: Versions) -> Requests:
        operations, control = tables["operations"], tables["control"]
        operation, step, source = columns(control, "operation", "step", "source")
        heard, last = np.full(operations.num_rows, NEVER), np.full(operations.num_rows, -1)
        clients = source == CLIENT
        np.minimum.at(heard, operation[clients], step[clients])
        np.maximum.at(last, operation, step)
        last[last < 0] = NEVER
        number, subscription, finished, messages = columns(
            operations, "operation", "subscription", "finished", "messages"
        )
        processed = np.bincount(operation[~clients], minlength=len(last))
        lost = (processed < messages) & ~is_kind(operations, "kind", "preload")  # whose messages are not traced
        last[lost] = np.maximum(last[lost], _steps_until(tables, finished[lost]))
        leaves = is_kind(operations, "kind", "unsubscribe")
        by_step = replace(versions, asked=heard[versions.request], finished=last[versions.request])
        return Requests(last, number[leaves], subscription[leaves], versions, by_step)

    def forgotten(self, count: int) -> Ints:
        """When the last broker heard that each row had ended; NEVER where it stayed."""
        gone = np.full(count, NEVER)
        gone[self.leaving] = self.last[self.leaves]
        return self.by_step.ended(gone)


def _steps_until(tables: Mapping[str, pa.Table], times: Floats) -> Ints:
    """The last step up to each time: a message that is lost has no step of its own."""
    names = ("control", "publications", "ranked")
    found = [columns(tables[name], "step", "time") for name in names if name in tables]
    step, time = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(step, kind="stable")
    until: Ints = np.append(step[order], -1)[np.searchsorted(time[order], times, side="right") - 1]
    return until


def lives_of(
    tables: Mapping[str, pa.Table], requests: Requests, scores: Floats, rows: int, by_rank: bool
) -> tuple[Lives, Ints]:
    """Lives sorted by home and, if `by_rank`, by score; and the workload row of each. `rows`: count with mergers."""
    operations, brokers, count = tables["operations"], tables["brokers"].num_rows, len(scores)
    control = tables["control"].filter(pa.array(tables["control"].column("source").to_numpy() == CLIENT))
    subscription, step = columns(control, "subscription", "step")
    joins, leaves = (is_kind(control, "kind", kind) for kind in ("subscribe", "unsubscribe"))
    home, came, left = np.full(count, brokers), np.full(count, NEVER), np.full(count, NEVER)
    np.minimum.at(came, subscription[joins], step[joins])  # the first, if repeated
    left[subscription[leaves]] = step[leaves]
    joining = is_kind(operations, "kind", "subscribe", "preload")  # each once: repetitions are called resubscribe
    joined, at = (column[joining] for column in columns(operations, "subscription", "broker"))
    home[joined] = at
    home[came == NEVER] = brokers
    versions = requests.by_step
    home = home[versions.number]
    came, left = versions.over_time(came, left)
    settled = _settled(tables, count, rows, requests)[:count]
    order = np.argsort(-scores, kind="stable") if by_rank else np.arange(count)
    order = order[np.argsort(home[order], kind="stable")]
    first = np.searchsorted(home[order], np.arange(brokers + 1))
    return Lives(first, versions.number[order], came[order], left[order], settled[order]), order


def _settled(tables: Mapping[str, pa.Table], count: int, rows: int, requests: Requests) -> Ints:
    """When each of `count` subscriptions, then each merger, had settled; NEVER where it did not come."""
    operations, decisions, versions = tables["operations"], tables["decisions"], requests.versions
    number, subscription = columns(operations, "operation", "subscription")
    request = np.full(rows, -1)  # the operation whose messages first spread each row
    joining = is_kind(operations, "kind", "subscribe", "preload")
    request[subscription[joining]] = number[joining]
    request[versions.row] = versions.request
    covered = decisions.column("witness").to_numpy() != NOBODY
    decisions = decisions.select(["time", "subscription", "witness", "operation", "outcome"]).filter(pa.array(covered))
    time, behind, witness, cause = columns(decisions, "time", "subscription", "witness", "operation")
    behind, witness = versions.caused(behind, cause), versions.at(witness, time)
    behind, witness = row_of(behind, count), row_of(witness, count)
    made = is_kind(decisions, "outcome", "merged") & (witness >= count)
    request[witness[made]] = cause[made]
    settled = np.where(request >= 0, requests.last[request], NEVER)
    # Only decisions made while a row first spread count: those of its request, or triggered by an advertisement.
    advertising = is_kind(operations, "kind", "advertise")
    first = (cause == request[behind]) | advertising[cause]
    behind = np.concatenate([behind[first], versions.row])  # a new rank settles after the one before it
    witness = np.concatenate([witness[first], versions.before])
    while (settled[behind] < settled[witness]).any():
        np.maximum.at(settled, behind, settled[witness])
    return np.maximum(settled, requests.last[advertising].max(initial=-1))
