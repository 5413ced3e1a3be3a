"""The state of a run: arrays of records (records.py), all in one structure that every kernel takes whole.

A kernel takes a `world` as its first argument, `w`, and writes `w.nodes[i].route`. It is one word to pass on, and a
kernel can put a longer array in the place of a full one: numba's `structref`. Python keeps the arrays that are never
replaced and asks `growing` for the others. Reading an array from a world counts a reference, which takes as long as ten
comparisons: a loop that is hot reads its arrays before it begins (tables.py).

An array is replaced only between two messages (`nodes`), or by the one function that fills it. So an array that was
read from the world, and a record such as `node = w.nodes[i]`, stay valid while a message is processed.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numba import from_dtype, typeof, types
from numba.experimental import structref
from numpy.typing import NDArray

from coverlay import kernel
from sim.compiled import records as r

Array = NDArray[Any]
Ints = Annotated[Array, np.int64]
Numbers = Annotated[Array, np.float64]
Matrix = Annotated[Array, np.float64, 2]


class Arrays(NamedTuple):
    """What a world is made of; an annotation gives the type of the elements and the number of dimensions (or 1)."""

    run: Annotated[Array, r.RUN]  # one record: settings, counters, the time
    # The overlay:
    wires: Annotated[Array, r.WIRE]
    routes: Annotated[Array, r.ROUTE]
    learn_first: Ints  # per part: routes that lead on from it
    learn: Ints
    near_first: Ints  # per part: its neighbours
    near: Annotated[Array, r.NEAR]
    brokers: Annotated[Array, r.BROKER]
    # Subscriptions, events, and what clients do:
    subscriptions: Annotated[Array, r.SUBSCRIPTION]
    points: Matrix  # (−lo, hi) of each attribute: one box contains another where no coordinate is smaller
    residue_first: Ints  # see residues.py: of each residue its first term; of each term …
    residue_attribute: Ints
    residue_listed: Ints  # 1: the values are the allowed ones, 0: they are excluded
    residue_value_first: Ints
    residue_values: Numbers
    integral: Annotated[Array, np.bool_]  # attributes that take only whole values
    filters: Annotated[Array, r.FILTER]  # in both orders, see filters.py; of each …
    named: Annotated[Array, np.int32, 2]  # … the attributes that it mentions, −1 after the last, and of these …
    lo: Matrix
    hi: Matrix
    weights: Matrix
    events: Matrix
    timeline: Annotated[Array, r.ACT]
    operations: Annotated[Array, r.OPERATION]
    # Messages:
    messages: Annotated[Array, r.MESSAGE]
    calendar: Annotated[Array, r.CALL]
    draws: Matrix  # random numbers drawn in advance, per wire
    service_draws: Matrix  # and per broker
    prices: Annotated[Array, r.PRICES]  # one record
    search_prices: Annotated[Array, r.SEARCH_PRICE]  # by SEARCHES
    # Ledgers and tables:
    nodes: Annotated[Array, r.NODE]
    keys: Ints  # identity routing: (route, class) of a node
    equal: Annotated[Array, np.int32]  # hash table from these to the node that was sent (covering/slot_table.py)
    tables: Annotated[Array, r.TABLE]  # per broker its clients', then per route that at its target
    entries: Annotated[Array, np.int32]  # the filters in each table, ascending
    found_ids: Ints  # the best of a broker's clients for the current event
    found_scores: Numbers
    updates: Annotated[Array, r.UPDATE]  # pending updates of ledgers: one, or many while loading
    passed: Annotated[Array, r.PASSED]  # while loading, see bulk.py
    # Covering indexes, see covers.py:
    chains: Annotated[Array, r.CHAIN]
    indexes: Annotated[Array, r.INDEX]
    index_points: Matrix
    index_words: Annotated[Array, np.uint64]
    index_owners: Annotated[Array, np.int32]
    index_tops: Matrix
    index_top_words: Annotated[Array, np.uint64]
    grid: Matrix
    guards: Annotated[Array, np.uint64]
    domain: Matrix
    box: Matrix
    # The trace:
    control: Annotated[Array, r.CONTROL]
    decisions: Annotated[Array, r.DECISION]
    publications: Annotated[Array, r.PUBLICATION]
    deliveries: Annotated[Array, r.DELIVERY]
    faults: Annotated[Array, r.FAULT]
    published: Annotated[Array, r.PUBLISHED]  # all events of the run
    sample_due: Numbers
    sampled_at: Numbers
    samples: Annotated[Array, np.int64, 2]
    no_nodes: Ints  # empty


class GrowingArrays(NamedTuple):
    """The arrays that kernels replace by longer ones, of those that Python looks at."""

    nodes: Array
    decisions: Array


def _rows(kind: Any, dimensions: int = 1) -> types.Array:
    return types.Array(from_dtype(np.dtype(kind)), dimensions, "C")


_TYPES = {name: _rows(*hint.__metadata__) for name, hint in get_type_hints(Arrays, include_extras=True).items()}


@structref.register
class WorldType(types.StructRef):
    """Named by a digest; otherwise the types of fifty arrays would be part of every symbol of the compiled code."""

    def __init__(self, fields: Any) -> None:
        super().__init__(fields)
        self.name = f"World-{hashlib.sha256(repr(fields).encode()).hexdigest()[:16]}"


class World(structref.StructRefProxy):
    """A world that Python holds and passes to kernels."""


structref.define_proxy(World, WorldType, list(Arrays._fields))


def world_of(arrays: Arrays) -> World:
    """A world made of arrays, which must be of the types above: others would compile everything again."""
    for name, array in zip(Arrays._fields, arrays, strict=True):
        assert typeof(array) == _TYPES[name], f"{name} is {typeof(array)}, not {_TYPES[name]}"
    return World(*arrays)


@kernel
def growing(w: Any) -> Any:
    return GrowingArrays(w.nodes, w.decisions)


inner = kernel(inner=True)  # only other kernels call it
# For a kernel with one caller, or a tiny one: its source becomes part of the caller's. A kernel that is called is
# compiled by itself, and again as part of each caller and of their callers.
inlined = kernel(inner=True, inline="always")

ONE_MORE = np.int64(1)
