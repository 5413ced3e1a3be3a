"""A large trace to measure the aggregation on: made up, but of the sizes and distributions that real runs have.

Simulating tens of millions of messages takes far longer than aggregating them, and what is measured does not depend
on whether brokers decided well. So rows are drawn: brokers on a random tree, messages over its links, a few hops,
log-normal latencies, a third of the waits zero; only the first seed asks exact covering too. Every table is
complete, counts agree with the run's record, and files are written by the code that writes real traces.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.spark.records import times_and_preloads
from broker import trace
from broker.trace.buckets import WORK_UNIT
from broker.trace.schema import CLIENT, NOBODY, SCHEMAS, to_table
from sim.bench import Progress
from sim.experiment.config import parse
from sim.experiment.runner import facts_of

BROKERS = 100
RUNS = 4  # two points, two seeds each
ROWS = 20_000_000
# What a run with covering leaves, as shares of its rows.
SHARES = {"control": 0.30, "decisions": 0.35, "publications": 0.15, "deliveries": 0.20}
OPERATIONS = 0.01
K = 5
_CHECKS = np.array(["forwarded", "suppressed", "exposed", "retracted"])


def write(out: Path, rows: int, progress: Progress) -> int:
    """Write the runs of the sweep below `out`; returns how many rows there are."""
    written = 0
    for number in range(RUNS):
        progress(f"writing run {number + 1} of {RUNS}")
        epsilon, seed = (0.0, 0.1)[number // 2], 1 + number % 2
        tables = _run(np.random.default_rng(number), rows // RUNS, epsilon, seed)
        written += sum(tables[name].num_rows for name in SHARES)
        trace.write_run(out / "runs" / f"run={tables['run'].column('run_id')[0]}", tables)
    return written


def _run(rng: np.random.Generator, rows: int, epsilon: float, seed: int) -> dict[str, pa.Table]:
    parent = np.array([rng.integers(0, max(1, b)) for b in range(BROKERS)], dtype=np.int32)
    counts = {name: int(share * rows) for name, share in SHARES.items()}
    tables = {name: SCHEMAS[name].empty_table() for name in SCHEMAS if name != "run"}
    tables["control"] = _control(rng, counts["control"], parent)
    tables["decisions"] = _decisions(rng, counts["decisions"], parent, asked=seed == 1)
    tables["deliveries"] = _deliveries(rng, counts["deliveries"], counts["publications"] // 30)
    tables["publications"] = _publications(rng, counts["publications"], parent, tables["deliveries"])
    tables["operations"] = _operations(rng, max(1, int(OPERATIONS * rows)))
    tables["tables"] = _sizes(rng, parent)
    tables["links"] = to_table("links", {
        "broker": parent[1:], "neighbour": np.arange(1, BROKERS), "latency": np.ones(BROKERS - 1),
        "routed": np.ones(BROKERS - 1, bool),
    })  # fmt: skip
    tables["brokers"] = to_table("brokers", {
        "broker": np.arange(BROKERS), "name": [f"b{b}" for b in range(BROKERS)], "x": rng.random(BROKERS),
        "y": rng.random(BROKERS),
    })  # fmt: skip
    tables["run"] = _record(tables, epsilon, seed)
    return tables


def _record(tables: dict[str, pa.Table], epsilon: float, seed: int) -> pa.Table:
    point = {"covering.epsilon": epsilon}
    parameters = {
        "overlay": {"kind": "random-tree", "brokers": BROKERS}, "workload": {"attributes": 2},
        "routing": {"strategy": "covering", "mode": "lazy"}, "covering": {"method": "kdtree", "epsilon": epsilon},
        "matching": {"k": K},
    }  # fmt: skip
    values: dict[str, Any] = {column.name: "" if column.type == pa.string() else 0 for column in SCHEMAS["run"]}
    values |= {
        "run_id": f"e{epsilon:g}-s{seed}", "experiment": "made up", "seed": seed, "point": json.dumps(point),
        "parameters": json.dumps(parameters), "inputs": "{}", "versions": "{}", "engine": "none",
        "engine_reason": "made up",
        "trace_hash": trace.trace_hash(tables), "brokers": BROKERS, "links": BROKERS - 1,
        "subscriptions": tables["operations"].num_rows, "active": tables["operations"].num_rows,
        "may_miss": epsilon > 0, "geographic": False, "attributes": 2,
        **facts_of(parse({"name": "made up", **parameters}, "the benchmark")),
        "simple_entries": tables["operations"].num_rows * (BROKERS - 1),
        "events": int(tables["publications"].column("event").to_numpy().max(initial=0)) + 1,
        "control_messages": _over_links(tables["control"]), "event_messages": _over_links(tables["publications"]),
        **times_and_preloads(tables["publications"], tables["operations"]),
        "deliveries": tables["deliveries"].num_rows, "finished": 1e6, "wall_seconds": 1.0,
        "judged_share": 1.0, "file_digests": None,
    }  # fmt: skip
    return to_table("run", {name: [value] for name, value in values.items()})


def _over_links(table: pa.Table) -> int:
    return int((table.column("source").to_numpy() != CLIENT).sum())


def _links(rng: np.random.Generator, count: int, parent: Any, clients: float) -> tuple[Any, Any]:
    """Sources and targets: mostly both directions of the tree's links, some from clients."""
    child = rng.integers(1, BROKERS, count).astype(np.int32)
    up = rng.random(count) < 0.5
    source, target = np.where(up, child, parent[child]), np.where(up, parent[child], child)
    return np.where(rng.random(count) < clients, CLIENT, source), target


def _control(rng: np.random.Generator, count: int, parent: Any) -> pa.Table:
    source, target = _links(rng, count, parent, 0.05)
    time = np.sort(rng.random(count)) * 1e6
    kinds = pa.DictionaryArray.from_arrays((rng.random(count) < 0.2).astype(np.int8), ["subscribe", "unsubscribe"])
    return to_table("control", {
        "step": np.arange(count), "time": time, "sent": time - rng.lognormal(1.0, 0.5, count), "source": source,
        "target": target, "tree": np.full(count, -1), "kind": kinds, "subscription": _rising(count, 12),
        "operation": _rising(count, 12), "sequence": _rising(count, 200), "hop": rng.integers(0, 12, count),
        "waited": np.zeros(count), "service": np.zeros(count), "on_covering": np.zeros(count),
    })  # fmt: skip


def _decisions(rng: np.random.Generator, count: int, parent: Any, asked: bool) -> pa.Table:
    broker, neighbour = _links(rng, count, parent, 0.0)
    outcome = rng.choice(len(_CHECKS), count, p=[0.35, 0.55, 0.07, 0.03]).astype(np.int8)
    covered, audited = (outcome == 1) | (rng.random(count) < 0.05), rng.random(count) < 0.1
    return to_table("decisions", {
        "time": np.sort(rng.random(count)) * 1e6, "broker": broker, "neighbour": neighbour,
        "tree": np.full(count, -1), "subscription": _rising(count, 15), "operation": _rising(count, 15),
        "outcome": pa.DictionaryArray.from_arrays(outcome, _CHECKS.tolist()),
        "witness": np.where(outcome == 1, rng.integers(0, 1000, count), NOBODY),
        "probes": rng.geometric(0.05, count), "cubes": rng.geometric(0.2, count), "runs": rng.geometric(0.3, count),
        "candidates": rng.geometric(0.1, count), "bits": rng.integers(1, 5, count),
        "audited": audited.astype(np.int64), "past_stop": audited * rng.geometric(0.05, count),
        "volume": np.where(rng.random(count) < 0.3, 1.0, rng.random(count)), "capped": rng.random(count) < 0.01,
        "exact": pa.array(covered, mask=None if asked else outcome != 1), "at_home": rng.random(count) < 0.1,
        "pages": rng.integers(0, 40, count),
        "round_trips": rng.integers(0, 9, count), "took": rng.geometric(0.001, count) * WORK_UNIT,
    })  # fmt: skip


def _deliveries(rng: np.random.Generator, count: int, events: int) -> pa.Table:
    event = np.sort(rng.integers(0, max(1, events), count))
    hops = rng.integers(0, 10, count)
    latency = np.where(hops == 0, 0.0, hops * rng.lognormal(1.2, 0.4, count))
    return to_table("deliveries", {
        "event": event, "subscription": rng.integers(0, 50_000, count), "broker": rng.integers(0, BROKERS, count),
        "time": event * 30.0 + latency, "hops": hops, "latency": latency, "rank": rng.integers(1, K + 1, count),
        "score": np.round(rng.random(count), 3),
    })  # fmt: skip


def _publications(rng: np.random.Generator, count: int, parent: Any, deliveries: pa.Table) -> pa.Table:
    """Hops of events; the first hop of an event serves all of its deliveries."""
    source, target = _links(rng, count, parent, 0.03)
    event = np.sort(rng.integers(0, max(1, count // 30), count))
    first = np.unique(event, return_index=True)[1]
    served = np.zeros(count, dtype=np.int64)
    served[first] = np.bincount(deliveries.column("event").to_numpy(), minlength=event.max(initial=0) + 1)[event[first]]
    waited = np.where(rng.random(count) < 0.35, 0.0, rng.lognormal(-1.0, 1.0, count))
    sent = event * 30.0 + rng.lognormal(1.0, 0.5, count)
    return to_table("publications", {
        "step": np.arange(count), "event": event, "time": sent + waited + 1.0, "sent": sent, "source": source,
        "target": target, "hop": np.where(source == CLIENT, 0, rng.integers(1, 10, count)),
        "published": event * 30.0, "waited": waited, "served": served, "forwarded": rng.integers(0, 4, count),
        "matcher_entries": rng.integers(0, 2000, count), "matcher_nodes": rng.integers(0, 9, count),
        "tables_asked": rng.integers(0, 4, count), "compared": rng.integers(0, 4000, count),
        "sliced": rng.integers(0, 2, count), "blocks": rng.integers(0, 60, count),
        "service": np.zeros(count), "on_tables": np.zeros(count), "on_matching": np.zeros(count),
        "useful": rng.random(count) < 0.9,
    })  # fmt: skip


def _operations(rng: np.random.Generator, count: int) -> pa.Table:
    time = np.sort(rng.random(count)) * 1e6
    kinds = pa.DictionaryArray.from_arrays((rng.random(count) < 0.2).astype(np.int8), ["subscribe", "unsubscribe"])
    return to_table("operations", {
        "operation": np.arange(count), "kind": kinds, "subscription": np.arange(count),
        "broker": rng.integers(0, BROKERS, count), "time": time, "finished": time + rng.lognormal(2.0, 0.7, count),
        "messages": rng.geometric(0.1, count),
    })  # fmt: skip


def _sizes(rng: np.random.Generator, parent: Any) -> pa.Table:
    child = np.arange(1, BROKERS)
    broker, neighbour = np.concatenate([child, parent[1:]]), np.concatenate([parent[1:], child])
    times = np.arange(1.0, 21.0)
    return to_table("tables", {
        "time": np.repeat(times, len(broker)), "broker": np.tile(broker, 20), "neighbour": np.tile(neighbour, 20),
        "entries": rng.integers(0, 5000, 20 * len(broker)), "pruned": np.zeros(20 * len(broker)),
        "final": np.repeat(times == times[-1], len(broker)),
    })  # fmt: skip


def _rising(count: int, rows_each: int) -> Any:
    return np.arange(count) // rows_each
