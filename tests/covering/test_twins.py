"""Slow twins of the searches that both engines call: the same witness, and the same number of probes.

Equal traces of the two engines cannot show a fault in these, nor can a test of answers alone: a witness decides what is
suppressed by whom, and probes are simulated time. The twins know where entries lie (`points`, the static part first)
and search them in plain Python, without packed words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import covering
from covering.kdtree import FRONT
from covering.kdtree_build import BUCKET
from covering.packed_words import SCAN_BLOCK

Found = tuple[int, int]  # slot or −1, probes


def scan(points: Any, query: Any, first: int, stop: int) -> Found:
    """The first entry that dominates, and the entries looked at."""
    dominating = np.flatnonzero((points[first:stop] >= query).all(axis=1))
    if len(dominating):
        return first + int(dominating[0]), int(dominating[0]) + 1
    return -1, stop - first


def volume(point: Any) -> float:
    """Within the unit cube, with a little added to every side."""
    sides = [max(min(high, 1.0) - max(-low, 0.0), 0.0) + 2.0**-20 for low, high in point.reshape(-1, 2).tolist()]
    return math.prod(sides)


def packed(index: Any, static: Any, query: Any) -> Found:
    """The tail, then the static part up to the block whose largest box is too small."""
    slot, probes = scan(index.points, query, len(static), index.used)
    if slot >= 0:
        return slot, probes
    slot, looked = largest_first(index.points, static, query)
    return slot, probes + looked


def largest_first(points: Any, as_built: Any, query: Any) -> Found:
    stop = 0
    while stop < len(as_built) and volume(as_built[stop]) >= volume(query):
        stop += SCAN_BLOCK
    return scan(points, query, 0, min(stop, len(as_built)))


def kdtree(index: Any, static: Any, query: Any) -> Found:
    """The front, the tail, then the buckets under every node whose maximum dominates, depth first.

    With an ε, a node is left out while the shares of the region below the maxima of those left out stay within it.
    """
    points, built, used = index.points, len(static), index.used
    front = min(FRONT, built)
    levels = [[static[at : min(at + BUCKET, built)].max(axis=0) for at in range(front, built, BUCKET)]]
    while len(levels[-1]) > BUCKET:
        below = levels[-1]
        levels.append([np.max(below[at : at + BUCKET], axis=0) for at in range(0, len(below), BUCKET)])
    cap = index.node_cap if index.gives_up else min(index.node_cap, max(64, len(levels[0]) // 8))
    visited, probes, slot, left_out = 0, 0, -1, 0.0
    possible = built > 0 and bool((static.max(axis=0) >= query).all())
    if possible:
        slot, probes = scan(points, query, 0, front)
        if slot < 0:
            probes += len(levels[-1])
    if slot < 0 and built < used:
        slot, looked = scan(points, query, built, used)
        probes += looked
    todo = [(len(levels) - 1, node) for node in reversed(range(len(levels[-1])))] if possible and slot < 0 else []
    while todo and slot < 0:
        height, node = todo.pop()
        if not (levels[height][node] >= query).all():
            continue
        visited += 1
        if visited > cap:
            if index.gives_up:
                return -1, probes
            slot, looked = scan(points, query, front, built)  # rather scan everything
            return slot, probes + looked
        below = share(index, levels[height][node], query)
        if index.epsilon > 0.0 and left_out + below <= index.epsilon:
            left_out += below
            continue
        if height == 0:
            at = front + BUCKET * node
            slot, looked = scan(points, query, at, min(at + BUCKET, built))
        else:
            children = range(BUCKET * node, min(BUCKET * (node + 1), len(levels[height - 1])))
            todo += [(height - 1, child) for child in reversed(children)]
            looked = len(children)
        probes += looked
    return slot, probes


def share(index: Any, most: Any, query: Any) -> float:
    """The part of a query's region below a maximum, in cells of the grid of the packed words."""
    quantiser, part = index._fields.quantiser, 1.0
    top = 2**quantiser.bits - 1
    for high, low, offset, scale in zip(most, query, quantiser.offset, quantiser.scale, strict=True):
        codes = [int(min(max((x - offset) * scale, 1.0), top - 1.0)) for x in (high, low)]
        part *= (codes[0] - codes[1] + 1.0) * (1.0 / (top - codes[1] + 1.0))
    return part


def budget(index: Any, static: Any, query: Any) -> Found:
    """The largest boxes, up to the block whose largest is too small."""
    front = index.points[index._slot_at[: index._held]]
    place, probes = largest_first(front, front, query)
    return (int(index._slot_at[place]) if place >= 0 else -1), probes


def unordered(index: Any, static: Any, query: Any) -> Found:
    return scan(index.points, query, 0, index.used)


TWINS: dict[str, tuple[Any, dict[str, Any]]] = {
    "scan": (unordered, {}),
    "packed": (packed, {}),
    "kdtree": (kdtree, {}),
    "kdtree that gives up": (kdtree, {"node_budget": 3}),
    "kdtree with ε": (kdtree, {"epsilon": 0.2}),
    "budget": (budget, {"budget": 300}),
}


@pytest.mark.parametrize("attributes", [1, 2, 4])
@pytest.mark.parametrize("name", TWINS)
def test_the_witness_and_the_probes_of_a_search_are_those_of_its_twin(name: str, attributes: int) -> None:
    twin, options = TWINS[name]
    rng = np.random.default_rng(attributes)
    boxes = np.sort(rng.random((5500, attributes, 2)), axis=2)
    boxes[:, :, 1] = np.minimum(boxes[:, :, 1], boxes[:, :, 0] + 0.2)
    index: Any = covering.create(name.split()[0], [[0.0, 1.0]] * attributes, **options)
    index.add_many(np.arange(5000), boxes[:5000])
    for number in range(5000, len(boxes)):  # some of them stay behind the static part
        index.add(number, boxes[number])
    static = index.points[: getattr(index, "_built", 0)].copy()
    assert twin in (unordered, budget) or 4000 < len(static) < index.used
    index.remove_many(range(0, 5500, 13))  # most of them from the static part, whose bounds stay
    shrunk = boxes[::11] + rng.choice([0.0, 0.005, 0.05], (500, 1, 1)) * [1.0, -1.0]
    hits = 0
    for box in np.sort(shrunk, axis=2):
        query = np.stack([-box[:, 0], box[:, 1]], axis=1).ravel()
        before = index.stats.probes
        witness, probes = index.find_cover(box), index.stats.probes - before
        slot, looked = twin(index, static, query)
        assert probes == looked
        assert (witness is None) == (slot < 0)
        if slot >= 0:
            assert np.array_equal(boxes[witness], index.points[slot].reshape(-1, 2) * [-1.0, 1.0])
            hits += 1
    assert hits > 0
