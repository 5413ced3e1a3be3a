"""The one Spark of a process, started when it is first needed.

`session(master)` is what `SparkSession.builder.config(…).getOrCreate()` returns. What is done besides, and why:

- Java is looked for first, so that a machine without it gets a sentence, not a stack trace.
- What the Java process prints while it starts is written to a scratch file, whose end is quoted if the start fails.
- Python workers, which only simulations on a cluster have, use the Python that runs us, and import nothing from the
  folder that they happen to be started in.
- A Spark on this machine binds to loopback, so it cannot be reached from outside.
- A cluster must show that it has room for us (cluster.py).

A Spark that the user has started in this process is used as it is. Starting takes 5 to 10 seconds; `start_early` does
it in the background.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from analysis.spark.cluster import await_executor, refuse_unreachable
from analysis.spark.java import find_java
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
DYING = 1.0  # seconds that a Java process may take to disappear after its connections broke
DRIVER_MEMORY = "2g"  # a ceiling, not a reservation; local tasks run inside the driver
MOST_SHUFFLE_PARTITIONS = 64
_CAUSE = re.compile(r"Exception\b|Error:|Error occurred")  # in what a Java process says before it gives up

# One thread, so that there is one Spark. Not the main thread: there pyspark would put its own handler of Ctrl-C in the
# place of ours. Python waits for this thread before it ends, so no Java process is left behind half started.
_starter = ThreadPoolExecutor(1, "spark")
_java: subprocess.Popen[bytes] | None = None  # the process behind our Spark, stopped sessions included
_ours: SparkSession | None = None


def session(master: str | None = None, quick: bool = False, memory: str = DRIVER_MEMORY) -> SparkSession:
    """Spark on `master`; if none is given, the running Spark, else a new one on all cores of this machine.

    Asking for a master other than the running one stops the running Spark. `quick` is for small inputs: Java starts
    sooner but is slower on large ones.
    """
    start = _starter.submit(_session, master, quick, memory)
    try:
        return start.result()
    except KeyboardInterrupt:
        if _java is not None and not start.done():  # it may wait for a cluster that never answers
            _java.kill()
        raise


def start_early(master: str | None = None) -> None:
    """Begin to start Spark for small inputs in the background; the next call of `session` waits for it.

    If the start fails, that call tries again and raises the error. Do not call this just before a fork: the child would
    hold the pipes of the launch.
    """
    _starter.submit(_session, master, True, DRIVER_MEMORY)


def stop() -> None:
    """Stop the running Spark, if there is one."""
    running = _running()
    if running is not None:
        running.stop()


def lost(patience: float = DYING) -> bool:
    """Has the Java process behind our Spark ended?"""
    if _java is None:
        return False
    try:
        _java.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def java_process() -> int:
    """The number of the Java process behind our Spark, for who measures what it takes."""
    if _java is None:
        raise CoverlayError("no Spark of ours is running")
    return _java.pid


def on_this_machine(master: str) -> bool:
    """Is this a local master, or a cluster whose master listens on loopback only?"""
    return master.startswith("local") or urlsplit(master).hostname in {"localhost", "127.0.0.1", "::1"}


def _session(master: str | None, quick: bool, memory: str) -> SparkSession:
    running = _running()
    if running is not None:
        if master is None or running.sparkContext.master == master:
            return running
        running.stop()
    return _started(master or LOCAL_MASTER, quick, memory)


def _running() -> SparkSession | None:
    """The Spark of this process, the user's own included; one that cannot be used any more is put away."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    if lost(patience=0):
        _forget()
    try:
        found: SparkSession = SparkSession.active()
    except PySparkRuntimeError:  # there is none
        return None
    try:
        found.sparkContext.defaultParallelism  # noqa: B018  (refused by a Spark that was stopped, here or by its cluster)
    except Exception:  # py4j raises many types
        with suppress(Exception):
            found.stop()
        return None
    return found


def _forget() -> None:
    """Let another Java process start after ours has ended.

    pyspark keeps the connection to the first Java process of a Python process for ever, and offers no public way to ask
    for it or to drop it: without these two private names a notebook would have to be restarted.
    """
    global _java, _ours
    from pyspark import SparkContext

    if _ours is not None:
        with warnings.catch_warnings(action="ignore"), suppress(Exception):  # it finds nobody to talk to,
            _ours.sparkContext.stop()
        _ours.sparkContext.stop()  # which it then knows: this time it puts its own things away
    SparkContext._gateway = SparkContext._jvm = None
    _java = _ours = None


def _started(master: str, quick: bool, memory: str) -> SparkSession:
    global _ours
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    refuse_unreachable(master)
    conf = SparkConf(loadDefaults=False).setAll(list(_settings(master, quick, memory).items()))
    with tempfile.TemporaryFile() as log:
        try:
            _connect(conf, log)
            _ours = started = SparkSession.builder.getOrCreate()
        except Exception as error:  # py4j raises many types; each means that Spark did not start
            raise CoverlayError(f"Spark did not start on master {master!r}: {_reason(error, log)}") from error
    if not master.startswith("local"):
        await_executor(started)
    # The default of 200 tasks per shuffle costs seconds and buys nothing here.
    partitions = max(2, min(started.sparkContext.defaultParallelism, MOST_SHUFFLE_PARTITIONS))
    started.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return started


def _connect(conf: SparkConf, log: IO[bytes]) -> None:
    """Start Java if this process has none, and Spark in it.

    The builder would do both, but offers no place for what Java prints before it reads any log level: some lines come
    from the launcher and from Java itself, and they alone say why a start failed.
    """
    global _java
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway = None
    if SparkContext._gateway is None:  # else Java runs already; a second one would not be used
        gateway = launch_gateway(conf, popen_kwargs={"stderr": log})
        _java = gateway.proc
    SparkContext(conf=conf, gateway=gateway).setLogLevel("ERROR")


def _settings(master: str, quick: bool, memory: str) -> dict[str, str]:
    settings = {
        "spark.master": master,
        "spark.app.name": "coverlay",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        # Workers are started with `python -m`, which would import an analysis.py or numpy.py of the folder they are in.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        # Plans are small and known; looking at them again after every stage costs more than it finds.
        "spark.sql.adaptive.enabled": "false",
        # One aggregation makes more classes than the 100 that are kept otherwise; the next would compile them again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Aggregates reach pandas as Arrow batches, without a Python object per value.
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
        # The collector with the least overhead; pauses do not matter. For small inputs the optimising compiler is off
        # too: it would mostly compile code that runs once.
        java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" if quick else "-XX:+UseParallelGC"
        # Java keeps little room for compiled code if one of its compilers is off, and compiles no more once it is full.
        settings["spark.driver.extraJavaOptions"] = f"{java} -XX:ReservedCodeCacheSize=240m"
    return settings


def _reason(error: Exception, log: IO[bytes]) -> str:
    """What went wrong, in Java's own words if there are any, and what to do."""
    java = getattr(error, "java_exception", None)
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    said = [str(java.getMessage())] if java is not None else [line for line in lines if _CAUSE.search(line)]
    if not said:
        return "its Java process ended before it was ready, killed or out of memory; try again"
    return f"{said[0].splitlines()[0]}; use e.g. local[*], local[2] or spark://host:7077"
