"""Every location-aware matcher on extreme values, weights and places, with updates, against ψ written out."""

from __future__ import annotations

import math

import pytest

import topk
from tests.extremes import DRAWS, cases, distinct_ids, interval, one, palette, tell
from topk.places import METHODS, PlacedEvent, from_located
from topk.places.contract import SEMANTICS

DIMENSIONS = 6
WEIGHTS = (0.0, 5e-324, 1e-300, 1e-50, 1e-23, 0.1, 0.15)
ALPHAS = (0.0, 1e-300, 0.3, 1.0, math.nextafter(1.0, 0.0))
PLACES = (0.0, 5e-324, 1e-160, 1.0, math.nextafter(1.0, 2.0), 1e160, -1e300, 1e308)


def psi(subscription, event, place, far, semantics):
    predicates, spot, alpha = subscription
    held = [w for a, _, (lo, hi), w in sorted(predicates) if a in event and lo <= event[a][1] and event[a][0] <= hi]
    if (semantics == "relaxed" and not held) or (semantics == "exact" and len(held) < len(predicates)):
        return None
    text = 0.0
    for weight in held:
        text += weight
    dx, dy = spot[0] - place[0], spot[1] - place[1]
    near = max(0.0, 1.0 - math.sqrt(dx * dx + dy * dy) / far)
    return (1.0 - alpha) * text + alpha * near


@DRAWS
@pytest.mark.parametrize("method", sorted(METHODS))
def test_similarities_of_extreme_subscriptions(method, draws, capsys):
    compared = matched = 0
    for draw, rng in cases(draws, 4):
        values, semantics = palette(rng), one(rng, SEMANTICS)
        spots, alphas, weights = rng.choice(PLACES, 3).tolist(), rng.choice(ALPHAS, 2), rng.choice(WEIGHTS, 3)

        def subscription(rng=rng, values=values, spots=spots, alphas=alphas, weights=weights):
            chosen = rng.permutation(DIMENSIONS)[: int(rng.integers(0, DIMENSIONS + 1))].tolist()
            predicates = [(a, "between", interval(rng, values), float(one(rng, weights))) for a in chosen]
            return predicates, (one(rng, spots), one(rng, spots)), float(one(rng, alphas))

        ids = distinct_ids(rng, 45)
        known = {id: subscription() for id in ids}
        far = one(rng, (1.0, 1e-300, 1e300, None))
        catalogue = from_located([known[id] for id in ids[:30]], dimensions=DIMENSIONS, ids=ids[:30], max_distance=far)
        index = topk.create(method, catalogue, semantics=semantics)
        for id in ids[30:]:
            index.add(id, *known[id])
        for id in ids[::4]:
            index.remove(id)
            del known[id]
        index.check()
        for _ in range(3):
            event = {a: interval(rng, values) for a in range(DIMENSIONS) if rng.random() < 0.8}
            place = (one(rng, spots), one(rng, spots))
            truth = {id: psi(s, event, place, index.max_distance, semantics) for id, s in known.items()}
            best = sorted(((id, p) for id, p in truth.items() if p is not None), key=lambda pair: (-pair[1], pair[0]))
            for k in (1, 4, None):
                got, expected = index.top(event, place, k), best if k is None else best[:k]
                assert got == expected, (draw, k, semantics)
                assert list(index.top_many([PlacedEvent.of(event, place, DIMENSIONS)], k)) == [expected]
                compared += 2
                matched += len(expected)
    assert matched > draws
    tell(capsys, f"fuzz places {method}: {draws} draws, {compared} answers compared, {matched} matches")
