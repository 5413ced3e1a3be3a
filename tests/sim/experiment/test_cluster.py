"""A sweep on a real Spark cluster: a master and two workers on loopback, started as docs/cluster.md says."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.spark.java import find_java
from analysis.spark.traces import find_runs
from coverlay import CoverlayError
from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.sweep import SweepOptions, _seen_here, run_sweep
from sim.experiment.toml_text import to_toml

pytestmark = pytest.mark.spark

EXPERIMENT: dict[str, Any] = {
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
COPY = """import routing
from routing.strategies.covering import Covering
@routing.register
class Same(Covering):
    name, sends_to, keeps_ranks = "my-covering", "all", True
"""
WITH_A_PLUG_IN = {
    **EXPERIMENT,
    "plugins": ["mine.py"],
    "case": [*EXPERIMENT["case"], {"routing.strategy": "my-covering"}],
}
PATIENCE = 120  # seconds for a JVM to start on a busy machine
# Of every Java process, executors included: an optimising compiler would mostly compile code that runs once.
SHORT_LIVED = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}


RECIPE = Path(__file__).parents[3] / "docs" / "cluster.md"


@dataclass
class Cluster:
    url: str
    work: Path
    daemons: list[Daemon]

    @property
    def workers_used(self) -> int:
        """Workers on which an application had an executor."""
        return sum(any(worker.glob("app-*")) for worker in self.work.iterdir())

    def executors(self) -> list[int]:
        return [pid for daemon in self.daemons[1:] for pid in daemon.processes() if pid != daemon.process.pid]


def die_with_parent() -> None:
    """Also when these tests are killed with -9, nothing of the cluster is left behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def recipe(pattern: str) -> list[str]:
    """The words of a command of docs/cluster.md; every port is any that is free."""
    (line,) = re.findall(rf"^    (.*{pattern}.*?) *&?$", RECIPE.read_text(encoding="utf-8"), re.MULTILINE)
    return re.sub(r"port \d+", "port 0", line).split()


class Daemon:
    """A Spark daemon in a process group of its own, executors included."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        variable, address = recipe("SPARK_LOCAL_IP")[1].split("=")
        environment = {
            **SHORT_LIVED,
            "JAVA_HOME": str(find_java()),
            "SPARK_HOME": str(home),
            variable: address,
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

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, pattern: str, after: str = "") -> str:
        """What it says that fits the pattern, after what it had said before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = re.search(pattern, self.said[len(after) :])
            if found:
                return found[0]
            assert self.process.poll() is None, f"it ended: {self.said[-2000:]}"
            time.sleep(0.05)
        raise AssertionError(f"no {pattern!r} in {self.said[-2000:]}")

    def processes(self) -> list[int]:
        """The daemon and what it has started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has just ended
                if os.getpgid(int(folder.name)) == self.process.pid:
                    found.append(int(folder.name))
        return found

    def stop(self) -> None:
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, end)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens, as the system tells."""
    found = set()
    with suppress(OSError):  # it has just ended
        links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
        for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == "0A" and f"socket:[{inode}]" in links:
                    words = re.findall("." * 8, local.split(":")[0])
                    found.add(socket.inet_ntop(family, b"".join(bytes.fromhex(word)[::-1] for word in words)))
    return found


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master without workers; its page is where ours looks for it."""
    try:
        find_java()
    except CoverlayError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("cluster")
    daemon = Daemon(folder, "master", *recipe("Master")[1:])
    try:
        url = daemon.wait_for(r"spark://127\.0\.0\.1:\d+")
        SHORT_LIVED["SPARK_MASTER_WEBUI_PORT"] = daemon.wait_for(r"(?<=service 'MasterUI' on port )\d+")
        yield Cluster(url, folder / "work", [daemon])
    finally:
        daemon.stop()


def worker(cluster: Cluster, name: str, memory: str) -> Daemon:
    *command, _ = recipe("Worker")[1:]
    command[command.index("--work-dir") + 1] = str(cluster.work / name)
    (cluster.work / name).mkdir(parents=True)
    size = ["--cores", "1", "--memory", memory, cluster.url]
    started = Daemon(cluster.work.parent, name, *command, *size)
    started.wait_for("Successfully registered with master")
    return started


@pytest.fixture(scope="module")
def cluster(master: Cluster) -> Iterator[Cluster]:
    try:
        for name in ("one", "two"):
            master.daemons.append(worker(master, name, "1g"))
        yield master
    finally:
        for daemon in master.daemons[1:]:
            daemon.stop()


def begun(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """The command in a process of its own: a session cannot change its master."""
    command = [str(Path(sys.executable).with_name("coverlay")), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=SHORT_LIVED, cwd=cwd)


def coverlay(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    process = begun(*arguments, cwd=cwd)
    return completed(process)


def completed(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    try:
        said = process.communicate(timeout=5 * PATIENCE)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def results(out: Path) -> dict[str, pd.DataFrame]:
    names = ("run_metrics", "summary", "differences", "broker_metrics", "link_metrics")
    return {name: pd.read_parquet(out / "results" / f"{name}.parquet") for name in names}


def test_a_cluster_without_a_worker_is_told_in_a_sentence(master, tmp_path):
    """The first test of the file: the workers of the others have not started."""
    done = coverlay("run", str(written(tmp_path, CAPACITY)), "--out", str(tmp_path / "out"), "--spark", master.url)
    assert done.returncode == 2, done.stderr
    said = re.sub(r"\d+ s:", "N s:", done.stderr.splitlines()[-1])
    needed = "one needs 1 core and 1g of memory on one worker, and it has no worker"
    assert said == f"coverlay: {master.url} has not started an executor in N s: {needed}"
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_workers_with_too_little_memory_are_told_in_a_sentence(master, tmp_path):
    small = worker(master, "small", "512m")
    try:
        done = coverlay("run", str(written(tmp_path, CAPACITY)), "--out", str(tmp_path / "out"), "--spark", master.url)
    finally:
        small.stop()
    assert done.returncode == 2
    assert "its workers have left 1 of 1 cores and 512 of 512 MiB" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_ends_the_wait_for_a_cluster_without_a_worker(master, tmp_path, times):
    before = master.daemons[0].said
    waiting = begun("run", str(written(tmp_path, CAPACITY)), "--out", str(tmp_path / "out"), "--spark", master.url)
    master.daemons[0].wait_for(r"Registered app coverlay with ID \S+", before)
    for _ in range(times):
        waiting.send_signal(signal.SIGINT)
        time.sleep(0.5)
    done = completed(waiting)
    assert done.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in done.stderr


def test_a_run_that_was_written_where_this_machine_does_not_read_is_a_failure(tmp_path):
    run = plan({**CAPACITY, "seeds": [1]}).runs[0]
    (outcome,) = run_sweep(plan({**CAPACITY, "seeds": [1]}), tmp_path / "a_worker").outcomes
    assert _seen_here(outcome, run, tmp_path / "a_worker") is outcome
    assert "must be on storage that this machine and all workers see" in str(
        _seen_here(outcome, run, tmp_path / "here")
    )


def written(folder: Path, experiment: dict[str, Any]) -> Path:
    path = folder / "experiment.toml"
    path.write_text(to_toml(experiment))
    return path


def test_python_workers_import_nothing_from_the_folder_they_are_started_in(tmp_path):
    """Local, where the workers' folder is the user's."""
    try:
        find_java()
    except CoverlayError as error:
        pytest.skip(str(error))
    for name in ("analysis", "numpy", "pandas", "sim", "broker", "types"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name}.py of the folder was imported')\n")
    written(tmp_path, {**CAPACITY, "seeds": [1]})
    out = f"file://{tmp_path}/out"  # an address is a folder too
    done = coverlay("run", "experiment.toml", "--out", out, "--spark", "local[1]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").is_file()


def test_runs_are_tasks_and_metrics_are_the_same_to_the_last_digit(cluster, tmp_path):
    """A copy of ours as a plug-in is among them: on the cluster, and here in two processes."""
    (tmp_path / "mine.py").write_text(COPY)
    experiment, out = written(tmp_path, WITH_A_PLUG_IN), tmp_path / "out"
    running = begun("run", str(experiment), "--out", str(out), "--spark", cluster.url)
    addresses: set[str] = set()
    while running.poll() is None and not (out / "results").exists():
        for pid in (running.pid, *(pid for daemon in cluster.daemons for pid in daemon.processes())):
            addresses |= listening(pid)
        time.sleep(0.5)
    done = completed(running)
    assert done.returncode == 2, done.stderr
    assert "8 runs in" in done.stdout
    assert "routing.root is 99" in done.stderr
    assert "3 more runs failed in the same way" in done.stderr
    assert "repeat it with: coverlay run" in done.stderr
    assert cluster.workers_used == 2
    assert {address.removeprefix("::ffff:") for address in addresses} <= {"127.0.0.1", "::1"}, "nobody else can connect"
    assert addresses
    assert (out / "report.html").is_file()
    # The executors wrote the same traces into the shared folder as this machine would have.
    here = run_sweep(plan(WITH_A_PLUG_IN, folder=tmp_path), tmp_path / "here", SweepOptions(jobs=2))
    assert len(here.failures) == 4
    hashes = {run.name: run.record["trace_hash"] for run in find_runs(out).runs}
    by_point = {json.dumps([run.point, run.record["seed"]]): hashes[run.name] for run in find_runs(out).runs}
    copies = [point for point in by_point if "my-covering" in point]
    assert len(copies) == 4
    assert all(by_point[copy] == by_point[copy.replace("my-covering", "covering")] for copy in copies)
    assert hashes == {outcome.run_id: outcome.record["trace_hash"] for outcome in here.outcomes}

    clustered = results(out)
    assert clustered["run_metrics"].notna().any().loc[["latency_p95", "waiting_mean", "topk_overlap", "recall"]].all()
    assert main(["analyze", str(out), "--master", "local[2]"]) == 0
    same(clustered, results(out))


@pytest.mark.slow
def test_an_executor_that_is_killed_takes_no_run_with_it(cluster, tmp_path):
    experiment = written(tmp_path, {**CAPACITY, "seeds": list(range(1, 13))})
    running = begun("run", str(experiment), "--out", str(tmp_path / "out"), "--spark", cluster.url)
    while running.poll() is None and not list((tmp_path / "out" / "runs").glob("run=*")):
        time.sleep(0.1)
    for pid in cluster.executors():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    done = completed(running)
    assert done.returncode == 0, done.stderr
    assert len(find_runs(tmp_path / "out").runs) == 12


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
