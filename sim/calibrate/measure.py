"""The work that is measured: searches for covers, tables, matchers, messages.

Searches for covers and matchers are timed in batches, as a compiled broker does them. Where only single calls exist
(tables, searches for covered entries), the time of an empty call from Python is taken off. A message and a byte are
what it takes to receive through a local socket, a result what it takes to send. `zorder-emulated` stands for the
greedy search that it emulates, so it has the coefficients of `zorder`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covering
import topk
from broker.filter_rows import FilterRows
from broker.ranking import make_ranking
from broker.tables import LinkTable, LocalTable
from broker.work import EQUAL, PARTNER
from covering.kdtree import KdTreeIndex
from coverlay import kernel
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.strategies.basic import Identity
from routing.strategies.merging import Merging
from sim.bench import boxes
from sim.calibrate.fit import Fitted, Sample, fit, predicted
from sim.workloads.begen import Begen, begen
from sim.workloads.located import Located, located_workload

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

QUERIES = 64
ROUNDS = 15  # on a busy machine some of them run undisturbed
LONGEST = 0.15  # seconds that one sample may take, but for a second round
K = 10
_FITTED = [(workload, d, n) for workload in ("zipf", "wide") for d in (2, 3) for n in (64, 512, 2_000, 8_000)]
_HELD_OUT = [("zipf", 2, n) for n in (256, 1_000, 4_000)]
_MOST = {"poset": 600, "zorder": 2_000, "hilbert": 2_000, "zorder-emulated": 2_000}  # entries, where more take too long
ROW_METHODS = ("scan", "auto")  # see broker/matchers.py
_ONE_ATTRIBUTE = ("canopy",)
_EMULATES = {"zorder-emulated": "zorder"}
_SEED, _OTHER_SEED = 1, 2


def least(task: Callable[[], Any], operations: int) -> float:
    """Microseconds per operation: the least of many rounds, fewer where they take long."""
    task()  # compiled, and in the caches
    best, until = float("inf"), time.perf_counter() + LONGEST
    for turn in range(ROUNDS):
        started = time.perf_counter()
        task()
        ended = time.perf_counter()
        best = min(best, ended - started)
        if turn and ended > until:
            break
    return best / operations * 1e6


def _each(ask: Callable[[Any], Any], asked: Any) -> None:
    for one in asked:
        ask(one)


@kernel
def _nothing(row: Any) -> int:
    return len(row)


def _empty_call() -> float:
    row = np.zeros(4)
    return least(lambda: [_nothing(row) for _ in range(QUERIES)], QUERIES)


# ── searches for covers ────────────────────────────────────────────────────────────────────────────────────


def _stored(workload: str, d: int, n: int, seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng((seed, d, n))
    made = boxes.WORKLOADS[workload](n + QUERIES, d, rng)
    return np.array([[0.0, 1.0]] * d), np.ascontiguousarray(made[:n]), np.ascontiguousarray(made[n:])


def _method_of(name: str) -> tuple[str, float]:
    """The covering method and ε that a name of a profile stands for."""
    if name == KdTreeIndex.with_epsilon:
        return KdTreeIndex.name, 0.1
    name = _EMULATES.get(name, name)
    return name, 0.3 if name in ("zorder", "hilbert") else 0.0


def _search_samples(name: str, cases: Sequence[tuple[str, int, int]], seed: int) -> Iterator[tuple[Sample, Sample]]:
    """Of a search for a cover (probes), and of one for covered entries (entries held)."""
    overhead = _empty_call()
    for workload, d, n in cases:
        domain, stored, queries = _stored(workload, d, min(n, _MOST.get(name, n)), seed)
        if name in (EQUAL, PARTNER):
            yield _other_search(name, domain, stored, queries)
            continue
        method, epsilon = _method_of(name)
        index = covering.create(method, domain, epsilon)
        index.add_many(range(len(stored)), stored)
        index.find_cover_many(queries)
        probes = index.stats.probes / len(queries)
        took = least(partial(index.find_cover_many, queries), len(queries))
        some = queries[:16]
        covered = least(partial(_each, index.find_covered, some), len(some))
        yield ((probes,), took), ((len(stored),), max(covered - overhead, 0.01))


def _other_search(name: str, domain: Floats, stored: Floats, queries: Floats) -> tuple[Sample, Sample]:
    """For an equal entry, or for one to merge with; neither searches for covered entries."""
    filters, asked = ([Filter.of_box(box) for box in some] for some in (stored, queries))
    strategy = (Identity if name == EQUAL else Merging)(RoutingOptions(domain, method="scan"))
    for number, filter in enumerate(filters):
        strategy.add(number, filter)
    if isinstance(strategy, Merging):
        merging = strategy
        took = least(lambda: [merging.find_partner(filter, 0.1) for filter in asked], len(asked)) - _empty_call()
        return ((float(len(filters)),), max(took, 0.01)), ((1.0,), 0.01)
    return ((1.0,), least(lambda: [strategy.find_cover(filter) for filter in asked], len(asked))), ((1.0,), 0.01)


def searches(names: Sequence[str], progress: Progress) -> list[Fitted]:
    found: list[Fitted] = []
    for name in names:
        progress(f"covering: {name}")
        same = next((item for item in found if item.name == f"covering.{_EMULATES.get(name)}"), None)
        if same is not None:
            found.append(replace(same, name=f"covering.{name}"))
            continue
        both = list(_search_samples(name, _FITTED, _SEED))
        values, error = fit([sample for sample, _ in both])
        covered, _ = fit([sample for _, sample in both])
        if name in (EQUAL, PARTNER):
            covered = (0.0, 0.0)
        held = predicted(values, [sample for sample, _ in _search_samples(name, _HELD_OUT, _OTHER_SEED)])
        found.append(Fitted(f"covering.{name}", (*values, *covered), error, held))
    return found


# ── tables and matchers ────────────────────────────────────────────────────────────────────────────────────


def _table_samples(cases: Sequence[tuple[str, int, int]], seed: int) -> Iterator[Sample]:
    overhead = _empty_call()
    for workload, d, n in cases:
        domain, stored, _ = _stored(workload, d, n, seed)
        table = LinkTable("exact", domain, FilterRows(d))
        for number, box in enumerate(stored):
            table.add(number, Filter.of_box(box))
        events = list(np.random.default_rng(seed).random((QUERIES, d)))
        compared = sum(table.ask(event)[1] for event in events) / len(events)
        took = least(partial(_each, table.ask, events), len(events))
        yield (compared,), max(took - overhead, 0.01)


def tables(progress: Progress) -> list[Fitted]:
    progress("tables of neighbours")
    cases = [(workload, d, n) for workload in ("zipf", "narrow") for d in (2, 3) for n in (16, 64, 250, 1_000, 8_000)]
    values, error = fit(list(_table_samples(cases, _SEED)))
    held = predicted(values, list(_table_samples(_HELD_OUT, _OTHER_SEED)))
    return [Fitted("tables", values, error, held)]


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


def _matcher_samples(kind: str, name: str, sizes: Sequence[tuple[int, int]], seed: int) -> Iterator[Sample]:
    for n, d in sizes:
        catalogue, events = _catalogue(kind, n, 1 if name in _ONE_ATTRIBUTE else d, seed)
        if kind == "boxes" and name in ROW_METHODS:
            yield _row_sample(name, d, catalogue, events)
            continue
        index = topk.create(name, catalogue)
        index.top_many(events, K)
        before = index.stats.entries, index.stats.nodes
        index.top_many(events, K)
        entries, nodes = (
            (after - b) / len(events) for after, b in zip((index.stats.entries, index.stats.nodes), before, strict=True)
        )
        took = least(partial(index.top_many, events, K), len(events))
        yield (entries, nodes), took


def _row_sample(name: str, d: int, catalogue: topk.Catalogue, events: Any) -> Sample:
    """Of the rows that brokers of both engines match by."""
    table = LocalTable(make_ranking("boxes", name, np.array([[0.0, 1.0]] * d)), FilterRows(d))
    for number, (lo, hi, score) in enumerate(zip(catalogue.lo, catalogue.hi, catalogue.scores, strict=True)):
        table.add(number, Filter.of_box(np.column_stack([lo, hi]), score=float(score)))
    answers = [table.top(event, K) for event in events]
    entries = sum(entries for _, _, entries, _ in answers) / len(events)
    nodes = sum(nodes for _, _, _, nodes in answers) / len(events)
    took = least(partial(_each, partial(table.top, k=K), events), len(events))
    return (entries, nodes), max(took - _empty_call(), 0.01)


def matchers(kind: str, names: Sequence[str], progress: Progress) -> list[Fitted]:
    fitted = (
        [(n, d) for d in (2, 3) for n in (100, 200, 500, 1_500, 3_000, 8_000)]
        if kind == "boxes"
        else [(n, 0) for n in (100, 500, 1_000, 2_000, 4_000, 8_000)]
    )
    held_out = [(300, 2), (1_000, 2), (4_000, 2)] if kind == "boxes" else [(300, 0), (1_500, 0), (6_000, 0)]
    found = []
    for name in names:
        progress(f"matching.{kind}: {name}")
        values, error = fit(list(_matcher_samples(kind, name, fitted, _SEED)))
        held = predicted(values, list(_matcher_samples(kind, name, held_out, _OTHER_SEED)))
        found.append(Fitted(f"matching.{kind}.{name}", values, error, held))
    return found


# ── messages ───────────────────────────────────────────────────────────────────────────────────────────────


def messages(progress: Progress) -> list[Fitted]:
    """(receive, byte, send) through a pair of local sockets: the system's part of a message."""
    progress("messages")
    one, other = socket.socketpair()
    received: list[Sample] = []
    sent: list[Sample] = []
    for size in (64, 256, 1024, 4096):
        parcel = bytes(size)

        def send(parcel: bytes = parcel) -> None:
            for _ in range(16):
                one.send(parcel)

        def both(send: Callable[[], None] = send, size: int = size) -> None:
            send()
            for _ in range(16):
                other.recv(size)

        pair = least(both, 16)
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            send()
            times.append((time.perf_counter() - started) / 16 * 1e6)
            for _ in range(16):
                other.recv(size)
        sent.append(((size,), min(times)))
        received.append(((size,), max(pair - min(times), 0.01)))
    one.close()
    other.close()
    (receive, _), error = fit(received)
    (send_one, byte), _ = fit(sent)
    return [Fitted("message", (receive, receive, byte, send_one), error, float("nan"))]
