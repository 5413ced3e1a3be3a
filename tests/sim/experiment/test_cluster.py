"""A sweep on a real Spark cluster: a master and two workers on loopback, started and stopped here."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from analysis.spark.java import find_java
from analysis.spark.traces import find_runs
from coverlay import CoverlayError
from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.sweep import run_sweep
from sim.experiment.toml_text import to_toml

pytestmark = pytest.mark.spark

EXPERIMENT = {
    "name": "clustered",
    "seeds": [1, 2],
    "overlay": {"kind": "random-tree", "brokers": 8},
    "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 150, "events": 60},
    "arrivals": {"kind": "churn", "lifetime": 80.0},
    "broker": {"service": {"kind": "constant", "value": 0.2}},
    "matching": {"k": 3},
    "covering": {"method": "zorder-emulated"},
    "sweep": {"covering.epsilon": [0.0, 0.3]},
    "case": [  # there is no broker 99: the second case fails
        {"routing.strategy": "covering"},
        {"routing.strategy": "hierarchical", "routing.root": 99},
    ],
}
CAPACITY = {
    "name": "tiny",
    "seeds": [1, 2],
    "overlay": {"kind": "line", "brokers": 3, "latency": {"kind": "constant", "value": 2.0}},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 20},
    "arrivals": {"kind": "preloaded"},
    "broker": {"service": {"kind": "constant", "value": 0.5}},
}
PATIENCE = 120  # seconds for a JVM to start on a busy machine
# Of every Java process, executors included: an optimising compiler would mostly compile code that runs once.
SHORT_LIVED = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


@dataclass
class Cluster:
    url: str
    work: Path

    @property
    def workers_used(self) -> int:
        """Workers on which an application had an executor."""
        return sum(any(worker.glob("app-*")) for worker in self.work.iterdir())


def die_with_parent() -> None:
    """Also when these tests are killed with -9, nothing of the cluster is left behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Daemon:
    """A Spark daemon in a process group of its own, executors included."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = {
            **SHORT_LIVED,
            "JAVA_HOME": str(find_java()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=folder,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def wait_for(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            if found:
                return found[0]
            assert self.process.poll() is None, f"it ended: {self.log.read_text(errors='replace')[-2000:]}"
            time.sleep(0.05)
        raise AssertionError(f"no {pattern!r} in {self.log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, end)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        find_java()
    except CoverlayError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("cluster")
    work = folder / "work"
    free = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]  # port 0: any that is free
    daemons = [Daemon(folder, "master", "org.apache.spark.deploy.master.Master", *free)]
    try:
        url = daemons[0].wait_for(r"spark://127\.0\.0\.1:\d+")
        for name in ("one", "two"):
            (work / name).mkdir(parents=True)
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(work / name)]
            daemons.append(Daemon(folder, name, "org.apache.spark.deploy.worker.Worker", *free, *size, url))
        for worker in daemons[1:]:
            worker.wait_for("Successfully registered with master")
        yield Cluster(url, work)
    finally:
        for daemon in reversed(daemons):
            daemon.stop()


def coverlay(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: a session cannot change its master."""
    command = [sys.executable, "-m", "sim.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=5 * PATIENCE, check=False, env=SHORT_LIVED)


def results(out: Path) -> dict[str, pd.DataFrame]:
    names = ("run_metrics", "summary", "differences", "broker_metrics", "link_metrics")
    return {name: pd.read_parquet(out / "results" / f"{name}.parquet") for name in names}


def test_runs_are_tasks_and_metrics_are_the_same_to_the_last_digit(cluster, tmp_path):
    experiment, out = tmp_path / "clustered.toml", tmp_path / "out"
    experiment.write_text(to_toml(EXPERIMENT))
    done = coverlay("run", str(experiment), "--out", str(out), "--spark", cluster.url)
    assert done.returncode == 2, done.stderr
    assert "4 runs in" in done.stdout
    assert "routing.root is 99" in done.stderr
    assert "3 more runs failed in the same way" in done.stderr
    assert "repeat it with: coverlay run" in done.stderr
    assert cluster.workers_used == 2
    assert (out / "report.html").is_file()
    # The executors wrote the same traces into the shared folder as this machine would have.
    here = run_sweep(plan(EXPERIMENT), tmp_path / "here")
    assert len(here.failures) == 4
    hashes = {run.name: run.record["trace_hash"] for run in find_runs(out).runs}
    assert hashes == {outcome.run_id: outcome.record["trace_hash"] for outcome in here.outcomes}

    clustered = results(out)
    assert clustered["run_metrics"].notna().any().loc[["latency_p95", "waiting_mean", "topk_overlap", "recall"]].all()
    assert main(["analyze", str(out), "--master", "local[2]"]) == 0
    same(clustered, results(out))


@pytest.mark.slow
def test_a_folder_is_analysed_on_the_cluster_as_it_is_here(cluster, tmp_path):
    """The aggregation after a sweep, above, is the same code: what this adds is the verb."""
    run_sweep(plan(EXPERIMENT), tmp_path)
    assert main(["analyze", str(tmp_path), "--master", "local[2]"]) == 0
    here = results(tmp_path)
    assert coverlay("analyze", str(tmp_path), "--master", cluster.url).returncode == 0
    same(here, results(tmp_path))


@pytest.mark.slow
def test_a_capacity_search_asks_for_the_same_rates_on_the_cluster_and_here(cluster, tmp_path):
    """Each round of rates is a sweep of its own: the session of the first has to serve them all."""
    experiment = tmp_path / "tiny.toml"
    experiment.write_text(to_toml(CAPACITY))
    answers = {}
    for name, options in (("cluster", ["--spark", cluster.url]), ("here", ["--jobs", "1"])):
        out = tmp_path / name
        done = coverlay("capacity", str(experiment), "--p99", "20", "--out", str(out), *options)
        assert done.returncode == 0, done.stderr
        held = json.loads((out / "told.json").read_text())["held"]
        answers[name] = held, {run.name: run.record["trace_hash"] for run in find_runs(out).runs}
    assert answers["cluster"] == answers["here"]
    assert len(answers["here"][1]) > 2 * 3, "several rounds, each with both seeds"
    assert "are held" in str(answers["here"][0])
    same(*({name: without_clock(frame) for name, frame in results(tmp_path / made).items()} for made in answers))


def without_clock(frame: pd.DataFrame) -> pd.DataFrame:
    """Two searches are made at two times."""
    kept = frame[frame["metric"] != "wall_seconds"].reset_index(drop=True) if "metric" in frame else frame
    return kept.drop(columns=["made", "wall_seconds"], errors="ignore")


def same(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> None:
    for name, frame in one.items():
        pd.testing.assert_frame_equal(frame, other[name], check_exact=True, obj=name)
