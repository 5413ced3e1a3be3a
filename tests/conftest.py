"""One Spark session for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from analysis.spark.java import find_java
from coverlay import CoverlayError


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
