"""The simulator's table sizes against their closed forms."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from broker.network import Network
from broker.settings import Settings
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import build_overlay
from sim.random_streams import streams
from tests.routing.closed_forms import brokers_behind, expected_identity, expected_simple

SUBSCRIPTIONS, FILTERS, SEEDS = 60, 20, 30
POPULARITY = np.arange(FILTERS, 0, -1) / np.arange(FILTERS, 0, -1).sum()


def entries(overlay, strategy: str, seed: int) -> int:
    stream = streams(seed)
    network = Network(overlay, Settings(RoutingOptions(np.array([[0.0, 100.0]])), strategy), stream)
    which = stream("which").choice(FILTERS, SUBSCRIPTIONS, p=POPULARITY)
    homes = stream("homes").integers(0, overlay.brokers, SUBSCRIPTIONS)
    for number, (filter, home) in enumerate(zip(which.tolist(), homes.tolist(), strict=True)):
        # Overlapping intervals, none in another.
        network.subscribe(home, number, Filter.of_box(np.array([[filter, filter + 30.0]])))
    network.run()
    return sum(len(table) for b in network.brokers for part in b.parts.values() for table in part.tables.values())


@pytest.fixture(scope="module", params=["line", "star", "random-tree"])
def overlay(request):
    return build_overlay(request.param, 12, streams(5)("overlay"))


def test_simple_routing_is_exactly_its_closed_form(overlay):
    assert entries(overlay, "simple", 1) == expected_simple(overlay.tree, SUBSCRIPTIONS)


def test_identity_routing_lies_within_its_confidence_interval(overlay):
    sizes = [entries(overlay, "identity", seed) for seed in range(SEEDS)]
    half_width = 2.05 * np.std(sizes, ddof=1) / np.sqrt(SEEDS)  # Student's t, 29 degrees of freedom, 95 %
    expected = expected_identity(overlay.tree, SUBSCRIPTIONS, POPULARITY)
    assert abs(np.mean(sizes) - expected) < half_width
    assert expected < 0.8 * expected_simple(overlay.tree, SUBSCRIPTIONS), "the case would tell nothing"


def test_brokers_behind_counts_both_directions():
    assert sorted(brokers_behind(nx.path_graph(4))) == [1, 1, 2, 2, 3, 3]
    assert brokers_behind(nx.path_graph(1)) == []
