"""Which intervals a canopy needs at all: those that no `depth` better ones cover wherever they lie.

Ranks are looked at best first, in blocks, and every coarse cell counts how many cover it. A cell that `depth` cover is
closed; what meets only closed cells does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.canopy.query import HI, ID, LO, SCORE
from topk.catalogue import Floats, Ints
from topk.kernels.threads import in_threads, parts
from topk.kernels.value_codes import encode
from topk.ranked import ranked_order

_BLOCK = 1 << 17  # ranks that are looked at together: what is known of them stays in the second-level cache


class Columns(NamedTuple):
    """Intervals of the attribute."""

    lo: Floats
    hi: Floats
    scores: Floats
    ids: Ints


class Grid(NamedTuple):
    """Positions in equal shares, and the coarse cells of 2^shift bins in which is decided what matters."""

    table: Floats
    bins: int
    shift: int


@kernel
def _fetch(columns: Any, rows: Any, sides: Any, part: Any) -> None:
    """Bounds in rank order. Nothing else happens here, so that cache misses overlap."""
    lo, hi = columns[0], columns[1]
    for t in range(part[0], part[1]):
        sides[t, LO] = lo[rows[t]]
        sides[t, HI] = hi[rows[t]]


@kernel
def _encode_ends(table: Any, bins: int, sides: Any, codes: Any, part: Any) -> None:
    """First and last bin of each; −1 and `bins` for unbounded sides, which are inside no bin."""
    for t in range(part[0], part[1]):
        lo, hi = sides[t, LO], sides[t, HI]
        codes[t, 0] = -1 if lo == -np.inf else encode(table, lo)
        codes[t, 1] = bins if hi == np.inf else encode(table, hi)


@kernel
def _place(columns: Any, rows: Any, sides: Any, keep: Any, records: Any, part: Any) -> None:
    """The kept ones of a block into their records."""
    scores, ids = columns[2], columns[3]
    integers = records.view(np.int64)
    for r in range(part[0], part[1]):
        t = keep[r]
        records[r, LO] = sides[t, LO]
        records[r, HI] = sides[t, HI]
        records[r, SCORE] = scores[rows[t]]
        integers[r, ID] = ids[rows[t]]


@kernel
def open_from(following: Any, cell: int) -> Any:
    """The first cell from `cell` on that is still open: union-find with path halving."""
    while following[cell] != cell:
        following[cell] = following[following[cell]]
        cell = following[cell]
    return cell


@kernel
def _relevant(codes: Any, shift: int, depth: int, covers: Any, following: Any, keep: Any, ends: Any) -> int:
    """Which of the next ranks meet a cell (2^shift bins) not yet covered by `depth` better ones; returns how many.

    ends are their codes; covers[c] is how many cover cell c, up to depth; `following` is for `open_from`.
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


class Chooser:
    """Goes through the intervals best first and keeps what matters."""

    def __init__(self, columns: Columns, grid: Grid, depth: int) -> None:
        self._columns = columns
        self.grid = grid
        self._depth = depth
        cells = grid.bins >> grid.shift
        self.covers = np.zeros(cells, np.int32)  # how many cover each coarse cell, up to depth
        self._following = np.arange(cells + 1, dtype=np.int32)  # for `open_from`

    def choose(self, records: Any, ends: Any) -> int:
        """The records of those that matter, and their ends in bins; returns how many. A block of ranks at a time."""
        columns, (table, bins, shift) = self._columns, self.grid
        order = ranked_order(columns.scores, columns.ids)
        size = min(_BLOCK, len(order))
        sides, codes, keep = np.empty((size, 2)), np.empty((size, 2), np.int32), np.empty(size, np.int32)
        found = 0
        for begin in range(0, len(order), _BLOCK):
            rows = order[begin : begin + _BLOCK]

            def fetch(part: Ints, rows: Ints = rows) -> None:
                _fetch(columns, rows, sides, part)
                _encode_ends(table, bins, sides, codes, part)

            def place(part: Ints, rows: Ints = rows, into: Any = records[found:]) -> None:
                _place(columns, rows, sides, keep, into, part)

            in_threads(fetch, parts(len(rows), len(order)))
            ranked, state = codes[: len(rows)], (self.covers, self._following)
            more = _relevant(ranked, shift, self._depth, *state, keep, ends[found:])
            in_threads(place, parts(more, more))
            found += more
            if open_from(self._following, 0) == len(self.covers):
                break  # everything is covered
        return found
