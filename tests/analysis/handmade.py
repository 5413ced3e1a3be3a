"""Traces written by hand: small enough to check every number with a pencil, complete enough to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis.spark.records import times_and_preloads
from analysis.spark.runs import run_name
from broker.trace.schema import ALL, SCHEMAS, empty, to_table, with_column, write_run
from sim.experiment.config import parse
from sim.experiment.runner import facts_of

Rows = Sequence[Mapping[str, Any]]

# One value per column type, for the columns that a test does not care about.
_DEFAULTS = {"exact": None, "file_digests": None, "judged_share": 1.0}


def _default(name: str, kind: pa.DataType) -> Any:
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return ""
    if pa.types.is_boolean(kind):
        return False
    return 0


def rows_to_table(name: str, rows: Rows) -> pa.Table:
    """A trace table from rows that give only the columns they care about."""
    columns = {
        field.name: [row.get(field.name, _default(field.name, field.type)) for row in rows] for field in ALL[name]
    }
    return to_table(name, columns)


def parameters(point: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved experiment with the point's keys put in their places."""
    base: dict[str, Any] = {
        "name": "hand-made",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"attributes": 2, "subscriptions": 4},
        "routing": {"strategy": "covering", "mode": "lazy"},
        "covering": {"method": "zorder", "epsilon": 0.0},
        "matching": {"k": None},
    }
    for key, value in point.items():
        section, name = key.split(".")
        base[section][name] = value
    return base


def facts(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the strategy and the covering method of these parameters declare."""
    sections = {name: {k: v for k, v in given[name].items() if k != "mode"} for name in ("routing", "covering")}
    return facts_of(parse({"name": "hand-made", **sections}, "a test"))


def record(point: Mapping[str, Any] | None = None, seed: int = 1, **values: Any) -> dict[str, Any]:
    """The row of the `run` table."""
    point = point or {}
    return {
        "run_id": f"r{seed}",
        "experiment": "hand-made",
        "seed": seed,
        "point": json.dumps(point),
        "parameters": json.dumps(parameters(point)),
        **facts(parameters(point)),
        "versions": "{}",
        "engine": "simpy",
        "trace_hash": "00",
        "brokers": 3,
        "links": 2,
        "subscriptions": 4,
        "active": 4,
        "attributes": 2,
        "simple_entries": values.get("active", 4) * (values.get("brokers", 3) - 1),
        **values,
    }


LINE_BROKERS = [{"broker": i, "name": f"b{i}", "x": float(i), "y": 0.0} for i in range(3)]
LINE_LINKS = [
    {"broker": 0, "neighbour": 1, "latency": 2.0, "routed": True},
    {"broker": 1, "neighbour": 2, "latency": 3.0, "routed": True},
]


def write(out: Path, name: str, point: Mapping[str, Any] | None = None, seed: int = 1, **tables: Rows) -> Path:
    """Write one run on a line of three brokers; tables not given are empty. Returns its folder."""
    made = {table: empty(table) for table in SCHEMAS}
    made["brokers"] = rows_to_table("brokers", LINE_BROKERS)
    made["links"] = rows_to_table("links", LINE_LINKS)
    made["run"] = rows_to_table("run", [record(point, seed)])
    for table, rows in tables.items():
        made[table] = rows_to_table(table, rows)
    folder = out / "runs" / f"run={name}"
    made["run"] = with_column(made["run"], "run_id", [run_name(folder)] * len(made["run"]))
    for column, value in times_and_preloads(made["publications"], made["operations"]).items():
        made["run"] = with_column(made["run"], column, [value] * len(made["run"]))
    write_run(folder, made)
    return folder


def final(*entries: int) -> list[dict[str, Any]]:
    """Final samples of the tables on the line 0–1–2: 0←1, 1←0, 1←2, 2←1, and two local entries each."""
    links = [(0, 1), (1, 0), (1, 2), (2, 1)]
    rows = [
        {"time": 9.0, "broker": b, "neighbour": n, "entries": e, "pruned": e // 2, "final": True}
        for (b, n), e in zip(links, entries, strict=True)
    ]
    # An earlier sample and local entries, neither of which may be counted.
    rows.append({"time": 1.0, "broker": 0, "neighbour": 1, "entries": 100, "pruned": 50, "final": False})
    rows += [{"time": 9.0, "broker": b, "neighbour": -1, "entries": 2, "pruned": 0, "final": True} for b in range(3)]
    return rows
