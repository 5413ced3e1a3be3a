"""Runs that would not fit are refused before they begin, with their predicted size."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from coverlay import CoverlayError
from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.predict import predict
from sim.experiment.runner import refuse_oversized, simulate

DATA: dict[str, Any] = {
    "name": "large",
    "overlay": {"kind": "line", "brokers": 20},
    "workload": {"subscriptions": 300, "events": 2},
    "routing": {"strategy": "simple"},
}


def run_of(**section: Any) -> Any:
    return plan({**DATA, "run": section}).runs[0]


def test_a_million_subscriptions_without_covering_are_refused_with_their_size() -> None:
    large = plan(
        {
            **DATA,
            "overlay": {"kind": "random-tree", "brokers": 1000},
            "workload": {"subscriptions": 1_000_000, "events": 2},
            "arrivals": {"kind": "preloaded"},
            "run": {"engine": "compiled", "limit_bytes": 8e9},
        }
    ).runs[0]
    with pytest.raises(CoverlayError, match=r"999 million messages.* GB in memory.*--force"):
        refuse_oversized(large, 1_000_000, 2, 1000, "compiled", lambda: predict(large.experiment))


def test_the_limit_decides_and_force_overrules_it() -> None:
    def refuse(**section: Any) -> None:
        run = run_of(**section)
        refuse_oversized(run, 300, 2, 20, "simpy", lambda: predict(run.experiment))

    refuse(limit_bytes=1e9)
    with pytest.raises(CoverlayError, match=r"5,[67][0-9]{2} messages"):  # 300 × 19 links, and the events
        refuse(limit_bytes=1e4)
    refuse(limit_bytes=1e4, force=True)


def test_forcing_does_not_change_what_a_run_is() -> None:
    forced, given = run_of(limit_bytes=1e4, force=True), run_of()
    assert forced.run_id == given.run_id
    tables, _ = simulate(forced)
    assert tables["run"].to_pylist()[0]["control_messages"] == 300 * 19


def test_the_command_line_says_it_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    arguments = ["run", "scale", "--out", str(tmp_path / "out"), "--set", "routing.strategy=simple"]
    arguments += ["--set", 'sweep."workload.subscriptions"=[2000]', "--set", "run.limit_bytes=1e6", "--jobs", "1"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "more than run.limit_bytes" in said
    assert "Traceback" not in said


@pytest.mark.spark
def test_a_loaded_network_is_measured_like_any_other(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    arguments = ["run", "scale", "--out", str(tmp_path / "out"), "--jobs", "1", "--set", "overlay.brokers=20"]
    arguments += ["--set", "routing.strategy=simple", "--set", 'sweep."workload.subscriptions"=[300]']
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "do not trust" not in said
    runs = pd.read_csv(tmp_path / "out" / "results" / "run_metrics.csv")
    assert set(runs["control_messages"]) == {5_700}, "300 × 19 links, counted per request"
