"""Which slot holds which id: a Python dict while small, a compact hash table of int32 once large.

A dict and a list of int objects cost over 100 bytes per entry, four times the bounds of a one-attribute box.
From `COMPACT_FROM` entries on, if all ids are 64-bit whole numbers, ids lie in an int64 array by slot, and a
table of slots with linear probing finds them: 8 + 4/load bytes per entry. Deletion shifts later entries of
the same cluster back, so there are no tombstones. The home position is the high half of a multiplicative hash
scaled to the table's length, which therefore need not be a power of two.

Invariants: every stored id is found before an empty cell when probing from its home; `held` counts them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, kernel, quoted

Id = Any  # any hashable; whole numbers are stored most compactly
Ints = NDArray[np.int64]
Table = NDArray[np.int32]

COMPACT_FROM = 4096  # entries: below, the dict is faster per call and its bytes do not matter
_TARGET_LOAD = 0.8  # after a resize; linear probing then takes at most 13 steps on average
_FULL_LOAD = 0.88  # resize above this
_EMPTY = -1
_MULTIPLIER = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: spreads consecutive ids evenly


@kernel(inner=True, inline="always")
def _home(id: int, size: int) -> int:
    mixed = np.uint64(id) * np.uint64(_MULTIPLIER)
    return np.int64(((mixed >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))  # type: ignore[return-value]


@kernel
def find_id(table: Table, ids: Ints, id: int) -> int:
    """Table position of an id, or of the empty cell where it would go, as −1 − position."""
    at = _home(id, table.shape[0])
    while table[at] != _EMPTY:
        if ids[table[at]] == id:
            return at
        at += 1
        if at == table.shape[0]:
            at = 0
    return -1 - at


@kernel
def put_ids(table: Table, ids: Ints, first: int, stop: int) -> int:
    """Enter the ids of slots first … stop−1; the slot of the first id that is already there, or −1."""
    for slot in range(first, stop):
        at = find_id(table, ids, ids[slot])
        if at >= 0:
            return slot
        table[-1 - at] = slot
    return -1


@kernel
def drop_id(table: Table, ids: Ints, id: int) -> None:
    size = table.shape[0]
    hole = find_id(table, ids, id)
    at = hole
    while True:
        at = at + 1 if at + 1 < size else 0
        if table[at] == _EMPTY:
            break
        home = _home(ids[table[at]], size)
        # Move back unless its home lies cyclically in (hole, at].
        if (at - home + size) % size >= (at - hole + size) % size:
            table[hole] = table[at]
            hole = at
    table[hole] = _EMPTY


class Ids:
    """The two directions between ids and slots."""

    def __init__(self) -> None:
        self._held = 0
        self._slots: dict[Hashable, int] = {}
        self._names: list[Any] = []  # by slot, None for a free one
        self._array: Ints | None = None  # by slot, in compact form
        self._table: Table = np.empty(0, np.int32)
        self._whole = True  # no id so far was anything but a 64-bit whole number

    def __len__(self) -> int:
        return self._held

    def find(self, id: Any) -> int:
        """The slot of an id, −1 if it is not stored."""
        if self._array is None:
            return self._slots.get(id, -1)
        if not _is_whole(id):
            return -1
        at = int(find_id(self._table, self._array, int(id)))
        return int(self._table[at]) if at >= 0 else -1

    def put(self, id: Any, slot: int) -> None:
        """Enter an id that is not stored, at a slot below the reserved capacity."""
        if not _is_whole(id):
            self._whole = False
            self._to_dict()
        if self._array is None:
            self._slots[id] = slot
            self._names[slot] = id
            self._held += 1
            if self._whole and self._held >= COMPACT_FROM:
                self._to_compact()
            return
        self._held += 1
        self._array[slot] = int(id)
        if self._held > _FULL_LOAD * len(self._table):
            self._rehash(self._taken())
        put_ids(self._table, self._array, slot, slot + 1)

    def drop(self, id: Any, slot: int) -> None:
        self._held -= 1
        if self._array is None:
            del self._slots[id]
            self._names[slot] = None
        else:
            drop_id(self._table, self._array, int(id))

    def put_many(self, ids: Sequence[Any] | NDArray[Any], first: int) -> None:
        """Enter new ids at slots first, first + 1, …; if one is repeated or already stored, nothing changes."""
        fresh = _whole_array(ids)
        few = self._array is None and (self._held + len(ids) < COMPACT_FROM or not self._whole)
        if fresh is None or few:
            self._to_dict()
            self._put_many_dict(ids.tolist() if isinstance(ids, np.ndarray) else list(ids), first)
            return
        if self._array is None:
            self._to_compact()
        assert self._array is not None
        held = self._taken()
        self._array[first : first + len(fresh)] = fresh
        self._held += len(fresh)
        if self._held > _FULL_LOAD * len(self._table):
            self._rehash(held)
        twice = put_ids(self._table, self._array, first, first + len(fresh))
        if twice >= 0:
            self._held -= len(fresh)
            self._rehash(held)
            raise _twice(int(fresh[twice - first]))

    def at(self, slot: int) -> Any:
        """The id in a slot that is in use."""
        return self._names[slot] if self._array is None else int(self._array[slot])

    def at_all(self, slots: Ints) -> list[Any]:
        """The ids in these slots, None for −1."""
        if self._array is None:
            names = self._names
            return [names[slot] if slot >= 0 else None for slot in slots.tolist()]
        missing = slots < 0
        if missing.all():
            return [None] * len(slots)
        found: list[Any] = self._array[np.where(missing, 0, slots)].tolist()
        for i in np.flatnonzero(missing).tolist():
            found[i] = None
        return found

    def slots(self) -> list[int]:
        """The slots in use, ascending."""
        if self._array is None:
            return sorted(self._slots.values())
        return self._taken().tolist()

    def reserve(self, capacity: int) -> None:
        """Make room for slots below `capacity`."""
        if self._array is None:
            self._names.extend([None] * (capacity - len(self._names)))
        elif capacity > len(self._array):
            grown = np.zeros(capacity, np.int64)
            grown[: len(self._array)] = self._array
            self._array = grown

    def permute(self, order: Ints, capacity: int) -> None:
        """Slot i becomes what slot order[i] was; `order` lists exactly the slots in use."""
        if self._array is None:
            names = [self._names[slot] for slot in order.tolist()]
            self._slots = {name: slot for slot, name in enumerate(names)}
            self._names = names + [None] * (capacity - len(names))
            return
        kept = self._array[order]
        self._array = np.zeros(max(capacity, 1), np.int64)  # `at_all` reads slot 0 in place of −1
        self._array[: len(kept)] = kept
        self._rehash(np.arange(len(kept)))

    @property
    def nbytes(self) -> int:
        if self._array is not None:
            return self._array.nbytes + self._table.nbytes
        object_bytes = 32  # one int object
        return self._slots.__sizeof__() + self._names.__sizeof__() + object_bytes * self._held

    def check(self) -> None:
        in_use = self.slots()
        assert len(in_use) == self._held
        for slot in in_use:
            assert self.find(self.at(slot)) == slot
        if self._array is not None:
            assert self._held <= len(self._table)

    def _taken(self) -> Table:
        """The slots in the table, ascending."""
        return np.sort(self._table[self._table != _EMPTY])

    def _put_many_dict(self, ids: list[Any], first: int) -> None:
        seen: set[Any] = set()
        for id in ids:
            if id in seen or id in self._slots:
                raise _twice(id)
            seen.add(id)
        self._whole = self._whole and all(map(_is_whole, ids))
        self._names[first : first + len(ids)] = ids
        self._slots.update(zip(ids, range(first, first + len(ids)), strict=True))
        self._held += len(ids)

    def _to_compact(self) -> None:
        self._array = np.zeros(max(len(self._names), 1), np.int64)
        held = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        self._array[held] = np.fromiter(self._slots, np.int64, len(self._slots))
        self._slots, self._names = {}, []
        self._rehash(np.sort(held))

    def _to_dict(self) -> None:
        if self._array is None:
            return
        held = self.slots()
        self._names = [None] * len(self._array)
        for slot in held:
            self._names[slot] = int(self._array[slot])
        self._slots = {self._names[slot]: slot for slot in held}
        self._array, self._table = None, np.empty(0, np.int32)

    def _rehash(self, held: NDArray[Any]) -> None:
        """Make a new table, with room for `_held` ids, and enter the slots in `held`."""
        assert self._array is not None
        self._table = np.full(int(max(self._held, COMPACT_FROM) / _TARGET_LOAD) + 1, _EMPTY, np.int32)
        _put_slots(self._table, self._array, held.astype(np.int64))


@kernel
def _put_slots(table: Table, ids: Ints, slots: Ints) -> None:
    for i in range(slots.shape[0]):
        table[-1 - find_id(table, ids, ids[slots[i]])] = slots[i]


def _is_whole(id: Any) -> bool:
    return type(id) is int and -(2**63) <= id < 2**63


def _whole_array(ids: Sequence[Any] | NDArray[Any]) -> Ints | None:
    """The ids as int64, or None if one of them is anything else."""
    if isinstance(ids, np.ndarray):
        return np.ascontiguousarray(ids, np.int64) if ids.dtype.kind == "i" else None
    if isinstance(ids, range):
        return np.arange(ids.start, ids.stop, ids.step)
    return np.array(ids, np.int64) if all(map(_is_whole, ids)) else None


def _twice(id: Any) -> CoverlayError:
    return CoverlayError(f"id {id!r} is given twice or already stored; ids must be new")


def plain(id: Id) -> Id:
    """Whole numbers as Python ints, so that 1, 1.0 and numpy's 1 are the same id."""
    if type(id) is int or isinstance(id, str):
        return id
    try:
        hash(id)
    except TypeError:
        raise CoverlayError(f"id {quoted(id)} must be hashable: a number, a text or a tuple of them") from None
    if id is None:
        raise CoverlayError("None cannot be an id: it is the answer if there is no cover")
    try:
        whole = int(id)
        return whole if whole == id else id
    except (TypeError, ValueError, OverflowError):
        return id


def plain_all(ids: Any) -> Any:
    if isinstance(ids, range) or (isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu"):
        return ids
    try:
        return [plain(id) for id in ids]
    except TypeError:
        raise CoverlayError(f"ids {quoted(ids)} must be a list or an array") from None


def ordered(ids: list[Id]) -> list[Id]:
    """Ascending if the ids compare with each other, else as they are."""
    try:
        return sorted(ids)
    except TypeError:
        return ids
