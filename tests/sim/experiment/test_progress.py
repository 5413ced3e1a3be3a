"""Progress moves within runs, of both engines and in all processes, and changes nothing about them."""

from __future__ import annotations

import time

import pytest

from sim.cli import terminal
from sim.experiment import sweep
from sim.experiment.plan import plan
from sim.experiment.predict import coming
from sim.experiment.runner import simulate
from sim.experiment.sweep import SweepOptions, run_sweep

DATA = {
    "name": "p",
    "seeds": [1, 2],
    "overlay": {"brokers": 6},
    "workload": {"kind": "uniform", "subscriptions": 60, "events": 30},
}


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_shares_of_simulated_time_rise_and_leave_the_trace_as_it_is(engine):
    run = plan({**DATA, "run": {"engine": engine}}).runs[0]
    shares = []
    told, _ = simulate(run, shares.append)
    silent, _ = simulate(run)
    assert shares == sorted(shares)
    assert shares or engine == "compiled", "small runs of the compiled engine are over before they stop"
    assert all(0 <= share <= 1 for share in shares)
    assert told["run"]["trace_hash"] == silent["run"]["trace_hash"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_hears_of_its_runs_while_they_are_under_way(tmp_path, monkeypatch, jobs):
    monkeypatch.setattr(sweep, "TICK", 0.0)
    heard, begun = [], []
    options = SweepOptions(
        jobs, progress=lambda done, total: heard.append((done, total)), begun=lambda: begun.append(len(heard))
    )
    result = run_sweep(plan(DATA), tmp_path, options)
    assert len(result.outcomes) == 2
    assert heard[0] == (0, 2)
    assert heard[-1] == (2, 2)
    assert begun == [1], "once, when the first are under way"
    assert any(done % 1 for done, _ in heard), "parts of runs count"
    assert all(done <= total for done, total in heard)


def test_where_there_is_no_terminal_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "EVERY", 0.01)
    with terminal.progress("simulating x") as update:
        update(1.5, 4)
        time.sleep(0.2)
    with terminal.status("aggregating") as say:
        say("traffic")
        time.sleep(0.2)
    said = capsys.readouterr().err
    assert "simulating x: 1 of 4 runs, 38 % (" in said
    assert "aggregating: traffic (" in said


def test_what_is_coming_is_said_with_engine_reason_and_size():
    lines = list(coming(plan({**DATA, "run": {"engine": "auto"}}), jobs=2))
    why = "at most 1,000,000 messages are predicted, which take seconds"
    assert lines[0] == f"2 runs, 2 at a time, the first with the simpy engine ({why})"
    assert "messages" in lines[1]
    assert "in memory" in lines[1]
    assert lines[2].startswith("predicted time of each: less than a second to simulate and judge")
    lines = list(coming(plan({**DATA, "sweep": {"routing.strategy": ["flooding", "simple"]}}), jobs=2))
    assert lines[2].startswith("predicted time of the first, others may take longer: less than a second")
    large = {"overlay": {"brokers": 1000}, "workload": {"subscriptions": 100_000}, "routing": {"strategy": "simple"}}
    lines = list(coming(plan({**DATA, **large, "seeds": [1]}), jobs=2))
    assert lines[0] == "one run, with the compiled engine (more than 1,000,000 messages are predicted)"
    assert lines[2].startswith("predicted time: about 1"), "100 million control messages at 1 µs"
