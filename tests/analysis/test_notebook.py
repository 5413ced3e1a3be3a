"""Python use: frames come back, mistakes are sentences, and importing is light."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import analysis
import sim
from analysis.notebook import Results
from analysis.report.summary import Summary
from analysis.spark.metrics import CATALOGUE
from coverlay import CoverlayError
from sim.cli import terminal

TINY = {
    "name": "tiny",
    "overlay": {"kind": "line", "brokers": 3},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 10, "events": 5},
}


def test_importing_starts_nothing() -> None:
    heavy = "('pyspark', 'simpy', 'numba', 'pandas', 'matplotlib')"
    code = f"import sim, analysis, sys; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="there are: Network, check_plugin, load, plugin_checks, run"):
        sim.fly  # noqa: B018
    with pytest.raises(AttributeError, match="there are: advice"):
        analysis.fly  # noqa: B018
    assert {"load", "run"} <= set(dir(sim))
    assert {"table", "trace"} <= set(dir(analysis))


def test_an_experiment_is_a_name_a_dict_or_a_plan(tmp_path: Path) -> None:
    assert len(sim.load("demo", {"seeds": [1]}).runs) == 8
    plan = sim.load(TINY, {"overlay.brokers": 4, "sweep.routing.strategy": ["simple", "covering"]})
    assert {run.experiment.overlay.brokers for run in plan.runs} == {4}
    assert TINY["overlay"] == {"kind": "line", "brokers": 3}, "what was given is left alone"
    assert len(sim.load(plan, {"seeds": [1, 2]}).runs) == 4
    file = tmp_path / "mine.toml"
    file.write_text('[overlay]\nkind = "star"\n')
    assert sim.load(file).runs[0].experiment.overlay.kind == "star"


def test_numbers_and_lists_may_be_those_of_numpy_and_files_paths(tmp_path: Path) -> None:
    subscriptions = tmp_path / "subs.csv"
    subscriptions.write_text("price_lo,price_hi\n1,2\n")
    own = {"workload": {"subscriptions_file": subscriptions}, "sweep": {"arrivals.publish_rate": np.array([0.5, 1.0])}}
    plan = sim.load(own, {"overlay.brokers": np.int64(4), "seeds": range(3)})
    assert plan.data["seeds"] == [0, 1, 2]
    assert len(plan.runs) == 6


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match=r"covering.*-1"):
        sim.load(TINY, {"covering.epsilon": -1.0})
    with pytest.raises(CoverlayError, match="jobs is 0"):
        sim.run(TINY, out=tmp_path, jobs=0)
    with pytest.raises(CoverlayError, match=r"routing\.root is 9"):
        sim.run(TINY, {"routing.strategy": "hierarchical", "routing.root": 9}, out=tmp_path)
    with pytest.raises(CoverlayError, match="has not been analysed"):
        analysis.load(tmp_path)
    for function in (analysis.table, analysis.load, analysis.advice, lambda given: analysis.trace(given, "deliveries")):
        with pytest.raises(CoverlayError, match="results are 42; give what"):
            function(42)


def test_a_notebook_without_ipywidgets_gets_no_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "ERR", Console(file=io.StringIO(), force_jupyter=True))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with terminal.progress("simulating") as update, terminal.status("aggregating") as say:
            for done in range(20):
                update(done, 20)
                say(f"{done}")


@pytest.mark.spark
def test_results_as_frames(analysed: Summary) -> None:
    table = analysis.table(analysed)
    assert table["strategy"].tolist() == ["simple", "covering", "covering"]
    assert table["entries"].tolist() == [16.5, 4.5, 8.5]
    assert table["epsilon"].isna().tolist() == [True, False, False]
    pd.testing.assert_frame_equal(analysis.table(str(analysed.out)), table)
    assert list(analysis.table(analysed, ["recall"]).columns) == ["strategy", "epsilon", "recall"]
    with pytest.raises(CoverlayError, match="unknown metric 'speed'"):
        analysis.table(analysed, ["speed"])
    advice, *others = analysis.advice(analysed).to_dict("records")
    assert (advice["title"], advice["verdict"]) == ("in memory", "not judged")
    assert {other["verdict"] for other in others} == {"not judged"}, "no search looked anything up"
    assert advice["sentence"].endswith('add covering.method = "auto" to the sweep.')
    assert {"mean", "low", "high", "differs"} <= set(analysis.differences(analysed))


@pytest.mark.spark
def test_results_show_themselves_in_a_notebook(analysed: Summary, tmp_path: Path) -> None:
    analysed = Results.of(replace(analysed, out=tmp_path))  # other tests may have written a page into the shared folder
    shown = analysed._repr_html_()
    assert shown.startswith("<p>Exact covering against simple routing: routing-table entries 16.5 → 4.5")
    assert shown.count("<tr>") == 4, "a head and a row per setting"
    assert f"`coverlay report {analysed.out}` writes the page" in shown
    (analysed.out / "report.html").touch()
    assert f"page: {analysed.out / 'report.html'}" in analysed._repr_html_()


@pytest.mark.spark
def test_traces_and_metrics_as_spark_frames(analysed: Summary, spark: Any) -> None:
    deliveries = analysis.trace(analysed, "deliveries")
    assert deliveries.count() == 12
    assert "run" in deliveries.columns
    entries = analysis.metric(analysed.out, "entries")
    assert entries.columns == ["run", "entries"]
    assert sorted(row.entries for row in entries.collect()) == [4, 5, 8, 9, 16, 17]
    every = analysis.metrics(analysed.out)
    assert every.columns == ["run", *CATALOGUE]
    assert every.join(deliveries, "run").where("entries > 5").count() == 8, "frames can be joined"
    with pytest.raises(CoverlayError, match="unknown trace table 'rumours'"):
        analysis.trace(analysed, "rumours")
