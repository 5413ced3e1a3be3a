"""The trace of a compiled run as Arrow tables, without a Python object per row.

Kernels write rows into arrays of a limited size. When one is full, `Trace.take` cuts the columns out of the rows, which
are still in a cache, and the arrays are used again. Deliveries of events that are neither kept nor judged are added up
at once (broker/trace/sampling.py): a large run has a hundred million.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker import trace
from broker.network import overlay_rows
from broker.trace.sampling import merged, split
from broker.trace.schema import QUEUE_FULL
from coverlay import kernel
from routing.overlay.graph import Overlay
from sim.compiled.records import KINDS, OUTCOMES
from sim.compiled.state import Arrays
from sim.compiled.topology import Topology
from sim.workloads.arrivals import Timeline


class Trace:
    """What kernels have written so far."""

    def __init__(self, arrays: Arrays, held: float) -> None:
        self._arrays, self._held = arrays, held
        self._rest = [trace.empty("deliveries_rest")]
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in _COLUMNS}
        self._parents: list[NDArray[np.int64]] = []  # of publications

    def take(self, decisions: NDArray[Any]) -> None:
        """Take the rows out of the arrays; kernels may have replaced that of `decisions`."""
        run = self._arrays.run
        for name, columns in _COLUMNS.items():
            written = decisions if name == "decisions" else getattr(self._arrays, name)
            rows = written[: int(run[name][0])]
            if not len(rows):
                continue
            table = trace.to_table(name, columns(rows))
            if name == "deliveries" and self._held < 1.0:
                table, rest = split(name, table, self._held)
                self._rest.append(rest)
            if name == "publications":
                self._parents.append(rows["parent"].copy())
                run["publications_before"] += len(rows)
            self._tables[name].append(table)
            run[name] = 0

    def tables(self) -> dict[str, pa.Table]:
        found = {name: pa.concat_tables(parts) for name, parts in self._tables.items() if parts}
        found["deliveries_rest"] = merged("deliveries", self._rest)
        if "publications" in found:
            found["publications"] = _with_useful(found["publications"], np.concatenate(self._parents))
        return found


class Finished(Protocol):
    """What an engine has at the end of a run."""

    trace: Trace
    arrays: Arrays
    overlay: Overlay
    topology: Topology
    timeline: Timeline


def tables_of(engine: Finished) -> dict[str, pa.Table]:
    """Everything but the run record."""
    found = engine.trace.tables()
    found["tables"] = trace.to_table("tables", _sizes(engine))
    found["operations"] = trace.to_table("operations", _operations(engine))
    found["published"] = trace.to_table("published", _columns(engine.arrays.published))
    for name, rows in overlay_rows(engine.overlay, engine.topology.links).items():
        if rows:
            columns = dict(zip(trace.SCHEMAS[name].names, zip(*rows, strict=True), strict=True))
            found[name] = trace.to_table(name, columns)
    return {name: found[name] if name in found else trace.empty(name) for name in (*trace.HASHED, "published")}


def _columns(rows: NDArray[Any]) -> dict[str, Any]:
    """Columns, each copied once; they have the types of the schema, so Arrow takes them as they are."""
    return {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}


def _labels(codes: NDArray[Any], names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names))


def _decisions(rows: NDArray[Any]) -> dict[str, Any]:
    columns = _columns(rows)
    return {
        **columns,
        "outcome": _labels(rows["outcome"], OUTCOMES),
        "runs": columns["cubes"],  # the methods here merge no cubes into runs
        "audited": np.zeros(len(rows), np.int64),  # nor do they audit any search
        "past_stop": np.zeros(len(rows), np.int64),
        "exact": pa.array(rows["exact"] > 0, mask=rows["exact"] < 0),
    }


def _sizes(engine: Finished) -> dict[str, Any]:
    """Per sample and broker: its clients' subscriptions, then its neighbours' in ascending order."""
    wires, brokers, sizes = engine.arrays.wires, engine.overlay.brokers, engine.arrays.samples
    samples, columns = len(sizes), brokers + len(wires)
    pruned = np.concatenate([np.zeros((samples, brokers), np.int64), sizes[:, columns:]], axis=1)
    owner = np.concatenate([np.arange(brokers), wires["target"]])
    neighbour = np.concatenate([np.full(brokers, trace.CLIENT), wires["source"]])
    order = np.lexsort((neighbour, owner))
    return {
        "time": np.repeat(engine.arrays.sampled_at, columns),
        "broker": np.tile(owner[order], samples),
        "neighbour": np.tile(neighbour[order], samples),
        "entries": sizes[:, order].ravel(),
        "pruned": pruned[:, order].ravel(),
        "final": np.repeat(np.arange(samples) == samples - 1, columns),
    }


def _with_useful(publications: pa.Table, parents: NDArray[Any]) -> pa.Table:
    """So far only hops that delivered themselves are useful: add those that led to them."""
    at = publications.schema.get_field_index("useful")
    useful = np.array(publications.column(at).to_numpy())
    _mark_useful(useful, parents)
    return publications.set_column(at, publications.schema.field(at), pa.array(useful))


@kernel
def _mark_useful(useful: Any, parents: Any) -> None:
    """Did the hop, or one that followed from it, deliver? A message is processed after the one that caused it."""
    for row in range(len(parents) - 1, -1, -1):
        if useful[row] and parents[row] >= 0:
            useful[parents[row]] = True


def _operations(engine: Finished) -> dict[str, Any]:
    rows = engine.arrays.operations[: engine.arrays.run["operations"][0]]
    kind = rows["kind"].copy()
    kind[: len(engine.timeline.preloaded)] = len(KINDS)  # they are the first requests
    labels = _labels(kind, (*KINDS, "preload"))
    return {**_columns(rows), "operation": np.arange(len(rows)), "kind": labels}


# What kernels write, by the table it becomes.
_COLUMNS: dict[str, Callable[[NDArray[Any]], dict[str, Any]]] = {
    "control": lambda rows: {**_columns(rows), "kind": _labels(rows["kind"], KINDS)},
    "decisions": _decisions,
    "deliveries": _columns,
    "faults": lambda rows: {**_columns(rows), "kind": [QUEUE_FULL] * len(rows)},  # nothing else is lost here
    "publications": lambda rows: {**_columns(rows), "useful": rows["served"] > 0},
}
