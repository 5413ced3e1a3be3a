"""Every sparse matcher on extreme values, weights and ids, with updates, against the obvious twin."""

from __future__ import annotations

import math

import numpy as np
import pytest

import topk
from tests.extremes import DRAWS, cases, distinct_ids, interval, one, palette, tell
from tests.topk.sparse import oracles, strategies
from topk.sparse import METHODS
from topk.sparse.scores import SCORES

DIMENSIONS = 40
# Weights of subscriptions and of events, apart so that no infinity is multiplied by 0.
TINY = ((0.0, 5e-324, 1e-300, 1e-50, 1e-23, 1e-3, 1.0), (0.0, 1e-20, 0.5, 1.0, 1e3))
HUGE = ((1e-10, 0.7, 1.0, 3.0, 1e30, 1e300), (1e-5, 0.5, 1.0, 1e3))


def condition(rng: np.random.Generator, values: list[float]) -> tuple[str, object]:
    kind = one(rng, ("between", "between", "=", "!=", "<", "<=", ">", ">=", "in", "not in"))
    if kind == "between":
        return kind, interval(rng, values)
    if kind in ("in", "not in"):
        return kind, [one(rng, values) for _ in range(int(rng.integers(1, 4)))]
    return kind, one(rng, (*values, math.inf, -math.inf) if kind in "<>" else values)


def expression(rng: np.random.Generator, values: list[float], attributes: list[int], weights: list[float]) -> list:
    many = rng.random() < 0.2  # products of dozens of weights are where floats end
    chosen = rng.permutation(attributes)[: int(rng.integers(1, len(attributes) + 1 if many else 4))]
    wide = ("between", (-math.inf, math.inf))
    return [(a, *(wide if many else condition(rng, values)), one(rng, weights)) for a in chosen.tolist()]


@DRAWS
@pytest.mark.parametrize("method", sorted(METHODS))
def test_matches_of_extreme_expressions(method, draws, capsys):
    compared = matched = 0
    for draw, rng in cases(draws, 3):
        values, (own, theirs) = palette(rng), one(rng, (TINY, TINY, HUGE))
        weights, event_weights = rng.choice(own, 3).tolist(), rng.choice(theirs, 2).tolist()
        attributes = rng.permutation(DIMENSIONS)[: one(rng, (2, 3, 6, 30))].tolist()
        score = one(rng, sorted(SCORES))
        ids = distinct_ids(rng, 24)
        known = {id: expression(rng, values, attributes, weights) for id in ids}
        first = {id: known[id] for id in ids[:14]}
        catalogue = topk.Catalogue.from_predicates(first.values(), dimensions=DIMENSIONS, ids=list(first))
        index = topk.create(method, catalogue, score=score, **strategies.small(method))
        for id in ids[14:]:
            index.add(id, known[id])
        for id in ids[::4]:
            index.remove(id)
            del known[id]
        index.check()
        for _ in range(4):
            event = {}
            for a in attributes:
                point = ("=", one(rng, (*values, math.inf)))
                what = ("between", interval(rng, values)) if rng.random() < 0.3 else point
                if rng.random() < 0.95:
                    event[a] = (*what, one(rng, event_weights))
            for k in (1, 3, None):
                expected = oracles.top(known, event, k, score)
                assert not any(math.isnan(found) for _, found in expected)
                got = index.top(oracles.as_predicates(event), k)
                assert oracles.close(got, expected), (draw, k, score, got, expected)
                assert list(index.top_many([oracles.as_predicates(event)], k)) == [got]
                compared += 2
                matched += len(expected)
    assert matched > draws
    tell(capsys, f"fuzz sparse {method}: {draws} draws, {compared} answers compared, {matched} matches")
