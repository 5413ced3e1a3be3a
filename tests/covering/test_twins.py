"""Slow twins of the searches that both engines call: the same witness, and the same number of probes.

Equal traces of the two engines cannot show a fault in these, nor can a test of answers alone: a witness decides what is
suppressed by whom, and probes are simulated time. The twins know where entries lie (`_points`, the static part first)
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


def packed(points: Any, built: int, used: int, query: Any) -> Found:
    """The tail, then the static part up to the block whose largest box is too small."""
    slot, probes = scan(points, query, built, used)
    if slot >= 0:
        return slot, probes
    stop = 0
    while stop < built and volume(points[stop]) >= volume(query):
        stop += SCAN_BLOCK
    slot, looked = scan(points, query, 0, min(stop, built))
    return slot, probes + looked


def kdtree(points: Any, built: int, used: int, query: Any) -> Found:
    """The front, the tail, then the buckets under every node whose maximum dominates, depth first."""
    front = min(FRONT, built)
    level = [points[at : min(at + BUCKET, built)].max(axis=0) for at in range(front, built, BUCKET)]
    levels = [level]
    while len(levels[-1]) > BUCKET:
        below = levels[-1]
        levels.append([np.max(below[at : at + BUCKET], axis=0) for at in range(0, len(below), BUCKET)])
    visited, probes, slot = 0, 0, -1
    possible = built > 0 and bool((points[:built].max(axis=0) >= query).all())
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
        if visited > max(64, len(levels[0]) // 8):  # rather scan everything
            slot, looked = scan(points, query, front, built)
            return slot, probes + looked
        if height == 0:
            at = front + BUCKET * node
            slot, looked = scan(points, query, at, min(at + BUCKET, built))
        else:
            children = range(BUCKET * node, min(BUCKET * (node + 1), len(levels[height - 1])))
            todo += [(height - 1, child) for child in reversed(children)]
            looked = len(children)
        probes += looked
    return slot, probes


def unordered(points: Any, built: int, used: int, query: Any) -> Found:
    return scan(points, query, 0, used)


TWINS = {"scan": unordered, "packed": packed, "kdtree": kdtree}


@pytest.mark.parametrize("attributes", [1, 2, 4])
@pytest.mark.parametrize("name", TWINS)
def test_the_witness_and_the_probes_of_a_search_are_those_of_its_twin(name: str, attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    boxes = np.sort(rng.random((5500, attributes, 2)), axis=2)
    boxes[:, :, 1] = np.minimum(boxes[:, :, 1], boxes[:, :, 0] + 0.2)
    index: Any = covering.create(name, [[0.0, 1.0]] * attributes)
    index.add_many(np.arange(5000), boxes[:5000])
    for number in range(5000, len(boxes)):  # some of them stay behind the static part
        index.add(number, boxes[number])
    built = getattr(index, "_built", 0)
    assert name == "scan" or 4000 < built < index._used
    shrunk = boxes[::11] + rng.choice([0.0, 0.005, 0.05], (500, 1, 1)) * [1.0, -1.0]
    asked = np.sort(shrunk, axis=2)
    hits = 0
    for box in asked:
        query = np.stack([-box[:, 0], box[:, 1]], axis=1).ravel()
        before = index.stats.probes
        witness, probes = index.find_cover(box), index.stats.probes - before
        slot, looked = TWINS[name](index._points, built, index._used, query)
        assert probes == looked
        assert (witness is None) == (slot < 0)
        if slot >= 0:
            assert np.array_equal(boxes[witness], index._points[slot].reshape(-1, 2) * [-1.0, 1.0])
            hits += 1
    assert hits > 0
