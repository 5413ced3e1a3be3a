"""The truth about deliveries, worked out centrally by brute force and compared with the trace.

The oracle looks at what clients asked, when, and at which messages brokers processed in which order; it
shares no code with the brokers' matching, covering or routing. For every event and broker:

- The event reached the broker: exactly the k best of the local subscriptions in force at that moment must
  have been served, once each, with their ranks 1, 2, 3, … and scores. Anything less is *missed*, anything more or
  different is *spurious* or *duplicate*.
- The event did not reach it: every matching local subscription is missed. The miss is *transient* when the subscription
  was still on its way (see `settled`) or left while the event was under way, *dropped* when a full queue discarded a
  copy of the event, due to a *fault* when anything was down or under repair meanwhile, and otherwise an error of the
  routing: `missed`, which must be 0.

A subscription is settled once its own messages and those of every coverer that represents it have been
processed. A coverer may be younger: a later, wider request can overtake a subscription at a broker and hold it
back there while the coverer itself still travels. Coverers have coverers, so this is a closure. From then on
make-before-break keeps a representative in every table, whatever joins or leaves.

Where the k best of the whole network are served, oracle_network.py says who must be served.

oracle_truth.py says who is reached, oracle_events.py has the loop over events and brokers, oracle_paths.py judges the
path of an event hop by hop. Events are judged in parts of bounded size, on all cores. Where events times subscriptions
exceed JUDGED_PAIRS, only a share of the events is judged, chosen by their numbers like the samples of a
trace (broker/trace/sampling.py); the verdict says which share.
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
from broker.trace.schema import CLIENT, CONVERGED, CRASHED, FAILURES, LINK_DOWN, NOBODY, QUEUE_FULL, empty
from routing.contract import SendsTo
from sim.experiment import oracle_network
from sim.experiment.oracle_events import (
    A_COPY_DROPPED,
    A_COPY_LOST,
    COUNTED,
    Hops,
    Lives,
    Served,
    judge_events,
    order_by_event,
)
from sim.experiment.oracle_network import Subscriptions
from sim.experiment.oracle_paths import (
    NEVER,
    Part,
    Ways,
    columns,
    is_kind,
    overlaps,
    row_of,
    untraced,
    ways,
    with_mergers,
    wrong_times,
)
from sim.experiment.oracle_truth import Floats, Ints, Terms, terms_of
from sim.experiment.oracle_versions import Versions
from sim.workloads import Workload

JUDGED_PAIRS = 2e9  # events × subscriptions judged by default: takes seconds, and deliveries fit in memory
PART_ROWS = 1 << 20  # publications and deliveries that are judged together: about 100 MB
HOPS = ("event", "source", "target", "step", "time", "published", "hop", "sent", "waited", "service")
RANKED = ("event", "source", "target", "time", "sent", "waited", "service")
DELIVERIES = ("event", "broker", "subscription", "rank", "score", "hops", "latency", "time")


@dataclass
class Verdict:
    missed: int = 0
    duplicates: int = 0
    spurious: int = 0
    strays: int | None = 0  # events sent where no table entry matched; None: tables are older than the trace
    wrong_times: int = 0  # recorded times that are not the sum of their links and waits, or services that overlap
    missed_transient: int = 0
    missed_dropped: int = 0
    missed_fault: int = 0
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
    verdict = Verdict(**dict(zip((*COUNTED, "wrong_times"), counts.tolist(), strict=True)))
    judged = len(numbers) / max(len(workload.events), 1) if share < 1.0 else 1.0
    return replace(verdict, strays=None if untraced(tables) else verdict.strays, judged_share=judged)


class _Judging:
    """What all events have in common, and the loop over parts of them."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table], rules: Rules, numbers: Ints) -> None:
        self._tables, self._instant, self._numbers = tables, rules.instant, numbers
        self._brokers, count = tables["brokers"].num_rows, len(workload.lo)
        everything = with_mergers(workload, tables["decisions"])  # with the mergers, which only tables hold
        ranked = rules.kind == "boxes" and rules.semantics == "exact"
        versions = Versions.of(workload, tables["operations"])
        self._lives, order = _lives(tables, self._brokers, workload.scores, len(everything.lo), ranked, versions)
        rows = np.concatenate([order, np.arange(count, len(everything.lo))])
        self._terms: Terms = terms_of(everything, rules.semantics, rules.kind, rules.max_distance, rules.metric, rows)
        self._ways: Ways = ways(tables, count, np.argsort(rows), rules.sends_to, rules.root)
        self._k = max(count, 1) if rules.k is None else rules.k
        self._values = np.array(workload.events, dtype=np.float64)
        weights = workload.event_weights
        self._weights = np.ones((1, self._values.shape[1])) if weights is None else np.array(weights)
        self._ranked = ranked
        faults = tables["faults"].to_pandas()
        self._everywhere = None
        if rules.network and rules.k is not None:
            gone = versions.ended(_finished_leaving(tables, count))
            self._everywhere = Subscriptions.of(self._terms, self._lives, gone[order])
        self._happened, self._broken = _happened(faults, len(workload.events)), _broken_times(faults)

    def counts(self) -> Ints:
        """Counts as in COUNTED, then wrong times."""
        hops = _Rows(self._tables["publications"], HOPS, self._numbers, len(self._values))
        served = _Rows(self._tables["deliveries"], DELIVERIES, self._numbers, len(self._values))
        said = _Rows(self._tables.get("ranked", empty("ranked")), RANKED, self._numbers, len(self._values))
        pairs, workers = len(self._numbers) * len(self._lives.number), os.cpu_count() or 1
        parts = max(-(-(len(hops) + len(served)) // PART_ROWS), 4 * workers if pairs > PART_ROWS else 1)
        edges = np.unique(np.linspace(0, len(self._numbers), parts + 1).astype(np.int64))

        def judged(begin: int, end: int) -> Ints:
            numbers, its_hops, its_served = self._numbers[begin:end], hops.part(begin, end), served.part(begin, end)
            if self._everywhere is not None:
                return self._network_part(self._everywhere, numbers, its_hops, said.part(begin, end), its_served)
            h, s, links = its_hops.columns, its_served.columns, self._tables["links"]
            times = wrong_times(h, s, links, self._brokers, self._instant)
            return np.append(self._counted(numbers, its_hops, its_served), times)

        with ThreadPoolExecutor(workers) as pool:
            counts = sum(pool.map(judged, edges[:-1], edges[1:]), np.zeros(len(COUNTED) + 1, np.int64))
        counts[-1] += hops.foreign + served.foreign + overlaps(self._tables)
        return counts

    def _network_part(self, everywhere: Subscriptions, numbers: Ints, hops: Part, said: Part, served: Part) -> Ints:
        """Judge the k best of the whole network; paths are judged as usual, as if nobody had to be served."""
        nobody = Part(np.zeros_like(served.first), {name: c[:0] for name, c in served.columns.items()})
        alike = np.isin(COUNTED, ("duplicates", "strays"))
        counted = np.where(alike, self._counted(numbers, hops, nobody), 0)
        others, sound = oracle_network.judge_events(
            everywhere, numbers, hops, said, served, self._values, self._weights, self._happened, self._broken, self._k
        )
        links, s = self._tables["links"], served.columns
        wrong = oracle_network.wrong_times(said.columns, sound, s, links, self._brokers, self._instant)
        return np.append(counted + others, wrong)

    def _counted(self, numbers: Ints, hops: Part, served: Part) -> Ints:
        h, s = hops.columns, served.columns
        link = self._ways.links_of(h["source"], h["target"])
        way = Hops(hops.first, h["source"], h["target"], h["step"], link, h["time"], h["published"])
        got = Served(served.first, s["broker"], s["subscription"], s["rank"], s["score"])
        weights = None if self._ranked else self._weights
        events = numbers, self._values, weights, self._happened, self._broken
        counts: Ints = judge_events(self._terms, self._lives, self._ways.entries, way, got, *events, self._k)
        return counts


class _Rows:
    """A table of the trace, sorted by event, to be cut into parts: whole numbers as int64, fractions as float64."""

    def __init__(self, table: pa.Table, names: tuple[str, ...], numbers: Ints, events: int) -> None:
        event = table.column("event").to_numpy()
        self.foreign = int(((event < 0) | (event >= events)).sum())  # rows about no event of this workload
        place = np.full(events + 1, -1)
        place[numbers] = np.arange(len(numbers))
        event = place[np.clip(event, -1, events)]  # −1 and `events` are no events
        self._first, self._order = order_by_event(event, len(numbers))
        self._columns = dict(zip(names, columns(table, *names), strict=True))

    def __len__(self) -> int:
        return len(self._order)

    def part(self, begin: int, end: int) -> Part:
        first = self._first[begin : end + 1]
        rows = self._order[first[0] : first[-1]]
        kinds = {"f": np.float64}
        columns = {name: c[rows].astype(kinds.get(c.dtype.kind, np.int64)) for name, c in self._columns.items()}
        return Part(first - first[0], columns)


def _happened(faults: pd.DataFrame, events: int) -> Ints:
    """What happened to copies of each event, as bits."""
    happened = np.zeros(events, np.int64)
    for bit, kinds in ((A_COPY_DROPPED, [QUEUE_FULL]), (A_COPY_LOST, [LINK_DOWN, CRASHED])):
        happened[np.unique(faults["event"][faults["kind"].isin(kinds)]).astype(np.int64)] |= bit
    return happened


def _broken_times(faults: pd.DataFrame) -> Floats:
    """From each first fault until the network had converged again, (n, 2)."""
    broken: list[tuple[float, float]] = []
    since: float | None = None
    for time, kind in zip(faults["time"], faults["kind"], strict=True):
        if kind in FAILURES and since is None:
            since = time
        elif kind == CONVERGED and since is not None:
            broken.append((since, time))
            since = None
    found = broken if since is None else [*broken, (since, np.inf)]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _lives(
    tables: Mapping[str, pa.Table], brokers: int, scores: Floats, rows: int, ranked: bool, versions: Versions
) -> tuple[Lives, Ints]:
    """Lives sorted by home and, where `ranked`, by score; and the workload row of each. `rows`: count with mergers."""
    operations, count = tables["operations"].to_pandas(), len(scores)
    control = tables["control"]
    requests = control.filter(pa.array(control.column("source").to_numpy() == CLIENT)).to_pandas()
    home, came, left = np.full(count, brokers), np.full(count, NEVER), np.full(count, NEVER)
    asked, asked_to_leave = np.full(count, np.inf), np.full(count, np.inf)
    joins = requests[requests["kind"] == "subscribe"]
    np.minimum.at(came, joins["subscription"].to_numpy(), joins["step"].to_numpy())  # the first, if repeated
    leaves = requests[requests["kind"] == "unsubscribe"]
    left[leaves["subscription"]] = leaves["step"]
    joining = operations["kind"].isin(["subscribe", "preload"]).to_numpy()
    joined = operations["subscription"][joining]  # each once: repetitions are called resubscribe
    home[joined] = operations["broker"][joining]
    home[came == NEVER] = brokers
    asked[joined] = operations["time"][joining]
    leaving = (operations["kind"] == "unsubscribe").to_numpy()
    asked_to_leave[operations["subscription"][leaving]] = operations["time"][leaving]
    home, came, left = home[versions.number], came[versions.number], left[versions.number]
    asked, asked_to_leave = versions.over_time(asked, asked_to_leave)
    settled = _settled(tables, count, rows, versions)[:count]
    order = np.argsort(-scores, kind="stable") if ranked else np.arange(count)
    order = order[np.argsort(home[order], kind="stable")]
    first = np.searchsorted(home[order], np.arange(brokers + 1))
    times = asked[order], settled[order], asked_to_leave[order]
    return Lives(first, versions.number[order], came[order], left[order], *times), order


def _finished_leaving(tables: Mapping[str, pa.Table], count: int) -> Floats:
    """When the messages by which each subscription left had been processed; inf where it stayed."""
    operations = tables["operations"]
    leaving = is_kind(operations, "kind", "unsubscribe")
    subscription, finished = columns(operations, "subscription", "finished")
    gone = np.full(count, np.inf)
    gone[subscription[leaving]] = finished[leaving]
    return gone


def _settled(tables: Mapping[str, pa.Table], count: int, rows: int, versions: Versions) -> Floats:
    """When each of `count` subscriptions, then each merger, had settled; inf where it never came."""
    operations, decisions = tables["operations"], tables["decisions"]
    number, subscription, finished = columns(operations, "operation", "subscription", "finished")
    finished = finished.astype(np.float64)
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
    settled = np.where(request >= 0, finished[request], np.inf)
    # Only decisions made while a row first spread count: those of its request, or triggered by an advertisement.
    advertising = is_kind(operations, "kind", "advertise")
    first = (cause == request[behind]) | advertising[cause]
    behind = np.concatenate([behind[first], versions.row])  # a new rank settles after the one before it
    witness = np.concatenate([witness[first], versions.before])
    while (settled[behind] < settled[witness]).any():
        np.maximum.at(settled, behind, settled[witness])
    return np.maximum(settled, finished[advertising].max(initial=-np.inf))
