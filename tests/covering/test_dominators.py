"""The first k points that dominate a point: against brute force, while points come and leave."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from covering.dominators import BLOCK, DominatingPoints


def dominating(known, number, point, group):
    """Numbers in the order of rows."""
    return [
        other
        for other, (its_point, its_group) in known.items()
        if its_group == group and (its_point >= point).all() and (its_point[-1] > point[-1] or other < number)
    ]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([3, BLOCK, 3 * BLOCK + 1]))
def test_they_are_those_of_brute_force_in_the_order_of_rows(seed, wanted, count):
    luck = np.random.default_rng(seed)
    points, known = DominatingPoints(4), {}
    for number in luck.permutation(count).tolist():
        point, group = luck.integers(0, 4, 4).astype(float), int(luck.integers(0, 2))
        points.add(number, point, group)
        known[number] = (point, group)
    for number in luck.permutation(count)[: count // 3].tolist():
        points.remove(number)
        del known[number]
    points.check()
    rows = sorted(known, key=points.rows.__getitem__)
    in_rows = {number: known[number] for number in rows}
    for _ in range(5):
        number, point, group = int(luck.integers(0, count)), luck.integers(0, 4, 4).astype(float), 0
        truth = dominating(in_rows, number, point, group)
        found, start = [], 0
        while start < len(points):
            more, start = points.first(number, point, group, wanted, start)
            assert len(more) == wanted or start == len(points)
            found += more
        assert found == truth
