"""Waiting for Spark's jobs: progress while they run, and an interrupt cancels them.

pyspark would cancel jobs in its own handler of Ctrl-C, which it can only install in the main thread, where it replaces
that of the program. So jobs run in a thread, and whoever waits for them, and is interrupted, cancels them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
TICK = 2.0  # seconds between two progress reports
SOON = 0.1  # seconds between two attempts to cancel: a job may just be about to begin


def finished(spark: SparkContext, action: Callable[[], T], tell: Callable[[], None]) -> T:
    """The result of an action that starts jobs; `tell` is called now and then until it is there."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(action)
        try:
            while not wait([job], TICK).done:
                tell()
        except BaseException:
            cancel(spark, [job])
            raise
        return job.result()


def cancel(spark: SparkContext, jobs: Collection[Future[Any]]) -> None:
    """Return when these have ended, cancelled or not. One that is about to begin would not heed a single attempt."""
    while jobs := wait(jobs, SOON).not_done:
        with suppress(Exception):  # Spark may be gone, and the jobs with it
            spark.cancelAllJobs()
