"""Many small covering indexes in flat arrays, for kernels that cannot call Python: index `s` is a number.

A compiled run has one index per directed link and group, thousands in all, asked and changed in the order in which
messages happen to arrive. Here the same methods as in `scan.py`, `packed.py`, `kdtree.py`, `auto.py` and `emulated.py`
work on lists of arrays, with the same searches (their kernels are called, not copied), the same slots, the same
rebuilds at the same moments, hence the same witness and the same number of probes. What is written again is the
bookkeeping around the searches that the classes do in Python: which slot is free, when the tail is full.

Per index: a row of `states`, and one array each in the lists `points` (dominance points by slot), `words` (packed),
`owners` (who is stored in a slot; −2 − next for a free one) and `tops` (maxima of the k-d tree, or volumes of packed).
`slot_of[owner]` is kept up to date. Words are always of 64 bits, so that one compiled version serves every d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, typed, types
from numpy.typing import NDArray

from covering import fields, kdtree, layered, packed
from covering.base import Floats, covered_slots
from covering.fields import Fields, covered_by_fields, pack_stored, scan_fields
from covering.kdtree import BUCKET, FRONT
from covering.packed import volumes
from covering.scan import scan_one

SCAN, PACKED, KDTREE, EMULATED = 0, 1, 2, 3

STATE = np.dtype(
    [
        ("kind", np.int32),  # the method at work; `auto` changes it
        ("used", np.int32),
        ("built", np.int32),
        ("dead", np.int32),
        ("held", np.int32),
        ("free", np.int32),  # the free slot to use next, −1: none
        ("fallbacks", np.int64),  # from here on: what `auto` remembers
        ("updates", np.int64),
        ("stay", np.int32),
        ("reviewed_checks", np.int64),
        ("reviewed_hits", np.int64),
        ("next_review", np.int64),
    ]
)

_ROOM = 16  # slots of the first allocation; doubled when full
_TAIL_LEAST, _TAIL_FACTOR, _DEAD_SHARE = layered._TAIL_LEAST, layered._TAIL_FACTOR, layered._DEAD_SHARE
_find_packed, _find_kdtree = packed._find, kdtree._find
_build, _fill, SCAN_BLOCK = kdtree._build, kdtree._fill, fields.SCAN_BLOCK


@dataclass
class Bank:
    """The arrays that the kernels below take; `lists` and `grid` are handed to them as tuples."""

    states: NDArray[Any]
    lists: tuple[Any, Any, Any, Any]  # points, words, owners, tops
    grid: tuple[Any, ...]  # offset, scale, guards of the words; domain; box of the dominance points
    first_kind: int

    @staticmethod
    def empty(count: int, domain: Floats, first_kind: int) -> Bank:
        dimensions = 2 * len(domain)
        offset, scale, guards = Fields.of(domain).kernel
        box = np.empty((dimensions, 2))
        box[0::2], box[1::2] = -domain[:, ::-1], domain
        states = np.zeros(count, STATE)
        states["kind"], states["free"] = first_kind, -1
        floats, words = types.float64[:, ::1], types.uint64[:, ::1]
        points = typed.List.empty_list(floats, count)
        packed_words = typed.List.empty_list(words, count)
        owners = typed.List.empty_list(types.int32[::1], count)
        tops = typed.List.empty_list(floats, count)
        _fill_lists(points, packed_words, owners, tops, count, dimensions, len(guards))
        grid = (offset, scale, guards.astype(np.uint64), np.ascontiguousarray(domain), box)
        return Bank(states, (points, packed_words, owners, tops), grid, first_kind)


@njit(cache=True)
def _fill_lists(points: Any, words: Any, owners: Any, tops: Any, count: int, dimensions: int, width: int) -> None:
    for _ in range(count):
        points.append(np.empty((0, dimensions)))
        words.append(np.empty((width, 0), np.uint64))
        owners.append(np.empty(0, np.int32))
        tops.append(np.empty((0, dimensions)))


@njit(cache=True, nogil=True)
def tail_limit(built: int) -> int:
    """As LayeredIndex.tail_limit."""
    return max(_TAIL_LEAST, int(_TAIL_FACTOR * np.sqrt(built)))


@njit(cache=True, nogil=True)
def search(states: Any, lists: Any, grid: Any, s: int, query: Floats, epsilon: float, one: Any) -> Any:
    """(slot that dominates the (1, D) query or −1, probes, fraction searched) in a non-empty index but EMULATED."""
    points_of, words_of, _, tops_of = lists
    offset, scale, guards, domain, _ = grid
    state = states[s]
    kind, built, used = state.kind, state.built, state.used
    if kind == SCAN:
        slot = scan_one(points_of[s], used, query[0])
        return slot, slot + 1 if slot >= 0 else used, 1.0
    if kind == PACKED:
        largest = tops_of[s].reshape(-1)
        slot, probes = _find_packed(
            (points_of[s], words_of[s], offset, scale, guards, domain, largest), built, used, query, one
        )
        return slot, probes, 1.0
    slot, probes, skipped, fallbacks = _find_kdtree(
        (points_of[s], words_of[s], tops_of[s], offset, scale, guards),
        built, used, kdtree.NODE_CAP, epsilon, query, one,
    )  # fmt: skip
    state.fallbacks += fallbacks
    return slot, probes, 1.0 - skipped


@njit(cache=True, nogil=True)
def exists(states: Any, lists: Any, grid: Any, s: int, query: Floats) -> bool:
    """Does any stored point dominate the (1, D) query? What the exact twin of an approximate search says."""
    points_of, words_of, _, _ = lists
    offset, scale, guards, _, _ = grid
    used = states[s].used
    if states[s].kind == SCAN:
        return scan_one(points_of[s], used, query[0]) >= 0
    wanted = np.empty(guards.shape[0], guards.dtype)
    fields.pack(query[0], offset, scale, guards, wanted)
    slot, _ = scan_fields(points_of[s], words_of[s], guards, query[0], wanted, 0, used)
    return slot >= 0


@njit(cache=True, nogil=True)
def add(states: Any, lists: Any, grid: Any, s: int, owner: int, query: Floats, slot_of: Any) -> None:
    """Store the (1, D) point under `owner`."""
    points_of, words_of, owners_of, _ = lists
    offset, scale, guards, _, _ = grid
    state = states[s]
    owners = owners_of[s]
    slot = state.free
    if slot >= 0:
        state.free = -2 - owners[slot]
    else:
        slot = state.used
        if slot == owners.shape[0]:
            _widen(lists, s, max(_ROOM, 2 * slot), slot)
            owners = owners_of[s]
        state.used += 1
    points = points_of[s]
    points[slot] = query[0]
    owners[slot] = owner
    slot_of[owner] = slot
    state.held += 1
    state.updates += 1
    kind = state.kind
    if kind != SCAN:
        pack_stored(points, slot, slot + 1, (offset, scale, guards), words_of[s])
        if kind != EMULATED and state.used - state.built > tail_limit(state.built):
            rebuild(states, lists, grid, s, slot_of)


@njit(cache=True, nogil=True)
def _widen(lists: Any, s: int, room: int, used: int) -> None:
    points_of, words_of, owners_of, _ = lists
    points = np.full((room, points_of[s].shape[1]), np.nan)
    words = np.zeros((words_of[s].shape[0], room), np.uint64)
    owners = np.empty(room, np.int32)
    points[:used] = points_of[s][:used]
    words[:, :used] = words_of[s][:, :used]
    owners[:used] = owners_of[s][:used]
    points_of[s], words_of[s], owners_of[s] = points, words, owners


@njit(cache=True, nogil=True)
def remove(states: Any, lists: Any, grid: Any, s: int, slot: int, slot_of: Any, first_kind: int) -> None:
    """Forget what is in a slot. An emptied index begins anew, as FilterIndex drops an empty partition."""
    points_of, words_of, owners_of, _ = lists
    guards = grid[2]
    state = states[s]
    state.held -= 1
    state.updates += 1
    if state.held == 0:
        state.kind = first_kind
        state.used, state.built, state.dead, state.free = 0, 0, 0, -1
        state.fallbacks, state.updates, state.stay = 0, 0, 0
        return
    if state.kind != SCAN:
        words_of[s][:, slot] = guards  # passes for no query
    points_of[s][slot] = np.nan
    if slot >= state.built:
        owners_of[s][slot] = -2 - state.free
        state.free = slot
        return
    owners_of[s][slot] = -1
    state.dead += 1
    if state.dead > max(_TAIL_LEAST, _DEAD_SHARE * state.built):
        rebuild(states, lists, grid, s, slot_of)


@njit(cache=True, nogil=True)
def covered(states: Any, lists: Any, grid: Any, s: int, query: Floats) -> Any:
    """All slots whose point the (1, D) query dominates."""
    points_of, words_of, _, _ = lists
    offset, scale, guards, _, _ = grid
    used = states[s].used
    if states[s].kind == SCAN:
        return covered_slots(points_of[s], used, query[0])
    return covered_by_fields(points_of[s], words_of[s], used, (offset, scale, guards), query[0])


@njit(cache=True, nogil=True)
def compact(states: Any, lists: Any, s: int, slot_of: Any) -> None:
    """Move what is stored to the front, in slot order, as one tail without a static part."""
    points_of, words_of, owners_of, _ = lists
    state = states[s]
    held = state.held
    points = np.full((max(held, 1), points_of[s].shape[1]), np.nan)
    owners = np.empty(max(held, 1), np.int32)
    count = 0
    for slot in range(state.used):
        if owners_of[s][slot] >= 0:
            points[count] = points_of[s][slot]
            owners[count] = owners_of[s][slot]
            slot_of[owners[count]] = count
            count += 1
    points_of[s], owners_of[s] = points, owners
    words_of[s] = np.zeros((words_of[s].shape[0], max(held, 1)), np.uint64)
    state.used, state.built, state.dead, state.free = held, 0, 0, -1


@njit(cache=True, nogil=True)
def rebuild(states: Any, lists: Any, grid: Any, s: int, slot_of: Any) -> None:
    """Everything into the static part, in the order of the method: LayeredIndex._rebuild."""
    points_of, words_of, owners_of, tops_of = lists
    offset, scale, guards, domain, box = grid
    compact(states, lists, s, slot_of)
    state = states[s]
    held = state.held
    points, owners = points_of[s], owners_of[s]
    sizes = volumes(points, domain)
    order = np.argsort(-sizes, kind="mergesort")  # stable
    if state.kind == KDTREE:
        rest = order[FRONT:].copy()
        order[FRONT:] = rest[_build(_taken(points, rest), box)]
    else:
        tops_of[s] = sizes[order[::SCAN_BLOCK]].reshape((-1, 1))
    points_of[s] = points = _taken(points, order)
    owners_of[s] = owners = owners[order]
    for slot in range(held):
        slot_of[owners[slot]] = slot
    state.built = held
    pack_stored(points, 0, held, (offset, scale, guards), words_of[s])
    if state.kind == KDTREE:
        buckets = (max(0, held - FRONT) + BUCKET - 1) // BUCKET
        size = 1
        while size < buckets:
            size *= 2
        maxima = np.full((2 * size if buckets else 1, points.shape[1]), -np.inf)
        for slot in range(held):
            for j in range(points.shape[1]):
                maxima[0, j] = max(maxima[0, j], points[slot, j])
        if buckets:
            _fill(points[FRONT:held], maxima, 1, 0, buckets)
        tops_of[s] = maxima


@njit(cache=True, nogil=True)
def _taken(points: Floats, order: Any) -> Floats:
    rows = np.empty((order.shape[0], points.shape[1]))
    for i in range(order.shape[0]):
        rows[i] = points[order[i]]
    return rows
