"""The dynamic SFC array: key rows in ascending order, in tiered blocks.

A row is the words of a key followed by the slot of its entry, so rows are distinct even where keys tie, and
finding one entry among many equal keys is a binary search too.

Invariants, verified by `check`:
1. `order[:blocks]` lists the blocks in use; rows 0 … count−1 of each block ascend strictly.
2. `heads[i]` ≤ every row of block order[i], and > every row of block order[i−1]: a separator, which need
   not be a stored row any more.
3. No block in use is empty.

An update moves at most half a block of 256 rows and, once in about 128 insertions, the directory. The choice,
measured once (µs per insertion / per look-up at 100k keys):
tiered blocks .6 / .25, log-structured runs .13 / .54, one sorted array 40 / .13. Runs are cheaper to fill
and dearer to search, because a look-up searches every run; blocks win from about 1.5 look-ups per insertion
on, and one search makes tens of look-ups.

Cost: search O(log n), update O(log n + 256), memory 8·(words + 1) bytes per row at 50–100 % fill.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covering.curve.keys import Words
from coverlay import kernel

BLOCK = 256  # rows: measured flat from 128 to 512 at 100k keys
_BULK_FILL = 224  # rows per block after a bulk build: room for a while before every block splits at once
_DONE, _NO_ROOM, _ABSENT = 0, 1, 2

# One tuple, because every array argument costs about 0.2 µs per call from Python:
# rows (blocks·BLOCK, words+1), heads (capacity, words+1), order (capacity,), count (capacity,),
# meta: [0] blocks in use, [1] blocks ever taken (those not in `order` are on the stack `spare`), [2] spares.
Arrays = tuple[Words, Words, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@kernel(inner=True)
def compare(left: Words, right: Words) -> int:
    """−1, 0 or 1 as row `left` is before, equal to or after row `right`."""
    for w in range(left.shape[0]):
        if left[w] < right[w]:
            return -1
        if left[w] > right[w]:
            return 1
    return 0


@kernel(inner=True)
def same_prefix(left: Words, right: Words, bits: int) -> bool:
    """Do two keys agree in their first `bits` bits?"""
    words, rest = bits >> 6, bits & 63
    for w in range(words):
        if left[w] != right[w]:
            return False
    return rest == 0 or (left[words] ^ right[words]) >> np.uint64(64 - rest) == 0


@kernel(inner=True)
def _block_for(arrays: Arrays, row: Words) -> int:
    """Directory position of the last block whose head is ≤ row; 0 if there is none."""
    heads, meta = arrays[1], arrays[4]
    low, high = 0, meta[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if compare(heads[middle], row) <= 0:
            low = middle
        else:
            high = middle
    return low


@kernel(inner=True)
def _within(arrays: Arrays, block: int, row: Words) -> int:
    """How many rows of the block are before `row`."""
    rows, count = arrays[0], arrays[3]
    low, high = 0, count[block]
    base = block * BLOCK
    while low < high:
        middle = (low + high) >> 1
        if compare(rows[base + middle], row) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inner=True)
def locate(arrays: Arrays, row: Words) -> tuple[int, int]:
    """Position (directory index, index in block) of the first stored row ≥ `row`; (blocks, 0) if none."""
    order, count, meta = arrays[2], arrays[3], arrays[4]
    if meta[0] == 0:
        return 0, 0
    at = _block_for(arrays, row)
    inside = _within(arrays, order[at], row)
    if inside == count[order[at]]:
        return at + 1, 0
    return at, inside


@kernel(inner=True)
def _shift(rows: Words, first: int, stop: int, step: int) -> None:
    """Move rows first … stop−1 by one place, up or down. Word by word: a row assignment costs ten times more."""
    if step > 0:
        for i in range(stop, first, -1):
            for w in range(rows.shape[1]):
                rows[i, w] = rows[i - 1, w]
    else:
        for i in range(first, stop):
            for w in range(rows.shape[1]):
                rows[i - 1, w] = rows[i, w]


@kernel(inner=True)
def _new_block(arrays: Arrays, at: int) -> int:
    """Take a free block into the directory before position `at`; −1 if there is no room."""
    heads, order, count, meta, spare = arrays[1], arrays[2], arrays[3], arrays[4], arrays[5]
    if meta[2] > 0:
        meta[2] -= 1
        block = spare[meta[2]]
    elif meta[1] < order.shape[0]:
        block = meta[1]
        meta[1] += 1
    else:
        return -1
    _shift(heads, at, meta[0], 1)
    for i in range(meta[0], at, -1):
        order[i] = order[i - 1]
    order[at] = block
    count[block] = 0
    meta[0] += 1
    return block


@kernel(inner=True)
def _set(row: Words, place: Words) -> None:
    """Copy a row word by word: for an assignment numba would also compile the text of an error."""
    for w in range(row.shape[0]):
        place[w] = row[w]


@kernel
def insert(arrays: Arrays, row: Words) -> int:
    """Store a row; _NO_ROOM (nothing changed) if a block is needed and all are taken."""
    rows, heads, order, count, meta, _ = arrays
    if meta[0] == 0:
        block = _new_block(arrays, 0)
        if block < 0:
            return _NO_ROOM
        _set(row, rows[block * BLOCK])
        _set(row, heads[0])
        count[block] = 1
        return _DONE
    at = _block_for(arrays, row)
    block = order[at]
    if count[block] == BLOCK:
        half = BLOCK // 2
        upper = _new_block(arrays, at + 1)
        if upper < 0:
            return _NO_ROOM
        for i in range(half):
            _set(rows[block * BLOCK + half + i], rows[upper * BLOCK + i])
        count[block], count[upper] = half, half
        _set(rows[upper * BLOCK], heads[at + 1])
        if compare(heads[at + 1], row) <= 0:
            at, block = at + 1, upper
    inside = _within(arrays, block, row)
    base = block * BLOCK
    _shift(rows, base + inside, base + count[block], 1)
    _set(row, rows[base + inside])
    count[block] += 1
    if compare(row, heads[at]) < 0:
        _set(row, heads[at])
    return _DONE


@kernel
def delete(arrays: Arrays, row: Words) -> int:
    """Remove a stored row; _ABSENT if it is not stored."""
    rows, heads, order, count, meta, spare = arrays
    at, inside = locate(arrays, row)
    if at == meta[0]:
        return _ABSENT
    block = order[at]
    base = block * BLOCK
    if compare(rows[base + inside], row) != 0:
        return _ABSENT
    _shift(rows, base + inside + 1, base + count[block], -1)
    count[block] -= 1
    if count[block] == 0:
        _shift(heads, at + 1, meta[0], -1)
        for i in range(at, meta[0] - 1):
            order[i] = order[i + 1]
        meta[0] -= 1
        spare[meta[2]] = block
        meta[2] += 1
    return _DONE


class SfcArray:
    """Owns the arrays; `arrays` is what kernels take. It changes identity when the arrays grow."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.arrays = self._allocate(1)

    def insert(self, row: Words) -> None:
        while insert(self.arrays, row) == _NO_ROOM:
            self._enlarge()

    def delete(self, row: Words) -> None:
        if delete(self.arrays, row) == _ABSENT:
            raise AssertionError(f"row {row.tolist()} is not stored")

    def insert_many(self, fresh: Words) -> None:
        """Merge a batch: rebuild from all rows when the batch is large, else one by one."""
        held = len(self)
        if len(fresh) * 8 < held:  # a rebuild moves every row once, an insertion about 64
            for row in fresh:
                self.insert(row)
            return
        merged = np.concatenate([self.rows(), fresh]) if held else fresh
        columns = tuple(merged[:, w] for w in range(self.words, -1, -1))
        merged = merged[np.lexsort(columns)]
        blocks = -(-len(merged) // _BULK_FILL)
        rows, heads, order, count, meta, _ = self.arrays = self._allocate(max(1, blocks))
        for block in range(blocks):
            part = merged[block * _BULK_FILL : (block + 1) * _BULK_FILL]
            rows[block * BLOCK : block * BLOCK + len(part)] = part
            count[block] = len(part)
        heads[:blocks] = rows[: blocks * BLOCK : BLOCK]
        order[:blocks] = np.arange(blocks)
        meta[:] = (blocks, blocks, 0)

    def rows(self) -> Words:
        """All rows, ascending (a copy)."""
        rows, _, order, count, meta, _ = self.arrays
        parts = [rows[b * BLOCK : b * BLOCK + count[b]] for b in order[: meta[0]].tolist()]
        return np.concatenate(parts) if parts else rows[:0].copy()

    def __len__(self) -> int:
        _, _, order, count, meta, _ = self.arrays
        return int(count[order[: meta[0]]].sum())

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def check(self) -> None:
        rows, heads, order, count, meta, spare = self.arrays
        used = order[: meta[0]].tolist()
        assert sorted(used + spare[: meta[2]].tolist()) == list(range(meta[1])), "a block is lost"
        last: list[int] | None = None
        for at, block in enumerate(used):
            assert 0 < count[block] <= BLOCK
            assert last is None or last < heads[at].tolist()
            assert heads[at].tolist() <= rows[block * BLOCK].tolist()
            for row in rows[block * BLOCK : block * BLOCK + count[block]].tolist():
                assert last is None or last < row
                last = row

    def _allocate(self, blocks: int) -> Arrays:
        width = self.words + 1
        return (
            np.zeros((blocks * BLOCK, width), np.uint64),
            np.zeros((blocks, width), np.uint64),
            np.zeros(blocks, np.int64),
            np.zeros(blocks, np.int64),
            np.zeros(3, np.int64),
            np.zeros(blocks, np.int64),
        )

    def _enlarge(self) -> None:
        old = self.arrays
        self.arrays = self._allocate(len(old[2]) + len(old[2]) // 4 + 1)
        for before, after in zip(old, self.arrays, strict=True):
            after[: len(before)] = before
