"""All coordinates of a point in one or a few machine words, compared in parallel (SWAR).

Each coordinate is quantised (keys.py: one monotone floor) to the code bits of a field whose top bit, the
guard, stays 0 in a query and is 1 in a stored word. Then one subtraction compares all fields at once,

    (stored − query) & guards == guards   iff   code(p_j) ≥ code(q_j) for every j,

because a field that is too small borrows from its own guard bit and from nothing else. A necessary
condition for p ≥ q; what passes is verified on the original values. The inner loop is branch-free over blocks of
64, which compiles to vector instructions; with an early exit inside it was 14 times slower.

Codes start at 1. A removed entry has only its guards, that is code 0 everywhere, and passes for no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from covering.base import Floats
from covering.keys import Quantiser

SCAN_BLOCK = 64  # entries tested between two branches
_HALF_WORD = 16  # bits of a field where a word has room: 15 code bits tell most bounds apart
_BYTES_FROM = 5  # coordinates from which fields shrink to a byte, so that D = 8 still takes one word
_BYTE = 8


@njit(cache=True, nogil=True)
def field_width(dimensions: int) -> int:
    """Bits of a field, its guard included."""
    return _HALF_WORD if dimensions < _BYTES_FROM else _BYTE


@dataclass(frozen=True)
class Fields:
    """How D coordinates share words: field width, words per entry, and the guard bits of each word."""

    quantiser: Quantiser
    width: int
    per_word: int
    words: int
    guards: NDArray[Any]  # one word each, in the dtype of the words

    @staticmethod
    def of(domain: Floats) -> Fields:
        dimensions = 2 * len(domain)
        width = int(field_width(dimensions))
        # Two coordinates of 16 bits fit half a word: half the memory, twice the entries per instruction.
        kind = np.uint32 if dimensions * width <= 32 else np.uint64
        per_word = np.dtype(kind).itemsize * 8 // width
        words = -(-dimensions // per_word)
        guards = [0] * words
        for j in range(dimensions):
            guards[j // per_word] |= 1 << ((j % per_word) * width + width - 1)
        return Fields(Quantiser.of(domain, width - 1), width, per_word, words, np.array(guards, kind))

    @property
    def kernel(self) -> tuple[Floats, Floats, NDArray[Any]]:
        """What kernels need: offsets and scales of the quantiser, guards."""
        return self.quantiser.offset, self.quantiser.scale, self.guards


@njit(cache=True, nogil=True)
def pack(point: Floats, offset: Floats, scale: Floats, guards: Any, packed: Any) -> None:
    """Write the query words (guards clear) of a point; a stored word is this | guards."""
    dimensions = point.shape[0]
    width = field_width(dimensions)
    per_word = 2 if dimensions <= 2 else 64 // width  # as Fields.of decides
    top = (1 << (width - 1)) - 1
    for w in range(guards.shape[0]):
        word = np.uint64(0)
        for j in range(w * per_word, min(dimensions, (w + 1) * per_word)):
            # The code itself, not mirrored; see keys.mirror for the same case distinction.
            code = 1
            above = point[j] - offset[j]
            if point[j] == np.inf:
                code = top
            elif above > 0.0:
                scaled = above * scale[j]
                if scaled >= top - 1:
                    code = top - 1
                elif scaled > 1.0:
                    code = int(scaled)
            word |= np.uint64(code) << np.uint64((j - w * per_word) * width)
        packed[w] = word


@njit(cache=True, nogil=True)
def pack_stored(points: Floats, first: int, stop: int, fields: Any, words: Any) -> None:
    """Fill words[:, first:stop] from the points of these slots."""
    offset, scale, guards = fields
    packed = np.empty(guards.shape[0], np.uint64)
    for slot in range(first, stop):
        pack(points[slot], offset, scale, guards, packed)
        for w in range(guards.shape[0]):
            words[w, slot] = packed[w] | guards[w]


@njit(cache=True, nogil=True)
def dominates(points: Floats, slot: int, query: Floats) -> bool:
    """Exact test, without branches: which coordinate fails is unpredictable."""
    covers = True
    for j in range(query.shape[0]):
        covers &= points[slot, j] >= query[j]
    return covers


@njit(cache=True, nogil=True)
def _next_block(words: Any, start: int, stop: int, wanted: Any, guard: Any) -> int:
    """Start of the next whole block of 64 words in which one passes, or of what is left after whole blocks.

    Unsigned indices, a constant trip count and a loop of its own: without any of these it did not vectorise.
    """
    while start + SCAN_BLOCK <= stop:
        hit = np.uint64(0)
        base = np.uint64(start)
        for i in range(SCAN_BLOCK):
            hit |= np.uint64(((words[0, base + np.uint64(i)] - wanted) & guard) == guard)
        if hit:
            return start
        start += SCAN_BLOCK
    return start


@njit(cache=True, nogil=True)
def _next_block_of_two(words: Any, start: int, stop: int, packed: Any, guards: Any) -> int:
    """The same where an entry has two words or more: the first two must pass together."""
    wanted, guard, wanted2, guard2 = packed[0], guards[0], packed[1], guards[1]
    while start + SCAN_BLOCK <= stop:
        hit = np.uint64(0)
        base = np.uint64(start)
        for i in range(SCAN_BLOCK):
            first = (words[0, base + np.uint64(i)] - wanted) & guard
            second = (words[1, base + np.uint64(i)] - wanted2) & guard2
            hit |= np.uint64(((first ^ guard) | (second ^ guard2)) == 0)
        if hit:
            return start
        start += SCAN_BLOCK
    return start


@njit(cache=True, nogil=True)
def _first_cover(points: Floats, words: Any, guards: Any, query: Floats, packed: Any, first: int, stop: int) -> int:
    """First slot in first … stop−1 that dominates the query, or −1; one by one."""
    for i in range(first, stop):
        passes = True
        for w in range(words.shape[0]):
            passes &= ((words[w, i] - packed[w]) & guards[w]) == guards[w]
        if passes and dominates(points, i, query):
            return i
    return -1


@njit(cache=True, nogil=True)
def scan_fields(
    points: Floats, words: Any, guards: Any, query: Floats, packed: Any, first: int, stop: int
) -> tuple[int, int]:
    """(first slot in first … stop−1 that dominates, or −1; entries looked at)."""
    guard, wanted = guards[0], packed[0]
    start = first
    while start < stop:
        if words.shape[0] == 1:
            start = _next_block(words, start, stop, wanted, guard)
        else:
            start = _next_block_of_two(words, start, stop, packed, guards)
        end = min(start + SCAN_BLOCK, stop)
        slot = _first_cover(points, words, guards, query, packed, start, end)
        if slot >= 0:
            return slot, slot + 1 - first
        start = end
    return -1, stop - first


@njit(cache=True, nogil=True)
def dominating(points: Floats, words: Any, used: int, fields: Any, query: Floats) -> Any:
    """All slots below `used` whose point dominates the query, ascending."""
    offset, scale, guards = fields
    packed = np.empty(guards.shape[0], guards.dtype)
    pack(query, offset, scale, guards, packed)
    found = np.empty(16, np.int64)
    count, start = 0, 0
    while start < used:
        slot, _ = scan_fields(points, words, guards, query, packed, start, used)
        if slot < 0:
            break
        if count == found.shape[0]:
            grown = np.empty(2 * count, np.int64)
            grown[:count] = found
            found = grown
        found[count] = slot
        count += 1
        start = slot + 1
    return found[:count].copy()


@njit(cache=True, nogil=True)
def _passing(row: Any, start: int, stop: int, most: Any, guard: Any, pass_: Any) -> int:
    """Mark which of up to 64 stored words are ≤ the query word `most` (guards set) in every field, and alive."""
    count = 0
    for i in range(start, stop):
        ok = (((most - (row[i] & ~guard)) & guard) == guard) & (row[i] != guard)
        pass_[i - start] = ok
        count += ok
    return count


@njit(cache=True, nogil=True)
def covered_by_fields(points: Floats, words: Any, used: int, fields: Any, query: Floats) -> Any:
    """All slots below `used` whose point the query dominates, ascending: the mirrored comparison."""
    offset, scale, guards = fields
    packed = np.empty(guards.shape[0], guards.dtype)
    pack(query, offset, scale, guards, packed)
    most = packed[0] | guards[0]
    pass_ = np.empty(SCAN_BLOCK, np.bool_)
    found = np.empty(16, np.int64)
    count = 0
    for start in range(0, used, SCAN_BLOCK):
        stop = min(start + SCAN_BLOCK, used)
        if _passing(words[0], start, stop, most, guards[0], pass_) == 0:
            continue
        for i in range(start, stop):
            if not pass_[i - start]:
                continue
            below = True
            for j in range(query.shape[0]):
                below &= points[i, j] <= query[j]
            if below:
                if count == found.shape[0]:
                    grown = np.empty(2 * count, np.int64)
                    grown[:count] = found
                    found = grown
                found[count] = i
                count += 1
    return found[:count].copy()
