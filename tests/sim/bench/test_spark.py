"""The trace that the aggregation is measured on, and that all engines agree on it."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.spark.traces import find_runs
from coverlay import CoverlayError
from sim.bench import spark as bench
from sim.bench import spark_trace
from sim.bench.spark_peers import duckdb


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    out = tmp_path_factory.mktemp("made-up")
    assert spark_trace.write(out, 8000, lambda message: None) == 8000
    return find_runs(out)


def test_a_number_that_differs_is_named(sweep):
    pytest.importorskip("duckdb")
    ours = duckdb(sweep, 1, "1GB").astype(float)
    theirs = duckdb(sweep, 2, "1GB").astype(float)
    bench.compare(ours, theirs, "DuckDB")
    known = theirs.index[theirs["recall"].notna()]  # rows come in any order, and some runs had nothing to recall
    theirs.loc[known[0], "recall"] += 0.001
    with pytest.raises(CoverlayError, match="Spark and DuckDB disagree: recall"):
        bench.compare(ours, theirs, "DuckDB")


@pytest.mark.spark
def test_spark_agrees_with_the_peers(sweep):
    pytest.importorskip("duckdb")
    from analysis.aggregate import analyze

    summary = analyze(sweep.out)
    assert not [warning for warning in summary.warnings if "do not trust" in warning]
    values = summary.runs.set_index("run")
    from analysis.spark.metrics import CATALOGUE

    bench.compare(values[list(CATALOGUE)], duckdb(sweep, 1, "1GB"), "DuckDB")


def test_verdicts_hold_the_warm_ratio_against_the_target():
    times = {"Spark": [(30.0, 50.0), (9.0, 17.0), (8.0, 19.0)], "DuckDB": [(1.0, 2.0), (2.0, 3.0), (1.0, 2.5)]}
    small = [{"engine": "Spark", "what": f"small sweep, {what}", "seconds": 16.0} for what in bench.SMALL_SECONDS]
    rows = [*small, *bench._rows(20_000_000, 10**8, 50, 7.0, times)]
    table = pd.DataFrame(rows).set_index(["engine", "what"])
    assert table.loc[("Spark", "first aggregation"), "times_duckdb"] == 30
    assert table.loc[("Spark", "later"), "cpu_seconds"] == 19, "of the quickest"
    assert table.loc[("Spark", "start-up"), "seconds"] == 7
    judged = [(row["target"], row["measured"], row["met"]) for row in bench.verdicts(rows)]
    assert judged == [
        ("small sweep, run to the report: at most 20 s", "16.0 s", True),
        ("small sweep, analyze: at most 15 s", "16.0 s", False),
        ("later: at most 15× DuckDB's time", "8.0×", True),
    ]


@pytest.mark.spark
def test_the_bench_runs_from_end_to_end(monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr(bench, "QUICK_ROWS", 8000)
    monkeypatch.setattr(bench, "REPEATS", 2)
    small = {"engine": "Spark", "seconds": 9.0}  # measured below, in processes of its own
    rows = [{**small, "what": f"small sweep, {what}"} for what in bench.SMALL_SECONDS]
    monkeypatch.setattr(bench, "small_sweep", lambda progress: rows)
    rows = bench.run(True, lambda message: None)
    assert {(row["engine"], row["what"]) for row in rows} >= {("Spark", "later"), ("DuckDB", "best")}
    assert all(row["megabytes"] is not None and row["rows"] == 8000 for row in rows if "rows" in row)
    assert [row["measured"][-1] for row in bench.verdicts(rows)] == ["s", "s", "×"]


@pytest.mark.slow
@pytest.mark.spark
def test_the_small_sweep_is_measured_by_its_commands():
    said: list[str] = []
    rows = bench.small_sweep(said.append, repeats=1)
    assert [row["what"] for row in rows] == [f"small sweep, {what}" for what in bench.SMALL_SECONDS]
    assert all(1.0 < row["seconds"] < float("inf") for row in rows), "Python and Java alone take a second"
    assert said == ["small sweep, run to the report, 1 of 1", "small sweep, analyze, 1 of 1"]
