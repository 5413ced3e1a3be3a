"""The way of events, as the oracle judges it: is each hop explained by a table entry, and each time by its parts?

Tables are rebuilt from the control messages that brokers processed, mergers from the decisions that made them. The
brokers' own code is not asked.

- A broker sends an event over a link only if something in its table for that link matches: a subscription that the
  neighbour told it, or a merger. Two more explain a hop: flooding, and in a hierarchy the way to the root.
- The latency of a delivery is the sum of the links on its way, and of wait and service at each of its brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.trace.schema import CLIENT, NOBODY
from covering.residue import EMPTY, Residue
from sim.workloads import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
ROUNDING = 1e-9  # of a time: sums in another order differ in their last bits, a forgotten part by far more


def row_of(identity: Ints, subscriptions: int) -> Ints:
    """Subscriptions by number, then mergers in the order in which they were invented (−2, −3, …)."""
    return np.where(identity >= 0, identity, subscriptions + (NOBODY - 1) - identity)


def columns(table: pa.Table, *names: str) -> list[NDArray[Any]]:
    return [table.column(name).to_numpy() for name in names]


def is_kind(table: pa.Table, name: str, *kinds: str) -> NDArray[np.bool_]:
    """Where a column of labels has one of these."""
    column = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    found = [np.zeros(0, dtype=bool)]
    for chunk in column.chunks:  # labels are numbered per chunk
        wanted = np.array([label in kinds for label in chunk.dictionary.to_pylist()], dtype=bool)
        found.append(wanted[chunk.indices.to_numpy()])
    return np.concatenate(found)


# ── explained by an entry ──────────────────────────────────────────────────────────────────────────────


def mergers(workload: Workload, decisions: pa.Table) -> Workload:
    """What brokers invented, as subscriptions: a merger is the hull of what was merged and what it replaced."""
    count = len(workload.lo)
    rows = decisions.filter(pa.array(is_kind(decisions, "outcome", "merged", "retracted")))
    subscription, witness = columns(rows, "subscription", "witness")
    of_merger = witness < NOBODY
    members, made = row_of(subscription[of_merger], count), row_of(witness[of_merger], count) - count
    total = int(made.max(initial=-1)) + 1
    lo, hi = (np.concatenate([side, np.full((total, side.shape[1]), end)]) for side, end in _hulls_of(workload))
    order = np.argsort(made, kind="stable")
    residues: dict[int, Residue] = {}
    for merger, parts in enumerate(np.split(members[order], np.searchsorted(made[order], np.arange(1, total)))):
        if len(parts):
            lo[count + merger], hi[count + merger] = lo[parts].min(axis=0), hi[parts].max(axis=0)
            first = int(parts[0])  # all have the same residue
            residue = workload.residue(first) if first < count else residues.get(first - count, EMPTY)
            if residue != EMPTY:
                residues[merger] = residue
    lo, hi = lo[count:], hi[count:]
    mentioned = np.isfinite(lo) | np.isfinite(hi)
    for merger, residue in residues.items():
        for attribute, _ in (*residue.excluded, *residue.allowed):
            mentioned[merger, attribute] = True
    nothing = np.zeros(lo.shape)
    return replace(
        workload,
        lo=lo,
        hi=hi,
        mentioned=mentioned,
        scores=nothing.sum(axis=1),
        weights=nothing,
        residues=residues,
        near=None,
    )


def _hulls_of(workload: Workload) -> Iterator[tuple[Floats, float]]:
    return iter(((workload.lo, np.inf), (workload.hi, -np.inf)))


class Entries:
    """Who was in which table, from which step to which; sorted, so that those of one subscription are neighbours."""

    def __init__(self, tables: Mapping[str, pa.Table], subscriptions: int, rows: int) -> None:
        control = tables["control"]
        mask = (control.column("source").to_numpy() != CLIENT) & is_kind(control, "kind", "subscribe", "unsubscribe")
        control = control.select(["step", "source", "target", "tree", "kind", "subscription"]).filter(pa.array(mask))
        joins = is_kind(control, "kind", "subscribe")
        step, source, target, tree, identity = columns(control, "step", "source", "target", "tree", "subscription")
        identity = row_of(identity, subscriptions)
        self.brokers = tables["brokers"].num_rows
        # One number per entry: a subscription in the table that a broker keeps for a neighbour in a tree.
        trees = int(tree.max(initial=-1)) + 2
        key = ((identity * self.brokers + target) * self.brokers + source) * trees + (tree + 1)
        order = np.argsort(key, kind="stable")  # steps are in order already
        key, joins, step = key[order], joins[order], step[order]
        same = np.concatenate([[False], key[1:] == key[:-1]])[: len(key)]  # one entry with the row before
        # What is told again while two brokers agree again says nothing new.
        news = ~same | (joins != np.concatenate([[False], joins[:-1]]))
        key, joins, step, same = key[news], joins[news], step[news], same[news]
        left = np.append(np.where(same & ~joins, step, NEVER)[1:], NEVER)
        order = order[news][joins]
        self.step, self.left = step[joins], left[joins]
        self.target, self.source, self.tree = target[order], source[order], tree[order]
        self._first = np.searchsorted(identity[order], np.arange(rows + 1))

    def of(self, rows: Ints) -> Ints:
        """The entries of these subscriptions and mergers."""
        lengths = self._first[rows + 1] - self._first[rows]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self._first[rows] - before, lengths) + np.arange(lengths.sum())


@dataclass(frozen=True)
class Ways:
    """Which hops need no entry."""

    entries: Entries | None  # None: not judged, for events go everywhere or entries came before the trace begins
    upwards: frozenset[tuple[int, int]]  # links to the root of a hierarchy: they get every event

    def strays(self, matching: Ints, hops: Floats) -> int:
        """How many hops of an event no entry explains; `hops`: rows of target, step, source."""
        if self.entries is None:
            return 0
        entries, (target, step, source) = self.entries, hops.astype(np.int64).T
        at = np.full(entries.brokers, -1)
        at[target[::-1]] = step[::-1]  # the first time, if several
        publisher = target[source == CLIENT].min(initial=entries.brokers)  # the tree of its events, if each has one
        found = entries.of(matching)
        here = at[entries.target[found]]
        right = (entries.tree[found] < 0) | (entries.tree[found] == publisher)
        found = found[right & (entries.step[found] < here) & (here < entries.left[found])]
        explained = set(zip(entries.target[found].tolist(), entries.source[found].tolist(), strict=True))
        explained |= self.upwards
        sent = zip(source.tolist(), target.tolist(), strict=True)
        return sum(pair[0] != CLIENT and pair not in explained for pair in sent)


def untraced(tables: Mapping[str, pa.Table]) -> bool:
    """Did subscriptions spread before time 0? Their messages are counted and not traced."""
    operations = tables["operations"]
    before = is_kind(operations, "kind", "preload") & (operations.column("messages").to_numpy() > 0)
    return bool(before.any())


def ways(tables: Mapping[str, pa.Table], subscriptions: int, rows: int, strategy: str, root: int | None) -> Ways:
    if strategy == "flooding" or untraced(tables):
        return Ways(None, frozenset())
    upwards = _upwards(tables["links"], root) if strategy == "hierarchical" else frozenset()
    return Ways(Entries(tables, subscriptions, rows), upwards)


def _upwards(links: pa.Table, root: int | None) -> frozenset[tuple[int, int]]:
    tree = nx.Graph([(row["broker"], row["neighbour"]) for row in links.to_pylist() if row["routed"]])
    if not tree:
        return frozenset()
    middle = min(nx.center(tree)) if root is None else root
    return frozenset(nx.bfs_predecessors(tree, middle))


# ── the sum of its parts ───────────────────────────────────────────────────────────────────────────────


def wrong_times(tables: Mapping[str, pa.Table], instant: bool) -> int:
    """Hops and deliveries whose recorded times are not the sum of their links, waits and services.

    A message is processed when its service begins; copies and deliveries leave when it ends. `instant`: brokers take
    no time and links no more than their latency, so nothing waits.
    """
    event, source, target, hop = columns(tables["publications"], "event", "source", "target", "hop")
    time, sent, published, waited = columns(tables["publications"], "time", "sent", "published", "waited")
    service = columns(tables["publications"], "service")[0]
    brokers = tables["brokers"].num_rows
    if not len(event):
        return tables["deliveries"].num_rows
    place = event * brokers + target
    first = source == CLIENT
    before = _positions(place, event * brokers + source)  # the hop that it came from
    orphan = (before < 0) & ~first
    total = waited + np.where(first, 0.0, _latencies(tables["links"], brokers, source, target))
    left = time + service
    sent_before = np.where(first, published, left[before])
    for number in range(1, int(hop.max()) + 1):
        rows = (hop == number) & ~first
        total[rows] += (total + service)[before[rows]]
    slack = ROUNDING * (1.0 + np.abs(time))
    right = (
        (np.abs(time - published - total) <= slack)
        & (sent == sent_before)
        & (waited >= 0.0)
        & (service >= 0.0)
        & ~orphan
    )
    right &= hop == np.where(first, 0, hop[before] + 1)
    if instant:
        right &= (waited <= slack) & (service == 0.0)
    event, broker, hops = columns(tables["deliveries"], "event", "broker", "hops")
    latency, arrived = columns(tables["deliveries"], "latency", "time")
    at = _positions(place, event * brokers + broker)
    fits = (np.abs(latency - (total + service)[at]) <= slack[at]) & (arrived == left[at])
    fits &= (at >= 0) & (hops == hop[at])
    return int((~right).sum() + (~fits).sum())


def _positions(places: Ints, wanted: Ints) -> Ints:
    """Where each wanted value is in `places`, the first time; −1 where it is not."""
    order = np.argsort(places, kind="stable")
    found = np.minimum(np.searchsorted(places[order], wanted), len(places) - 1)
    return np.where(places[order][found] == wanted, order[found], -1)


def _latencies(links: pa.Table, brokers: int, source: Ints, target: Ints) -> Floats:
    """The latency of each link source → target, NaN where there is none."""
    one, other, latency = columns(links, "broker", "neighbour", "latency")
    if not len(one):
        return np.full(len(source), np.nan)
    at = _positions(_pair(one, other, brokers), _pair(source, target, brokers))
    found: Floats = np.where(at < 0, np.nan, latency[at])
    return found


def _pair(one: Ints, other: Ints, brokers: int) -> Ints:
    return np.minimum(one, other).astype(np.int64) * brokers + np.maximum(one, other)
