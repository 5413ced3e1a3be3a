"""Expected routing-table sizes on a tree, in closed form, to check the simulator against.

Subscriptions are drawn independently: filter i with probability p_i, its home uniform over the B brokers. Take the
end of a link with s brokers behind it. Simple routing stores every subscription from behind; identity routing each
distinct filter once, and filter i has no subscriber among n behind the link with probability (1 − p_i·s/B)^n. Sums
over both directions of all links give the whole network (cf. Mühl, "Large-Scale Content-Based Publish/Subscribe
Systems", 2002, who counts in the same way).
"""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike


def brokers_behind(tree: nx.Graph) -> list[int]:
    """For each direction of each link, how many brokers lie on the far side."""
    if len(tree) < 2:
        return []
    root = next(iter(tree))
    below = dict.fromkeys(tree, 1)
    sizes = []
    for child, parent in reversed(list(nx.bfs_predecessors(tree, root))):
        below[parent] += below[child]
        sizes += [below[child], len(tree) - below[child]]
    return sizes


def expected_simple(tree: nx.Graph, subscriptions: int) -> float:
    """Exact, not only expected: every broker but its own has an entry for every subscription."""
    return float(subscriptions * (len(tree) - 1))


def expected_identity(tree: nx.Graph, subscriptions: int, popularity: ArrayLike) -> float:
    """Entries in the whole network when filter i is chosen with probability `popularity[i]`."""
    shares = np.asarray(popularity, dtype=np.float64)
    behind = np.array(brokers_behind(tree), dtype=np.float64)
    absent = (1.0 - np.outer(behind / len(tree), shares)) ** subscriptions
    return float((1.0 - absent).sum())
