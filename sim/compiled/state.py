"""The state of a run: arrays of records (records.py), all in one structure that every kernel takes whole.

A kernel takes a `world` as its first argument, `w`, and writes `w.nodes[i].route`. It is one word to pass on, and a
kernel can put a longer array in the place of a full one (topk/kernels/structures.py). Python keeps the arrays that are
never replaced and asks `growing` for the others.

An array is replaced only between two messages (`nodes`), or by the one function that fills it. So an array that was
read from the world, and a record such as `node = w.nodes[i]`, stay valid while a message is processed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, typeof, types
from numpy.typing import NDArray

from coverlay import kernel
from sim.compiled import records as r
from topk.kernels.structures import kept, put_fields, structure

Array = NDArray[Any]


class Arrays(NamedTuple):
    """What a world is made of."""

    run: Array  # one record: settings, counters, the time
    # The overlay:
    wires: Array
    routes: Array
    learn_first: Array  # per part: routes that lead on from it
    learn: Array
    near_first: Array  # per part: its neighbours
    near: Array
    brokers: Array
    # Subscriptions, events, and what clients do:
    subscriptions: Array
    points: Array  # (−lo, hi) of each attribute: one box contains another where no coordinate is smaller
    mentioned: Array
    weights: Array
    named: Array  # the attributes that a subscription mentions, −1 after the last
    local_rows: Array  # the clients' subscriptions: the address of a LocalRows per broker
    events: Array
    timeline: Array
    operations: Array
    # Messages:
    messages: Array
    calendar: Array
    draws: Array  # random numbers drawn in advance, per wire
    service_draws: Array  # and per broker
    prices: Array  # one record
    search_prices: Array  # by SEARCHES
    # Ledgers and tables:
    nodes: Array
    keys: Array  # identity routing: (route, class) of a node
    equal: Array  # hash table from these to the node that was sent (covering/slot_table.py)
    entry_node: Array  # tables, place by place: whose it is, −1 for one that left
    link_rows: Array  # their bounds: the address of a LinkRows per route
    updates: Array  # of ledgers, that are to be made: one, or many while loading
    passed: Array  # while loading, see bulk.py
    # Covering indexes, see covers.py:
    chains: Array
    indexes: Array
    index_points: Array
    index_words: Array
    index_owners: Array
    index_tops: Array
    index_top_words: Array
    grid: Array
    guards: Array
    domain: Array
    box: Array
    # The trace:
    control: Array
    decisions: Array
    publications: Array
    deliveries: Array
    faults: Array
    sample_due: Array
    sampled_at: Array
    samples: Array
    no_nodes: Array  # an empty one


class Growing(NamedTuple):
    """The arrays that kernels replace by longer ones, of those that Python looks at."""

    nodes: Array
    entry_node: Array
    decisions: Array


def _rows(kind: Any, dimensions: int = 1) -> types.Array:
    return types.Array(from_dtype(np.dtype(kind)), dimensions, "C")


_MATRIX, _NUMBERS, _INTS = _rows(np.float64, 2), _rows(np.float64), _rows(np.int64)
_TYPES = {
    "run": _rows(r.RUN), "wires": _rows(r.WIRE), "routes": _rows(r.ROUTE), "learn_first": _INTS, "learn": _INTS,
    "near_first": _INTS, "near": _rows(r.NEAR), "brokers": _rows(r.BROKER),
    "subscriptions": _rows(r.SUBSCRIPTION), "points": _MATRIX, "mentioned": _rows(np.bool_, 2), "weights": _MATRIX,
    "named": _rows(np.int32, 2),
    "local_rows": _INTS, "link_rows": _INTS,
    "events": _MATRIX, "timeline": _rows(r.ACT), "operations": _rows(r.OPERATION),
    "messages": _rows(r.MESSAGE), "calendar": _rows(r.CALL), "draws": _MATRIX, "service_draws": _MATRIX,
    "prices": _rows(r.PRICES), "search_prices": _rows(r.SEARCH_PRICE),
    "nodes": _rows(r.NODE), "keys": _INTS, "equal": _rows(np.int32), "entry_node": _rows(np.int32),
    "updates": _rows(r.UPDATE), "passed": _rows(r.PASSED),
    "chains": _rows(r.CHAIN), "indexes": _rows(r.INDEX), "index_points": _MATRIX, "index_words": _rows(np.uint64),
    "index_owners": _rows(np.int32), "index_tops": _MATRIX, "index_top_words": _rows(np.uint64), "grid": _MATRIX,
    "guards": _rows(np.uint64), "domain": _MATRIX, "box": _MATRIX,
    "control": _rows(r.CONTROL), "decisions": _rows(r.DECISION), "publications": _rows(r.PUBLICATION),
    "deliveries": _rows(r.DELIVERY), "faults": _rows(r.FAULT), "sample_due": _NUMBERS, "sampled_at": _NUMBERS,
    "samples": _rows(np.int64, 2), "no_nodes": _INTS,
}  # fmt: skip


World, _ = structure("World", **{name: _TYPES[name] for name in Arrays._fields})


def world_of(arrays: Arrays) -> Any:
    """A world made of arrays, which must be of the types above: others would compile everything again."""
    for name, array in zip(Arrays._fields, arrays, strict=True):
        assert typeof(array) == _TYPES[name], f"{name} is {typeof(array)}, not {_TYPES[name]}"
    world = World()
    _put(world, arrays)
    return world


@kernel
def _put(w: Any, arrays: Any) -> None:
    put_fields(w, arrays)


@kernel
def growing(w: Any) -> Any:
    return Growing(kept(w, "nodes"), kept(w, "entry_node"), kept(w, "decisions"))


inner = kernel(inner=True)  # only other kernels call it
# For one that has one caller, or is tiny: its source becomes part of the caller's. A kernel that is called is compiled
# by itself, and once more as part of each caller, and of the callers of these.
inlined = kernel(inner=True, inline="always")

ONE_MORE = np.int64(1)


@inner
def longer(rows: Any, needed: int) -> Any:
    """A copy with at least `needed` rows, at least twice as many as before, and one more."""
    copy = np.empty(max(needed, 2 * len(rows) + 1), rows.dtype)
    for i in range(len(rows)):
        copy[i] = rows[i]
    return copy
