"""The one Spark session of a process, started when it is first needed.

What ours changes against `SparkSession.builder.getOrCreate()`, and why:

- Java is looked for first, so that a machine without it gets a sentence and not a stack trace.
- Workers use the Python that runs us; Spark would start whatever `python3` is first on the PATH.
- A session on this machine binds to loopback: nothing of an experiment is reachable from outside.
- The start-up chatter of the JVM goes to a scratch file, whose end is quoted if the start fails.

Starting takes 5 to 10 seconds; a second call costs nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from analysis.java import find_java
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
DRIVER_MEMORY = "2g"  # a ceiling, not a reservation; local tasks run inside the driver
MOST_SHUFFLE_PARTITIONS = 64


def session(master: str | None = None, quick: bool = False, memory: str = DRIVER_MEMORY) -> SparkSession:
    """The session on `master`; without one, whatever runs already, else one on all cores of this machine.

    Asking for another master than the running session's stops the session we started before. `quick` is for
    small inputs: a session that is ready sooner and would be slower on large ones.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None and not _stopped(running):
        if master is None or running.sparkContext.master == master:
            return running
        running.stop()
    master = master or LOCAL_MASTER
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with _quiet_stderr() as log:
        try:
            started = _builder(master, quick, memory).getOrCreate()
        except Exception as error:  # py4j raises many kinds; each means that there is no session
            raise CoverlayError(
                f"Spark did not start on master {master!r}: {_reason(error, log)}; "
                "use e.g. local[*], local[2] or spark://host:7077"
            ) from error
    started.sparkContext.setLogLevel("ERROR")
    # What our jobs shuffle is counted already, a few thousand rows at most: the default of 200 tasks would cost seconds
    # and buy nothing.
    cores = started.sparkContext.defaultParallelism
    started.conf.set("spark.sql.shuffle.partitions", str(max(2, min(cores, MOST_SHUFFLE_PARTITIONS))))
    return started


def stop() -> None:
    """End the running session, if there is one."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()


def _stopped(running: SparkSession) -> bool:
    context = running.sparkContext
    return context._jsc is None or context._jsc.sc().isStopped()


def _builder(master: str, quick: bool, memory: str) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master)
        .appName("coverlay")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        # Replanning after every stage pays where intermediate results are large or skewed; ours are small.
        .config("spark.sql.adaptive.enabled", "false")
        # Small aggregates reach pandas as Arrow batches, without a Python object per value.
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # A second attempt without Arrow would only print the failure's stack trace and fail again.
        .config("spark.sql.execution.arrow.pyspark.fallback.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        # One aggregation compiles more classes than the default of 100 keeps; a second would compile them all again.
        .config("spark.sql.codegen.cache.maxEntries", "1000")
    )
    if on_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    if master.startswith("local"):
        # We name every file; asking a Spark job whether each exists costs more than looking.
        builder = builder.config("spark.sql.sources.parallelPartitionDiscovery.threshold", 1_000_000)
        # The collector with the least overhead; pauses do not matter. For small inputs the optimising compiler is left
        # out as well: most of its work would go into code that runs once.
        java = "-XX:+UseParallelGC" + (" -XX:TieredStopAtLevel=1" if quick else "")
        builder = builder.config("spark.driver.extraJavaOptions", java)
    return builder


def on_this_machine(master: str) -> bool:
    """Is this a local master, or a cluster whose master listens on loopback only?"""
    if master.startswith("local"):
        return True
    return urlsplit(master).hostname in {"localhost", "127.0.0.1", "::1"}


@contextmanager
def _quiet_stderr() -> Iterator[IO[bytes]]:
    """Send file descriptor 2 to a scratch file, so that a JVM started meanwhile writes there for ever.

    Setting a log level is not enough: some lines come from the launcher script and from the JVM itself.
    """
    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield log
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def _reason(error: Exception, log: IO[bytes]) -> str:
    """One line that says what went wrong: Java's own message if there is one, else the last line logged."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        return str(java.getMessage()).splitlines()[0]
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    causes = [line for line in lines if "Exception" in line or "rror" in line]
    return (causes or lines or [str(error)])[0 if causes else -1]
