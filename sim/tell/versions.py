"""The tree that an event follows, and what the trace calls the tables of its links.

With `routing.failover` other trees take over, each a version of the tree before it. The trace says which links joined
and left. A link that splits the brokers as before keeps its tables, and the trace goes on naming them after the version
in which they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import pandas as pd

from routing.overlay.failover import alike
from routing.overlay.trees import Tree, rooted

Link = tuple[int, int]
MOST_NAMED = 4  # links that joined or left


@dataclass(frozen=True)
class Version:
    """One version of a tree; the first is the one that the network began with."""

    tree: Tree
    kept: Mapping[Link, int]  # links whose tables began in an earlier version → its name
    began: float = 0.0  # its tables began to be filled
    serves: float | None = 0.0  # events that are published from then on follow it
    first: float = 0  # how many events had been published by then
    joined: tuple[Link, ...] = ()  # links that it has and the version before has not
    left: tuple[Link, ...] = ()  # the other way round

    def begun(self, here: int, there: int) -> int:
        """The version in which the tables of a link began: what the trace calls them."""
        return self.kept.get((here, there), self.tree.name)

    def path(self, here: int, there: int) -> list[int]:
        found: list[int] = nx.shortest_path(self.tree.graph, here, there)
        return found

    def words(self, names: Mapping[int, str]) -> str:
        joined, left = (_listed(links, names) for links in (self.joined, self.left))
        return f"the tree that took over at {self.serves:.3f} ms: {joined} joined, {left} left"


def versions(tree: Tree, rows: pd.DataFrame) -> Iterator[Version]:
    """The versions of a tree in order; `rows`: of the trace, about this tree."""
    version = Version(tree, {})
    yield version
    for name, changes in rows.groupby("tree", sort=False):
        version = _next(version, int(str(name)), list(changes.itertuples()))
        yield version


def _next(before: Version, name: int, changes: list[Any]) -> Version:
    joined = tuple((row.broker, row.neighbour) for row in changes if row.joins)
    left = tuple((row.broker, row.neighbour) for row in changes if not row.joins)
    graph = nx.Graph(before.tree.graph)
    graph.remove_edges_from(left)
    graph.add_edges_from(joined)
    tree, began = rooted(name, before.tree.root, graph), changes[0].began
    kept = {link: before.begun(*link) for link in alike(before.tree, tree)}
    if pd.isna(changes[0].serves):  # a newer one took over before it was filled
        return Version(tree, kept, began, None, float("inf"), joined, left)
    return Version(tree, kept, began, changes[0].serves, changes[0].first, joined, left)


def _listed(links: tuple[Link, ...], names: Mapping[int, str]) -> str:
    shown = ", ".join(f"{names[a]}–{names[b]}" for a, b in links[:MOST_NAMED])
    more = len(links) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
