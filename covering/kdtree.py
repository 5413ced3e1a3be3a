"""A k-d tree over the dominance points with the coordinate-wise maximum of every subtree.

A subtree whose maximum is below the query in some coordinate holds no cover. The tree is balanced by medians
on the coordinate that spreads most in relation to the width of the boxes, down to buckets of 64 points that
lie together and are scanned by packed words (fields.py). Nodes are numbered as in a heap and nothing but
their maxima is stored: node i has children 2i and 2i+1, and the range of buckets is halved on the way. Row 0
of the maxima is that of the whole static part.

The boxes of largest volume lie in front of the tree and are scanned first: most covered queries end there, and
the others lose 20 ns.

Additions and removals: layered.py. A search that has visited `node_cap` nodes stops descending and scans the
packed words of the whole static part instead (or fewer nodes, an eighth of the buckets), so that adversarial
inputs cost hardly more than `packed`.

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
from covering.fields import field_width, pack, scan_fields
from covering.keys import mirror
from covering.layered import LayeredIndex
from covering.packed import volumes
from coverlay import CoverlayError

BUCKET = 64  # points per leaf: one vectorised block
FRONT = 64  # largest boxes scanned before anything else
NODE_CAP = 2000  # nodes per search; more cost as much as scanning the words of 100k entries
_CAP_SHARE = 8  # nor more nodes than an eighth of the buckets: visiting one costs more than scanning one
_CAP_LEAST = 64
_NARROWEST = 0.02  # width, relative to the domain, below which narrower makes no difference
_SAMPLE = 32  # points that decide the split coordinate
_STACK = 128  # a path of at most 64 nodes, and a sibling for each


@njit(cache=True, nogil=True)
def _split_on(points: Floats, order: Slots, low: int, high: int, box: Floats) -> int:
    """The coordinate to split on: widest spread of a sample, divided by the mean width of its attribute.

    Both relative to the domain and clipped to it. Where boxes are narrow, the two bounds of a box say nearly the
    same and a query is ruled out by position, so such an attribute deserves more splits.
    """
    step = max(1, (high - low) // _SAMPLE)
    best, highest = 0, -1.0
    for a in range(points.shape[1] // 2):
        domain = box[2 * a + 1, 1] - box[2 * a + 1, 0]
        if not domain > 0.0:
            continue
        width, count = 0.0, 0
        for i in range(low, high, step):
            bottom = max(-points[order[i], 2 * a], box[2 * a + 1, 0])
            top = min(points[order[i], 2 * a + 1], box[2 * a + 1, 1])
            width += max(top - bottom, 0.0) / domain
            count += 1
        for j in range(2 * a, 2 * a + 2):
            least, most = np.inf, -np.inf
            for i in range(low, high, step):
                value = min(max(points[order[i], j], box[j, 0]), box[j, 1])
                least, most = min(least, value), max(most, value)
            score = (most - least) / domain / (width / count + _NARROWEST)
            if score > highest:
                best, highest = j, score
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
        j = _split_on(points, order, low, high, box)
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
def _share(maxima: Floats, node: int, offset: Floats, scale: Floats, bits: int, corner: Slots, codes: Slots) -> float:
    """Fraction of the search region (mirrored codes 0 … corner) that lies below the node's maximum."""
    mirror(maxima[node], offset, scale, bits, codes)
    share = 1.0
    for j in range(codes.shape[0]):
        share *= (corner[j] - codes[j] + 1) / (corner[j] + 1)
    return share


@njit(cache=True, nogil=True)
def _find(
    state: Any, built: int, used: int, cap: int, epsilon: float, queries: Floats, found: Slots
) -> tuple[int, int, float, int]:
    """Front, tail, tree for each query, slots into `found`: (last slot, probes, fractions skipped, fallbacks).

    One function, because each call that passes the tuple on costs a reference count per array, and the
    scratch arrays are shared by a batch.
    """
    points, words, maxima, offset, scale, guards = state
    dimensions = queries.shape[1]
    packed, stack = np.empty(guards.shape[0], guards.dtype), np.empty((_STACK, 3), np.int64)
    room = dimensions if epsilon > 0.0 else 0
    corner, codes = np.empty(room, np.int64), np.empty(room, np.int64)
    bits = field_width(dimensions) - 1
    front = min(FRONT, built)
    buckets = (built - front + BUCKET - 1) // BUCKET
    cap = min(cap, max(_CAP_LEAST, buckets // _CAP_SHARE))
    query = np.empty(dimensions)  # a copy: a row of `queries` would count references at every turn
    slot, probes, skipped, fallbacks = -1, 0, 0.0, 0
    for i in range(queries.shape[0]):
        for j in range(dimensions):
            query[j] = queries[i, j]
        pack(query, offset, scale, guards, packed)
        slot = -1
        if built > 0 and not _below(maxima, 0, query):
            slot, looked = scan_fields(points, words, guards, query, packed, 0, front)
            probes += looked
        if slot < 0 and built < used:
            slot, looked = scan_fields(points, words, guards, query, packed, built, used)
            probes += looked
        top, visited, left_out = 0, 0, 0.0
        if slot < 0 and buckets > 0 and not _below(maxima, 1, query):
            stack[0, 0], stack[0, 1], stack[0, 2] = 1, 0, buckets
            top = 1
            if epsilon > 0.0:
                mirror(query, offset, scale, bits, corner)
        while top:
            top -= 1
            node, a, b = stack[top, 0], stack[top, 1], stack[top, 2]
            visited += 1
            if visited > cap:
                slot, looked = scan_fields(points, words, guards, query, packed, front, built)
                probes += looked
                left_out = 0.0
                fallbacks += 1
                break
            if epsilon > 0.0:
                share = _share(maxima, node, offset, scale, bits, corner, codes)
                if left_out + share <= epsilon:
                    left_out += share
                    continue
            if b - a == 1:
                low = front + a * BUCKET
                slot, looked = scan_fields(points, words, guards, query, packed, low, min(low + BUCKET, built))
                probes += looked
                if slot >= 0:
                    break
                continue
            half = (a + b) >> 1
            # The upper child goes on the stack last and is searched first: its boxes are larger.
            if not _below(maxima, 2 * node, query):
                stack[top, 0], stack[top, 1], stack[top, 2] = 2 * node, a, half
                top += 1
            if not _below(maxima, 2 * node + 1, query):
                stack[top, 0], stack[top, 1], stack[top, 2] = 2 * node + 1, half, b
                top += 1
        found[i] = slot
        probes += visited
        skipped += left_out
    return slot, probes, skipped, fallbacks


class KdTreeIndex(LayeredIndex):
    name = "kdtree"
    takes_epsilon = True

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0, *, node_cap: int = NODE_CAP) -> None:
        super().__init__(domain, epsilon)
        if isinstance(node_cap, bool) or not isinstance(node_cap, int) or node_cap < 1:
            raise CoverlayError(f"node_cap {node_cap!r} must be a whole number of at least 1")
        self.node_cap = node_cap
        self.fallbacks = 0  # searches that reached the cap and scanned
        self._maxima: Floats = np.empty((0, 2 * self.attributes))
        self._one = np.empty(1, np.int64)
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
        self._maxima = np.full((2 << height if buckets else 1, 2 * self.attributes), -np.inf)
        if self._built:
            self._maxima[0] = self._points[: self._built].max(axis=0)
        if buckets:
            _fill(self._points[FRONT : self._built], self._maxima, 1, 0, buckets)

    def _arrays_moved(self) -> None:
        self._state = (self._points, self._words, self._maxima, *self._fields.kernel)

    def _search(self, query: Floats) -> int:
        slot, probes, skipped, fallbacks = _find(
            self._state, self._built, self._used, self.node_cap, self.epsilon, query.reshape(1, -1), self._one
        )
        self.stats.probes += probes
        self.stats.volume += 1.0 - skipped
        self.fallbacks += fallbacks
        return slot

    def _search_many(self, queries: Floats) -> Slots:
        slots = np.empty(len(queries), np.int64)
        _, probes, skipped, fallbacks = _find(
            self._state, self._built, self._used, self.node_cap, self.epsilon, queries, slots
        )
        self.stats.probes += probes
        self.stats.volume += len(queries) - skipped
        self.fallbacks += fallbacks
        return slots

    def _structure_bytes(self) -> int:
        return super()._structure_bytes() + self._maxima.nbytes

    def _check(self) -> None:
        super()._check()
        static = self._points[: self._built]
        assert (static[~np.isnan(static[:, 0])] <= self._maxima[:1]).all()
        treed = static[FRONT:]
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
