"""Many short lists in one arena, each sorted by a descending bound, with insertion and deletion.

An entry is a record with at least the fields `bound` (the order) and `block` (what it refers to): what a search reads
of an entry lies together. A list that is full moves to the end of the arena with twice the room, so an insertion costs
O(length of the list) and each entry is moved O(log) times; the arena is packed again when more than half of it
is abandoned room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.kernels.rows import runs

_FIRST_ROOM = 4
_ARENA = 1024

LIST = np.dtype([("start", "i8"), ("count", "i4"), ("room", "i4")])
PLAIN_ENTRY = np.dtype([("bound", "f4"), ("block", "i4")])


class PostingLists(NamedTuple):
    """What kernels receive: records of LIST, and of the entry's type."""

    lists: Any
    entries: Any


@kernel
def insert_entry(lists: Any, entries: Any, at: int, fresh: Any, used: int) -> int:
    """Insert fresh[0] into list `at`; returns the new end of the arena, or −1 when the arena must grow first."""
    count = lists[at].count
    if count == lists[at].room:
        room = max(2 * count, _FIRST_ROOM)
        if used + room > len(entries):
            return -1
        begin = lists[at].start
        for i in range(count):
            entries[used + i] = entries[begin + i]
        lists[at].start = used
        lists[at].room = room
        used += room
    begin = lists[at].start
    i = begin + count
    while i > begin and entries[i - 1].bound < fresh[0].bound:
        entries[i] = entries[i - 1]
        i -= 1
    entries[i] = fresh[0]
    lists[at].count = count + 1
    return used


@kernel
def delete_entry(lists: Any, entries: Any, at: int, block: int) -> bool:
    begin = lists[at].start
    end = begin + lists[at].count
    for i in range(begin, end):
        if entries[i].block == block:
            for j in range(i, end - 1):
                entries[j] = entries[j + 1]
            lists[at].count -= 1
            return True
    return False


class Postings:
    def __init__(self, count: int, home: Any, entries: Any) -> None:
        """`home` is the list of each entry; entries (a record array) come list by list, by descending bound."""
        lists = np.zeros(count, LIST).view(np.recarray)
        lists.count = lists.room = np.bincount(home, minlength=count)
        lists.start[1:] = np.cumsum(lists.count[:-1], dtype=np.int64)
        self.lists = PostingLists(lists, entries)
        self.used = len(home)

    def insert(self, at: int, fresh: Any) -> None:
        used = insert_entry(*self.lists, at, fresh, self.used)
        if used < 0:
            self._grow(2 * (int(self.lists.lists[at].count) + _FIRST_ROOM))
            used = insert_entry(*self.lists, at, fresh, self.used)
        self.used = used

    def delete(self, at: int, block: int) -> None:
        found = delete_entry(*self.lists, at, block)
        assert found, f"block {block} is in list {at}"

    @property
    def nbytes(self) -> int:
        return sum(int(column.nbytes) for column in self.lists)

    def _grow(self, extra: int) -> None:
        lists, entries = self.lists
        rooms = lists.room.astype(np.int64)
        live = int(rooms.sum())
        if 2 * live < self.used:  # pack: the rooms one after the other
            entries = entries[runs(lists.start, rooms)]
            lists.start, self.used = np.cumsum(rooms) - rooms, live
        capacity = max(self.used + self.used // 2, self.used + extra, _ARENA)
        larger = np.zeros(capacity, entries.dtype).view(np.recarray)
        larger[: self.used] = entries[: self.used]
        self.lists = PostingLists(lists, larger)

    def check(self) -> None:
        lists, entries = self.lists
        taken = np.zeros(self.used, np.bool_)
        for at in np.flatnonzero(lists.room):
            begin, count, room = (int(lists[at][name]) for name in ("start", "count", "room"))
            assert count <= room, f"list {at} fits its room"
            assert not taken[begin : begin + room].any(), f"list {at} has its room to itself"
            taken[begin : begin + room] = True
            order = entries.bound[begin : begin + count]
            assert (order[1:] <= order[:-1]).all(), f"list {at} is sorted by bound"
