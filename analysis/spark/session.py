"""The one Spark of a process, started when it is first needed.

The aggregation and runs on a cluster need only Spark's core, a `context`. DataFrames of traces need a `session` on top
of it, which loads Spark SQL. How ours differs from `SparkSession.builder.getOrCreate()`, and why:

- Java is looked for first, so that a machine without it gets a sentence, not a stack trace.
- Workers use the Python that runs us; Spark would start whatever `python3` is first on the PATH.
- A session on this machine binds to loopback, so it cannot be reached from outside.
- What the JVM prints while it starts is written to a scratch file, whose end is quoted if the start fails.

Starting takes 3 to 10 seconds; a second call costs nothing. `start_early` does it in the background.
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
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from analysis.spark.java import find_java
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
DYING = 1.0  # seconds that a Java process may take to disappear after its connections broke
DRIVER_MEMORY = "2g"  # a ceiling, not a reservation; local tasks run inside the driver
MOST_SHUFFLE_PARTITIONS = 64
_starting = threading.RLock()
_CAUSE = re.compile(r"Exception\b|Error:|Error occurred")  # in what a Java process says before it gives up


def context(master: str | None = None, quick: bool = False, memory: str = DRIVER_MEMORY) -> SparkContext:
    """Spark on `master`; if none is given, the running Spark, else a new one on all cores of this machine.

    Asking for a master other than the running one stops the running Spark. `quick` is for small inputs: Java starts
    sooner but is slower on large ones.
    """
    with _uninterrupted(), _starting:
        running = _running()
        if running is not None and not _stopped(running):
            if master is None or running.master == master:
                return running
            stop()
        return _started(master or LOCAL_MASTER, quick, memory)


def session(master: str | None = None, quick: bool = False) -> SparkSession:
    """The session for DataFrames on `context(…)`."""
    from pyspark.sql import SparkSession

    parallelism = context(master, quick).defaultParallelism
    found: SparkSession = SparkSession.builder.getOrCreate()
    # The default of 200 tasks per shuffle costs seconds and buys nothing here.
    found.conf.set("spark.sql.shuffle.partitions", str(max(2, min(parallelism, MOST_SHUFFLE_PARTITIONS))))
    return found


def start_early(master: str | None = None) -> None:
    """Begin to start Spark for small inputs in the background; the next call of `context` waits for it.

    If the start fails, that call raises the error. Do not call this just before a fork: the child would hold the
    pipes of the launch.
    """

    def start() -> None:
        with suppress(CoverlayError):
            context(master, quick=True)

    threading.Thread(target=start).start()  # a daemon thread would leave a Java process behind


def _started(master: str, quick: bool, memory: str) -> SparkContext:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("coverlay")
    conf.setAll(_settings(master, quick, memory).items())
    with tempfile.TemporaryFile() as log:
        try:
            if SparkContext._gateway is None:
                # A log level is not enough: some lines come from the launcher script and from the JVM itself.
                gateway = launch_gateway(conf, popen_kwargs={"stderr": log})
                SparkContext._ensure_initialized(gateway=gateway)
            started: SparkContext = SparkContext.getOrCreate(conf)
        except Exception as error:  # py4j raises many types; each means that Spark did not start
            raise CoverlayError(f"Spark did not start on master {master!r}: {_reason(error, log)}") from error
    started.setLogLevel("ERROR")
    return started


def stop() -> None:
    """Stop the running Spark, if there is one."""
    from pyspark.sql import SparkSession

    running, session = _running(), SparkSession._instantiatedSession
    if session is not None:
        session.stop()
    elif running is not None:
        running.stop()


def lost(running: SparkContext, patience: float = DYING) -> bool:
    """Has the Java process behind this context ended?"""
    process = getattr(running._gateway, "proc", None)
    if process is None:  # this process did not start it
        return False
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def _running() -> SparkContext | None:
    """The Spark of this process, if it has one; one whose Java has ended is forgotten, so that another can start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkContext._active_spark_context
    if running is None or not lost(running, patience=0):
        return running
    SparkSession._instantiatedSession = SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    return None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until Spark has started: earlier, it would end Python and leave a Java process behind."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread is ever interrupted
        yield
        return
    asked: list[int] = []

    def remember(number: int, _: object) -> None:
        if asked:  # the second Ctrl-C ends at once
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is remember:  # else Spark has set its own handler, which also cancels jobs
            signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


def _stopped(running: SparkContext) -> bool:
    return running._jsc is None or running._jsc.sc().isStopped()


def _settings(master: str, quick: bool, memory: str) -> dict[str, str]:
    settings = {
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        # For DataFrames of traces: aggregates reach pandas as Arrow batches, without a Python object per value.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A second attempt without Arrow would only print the failure's stack trace and fail again.
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # Recording which line of our code made an expression costs a call to Java per expression.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    if on_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if master.startswith("local"):
        # We name every file; a Spark job that checks whether they exist costs more than checking here.
        settings["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "1000000"
        settings["spark.python.daemon.module"] = "analysis.spark.workers"
        # The collector with the least overhead; pauses do not matter. For small inputs the optimising compiler is off
        # too: it would mostly compile code that runs once.
        java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" if quick else "-XX:+UseParallelGC"
        settings["spark.driver.extraJavaOptions"] = java
    return settings


def on_this_machine(master: str) -> bool:
    """Is this a local master, or a cluster whose master listens on loopback only?"""
    if master.startswith("local"):
        return True
    return urlsplit(master).hostname in {"localhost", "127.0.0.1", "::1"}


def _reason(error: Exception, log: IO[bytes]) -> str:
    """What went wrong, in Java's own words if there are any, and what to do."""
    java = getattr(error, "java_exception", None)
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    said = [str(java.getMessage())] if java is not None else [line for line in lines if _CAUSE.search(line)]
    if not said:
        return "its Java process ended before it was ready, killed or out of memory; try again"
    return f"{said[0].splitlines()[0]}; use e.g. local[*], local[2] or spark://host:7077"
