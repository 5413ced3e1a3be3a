"""Trees that avoid what is down, and which links of a tree keep their tables when another tree takes its place.

Every tree spans all brokers, so a link that is down is in it where no other reaches a broker; such a broker waits
there until it is back. A link splits its tree in two. Where two trees have a link in common and it splits the brokers
alike, each end has heard of the same subscriptions from the other: tables and ledgers of that link can be kept. These
are all links that are on no cycle of the two trees together.

This is also why nothing circulates while several versions of a tree live side by side. A table feeds a ledger of
another link of the same version only, and what lies behind that link has all brokers of the first and one more. If
tables of one version led back to themselves through another version, a set of brokers would be larger than itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import networkx as nx

from routing.overlay.graph import Overlay
from routing.overlay.trees import Avoid, Tree, rooted, shortest_paths

FAILOVERS = ("none", "replace", "recompute")
REJOINS = ("at-once", "hold-down", "never")


def named(base: int, version: int, brokers: int) -> int:
    """The name of a version of a tree: below SHARED, or a source plus a multiple of the number of brokers."""
    return base - version if base < 0 else base + version * brokers


def tree_around(overlay: Overlay, how: str, original: Tree, now: Tree, name: int, avoid: Avoid) -> Tree:
    """The tree that takes over from `now`: a new one of least latency, or as few links as possible replaced."""
    if how == "recompute" and not original.shared:
        return replace(shortest_paths(overlay, original.name, avoid), name=name)
    keep = (original.graph, now.graph) if how == "replace" else ()
    graph = nx.Graph()
    graph.add_nodes_from(overlay.graph.nodes(data=True))
    joined = nx.utils.UnionFind(graph)
    for *_, latency, a, b in sorted(_preferences(overlay, keep, avoid)):
        if joined[a] != joined[b]:
            joined.union(a, b)
            graph.add_edge(a, b, latency=latency)
    return rooted(name, original.root, graph)


def _preferences(overlay: Overlay, keep: Iterable[nx.Graph], avoid: Avoid) -> Iterable[tuple[float, ...]]:
    """Links, smallest first: those that are up, then those of the first tree, of the next one, of least latency."""
    for a, b, latency in overlay.graph.edges(data="latency"):
        a, b = min(a, b), max(a, b)
        yield avoid(a, b), *(not tree.has_edge(a, b) for tree in keep), latency, a, b


def alike(one: Tree, other: Tree) -> set[tuple[int, int]]:
    """The links that both trees have and that split the brokers alike, in both directions."""
    there = _splits(other)
    same = [link for link, behind in _splits(one).items() if there.get(link) == behind]
    return {*same, *((b, a) for a, b in same)}


def _splits(tree: Tree) -> dict[tuple[int, int], int]:
    """For each link, the brokers on the side of its smaller end, as bits."""
    below = {broker: 1 << broker for broker in tree.level}
    for broker in sorted(tree.parent, key=lambda b: -tree.level[b]):
        below[tree.parent[broker]] |= below[broker]
    everybody = below[tree.root]
    return {(min(a, b), max(a, b)): below[a] if a < b else everybody ^ below[a] for a, b in tree.parent.items()}
