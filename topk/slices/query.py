"""Query kernels of the slices index: exact and relaxed matching over words of 64 subscriptions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.bits import FULL, ONE, ZERO, lowest_bit
from topk.kernels.heaps import in_order, offer
from topk.kernels.rows import copy
from topk.kernels.value_codes import encode

ROUNDING = 1e-9  # relative; d additions err by d·2⁻⁵³ at most


class Layout(NamedTuple):
    bounds: Floats  # (n, d, 3) by rank: lo, hi, weight; relaxed: an empty interval where not mentioned
    slices: NDArray[np.uint64]  # (d, G + 1, blocks); the last slice is for a missing value
    named: NDArray[np.uint64]  # (d, blocks): who mentions the attribute
    filled: Ints  # (d, G + 1): bits set per slice, for the order of ANDing
    tables: Floats  # (d, ·, 2): position maps
    limits: Floats  # (blocks, 2d + 1): largest and smallest mentioned weight per attribute, largest total
    codes: NDArray[np.uint8]  # (n, d): weights rounded up to 255ths of the attribute's largest
    units: Floats  # (d,): what one such part is worth


# What a search notes about an event, in rows of d integers each: its first and last cell in every attribute, how many
# bits are set in these, and the attributes by that number. A caller with many events allocates it once.
_FIRST, _LAST, _BITS, _ORDER = range(4)
NOTES = 4  # rows


@kernel(inner=True)
def _note_cells(layout: Any, event: Any, notes: Any) -> None:
    tables, missing = layout.tables, layout.slices.shape[1] - 1
    for j in range(event.shape[1]):
        low, high = event[0, j], event[1, j]
        notes[_FIRST, j] = missing if np.isnan(low) else encode(tables[j], low)
        notes[_LAST, j] = notes[_FIRST, j]
        if low != high:  # most events are points
            notes[_LAST, j] = missing if np.isnan(high) else encode(tables[j], high)


@kernel(inner=True)
def _held(slices: Any, notes: Any, j: int, b: int) -> Any:
    """The bits of block b that may hold in attribute j: one slice for a value, several for an interval."""
    word = slices[j, notes[_FIRST, j], b]
    for g in range(notes[_FIRST, j] + 1, notes[_LAST, j] + 1):
        word |= slices[j, g, b]
    return word


@kernel(inner=True)
def _note_order(filled: Any, notes: Any) -> None:
    """The most selective attribute first."""
    for j in range(notes.shape[1]):
        bits = 0
        for g in range(notes[_FIRST, j], notes[_LAST, j] + 1):
            bits += filled[j, g]
        notes[_BITS, j] = bits
        t = j
        while t > 0 and notes[_BITS, notes[_ORDER, t - 1]] > bits:
            notes[_ORDER, t] = notes[_ORDER, t - 1]
            t -= 1
        notes[_ORDER, t] = j


@kernel(inner=True)
def _inside(bounds: Any, event: Any, r: int) -> Any:
    """Does rank r hold wherever it mentions an attribute the event has? (For missing ones the slices decide.)"""
    for j in range(event.shape[1]):
        low, high = event[0, j], event[1, j]
        if not (np.isnan(low) or (bounds[r, j, 0] <= high and low <= bounds[r, j, 1])):
            return False
    return True


@kernel
def exact(layout: Any, event: Any, k: int, out: Any, work: Any, notes: Any) -> int:
    """Write the ranks of the k best to `out`; returns how many."""
    bounds, slices = layout.bounds, layout.slices
    d = event.shape[1]
    _note_cells(layout, event, notes)
    _note_order(layout.filled, notes)
    found = 0
    for b in range(slices.shape[2]):
        word = _held(slices, notes, notes[_ORDER, 0], b)
        t = 1
        while word != ZERO and t < d:
            word &= _held(slices, notes, notes[_ORDER, t], b)
            t += 1
        while word != ZERO:
            r = 64 * b + lowest_bit(word)
            word &= word - ONE
            work[0] += 1
            if _inside(bounds, event, r):
                out[found] = r
                found += 1
                if found == k:
                    work[1] += b + 1
                    return found
    work[1] += slices.shape[2]
    return found


@kernel(inner=True)
def _total(bounds: Any, event: Any, r: int) -> Any:
    """(score, predicates that hold) of rank r; NaN compares false."""
    total, held = 0.0, 0
    for j in range(event.shape[1]):
        if bounds[r, j, 0] <= event[1, j] and event[0, j] <= bounds[r, j, 1]:
            total += bounds[r, j, 2]
            held += 1
    return total, held


@kernel(inner=True)
def _floor(layout: Any, event: Any, notes: Any, k: int, work: Any) -> Any:
    """The score of the k-th subscription that holds in all it mentions, a lower bound of the k-th best; or −1."""
    slices, named = layout.slices, layout.named
    worst, found = np.inf, 0
    for b in range(slices.shape[2]):
        word, some = FULL, ZERO
        for j in range(event.shape[1]):
            held = _held(slices, notes, j, b)
            some |= held
            word &= held | ~named[j, b]
        word &= some
        while word != ZERO:
            r = 64 * b + lowest_bit(word)
            word &= word - ONE
            work[0] += 1
            score, held_count = _total(layout.bounds, event, r)
            if held_count > 0:
                worst = min(worst, score)
                found += 1
                if found == k:
                    work[1] += b + 1
                    return worst
    work[1] += slices.shape[2]
    return -1.0


@kernel(inner=True)
def _possible(held: Any, named: Any, limits: Any, b: int, floor: float) -> Any:
    """The bits of block b that may still reach the floor, by the limits of the block."""
    d, most, word = len(held), 0.0, ZERO
    for j in range(d):
        word |= held[j]
        if held[j] != ZERO:
            most += limits[b, j]
    if most < floor:
        return ZERO
    # A difference has the rounding errors of what it is taken from, which may be far above the floor.
    lost, total = ROUNDING * most, limits[b, 2 * d]
    for j in range(d):
        gain = limits[b, j] if held[j] != ZERO else 0.0
        if most - gain + lost < floor:
            word &= held[j]
        if total - limits[b, d + j] + ROUNDING * total < floor:
            word &= held[j] | ~named[j, b]
    return word


@kernel
def relaxed(layout: Any, ids: Any, event: Any, out_ids: Any, out_scores: Any, work: Any) -> Any:
    """Write the k best as a heap, unsorted; returns how many."""
    slices, limits, codes, units = layout.slices, layout.limits, layout.codes, layout.units
    d, k = event.shape[1], len(out_ids)
    notes, held = np.empty((NOTES, d), np.int64), np.empty(d, np.uint64)
    _note_cells(layout, event, notes)
    floor = _floor(layout, event, notes, k, work)
    size = np.int64(0)
    for b in range(slices.shape[2]):
        if size == k:
            floor = max(floor, out_scores[0])
        if limits[b, 2 * d] < floor:
            break
        reach = floor - ROUNDING * (1.0 + floor)  # the bounds add in another order than the scores
        for j in range(d):
            held[j] = _held(slices, notes, j, b)
        word = _possible(held, layout.named, limits, b, reach)
        work[1] += 1
        while word != ZERO:
            bit = lowest_bit(word)
            word &= word - ONE
            r = 64 * b + bit
            bound = 0.0
            for j in range(d):
                bound += np.float64(codes[r, j] * np.int64((held[j] >> np.uint64(bit)) & ONE)) * units[j]
            if bound < reach:
                continue
            work[0] += 1
            score, count = _total(layout.bounds, event, r)
            if count > 0:
                size = offer(out_scores, out_ids, size, score, ids[r])
    return size


@kernel
def exact_many(layout: Any, events: Any, named: Any, answers: Any, work: Any) -> None:
    ids, scores = named
    out_ids, out_scores, counts = answers
    ranks = np.empty(out_ids.shape[1], np.int64)
    event, notes = np.empty((2, events.shape[1])), np.empty((NOTES, events.shape[1]), np.int64)
    for e in range(len(events)):
        copy(events[e], event[0])
        copy(events[e], event[1])
        counts[e] = exact(layout, event, len(ranks), ranks, work, notes)
        for t in range(counts[e]):
            out_ids[e, t] = ids[ranks[t]]
            out_scores[e, t] = scores[ranks[t]]


@kernel
def relaxed_many(layout: Any, events: Any, named: Any, answers: Any, work: Any) -> None:
    out_ids, out_scores, counts = answers
    event = np.empty((2, events.shape[1]))
    for e in range(len(events)):
        copy(events[e], event[0])
        copy(events[e], event[1])
        found = relaxed(layout, named[0], event, out_ids[e], out_scores[e], work)
        counts[e] = in_order(out_scores[e], out_ids[e], found)
