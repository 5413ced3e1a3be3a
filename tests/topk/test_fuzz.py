"""Every box matcher on extreme values, with residues and updates, against the obvious twin."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import topk
from tests.extremes import DRAWS, cases, distinct_ids, interval, one, palette, tell
from tests.topk import oracles
from tests.topk.strategies import build, dimensions_of

SCORES = (0.0, 5e-324, 1e-310, 1e-300, 1e-23, 0.5, 1.0, math.nextafter(1.0, 2.0), 3.0, 2.0**53, 1e300)


def drawn(rng: np.random.Generator, values: list[float], ids: list[int], d: int, semantics: str) -> topk.Catalogue:
    n = len(ids)
    bounds = np.array([[interval(rng, values) for _ in range(d)] for _ in range(n)]).reshape(n, d, 2)
    bounds[rng.random((n, d)) < 0.1] = (-np.inf, np.inf)
    signs = rng.choice([-1.0, 1.0], n) if semantics == "exact" else 1.0
    palette_of_scores = rng.choice(SCORES, 4)
    scores, weights = rng.choice(palette_of_scores, n) * signs, rng.choice(palette_of_scores, (n, d))
    exclusions = {}
    for row in np.flatnonzero(rng.random(n) < 0.1 * rng.integers(0, 3)).tolist():
        pair = ((int(rng.integers(d)), (one(rng, values), one(rng, values))),)
        exclusions[row] = (pair, ()) if rng.random() < 0.5 else ((), pair)
    return topk.Catalogue.from_boxes(
        bounds[:, :, 0], bounds[:, :, 1], scores, weights=weights, ids=ids, exclusions=exclusions
    )


def rows(catalogue: topk.Catalogue, which: list[int]) -> topk.Catalogue:
    names = ("ids", "lo", "hi", "scores", "weights", "mentioned")
    columns = {name: getattr(catalogue, name)[which] for name in names}
    residues = {i: catalogue.residues[row] for i, row in enumerate(which) if row in catalogue.residues}
    return replace(catalogue, **columns, residues=residues)


@DRAWS
@pytest.mark.parametrize("semantics", topk.SEMANTICS)
@pytest.mark.parametrize("name", topk.methods())
def test_matches_of_extreme_boxes(name, semantics, draws, capsys):
    compared = matched = 0
    for draw, rng in cases(draws // 2, 2):
        d = one(rng, dimensions_of(name))
        values = palette(rng)
        ids = distinct_ids(rng, int(rng.integers(0, 25)))
        catalogue = drawn(rng, values, ids, d, semantics)
        first = list(range(len(ids)))[::2]
        index = build(name, rows(catalogue, first), semantics)
        for row in range(1, len(ids), 2):
            excluded, allowed = catalogue.residues.get(row, ((), ()))
            index.add(
                ids[row],
                catalogue.lo[row],
                catalogue.hi[row],
                float(catalogue.scores[row]),
                catalogue.weights[row],
                catalogue.mentioned[row],
                excluded,
                allowed,
            )
        for row in range(0, len(ids), 5):
            index.remove(ids[row])
        for row in range(1, len(ids), 5):
            catalogue.scores[row] = catalogue.weights[row].max()
            index.update_score(ids[row], float(catalogue.scores[row]), catalogue.weights[row])
        left = rows(catalogue, [row for row in range(len(ids)) if row % 5])
        index.check()
        points = [[one(rng, (*values, math.nan, math.inf, -math.inf)) for _ in range(d)] for _ in range(4)]
        for k in (1, 3, None):
            expected = [oracles.top(left, point, k, semantics) for point in points]
            assert [index.top(point, k) for point in points] == expected, (draw, k)
            assert list(index.top_many(points, k)) == expected, (draw, k)
            compared += 2 * len(points)
            matched += sum(map(len, expected))
        low, high = (np.array(side) for side in zip(*(interval(rng, values) for _ in range(d)), strict=True))
        for k in (2, None):
            found = index.top_overlapping(low, high, k)
            assert found == oracles.overlapping(left, low, high, k, semantics), (draw, k)
            compared += 1
    assert matched > draws
    tell(capsys, f"fuzz topk {name} {semantics}: {draws // 2} draws, {compared} answers compared, {matched} matches")
