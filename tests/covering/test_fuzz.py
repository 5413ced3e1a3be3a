"""Every covering method on extreme values, with updates, against the obvious twin."""

from __future__ import annotations

import numpy as np
import pytest

import covering
from tests.covering.oracles import covered, covers
from tests.covering.strategies import EXACT_OPTIONS
from tests.extremes import DRAWS, cases, distinct_ids, interval, palette, tell


def boxes(rng: np.random.Generator, values: list[float], count: int, attributes: int) -> np.ndarray:
    drawn = [[interval(rng, values) for _ in range(attributes)] for _ in range(count)]
    return np.array(drawn).reshape(count, attributes, 2)


@pytest.mark.usefixtures("small_limits")
@DRAWS
@pytest.mark.parametrize("name", covering.methods())
def test_covers_of_extreme_boxes(name, draws, capsys):
    compared = hits = 0
    for draw, rng in cases(draws, 1):
        values, attributes = palette(rng), int(rng.integers(1, 4))
        low, high = min(values), max(values)
        epsilon = 0.1 if covering.METHODS[name].takes_epsilon and draw % 4 == 3 else 0.0
        options = EXACT_OPTIONS.get(name, {}) if draw % 2 and not epsilon else {}
        index = covering.create(name, [[low, high]] * attributes, epsilon, **options)
        ids = distinct_ids(rng, 30)
        held = boxes(rng, values, len(ids), attributes)
        index.add_many(ids[:10], held[:10])
        for id, box in zip(ids[10:], held[10:], strict=True):
            index.add(id, box)
        stored = dict(zip(ids, held, strict=True))
        for id in ids[::3]:
            index.remove(id)
            del stored[id]
        index.check()
        asked = [*boxes(rng, values, 6, attributes), *held[:3]]
        for box, many in zip(asked, index.find_cover_many(asked), strict=True):
            truth = covers(stored, box)
            for found in (index.find_cover(box), many):
                assert found in truth if found is not None else not truth or epsilon, (draw, box.tolist())
                hits += found is not None
            assert index.find_covered(box) == covered(stored, box), (draw, box.tolist())
            compared += 3
    assert hits > draws
    tell(capsys, f"fuzz covering {name}: {draws} draws, {compared} answers compared, {hits} covers")
