"""Kernels of the ready answers: a sweep over the cells of a canopy, from cut to cut.

At a cut one interval begins or has ended, so the best `depth` change by at most one. An interval that is worse than all
of them changes nothing. The cuts of a cell are few and are sorted where they are found; cells are in order already.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.canopy_query import FLAGS, HI, LO
from topk.position import encode

WIDEST = np.finfo(np.float64).max / 4  # cuts beyond are left out, and the values there: differences must be finite
_MANY = 64  # cuts in one cell that are worth a real sort
_NOWHERE = np.iinfo(np.int32).max


@kernel
def cells_of(views: Any, cells: Any) -> None:
    """Where the lists of the cells are in which each record begins and ends; −1 and _NOWHERE if it does not."""
    table, records, starts, _ = views
    for r in range(len(records)):
        lo, hi = records[r, LO], records[r, HI]
        cells[r, 0] = -1 if lo == -np.inf else starts[encode(table, lo)]
        cells[r, 1] = _NOWHERE if hi == np.inf else starts[encode(table, hi)]


@kernel
def _cuts_of_cell(at: int, ranks: Any, records: Any, cells: Any, inside: Any, values: Any, entries: Any) -> Any:
    """Where the intervals of a cell's list begin (entry p) and have ended (entry ~p) in it, ascending; how many.

    `inside` tells which of them contain the cell's first value, unless they begin there.
    """
    count = 0
    for p in range(len(ranks)):
        r = ranks[p]
        inside[p] = cells[r, 0] < at
        if cells[r, 0] == at:
            values[count], entries[count] = records[r, LO], p
            count += 1
        if cells[r, 1] == at:
            values[count], entries[count] = np.nextafter(records[r, HI], np.inf), ~p
            count += 1
    if count > _MANY:
        order = np.argsort(values[:count])
        values[:count], entries[:count] = values[:count][order], entries[:count][order]
        return count
    for e in range(1, count):
        value, entry = values[e], entries[e]
        while e > 0 and values[e - 1] > value:
            values[e], entries[e] = values[e - 1], entries[e - 1]
            e -= 1
        values[e], entries[e] = value, entry
    return count


@kernel
def _enter(best: Any, found: int, rank: int, number: int) -> Any:
    """Put a rank and its number among the best; how many there are then. There is room for one too many."""
    t = found
    while t > 0 and best[0, t - 1] > rank:
        best[0, t], best[1, t] = best[0, t - 1], best[1, t - 1]
        t -= 1
    best[0, t], best[1, t] = rank, number
    return min(found + 1, best.shape[1] - 1)


@kernel
def _leave(best: Any, found: int, rank: int) -> None:
    """Take a rank out of the best."""
    at = 0
    while best[0, at] != rank:
        at += 1
    for t in range(at, found - 1):
        best[0, t], best[1, t] = best[0, t + 1], best[1, t + 1]


@kernel
def _number(numbers: Any, rank: int, used: Any, count: int, base: int) -> Any:
    """A rank's number, from `base` on in the order of first use; how many have one."""
    if numbers[rank] < 0:
        numbers[rank] = base + count
        used[count] = rank
        count += 1
    return count


@kernel
def _keep(value: float, best: Any, found: int, kept: Any, answers: Any, places: int) -> Any:
    """A cut and the answer from it on; how many there are then."""
    if abs(value) > WIDEST:
        return places
    kept[places] = value
    answers[places, :found] = best[1, :found]
    answers[places, found:] = -1
    return places + 1


@kernel
def sweep(views: Any, cells: Any, part: Any, base: int, kept: Any, answers: Any, used: Any) -> Any:
    """Cuts and answers from the cell whose list is at part[0] to the one before part[1]; how many, and ranks used.

    A row of answers holds the numbers of ranks; it is filled up with −1.
    """
    records, lists, depth = views[1], views[3], answers.shape[1]
    numbers = np.full(len(records), -1, np.int64)
    best = np.full((2, depth + 1), -1, np.int64)  # ranks and their numbers
    inside, values, entries = np.empty(0, np.bool_), np.empty(0), np.empty(0, np.int64)
    places: Any = 0
    known: Any = 0
    found: Any = 0
    changed = False
    value = -np.inf
    at = part[0]
    while at < part[1]:
        size = np.int64(lists[at] >> FLAGS)
        if size > len(inside):
            inside, values, entries = np.empty(2 * size, np.bool_), np.empty(4 * size), np.empty(4 * size, np.int64)
        ranks = lists[at + 1 : at + 1 + size]
        cuts = _cuts_of_cell(at, ranks, records, cells, inside, values, entries)
        if at == part[0]:
            for p in range(size):
                if inside[p] and found < depth:
                    known = _number(numbers, ranks[p], used, known, base)
                    found = _enter(best, found, ranks[p], numbers[ranks[p]])
        at += 1 + size
        for e in range(cuts):
            if changed and values[e] > value:  # only now: the next cell may have begun with the same value
                places = _keep(value, best, found, kept, answers, places)
                changed = False
            value = values[e]
            p = entries[e]
            enters = p >= 0
            p = p if enters else ~p
            rank = ranks[p]
            inside[p] = enters
            last = best[0, found - 1] if found == depth else len(records)  # everything else is among the best
            if rank > last:
                continue
            changed = True
            if enters:
                known = _number(numbers, rank, used, known, base)
                found = _enter(best, found, rank, numbers[rank])
                continue
            _leave(best, found, rank)
            found -= 1
            if last < len(records):
                while p < size and not (inside[p] and ranks[p] > last):
                    p += 1
                if p < size:
                    known = _number(numbers, ranks[p], used, known, base)
                    found = _enter(best, found, ranks[p], numbers[ranks[p]])
    if changed:
        places = _keep(value, best, found, kept, answers, places)
    return places, known
