"""Slices: our own index for several dimensions. One bit per subscription, attribute and cell.

Subscriptions are in rank order, 64 to a word. Each attribute's values are cut into G cells of equal share;
the slice of a cell has bit r set iff the interval of rank r touches the cell. Property: a match's bit is
set in the slices of all its event's cells, so a word that is 0 after AND rules out 64 subscriptions, and
the bits that are left, in order, are the only candidates, best first.

An event that is an interval first ORs the slices of all its cells in an attribute.

Exact: AND the slices of the event's cells, most selective first, verify the bits that remain, stop after k.
Reading everything costs d·n/8 bytes, 1/128 of a scan; usually k results are found long before.

Relaxed: ranks go by the total weight, the best a subscription can reach. A first pass looks for k
subscriptions that hold in everything; the worst of them is a floor. The second pass visits blocks while
their best total reaches the floor, and in a block keeps only bits that can still reach it. Where the other
attributes' largest weights do not suffice, an attribute must hold; where the block's largest total less the
attribute's smallest weight does not, it must hold for all that mention it. The rest are summed from weights
rounded up to one byte, which lie in rank order; only those whose sum reaches the floor are evaluated exactly.

Space: G/8 bytes per subscription and attribute; G shrinks with the number of attributes (128 up to four, 16
from 32 on), so hundreds of attributes cost 2 bytes each. Build: one sort and d·G/64 word writes per
subscription.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.answers import Found
from topk.catalogue import Catalogue
from topk.checks import Floats, Ints
from topk.kernels.bits import ONE, ZERO, count_bits
from topk.kernels.heaps import in_order
from topk.kernels.threads import in_threads
from topk.kernels.value_codes import encode, position_map
from topk.ranked import RankedIndex, ranked_order
from topk.slices import query

_BYTES = 64  # of slices per subscription, all attributes together, while G ≥ _MIN_CELLS
_MIN_CELLS, _MAX_CELLS = 16, 128
_LEAST_WEIGHT = 1e-300  # below, a 255th of it would have few bits left
_GROUP = 8  # blocks built together: one cache line of a slice


@kernel
def _slice(cells: Any, named: Any, exact: bool, slices: Any, mentions: Any) -> None:
    """Fill the slices of one attribute from each rank's first and last cell, eight blocks at a time."""
    n, missing, blocks = len(cells), slices.shape[0] - 1, slices.shape[1]
    begin, end = np.zeros((missing + 1, _GROUP), np.uint64), np.zeros((missing + 1, _GROUP), np.uint64)
    current = np.zeros(_GROUP, np.uint64)
    for group in range(0, blocks, _GROUP):
        size = min(_GROUP, blocks - group)
        begin[:] = 0
        end[:] = 0
        current[:] = 0
        for b in range(size):
            mentioned, present = ZERO, ZERO
            base = (group + b) * 64
            for i in range(min(64, n - base)):
                bit = ONE << np.uint64(i)
                present |= bit
                if named[base + i]:
                    mentioned |= bit
                elif not exact:
                    continue
                begin[cells[base + i, 0], b] |= bit
                end[cells[base + i, 1] + 1, b] |= bit
            mentions[group + b] = mentioned
            slices[missing, group + b] = present & ~mentioned if exact else ZERO
        for g in range(missing):
            for b in range(size):
                current[b] = (current[b] | begin[g, b]) & ~end[g, b]
                slices[g, group + b] = current[b]


@kernel
def _fill_counts(slices: Any, filled: Any) -> None:
    for g in range(slices.shape[0]):
        for b in range(slices.shape[1]):
            filled[g] += np.int64(count_bits(slices[g, b]))


class Slices(RankedIndex):
    """Several dimensions; both semantics.

    >>> import topk
    >>> index = topk.create("slices", topk.Catalogue.from_boxes([[0, 0], [2, 2]], [[5, 5], [9, 9]], scores=[1.0, 4.0]))
    >>> index.top([3, 4], k=2)
    [(1, 4.0), (0, 1.0)]
    """

    name = "slices"

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        super().__init__(catalogue, semantics)
        n, d = catalogue.lo.shape
        exact = semantics == "exact"
        scores = catalogue.scores if exact else _totals(catalogue.weights)
        order = ranked_order(scores, catalogue.ids)
        self._scores, self.ranked = scores[order], catalogue.ids[order]  # ids, best first
        cells = int(np.clip(8 * _BYTES // d, _MIN_CELLS, _MAX_CELLS))
        bits = cells.bit_length() - 1
        blocks = -(-n // 64)
        named = np.empty((d, blocks), np.uint64)
        slices = np.empty((d, (1 << bits) + 1, blocks), np.uint64)
        filled = np.zeros((d, (1 << bits) + 1), np.int64)
        bounds = np.empty((n, d, 3))
        maps = [position_map(catalogue.lo[:, j], catalogue.hi[:, j], bits) for j in range(d)]
        tables = np.zeros((d, max(len(table) for table in maps), 2))
        for j, table in enumerate(maps):
            tables[j, : len(table)] = table

        def attribute(j: int) -> None:
            lo, hi = catalogue.lo[order, j], catalogue.hi[order, j]
            mentioned = catalogue.mentioned[order, j]
            _slice(_encode_all(tables[j], lo, hi), mentioned, exact, slices[j], named[j])
            _fill_counts(slices[j], filled[j])
            bounds[:, j, 0] = lo if exact else np.where(mentioned, lo, np.inf)
            bounds[:, j, 1] = hi if exact else np.where(mentioned, hi, -np.inf)
            bounds[:, j, 2] = catalogue.weights[order, j]

        in_threads(attribute, list(range(d)), n * d)
        limits = _limits(bounds[:, :, 2], catalogue.mentioned[order], self._scores, blocks)
        units = np.maximum(catalogue.weights.max(axis=0, initial=0.0), _LEAST_WEIGHT) / 255
        # At least 1 for a weight above 0, even where the quotient of a small and a huge one is 0.
        gains = np.maximum(bounds[:, :, 2], 0.0)  # relaxed matching, which reads the codes, has no others
        parts = np.maximum(np.ceil(gains / units), gains > 0.0)
        codes = np.minimum(parts, 255).astype(np.uint8)
        self.layout = query.Layout(bounds, slices, named, filled, tables, limits, codes, units)

    def search(self, low: Floats, high: Floats, k: int) -> Found:
        event = np.stack((low, high))
        work = np.zeros(2, np.int64)
        if self.semantics == "exact":
            ranks, notes = np.empty(k, np.int64), np.empty((query.NOTES, len(low)), np.int64)
            found = query.exact(self.layout, event, k, ranks, work, notes)
            answer = self.ranked[ranks[:found]], self._scores[ranks[:found]]
        else:
            ids, scores = np.empty(k, np.int64), np.empty(k)
            found = in_order(scores, ids, query.relaxed(self.layout, self.ranked, event, ids, scores, work))
            answer = ids[:found], scores[:found]
        self.stats.add(entries=int(work[0]), nodes=int(work[1]))
        return answer

    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        kernel = query.exact_many if self.semantics == "exact" else query.relaxed_many
        kernel(self.layout, events, (self.ranked, self._scores), (ids, scores, counts), work)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.layout, self.ranked, self._scores))

    def check(self) -> None:
        bounds, slices, named, _, tables, limits, codes, units = self.layout
        n, d, _ = bounds.shape
        keys = list(zip((-self._scores).tolist(), self.ranked.tolist(), strict=True))
        assert keys == sorted(keys), "ranks are best first, ties by id"
        if self.semantics == "relaxed":
            assert (codes * units * (1 + query.ROUNDING) >= bounds[:, :, 2]).all(), "byte weights are rounded up"
        for r in range(n):
            block, bit = divmod(r, 64)
            assert limits[block, 2 * d] >= self._scores[r], "a block's largest total"
            for j in range(d):
                mentioned = bool(int(named[j, block]) >> bit & 1)
                indexed = mentioned or self.semantics == "exact"
                lo, hi = bounds[r, j, :2]
                first, last = (encode(tables[j], lo), encode(tables[j], hi)) if indexed else (1, 0)
                bits = (slices[j, :-1, block] >> np.uint64(bit)) & ONE
                expected = (np.arange(len(bits)) >= first) & (np.arange(len(bits)) <= last)
                assert (bits.astype(np.bool_) == expected).all(), f"the slices of rank {r}, attribute {j}"


def _totals(weights: Floats) -> Floats:
    """Row sums in attribute order: the same floats as the scores they bound."""
    total = np.zeros(len(weights))
    for j in range(weights.shape[1]):
        total = total + weights[:, j]
    return total


@kernel
def _encode_all(table: Any, lo: Any, hi: Any) -> Any:
    cells = np.empty((len(lo), 2), np.int32)
    for r in range(len(lo)):
        cells[r, 0] = encode(table, lo[r])
        cells[r, 1] = encode(table, hi[r])
    return cells


def _limits(weights: Floats, mentioned: Any, totals: Floats, blocks: int) -> Floats:
    """Per block: largest and smallest mentioned weight of each attribute, largest total (that of the first rank)."""
    d = weights.shape[1]
    limits = np.empty((blocks, 2 * d + 1))
    if blocks:
        starts = np.arange(0, len(weights), 64)
        limits[:, :d] = np.maximum.reduceat(np.where(mentioned, weights, 0.0), starts)
        limits[:, d : 2 * d] = np.minimum.reduceat(np.where(mentioned, weights, np.inf), starts)
        limits[:, 2 * d] = totals[starts]
    return limits
