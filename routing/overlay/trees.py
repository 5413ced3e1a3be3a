"""The trees that messages follow: one for the whole overlay, or one per source of events.

One spanning tree serves all publishers; subscriptions travel along it in every direction. With a tree per source,
the events of broker p follow the tree of shortest paths from p, which uses all links of a cyclic overlay and never
delivers twice; subscriptions travel only towards p in it, and covering happens inside one tree only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

import networkx as nx

from coverlay import CoverlayError, unknown_name
from routing.overlay.graph import Overlay

SHARED = -1  # the name of the one spanning tree; a source's tree is named by the source
TREES = ("spanning", "per-source")

Avoid = Callable[[int, int], int]  # of a link: 0 to use it; one with more is worse than any number with less
Nearness = tuple[int, float, int]  # how bad the links to avoid on the way are, its latency, its links


def _nothing(broker: int, neighbour: int) -> int:
    return 0


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree over all brokers."""

    name: int  # SHARED or the source; later versions of either have names of their own, see `later`
    graph: nx.Graph
    parent: dict[int, int]  # broker → the next one on the way to the root
    level: dict[int, int]  # broker → its distance from the root, in links

    def neighbours(self, broker: int) -> list[int]:
        return sorted(self.graph[broker])

    @property
    def shared(self) -> bool:
        """Does it serve all sources of events?"""
        return self.name <= SHARED

    @property
    def root(self) -> int:
        return min(self.level, key=self.level.__getitem__)

    def towards_root(self, broker: int) -> list[int]:
        """The neighbour on the way to the root; empty at the root itself."""
        return [self.parent[broker]] if broker in self.parent else []


def spanning(overlay: Overlay, root: int | None) -> Tree:
    """The overlay's own tree, rooted in its middle unless told otherwise."""
    if root is None:
        root = min(nx.center(overlay.tree))
    elif root not in overlay.tree:
        raise CoverlayError(f"routing.root is {root}; the overlay has brokers 0 to {overlay.brokers - 1}")
    return rooted(SHARED, root, overlay.tree)


def shortest_paths(overlay: Overlay, source: int, avoid: Avoid = _nothing) -> Tree:
    """Least latency from the source to everybody; equal latencies go by the smaller predecessor.

    A link without latency joins brokers at equal distance, so links are counted too: a predecessor is nearer in
    latency, or as near and fewer links away. This rules out cycles. Links to avoid count before all that.
    """
    nearness = _nearness(overlay, source, avoid)
    tree = nx.Graph()
    tree.add_nodes_from(range(overlay.brokers))
    for broker in sorted(nearness.keys() - {source}):
        nearer = (n for n in overlay.graph[broker] if nearness[n] < nearness[broker])
        distance = nearness[broker][:2]
        best = min(n for n in nearer if _further(overlay, nearness[n], n, broker, avoid)[:2] == distance)
        tree.add_edge(best, broker, latency=overlay.latency(best, broker))
    return rooted(source, source, tree)


def _nearness(overlay: Overlay, source: int, avoid: Avoid) -> dict[int, Nearness]:
    """Broker → how near the source is (Dijkstra)."""
    found: dict[int, Nearness] = {}
    waiting = [((0, 0.0, 0), source)]
    while waiting:
        nearness, broker = heappop(waiting)
        if broker in found:
            continue
        found[broker] = nearness
        for neighbour in overlay.graph[broker]:
            if neighbour not in found:
                heappush(waiting, (_further(overlay, nearness, broker, neighbour, avoid), neighbour))
    return found


def _further(overlay: Overlay, nearness: Nearness, broker: int, neighbour: int, avoid: Avoid) -> Nearness:
    avoided, latency, links = nearness
    if worse := avoid(broker, neighbour):
        avoided += overlay.brokers**worse  # more than all links of a way together that are a grade better
    return avoided, latency + overlay.latency(broker, neighbour), links + 1


def trees_of(overlay: Overlay, kind: str, root: int | None) -> dict[int, Tree]:
    """The trees of a network by name."""
    if kind not in TREES:
        raise unknown_name("kind of routing trees", kind, TREES)
    if kind == "spanning":
        return {SHARED: spanning(overlay, root)}
    return {source: shortest_paths(overlay, source) for source in range(overlay.brokers)}


def links_of(trees: Iterable[Tree]) -> list[tuple[int, int]]:
    """The links that some tree uses, the smaller broker first."""
    return sorted({(min(a, b), max(a, b)) for tree in trees for a, b in tree.graph.edges})


def told(trees: Iterable[Tree], broker: int) -> int:
    """How many others keep an entry for a subscription of `broker` in simple routing, all trees together."""
    return sum(len(tree.graph) - 1 if tree.shared else tree.level[broker] for tree in trees)


def reaches(tree: Tree, broker: int, sends_to: str) -> tuple[list[int], list[int]]:
    """The neighbours that learn of a broker's subscriptions, and those that never tell theirs and get every event."""
    parent, everybody = tree.towards_root(broker), tree.neighbours(broker)
    if sends_to == "nobody":
        return [], everybody
    if not tree.shared:  # all events come from the root, so only the way to it matters
        return parent, []
    return (parent, parent) if sends_to == "root" else (everybody, [])


def rooted(name: int, root: int, graph: nx.Graph) -> Tree:
    parent = dict(nx.bfs_predecessors(graph, root))
    return Tree(name, graph, parent, dict(nx.single_source_shortest_path_length(graph, root)))
