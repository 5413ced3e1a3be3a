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
    ours = duckdb(sweep.base, 1, "1GB").astype(float)
    theirs = duckdb(sweep.base, 2, "1GB").astype(float)
    bench.compare(ours, theirs, "DuckDB")
    theirs.loc[theirs.index[0], "recall"] += 0.001
    with pytest.raises(CoverlayError, match="Spark and DuckDB disagree: recall"):
        bench.compare(ours, theirs, "DuckDB")


@pytest.mark.spark
def test_spark_agrees_with_the_peers(sweep):
    pytest.importorskip("duckdb")
    from analysis.spark.aggregate import analyze

    summary = analyze(sweep.out)
    assert not [warning for warning in summary.warnings if "do not trust" in warning]
    values = summary.runs.set_index("run")
    from analysis.spark.metrics import CATALOGUE

    bench.compare(values[list(CATALOGUE)], duckdb(sweep.base, 1, "1GB"), "DuckDB")


def test_verdicts_hold_the_warm_ratio_against_the_target():
    times = {"Spark": [30.0, 9.0, 8.0], "DuckDB": [1.0, 2.0, 1.0]}
    rows = bench._rows(20_000_000, 10**8, 50, 7.0, times)
    table = pd.DataFrame(rows).set_index(["engine", "what"])
    assert table.loc[("Spark", "first aggregation"), "times_duckdb"] == 30
    assert table.loc[("Spark", "start-up"), "seconds"] == 7
    assert bench.verdicts(rows) == [{"target": "at most 10× DuckDB's time", "measured": "8.0×", "met": True}]
    slower = bench._rows(20_000_000, 10**8, 50, 7.0, {**times, "Spark": [30.0, 12.0, 11.0]})
    assert bench.verdicts(slower)[0]["met"] is False


@pytest.mark.spark
def test_the_bench_runs_from_end_to_end(monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr(bench, "QUICK_ROWS", 8000)
    monkeypatch.setattr(bench, "REPEATS", 2)
    rows = bench.run(True, lambda message: None)
    assert {(row["engine"], row["what"]) for row in rows} >= {("Spark", "later"), ("DuckDB", "best")}
    assert all(row["megabytes"] is not None and row["rows"] == 8000 for row in rows if "rows" in row)
    assert bench.verdicts(rows)[0]["measured"].endswith("×")
