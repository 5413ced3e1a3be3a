"""One Spark session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from analysis.spark.java import find_java
from coverlay import CoverlayError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start Spark first: they take longest, and one at the end would keep a single worker busy."""
    long = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two local cores, few shuffle partitions, no UI: see analysis.spark for the reasons."""
    try:
        find_java()
    except CoverlayError as error:
        pytest.skip(str(error))
    from analysis.spark.session import session

    started = session("local[2]", quick=True)
    yield started
    started.stop()
