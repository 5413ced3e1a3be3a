"""Where to draw the brokers of a graph that brings no coordinates.

Trees get a radial layout: the middle of the longest path in the centre, every subtree a wedge as wide as it
has leaves, one ring per level; O(n). Small cyclic graphs get NetworkX's spring layout from a fixed start;
large ones the radial layout of a breadth-first tree, because springs cost O(n²) per round. None of this needs
SciPy. The result is scaled to a mean link length of 1, so that "distance" latencies mean the same for all.
"""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from routing.overlay.latency import plane_lengths

SPRING_BROKERS = 200  # springs stay below a quarter of a second up to here
SPRING_SEED = 7  # fixed, not the run's: the picture of a graph depends on the graph alone
DECIMALS = 9  # hides the last bits, which differ between linear algebra libraries


def positions(graph: nx.Graph) -> NDArray[np.float64]:
    """(n, 2) coordinates for a connected graph on 0..n-1."""
    count = graph.number_of_nodes()
    if graph.number_of_edges() == 0:
        return np.zeros((count, 2))
    if graph.number_of_edges() >= count and count <= SPRING_BROKERS:
        spring = nx.spring_layout(graph, seed=SPRING_SEED)
        placed = np.array([spring[node] for node in range(count)], dtype=np.float64)
    else:
        placed = _radial(graph, _middle(graph))
    links = sorted((min(u, v), max(u, v)) for u, v in graph.edges)
    mean = float(plane_lengths(placed, links).mean())
    return np.round(placed / mean if mean > 0 else placed, DECIMALS)


def _parents(graph: nx.Graph, start: int) -> dict[int, int]:
    """Node → its parent, in the order of a breadth-first walk; the first is its own parent."""
    return {start: start, **{node: parent for parent, node in nx.bfs_edges(graph, start, sort_neighbors=sorted)}}


def _middle(graph: nx.Graph) -> int:
    """The middle of a longest path (of a tree; of a long shortest path otherwise)."""
    *_, end = _parents(graph, 0)
    parent = _parents(graph, end)
    path = [list(parent)[-1]]
    while path[-1] != end:
        path.append(parent[path[-1]])
    return path[len(path) // 2]


def _radial(graph: nx.Graph, root: int) -> NDArray[np.float64]:
    parent = _parents(graph, root)
    walk = list(parent)  # parents come before their children
    children: dict[int, list[int]] = {node: [] for node in walk}
    for node in walk[1:]:
        children[parent[node]].append(node)
    leaves = dict.fromkeys(walk, 1)
    for node in reversed(walk):
        if children[node]:
            leaves[node] = sum(leaves[child] for child in children[node])
    placed = np.zeros((len(walk), 2))
    wedge = {root: (0.0, 2 * math.pi)}
    depth = {root: 0}
    for node in walk:
        start, width = wedge[node]
        placed[node] = depth[node] * math.cos(start + width / 2), depth[node] * math.sin(start + width / 2)
        for child in children[node]:
            share = width * leaves[child] / leaves[node]
            wedge[child] = (start, share)
            depth[child] = depth[node] + 1
            start += share
    return placed
