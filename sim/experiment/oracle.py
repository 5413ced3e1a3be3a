"""The truth about deliveries, worked out centrally by brute force and compared with the trace.

The oracle looks at what clients asked and published, and at which messages brokers processed in which order; it shares
no code with the brokers' matching, covering or routing. For every event that a client tried to publish and every broker
oracle_due.py says who was *due*: the k best of the local subscriptions in force when the event arrived there or, if it
never did, when it was published. Then oracle_events.py looks at deliveries. Each one that was due was made, once, with
its rank and score, or it was lost for one of these causes:

- `missed`, an error of the routing, which must be 0, where nothing below explains the loss;
- `missed_transient`: the event did not arrive, and the subscription was still on its way (see below) when it was
  published, or left while the event was under way;
- `missed_dropped`: the event did not arrive, and a full queue discarded a copy of it;
- `missed_fault`: something was down or under repair meanwhile, or no way through the graph was up (oracle_floor.py);
- `missed_refused` and `missed_unpublished`: the publisher's own broker had no room for the event, or was down.

So there is a law of conservation, in every run: due = due and delivered + the sum of all causes. What was delivered
though not due (`undue`) is counted apart; it is `spurious` unless a fault explains it. `unaccounted` says by how much
the sums are off, and how many events the trace speaks of that nobody published. `unavoidable` is the part of all losses
that no routing could have delivered, because flooding would not have either (oracle_floor.py).

A subscription is settled once its own messages and those of every coverer that represents it have been processed. A
coverer may be younger: a later, wider request can overtake a subscription at a broker and hold it back there while the
coverer itself still travels. Coverers have coverers, so this is a closure. From then on make-before-break keeps a
representative in every table, whatever joins or leaves. Before and after mean by step, never by time: at equal times
only the order of processing says what a broker knew.

Where the k best of the whole network are served, oracle_network.py says who must be served. oracle_truth.py says who is
reached, oracle_paths.py judges the path of an event hop by hop. Events are judged in parts of bounded size, on all
cores. Where events times subscriptions exceed JUDGED_PAIRS, only a share of the events is judged, chosen by their
numbers like the samples of a trace (broker/trace/sampling.py); the verdict says which share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from broker.trace.sampling import is_kept
from broker.trace.schema import (
    CLIENT,
    CONVERGED,
    CRASH,
    CRASHED,
    CUT,
    FAILURES,
    HEAL,
    LINK_DOWN,
    PUBLISHER_DOWN,
    QUEUE_FULL,
    REPAIRS,
    RESTART,
    empty,
)
from routing.contract import SendsTo
from sim.experiment import oracle_network
from sim.experiment.oracle_due import Truth, due_of
from sim.experiment.oracle_events import (
    A_COPY_DROPPED,
    A_COPY_LOST,
    CAUSES,
    COUNTED,
    DELIVERED,
    DUE,
    DUPLICATES,
    NO_BROKER,
    NO_ROOM,
    STRAYS,
    UNDUE,
    Fates,
    Served,
    compare,
    fates_of,
)
from sim.experiment.oracle_floor import Floor, down_times
from sim.experiment.oracle_lives import Requests, lives_of
from sim.experiment.oracle_network import Subscriptions
from sim.experiment.oracle_paths import (
    Part,
    Ways,
    columns,
    overlaps,
    strays,
    untraced,
    ways,
    with_mergers,
    wrong_times,
)
from sim.experiment.oracle_truth import CHUNK_ROWS, Floats, Ints, Terms, chunks_of, terms_of
from sim.experiment.oracle_versions import Versions
from sim.workloads import Workload

JUDGED_PAIRS = 2e9  # events × subscriptions judged by default: takes seconds, and deliveries fit in memory
PART_ROWS = 1 << 20  # publications and deliveries that are judged together: about 100 MB
CELLS = 1 << 20  # and pairs of an event and a row of a chunk
MOST_EVENTS = 1 << 12
HOPS = ("event", "source", "target", "step", "time", "published", "hop", "sent", "waited", "service")
RANKED = ("event", "step", "source", "target", "time", "sent", "waited", "service")
DELIVERIES = ("event", "broker", "subscription", "rank", "score", "hops", "latency", "time")


@dataclass
class Verdict:
    missed: int = 0
    duplicates: int = 0
    spurious: int = 0
    strays: int | None = 0  # events sent where no table entry matched; None: tables are older than the trace
    wrong_times: int = 0  # recorded times that are not the sum of their links and waits, or services that overlap
    unaccounted: int = 0  # by how much what was due is not what was delivered or lost for a cause
    missed_transient: int = 0
    missed_dropped: int = 0
    missed_fault: int = 0
    missed_refused: int = 0
    missed_unpublished: int = 0
    due: int = 0
    due_delivered: int = 0
    undue: int = 0
    unavoidable: int = 0  # of those lost for whatever cause: flooding over all links would have lost them too
    due_during: int = 0  # of events published while something was down
    due_delivered_during: int = 0
    unavoidable_during: int = 0
    due_after: int = 0  # and when something had been down, and all was back
    due_delivered_after: int = 0
    judged_share: float = 1.0  # of the events; all counts refer to these


def judged_share(asked: float | None, subscriptions: int, events: int) -> float:
    """The share of the events that is judged, chosen by their numbers."""
    if asked is not None:
        return asked
    return min(1.0, JUDGED_PAIRS / max(subscriptions * events, 1))


@dataclass(frozen=True)
class Rules:
    """The settings by which a run is judged."""

    semantics: str
    k: int | None
    kind: str  # what is ranked
    max_distance: float
    metric: str
    network: bool  # the k best of the whole network are served
    sends_to: SendsTo  # of the strategy; with `root`: where events are sent without a matching entry
    root: int | None
    instant: bool  # nothing can wait


def judge(workload: Workload, tables: Mapping[str, pa.Table], rules: Rules, share: float = 1.0) -> Verdict:
    """Compare a finished run with what it must be; `share`: of the events judged; others may lack deliveries."""
    numbers = np.flatnonzero(is_kept(np.arange(len(workload.events)), share))
    counts = _Judging(workload, tables, rules, numbers).counts()
    verdict = Verdict(**dict(zip((*COUNTED, "wrong_times", "unaccounted"), counts.tolist(), strict=True)))
    judged = len(numbers) / max(len(workload.events), 1) if share < 1.0 else 1.0
    return replace(verdict, strays=None if untraced(tables) else verdict.strays, judged_share=judged)


class _Judging:
    """What all events have in common, and the loop over parts of them."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table], rules: Rules, numbers: Ints) -> None:
        self._tables, self._instant, self._numbers = tables, rules.instant, numbers
        count, events = len(workload.lo), len(workload.events)
        everything = with_mergers(workload, tables["decisions"])  # with the mergers, which only tables hold
        by_rank = rules.kind == "boxes" and rules.semantics == "exact"
        requests = Requests.of(tables, Versions.of(workload, tables["operations"]))
        lives, order = lives_of(tables, requests, workload.scores, len(everything.lo), by_rank)
        rows = np.concatenate([order, np.arange(count, len(everything.lo))])
        terms: Terms = terms_of(everything, rules.semantics, rules.kind, rules.max_distance, rules.metric, rows)
        self._ways: Ways = ways(tables, count, np.argsort(rows), rules.sends_to, rules.root)
        k = max(count, 1) if rules.k is None else rules.k
        self._truth = Truth(terms, chunks_of(terms, int(lives.first[-1])), lives, lives.home, by_rank, k)
        self._values = np.array(workload.events, dtype=np.float64)
        weights = workload.event_weights
        self._weights = np.ones((1, self._values.shape[1])) if weights is None else np.array(weights)
        faults = tables["faults"].to_pandas()
        self._floor = Floor(tables) if faults["kind"].isin(FAILURES).any() else None
        self._everywhere = None
        if rules.network and rules.k is not None:
            self._everywhere = Subscriptions(self._truth, requests.forgotten(count)[order])
        self._broken = _broken_times(faults)
        self._down = _down(tables["faults"])
        self._happened = _happened(faults, events, self._broken)
        self._step, self._publisher, self._since = np.full(events, -1), np.full(events, -1), np.zeros(events)
        event, step, publisher, since = columns(tables["published"], "event", "step", "broker", "time")
        self._step[event], self._publisher[event], self._since[event] = step, publisher, since
        told = np.concatenate([columns(tables[name], "event")[0] for name in ("publications", "deliveries", "faults")])
        told = told[(told >= 0) & (told < events)]  # others are no events at all
        self._unpublished = len(event) - len(np.unique(event)) + len(np.unique(told[self._step[told] < 0]))

    def counts(self) -> Ints:
        """Counts as in COUNTED, then wrong times, then what does not add up."""
        hops = _Rows(self._tables["publications"], HOPS, self._numbers, len(self._values))
        served = _Rows(self._tables["deliveries"], DELIVERIES, self._numbers, len(self._values))
        said = _Rows(self._tables.get("ranked", empty("ranked")), RANKED, self._numbers, len(self._values))
        together = min(MOST_EVENTS, CELLS // max(1, min(CHUNK_ROWS, len(self._truth.home))))
        parts = max(-(-(len(hops) + len(served)) // PART_ROWS), -(-len(self._numbers) // together), 1)
        edges = np.unique(np.linspace(0, len(self._numbers), parts + 1).astype(np.int64))

        def judged(begin: int, end: int) -> Ints:
            parts = hops.part(begin, end), said.part(begin, end), served.part(begin, end)
            return self._part(self._numbers[begin:end], *parts)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            counts = sum(pool.map(judged, edges[:-1], edges[1:]), np.zeros(len(COUNTED) + 2, np.int64))
        *_, times, twice = counts
        off = abs(counts[DUE] - counts[DELIVERED] - counts[list(CAUSES)].sum())
        off += abs(len(served) - counts[DELIVERED] - counts[UNDUE] - counts[DUPLICATES])
        counts[DUPLICATES] += twice
        times += hops.foreign + served.foreign + overlaps(self._tables)
        return np.array([*counts[:-2], times, off + self._unpublished])

    def _part(self, numbers: Ints, hops: Part, said: Part, served: Part) -> Ints:
        """Judge some events; counts as in COUNTED, wrong times, and how often a broker saw an event again."""
        links, brokers, values = self._tables["links"], self._truth.lives.brokers, self._values[numbers]
        s = served.columns
        got = Served(served.event, s["broker"], s["subscription"], s["rank"], s["score"])
        if self._everywhere is not None:
            fates = self._fates(numbers, said, said.columns["time"] + said.columns["service"])
            weights = self._its_weights(numbers)
            counts = oracle_network.judge_events(self._everywhere, values, weights, fates, got, self._floor)
            sound = ~fates.faulty & (fates.happened & A_COPY_DROPPED == 0)
            times = oracle_network.wrong_times(
                said.columns, np.flatnonzero(sound[said.event]), s, links, brokers, self._instant
            )
        else:
            fates = self._fates(numbers, hops, hops.columns["time"])
            at = np.full((len(numbers), brokers), -1)
            np.maximum.at(at, (hops.event, hops.columns["target"]), hops.columns["step"])
            reached = at >= 0
            at = np.where(reached, at, fates.published[:, None])
            due = due_of(self._truth, values, self._its_weights(numbers), at)
            counts = compare(due, got, fates, self._truth.lives, reached, self._floor)
            times = wrong_times(hops.columns, s, links, brokers, self._instant)
        counts[STRAYS] += strays(self._ways, self._truth.terms, values, hops)
        visits = hops.event * brokers + hops.columns["target"]
        return np.append(counts, [times, len(visits) - len(np.unique(visits))])

    def _its_weights(self, numbers: Ints) -> Floats:
        return self._weights if len(self._weights) == 1 else self._weights[numbers]

    def _fates(self, numbers: Ints, messages: Part, until: Floats) -> Fates:
        about = messages.event, messages.columns["step"], until
        published = self._step[numbers], self._publisher[numbers], self._since[numbers]
        return fates_of(*published, about, self._happened[numbers], self._broken, self._down)


class _Rows:
    """A table of the trace, sorted by event, to be cut into parts: whole numbers as int64, fractions as float64."""

    def __init__(self, table: pa.Table, names: tuple[str, ...], numbers: Ints, events: int) -> None:
        event = table.column("event").to_numpy()
        self.foreign = int(((event < 0) | (event >= events)).sum())  # rows about no event of this workload
        place = np.full(events + 1, -1)
        place[numbers] = np.arange(len(numbers))
        event = place[np.clip(event, -1, events)]  # −1 and `events` are no events
        judged = np.flatnonzero(event >= 0)
        self._order = judged[np.argsort(event[judged], kind="stable")]
        self._first = np.searchsorted(event[self._order], np.arange(len(numbers) + 1))
        self._columns = dict(zip(names, columns(table, *names), strict=True))

    def __len__(self) -> int:
        return len(self._order)

    def part(self, begin: int, end: int) -> Part:
        first = self._first[begin : end + 1]
        rows = self._order[first[0] : first[-1]]
        kinds = {"f": np.float64}
        columns = {name: c[rows].astype(kinds.get(c.dtype.kind, np.int64)) for name, c in self._columns.items()}
        return Part(first - first[0], columns)


def _happened(faults: pd.DataFrame, events: int, broken: Floats) -> Ints:
    """What happened to copies of each event, as bits; what is sent where everybody knows that nobody is, is no loss."""
    excused = np.zeros(len(faults), bool)
    for begin, end in broken:
        excused |= faults["time"].between(begin, end).to_numpy()
    happened = np.zeros(events, np.int64)
    by_client = faults["neighbour"] == CLIENT
    for bit, which in (
        (A_COPY_DROPPED, faults["kind"] == QUEUE_FULL),
        (A_COPY_LOST, faults["kind"].isin([LINK_DOWN, CRASHED]) & excused),
        (NO_ROOM, (faults["kind"] == QUEUE_FULL) & by_client),
        (NO_BROKER, faults["kind"] == PUBLISHER_DOWN),
    ):
        happened[np.unique(faults["event"][which]).astype(np.int64)] |= bit
    return happened


def _down(faults: pa.Table) -> Floats:
    """When brokers and links were down, (n, 2)."""
    kinds = (CRASH, RESTART), (CUT, HEAL)
    found = [times for kind in kinds for its in down_times(faults, *kind).values() for times in its]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _broken_times(faults: pd.DataFrame) -> Floats:
    """From each first change until the network had converged again, (n, 2).

    With fail-over it converges though something is still down; when that comes back, another repair begins.
    """
    broken: list[tuple[float, float]] = []
    since: float | None = None
    for time, kind in zip(faults["time"], faults["kind"], strict=True):
        if kind in (*FAILURES, *REPAIRS) and since is None:
            since = time
        elif kind == CONVERGED and since is not None:
            broken.append((since, time))
            since = None
    found = broken if since is None else [*broken, (since, np.inf)]
    return np.array(found, dtype=np.float64).reshape(-1, 2)
