"""The trace of a compiled run as Arrow tables, without a Python object per row.

The two long tables are kept in columns that Arrow takes as they are, block by block; the columns of the others are cut
out of arrays of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker import trace
from broker.network import overlay_rows
from coverlay import kernel
from sim.compiled import arrays as a
from sim.compiled import counters as c
from sim.compiled.records import KINDS, NO_SEARCH, OUTCOMES, SIMPLE

if TYPE_CHECKING:
    from sim.compiled.world import World


def tables_of(world: World) -> dict[str, pa.Table]:
    """Everything but the run record. One after the other: threads cost more than they save, so little is copied."""
    columns: dict[str, Callable[[], Mapping[str, Any]]] = {
        "tables": lambda: _sizes(world),
        "publications": lambda: _publications(world.get(a.PUBLICATIONS, c.PUBLICATIONS)),
        "deliveries": lambda: _plain("deliveries", world.get(a.DELIVERIES, c.DELIVERIES)),
        "operations": lambda: _operations(world),
        "faults": lambda: _faults(world.get(a.FAULTS, c.FAULTS)),
    }
    for name, rows in overlay_rows(world.overlay, world.topology.links).items():
        columns[name] = partial(_transposed, name, rows)

    blocks: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "control": lambda: [_control(part) for part in world.parts(a.CONTROL)],
        "decisions": lambda: _decisions(world),
    }

    def made(name: str) -> pa.Table:
        if name in blocks:
            return pa.concat_tables([trace.to_table(name, part) for part in blocks[name]()])
        found = columns[name]() if name in columns else {}
        return trace.to_table(name, found) if found else trace.empty(name)

    return {name: made(name) for name in trace.HASHED}


def _transposed(name: str, rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return dict(zip(trace.SCHEMAS[name].names, zip(*rows, strict=True), strict=True)) if rows else {}


def _plain(table: str, rows: NDArray[Any]) -> dict[str, Any]:
    """The columns that rows and table share, each copied once, into the type that Arrow then takes as it is."""
    fields = {field.name: field.type for field in trace.SCHEMAS[table] if not pa.types.is_dictionary(field.type)}
    shared = [name for name in rows.dtype.names or () if name in fields]
    return {name: np.ascontiguousarray(rows[name], dtype=fields[name].to_pandas_dtype()) for name in shared}


def _labels(codes: NDArray[Any], names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8, copy=False)), pa.array(names))


def _control(part: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {**part, "kind": _labels(part["kind"], KINDS)}


def _decisions(world: World) -> list[dict[str, Any]]:
    """Block by block; in simple routing what the searches found is everywhere the same, and made once."""
    parts = world.parts(a.DECISIONS)
    if world.n[c.STRATEGY] == SIMPLE:
        longest = max(len(part["time"]) for part in parts)
        same = _found({name: np.full(longest, NO_SEARCH[name]) for name in NO_SEARCH.dtype.names or ()})
        found = [{name: column[: len(part["time"])] for name, column in same.items()} for part in parts]
    else:
        found = [_found(search) for search in world.parts(a.SEARCHES)]
    return [{**part, **search, "at_home": part["at_home"] != 0} for part, search in zip(parts, found, strict=True)]


def _found(search: dict[str, NDArray[Any]]) -> dict[str, Any]:
    exact = search["exact"]
    return {
        **search,
        "outcome": _labels(search["outcome"], OUTCOMES),
        "runs": search["cubes"],  # the methods here merge no cubes into runs
        "capped": pa.array(search["capped"] != 0),
        "exact": pa.array(exact > 0, mask=exact < 0),
    }


def _sizes(world: World) -> dict[str, Any]:
    """Per sample and broker: its clients' subscriptions, then its neighbours' in ascending order."""
    wires, brokers = world.topology.wires, len(world.brokers)
    samples, columns = world.get(a.SAMPLES).shape
    owner = np.concatenate([np.arange(brokers), wires["target"]])
    neighbour = np.concatenate([np.full(brokers, trace.CLIENT), wires["source"]])
    order = np.lexsort((neighbour, owner))
    return {
        "time": np.repeat(world.get(a.SAMPLED_AT), columns),
        "broker": np.tile(owner[order], samples),
        "neighbour": np.tile(neighbour[order], samples),
        "entries": world.get(a.SAMPLES)[:, order].ravel(),
        "final": np.repeat(np.arange(samples) == samples - 1, columns),
    }


def _publications(rows: NDArray[Any]) -> dict[str, Any]:
    useful = rows["served"] > 0
    _mark_useful(useful, np.ascontiguousarray(rows["parent"]))
    return {**_plain("publications", rows), "useful": useful}


@kernel
def _mark_useful(useful: Any, parents: Any) -> None:
    """Did the hop, or one that followed from it, deliver? A message is processed after the one that caused it."""
    for row in range(len(parents) - 1, -1, -1):
        if useful[row] and parents[row] >= 0:
            useful[parents[row]] = True


def _operations(world: World) -> dict[str, Any]:
    rows = world.get(a.OPERATIONS, c.OPERATIONS)
    kind = rows["kind"].copy()
    kind[: len(world.timeline.preloaded)] = len(KINDS)  # they are the first requests
    labels = _labels(kind, (*KINDS, "preload"))
    return {**_plain("operations", rows), "operation": np.arange(len(rows)), "kind": labels}


def _faults(rows: NDArray[Any]) -> dict[str, Any]:
    """Only full queues lose anything here."""
    return {**_plain("faults", rows), "kind": _labels(np.zeros(len(rows), np.int8), ("queue-full",))}
