"""The emulated greedy search equals the real one: witness, probes, cubes, volume, cap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covering
from tests.covering.strategies import DOMAIN, boxes


@settings(max_examples=120)
@given(st.data())
def test_same_answers_same_counts(data):
    attributes = data.draw(st.sampled_from([1, 2, 3]))
    bits = data.draw(st.sampled_from({1: [1, 4, 8], 2: [2, 4], 3: [2]}[attributes]))
    epsilon = data.draw(st.sampled_from([0.0, 0.001, 0.05, 0.3, 0.7]))
    cap = data.draw(st.sampled_from([1, 7, 100, 10**6]))
    held = data.draw(st.lists(boxes(attributes), max_size=25))
    twins = [
        covering.create(name, [DOMAIN] * attributes, epsilon, bits=bits, probe_cap=cap, **options)
        for name, options in (("zorder", {"finish": False}), ("zorder-emulated", {}))
    ]
    for twin in twins:
        for i, box in enumerate(held):
            twin.add(i, box)
        for i in range(0, len(held), 4):
            twin.remove(i)
    for box in [*data.draw(st.lists(boxes(attributes), min_size=1, max_size=4)), *held[:4]]:
        assert twins[0].find_cover(box) == twins[1].find_cover(box)
        assert twins[0].stats == twins[1].stats


@pytest.mark.parametrize("attributes", [4, 8, 16])
def test_any_dimension_at_no_cost(attributes):
    """Far beyond enumeration: at ε = 0 it is exact, and the count of cubes is an exact big integer."""
    rng = np.random.default_rng(3)
    held = np.sort(rng.random((200, attributes, 2)), axis=2)
    held[:, :, 0] *= 0.3
    index = covering.create("zorder-emulated", [[0, 1]] * attributes, bits=8)
    scan = covering.create("scan", [[0, 1]] * attributes)
    for each in (index, scan):
        each.add_many(range(200), held)
    for box in np.sort(rng.random((40, attributes, 2)), axis=2):
        assert (index.find_cover(box) is None) == (scan.find_cover(box) is None)
    assert index.stats.probes > 2**63 or attributes == 4


def test_merged_runs_search_the_same_region_with_fewer_probes():
    plain, merged = (
        covering.create("zorder", [[0, 1]], bits=6, probe_cap=10**5, merge_runs=merge) for merge in (False, True)
    )
    rng = np.random.default_rng(0)
    held = np.sort(rng.random((50, 1, 2)) * 0.5, axis=2)
    for index in (plain, merged):
        index.add_many(range(50), held)
        for box in np.sort(rng.random((50, 1, 2)), axis=2):
            index.find_cover(box)
        rng = np.random.default_rng(0)
        rng.random((50, 1, 2))
    assert merged.stats.hits == plain.stats.hits
    assert merged.stats.runs < plain.stats.runs
