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
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from analysis.spark.java import find_java
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
DYING = 1.0  # seconds that a Java process may take to disappear after its connections broke
DRIVER_MEMORY = "2g"  # a ceiling, not a reservation; local tasks run inside the driver
MOST_SHUFFLE_PARTITIONS = 64
_CAUSE = re.compile(r"Exception\b|Error:|Error occurred")  # in what a Java process says before it gives up


def session(master: str | None = None, quick: bool = False, memory: str = DRIVER_MEMORY) -> SparkSession:
    """The session on `master`; without one, whatever runs already, else one on all cores of this machine.

    Asking for another master than the running session's stops the session we started before. `quick` is for
    small inputs: a session that is ready sooner and would be slower on large ones.
    """
    running = _running()
    if running is not None and not _stopped(running):
        if master is None or running.sparkContext.master == master:
            return running
        running.stop()
    master = master or LOCAL_MASTER
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with _uninterrupted(), _quiet_stderr() as log:
        try:
            started = _builder(master, quick, memory).getOrCreate()
        except Exception as error:  # py4j raises many kinds; each means that there is no session
            raise CoverlayError(f"Spark did not start on master {master!r}: {_reason(error, log)}") from error
    started.sparkContext.setLogLevel("ERROR")
    # What our jobs shuffle is counted already, a few thousand rows at most: the default of 200 tasks would cost seconds
    # and buy nothing.
    cores = started.sparkContext.defaultParallelism
    started.conf.set("spark.sql.shuffle.partitions", str(max(2, min(cores, MOST_SHUFFLE_PARTITIONS))))
    return started


def stop() -> None:
    """End the running session, if there is one."""
    running = _running()
    if running is not None:
        running.stop()


def lost(spark: SparkSession, patience: float = DYING) -> bool:
    """Has the Java process behind this session ended?"""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:  # it was not started from this process
        return False
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def _running() -> SparkSession | None:
    """The session of this process, if it has one; a lost one is forgotten, so that another can start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is None or not lost(session, patience=0):
        return SparkSession.getActiveSession()
    SparkSession._instantiatedSession = SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    return None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until Spark has started: before, Python would end and leave a Java process that nobody ends."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread is ever interrupted
        yield
        return
    asked: list[int] = []

    def remember(number: int, _: object) -> None:
        if asked:  # twice means now
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is remember:  # else Spark has put its own there, which also cancels jobs
            signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


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
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
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
    """What went wrong, in Java's own words if it left any, and what to do."""
    java = getattr(error, "java_exception", None)
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    said = [str(java.getMessage())] if java is not None else [line for line in lines if _CAUSE.search(line)]
    if not said:
        return "its Java process ended before it was ready, killed or out of memory; try again"
    return f"{said[0].splitlines()[0]}; use e.g. local[*], local[2] or spark://host:7077"
