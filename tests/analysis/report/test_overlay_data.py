"""The overlay's picture over time: where the slider stops, and which links trees have that fail-over changed."""

from __future__ import annotations

import pandas as pd

from analysis.report.overlay_data import MOST_SWITCHES, MOST_TIMES, changed_links, over_time, switched, tree_changes
from broker.trace.schema import CLIENT, SPECIAL

LINKS = pd.DataFrame({"broker": [0, 0, 1, 2], "neighbour": [1, 3, 2, 3]})


def versions(*rows: tuple[int, float | None, int, int, bool]) -> pd.DataFrame:
    """Rows of (whose tree, since when events follow the version, the two ends of a link, joins)."""
    return pd.DataFrame(rows, columns=["source", "serves", "broker", "neighbour", "joins"])


def tables(times: list[float]) -> pd.DataFrame:
    frame = pd.DataFrame({"time": times, "broker": 0, "neighbour": 1, "entries": range(1, 1 + len(times))})
    return pd.concat([frame, frame.assign(neighbour=CLIENT, entries=99)])


def test_links_that_joined_and_left_are_those_since_the_beginning() -> None:
    changes = tree_changes(
        versions((-1, 5.0, 0, 1, False), (-1, 5.0, 2, 3, True), (-1, 9.0, 0, 1, True), (-1, 9.0, 2, 3, False))
    )
    assert switched(changes) == [5.0, 9.0]
    assert changed_links(changes, LINKS, [4.9, 5.0, 8.0, 9.0]) == [[], [[0, -1], [3, 1]], [[0, -1], [3, 1]], []]


def test_a_version_that_nobody_followed_is_a_part_of_the_next() -> None:
    changes = tree_changes(
        versions((-1, None, 0, 1, False), (-1, None, 2, 3, True), (-1, 9.0, 2, 3, False), (-1, 9.0, 0, 3, True))
    )
    assert switched(changes) == [9.0]
    assert changed_links(changes, LINKS, [8.0, 9.0]) == [[], [[0, -1], [1, 1]]]
    assert switched(tree_changes(versions((-1, None, 0, 1, False)))) == []


def test_trees_of_several_sources_add_up() -> None:
    changes = tree_changes(versions((0, 5.0, 0, 1, False), (2, 5.0, 0, 1, False), (0, 5.0, 1, 2, True)))
    assert changed_links(changes, LINKS, [5.0]) == [[[0, -2], [2, 1]]]


def test_the_slider_stops_at_samples_and_switch_overs() -> None:
    assert over_time(tables([1.0, 4.0]), [0, 7], []) == ([1.0, 4.0], [[1, 0], [2, 0]])
    assert over_time(tables([1.0, 4.0]), [0], [3.0]) == ([1.0, 3.0, 4.0], [[1], [1], [2]])
    assert over_time(tables([4.0]), [0], [3.0]) == ([0.0, 3.0, 4.0], [[0], [0], [1]]), "something is before it"
    assert over_time(tables([]), [0], [3.0]) == ([0.0, 3.0], [[0], [0]]), "flooding keeps no tables"
    assert over_time(tables([]), [0], []) == ([], [])


def test_a_run_without_fail_over_changes_nothing_and_one_that_flaps_stops_at_some_moments() -> None:
    none = tree_changes(SPECIAL["versions"].empty_table().to_pandas())
    assert (switched(none), changed_links(none, LINKS, [1.0])) == ([], [[]])
    flaps = switched(tree_changes(versions(*((-1, float(i), 0, 1, bool(i % 2)) for i in range(100)))))
    assert (flaps[0], flaps[-1]) == (0.0, 99.0)
    assert len(flaps) == MOST_SWITCHES
    stops, _ = over_time(tables([float(i) for i in range(1000)]), [0], [])
    assert len(stops) == MOST_TIMES
