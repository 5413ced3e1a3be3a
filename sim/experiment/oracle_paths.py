"""The path of events, as the oracle judges it: is each hop explained by a table entry, and each time by its parts?

Tables are rebuilt from the control messages that brokers processed, mergers from the decisions that made them. The
brokers' own code is not used.

- A broker sends an event over a link only if something in its table for that link matches: a subscription that the
  neighbour sent, or a merger. Two other things explain a hop: flooding and, in a hierarchy, the way to the root.
- The latency of a delivery is the sum of the latencies of its links, and of wait and service at each broker it passed.
- A broker serves one message at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.trace.schema import CLIENT, CRASH, NOBODY
from routing.contract import SendsTo
from sim.experiment.oracle_due import NEVER
from sim.experiment.oracle_truth import Floats, Ints, Terms, reached, spans
from sim.workloads import Workload

Columns = Mapping[str, NDArray[Any]]
EXPLAINED = -2  # in place of a link: this hop needs no entry
FEW, PAIRS = 8, 1 << 20  # entries that are tried for a hop at first; pairs of hop and entry that are tried at once
ROUNDING = 1e-9  # of a time: sums in another order differ in their last bits, a forgotten part by far more


class Part(NamedTuple):
    """The rows of some events in a table of the trace, event by event."""

    first: Ints  # where the rows of each begin
    columns: Columns

    @property
    def event(self) -> Ints:
        """The place of each row's event among these events."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


class Entries(NamedTuple):
    """Which row was in which table, from `step` until `left`; sorted by link."""

    first: Ints  # (links + 1,)
    row: Ints  # of the terms
    step: Ints
    left: Ints
    tree: Ints


def row_of(identity: Ints, subscriptions: int) -> Ints:
    """Rows of identities: subscriptions by number, then mergers in the order in which they were made (−2, −3, …)."""
    return np.where(identity >= 0, identity, subscriptions + (NOBODY - 1) - identity)


def columns(table: pa.Table, *names: str) -> list[NDArray[Any]]:
    return [table.column(name).to_numpy() for name in names]


def is_kind(table: pa.Table, name: str, *kinds: str) -> NDArray[np.bool_]:
    """Where a column of labels has one of `kinds`."""
    column = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    found = [np.zeros(0, dtype=bool)]
    for chunk in column.chunks:  # labels are numbered per chunk
        wanted = np.array([label in kinds for label in chunk.dictionary.to_pylist()], dtype=bool)
        found.append(wanted[chunk.indices.to_numpy()])
    return np.concatenate(found)


# ── explained by an entry ──────────────────────────────────────────────────────────────────────────────


def with_mergers(workload: Workload, decisions: pa.Table) -> Workload:
    """The subscriptions, then the mergers that brokers made: hulls of what was merged into them or replaced by them."""
    count = len(workload.lo)
    rows = decisions.filter(pa.array(is_kind(decisions, "outcome", "merged", "retracted")))
    subscription, witness = columns(rows, "subscription", "witness")
    of_merger = witness < NOBODY
    members, made = row_of(subscription[of_merger], count), row_of(witness[of_merger], count) - count
    total = int(made.max(initial=-1)) + 1
    if not total:
        return workload

    def longer(column: NDArray[Any], value: float) -> NDArray[Any]:
        return np.concatenate([column, np.full((total, *column.shape[1:]), value, column.dtype)])

    lo, hi, mentioned = longer(workload.lo, np.inf), longer(workload.hi, -np.inf), longer(workload.mentioned, False)
    order = np.argsort(made, kind="stable")
    residues = dict(workload.residues)
    for row, parts in enumerate(np.split(members[order], np.searchsorted(made[order], np.arange(1, total))), count):
        if not len(parts):
            continue
        lo[row], hi[row] = lo[parts].min(axis=0), hi[parts].max(axis=0)
        mentioned[row] = np.isfinite(lo[row]) | np.isfinite(hi[row])
        if parts[0] in residues:  # all have the same
            residues[row] = residue = residues[int(parts[0])]
            mentioned[row, [attribute for attribute, _ in (*residue.excluded, *residue.allowed)]] = True
    scores, weights = longer(workload.scores, 0.0), longer(workload.weights, 0.0)
    near = None if workload.near is None else longer(workload.near, np.nan)
    return replace(
        workload, lo=lo, hi=hi, mentioned=mentioned, scores=scores, weights=weights, near=near, residues=residues
    )


def _entries(tables: Mapping[str, pa.Table], subscriptions: int, places: Ints) -> tuple[Entries, Ints]:
    """The entries of all tables and the links that they are about, as numbers; `places`: the row of each identity."""
    control = tables["control"]
    mask = (control.column("source").to_numpy() != CLIENT) & is_kind(control, "kind", "subscribe", "unsubscribe")
    control = control.select(["step", "source", "target", "tree", "kind", "subscription"]).filter(pa.array(mask))
    joins = is_kind(control, "kind", "subscribe")
    step, source, target, tree, identity = columns(control, "step", "source", "target", "tree", "subscription")
    identity = row_of(identity, subscriptions)
    brokers = tables["brokers"].num_rows
    link = target.astype(np.int64) * brokers + source  # the holder of the entry, and the neighbour that sent it
    # One number per entry: a subscription in the table that a broker keeps for a neighbour in a tree.
    lowest = int(tree.min(initial=-1))
    trees = int(tree.max(initial=-1)) - lowest + 1
    key = (identity * brokers**2 + link) * trees + (tree - lowest)
    order = np.argsort(key, kind="stable")  # steps are in order already
    key, joins, step = key[order], joins[order], step[order]
    same = np.concatenate([[False], key[1:] == key[:-1]])[: len(key)]  # the same entry as the row before
    # What is repeated when two brokers recover says nothing new.
    news = ~same | (joins != np.concatenate([[False], joins[:-1]]))
    key, joins, step, same = key[news], joins[news], step[news], same[news]
    left = np.append(np.where(same & ~joins, step, NEVER)[1:], NEVER)[: len(step)]
    order, step, left = order[news][joins], step[joins], left[joins]
    by_link = np.argsort(link[order], kind="stable")
    order, step, left = order[by_link], step[by_link], left[by_link]
    links, first = np.unique(link[order], return_index=True)
    first = np.append(first, len(order))
    source = np.where(tree < 0, tree, tree % brokers)  # a later version of its tree is named after it
    return Entries(first, places[identity[order]], step, left, source[order].astype(np.int64)), links


NO_ENTRIES = Entries(np.zeros(1, np.int64), *(np.empty(0, np.int64) for _ in range(4)))


@dataclass(frozen=True)
class Ways:
    """What explains a hop."""

    entries: Entries
    brokers: int
    links: Ints  # those with entries, ascending: sender × brokers + target
    always: Ints | None  # links that need no entry; None: all of them

    def links_of(self, source: Ints, target: Ints) -> Ints:
        """Per hop the number of the link whose entries must explain it, −1 if it has none, or EXPLAINED."""
        if self.always is None:
            return np.full(len(source), EXPLAINED)
        link = source * self.brokers + target
        at = np.searchsorted(self.links, link)
        known = np.append(self.links, -1)[at] == link
        free = (source == CLIENT) | np.isin(link, self.always)
        return np.where(free, EXPLAINED, np.where(known, at, -1))


def strays(ways: Ways, terms: Terms, values: Floats, hops: Part) -> int:
    """Hops that no entry of the sender's table for that link explains; `values`: of the events, by place."""
    event, h = hops.event, hops.columns
    link = ways.links_of(h["source"], h["target"])
    unexplained = np.flatnonzero(link != EXPLAINED)
    if not len(unexplained):
        return 0
    here = np.full((len(values), ways.brokers), NEVER)  # when brokers first processed an event
    np.minimum.at(here, (event, h["target"]), h["step"])
    here[here == NEVER] = -1
    publisher = np.full(len(values), ways.brokers)  # which names the tree, where each publisher has its own
    first = h["source"] == CLIENT
    np.minimum.at(publisher, event[first], h["target"][first])
    without = int((link[unexplained] == -1).sum())
    pending, tried, entries = unexplained[link[unexplained] >= 0], 0, ways.entries
    while len(pending):  # most are explained by one of the first entries
        width = max(FEW, 3 * tried)
        left = []
        for hop in np.split(pending, np.arange(PAIRS // width, len(pending), max(PAIRS // width, 1))):
            begin, end = entries.first[link[hop]] + tried, entries.first[link[hop] + 1]
            counts = np.clip(end - begin, 0, width)
            of, entry = np.repeat(np.arange(len(hop)), counts), spans(begin, counts)
            its, step = event[hop][of], here[event[hop], h["source"][hop]][of]
            there = (entries.step[entry] < step) & (step < entries.left[entry])
            there &= (entries.tree[entry] < 0) | (entries.tree[entry] == publisher[its])
            of, entry, its = of[there], entry[there], its[there]
            explained = np.zeros(len(hop), bool)
            explained[of[reached(terms, values, its, entries.row[entry])]] = True
            without += int((~explained & (end - begin <= width)).sum())
            left.append(hop[~explained & (end - begin > width)])
        pending, tried = np.concatenate(left), tried + width
    return without


def untraced(tables: Mapping[str, pa.Table]) -> bool:
    """Did subscriptions spread before time 0? Their messages are counted but not traced."""
    operations = tables["operations"]
    before = is_kind(operations, "kind", "preload") & (operations.column("messages").to_numpy() > 0)
    return bool(before.any())


def ways(tables: Mapping[str, pa.Table], subscriptions: int, places: Ints, sends_to: SendsTo, root: int | None) -> Ways:
    """`places`: the row of each subscription and merger among those that the oracle looks at."""
    brokers = tables["brokers"].num_rows
    if sends_to == "nobody" or untraced(tables):  # events go everywhere, or entries are older than the trace
        return Ways(NO_ENTRIES, brokers, np.empty(0, np.int64), None)
    entries, links = _entries(tables, subscriptions, places)
    upwards = _upwards(tables["links"], root) if sends_to == "root" else []
    always = np.array([broker * brokers + parent for broker, parent in upwards], dtype=np.int64)
    return Ways(entries, brokers, links, always)


def _upwards(links: pa.Table, root: int | None) -> list[tuple[int, int]]:
    """The links to the root of a hierarchy: they get every event."""
    tree = nx.Graph([(row["broker"], row["neighbour"]) for row in links.to_pylist() if row["routed"]])
    if not tree:
        return []
    middle = min(nx.center(tree)) if root is None else root
    return list(nx.bfs_predecessors(tree, middle))


# ── the sum of its parts ───────────────────────────────────────────────────────────────────────────────


def wrong_times(hops: Columns, served: Columns, links: pa.Table, brokers: int, instant: bool) -> int:
    """Hops and deliveries of some events whose recorded times are not the sum of their links, waits and services.

    A message is processed when its service begins; copies and deliveries leave when it ends. `instant`: brokers take
    no time and links no more than their latency, so nothing waits.
    """
    event, source, target, hop = (hops[name] for name in ("event", "source", "target", "hop"))
    time, sent, published = (hops[name] for name in ("time", "sent", "published"))
    waited, service = hops["waited"], hops["service"]
    if not len(event):
        return len(served["event"])
    place = event * brokers + target
    first = source == CLIENT
    before = _positions(place, event * brokers + source)  # the hop before
    orphan = (before < 0) & ~first
    total = waited + np.where(first, 0.0, latencies(links, brokers, source, target))
    total[orphan] = np.nan  # a hop without one before is wrong, and so is all that follows
    left = time + service
    sent_before = np.where(first, published, left[before])
    for number in range(1, int(hop.max()) + 1):
        rows = np.flatnonzero((hop == number) & ~first)
        total[rows] += total[before[rows]] + service[before[rows]]
    slack = ROUNDING * (1.0 + np.abs(time))
    right = (np.abs(time - published - total) <= slack) & (sent == sent_before) & ~orphan
    right &= (waited >= 0.0) & (service >= 0.0) & (hop == np.where(first, 0, hop[before] + 1))
    if instant:
        right &= (waited <= slack) & (service == 0.0)
    at = _positions(place, served["event"] * brokers + served["broker"])
    fits = (np.abs(served["latency"] - (total + service)[at]) <= slack[at]) & (served["time"] == left[at])
    fits &= (at >= 0) & (served["hops"] == hop[at])
    return int((~right).sum() + (~fits).sum())


def overlaps(tables: Mapping[str, pa.Table]) -> int:
    """Messages whose service began while their broker was still serving another; a crash ends a service."""
    events = "ranked" if "ranked" in tables else "publications"  # where it exists, it has every message about an event
    served = [columns(tables[name], "target", "step", "time", "service") for name in ("control", events)]
    broker, step, begins, service = (np.concatenate(column) for column in zip(*served, strict=True))
    ends = begins + service
    crashes = tables["faults"].filter(pa.array(is_kind(tables["faults"], "kind", CRASH)))
    for crashed, time in zip(*columns(crashes, "broker", "time"), strict=True):
        ends[(broker == crashed) & (begins <= time) & (ends > time)] = time
    order = np.lexsort((step, broker))
    broker, begins, ends = broker[order], begins[order], ends[order]
    early = begins[1:] < ends[:-1] - ROUNDING * (1.0 + np.abs(ends[:-1]))
    return int((early & (broker[1:] == broker[:-1])).sum())


def _positions(places: Ints, wanted: Ints) -> Ints:
    """Where each wanted value first occurs in `places`; −1 where it does not."""
    order = np.argsort(places, kind="stable")
    found = np.minimum(np.searchsorted(places[order], wanted), len(places) - 1)
    return np.where(places[order][found] == wanted, order[found], -1)


def latencies(links: pa.Table, brokers: int, source: Ints, target: Ints) -> Floats:
    """The latency of each link source → target, NaN where there is none."""
    one, other, latency = columns(links, "broker", "neighbour", "latency")
    if not len(one):
        return np.full(len(source), np.nan)
    at = _positions(_pair(one, other, brokers), _pair(source, target, brokers))
    found: Floats = np.where(at < 0, np.nan, latency[at])
    return found


def _pair(one: Ints, other: Ints, brokers: int) -> Ints:
    return np.minimum(one, other).astype(np.int64) * brokers + np.maximum(one, other)
