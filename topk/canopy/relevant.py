"""Which intervals a canopy needs: all but those that `depth` better ones cover wherever they lie.

Ranks are looked at best first, in blocks, and every coarse cell counts how many cover it. A cell covered by `depth` is
closed; an interval that meets only closed cells does not matter.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.canopy.query import HI, ID, LO, SCORE
from topk.checks import Floats, Ints
from topk.kernels.threads import in_threads, parts
from topk.kernels.value_codes import encode
from topk.ranked import ranked_order

_BLOCK = 1 << 17  # ranks that are looked at together: their data stay in the second-level cache


class IntervalColumns(NamedTuple):
    """Intervals of the attribute."""

    lo: Floats
    hi: Floats
    scores: Floats
    ids: Ints


class Grid(NamedTuple):
    """Bins of equal share, and the coarse cells of 2^shift bins that decide what matters."""

    table: Floats
    bins: int
    shift: int


@kernel
def _encode_ends(table: Any, bins: int, lo: Any, hi: Any, codes: Any, part: Any) -> None:
    """First and last bin of each interval; −1 and `bins` for unbounded sides, which are inside no bin."""
    for t in range(part[0], part[1]):
        codes[t, 0] = -1 if lo[t] == -np.inf else encode(table, lo[t])
        codes[t, 1] = bins if hi[t] == np.inf else encode(table, hi[t])


@kernel(inner=True)
def open_from(following: Any, cell: int) -> Any:
    """The first cell from `cell` on that is still open: union-find with path halving."""
    while following[cell] != cell:
        following[cell] = following[following[cell]]
        cell = following[cell]
    return cell


@kernel
def _relevant(codes: Any, shift: int, depth: int, covers: Any, following: Any, keep: Any, ends: Any) -> int:
    """Keep those of the next ranks that meet a cell (2^shift bins) not yet covered by `depth` better ones; returns how
    many.

    `ends` gets their codes; covers[c] is how many cover cell c, up to depth; `following` is for `open_from`.
    """
    cells = len(covers)
    found = 0
    for t in range(len(codes)):
        first, last = codes[t, 0] >> shift, codes[t, 1] >> shift
        cell = open_from(following, max(first, 0))
        if cell > last or cell == cells:
            continue
        keep[found] = t
        ends[found, 0], ends[found, 1] = codes[t, 0], codes[t, 1]
        found += 1
        while cell <= last and cell < cells:
            if first < cell and cell < last:
                covers[cell] += 1
                if covers[cell] == depth:
                    following[cell] = cell + 1
            cell = open_from(following, cell + 1)
    return found


def choose(columns: IntervalColumns, grid: Grid, depth: int, records: Floats, ends: Any) -> tuple[int, Any]:
    """Write the records of the intervals that matter, best first, and the bins of their ends, a block at a time.

    Returns how many matter, and how many cover each coarse cell, up to `depth`.
    """
    table, bins, shift = grid
    covers, integers, found = np.zeros(bins >> shift, np.int32), records.view(np.int64), 0
    following = np.arange(len(covers) + 1, dtype=np.int32)  # for `open_from`
    order = ranked_order(columns.scores, columns.ids)
    size = min(_BLOCK, len(order))
    codes, keep = np.empty((size, 2), np.int32), np.empty(size, np.int32)
    for begin in range(0, len(order), _BLOCK):
        rows = order[begin : begin + _BLOCK]
        lo, hi = columns.lo.take(rows), columns.hi.take(rows)
        in_threads(partial(_encode_ends, table, bins, lo, hi, codes), parts(len(rows), len(order)))
        more = _relevant(codes[: len(rows)], shift, depth, covers, following, keep, ends[found:])
        kept, place = keep[:more], slice(found, found + more)
        records[place, LO], records[place, HI] = lo.take(kept), hi.take(kept)
        rows = rows.take(kept)
        records[place, SCORE], integers[place, ID] = columns.scores.take(rows), columns.ids.take(rows)
        found += more
        if (covers == depth).all():
            break  # all further intervals are covered
    return found, covers
