"""A sweep that is killed, at whatever point, and resumed ends as if nothing had happened."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from analysis.spark import session
from analysis.spark.traces import find_runs
from broker.trace.schema import MUST_BE_ZERO
from coverlay import CoverlayError
from sim import notebook
from sim.cli import verbs
from sim.cli.main import main
from sim.experiment import sweep as sweeping
from sim.experiment.plan import load, plan
from sim.experiment.runner import Outcome
from sim.experiment.sweep import DIED, Failure, SweepOptions, run_sweep
from sim.experiment.toml_text import to_toml

TINY = {
    "name": "tiny",
    "overlay": {"kind": "line", "brokers": 4},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 30, "events": 10},
}
SWEPT = {"covering.epsilon": [0.0, 0.1], "routing.strategy": ["covering", "hierarchical"]}
SWEEP = {**TINY, "seeds": [1, 2, 3], "covering": {"method": "zorder-emulated"}, "sweep": SWEPT}


def complete(out: Path) -> dict[str, int]:
    """The runs that are there under their names, with when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "runs").glob("run=*")}


def start(experiment: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sim.cli.main", "run", str(experiment), "--out", str(out), "--jobs", "2", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def wait_until(process: subprocess.Popen[bytes], moment) -> None:
    deadline = time.monotonic() + 120
    while not moment():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline, "the moment to kill never came"
        time.sleep(0.002)


def kill_when(process: subprocess.Popen[bytes], moment, group: bool = True) -> None:
    """kill -9, to all its processes or to the first one only, as soon as `moment()` has come."""
    wait_until(process, moment)
    (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.spark
def test_kill_9_at_several_points_then_resume(tmp_path):
    experiment, out = tmp_path / "sweep.toml", tmp_path / "killed"
    experiment.write_text(to_toml(SWEEP))
    total = len(plan(SWEEP).runs)
    moments = [
        (True, lambda: any((out / "runs").glob(".run=*"))),  # while one is being written
        (False, lambda: len(complete(out)) >= 2),  # only the main process: its workers must notice
        (True, lambda: len(complete(out)) >= 6),
    ]
    for number, (group, moment) in enumerate(moments):
        before = complete(out)
        process = start(experiment, out, *(["--resume"] if number else []))
        kill_when(process, moment, group)
        after = complete(out)
        assert len(after) < total
        assert before.items() <= after.items(), "a run that was complete was touched"
        if after:
            found = find_runs(out)
            assert len(found.runs) == len(after)
            assert found.warnings == ()
        if not group:
            _wait_for_orphans(process.pid)
    before = complete(out)
    assert main(["run", str(experiment), "--out", str(out), "--resume", "--jobs", "2"]) == 0
    after = complete(out)
    assert len(after) == total
    assert before.items() <= after.items()
    assert not list((out / "runs").glob(".*")), "what was half written is still there"

    whole = tmp_path / "whole"
    assert main(["run", str(experiment), "--out", str(whole), "--jobs", "2"]) == 0
    runs = [{run.name: run.record["trace_hash"] for run in find_runs(folder).runs} for folder in (out, whole)]
    assert runs[0] == runs[1]
    frames = [pd.read_parquet(folder / "results" / "run_metrics.parquet") for folder in (out, whole)]
    columns = [name for name in frames[0].columns if name not in {"wall_seconds", "made"}]
    pd.testing.assert_frame_equal(frames[0][columns], frames[1][columns], check_exact=True)
    assert (out / "experiment.toml").read_bytes() == (whole / "experiment.toml").read_bytes()


def _wait_for_orphans(group: int) -> None:
    """Workers notice within a second that nobody waits for them any more."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("workers outlived the sweep that started them")


def test_half_a_run_is_run_again(tmp_path):
    sweep = plan({**TINY, "seeds": [1, 2, 3]})
    run_sweep(sweep, tmp_path)
    broken = sorted(complete(tmp_path))
    (tmp_path / "runs" / broken[0] / "decisions.parquet").unlink()
    path = tmp_path / "runs" / broken[1] / "control.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    again = run_sweep(sweep, tmp_path, SweepOptions(resume=True))
    assert again.kept == 1
    assert sorted(f"run={outcome.run_id}" for outcome in again.outcomes) == broken[:2]
    assert len(find_runs(tmp_path).runs) == 3


def test_two_sweeps_do_not_write_to_one_folder(tmp_path):
    seen = []

    def second(done: int, total: int) -> None:
        with pytest.raises(CoverlayError, match="another coverlay is writing"):
            run_sweep(plan(TINY), tmp_path)
        seen.append(done)

    run_sweep(plan(TINY), tmp_path, SweepOptions(progress=second))
    assert (seen[0], seen[-1]) == (0, 1)
    assert run_sweep(plan(TINY), tmp_path, SweepOptions(resume=True)).kept == 1


@pytest.mark.parametrize("command", ["run", "capacity", "notebook"])
def test_the_folder_is_locked_until_results_and_page_are_written(command, tmp_path, monkeypatch):
    experiment, out, refused = tmp_path / "tiny.toml", tmp_path / "out", []
    experiment.write_text(to_toml({**TINY, "broker": {"service": {"kind": "constant", "value": 0.5}}}))

    def last(*_) -> None:
        with pytest.raises(CoverlayError, match="another coverlay is writing"):
            run_sweep(load(str(out / "experiment.toml")), out)
        refused.append(command)

    monkeypatch.setattr(session, "start_early", lambda master: None)
    monkeypatch.setattr(verbs, "_aggregate", lambda *_: None)
    monkeypatch.setattr(verbs, "report", last)
    monkeypatch.setattr(notebook, "analyze", lambda *_: None)
    monkeypatch.setattr(notebook.Results, "of", lambda summary: summary)
    monkeypatch.setattr(notebook, "write_report", last)
    limit = ["--p99", "500", "--set", "workload.events=100"] if command == "capacity" else []
    if command == "notebook":
        notebook.run(experiment, out=out, jobs=1, progress=False)
    else:
        assert main([command, str(experiment), "--out", str(out), "--jobs", "1", *limit]) == 0
    assert refused == [command]
    run_sweep(load(str(out / "experiment.toml")), out, SweepOptions(resume=True))


TERMINATED = """
import sys
from analysis.spark import session
from sim.cli.main import main

session.start_early = lambda master: None  # Java has no part in this
sys.exit(main(sys.argv[1:]))
"""


def test_sigterm_ends_a_sweep_at_once_with_a_sentence(tmp_path):
    """As `kill` and `timeout` send it: to the process that was started, not to those that it started."""
    experiment, out = tmp_path / "long.toml", tmp_path / "out"
    sizes = {"workload.subscriptions": [10, 50_000]}  # the first is finished when the second has hardly begun
    experiment.write_text(to_toml({**TINY, "run": {"engine": "simpy"}, "sweep": sizes}))
    words = ["run", str(experiment), "--out", str(out), "--jobs", "2"]
    command = [sys.executable, "-c", TERMINATED, *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(process, lambda: complete(out))
    process.terminate()
    said = process.communicate(timeout=120)[1].decode().splitlines()
    assert (process.returncode, len(complete(out))) == (143, 1)
    assert said[-1] == "coverlay: stopped; finished runs are kept, --resume goes on from there"
    assert not list((out / "runs").glob(".*")), "what was half written is still there"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def deadly_execute(run, out, tell):
    if run.seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out
    return Outcome(run.run_id, dict.fromkeys(MUST_BE_ZERO, 0), ())


def test_a_run_that_takes_its_process_down_is_the_only_one_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "execute", deadly_execute)
    result = run_sweep(plan({**TINY, "seeds": list(range(10))}), tmp_path, SweepOptions(jobs=2))
    assert len(result.outcomes) == 9
    (failure,) = result.failures
    assert failure.run.seed == 3
    assert failure.message == DIED


@pytest.mark.parametrize("setting", [[], ["workload.events=3", 'sweep."covering.epsilon"=[0.2, 0.3]']])
def test_the_command_that_repeats_a_run_repeats_exactly_that_run(tmp_path, setting):
    experiment = tmp_path / "my sweep.toml"
    experiment.write_text(to_toml({**SWEEP, "case": [{"routing.mode": "lazy"}, {"routing.mode": "active"}]}))
    runs = load(str(experiment), setting).runs
    assert len(runs) == 24
    for run in runs[::5]:
        words = shlex.split(Failure(run, "because", is_input=True).repeat_command(str(experiment), setting))
        assert words[:3] == ["coverlay", "run", str(experiment)]
        again = load(words[2], [b for a, b in itertools.pairwise(words) if a == "--set"]).runs
        assert [r.run_id for r in again] == [run.run_id]


def test_a_failed_run_is_reported_with_parameters_and_command(tmp_path, capsys):
    experiment = tmp_path / "roots.toml"
    experiment.write_text(to_toml({**TINY, "routing": {"strategy": "hierarchical"}, "sweep": {"routing.root": [8, 9]}}))
    assert main(["run", str(experiment), "--out", str(tmp_path / "out"), "--set", "workload.events=3"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "routing.root = 8: routing.root is 8" in said
    assert "--set workload.events=3 --set 'seeds=[1]'" in said
    assert 'case=[{ "routing.root" = 8 }]' in said
