"""Many small covering indexes in flat arrays, for kernels that cannot call Python: index `s` is a number.

A compiled run has one index per directed link and group, thousands in all, asked and changed in the order in which
messages happen to arrive. Here the same methods as in `scan.py`, `packed.py`, `kdtree.py`, `auto.py` and `emulated.py`
work on regions of a few large arrays, with the same searches (their kernels are called, not copied), the same slots,
the same rebuilds at the same moments, hence the same witness and the same number of probes. What is written again is
the bookkeeping around the searches that the classes do in Python: which slot is free, when the tail is full.

Per index: a row of states, which says where its region begins and how much room it has, and regions of `points`
(dominance points by slot), `words` (packed, always of 64 bits so that one compiled version serves every d), `owners`
(who is in a slot; −2 − next for a free one) and `tops` (maxima of the k-d tree, and their words, or volumes of packed).
`slot_of[owner]` is kept up to date. Regions never grow in the middle of something: `reserve` comes first, and when it
says no, Bank.grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from covering import fields, kdtree, layered, packed
from covering.base import Floats, covered_slots
from covering.fields import Fields, covered_by_fields, pack_stored, scan_fields
from covering.kd_build import BUCKET, bucket_order, fill_extremes
from covering.kdtree import FRONT
from covering.memory import WORDS, Memory, call, linkable, matrix_of, on_stack, pointer, rows_of, words_at
from covering.packed import volumes
from covering.scan import scan_one
from coverlay import kernel

SCAN, PACKED, KDTREE, EMULATED = 0, 1, 2, 3

STATE = np.dtype(
    [
        ("row", np.int64),  # its region of points, words and owners
        ("top", np.int64),  # its region of tops
        ("room", np.int32),
        ("tops", np.int32),
        ("kind", np.int32),  # the method at work; `auto` changes it
        ("used", np.int32),
        ("built", np.int32),
        ("dead", np.int32),
        ("held", np.int32),
        ("free", np.int32),  # the free slot to use next, −1: none
        ("fallbacks", np.int64),  # from here on: what `auto` remembers
        ("updates", np.int64),
        ("reviewed_checks", np.int64),
        ("reviewed_hits", np.int64),
        ("next_review", np.int64),
        ("stay", np.int64),
    ]
)

_STATES, _POINTS, _WORDS, _OWNERS, _TOPS, _TOP_WORDS, _SLOTS, _GRID, _GUARDS, _DOMAIN, _BOX = range(11)
_COUNT = 11
_END = WORDS * _COUNT  # the bank's own words: rows and tops in use, the first method of an index, kernels
_USED, _TOPS_USED, _FIRST_KIND, _REBUILD, _RESETTLE = (_END + i for i in range(5))
_LEAST_ROOM = 8  # slots of the first region; doubled when full
_TAIL_LEAST, _TAIL_FACTOR, _DEAD_SHARE = layered._TAIL_LEAST, layered._TAIL_FACTOR, layered._DEAD_SHARE
_NODE_CAP, _STARTS, SCAN_BLOCK = kdtree.NODE_CAP, kdtree.LEVELS + 1, fields.SCAN_BLOCK
_find_packed, _find_kdtree = packed._find, kdtree._find

states_of, slots_of = rows_of(_STATES, STATE), rows_of(_SLOTS, np.int32)
_grid, _guards = matrix_of(_GRID, np.float64), rows_of(_GUARDS, np.uint64)
_domain, _box = matrix_of(_DOMAIN, np.float64), matrix_of(_BOX, np.float64)


class Bank:
    """The owner of the arrays; kernels take the address of their table."""

    def __init__(self, count: int, domain: Floats, first_kind: int) -> None:
        offset, scale, guards = Fields.of(domain).kernel
        box = np.empty((2 * len(domain), 2))
        box[0::2], box[1::2] = -domain[:, ::-1], domain
        states = np.zeros(count, STATE)
        states["kind"], states["free"] = first_kind, -1
        self.memory = Memory(_COUNT, extra=5)
        self.memory.link(_REBUILD, _rebuild)
        self.memory.link(_RESETTLE, _resettle)
        self.table = self.memory.table
        self.table[_FIRST_KIND] = first_kind
        grid, bounds = np.stack([offset, scale]), np.ascontiguousarray(domain, dtype=np.float64)
        given = (grid, guards.astype(np.uint64), bounds, box)
        for place, array in zip((_GRID, _GUARDS, _DOMAIN, _BOX), given, strict=True):
            self.memory.put(place, array)
        self.memory.put(_STATES, states)
        self._allocate(0, 0)
        self.keep_slots(np.empty(1, np.int32))

    @property
    def states(self) -> NDArray[Any]:
        states: NDArray[Any] = self.memory.get(_STATES)
        return states

    @property
    def slots(self) -> NDArray[np.int32]:
        slots: NDArray[np.int32] = self.memory.get(_SLOTS)
        return slots

    def keep_slots(self, slot_of: NDArray[np.int32]) -> None:
        """The array in which the slot of every owner is kept."""
        self.memory.put(_SLOTS, slot_of)

    def grow(self, needed: int) -> None:
        """Make room for `needed` more slots, and close the gaps that outgrown regions left."""
        old = self.table.copy()
        kept = [self.memory.get(place) for place in (_POINTS, _WORDS, _OWNERS, _TOPS, _TOP_WORDS)]  # until copied
        states = self.states
        rows, tops = int(states["room"].sum()), int(states["tops"].sum())
        # Four times, since a region that doubles leaves a gap of half its new size: twice would be full when half of
        # them have doubled, and what is never written takes no memory.
        self._allocate(4 * rows + needed, 4 * tops + int(_tops_for(needed)) + len(states))
        _move(old.ctypes.data, self.memory.address)
        del kept

    def _allocate(self, rows: int, tops: int) -> None:
        dimensions, words = len(self.memory.get(_BOX)), len(self.memory.get(_GUARDS))
        self.memory.put(_POINTS, np.empty((rows, dimensions)))
        self.memory.put(_WORDS, np.empty(rows * words, np.uint64))
        self.memory.put(_OWNERS, np.empty(rows, np.int32))
        self.memory.put(_TOPS, np.empty((tops, dimensions)))
        self.memory.put(_TOP_WORDS, np.empty(tops * words, np.uint64))
        self.table[_USED] = self.table[_TOPS_USED] = 0


@kernel
def fields_in(b: int) -> Any:
    """Offsets, scales and guards: what Fields.kernel hands to kernels."""
    grid = _grid(b)
    return grid[0], grid[1], _guards(b)


@kernel
def points_in(b: int, s: int) -> Any:
    """The region of dominance points of index s."""
    state, width = states_of(b)[s], words_at(b)[WORDS * _POINTS + 2]
    return carray(pointer(words_at(b)[WORDS * _POINTS] + 8 * width * state.row), (state.room, width), np.float64)


@kernel
def words_in(b: int, s: int) -> Any:
    state, width = states_of(b)[s], words_at(b)[WORDS * _GUARDS + 1]
    return carray(pointer(words_at(b)[WORDS * _WORDS] + 8 * width * state.row), (width, state.room), np.uint64)


@kernel
def owners_in(b: int, s: int) -> Any:
    state = states_of(b)[s]
    return carray(pointer(words_at(b)[WORDS * _OWNERS] + 4 * state.row), (state.room,), np.int32)


@kernel
def _tops_in(b: int, s: int) -> Any:
    state, width = states_of(b)[s], words_at(b)[WORDS * _TOPS + 2]
    return carray(pointer(words_at(b)[WORDS * _TOPS] + 8 * width * state.top), (state.tops, width), np.float64)


@kernel
def _top_words_in(b: int, s: int, nodes: int) -> Any:
    state, width = states_of(b)[s], words_at(b)[WORDS * _GUARDS + 1]
    return carray(pointer(words_at(b)[WORDS * _TOP_WORDS] + 8 * width * state.top), (width, nodes), np.uint64)


@kernel
def _level_starts(count: int, room: Any) -> Any:
    """kd_build.level_starts, in a kernel, written into `room`: _STARTS numbers suffice."""
    room[0], levels = 0, 0
    while count > BUCKET or levels == 0:
        count = (count + BUCKET - 1) // BUCKET
        room[levels + 1] = room[levels] + count
        levels += 1
    return room[: levels + 1]


@kernel
def _tops_for(room: int) -> int:
    """Rows that suffice for the tree over so many slots: a node per bucket, per 64 buckets, …, and one for all."""
    return room // (BUCKET - 1) + 8


@kernel
def next_room(b: int, s: int, more: int) -> int:
    """The room that index s gets when `more` entries do not fit."""
    state = states_of(b)[s]
    return max(_LEAST_ROOM, 2 * np.int64(state.room), state.used + more)


@kernel
def reserve(b: int, s: int, more: int) -> bool:
    """Make sure that index s can take `more` entries; False if the arrays have to grow first."""
    state = states_of(b)[s]
    if state.used + more <= state.room:
        return True
    room = next_room(b, s, more)
    tops = _tops_for(room)
    own = words_at(b)
    if own[_USED] + room > own[WORDS * _POINTS + 1] or own[_TOPS_USED] + tops > own[WORDS * _TOPS + 1]:
        return False
    call(b, _RESETTLE, s, room, tops, b)
    return True


@linkable
def _resettle(b: int, s: int, room: int, tops: int, source: int) -> int:
    """Move a region to the end of all, possibly from the arrays of another table, with so much room."""
    own, state = words_at(b), states_of(b)[s]
    points, words, owners, maxima = points_in(source, s), words_in(source, s), owners_in(source, s), _tops_in(source, s)
    nodes = _level_starts(max(0, state.built - FRONT), np.empty(_STARTS, np.int64))[-1]
    top_words = _top_words_in(source, s, nodes)
    state.row, state.room, state.top, state.tops = own[_USED], room, own[_TOPS_USED], tops
    own[_USED] += room
    own[_TOPS_USED] += tops
    used = state.used
    points_in(b, s)[:used] = points[:used]
    words_in(b, s)[:, :used] = words[:, :used]
    owners_in(b, s)[:used] = owners[:used]
    here = _tops_in(b, s)
    for i in range(maxima.shape[0]):
        here[i] = maxima[i]
    _top_words_in(b, s, nodes)[:] = top_words[:, :nodes]
    return 0


@kernel
def _move(old: int, b: int) -> None:
    states = states_of(b)
    for s in range(len(states)):
        if states[s].room:
            call(b, _RESETTLE, s, np.int64(states[s].room), np.int64(states[s].tops), old)


@kernel
def tail_limit(built: int) -> int:
    """As LayeredIndex.tail_limit."""
    return max(_TAIL_LEAST, int(_TAIL_FACTOR * np.sqrt(built)))


@kernel(cached=False, inline="always")  # for one caller: compiled once less
def search(b: int, s: int, query: Floats, epsilon: float) -> Any:
    """(slot that dominates the (1, D) query or −1, probes, fraction searched) in a non-empty index but EMULATED."""
    state = states_of(b)[s]
    kind, built, used = state.kind, np.int64(state.built), np.int64(state.used)
    points = points_in(b, s)
    if kind == SCAN:
        slot = scan_one(points, used, query[0])
        return slot, slot + 1 if slot >= 0 else used, 1.0
    one = carray(on_stack(1), (1,), np.int64)
    if kind == PACKED:
        tops = _tops_in(b, s)
        largest = tops.reshape(tops.size)[: (built + SCAN_BLOCK - 1) // SCAN_BLOCK]
        arrays = (points, words_in(b, s), _grid(b), _guards(b), _domain(b), largest)
        slot, probes = _find_packed(arrays, built, used, query, one)
        return slot, probes, 1.0
    starts = _level_starts(max(0, built - FRONT), carray(on_stack(_STARTS), (_STARTS,), np.int64))
    nodes = _top_words_in(b, s, starts[-1])
    trees = (points, words_in(b, s), _tops_in(b, s), nodes, starts, _grid(b), _guards(b))
    slot, probes, skipped, fallbacks = _find_kdtree(trees, built, used, _NODE_CAP, epsilon, query, one)
    state.fallbacks += fallbacks
    return slot, probes, 1.0 - skipped


@kernel
def exists(b: int, s: int, query: Floats) -> bool:
    """Does any stored point dominate the (1, D) query? What the exact twin of an approximate search says."""
    used, guards = np.int64(states_of(b)[s].used), _guards(b)
    wanted = np.empty(guards.shape[0], np.uint64)
    offset, scale, _ = fields_in(b)
    fields.pack(query[0], offset, scale, guards, wanted)
    slot, _ = scan_fields(points_in(b, s), words_in(b, s), guards, query[0], wanted, 0, used)
    return slot >= 0


@kernel
def add(b: int, s: int, owner: int, query: Floats) -> None:
    """Store the (1, D) point under `owner`; there is room, see `reserve`."""
    state, owners = states_of(b)[s], owners_in(b, s)
    slot = np.int64(state.free)
    if slot >= 0:
        state.free = -2 - owners[slot]
    else:
        slot = np.int64(state.used)
        state.used += 1
    points = points_in(b, s)
    for j in range(query.shape[1]):
        points[slot, j] = query[0, j]
    owners[slot] = owner
    slots_of(b)[owner] = slot
    state.held += 1
    state.updates += 1
    if state.kind == SCAN:
        return
    pack_stored(points, slot, slot + 1, fields_in(b), words_in(b, s))
    if state.kind != EMULATED and state.used - state.built > tail_limit(state.built):
        rebuild(b, s)


@kernel
def remove(b: int, s: int, slot: int) -> None:
    """Forget what is in a slot. An emptied index begins anew, as FilterIndex drops an empty partition."""
    state, owners = states_of(b)[s], owners_in(b, s)
    state.held -= 1
    state.updates += 1
    if state.held == 0:
        state.kind = words_at(b)[_FIRST_KIND]
        state.used, state.built, state.dead, state.free = 0, 0, 0, -1
        state.fallbacks, state.updates, state.stay = 0, 0, 0
        return
    guards, words, points = _guards(b), words_in(b, s), points_in(b, s)
    for w in range(guards.shape[0]):
        words[w, slot] = guards[w]  # passes for no query
    for j in range(points.shape[1]):
        points[slot, j] = np.nan
    if slot >= state.built:
        owners[slot] = -2 - state.free
        state.free = slot
        return
    owners[slot] = -1
    state.dead += 1
    if state.dead > max(_TAIL_LEAST, _DEAD_SHARE * state.built):
        rebuild(b, s)


@kernel
def covered(b: int, s: int, query: Floats) -> Any:
    """All slots whose point the (1, D) query dominates."""
    used = np.int64(states_of(b)[s].used)
    if states_of(b)[s].kind == SCAN:
        return covered_slots(points_in(b, s), used, query[0])
    return covered_by_fields(points_in(b, s), words_in(b, s), used, fields_in(b), query[0])


@kernel
def compact(b: int, s: int) -> None:
    """Move what is stored to the front, in slot order, as one tail without a static part; words are left to pack."""
    state, points, owners, slot_of = states_of(b)[s], points_in(b, s), owners_in(b, s), slots_of(b)
    count = 0
    for slot in range(state.used):
        if owners[slot] >= 0:
            for j in range(points.shape[1]):
                points[count, j] = points[slot, j]
            owners[count] = owners[slot]
            slot_of[owners[count]] = count
            count += 1
    state.used, state.built, state.dead, state.free = count, 0, 0, -1


@kernel
def rebuild(b: int, s: int) -> None:
    """Everything into the static part, in the order of the method: LayeredIndex._rebuild."""
    call(b, _REBUILD, s, 0, 0, 0)


@linkable
def _rebuild(b: int, s: int, _1: int, _2: int, _3: int) -> int:
    compact(b, s)
    state, owners, slot_of = states_of(b)[s], owners_in(b, s), slots_of(b)
    held = np.int64(state.held)
    points, tops = points_in(b, s)[:held], _tops_in(b, s)
    sizes = volumes(points, _domain(b))
    order = np.argsort(-sizes, kind="mergesort")  # stable
    if state.kind == KDTREE:
        rest = order[FRONT:].copy()
        order[FRONT:] = rest[bucket_order(_taken(points, rest), _box(b))]
    else:
        flat = tops.reshape(tops.size)
        for block in range(0, held, SCAN_BLOCK):
            flat[block // SCAN_BLOCK] = sizes[order[block]]
    there, who = _taken(points, order), owners[order]
    for slot in range(held):
        points[slot] = there[slot]
        owners[slot] = who[slot]
        slot_of[who[slot]] = slot
    state.built = held
    pack_stored(points, 0, held, fields_in(b), words_in(b, s))
    if state.kind == KDTREE:
        starts = _level_starts(max(0, held - FRONT), np.empty(_STARTS, np.int64))
        nodes = starts[-1]
        fill_extremes(there[FRONT:], starts, np.empty((nodes, points.shape[1])), tops)
        tops[nodes] = -np.inf
        for slot in range(held):
            for j in range(points.shape[1]):
                tops[nodes, j] = max(tops[nodes, j], points[slot, j])
        pack_stored(tops, 0, nodes, fields_in(b), _top_words_in(b, s, nodes))
    return 0


@kernel
def _taken(points: Floats, order: Any) -> Floats:
    rows = np.empty((order.shape[0], points.shape[1]))
    for i in range(order.shape[0]):
        for j in range(points.shape[1]):
            rows[i, j] = points[order[i], j]
    return rows
