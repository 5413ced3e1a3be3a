"""The overlay graphs that can be generated, by name.

Every builder returns a graph on exactly the nodes 0..n-1, for every n ≥ 1, connected or not: the caller
draws again when it is not. Options are keyword-only, and `None` as a default means "chosen from n".
Natural coordinates (grid, Waxman, line, ring) are given as node attributes `x` and `y`.

Sources: Erdős–Rényi G(n, p); Barabási & Albert 1999; Watts & Strogatz 1998; Waxman 1988,
P(u, v) = β·exp(−d(u, v)/(α·L)) with L the largest distance; the AS graph of Elmokashfi, Kvalbein & Dovrolis
2010 (`networkx.random_internet_as_graph`). Random trees are uniform over all labelled trees (Prüfer).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, TypeVar

import networkx as nx
import numpy as np

from coverlay import CoverlayError, Key, Registry
from routing.options import number, whole

LARGEST_SEED = 2**63  # NetworkX generators take an integer; one draw of ours seeds them
TIER_ONE = 6  # the AS model starts from a clique of 4 to 6 top providers; smaller graphs are that clique


Degree = Annotated[float | None, Key("links per broker on average; absent: 2·ln n, at least 4")]


def line(brokers: int, rng: np.random.Generator) -> nx.Graph:
    """A chain: every broker has a neighbour on either side."""
    graph = nx.path_graph(brokers)
    _place(graph, np.column_stack([np.arange(brokers, dtype=float), np.zeros(brokers)]))
    return graph


def star(brokers: int, rng: np.random.Generator) -> nx.Graph:
    """Every broker is linked to broker 0."""
    return nx.star_graph(brokers - 1)


def ring(brokers: int, rng: np.random.Generator) -> nx.Graph:
    """A closed chain; one or two brokers form a line."""
    graph = nx.cycle_graph(brokers) if brokers > 2 else nx.path_graph(brokers)
    angle = 2 * math.pi * np.arange(brokers) / brokers
    radius = 0.5 / math.sin(math.pi / brokers) if brokers > 1 else 0.0  # neighbours are 1 apart
    _place(graph, radius * np.column_stack([np.cos(angle), np.sin(angle)]))
    return graph


def balanced_tree(
    brokers: int, rng: np.random.Generator, *, branching: Annotated[int, Key("children of each broker")] = 2
) -> nx.Graph:
    """Complete `branching`-ary tree, filled level by level until there are n brokers."""
    branching = whole("overlay.branching", branching, 1)
    graph = nx.empty_graph(brokers)
    graph.add_edges_from(((node - 1) // branching, node) for node in range(1, brokers))
    return graph


def random_tree(brokers: int, rng: np.random.Generator) -> nx.Graph:
    """Every labelled tree is equally likely (a random Prüfer sequence)."""
    if brokers <= 2:
        return nx.path_graph(brokers)
    return nx.from_prufer_sequence(rng.integers(0, brokers, brokers - 2).tolist())


def grid(
    brokers: int,
    rng: np.random.Generator,
    *,
    columns: Annotated[int | None, Key("brokers in a row; absent: near-square")] = None,
) -> nx.Graph:
    """Rows of `columns` brokers (default: near-square), the last row perhaps shorter."""
    width = math.isqrt(brokers - 1) + 1 if columns is None else whole("overlay.columns", columns, 1, brokers)
    graph = nx.empty_graph(brokers)
    for node in range(brokers):
        if node % width:
            graph.add_edge(node - 1, node)
        if node >= width:
            graph.add_edge(node - width, node)
    row, column = np.divmod(np.arange(brokers), width)
    _place(graph, np.column_stack([column, -row]).astype(float))
    return graph


def erdos_renyi(
    brokers: int,
    rng: np.random.Generator,
    *,
    probability: Annotated[float | None, Key("chance that a pair is linked; absent: by degree")] = None,
    degree: Degree = None,
) -> nx.Graph:
    """Every pair is linked with `probability`, or such that brokers have `degree` links on average."""
    if probability is not None and degree is not None:
        raise CoverlayError("overlay.probability and overlay.degree say the same thing; give one of them")
    if probability is not None:
        chance = number("overlay.probability", probability, 0.0, 1.0)
    else:
        chance = min(1.0, _mean_degree(brokers, degree) / max(brokers - 1, 1))
    graph = nx.empty_graph(brokers)
    for node in range(brokers - 1):  # row by row: O(n²) time, O(n) memory
        linked = np.flatnonzero(rng.random(brokers - 1 - node) < chance)
        graph.add_edges_from((node, node + 1 + int(other)) for other in linked)
    return graph


def barabasi_albert(
    brokers: int,
    rng: np.random.Generator,
    *,
    links: Annotated[int | None, Key("links that each new broker brings; absent: 2")] = None,
) -> nx.Graph:
    """Each new broker brings `links` links (default 2) to brokers chosen in proportion to their degree."""
    seed = int(rng.integers(LARGEST_SEED))
    wanted = min(2, brokers - 1) if links is None else whole("overlay.links", links, 1, max(brokers - 1, 1))
    if brokers == 1:
        return nx.empty_graph(1)
    return nx.barabasi_albert_graph(brokers, wanted, seed=seed)


def watts_strogatz(
    brokers: int,
    rng: np.random.Generator,
    *,
    neighbours: Annotated[
        int | None, Key("nearest on the ring that each is linked to, an even number; absent: 4")
    ] = None,
    rewire: Annotated[float, Key("share of the links that are moved")] = 0.1,
) -> nx.Graph:
    """A ring where each broker knows its `neighbours` nearest (even; default 4); some links are moved."""
    rewire = number("overlay.rewire", rewire, 0.0, 1.0)
    seed = int(rng.integers(LARGEST_SEED))
    if brokers <= 2:
        return nx.path_graph(brokers)
    if neighbours is None:
        near = min(4, (brokers - 1) // 2 * 2)
    else:
        near = whole("overlay.neighbours", neighbours, 2, brokers - 1)
        if near % 2:
            raise CoverlayError(f"overlay.neighbours is {near}; it must be even, half of them on either side")
    return nx.watts_strogatz_graph(brokers, near, rewire, seed=seed)


def waxman(
    brokers: int,
    rng: np.random.Generator,
    *,
    alpha: Annotated[float, Key("how far links reach, as a share of the largest distance")] = 0.2,
    beta: Annotated[float | None, Key("chance of a link between brokers at one place; absent: by degree")] = None,
    degree: Degree = None,
) -> nx.Graph:
    """Brokers anywhere in the unit square, near ones more likely linked.

    `beta` scales the probability as in the paper; without it, it is set so that the mean degree comes out
    as `degree`, because the usual constants give a disconnected graph below a few hundred brokers.
    """
    alpha = number("overlay.alpha", alpha, 0.0, above=True)
    if beta is not None and degree is not None:
        raise CoverlayError("overlay.beta and overlay.degree both set the number of links; give one of them")
    place = rng.random((brokers, 2))
    graph = nx.empty_graph(brokers)
    _place(graph, place)
    if brokers == 1:
        return graph
    rows = [np.hypot(*(place[node + 1 :] - place[node]).T) for node in range(brokers - 1)]
    reach = alpha * max(float(row.max()) for row in rows)
    if beta is not None:
        scale = number("overlay.beta", beta, 0.0, 1.0, above=True)
    else:
        expected = 2.0 * sum(float(np.exp(-row / reach).sum()) for row in rows) / brokers
        if expected == 0.0:
            raise CoverlayError(f"overlay.alpha is {alpha:g}; links would not reach any broker: give a larger one")
        scale = _mean_degree(brokers, degree) / expected
    for node, row in enumerate(rows):
        linked = np.flatnonzero(rng.random(len(row)) < scale * np.exp(-row / reach))
        graph.add_edges_from((node, node + 1 + int(other)) for other in linked)
    return graph


def internet(brokers: int, rng: np.random.Generator) -> nx.Graph:
    """Autonomous systems: a clique of top providers, mid-level ones, customers and content providers."""
    seed = int(rng.integers(LARGEST_SEED))
    if brokers <= TIER_ONE:
        return nx.complete_graph(brokers)
    made = nx.random_internet_as_graph(brokers, seed=seed)
    graph = nx.empty_graph(made.number_of_nodes())  # without the model's own attributes
    graph.add_edges_from(sorted((min(u, v), max(u, v)) for u, v in made.edges))
    return graph


def _mean_degree(brokers: int, degree: float | None) -> float:
    """The asked mean degree; by default twice ln n, where random graphs are almost surely connected."""
    if degree is None:
        return min(max(4.0, 2.0 * math.log(brokers)), float(brokers - 1))
    return number("overlay.degree", degree, 0.0, float(max(brokers - 1, 0)))


def _place(graph: nx.Graph, places: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    for node, (x, y) in enumerate(places.tolist()):
        graph.nodes[node].update(x=x, y=y)


OVERLAYS: Registry[Callable[..., nx.Graph]] = Registry(
    "overlay kind",
    {
        "line": line,
        "star": star,
        "ring": ring,
        "balanced-tree": balanced_tree,
        "random-tree": random_tree,
        "grid": grid,
        "erdos-renyi": erdos_renyi,
        "barabasi-albert": barabasi_albert,
        "watts-strogatz": watts_strogatz,
        "waxman": waxman,
        "internet": internet,
    },
)


Kind = TypeVar("Kind", bound=Callable[..., nx.Graph])


def register(kind: Kind) -> Kind:
    """Add an overlay kind of your own: f(brokers, rng, *, …) → a graph of so many nodes. A graph that is not connected
    is drawn again; the link attribute `latency` gives milliseconds."""
    OVERLAYS.add_function(kind)
    return kind
