"""The work that is measured: searches for covers, tables, matchers, messages.

Searches for covers, tables and matchers are timed in batches, as a compiled broker does them. Where only single calls
exist (searches for covered entries), the time of an empty call from Python is subtracted. A message costs what it takes
to receive it through a local socket, a byte and a result what it takes to send them. `zorder-emulated` emulates the
greedy search, so it has the coefficients of `zorder`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covering
import topk
from broker.matchers import ROW_METHODS
from covering.auto import AutoIndex
from covering.contract import CoveringIndex
from covering.widest_first import sizes
from coverlay import kernel
from routing.contract import LinkStrategy, RoutingOptions
from routing.filter import Filter
from routing.strategies import STRATEGIES
from routing.strategies.merging import Merging
from sim.calibrate.fit import Counts, Fitted, Sample, fit, predicted
from sim.workloads import boxes
from sim.workloads.begen import Begen, begen
from sim.workloads.located import Located, located_workload

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

QUERIES = 64
EVENTS = 1_000  # for tables: with few, the processor would predict every branch
PASSES, ROUNDS = 3, 5  # passes go over all samples: a slow second of the machine spoils one pass
SHORTEST, LONGEST = 0.01, 0.05  # seconds that a sample takes in a pass; more where a single round does
K = 10
PARCEL_ROUNDS, PARCELS = 200, 16  # the parcels of a round are all in the socket before one is received
_FITTED = [(workload, d, n) for workload in ("zipf", "wide") for d in (2, 3) for n in (64, 512, 2_000, 8_000)]
_HELD_OUT = [("zipf", 2, n) for n in (256, 1_000, 4_000)]
_SEED, _OTHER_SEED = 1, 2
_BITS = (1, 2, 3, 4)  # of a coordinate, where methods compare candidates


@dataclass(frozen=True)
class Task:
    """Work to be timed."""

    counts: Counts  # per operation
    do: Callable[[], Any]
    operations: int
    overhead: float = 0.0  # microseconds of an operation that are not part of the work


def least(task: Callable[[], Any], operations: int) -> float:
    """Microseconds per operation: the least of some rounds, more where they are short, fewer where they take long.

    Of the processor, so that it matters less what else the machine does.
    """
    best, begun, rounds, spent = float("inf"), time.process_time(), 0, 0.0
    while spent < LONGEST and (rounds < ROUNDS or spent < SHORTEST):
        started = time.process_time()
        task()
        ended = time.process_time()
        best, rounds, spent = min(best, ended - started), rounds + 1, ended - begun
    return best / operations * 1e6


def measured(*groups: Iterable[Task]) -> list[list[Sample]]:
    """The samples of each group of tasks."""
    made = [list(group) for group in groups]
    for task in chain(*made):
        task.do()  # compiles it, and fills caches
    passes = [[[least(task.do, task.operations) for task in group] for group in made] for _ in range(PASSES)]
    return [
        [
            (task.counts, max(min(times) - task.overhead, 0.01))
            for task, *times in zip(group, *(one[number] for one in passes), strict=True)
        ]
        for number, group in enumerate(made)
    ]


def _fitted(name: str, tasks: Iterable[Task], held_out: Iterable[Task]) -> Fitted:
    fitted, others = measured(tasks, held_out)
    values, error = fit(fitted)
    return Fitted(name, values, error, predicted(values, others))


def _each(ask: Callable[[Any], Any], asked: Any) -> None:
    for one in asked:
        ask(one)


@kernel
def _nothing(row: Any) -> int:
    return len(row)


def _empty_call() -> float:
    row = np.zeros(4)
    _nothing(row)  # compiled
    return least(lambda: [_nothing(row) for _ in range(QUERIES)], QUERIES)


# ── searches for covers ────────────────────────────────────────────────────────────────────────────────────


def _stored(workload: str, d: int, n: int, seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng((seed, d, n))
    made = boxes.WORKLOADS[workload](n + QUERIES, d, rng)
    return np.array([[0.0, 1.0]] * d), np.ascontiguousarray(made[:n]), np.ascontiguousarray(made[n:])


def _method_of(name: str) -> tuple[type[CoveringIndex], float]:
    """The covering method and ε that a name in a profile means."""
    method = next(m for m in covering.METHODS.values() if m is not AutoIndex and name in m.charged_as())
    if name != method.name:
        return method, 0.1
    return method, 0.3 if method.on_curve else 0.0


def _search_tasks(name: str, cases: Sequence[tuple[str, int, int]], seed: int) -> Iterator[tuple[Task, Task]]:
    """A search for a cover (probes, candidates if it compares any), and one for covered entries (entries held)."""
    overhead = _empty_call()
    for workload, d, n in cases:
        other = _searching(name)
        if other is not None:
            yield _other_search(other, *_stored(workload, d, n, seed))
            continue
        method, epsilon = _method_of(name)
        domain, stored, queries = _stored(workload, d, min(n, method.slow_beyond or n), seed)
        # A coarse grid has few ranges with many candidates, a fine one many with few: together they tell both prices.
        for bits in _BITS if method.compares_candidates else (None,):
            index = covering.create(method.name, domain, epsilon, **({} if bits is None else {"bits": bits}))
            index.add_many(range(len(stored)), stored)
            index.find_cover_many(queries)
            counted = (index.stats.probes, index.stats.candidates)[: 1 + method.compares_candidates]
            counts = tuple(count / len(queries) for count in counted)
            some = queries[:16]
            covered = Task((len(stored),), partial(_each, index.find_covered, some), len(some), overhead)
            yield Task(counts, partial(index.find_cover_many, queries), len(queries)), covered


def _searching(name: str) -> type[LinkStrategy] | None:
    """The strategy that searches under this name by itself, without a covering method."""
    return next((strategy for strategy in STRATEGIES.values() if name in strategy.charged_as), None)


def _other_search(chosen: type[LinkStrategy], domain: Floats, stored: Floats, queries: Floats) -> tuple[Task, Task]:
    """For an equal entry, or for one to merge with; neither searches for covered entries."""
    nothing = Task((1.0,), lambda: None, 1)
    filters, asked = ([Filter.of_box(box) for box in some] for some in (stored, queries))
    strategy = chosen(RoutingOptions(domain, method="scan"))
    for number, filter in enumerate(filters):
        strategy.add(number, filter)
    if isinstance(strategy, Merging):
        partner = partial(strategy.find_partner, filled=0.1)
        return Task((float(len(filters)),), partial(_each, partner, asked), len(asked), _empty_call()), nothing
    find = partial(strategy.find_cover, len(filters))  # as one more subscription
    probes = sum(find(filter).probes for filter in asked) / len(asked)
    return Task((probes,), partial(_each, find, asked), len(asked)), nothing


def searches(names: Sequence[str], progress: Progress) -> list[Fitted]:
    found: list[Fitted] = []
    for name in names:
        progress(f"covering: {name}")
        other = _searching(name)
        # One of ours counts the probes of that method; a plug-in borrows its price until it is measured.
        borrows = other is not None or name in covering.METHODS.written
        like = None if borrows else _method_of(name)[0].priced_like
        same = next((item for item in found if item.name == f"covering.{like}"), None)
        if same is not None:
            found.append(replace(same, name=f"covering.{name}"))
            continue
        searching, covered = zip(*_search_tasks(name, _FITTED, _SEED), strict=True)
        others = (task for task, _ in _search_tasks(name, _HELD_OUT, _OTHER_SEED))
        fitted, listed, held_out = measured(searching, covered, others)
        values, error = fit(fitted)
        listing = fit(listed)[0] if other is None else (0.0, 0.0)
        found.append(Fitted(f"covering.{name}", (*values, *listing), error, predicted(values, held_out)))
    return found


# ── tables and matchers ────────────────────────────────────────────────────────────────────────────────────


def _table_tasks(cases: Sequence[tuple[str, int, int]], seed: int) -> Iterator[Task]:
    for workload, d, n in cases:
        domain, stored, _ = _stored(workload, d, n, seed)
        sides, size = sizes(stored, domain)
        events = np.random.default_rng(seed).random((EVENTS, d))
        yield _rows_task(stored[np.lexsort((-size, -sides))], events, 1)


def _rows_task(rows: Floats, events: Floats, k: int) -> Task:
    """Compare events with rows up to the k-th match: what topk/first_matches.py counts, in the least time."""
    find = partial(_compare_all, rows, events, np.int64(k))
    return Task((find() / len(events),), find, len(events))


@kernel
def _compare_all(rows: Any, events: Any, k: int) -> int:
    """Rows compared. Single comparisons do not branch: which one fails is unpredictable."""
    compared = 0
    for event in events:
        found = 0
        for row in rows:
            hit = True
            for j in range(len(event)):
                hit &= (row[j, 0] <= event[j]) & (event[j] <= row[j, 1])
            compared += 1
            found += hit
            if found == k:
                break
    return compared


def tables(progress: Progress) -> list[Fitted]:
    progress("tables of neighbours")
    cases = [(workload, d, n) for workload in ("zipf", "narrow") for d in (2, 3) for n in (16, 64, 250, 1_000, 8_000)]
    return [_fitted("tables", _table_tasks(cases, _SEED), _table_tasks(_HELD_OUT, _OTHER_SEED))]


def _catalogue(kind: str, n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Subscriptions of a kind, and events for them."""
    if kind == "predicates":
        made = begen(Begen(subscriptions=n, events=QUERIES, seed=seed))
        return made.catalogue, list(made.events)
    if kind == "places":
        placed = located_workload(Located(subscriptions=n, events=QUERIES, seed=seed))
        return placed.catalogue, list(placed.events)
    _, stored, _ = _stored("zipf", d, n, seed)
    rng = np.random.default_rng(seed)
    return topk.Catalogue.from_boxes(stored[:, :, 0], stored[:, :, 1], rng.random(n)), rng.random((QUERIES, d))


def _matcher_tasks(kind: str, name: str, sizes: Sequence[tuple[int, int]], seed: int) -> Iterator[Task]:
    for n, d in sizes:
        most = getattr(topk.registry(kind)[name], "most_attributes", None)
        catalogue, events = _catalogue(kind, n, most or d, seed)
        if kind == "boxes" and name in ROW_METHODS:
            ranked = np.argsort(-catalogue.scores, kind="stable")
            task = _rows_task(np.stack([catalogue.lo, catalogue.hi], axis=2)[ranked], events, K)
            yield replace(task, counts=(*task.counts, 0.0))  # no nodes
            continue
        index = topk.create(name, catalogue)
        index.top_many(events, K)
        before = index.stats.entries, index.stats.nodes
        index.top_many(events, K)
        counted = index.stats.entries - before[0], index.stats.nodes - before[1]
        counts = tuple(count / len(events) for count in counted)
        yield Task(counts, partial(index.top_many, events, K), len(events))


def matchers(kind: str, names: Sequence[str], progress: Progress) -> list[Fitted]:
    if kind == "boxes":
        sizes = [(n, d) for d in (2, 3) for n in (100, 200, 500, 1_500, 3_000, 8_000)]
        held_out = [(300, 2), (1_000, 2), (4_000, 2)]
    else:
        sizes = [(n, 0) for n in (100, 500, 1_000, 2_000, 4_000, 8_000)]
        held_out = [(300, 0), (1_500, 0), (6_000, 0)]
    found = []
    for name in names:
        progress(f"matching.{kind}: {name}")
        tasks, others = _matcher_tasks(kind, name, sizes, _SEED), _matcher_tasks(kind, name, held_out, _OTHER_SEED)
        found.append(_fitted(f"matching.{kind}.{name}", tasks, others))
    return found


# ── messages ───────────────────────────────────────────────────────────────────────────────────────────────


def messages(progress: Progress) -> list[Fitted]:
    """What it costs to receive and send through a pair of local sockets: the system's part of a message."""
    progress("messages")
    one, other = socket.socketpair()
    received: list[Sample] = []
    sent: list[Sample] = []
    for size in (64, 256, 1024, 4096):
        parcel, sending, receiving = bytes(size), float("inf"), float("inf")
        for _ in range(PARCEL_ROUNDS):
            started = time.perf_counter()
            for _ in range(PARCELS):
                one.send(parcel)
            between = time.perf_counter()
            for _ in range(PARCELS):
                other.recv(size)
            sending, receiving = min(sending, between - started), min(receiving, time.perf_counter() - between)
        sent.append(((size,), sending / PARCELS * 1e6))
        received.append(((size,), receiving / PARCELS * 1e6))
    one.close()
    other.close()
    (receive, _), error = fit(received)
    (send_one, byte), _ = fit(sent)
    return [Fitted("message", (receive, receive, byte, send_one), error, float("nan"))]
