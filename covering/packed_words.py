"""All coordinates of a point in one or a few machine words, compared in parallel (SWAR).

Each coordinate is quantised (quantiser.py: one monotone floor) to the code bits of a field whose top bit, the
guard, stays 0 in a query and is 1 in a stored word. Then one subtraction compares all fields at once,

    (stored − query) & guards == guards   iff   code(p_j) ≥ code(q_j) for every j,

because a field that is too small borrows from its own guard bit and from nothing else. This is necessary
for p ≥ q; entries that pass are verified on the original values. The inner loop is branch-free over blocks of
64 and leaves one bit per entry, which compiles to vector instructions (10 ns); with an early exit inside it was 14
times slower. Fields are as wide as the word allows: with 8 bits at D = 6 instead of 10, mixtures of equalities had
27 entries per query to verify in vain instead of 8.

Codes start at 1. A removed entry has only its guards, that is code 0 everywhere, and passes for no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covering.contract import Slots
from covering.given import Floats
from covering.quantiser import Quantiser
from coverlay import kernel

SCAN_BLOCK = 64  # entries tested between two branches
FIRST = np.int64(0)  # the first slot; for a plain 0 numba would compile a callee once more
_WORD = 64
_WIDEST = 16  # bits of a field where a word has room: 15 code bits tell most bounds apart
_PER_WORD = 8  # coordinates that share a word: fewer than 7 code bits tell too little apart
_WIDTHS = np.array([0, *(min(_WIDEST, _WORD // n) for n in range(1, _PER_WORD + 1))])
_SEQUENCE = 0x03F79D71B4CB0A89  # de Bruijn: its 64 shifts differ in their top six bits
_DE_BRUIJN = np.uint64(_SEQUENCE)
_BIT_OF = np.argsort([(_SEQUENCE << i) % 2**64 >> 58 for i in range(64)])


@kernel(inline="always")
def fields_per_word(dimensions: int) -> int:
    """Coordinates are spread evenly over as few words as hold them at a byte each.

    Without a division: Python's `//` takes 25 ns, more than all the rest of `pack`.
    """
    words = (dimensions + _PER_WORD - 1) >> 3
    per_word = min(dimensions, _PER_WORD)
    while (per_word - 1) * words >= dimensions:
        per_word -= 1
    return per_word


@kernel(inline="always")
def field_width(dimensions: int) -> int:
    """Bits of a field, its guard included: what an even share of a word allows."""
    return int(_WIDTHS[fields_per_word(dimensions)])


@dataclass(frozen=True)
class Fields:
    """How D coordinates share words: words per entry, and the guard bits of each word."""

    quantiser: Quantiser
    words: int
    guards: NDArray[Any]  # one word each, in the dtype of the words
    grid: Floats  # offsets and scales of the quantiser as two rows: one argument fewer saves 100 ns

    @staticmethod
    def of(domain: Floats) -> Fields:
        dimensions = 2 * len(domain)
        width = int(field_width(dimensions))
        # Two coordinates of 16 bits fit half a word: half the memory, twice the entries per instruction.
        kind = np.uint32 if dimensions * width <= 32 else np.uint64
        per_word = int(fields_per_word(dimensions))
        words = -(-dimensions // per_word)
        guards = [0] * words
        for j in range(dimensions):
            guards[j // per_word] |= 1 << ((j % per_word) * width + width - 1)
        quantiser = Quantiser.of(domain, width - 1)
        grid = np.stack([quantiser.offset, quantiser.scale])
        return Fields(quantiser, words, np.array(guards, kind), grid)

    @property
    def kernel(self) -> tuple[Floats, Floats, NDArray[Any]]:
        """What kernels need: offsets and scales of the quantiser, guards."""
        return self.quantiser.offset, self.quantiser.scale, self.guards


@kernel(inner=True, inline="always")
def _word_of(point: Floats, w: int, offset: Floats, scale: Floats) -> Any:
    """Word w of a point, with clear guards. Inlined: callers would count references to three arrays, 35 ns a query."""
    dimensions = point.shape[0]
    width = field_width(dimensions)
    per_word = fields_per_word(dimensions)
    top = (1 << (width - 1)) - 1
    word = np.uint64(0)
    for j in range(w * per_word, min(dimensions, (w + 1) * per_word)):
        # The code itself, not mirrored: the cases of keys.mirror without branches, since where a bound
        # lies is unpredictable. Comparisons with NaN (see there) fail, which leaves the lowest code.
        scaled = (point[j] - offset[j]) * scale[j]
        scaled = scaled if scaled > 1.0 else 1.0
        scaled = scaled if scaled < top - 1 else top - 1.0
        code = top if point[j] == np.inf else np.int64(scaled)
        word |= np.uint64(code) << np.uint64((j - w * per_word) * width)
    return word


@kernel(inner=True)
def pack(point: Floats, offset: Floats, scale: Floats, guards: Any, packed: Any) -> None:
    """Write the query words (guards clear) of a point; a stored word is this | guards."""
    for w in range(guards.shape[0]):
        packed[w] = _word_of(point, w, offset, scale)


@kernel
def pack_stored(points: Floats, first: int, stop: int, fields: Any, words: Any) -> None:
    """Fill words[:, first:stop] from the points of these slots."""
    offset, scale, guards = fields
    for slot in range(first, stop):
        for w in range(guards.shape[0]):
            words[w, slot] = _word_of(points[slot], w, offset, scale) | guards[w]


@kernel(inner=True, inline="always")
def dominates(points: Floats, slot: int, query: Floats) -> bool:
    """Exact test, without branches: which coordinate fails is unpredictable."""
    covers = True
    for j in range(query.shape[0]):
        covers &= points[slot, j] >= query[j]
    return covers


@kernel(inner=True)
def _next_block(words: Any, start: int, stop: int, wanted: Any, guard: Any) -> int:
    """Start of the next whole block of 64 in which an entry passes in word 0, else of the incomplete last block.

    Unsigned indices, a constant trip count and a loop of its own: without any one of these it did not vectorise.
    """
    while start + SCAN_BLOCK <= stop:
        hit = False
        base = np.uint64(start)
        for i in range(SCAN_BLOCK):
            hit |= ((words[0, base + np.uint64(i)] - wanted) & guard) == guard
        if hit:
            return start
        start += SCAN_BLOCK
    return start


@kernel(inner=True, inline="always")
def _next_block_of_two(words: Any, start: int, stop: int, packed: Any, guards: Any) -> int:
    """The same where an entry has two words or more: the first two must pass together."""
    wanted, guard, wanted2, guard2 = packed[0], guards[0], packed[1], guards[1]
    while start + SCAN_BLOCK <= stop:
        hit = False
        base = np.uint64(start)
        for i in range(SCAN_BLOCK):
            first = (words[0, base + np.uint64(i)] - wanted) & guard
            second = (words[1, base + np.uint64(i)] - wanted2) & guard2
            hit |= ((first ^ guard) | (second ^ guard2)) == 0
        if hit:
            return start
        start += SCAN_BLOCK
    return start


@kernel(inner=True)
def _passing_in(words: Any, w: int, start: int, count: int, wanted: Any, guard: Any) -> Any:
    """Which of up to 64 entries from `start` on pass in word w: bit i for entry start + i."""
    mask = np.uint64(0)
    base = np.uint64(start)
    for i in range(count):
        mask |= np.uint64(((words[w, base + np.uint64(i)] - wanted) & guard) == guard) << np.uint64(i)
    return mask


@kernel(inner=True, inline="always")
def passing(words: Any, guards: Any, packed: Any, start: int, stop: int) -> Any:
    """Which of up to 64 entries in start … stop−1 pass in all words, as bits."""
    mask = _passing_in(words, FIRST, start, stop - start, packed[0], guards[0])
    for w in range(1, words.shape[0]):
        mask &= _passing_in(words, w, start, stop - start, packed[w], guards[w])
    return mask


@kernel(inner=True, inline="always")
def lowest(mask: Any) -> int:
    """Position of the lowest set bit."""
    single = mask & (~mask + np.uint64(1))
    return _BIT_OF[(single * _DE_BRUIJN) >> np.uint64(58)]


@kernel(inner=True)
def scan_fields(
    points: Floats, words: Any, guards: Any, query: Floats, packed: Any, first: int, stop: int
) -> tuple[int, int]:
    """(first slot in first … stop−1 that dominates, or −1; entries looked at).

    Everything it calls is inlined and it has one exit; otherwise numba counts references to the five arrays in every
    call: 60 ns, as long as scanning six blocks.
    """
    slot, start = -1, first
    while start < stop and slot < 0:
        if words.shape[0] == 1:
            start = _next_block(words, start, stop, packed[0], guards[0])
        else:
            start = _next_block_of_two(words, start, stop, packed, guards)
        mask = passing(words, guards, packed, start, min(start + SCAN_BLOCK, stop))
        while mask and slot < 0:
            candidate = start + lowest(mask)
            if dominates(points, candidate, query):
                slot = candidate
            mask &= mask - np.uint64(1)
        start += SCAN_BLOCK
    return slot, (stop if slot < 0 else slot + 1) - first


@kernel
def dominating(points: Floats, words: Any, used: int, fields: Any, query: Floats) -> Any:
    """All slots below `used` whose point dominates the query, ascending."""
    offset, scale, guards = fields
    packed = np.empty(guards.shape[0], guards.dtype)
    pack(query, offset, scale, guards, packed)
    found = np.empty(16, np.int64)
    count, start = 0, FIRST
    while start < used:
        slot, _ = scan_fields(points, words, guards, query, packed, start, used)
        if slot < 0:
            break
        if count == found.shape[0]:
            grown = np.empty(2 * count, np.int64)
            for i in range(count):  # not a slice, whose check of lengths takes seconds to compile
                grown[i] = found[i]
            found = grown
        found[count] = slot
        count += 1
        start = slot + 1
    return found[:count].copy()


@kernel(inner=True)
def _within(words: Any, start: int, count: int, most: Any, guard: Any) -> Any:
    """Which of up to 64 stored entries are alive and ≤ the query word `most` (guards set) in word 0, as bits."""
    mask = np.uint64(0)
    base = np.uint64(start)
    for i in range(count):
        word = words[0, base + np.uint64(i)]
        ok = (((most - (word ^ guard)) & guard) == guard) & (word != guard)
        mask |= np.uint64(ok) << np.uint64(i)
    return mask


@kernel(inner=True)
def covered_in(
    points: Floats, words: Any, query: Floats, most: Any, guard: Any, first: int, stop: int, found: Slots, count: int
) -> int:
    """Append the slots in first … stop−1 that the query dominates to `found`, which has room; the new count."""
    for start in range(first, stop, SCAN_BLOCK):
        mask = _within(words, start, min(SCAN_BLOCK, stop - start), most, guard)
        while mask:
            slot = start + lowest(mask)
            below = True
            for j in range(query.shape[0]):
                below &= points[slot, j] <= query[j]
            found[count] = slot
            count += below
            mask &= mask - np.uint64(1)
    return count


@kernel
def covered_by_fields(points: Floats, words: Any, used: int, fields: Any, query: Floats) -> Any:
    """All slots below `used` whose point the query dominates, ascending: the mirrored comparison."""
    offset, scale, guards = fields
    packed = np.empty(guards.shape[0], guards.dtype)
    pack(query, offset, scale, guards, packed)
    found = np.empty(used + 1, np.int64)  # one more: failing candidates are written too
    count = covered_in(points, words, query, packed[0] | guards[0], guards[0], FIRST, used, found, FIRST)
    return found[:count].copy()
