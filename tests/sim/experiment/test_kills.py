"""kill -9 before and after every operation on files, and in the middle of writing: the same bytes once it is repeated.

Each step of a command (simulation, bounds, results, report) is done in a child process that ends at the n-th operation,
for every n until it gets through; after each death the step is repeated as `--resume` would. The slow test does the
same to the whole command.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import aggregate
from analysis.report.page import write_report
from analysis.report.summary import load
from analysis.spark.traces import find_runs
from sim.cli.main import main
from sim.experiment.folder_lock import LOCK
from sim.experiment.plan import plan
from sim.experiment.sweep import SweepOptions, run_sweep
from sim.experiment.toml_text import to_toml
from sim.tell.study_bounds import write_bounds
from tests.sim.experiment import kill_hook

EXPERIMENT = {
    "name": "killed",
    "seeds": [1, 2],
    "overlay": {"kind": "line", "brokers": 3},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 20, "events": 5},
    "covering": {"method": "zorder"},
}
STUDY = {**EXPERIMENT, "seeds": [1], "sweep": {"covering.epsilon": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]}}
Step = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    began = time.gmtime(0)  # as in kill_hook
    monkeypatch.setattr(time, "gmtime", lambda *_: began)


def contents(out: Path) -> dict[str, bytes]:
    files = (path for path in out.rglob("*") if path.is_file() and path.name != LOCK)
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def inside(files: dict[str, bytes], folder: str) -> dict[str, bytes]:
    return {name: found for name, found in files.items() if str(Path(name).parent) == folder}


def dies(step: Step, out: Path, prepare: Callable[[], None]) -> bool:
    """Do a step in a child that `prepare` makes mortal. A child that fails in any other way is an error."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            prepare()
            step(out)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WIFSIGNALED(status), "the step failed"
    return status != 0


def killed_everywhere(step: Step, before: Path, tmp_path: Path, every: int = 1) -> int:
    """Kill a step at every operation in turn, resume it, compare; returns how many operations there are."""
    whole = tmp_path / "whole"
    shutil.copytree(before, whole, dirs_exist_ok=True)
    step(whole)
    expected, old = contents(whole), contents(before)
    number = 1
    while True:
        out = tmp_path / str(number)
        shutil.copytree(before, out)
        died = dies(step, out, lambda: kill_hook.die_before(number, str(tmp_path)))  # noqa: B023
        now = {name: found for name, found in contents(out).items() if "/." not in f"/{name}"}
        for name, found in now.items():  # what has its name is as it was or as it will be
            assert found in (old.get(name), expected.get(name)), (number, name)
        for folder in {str(Path(name).parent) for name in now} - {"."}:  # and no folder is half of each
            assert inside(now, folder) in (inside(old, folder), inside(expected, folder)), (number, folder)
        step(out)
        assert contents(out) == expected, number
        shutil.rmtree(out)
        if not died:
            return number - 1
        number += every


def killed_while_writing(step: Step, before: Path, tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """The system kills a process in the middle of a file that grows beyond a limit, if it is not asked otherwise."""
    for size in sizes:

        def prepare(size: int = size) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        out = tmp_path / f"size-{size}"
        shutil.copytree(before, out)
        assert dies(step, out, prepare)
        step(out)
        assert contents(out) == contents(tmp_path / "whole"), size


def simulated(out: Path) -> None:
    run_sweep(plan(EXPERIMENT), out, SweepOptions(resume=True))


@pytest.fixture
def empty(tmp_path) -> Path:
    (tmp_path / "before").mkdir()
    return tmp_path / "before"


def test_kills_in_the_simulation(empty, tmp_path):
    operations = killed_everywhere(simulated, empty, tmp_path, every=11)
    assert operations > 40, "two runs of eleven tables each, and what is around them"
    killed_while_writing(simulated, empty, tmp_path, (10, 1000, 3000))
    assert len(find_runs(tmp_path / "whole").runs) == 2


@pytest.mark.slow
def test_kills_at_every_operation_of_the_simulation(empty, tmp_path):
    killed_everywhere(simulated, empty, tmp_path)


def test_kills_where_an_earlier_run_is_replaced(tmp_path):
    """Without --resume: the folder has the earlier run, none, or the later one, and both are the same run."""
    before = tmp_path / "before"
    run_sweep(plan(EXPERIMENT), before)

    def again(out: Path) -> None:
        run_sweep(plan(EXPERIMENT), out)

    assert killed_everywhere(again, before, tmp_path, every=13) > 40


def test_kills_while_the_bounds_are_written(empty, tmp_path):
    assert killed_everywhere(lambda out: write_bounds(plan(STUDY), out), empty, tmp_path) >= 2
    assert (tmp_path / "whole" / "bounds.json").exists()


@pytest.mark.spark
def test_kills_while_results_and_report_are_written(analysed, tmp_path):
    """Both are there already, from an earlier analysis that said something else."""
    before = tmp_path / "before"
    shutil.copytree(analysed, before)
    summary = load(analysed)
    notes = before / "results" / "notes.json"
    notes.write_text('{"warnings": ["an earlier analysis"]}')
    for csv in notes.parent.glob("*.csv"):
        csv.write_text("an earlier analysis")
    write_report(before)

    def results(out: Path) -> None:
        object.__setattr__(summary, "out", out)
        aggregate._write(summary, find_runs(analysed))

    (tmp_path / "results").mkdir()
    assert killed_everywhere(results, before, tmp_path / "results") > 2 * 6, "a folder of two files per frame"
    killed_while_writing(results, before, tmp_path / "results", (100, 3000))
    newer = tmp_path / "results" / "whole"
    (tmp_path / "report").mkdir()
    assert killed_everywhere(write_report, newer, tmp_path / "report") >= 2
    killed_while_writing(write_report, newer, tmp_path / "report", (10_000,))


@pytest.mark.slow
@pytest.mark.spark
def test_kills_at_every_operation_of_the_command(tmp_path):
    experiment, hook = tmp_path / "killed.toml", tmp_path / "hook"
    experiment.write_text(to_toml(EXPERIMENT))
    hook.mkdir()
    shutil.copy(kill_hook.__file__, hook / "sitecustomize.py")
    whole, out = tmp_path / "whole", tmp_path / "out"
    run = ["run", str(experiment), "--jobs", "1", "--out"]
    assert main([*run, str(whole)]) == 0
    number, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        number += 1
        shutil.rmtree(out, ignore_errors=True)
        path = os.pathsep.join([str(hook), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "KILL_BEFORE": str(number), "KILL_BELOW": str(out)}
        done = subprocess.run(
            [sys.executable, "-m", "sim.cli.main", *run, str(out)], env=environment, capture_output=True
        )
        status = done.returncode
        assert status in (0, -signal.SIGKILL), done.stderr.decode()
        assert main([*run, str(out), "--resume"]) == 0
        found, expected = contents(out), contents(whole)
        assert found.keys() == expected.keys(), number
        assert not [name for name in found if found[name] != expected[name]], number
    assert number > 60
