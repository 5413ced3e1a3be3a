"""The search by expected points, against a twin that enumerates cells, and its counters at any resolution."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covering
from covering.audit import EXACT
from covering.curve.counters import LEAF
from tests.covering.oracles import cells, covers, z_key
from tests.covering.strategies import DOMAIN, boxes

pytestmark = pytest.mark.usefixtures("small_limits")
FAST = settings(max_examples=60, suppress_health_check=list(HealthCheck))
Row = tuple[int, int]  # key, slot


def twin(index: Any, query: np.ndarray) -> tuple[int, int, float]:
    """(slot or −1, lookups, least points expected before a lookup): ranges, cells and lookups written out."""
    dimensions, bits, lengths = len(query), index.bits, index.lengths_of(query).tolist()
    shift = 64 - dimensions * bits
    rows: list[Row] = [(int(key) >> shift, int(slot)) for key, slot in index._array.rows()]
    child, count, depth, low = index._counters
    region = sorted(z_key(cell, bits) for cell in cells(lengths))
    ranges = []
    for leaf in np.flatnonzero(child == LEAF).tolist():
        first = z_key(low[leaf].tolist(), bits)
        beyond = first + (1 << (dimensions * bits - int(depth[leaf])))
        inside = [key for key in region if first <= key < beyond]
        if inside and count[leaf]:
            ranges.append((-count[leaf] * len(inside) / (beyond - first), first, beyond, inside))
    ranges.sort(key=lambda r: (r[0], r[1]))
    made: list[tuple[Row, int]] = []  # lookups: where they began, the place of what they returned
    least = np.inf
    for i, (_, first, beyond, inside) in enumerate(ranges):
        begin: Row = first, 0
        while True:
            place = bisect_left(rows, begin)
            if not any(begun <= begin and returned == place for begun, returned in made):
                least = min(least, -sum(r[0] for r in ranges[i:]))
                made.append((begin, place))
                if place < len(rows) and (index.points[rows[place][1]] >= query).all():
                    return rows[place][1], len(made), least
            if place == len(rows) or rows[place][0] >= beyond:
                break
            key, slot = rows[place]
            later = [cell for cell in inside if cell > key]
            if key not in inside and not later:
                break
            begin = (key, slot + 1) if key in inside else (later[0], 0)
    return -1, len(made), least


@FAST
@given(st.data())
def test_the_lookups_are_those_of_the_twin(data):
    attributes = data.draw(st.sampled_from([1, 2]))
    bits = data.draw(st.integers(1, 4 if attributes == 1 else 2))
    index: Any = covering.create("density", [DOMAIN] * attributes, bits=bits)
    held = data.draw(st.lists(boxes(attributes), max_size=40))
    index.add_many(range(len(held)), np.array(held).reshape(len(held), attributes, 2))
    for gone in data.draw(st.sets(st.sampled_from(range(len(held))))) if held else ():
        index.remove(gone)
    index.check()
    for box in [*data.draw(st.lists(boxes(attributes), min_size=1, max_size=4)), *held[:3]]:
        compare(index, box)


def compare(index: Any, box: np.ndarray) -> None:
    query = np.stack([-box[:, 0], box[:, 1]], axis=1).ravel()
    slot, lookups, left, *_ = index._look_up(query, EXACT, EXACT, goes_on=False)
    expected = twin(index, query)
    assert (slot, lookups) == expected[:2]
    assert left == pytest.approx(expected[2], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("attributes", "bits"), [(1, 4), (2, 2)])
def test_the_lookups_in_many_ranges_are_those_of_the_twin(attributes, bits):
    """Ranges that end in one gap between keys, in whatever order they are visited."""
    rng = np.random.default_rng(attributes)
    low = 8.0 * rng.random((150, attributes))
    held = np.stack([low, low + rng.random((150, attributes))], axis=2)
    index: Any = covering.create("density", [DOMAIN] * attributes, bits=bits)
    index.add_many(range(100), held[:100])
    for box in held[50:]:
        compare(index, box)


@pytest.mark.parametrize("name", [name for name in covering.methods() if "bits" in covering.options_of(name)])
@FAST
@given(st.data())
def test_any_resolution_and_any_epsilon(name, data):
    """Never an invented cover; exact at ε = 0; where ε is of the volume, that much of it is searched."""
    takes = covering.METHODS[name].takes_epsilon
    epsilon = data.draw(st.sampled_from([0.0, 0.01, 0.2, 0.9])) if takes else 0.0
    bits = data.draw(st.sampled_from([None, 1, 2, 5, 16, 32]))
    index = covering.create(name, [DOMAIN] * 2, epsilon, **({} if bits is None else {"bits": bits}))
    stored = dict(enumerate(data.draw(st.lists(boxes(2), max_size=25))))
    for id, box in stored.items():
        index.add(id, box)
    for gone in data.draw(st.sets(st.sampled_from(range(len(stored))))) if stored else ():
        index.remove(gone)
        del stored[gone]
    index.check()
    assert bits in (None, index.bits)
    for box in data.draw(st.lists(boxes(2), min_size=1, max_size=4)):
        truth, before = covers(stored, box), index.stats.copy()
        found, work = index.find_cover(box), index.stats.since(before)
        assert found in truth if found is not None else not truth or epsilon
        if found is None and not work.capped and index.epsilon_of == "volume":
            assert work.volume >= 1 - epsilon - 1e-12
