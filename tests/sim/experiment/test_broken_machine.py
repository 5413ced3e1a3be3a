"""A disk that is full, a Java process that is killed, Ctrl-C: a sentence, nothing lost, and the way to go on."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analysis import aggregate
from analysis.report.page import write_report
from analysis.report.summary import load
from analysis.spark.traces import find_runs
from broker.trace import recorder as recording
from broker.trace.disk import CannotWrite
from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.experiment.sweep import SweepOptions, run_sweep
from sim.experiment.toml_text import to_toml

TINY = {
    "name": "tiny",
    "seeds": [1, 2],
    "overlay": {"kind": "line", "brokers": 4},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 30, "events": 10},
}
PATIENCE = 240  # seconds for a process that starts Spark on a busy machine


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """As on a full disk, writing fails in the middle of a file; the system's reason is another one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_ends_the_sweep_and_keeps_what_is_finished(tmp_path, jobs):
    both = plan(TINY)
    run_sweep(plan({**TINY, "seeds": [1]}), tmp_path)
    before = contents(tmp_path / "runs")
    with no_file_beyond(1000), pytest.raises(CannotWrite, match=r"be written: File too large; finished runs are kept"):
        run_sweep(plan({**TINY, "seeds": [1, 2, 3]}), tmp_path, SweepOptions(jobs=jobs, resume=True))
    assert contents(tmp_path / "runs") == before
    again = run_sweep(both, tmp_path, SweepOptions(resume=True))
    assert (again.kept, len(again.outcomes)) == (1, 1)


def test_no_room_for_temporary_files_is_said(monkeypatch):
    for name in ("BATCH_ROWS", "CHECK_STEPS", "SPILL_BYTES"):
        monkeypatch.setattr(recording, name, 5)
    with no_file_beyond(0), pytest.raises(CannotWrite, match=r"temporary files in .* TMPDIR"):
        simulate(plan({**TINY, "run": {"engine": "simpy"}}).runs[0])


def test_the_command_says_it_in_one_line(tmp_path, capsys):
    experiment = tmp_path / "tiny.toml"
    experiment.write_text(to_toml(TINY))
    run_sweep(plan(TINY), tmp_path / "compile")
    with no_file_beyond(1000):
        assert main(["run", str(experiment), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 2
    coming = (
        "2 runs,",
        "the first is predicted",
        "predicted time",
        "simulating",
        "note: latencies contain no processing",
    )
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(coming)]
    assert len(said) == 1
    assert said[0].endswith("no run was finished: allow larger files (ulimit -f)")


@pytest.mark.spark
def test_results_and_report_are_old_or_new_and_never_half(analysed, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(analysed, out)
    write_report(out)
    before, summary = contents(out), load(out)
    for write, again in (
        (lambda: aggregate._write(summary, find_runs(analysed)), "analyze"),
        (lambda: write_report(out), "report"),
    ):
        with no_file_beyond(4000), pytest.raises(CannotWrite, match=f"larger files .* and repeat `coverlay {again} "):
            write()
        assert contents(out) == before


# What happens to the process in the middle of the aggregation, one after the other in one process.
SCENES = """
import os, signal, sys, time
from analysis import aggregate
from analysis.spark import session
from sim.cli.main import main

normal = aggregate.aggregated

def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

def terminated(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

def java_killed(*arguments):
    os.kill(session._java.pid, signal.SIGKILL)
    return normal(*arguments)

for scene in (interrupted, terminated, java_killed, normal):
    aggregate.aggregated = scene
    status = main(["analyze", sys.argv[1]])
    print(f"{scene.__name__}: {status}", file=sys.stderr)
"""


@pytest.mark.spark
def test_ctrl_c_and_a_killed_java_during_the_aggregation(analysed):
    before = contents(analysed)
    done = subprocess.run(
        [sys.executable, "-c", SCENES, str(analysed)], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("note:", "aggregating"))]
    assert lines == [
        "coverlay: stopped; nothing was changed",
        "interrupted: 130",
        "coverlay: stopped; nothing was changed",
        "terminated: 143",
        "coverlay: Spark's Java process ended in the middle of the aggregation, killed or out of memory; "
        f"the traces are kept: `coverlay analyze {analysed}` starts over",
        "java_killed: 2",
        "aggregated: 0",
    ]
    assert contents(analysed) == before


@pytest.mark.spark
@pytest.mark.parametrize(
    ("interrupt", "status", "said"),
    [
        (True, 130, "coverlay: stopped; nothing was changed\n"),
        (False, 2, "its Java process ended before it was ready, killed or out of memory; try again\n"),
    ],
)
def test_ctrl_c_and_a_killed_java_while_spark_starts(analysed, interrupt, status, said):
    """The Java process is a child that inherits our pipes: they would stay open if it were left behind."""
    command = [sys.executable, "-m", "sim.cli.main", "analyze", str(analysed)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    java = _java_of(process)
    if interrupt:
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(java, signal.SIGKILL)
    try:
        shown, _ = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == status
    assert shown.endswith(said)
    assert sum(not line.startswith("aggregating") for line in shown.splitlines()) == 1


def _java_of(process: subprocess.Popen[str]) -> int:
    """The number of the Java process that this one has started for Spark; another only tells its version."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        command = ["ps", "-A", "-ww", "-o", "sess=,pid=,args="]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for session, number, words in (line.split(None, 2) for line in listed.splitlines()):
            if int(session) == process.pid and "/bin/java" in words and "org.apache.spark" in words:
                return int(number)
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError("no Java process was started")
