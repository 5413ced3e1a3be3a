"""Does a cluster have room for us? Spark itself would wait for ever.

A standalone master accepts every application, and lets it wait until a worker has the cores and the memory of an
executor. So before anything else a job of one empty task must begin. If it does not, the error says what is needed and
what the workers have. Both the offer, and whether an executor is only slow to start, are on the master's web page: at
`http://MASTER:8080/json/`, or on another port if SPARK_MASTER_WEBUI_PORT says so. Without it we wait longer.
"""

from __future__ import annotations

import json
import os
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit
from urllib.request import urlopen

from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 15.0  # seconds in which an executor should start; 3 to 5 are usual,
BLIND_PATIENCE = 60.0  # but on a busy machine it takes long, which only the master's page can tell
ANSWER = 2.0  # seconds for a master to answer
TICK = 0.25  # seconds between two looks
SHOWN = 3  # workers named in an error
EXECUTOR_MEMORY = "1g"  # Spark's default


def refuse_unreachable(master: str) -> None:
    """Spark would try for a minute to reach a standalone master that does not exist."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for place in master.removeprefix("spark://").split(","):  # several masters, of which one is active
        try:
            at = urlsplit(f"spark://{place}")
            socket.create_connection((at.hostname or "", at.port or 0), ANSWER).close()
            return
        except (OSError, ValueError) as error:  # a port may be no number
            reasons.append(f"{place}: {error}")
    raise CoverlayError(f"no Spark master answers at {master!r} ({'; '.join(reasons)}); use e.g. spark://host:7077")


def await_executor(spark: SparkSession) -> None:
    """Return when a task has run on the cluster; an error if none begins in time."""
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        probe = pool.submit(spark.range(1).collect)
        while not wait([probe], TICK).done:
            waited = time.monotonic() - began
            if waited > PATIENCE and _is_starved(spark, waited):
                _refuse(spark, probe, waited)
        try:
            probe.result()
        except Exception as error:  # py4j raises many types
            spark.stop()
            why = (str(error) or repr(error)).splitlines()[0]
            raise CoverlayError(f"{spark.sparkContext.master} could not start an executor: {why}") from error


def _is_starved(spark: SparkSession, waited: float) -> bool:
    """Has the master not even given us an executor that is only slow to start?"""
    page = _page(spark.sparkContext.master)
    if not page:
        return waited > BLIND_PATIENCE
    ours = spark.sparkContext.applicationId
    return not any(app["id"] == ours and app["cores"] for app in page.get("activeapps", ()))


def _refuse(spark: SparkSession, probe: Future[Any], waited: float) -> NoReturn:
    context = spark.sparkContext
    master, offer = context.master, _offer(context.master)
    memory = context.getConf().get("spark.executor.memory", EXECUTOR_MEMORY)
    cores = context.getConf().get("spark.executor.cores", "1")
    context.cancelAllJobs()
    with suppress(Exception):  # it was cancelled
        probe.result()
    spark.stop()  # or the cluster would keep us in its queue
    raise CoverlayError(
        f"{master} has not started an executor in {waited:.0f} s: one needs {cores} core{'s' * (cores != '1')} "
        f"and {memory} of memory on one worker, and {offer}"
    )


def _page(master: str) -> dict[str, Any]:
    """The master's page about itself; empty if it cannot be read, or if it is another's."""
    port = os.environ.get("SPARK_MASTER_WEBUI_PORT", "8080")
    for place in master.removeprefix("spark://").split(","):
        address = f"http://{urlsplit(f'//{place}').hostname}:{port}/json/"
        with suppress(OSError, ValueError), urlopen(address, timeout=ANSWER) as answer:
            found: dict[str, Any] = json.load(answer)
            if found.get("url") == f"spark://{place}":
                return found
    return {}


def _offer(master: str) -> str:
    """What the workers of a cluster have left, in words, the largest first."""
    page = _page(master)
    if not page:
        return "what its workers have is on the page of its master (SPARK_MASTER_WEBUI_PORT: its port, if not 8080)"
    alive = [worker for worker in page["workers"] if worker["state"] == "ALIVE"]
    if not alive:
        return "it has no worker"
    free = sorted(((w["memoryfree"], w["memory"], w["coresfree"], w["cores"]) for w in alive), reverse=True)
    listed = [f"{cores} of {of_cores} cores and {memory} of {of} MiB" for memory, of, cores, of_cores in free[:SHOWN]]
    more = [f"less on {len(free) - SHOWN} more"] if len(free) > SHOWN else []
    return f"its workers have left {', '.join([*listed, *more])}"
