"""What is there before time 0 leaves the tables of hop-by-hop arrival, each subscription spreading before the next."""

from __future__ import annotations

import numpy as np
import pytest

from broker.network import Network
from broker.settings import Settings
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import build_overlay
from sim.random_streams import streams

DOMAIN = np.array([[0.0, 10.0], [0.0, 10.0]])


def network_of(seed, **settings):
    latency = {"kind": "uniform", "low": 1.0, "high": 4.0}
    overlay = build_overlay("random-tree", 8, np.random.default_rng(seed), latency)
    return Network(overlay, Settings(**settings), streams(seed))


def contents(network):
    return [
        {
            (name, n, s): f.digest
            for name, part in b.parts.items()
            for n, t in part.tables.items()
            for s, f in t.filters.items()
        }
        for b in network.brokers
    ]


@pytest.mark.parametrize("waste", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("trees", ["spanning", "per-source"])
def test_mergers_that_are_there_before_time_0_are_those_of_arrival(waste, trees):
    routing = RoutingOptions(DOMAIN, merge_waste=waste)
    rng = np.random.default_rng(5)
    low = rng.integers(0, 8, (60, 2))  # whole numbers: some unions are boxes, so that perfect merging merges too
    filters = [Filter.of_box(np.stack([lo, lo + rng.integers(1, 3, 2)], axis=1)) for lo in low]
    homes = rng.integers(0, 8, len(filters)).tolist()
    loaded, arrived = (network_of(3, strategy="merging", routing=routing, trees=trees) for _ in range(2))
    loaded.preload(homes, filters)
    for number, (home, filter) in enumerate(zip(homes, filters, strict=True)):
        arrived.subscribe(home, number, filter)
        arrived.run()
    assert contents(loaded) == contents(arrived)
    assert any(subscription < -1 for table in contents(loaded) for _, _, subscription in table), "nothing merged"
    loaded.check()
