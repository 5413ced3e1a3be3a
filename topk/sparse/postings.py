"""Many short lists in one arena, each sorted by a descending bound, insertable and deletable.

A list that is full moves to the end of the arena with twice the room, so an insertion costs O(length of the list)
and each entry is moved O(log) times; the arena is packed again when more than half of it is abandoned room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from topk.sparse.catalogue import Int32s, Ints

_FIRST_ROOM = 4
_ARENA = 1024


class Lists(NamedTuple):
    """What kernels receive."""

    start: Ints  # (lists,)
    size: Int32s
    room: Int32s
    mask: NDArray[np.uint64]  # (arena,) which attributes an entry needs
    cells: NDArray[np.uint64]  # which (attribute, value cell) pairs it needs
    block: Int32s  # what the entry stands for
    bound: NDArray[np.float32]  # descending within a list
    other: NDArray[np.float32]  # a second bound, in no order


@njit(cache=True)
def insert_entry(lists: Lists, at: int, mask: Any, cells: Any, block: int, bound: Any, other: Any, used: int) -> int:
    """Insert into list `at`; returns the new end of the arena, or −1 when the arena must grow first."""
    count = lists.size[at]
    if count == lists.room[at]:
        room = max(2 * count, _FIRST_ROOM)
        if used + room > len(lists.block):
            return -1
        begin = lists.start[at]
        for i in range(count):
            lists.mask[used + i] = lists.mask[begin + i]
            lists.cells[used + i] = lists.cells[begin + i]
            lists.block[used + i] = lists.block[begin + i]
            lists.bound[used + i] = lists.bound[begin + i]
            lists.other[used + i] = lists.other[begin + i]
        lists.start[at] = used
        lists.room[at] = room
        used += room
    i = lists.start[at] + count
    while i > lists.start[at] and lists.bound[i - 1] < bound:
        lists.mask[i] = lists.mask[i - 1]
        lists.cells[i] = lists.cells[i - 1]
        lists.block[i] = lists.block[i - 1]
        lists.bound[i] = lists.bound[i - 1]
        lists.other[i] = lists.other[i - 1]
        i -= 1
    lists.mask[i] = mask
    lists.cells[i] = cells
    lists.block[i] = block
    lists.bound[i] = bound
    lists.other[i] = other
    lists.size[at] = count + 1
    return used


@njit(cache=True)
def delete_entry(lists: Lists, at: int, block: int) -> bool:
    begin = lists.start[at]
    end = begin + lists.size[at]
    for i in range(begin, end):
        if lists.block[i] == block:
            for j in range(i, end - 1):
                lists.mask[j] = lists.mask[j + 1]
                lists.cells[j] = lists.cells[j + 1]
                lists.block[j] = lists.block[j + 1]
                lists.bound[j] = lists.bound[j + 1]
                lists.other[j] = lists.other[j + 1]
            lists.size[at] -= 1
            return True
    return False


class Postings:
    def __init__(self, count: int, home: Any, mask: Any, cells: Any, block: Any, bound: Any, other: Any) -> None:
        """`home` is the list of each entry; entries come list by list, by descending bound."""
        counts = np.bincount(home, minlength=count).astype(np.int32)
        start = np.concatenate([[0], np.cumsum(counts[:-1], dtype=np.int64)]).astype(np.int64)
        columns = (mask.copy(), cells.copy(), block.astype(np.int32), bound.copy(), other.copy())
        self.lists = Lists(start, counts, counts.copy(), *columns)
        self.used = len(home)

    def insert(self, at: int, mask: Any, cells: Any, block: int, bound: Any, other: Any) -> None:
        used = insert_entry(self.lists, at, mask, cells, block, bound, other, self.used)
        if used < 0:
            self._grow(2 * (int(self.lists.size[at]) + _FIRST_ROOM))
            used = insert_entry(self.lists, at, mask, cells, block, bound, other, self.used)
        self.used = used

    def delete(self, at: int, block: int) -> None:
        found = delete_entry(self.lists, at, block)
        assert found, f"block {block} is in list {at}"

    @property
    def nbytes(self) -> int:
        return sum(int(column.nbytes) for column in self.lists)

    def _grow(self, extra: int) -> None:
        old = self.lists
        live = int(old.room.sum())
        if 2 * live < self.used:  # pack: the rooms one after the other
            where = np.concatenate([[0], np.cumsum(old.room[:-1], dtype=np.int64)]).astype(np.int64)
            rooms = old.room.astype(np.int64)
            source = np.repeat(old.start - where, rooms) + np.arange(live)
            columns = [column[source] for column in old[3:]]
            start, self.used = where, live
        else:
            columns, start = list(old[3:]), old.start
        capacity = max(self.used + self.used // 2, self.used + extra, _ARENA)
        grown = []
        for column in columns:
            larger = np.zeros(capacity, column.dtype)
            larger[: self.used] = column[: self.used]
            grown.append(larger)
        self.lists = Lists(start, old.size, old.room, *grown)

    def check(self) -> None:
        lists = self.lists
        taken = np.zeros(self.used, np.bool_)
        for at in np.flatnonzero(lists.room):
            begin, count = int(lists.start[at]), int(lists.size[at])
            assert count <= lists.room[at], f"list {at} fits its room"
            assert not taken[begin : begin + lists.room[at]].any(), f"list {at} has its room to itself"
            taken[begin : begin + lists.room[at]] = True
            assert (np.diff(lists.bound[begin : begin + count]) <= 0).all(), f"list {at} is sorted by bound"
