"""The one Spark of a process: whoever asks gets one that works, whoever stopped the one before, and in which way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from analysis.spark.session import session, stop

pytestmark = pytest.mark.spark


def elsewhere(task: Callable[[], None]) -> None:
    """In a thread of its own: the session that is active is known per thread."""
    thread = threading.Thread(target=task)
    thread.start()
    thread.join()


STOPS: dict[str, Callable[[Any], None]] = {
    "stop": lambda spark: stop(),
    "the session's own": lambda spark: spark.stop(),
    "its context's": lambda spark: spark.sparkContext.stop(),
    "in another thread": lambda spark: elsewhere(spark.stop),
    "another master": lambda spark: session("local[1]"),
}


@pytest.mark.parametrize("how", STOPS)
def test_who_asks_after_a_stop_gets_a_spark_that_works(spark: Any, how: str) -> None:
    rows = spark.range(3)
    STOPS[how](spark)
    again = session("local[2]")
    assert again.sparkContext.master == "local[2]"
    assert session() is again
    counted: list[int] = []
    elsewhere(lambda: counted.append(session().range(3).count()))
    assert [again.range(3).count(), *counted] == [3, 3]
    with pytest.raises(Exception):  # noqa: B017, PT011  (of many types): why no fixture may keep one for later tests
        rows.count()


def test_a_spark_of_the_user_is_used_as_it_is(java: None) -> None:
    from pyspark.sql import SparkSession

    stop()
    session("local[2]")
    stop()
    theirs = SparkSession.builder.master("local[1]").appName("theirs").config("spark.ui.enabled", "false").getOrCreate()
    try:
        assert session() is theirs
        assert session().sparkContext.appName == "theirs"
    finally:
        theirs.stop()
