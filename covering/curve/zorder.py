"""Approximate covering by the Z curve: the slides' greedy search of standard cubes in decreasing size.

Shen and Tirthapura, ICDCS 2007. Stored points lie in the SFC array by Z key. A query's search region is an
extremal rectangle; its standard cubes are key ranges, looked up largest first until the searched fraction γ
of the rectangle's volume reaches 1 − ε (ε = 0: all of it, exact). Safe at any ε: a cover may be missed,
never invented.

What ours changes: a point found in a cube is verified on its original bounds, because a cube at the edge of
the region holds points with the query's own code, which may fail by a fraction of a cell; a `probe_cap` ends
a search that would enumerate too many cubes and says so in `stats.capped`; with ε = 0 nothing may be missed, so
what the cap left open is then searched by exact jumps (`finish`, bigmin.py); `merge_runs` joins cubes with
neighbouring keys, of whatever size, into runs and looks these up, longest first.

A probe is one key range looked up; the rows compared inside it are candidates. Cost: up to `quota` probes of O(log n),
where theory.py gives the quota and the slides' bounds on it, and the candidates.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import NO_SLOT
from covering.curve import theory
from covering.curve.bigmin import jump_to_covers
from covering.curve.cubes import cube_rows, new_walk, next_range
from covering.curve.index import CurveIndex
from covering.curve.keys import Codes, Words
from covering.curve.resolution import Bits, GreedyBits, greedy_bits
from covering.curve.sfc_array import BLOCK, Arrays, locate
from covering.given import Floats, check_limit
from covering.packed_words import dominates
from covering.quantiser import WORD
from coverlay import CoverlayError, Key, kernel

PROBE_CAP = 4096  # about a millisecond of probing; an exact scan of 100k entries takes half of that


@kernel
def _probe(arrays: Arrays, points: Floats, query: Floats, low: Words, high: Words) -> tuple[int, int]:
    """(slot with key in [low, high] that dominates the query or −1, rows compared). `low` is a row with slot 0."""
    rows, order, count, meta = arrays[0], arrays[2], arrays[3], arrays[4]
    words = low.shape[0] - 1
    at, inside = locate(arrays, low)
    compared = 0
    while at < meta[0]:
        block = order[at]
        for i in range(block * BLOCK + inside, block * BLOCK + count[block]):
            for w in range(words):
                if rows[i, w] != high[w]:
                    if rows[i, w] > high[w]:
                        return -1, compared
                    break
            slot = np.int64(rows[i, words])
            compared += 1
            if dominates(points, slot, query):
                return int(slot), compared
        at, inside = at + 1, 0
    return -1, compared


@kernel
def _greedy(
    arrays: Arrays, points: Floats, query: Floats, lengths: Codes, bits: int, hilbert: bool, quota: int
) -> tuple[int, int, int]:
    """(slot or −1, cubes probed, rows compared) of the greedy search over at most `quota` cubes."""
    words = (len(lengths) * bits + 63) // 64
    low, high = np.zeros(words + 1, np.uint64), np.zeros(words + 1, np.uint64)
    walk = new_walk(lengths, bits)
    cubes, candidates, slot = 0, 0, -1
    while slot < 0 and cubes < quota and next_range(walk, bits, hilbert, low, high) >= 0:
        cubes += 1
        slot, compared = _probe(arrays, points, query, low, high)
        candidates += compared
    return slot, cubes, candidates


def as_integer(row: Words) -> int:
    """The key of a row (its last word is the slot) as one Python integer."""
    key = 0
    for word in row[:-1].tolist():
        key = key << WORD | word
    return key


def merged_runs(rows: Words, levels: Codes, dimensions: int, bits: int) -> list[tuple[int, int]]:
    """Maximal runs (first key, last key) of the given cubes, as left-aligned integers, in key order."""
    pad = (rows.shape[1] - 1) * WORD - dimensions * bits
    runs: list[tuple[int, int]] = []
    for first, level in sorted(zip(map(as_integer, rows), levels.tolist(), strict=True)):
        last = first + (1 << (level * dimensions + pad)) - 1
        if runs and runs[-1][1] + 1 == first:
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    return runs


class ZorderIndex(GreedyBits, CurveIndex):
    """The slides' greedy search: standard cubes in decreasing size, until a share 1 − ε of the region is searched.

    >>> from covering.curve.zorder import ZorderIndex
    >>> index = ZorderIndex((0, 100), epsilon=0.1, bits=4)
    >>> index.add(1, (0, 90))
    >>> index.find_cover((10, 20)), index.stats.cubes
    (1, 1)
    """

    name = "zorder"
    on_curve = True
    compares_candidates = True
    slow_beyond = 2_000
    takes_epsilon = True
    gives_up_with = {"finish": True}  # noqa: RUF012

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        bits: Bits = None,
        probe_cap: Annotated[int, Key("probes after which the greedy search ends", "probes")] = PROBE_CAP,
        merge_runs: Annotated[bool, Key("join cubes that follow each other on the curve")] = False,
        finish: Annotated[bool, Key("with ε = 0, search what the cap left open by exact jumps")] = True,
    ) -> None:
        super().__init__(domain, epsilon, bits, partial(greedy_bits, 0))
        self._follows = bits is None
        check_limit("probe_cap", probe_cap)
        for option, value in (("merge_runs", merge_runs), ("finish", finish)):
            if not isinstance(value, bool):
                raise CoverlayError(f"{option} {value!r} must be true or false")
        self.probe_cap, self.merge_runs, self.finish = probe_cap, merge_runs, finish
        finishes = finish and epsilon == 0.0
        self.store = "next key" if finishes else "yes or no"  # the exact jumps need it
        self.cap = None if finishes else probe_cap

    def _divide(self, bits: int) -> None:
        self._give_new_keys(bits)

    def search(self, query: Floats) -> int:
        lengths = self.lengths_of(query)
        plan = theory.plan(lengths.tolist(), self.bits, self.epsilon)
        quota = min(plan.quota, self.probe_cap)
        if self.merge_runs:
            slot, cubes, runs, volume, candidates = self._search_runs(query, lengths, quota)
        else:
            slot, cubes, candidates = _greedy(
                self._array.arrays, self.points, query, lengths, self.bits, self.hilbert, quota
            )
            runs, volume = cubes, plan.volume_of(cubes)
        stats = self.stats
        stats.probes += runs
        stats.candidates += candidates
        stats.cubes += cubes
        stats.runs += runs
        if slot < 0 and quota < plan.quota:
            if self.finish and self.epsilon == 0.0:
                stats.volume += 1.0
                return self._finish(query)
            stats.capped += 1
        stats.volume += volume / plan.total
        return slot

    def _finish(self, query: Floats) -> int:
        """Search everything, exactly; on the Z curve by jumps."""
        q, one, found = self._quantiser, query.reshape(1, -1), np.empty(1, np.int64)
        self.stats.probes += jump_to_covers(self._array.arrays, self.points, q.offset, q.scale, q.bits, one, found)
        return int(found[0])

    def _search_runs(self, query: Floats, lengths: Codes, quota: int) -> tuple[int, int, int, int, int]:
        """(slot, cubes collected, runs probed, cells searched, rows compared): longest runs first, ties by key."""
        rows, levels = cube_rows(lengths, self.bits, self.hilbert, quota)
        width = rows.shape[1] - 1
        pad = width * WORD - len(lengths) * self.bits
        runs = sorted(merged_runs(rows, levels, len(lengths), self.bits), key=lambda r: (r[0] - r[1], r[0]))
        cells, slot, probed, candidates = 0, NO_SLOT, 0, 0
        for first, last in runs:
            low, high = _row(first, width), _row(last, width)
            slot, compared = _probe(self._array.arrays, self.points, query, low, high)
            probed += 1
            candidates += compared
            cells += (last - first + 1) >> pad
            if slot >= 0:
                break
        return slot, len(levels), probed, cells, candidates


def _row(key: int, words: int) -> Words:
    mask = (1 << WORD) - 1
    parts: list[Any] = [(key >> (WORD * (words - 1 - w))) & mask for w in range(words)]
    return np.array([*parts, 0], np.uint64)
