"""A k-d tree over the dominance points with the coordinate-wise maximum of every subtree.

A subtree whose maximum is below the query in some coordinate holds no cover. The tree is balanced by medians
on the coordinate that spreads most (of a sample, within the domain), down to buckets of 64 points that
lie together and are scanned by packed words (fields.py). Nodes are numbered as in a heap and nothing but
their maxima is stored: node i has children 2i and 2i+1, and the range of buckets is halved on the way.

The boxes of largest volume lie in front of the tree and are scanned first: most covered queries end there, and
the others lose 20 ns.

Additions and removals: layered.py. A search that has visited `node_cap` nodes stops descending and scans the
packed words of the whole static part instead, so that adversarial inputs cost no more than `packed`.

With ε (the slides' open question "does approximation help k-d trees?"): a node is skipped when the part of the
search region below its maximum, in cells of the packed words' grid, is at most what is left of a
budget of ε times the region. Whatever is skipped, all other places where covers could be were
searched, so the searched fraction is at least 1 − ε; `stats.volume` has the fraction.

Cost: measured 0.3–5 µs per query at 100k entries; build O(n log n). A probe is an entry whose words were
looked at, plus one for each node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from covering.base import Floats, Slots
from covering.fields import pack, scan_fields
from covering.keys import mirror
from covering.layered import LayeredIndex
from covering.packed import volumes
from coverlay import CoverlayError

BUCKET = 64  # points per leaf: one vectorised block
FRONT = 128  # largest boxes scanned before anything else
NODE_CAP = 2000  # nodes per search; more cost as much as scanning the words of 100k entries
_SAMPLE = 32  # points that decide the split coordinate
_STACK = 128  # a path of at most 64 nodes, and a sibling for each


@njit(cache=True, nogil=True)
def _spread(points: Floats, order: Slots, low: int, high: int, box: Floats) -> int:
    """The coordinate whose sampled values, clipped to the domain, spread widest relative to it."""
    step = max(1, (high - low) // _SAMPLE)
    best, widest = 0, -1.0
    for j in range(points.shape[1]):
        least, most = np.inf, -np.inf
        for i in range(low, high, step):
            value = min(max(points[order[i], j], box[j, 0]), box[j, 1])
            least, most = min(least, value), max(most, value)
        # Beyond the domain counts as one more step: else all-unbounded coordinates would look alike.
        width = box[j, 1] - box[j, 0]
        spread = (most - least) / width if width > 0.0 else 0.0
        if spread > widest:
            best, widest = j, spread
    return best


@njit(cache=True, nogil=True)
def _select(values: Floats, order: Slots, low: int, high: int, middle: int) -> None:
    """Rearrange [low, high) so that values before `middle` are ≤ and from it on are ≥ values[middle]."""
    high -= 1
    while high > low:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True)
def _build(points: Floats, box: Floats) -> Slots:
    """The order of points, bucket after bucket."""
    n = points.shape[0]
    order = np.arange(n)
    values = np.empty(n)
    stack = np.empty((_STACK, 2), np.int64)  # ranges of buckets
    stack[0, 0], stack[0, 1] = 0, (n + BUCKET - 1) // BUCKET
    top = 1
    while top:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        if b - a <= 1:
            continue
        half = (a + b) >> 1
        low, high = a * BUCKET, min(b * BUCKET, n)
        j = _spread(points, order, low, high, box)
        for i in range(low, high):
            values[i] = points[order[i], j]
        _select(values, order, low, high, half * BUCKET)
        stack[top, 0], stack[top, 1] = a, half
        stack[top + 1, 0], stack[top + 1, 1] = half, b
        top += 2
    return order


@njit(cache=True, nogil=True)
def _fill(points: Floats, maxima: Floats, node: int, a: int, b: int) -> None:
    """Maxima of the subtree of `node`, which holds buckets a … b−1; NaN points do not count."""
    if b - a == 1:
        maxima[node] = -np.inf
        for i in range(a * BUCKET, min(b * BUCKET, points.shape[0])):
            for j in range(points.shape[1]):
                if points[i, j] > maxima[node, j]:
                    maxima[node, j] = points[i, j]
        return
    half = (a + b) >> 1
    _fill(points, maxima, 2 * node, a, half)
    _fill(points, maxima, 2 * node + 1, half, b)
    for j in range(points.shape[1]):
        maxima[node, j] = max(maxima[2 * node, j], maxima[2 * node + 1, j])


@njit(cache=True, nogil=True)
def _below(maxima: Floats, node: int, query: Floats) -> bool:
    possible = True
    for j in range(query.shape[0]):
        possible &= maxima[node, j] >= query[j]
    return not possible


@njit(cache=True, nogil=True)
def _share(maxima: Floats, node: int, fields: Any, bits: int, corner: Slots, codes: Slots) -> float:
    """Fraction of the search region (mirrored codes 0 … corner) that lies below the node's maximum."""
    mirror(maxima[node], fields[0], fields[1], bits, codes)
    share = 1.0
    for j in range(codes.shape[0]):
        share *= (corner[j] - codes[j] + 1) / (corner[j] + 1)
    return share


@njit(cache=True, nogil=True)
def _find(state: Any, built: int, used: int, cap: int, epsilon: float, query: Floats) -> tuple[int, int, float]:
    """(slot or −1, probes, fraction of the region skipped)."""
    points, words, maxima, offset, scale, guards = state
    packed = np.empty(guards.shape[0], guards.dtype)
    pack(query, offset, scale, guards, packed)
    front = min(FRONT, built)
    slot, probes = scan_fields(points, words, guards, query, packed, 0, front)
    if slot >= 0:
        return slot, probes, 0.0
    slot, looked = scan_fields(points, words, guards, query, packed, built, used)
    probes += looked
    if slot >= 0 or built == front or _below(maxima, 1, query):
        return slot, probes, 0.0
    bits, skipped = (15 if query.shape[0] < 5 else 7), 0.0  # code bits of a field, see fields.py
    if epsilon > 0.0:
        corner, codes = np.empty(query.shape[0], np.int64), np.empty(query.shape[0], np.int64)
        mirror(query, offset, scale, bits, corner)
        fields = (offset, scale)
    stack = np.empty((_STACK, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 1, 0, (built - front + BUCKET - 1) // BUCKET
    top, visited = 1, 0
    while top:
        top -= 1
        node, a, b = stack[top, 0], stack[top, 1], stack[top, 2]
        visited += 1
        if visited > cap:
            slot, looked = scan_fields(points, words, guards, query, packed, front, built)
            return slot, probes + visited + looked, 0.0
        if epsilon > 0.0:
            share = _share(maxima, node, fields, bits, corner, codes)
            if skipped + share <= epsilon:
                skipped += share
                continue
        if b - a == 1:
            low = front + a * BUCKET
            slot, looked = scan_fields(points, words, guards, query, packed, low, min(low + BUCKET, built))
            probes += looked
            if slot >= 0:
                return slot, probes + visited, skipped
            continue
        half = (a + b) >> 1
        # The upper child goes on the stack last and is searched first: its boxes are larger.
        if not _below(maxima, 2 * node, query):
            stack[top, 0], stack[top, 1], stack[top, 2] = 2 * node, a, half
            top += 1
        if not _below(maxima, 2 * node + 1, query):
            stack[top, 0], stack[top, 1], stack[top, 2] = 2 * node + 1, half, b
            top += 1
    return -1, probes + visited, skipped


@njit(cache=True, nogil=True)
def _find_many(
    state: Any, built: int, used: int, cap: int, epsilon: float, queries: Floats
) -> tuple[Slots, int, float]:
    found = np.empty(queries.shape[0], np.int64)
    probes, skipped = 0, 0.0
    for i in range(queries.shape[0]):
        found[i], looked, left_out = _find(state, built, used, cap, epsilon, queries[i])
        probes += looked
        skipped += left_out
    return found, probes, skipped


class KdTreeIndex(LayeredIndex):
    name = "kdtree"
    takes_epsilon = True

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0, *, node_cap: int = NODE_CAP) -> None:
        super().__init__(domain, epsilon)
        if isinstance(node_cap, bool) or not isinstance(node_cap, int) or node_cap < 1:
            raise CoverlayError(f"node_cap {node_cap!r} must be a whole number of at least 1")
        self.node_cap = node_cap
        self._maxima: Floats = np.empty((0, 2 * self.attributes))
        self._arrays_moved()

    def _arranged(self, points: Floats) -> Slots:
        box = np.empty((2 * self.attributes, 2))
        box[0::2], box[1::2] = -self.domain[:, ::-1], self.domain
        largest: Slots = np.argsort(-volumes(points, self.domain), kind="stable")
        rest = largest[FRONT:]
        return np.concatenate([largest[:FRONT], rest[_build(points[rest], box)]])

    def _arrange_done(self) -> None:
        buckets = -(-max(0, self._built - FRONT) // BUCKET)
        height = max(0, buckets - 1).bit_length()
        self._maxima = np.full((2 << height if buckets else 0, 2 * self.attributes), -np.inf)
        if buckets:
            _fill(self._points[FRONT : self._built], self._maxima, 1, 0, buckets)

    def _arrays_moved(self) -> None:
        self._state = (self._points, self._words, self._maxima, *self._fields.kernel)

    def _search(self, query: Floats) -> int:
        slot, probes, skipped = _find(self._state, self._built, self._used, self.node_cap, self.epsilon, query)
        self.stats.probes += probes
        self.stats.volume += 1.0 - skipped
        return slot

    def _search_many(self, queries: Floats) -> Slots:
        slots, probes, skipped = _find_many(self._state, self._built, self._used, self.node_cap, self.epsilon, queries)
        self.stats.probes += probes
        self.stats.volume += len(queries) - skipped
        return slots

    def _structure_bytes(self) -> int:
        return super()._structure_bytes() + self._maxima.nbytes

    def _check(self) -> None:
        super()._check()
        treed = self._points[FRONT : self._built]
        buckets = -(-len(treed) // BUCKET)
        stack = [(1, 0, buckets)] if buckets else []
        while stack:
            node, a, b = stack.pop()
            inside = treed[a * BUCKET : b * BUCKET]
            alive = inside[~np.isnan(inside[:, 0])]
            assert (alive <= self._maxima[node]).all()
            if b - a > 1:
                half = (a + b) >> 1
                stack += [(2 * node, a, half), (2 * node + 1, half, b)]
