"""The truth about deliveries, worked out centrally by brute force and compared with the trace.

The oracle looks at what clients asked, when, and at which messages brokers processed in which order; it
shares no code with the brokers' matching, covering or routing. For every event and broker:

- The event reached the broker: exactly the k best of the local subscriptions in force at that moment must
  have been served, once each. Anything less is *missed*, anything more *spurious* or *duplicate*.
- It did not: every matching local subscription is missed. The miss is *transient* when the subscription was
  still on its way (see `settled`) or left while the event was under way, *dropped* when a full queue
  discarded a copy of the event, the *fault*'s when anything was down or under repair meanwhile, and otherwise
  an error of the routing: `missed`, which must be 0.

A subscription is settled once its own messages and those of every coverer that represents it have been
processed. A coverer may be younger: a later, wider request can overtake a subscription at a broker and hold it
back there while the coverer itself still travels. Coverers have coverers, so this is a closure. From then on
make-before-break keeps a representative in every table, whatever joins or leaves.

What is judged of the way of an event, hop by hop, is in oracle_paths.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from broker.trace.schema import CLIENT, CONVERGED, CRASHED, FAILURES, LINK_DOWN, NOBODY, QUEUE_FULL
from sim.experiment.oracle_paths import (
    NEVER,
    Floats,
    columns,
    is_kind,
    mergers,
    row_of,
    untraced,
    ways,
    wrong_times,
)
from sim.workloads import Workload


@dataclass
class Verdict:
    missed: int = 0
    duplicates: int = 0
    spurious: int = 0
    strays: int | None = 0  # events sent where no table entry matched; None: tables are older than the trace
    wrong_times: int = 0  # recorded times that are not the sum of their links and waits
    missed_transient: int = 0
    missed_dropped: int = 0
    missed_fault: int = 0

    def count_missed(self, count: int, dropped: bool, faulty: bool) -> None:
        if faulty:
            self.missed_fault += count
        elif dropped:
            self.missed_dropped += count
        else:
            self.missed += count


@dataclass(frozen=True)
class _Lives:
    """Per subscription: where it lives, and when it came, settled and left."""

    home: NDArray[np.int64]
    came: NDArray[np.int64]  # step at which its broker took it in
    left: NDArray[np.int64]  # step at which its broker let it go, or NEVER
    asked: Floats  # when its client subscribed
    settled: Floats
    asked_to_leave: Floats


def judge(
    workload: Workload,
    tables: Mapping[str, pa.Table],
    semantics: str,
    k: int | None,
    kind: str = "boxes",
    max_distance: float = 1.0,
    *,
    strategy: str = "covering",
    root: int | None = None,
    instant: bool = False,
) -> Verdict:
    """Compare a finished run with what it must be; `kind` says what the k best are.

    `strategy` and `root` tell where events go without being asked for, `instant` that nothing can wait.
    """
    truth, own = Truth(workload, semantics, kind, max_distance), workload.event_weights
    invented = mergers(workload, tables["decisions"])
    lives = _lives(tables, len(workload.lo), len(invented.lo))
    hops = _by_event(tables["publications"], ("target", "step", "source", "time", "published"), len(workload.events))
    delivered = _by_event(tables["deliveries"], ("broker", "subscription", "rank"), len(workload.events))
    faults = tables["faults"].to_pandas()
    dropped = set(faults["event"][faults["kind"] == QUEUE_FULL])
    lost = set(faults["event"][faults["kind"].isin([LINK_DOWN, CRASHED])])  # copies that were in flight
    broken = _broken_times(faults)
    count, merged = len(workload.lo), Truth(invented, semantics)
    explained = ways(tables, count, count + len(invented.lo), strategy, root)
    strays = 0
    verdict = Verdict(wrong_times=wrong_times(tables, instant))
    for event in range(len(workload.events)):
        if not len(hops[event]):
            continue  # never published in this run
        scores = truth.scores(workload.events[event], own if own is None else own[event])
        published, ended = hops[event][0, 4], hops[event][:, 3].max()
        faulty = event in lost or any(start <= ended and published <= end for start, end in broken)
        _judge_event(verdict, lives, scores, hops[event], delivered[event], k, event in dropped, faulty)
        matching = np.flatnonzero(~np.isnan(scores))
        if len(invented.lo):
            also = np.flatnonzero(~np.isnan(merged.scores(workload.events[event])))
            matching = np.concatenate([matching, count + also])
        strays += explained.strays(matching, hops[event][:, :3])
    verdict.strays = None if untraced(tables) else strays
    return verdict


def _broken_times(faults: pd.DataFrame) -> list[tuple[float, float]]:
    """From each first fault until the network had converged again."""
    broken: list[tuple[float, float]] = []
    since: float | None = None
    for time, kind in zip(faults["time"], faults["kind"], strict=True):
        if kind in FAILURES and since is None:
            since = time
        elif kind == CONVERGED and since is not None:
            broken.append((since, time))
            since = None
    return broken if since is None else [*broken, (since, np.inf)]


def _judge_event(
    verdict: Verdict,
    lives: _Lives,
    scores: Floats,
    hops: Floats,
    delivered: Floats,
    k: int | None,
    dropped: bool,
    faulty: bool,
) -> None:
    step_at = {int(broker): int(step) for broker, step in hops[:, :2]}
    ended, published = hops[:, 3].max(), hops[0, 4]
    got: dict[int, list[int]] = {}
    for broker, subscription, _rank in delivered[np.lexsort((delivered[:, 2], delivered[:, 0]))]:
        got.setdefault(int(broker), []).append(int(subscription))
    verdict.duplicates += len(hops) - len(step_at)  # a broker saw the event twice
    matching = np.flatnonzero(~np.isnan(scores) & (lives.came < NEVER))
    for broker in np.union1d(lives.home[matching], np.array(list(got), dtype=np.int64)):
        local = matching[lives.home[matching] == broker]
        step = step_at.get(int(broker))
        if step is not None:
            in_force = local[(lives.came[local] < step) & (step < lives.left[local])]
            best = in_force[np.lexsort((in_force, -scores[in_force]))][:k].tolist()
            served = got.get(int(broker), [])
            verdict.duplicates += len(served) - len(set(served))
            # A broker that lost its memory serves others until its clients are back.
            verdict.count_missed(len(set(best) - set(served)), False, faulty)
            verdict.spurious += 0 if faulty else len(set(served) - set(best))
            if set(served) == set(best) and served != best and len(served) == len(best):
                verdict.spurious += 1  # the right ones in the wrong order
            continue
        required = (lives.settled[local] <= published) & (lives.asked_to_leave[local] > ended)
        in_doubt = ~required & (lives.asked[local] <= published) & (lives.asked_to_leave[local] > published)
        missing = min(int(required.sum()), len(local) if k is None else k)
        verdict.count_missed(missing, dropped, faulty)
        verdict.missed_transient += int(in_doubt.sum())


class Truth:
    """Who is reached by an event, and with what score, from the columns of the workload alone.

    Only what subscriptions mention is looked at, row by row and attribute by attribute: sums are added in that
    order everywhere, so that scores agree to the last bit.
    """

    def __init__(self, workload: Workload, semantics: str, kind: str = "boxes", max_distance: float = 1.0) -> None:
        self._workload, self._relaxed, self._kind, self._far = workload, semantics == "relaxed", kind, max_distance
        self._row, self._attribute = np.nonzero(workload.mentioned)
        at = self._row, self._attribute
        self._lo, self._hi, self._weight = workload.lo[at], workload.hi[at], workload.weights[at]
        self._size = np.bincount(self._row, minlength=len(workload.lo))
        if kind == "places":
            sums = self._summed(self._weight)
            self._weight = self._weight / np.where(sums > 0, sums, 1.0)[self._row]
        starts = np.concatenate([[0], np.cumsum(self._size)])
        self._odd = {row: slice(starts[row], starts[row + 1]) for row in workload.residues}

    def scores(self, values: Floats, weights: Floats | None = None) -> Floats:
        """The score of every subscription for one event; NaN where the event does not reach it."""
        holds = self._holds(values)
        held = self._summed(holds)
        reached = held > 0 if self._relaxed else held == self._size
        if self._kind == "places":
            return np.where(reached, self._similarity(values, holds), np.nan)
        if self._kind == "predicates":
            product = self._weight if weights is None else self._weight * weights[self._attribute]
            return np.where(reached, self._summed(product), np.nan)
        score = self._summed(np.where(holds, self._weight, 0.0)) if self._relaxed else self._workload.scores
        return np.where(reached, score, np.nan)

    def _holds(self, values: Floats) -> NDArray[np.bool_]:
        """Which of all predicates hold; NaN (missing) fails every comparison."""
        here = values[self._attribute]
        holds: NDArray[np.bool_] = (self._lo <= here) & (here <= self._hi)
        for row, at in self._odd.items():
            residue, named = self._workload.residues[row], self._attribute[at]
            for attribute, excluded in residue.excluded:
                holds[at] &= (named != attribute) | (values[attribute] not in excluded)
            for attribute, allowed in residue.allowed:
                holds[at] &= (named != attribute) | (values[attribute] in allowed)
        return holds

    def _similarity(self, values: Floats, holds: NDArray[np.bool_]) -> Floats:
        """ψ of Hu et al. (SSTD 2015), Eq. 1 to 4."""
        text = self._summed(np.where(holds, self._weight, 0.0))
        near, place = self._workload.near, self._workload.schema.place
        assert place is not None, "places are ranked only where events have one"
        alpha, close = np.zeros(len(text)), np.zeros(len(text))
        if near is not None:
            alpha = np.nan_to_num(near[:, 2])
            north, east = near[:, 0] - values[place[0]], near[:, 1] - values[place[1]]
            close = np.nan_to_num(np.maximum(0.0, 1.0 - np.sqrt(north * north + east * east) / self._far))
        return (1.0 - alpha) * text + alpha * close

    def _summed(self, values: Any) -> Floats:
        """Values of predicates added up by subscription."""
        return np.bincount(self._row, values, len(self._size)).astype(np.float64, copy=False)


def _lives(tables: Mapping[str, pa.Table], count: int, invented: int) -> _Lives:
    operations = tables["operations"].to_pandas()
    control = tables["control"]
    requests = control.filter(pa.array(control.column("source").to_numpy() == CLIENT)).to_pandas()
    lives = _Lives(
        home=np.full(count, -1, dtype=np.int64),
        came=np.full(count, NEVER),
        left=np.full(count, NEVER),
        asked=np.full(count, np.inf),
        settled=_settled(tables, count, invented)[:count],
        asked_to_leave=np.full(count, np.inf),
    )
    joins = requests[requests["kind"] == "subscribe"]
    np.minimum.at(lives.came, joins["subscription"].to_numpy(), joins["step"].to_numpy())  # the first, if repeated
    leaves = requests[requests["kind"] == "unsubscribe"]
    lives.left[leaves["subscription"]] = leaves["step"]
    joining = operations["kind"].isin(["subscribe", "preload"]).to_numpy()
    joined = operations["subscription"][joining]  # each once: what is repeated is called resubscribe
    lives.home[joined] = operations["broker"][joining]
    lives.asked[joined] = operations["time"][joining]
    leaving = (operations["kind"] == "unsubscribe").to_numpy()
    lives.asked_to_leave[operations["subscription"][leaving]] = operations["time"][leaving]
    return lives


def _settled(tables: Mapping[str, pa.Table], count: int, invented: int) -> Floats:
    """When each subscription, and behind them each merger, was settled; inf where it never came."""
    operations, decisions = tables["operations"], tables["decisions"]
    number, subscription, finished = columns(operations, "operation", "subscription", "finished")
    finished = finished.astype(np.float64)
    request = np.full(count + invented, -1)  # the one whose messages first spread it
    joining = is_kind(operations, "kind", "subscribe", "preload")
    request[subscription[joining]] = number[joining]
    covered = decisions.column("witness").to_numpy() != NOBODY
    decisions = decisions.select(["subscription", "witness", "operation", "outcome"]).filter(pa.array(covered))
    behind, witness, cause = columns(decisions, "subscription", "witness", "operation")
    behind, witness = row_of(behind, count), row_of(witness, count)
    made = is_kind(decisions, "outcome", "merged") & (witness >= count)
    request[witness[made]] = cause[made]
    settled = np.where(request >= 0, finished[request], np.inf)
    # Only those decisions count that were made while it first spread: by its request, or woken by an advertisement.
    advertising = is_kind(operations, "kind", "advertise")
    first = (cause == request[behind]) | advertising[cause]
    behind, witness = behind[first], witness[first]
    while (settled[behind] < settled[witness]).any():
        np.maximum.at(settled, behind, settled[witness])
    return np.maximum(settled, finished[advertising].max(initial=-np.inf))


def _by_event(table: pa.Table, columns: tuple[str, ...], events: int) -> list[Floats]:
    """The rows of `table`, split by event, as float arrays of the given columns."""
    numbers = np.column_stack([table.column(name).to_numpy().astype(float) for name in columns])
    event = table.column("event").to_numpy()
    order = np.argsort(event, kind="stable")
    starts = np.searchsorted(event[order], np.arange(1, events))
    return np.split(numbers[order], starts)
