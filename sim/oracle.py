"""The truth about deliveries, worked out centrally by brute force and compared with the trace.

The oracle looks at what clients asked, when, and at which messages brokers processed in which order; it
shares no code with the brokers' matching, covering or routing. For every event and broker:

- The event reached the broker: exactly the k best of the local subscriptions in force at that moment must
  have been served, once each. Anything less is *missed*, anything more *spurious* or *duplicate*.
- It did not: every matching local subscription is missed. The miss is *transient* when the subscription was
  still on its way (see `settled`) or left while the event was under way, *dropped* when a full queue
  discarded a copy of the event, the *fault*'s when anything was down or under repair meanwhile, and otherwise
  an error of the routing: `missed`, which must be 0.

A subscription is settled once its own messages and those of every earlier request have been processed: it
may be represented by a cover that was still travelling. From then on make-before-break keeps a
representative in every table, whatever joins or leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from broker.trace import CLIENT
from sim.workloads import Workload

Floats = NDArray[np.float64]
NEVER = np.iinfo(np.int64).max


@dataclass
class Verdict:
    missed: int = 0
    duplicates: int = 0
    spurious: int = 0
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


def judge(workload: Workload, tables: Mapping[str, pa.Table], semantics: str, k: int | None) -> Verdict:
    """Compare the deliveries of a finished run with what they must be."""
    lives = _lives(tables, len(workload.lo))
    hops = _by_event(tables["publications"], ("target", "step", "time", "published"), len(workload.events))
    delivered = _by_event(tables["deliveries"], ("broker", "subscription", "rank"), len(workload.events))
    faults = tables["faults"].to_pandas()
    dropped = set(faults["event"][faults["kind"] == "queue-full"])
    lost = set(faults["event"][faults["kind"].isin(["link-down", "crashed"])])  # copies that were in flight
    broken = _broken_times(faults)
    verdict = Verdict()
    for event, values in enumerate(workload.events):
        if not len(hops[event]):
            continue  # never published in this run
        scores = brute_force_scores(workload, values, semantics)
        published, ended = hops[event][0, 3], hops[event][:, 2].max()
        faulty = event in lost or any(start <= ended and published <= end for start, end in broken)
        _judge_event(verdict, lives, scores, hops[event], delivered[event], k, event in dropped, faulty)
    return verdict


def _broken_times(faults: pd.DataFrame) -> list[tuple[float, float]]:
    """From each first fault until the network had converged again."""
    broken: list[tuple[float, float]] = []
    since: float | None = None
    for time, kind in zip(faults["time"], faults["kind"], strict=True):
        if kind in ("crash", "cut") and since is None:
            since = time
        elif kind == "converged" and since is not None:
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
    step_at = {int(broker): int(step) for broker, step, _, _ in hops}
    ended, published = hops[:, 2].max(), hops[0, 3]
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


def brute_force_scores(workload: Workload, event: Floats, semantics: str) -> Floats:
    """The score of every subscription for one event; NaN where it does not match."""
    with np.errstate(invalid="ignore"):
        holds = (workload.lo <= event) & (event <= workload.hi)
    for row, residue in workload.residues.items():
        for attribute, values in residue.excluded:
            holds[row, attribute] &= event[attribute] not in values and not np.isnan(event[attribute])
        for attribute, values in residue.allowed:
            holds[row, attribute] &= event[attribute] in values
    if semantics == "exact":
        return np.where((holds | ~workload.mentioned).all(axis=1), workload.scores, np.nan)
    holds &= workload.mentioned
    # Adding attribute by attribute fixes the order of the sum, and with it the last bit.
    total = np.zeros(len(holds))
    for attribute in range(holds.shape[1]):
        total += np.where(holds[:, attribute], workload.weights[:, attribute], 0.0)
    return np.where(holds.any(axis=1), total, np.nan)


def _lives(tables: Mapping[str, pa.Table], count: int) -> _Lives:
    operations = tables["operations"].to_pandas()
    control = tables["control"].to_pandas()
    requests = control[control["source"] == CLIENT]
    lives = _Lives(
        home=np.full(count, -1, dtype=np.int64),
        came=np.full(count, NEVER),
        left=np.full(count, NEVER),
        asked=np.full(count, np.inf),
        settled=np.full(count, np.inf),
        asked_to_leave=np.full(count, np.inf),
    )
    joins = requests[requests["kind"] == "subscribe"]
    np.minimum.at(lives.came, joins["subscription"].to_numpy(), joins["step"].to_numpy())  # the first, if repeated
    leaves = requests[requests["kind"] == "unsubscribe"]
    lives.left[leaves["subscription"]] = leaves["step"]
    joining = (operations["kind"] == "subscribe").to_numpy()
    joined = operations["subscription"][joining]  # each once: what is repeated is called resubscribe
    lives.home[joined] = operations["broker"][joining]
    lives.asked[joined] = operations["time"][joining]
    lives.settled[joined] = np.maximum.accumulate(operations["finished"].to_numpy(dtype=float))[joining]
    leaving = (operations["kind"] == "unsubscribe").to_numpy()
    lives.asked_to_leave[operations["subscription"][leaving]] = operations["time"][leaving]
    return lives


def _by_event(table: pa.Table, columns: tuple[str, ...], events: int) -> list[Floats]:
    """The rows of `table`, split by event, as float arrays of the given columns."""
    numbers = np.column_stack([table.column(name).to_numpy().astype(float) for name in columns])
    event = table.column("event").to_numpy()
    order = np.argsort(event, kind="stable")
    starts = np.searchsorted(event[order], np.arange(1, events))
    return np.split(numbers[order], starts)
