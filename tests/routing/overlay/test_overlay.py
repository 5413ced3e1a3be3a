"""Every generated kind against what the brokers rely on, the spanning tree against NetworkX, latencies."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coverlay import CoverlayError
from routing.overlay import layout
from routing.overlay.graph import OVERLAYS, Overlay, build_overlay, overlay_options, spanning_tree
from routing.overlay.latency import globe_lengths
from routing.overlay.trees import shortest_paths
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

UNIFORM = {"kind": "uniform", "low": 1.0, "high": 10.0}


def build(kind, brokers=30, seed=1, latency=UNIFORM, **options):
    return build_overlay(kind, brokers, np.random.default_rng(seed), latency, **options)


def edges(overlay):
    return sorted((u, v, data["latency"]) for u, v, data in overlay.graph.edges(data=True))


@pytest.mark.parametrize("kind", OVERLAYS)
@pytest.mark.parametrize("brokers", [1, 2, 3, 4, 5, 6, 7, 13, 50, 230])
def test_every_kind_gives_exactly_the_brokers_asked_for(kind, brokers):
    overlay = build(kind, brokers)
    overlay.check()
    assert overlay.brokers == brokers
    assert len({overlay.graph.nodes[b]["name"] for b in range(brokers)}) == brokers
    places = np.array([(overlay.graph.nodes[b]["x"], overlay.graph.nodes[b]["y"]) for b in range(brokers)])
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == brokers, "no two brokers are drawn on top of each other"


@pytest.mark.parametrize("kind", OVERLAYS)
def test_same_seed_same_overlay_and_latency_does_not_change_the_graph(kind):
    assert edges(build(kind)) == edges(build(kind))
    assert [e[:2] for e in edges(build(kind))] == [e[:2] for e in edges(build(kind, latency={"kind": "constant"}))]


@pytest.mark.parametrize(
    "kind", ["random-tree", "erdos-renyi", "barabasi-albert", "watts-strogatz", "waxman", "internet"]
)
def test_random_kinds_depend_on_the_seed(kind):
    assert edges(build(kind, latency=1.0)) != edges(build(kind, seed=2, latency=1.0))


def test_shapes():
    assert sorted(d for _, d in build("line", 5).graph.degree) == [1, 1, 2, 2, 2]
    assert build("star", 6).graph.degree[0] == 5
    assert {d for _, d in build("ring", 7).graph.degree} == {2}
    assert build("ring", 7).tree.number_of_edges() == 6
    assert sorted(build("balanced-tree", 8, branching=3).tree[0]) == [1, 2, 3]
    assert sorted(build("balanced-tree", 8, branching=3).tree[1]) == [0, 4, 5, 6]
    assert nx.is_isomorphic(build("grid", 12).graph, nx.grid_2d_graph(3, 4))
    assert nx.is_isomorphic(build("grid", 12, columns=6).graph, nx.grid_2d_graph(2, 6))
    assert build("barabasi-albert", 20, links=3).graph.number_of_edges() == 3 * 17
    assert {d for _, d in build("watts-strogatz", 20, neighbours=6, rewire=0.0).graph.degree} == {6}
    assert build("erdos-renyi", 10, probability=1.0).graph.number_of_edges() == 45


@pytest.mark.parametrize("kind", ["erdos-renyi", "waxman"])
def test_mean_degree_is_what_was_asked(kind):
    degrees = [2 * build(kind, 200, seed, degree=12.0).graph.number_of_edges() / 200 for seed in range(5)]
    # Waxman's probabilities are cut at 1 for very near brokers, so it may fall short by a little.
    assert 10.0 < np.mean(degrees) < 13.0


def test_waxman_prefers_near_brokers():
    overlay = build("waxman", 200, latency={"kind": "distance"}, alpha=0.1)
    linked = np.mean([data["latency"] for _, _, data in overlay.graph.edges(data=True)])
    place = np.array([(overlay.graph.nodes[b]["x"], overlay.graph.nodes[b]["y"]) for b in range(200)])
    anywhere = np.hypot(*(place[:, None] - place[None]).reshape(-1, 2).T).mean()
    assert linked < anywhere / 2


def test_random_trees_are_uniform_over_labelled_trees():
    counts = {}
    rng = np.random.default_rng(5)
    for _ in range(1600):
        key = tuple(e[:2] for e in edges(build_overlay("random-tree", 4, rng)))
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 16, "Cayley: 4^2 labelled trees"
    assert min(counts.values()) > 50
    assert max(counts.values()) < 170


@settings(max_examples=60)
@given(st.integers(2, 12), st.integers(0, 2**32), st.integers(1, 4))
def test_spanning_tree_is_minimal_and_unique(brokers, seed, levels):
    rng = np.random.default_rng(seed)
    graph = nx.complete_graph(brokers)
    for u, v in graph.edges:
        graph.edges[u, v]["latency"] = float(rng.integers(levels))  # many ties
    tree = spanning_tree(graph)
    assert nx.is_tree(tree)
    least = nx.minimum_spanning_tree(graph, weight="latency").size(weight="latency")
    assert tree.size(weight="latency") == least
    shuffled = nx.Graph()
    shuffled.add_nodes_from(graph)
    order = list(graph.edges(data=True))
    rng.shuffle(order)
    shuffled.add_edges_from((v, u, data) for u, v, data in order)
    assert {frozenset(e) for e in spanning_tree(shuffled).edges} == {frozenset(e) for e in tree.edges}


def test_an_acyclic_graph_is_its_own_tree():
    overlay = build("random-tree", 20)
    assert {frozenset(e) for e in overlay.tree.edges} == {frozenset(e) for e in overlay.graph.edges}
    neighbour = min(overlay.tree[0])
    assert overlay.tree.edges[0, neighbour]["latency"] == overlay.latency(0, neighbour)


def test_latency_models():
    assert {e[2] for e in edges(build("ring", 9, latency=3))} == {3.0}
    assert {e[2] for e in edges(build("ring", 9, latency={"kind": "constant", "value": 2.5}))} == {2.5}
    drawn = [e[2] for e in edges(build("erdos-renyi", 40, latency={"kind": "uniform", "low": 5, "high": 6}))]
    assert min(drawn) >= 5
    assert max(drawn) <= 6
    assert len(set(drawn)) > 40
    far = [e[2] for e in edges(build("grid", 9, latency={"kind": "distance", "per_unit": 4.0, "minimum": 1.0}))]
    assert set(far) == {4.0}
    assert {e[2] for e in edges(build("grid", 9, latency={"kind": "distance", "minimum": 7.0}))} == {7.0}


@pytest.mark.parametrize("kind", OVERLAYS)
def test_layouts_of_our_own_have_mean_link_length_one(kind):
    if kind == "waxman":
        pytest.skip("has natural coordinates in the unit square")
    lengths = [e[2] for e in edges(build(kind, 60, latency={"kind": "distance"}))]
    assert math.isclose(np.mean(lengths), 1.0, rel_tol=1e-6)


def test_a_line_of_brokers_is_drawn_straight_from_its_middle():
    places = layout.positions(nx.path_graph(7))
    assert np.allclose(places[3], 0)
    assert np.allclose(np.hypot(*places.T), [3, 2, 1, 0, 1, 2, 3])


def test_great_circles():
    paris_and_new_york = np.array([(2.3522, 48.8566), (-74.0060, 40.7128)])
    assert globe_lengths(paris_and_new_york, [(0, 1)])[0] == pytest.approx(5837, abs=10)
    assert globe_lengths(np.array([(179.5, 0.0), (-179.5, 0.0)]), [(0, 1)])[0] == pytest.approx(111.2, abs=0.1)


NAN = math.nan
MISTAKES = [
    ("hypercube", 4, {}, "there are: balanced-tree"),
    ("line", 0, {}, "overlay.brokers is 0; it must be a whole number of at least 1"),
    ("line", 2.5, {}, "overlay.brokers is 2.5"),
    ("line", True, {}, "overlay.brokers is True"),
    ("line", 5, {"degree": 3}, "no option 'degree'; its options are: none"),
    ("balanced-tree", 5, {"branching": 0}, "overlay.branching is 0"),
    ("grid", 5, {"columns": 6}, "from 1 to 5"),
    ("erdos-renyi", 5, {"probability": 1.5}, "a number from 0 to 1"),
    ("erdos-renyi", 5, {"probability": NAN}, "overlay.probability is nan"),
    ("erdos-renyi", 5, {"probability": "half"}, "overlay.probability is 'half'"),
    ("erdos-renyi", 5, {"probability": 0.5, "degree": 2}, "give one of them"),
    ("erdos-renyi", 50, {"probability": 0.001}, "came out disconnected 100 times; ask for more links"),
    ("barabasi-albert", 5, {"links": 5}, "from 1 to 4"),
    ("watts-strogatz", 9, {"neighbours": 3}, "must be even"),
    ("watts-strogatz", 9, {"rewire": -0.1}, "overlay.rewire is -0.1"),
    ("waxman", 9, {"alpha": 0.0}, "above 0"),
    ("waxman", 9, {"beta": 2.0}, "above 0 and at most 1"),
    ("waxman", 9, {"beta": 0.5, "degree": 3}, "give one of them"),
    ("waxman", 9, {"degree": 9}, "from 0 to 8"),
    ("line", 3, {"latency": {"kind": "normal"}}, "unknown latency kind 'normal'"),
    ("line", 3, {"latency": {"kind": "constant", "mean": 3}}, "no option 'mean'; its options are: value"),
    ("line", 3, {"latency": {"kind": "constant", "value": -1}}, "latency.value is -1"),
    ("line", 3, {"latency": {"kind": "constant", "value": math.inf}}, "latency.value is inf"),
    ("line", 3, {"latency": {"kind": "uniform", "low": 5, "high": 1}}, "swap them"),
    ("line", 3, {"latency": {"kind": "distance", "per_unit": NAN}}, "latency.per_unit is nan"),
    ("line", 3, {"latency": "fast"}, "latency is 'fast'"),
    ("line", 3, {"latency": {"kind": ["constant"]}}, "unknown latency kind ['constant']"),
    ("waxman", 9, {"alpha": 1e-9}, "overlay.alpha is 1e-09"),
    ("barabasi-albert", 1, {"links": 7}, "overlay.links is 7"),
]


@pytest.mark.parametrize(("kind", "brokers", "options", "message"), MISTAKES)
def test_mistakes_are_sentences(kind, brokers, options, message):
    with pytest.raises(CoverlayError) as caught:
        build_overlay(kind, brokers, np.random.default_rng(0), **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_are_listed():
    assert overlay_options("waxman") == ("alpha", "beta", "degree")
    assert overlay_options("star") == ()


@pytest.mark.parametrize("brokers", [3, 4, 5])
def test_trees_of_shortest_paths_where_links_may_take_no_time(brokers):
    """Sites at one place: all rings with latencies of 0, 1 and 3 ms, from every source."""
    for latencies in itertools.product((0.0, 1.0, 3.0), repeat=brokers):
        ring = nx.cycle_graph(brokers)
        nx.set_edge_attributes(ring, dict(zip(sorted(ring.edges), latencies, strict=True)), "latency")
        for source in range(brokers):
            tree = shortest_paths(Overlay(ring, ring, "ring"), source).graph
            assert nx.is_tree(tree)
            ways = (nx.single_source_dijkstra_path_length(graph, source, weight="latency") for graph in (tree, ring))
            assert next(ways) == next(ways)


def test_equal_latencies_go_by_the_smaller_predecessor():
    square = nx.cycle_graph(4)
    nx.set_edge_attributes(square, 1.0, "latency")
    assert shortest_paths(Overlay(square, square, "ring"), 0).parent == {1: 0, 3: 0, 2: 1}


@pytest.mark.parametrize("trees", ["spanning", "per-source"])
@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_the_baseline_of_simple_routing_is_what_simple_routing_keeps(trees, engine):
    """So that it saves 0 % against itself, in one tree as in a tree per source."""
    data = {
        "name": "baseline",
        "overlay": {"kind": "watts-strogatz", "brokers": 8},
        "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 30, "events": 2},
        "arrivals": {"kind": "static", "unsubscribe": 0.3},
        "routing": {"strategy": "simple", "trees": trees},
        "run": {"engine": engine},
    }
    tables, _ = simulate(plan(data).runs[0])
    rows, record = tables["tables"].to_pandas(), tables["run"].to_pylist()[0]
    kept = rows[rows["final"] & (rows["neighbour"] >= 0)]["entries"].sum()
    assert record["simple_entries"] == kept > 0
    assert (kept == record["active"] * 7) == (trees == "spanning")
