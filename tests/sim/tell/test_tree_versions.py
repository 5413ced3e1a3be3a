"""What the trace calls the tables of a link where fail-over has changed the tree."""

from __future__ import annotations

import networkx as nx
import pandas as pd

from routing.overlay.trees import rooted
from sim.tell.versions import versions


def test_a_link_that_splits_the_brokers_as_before_is_called_as_when_its_tables_began() -> None:
    """A ring of four brokers with a fifth that hangs on broker 0: first 0–3 takes over from 0–1, then the other way."""
    columns = ["tree", "broker", "neighbour", "joins", "began", "serves", "first"]
    changes = [
        (-2, 0, 1, False, 5.0, 6.0, 3),
        (-2, 0, 3, True, 5.0, 6.0, 3),
        (-3, 0, 1, True, 8.0, None, None),
        (-3, 0, 3, False, 8.0, None, None),
    ]
    first = rooted(-1, 0, nx.Graph([(0, 1), (1, 2), (2, 3), (0, 4)]))
    found = list(versions(first, pd.DataFrame(changes, columns=columns)))
    assert [version.tree.name for version in found] == [-1, -2, -3]
    assert [version.begun(0, 4) for version in found] == [-1, -1, -1]
    assert [version.begun(1, 2) for version in found] == [-1, -2, -3]
    assert found[1].begun(3, 0) == -2
    assert [(version.serves, version.first) for version in found] == [(0.0, 0), (6.0, 3), (None, float("inf"))]
    assert (found[1].joined, found[1].left) == (((0, 3),), ((0, 1),))
