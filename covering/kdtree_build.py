"""How a k-d tree is laid out: the order of the points, and the extremes of every node. Kernels of kdtree.py.

Medians halve the points, on the coordinate with the widest spread relative to the width of the boxes, down to
buckets of 64; the half with the larger values comes first. A range of buckets is cut at the largest power of two below
its length, so that buckets 64i … 64i+63 are a subtree of their own, and so are 64 such subtrees. The search reads the
tree in these steps of 64 children and never sees the binary nodes in between.

Nodes are numbered level by level, buckets first; `level_starts` has the number of the first node of each level and,
last, the count of all nodes. Cost: O(n log n).
"""

from __future__ import annotations

import numpy as np

from covering.contract import Slots
from covering.given import Floats
from coverlay import kernel

BUCKET = 64  # points per leaf and children per node: one vectorised block
_NARROWEST = 0.02  # width, relative to the domain, below which narrower makes no difference
_SAMPLE = 32  # points that decide the split coordinate
_LEVELS = 12  # at most, with 64 children per node: 64^12 exceeds any 64-bit number
_STACK = 128  # a path of at most 64 nodes, and a sibling for each


@kernel(inner=True)
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


@kernel(inner=True)
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


@kernel
def bucket_order(points: Floats, box: Floats) -> Slots:
    """The order of points, bucket after bucket; `box`: least and largest value of each coordinate in the domain."""
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
        half = 1
        while 2 * half < b - a:
            half *= 2
        middle = a + half
        low, high = a * BUCKET, min(b * BUCKET, n)
        j = _split_on(points, order, low, high, box)
        for i in range(low, high):
            values[i] = -points[order[i], j]  # larger boxes first: a search that finds a cover ends sooner
        _select(values, order, low, high, middle * BUCKET)
        stack[top, 0], stack[top, 1] = a, middle
        stack[top + 1, 0], stack[top + 1, 1] = middle, b
        top += 2
    return order


@kernel
def level_starts(count: int) -> Slots:
    """Number of the first node of each level over `count` points, from the buckets up, then the count of all nodes."""
    starts = np.empty(_LEVELS + 1, np.int64)
    starts[0], levels = 0, 0
    while count > BUCKET or levels == 0:
        count = (count + BUCKET - 1) // BUCKET
        starts[levels + 1] = starts[levels] + count
        levels += 1
    return starts[: levels + 1]


@kernel
def fill_extremes(points: Floats, starts: Slots, least: Floats, most: Floats) -> None:
    """Least and largest coordinates of the points under each node."""
    below = 0  # the first child of a level: a point, then a node
    children = points.shape[0]
    for level in range(starts.shape[0] - 1):
        for node in range(starts[level], starts[level + 1]):
            low = below + (node - starts[level]) * BUCKET
            for child in range(low, min(low + BUCKET, below + children)):
                for j in range(points.shape[1]):
                    smaller = points[child, j] if level == 0 else least[child, j]
                    larger = points[child, j] if level == 0 else most[child, j]
                    first = child == low
                    least[node, j] = smaller if first else min(least[node, j], smaller)
                    most[node, j] = larger if first else max(most[node, j], larger)
        below, children = starts[level], starts[level + 1] - starts[level]
