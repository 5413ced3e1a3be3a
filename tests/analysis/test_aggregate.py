"""The whole way: traces on disk to results on disk, through Spark."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import analysis
from analysis import aggregate
from analysis.aggregate import aggregated, analyze, labels
from analysis.report.summary import FILES, Summary, load
from analysis.spark import metrics
from analysis.spark.frames import Frames
from analysis.spark.session import session
from analysis.spark.traces import find_runs, read
from coverlay import CoverlayError
from sim.experiment.plan import plan
from sim.experiment.runner import execute
from tests.analysis import handmade
from tests.analysis.twin import Twin
from tests.docs.columns import RESULTS

pytestmark = pytest.mark.spark


def _point(summary: Summary, strategy: str, epsilon: float) -> str:
    for point in summary.order:
        labels = summary.labels(point)
        if (labels["strategy"], labels["epsilon"]) == (strategy, epsilon):
            return point
    raise AssertionError(f"no point {strategy} {epsilon}")


def test_means_and_intervals(analysed: Summary) -> None:
    exact = analysed.value(_point(analysed, "covering", 0.0), "entries")
    # Seed 1 has 4 entries, seed 2 has 5: mean 4.5, t(1) · 0.7071 / √2 = 6.353.
    assert exact["n"] == 2
    assert exact["mean"] == 4.5
    assert exact["high"] - exact["mean"] == pytest.approx(12.7062 / 2, abs=1e-4)
    assert analysed.value(_point(analysed, "simple", 0.0), "recall")["n"] == 0
    approximate = _point(analysed, "covering", 0.1)
    assert analysed.value(approximate, "recall")["mean"] == 0.5
    assert analysed.value(approximate, "dropped")["mean"] == 0.0


def test_every_run_has_every_metric_and_its_labels(analysed: Summary) -> None:
    runs = analysed.runs.set_index("run")
    row = runs.loc["simple-0.0-2"]
    assert (row["strategy"], row["seed"], row["overlay"], row["brokers"]) == ("simple", 2, "line", 3)
    assert row["entries"] == 17
    assert row["event_messages"] == 2
    assert row["false_positives"] == 1
    assert len(runs) == 6


def test_points_are_compared_with_what_they_differ_least_from(analysed: Summary) -> None:
    rows = analysed.differences.query("metric == 'entries'").set_index(["strategy", "epsilon"])
    assert set(rows["factor"]) == {"routing"}
    assert rows["baseline"].to_dict() == {
        ("covering", 0.0): _point(analysed, "simple", 0.0),
        ("covering", 0.1): _point(analysed, "covering", 0.0),
    }
    assert rows.loc[("covering", 0.0), "mean"] == -12.0
    assert bool(rows.loc[("covering", 0.0), "differs"])  # the same 12 for both seeds


def test_pictures_have_one_run_per_point(analysed: Summary) -> None:
    assert set(analysed.brokers["run"]) == {"simple-0.0-1", "covering-0.0-1", "covering-0.1-1"}
    broker = analysed.brokers.query("run == 'simple-0.0-1' and broker == 1").iloc[0]
    assert broker["entries"] == 8
    assert broker["processed"] == 3
    link = analysed.links.query("run == 'simple-0.0-1' and broker == 1").iloc[0]
    assert (link["neighbour"], link["control"], link["events"], link["needless"]) == (2, 0, 1, 1)


def test_what_was_written_is_what_was_returned(analysed: Summary) -> None:
    again = load(analysed.out)
    pd.testing.assert_frame_equal(again.runs, analysed.runs)
    pd.testing.assert_frame_equal(again.points, analysed.points)
    assert again.warnings == analysed.warnings
    names = sorted(path.name for path in (analysed.out / "results").iterdir())
    assert "summary.csv" in names
    assert not [name for name in names if name.startswith(".")]
    kept = json.loads((analysed.out / "results" / "digests.json").read_text())
    assert sorted([*kept["files"], "digests.json"]) == names
    assert set(kept["runs"]) == set(analysed.runs["run"])


def test_two_seeds_are_called_few(analysed: Summary) -> None:
    assert any("only 2 seeds" in warning for warning in analysed.warnings)


def test_run_names_that_look_like_numbers_stay_names(spark: Any, tmp_path: Path) -> None:
    for seed, name in enumerate(("1e4", "007", "7", "a%20b", "2020-01-01")):
        handmade.write(tmp_path, name, seed=seed)
    sweep = find_runs(tmp_path)
    found = {row["run"] for row in read(spark, sweep, "run").select("run").collect()}
    assert found == {run.name for run in sweep.runs} == {"1e4", "007", "7", "a b", "2020-01-01"}


def test_damage_behind_a_good_footer_is_named(analysed: Summary, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(analysed.out / "runs", out / "runs")
    path = out / "runs" / "run=covering-0.1-1" / "deliveries.parquet"
    group = pq.ParquetFile(path).metadata.row_group(0)
    latency = next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == "latency")
    start = latency.dictionary_page_offset or latency.data_page_offset
    raw = bytearray(path.read_bytes())
    raw[start : start + latency.total_compressed_size] = bytes(latency.total_compressed_size)
    path.write_bytes(raw)
    find_runs(out)
    with pytest.raises(CoverlayError, match=r"covering-0\.1-1/deliveries\.parquet is damaged"):
        analyze(out)
    assert not (out / "results").exists()


def test_a_flip_that_decodes_is_noticed_where_rows_are_counted(analysed: Summary, tmp_path: Path) -> None:
    """Without digests, as an earlier version wrote it: only the checksum of the page can tell."""
    shutil.copytree(analysed.out / "runs", tmp_path / "runs")
    run = find_runs(tmp_path).runs[0]
    path = run.path("deliveries")
    with pq.ParquetFile(path) as file:
        rows = file.read()
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=True)
    group = pq.ParquetFile(path).metadata.row_group(0)
    latency = next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == "latency")
    raw = bytearray(path.read_bytes())
    raw[latency.data_page_offset + latency.total_compressed_size - 1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(Exception, match="could not verify page integrity, CRC checksum verification failed"):
        Frames(session(), replace(find_runs(analysed.out), out=tmp_path, runs=(run,)))["duration_totals"].collect()


def test_a_trace_that_contradicts_its_record_is_reported(spark: Any, tmp_path: Path) -> None:
    said: list[str] = []
    record = handmade.record(control_messages=5, missed=2)
    handmade.write(tmp_path, "one", run=[record], control=[{"source": 0, "target": 1, "kind": "subscribe"}])
    summary = analyze(tmp_path, progress=said.append)
    assert any("recorded 5 control messages but its trace has 1" in w for w in summary.warnings)
    assert any("broke a guarantee: 2 missed deliveries" in w for w in summary.warnings)
    assert any("aggregating 1 run on Spark" in message for message in said)
    assert summary.value("{}", "load_gini")["mean"] == pytest.approx(2 / 3)


def test_results_of_another_version_are_refused(analysed: Summary, tmp_path: Path) -> None:
    shutil.copytree(analysed.out / "results", tmp_path / "results")
    path = tmp_path / "results" / "summary.parquet"
    frame = pd.read_parquet(path)
    frame[frame["metric"] != "recall"].to_parquet(path)
    with pytest.raises(CoverlayError, match="another version wrote it, without recall"):
        load(tmp_path)
    frame.to_parquet(path)
    path = tmp_path / "results" / "broker_times.parquet"
    pd.DataFrame({"run": ["a"], "broker": [0]}).to_parquet(path)
    with pytest.raises(CoverlayError, match="another version wrote it, without busy"):
        load(tmp_path)


def test_a_folder_that_was_never_analysed(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match="coverlay analyze"):
        load(tmp_path)
    (tmp_path / "results").mkdir()
    for name in FILES.values():
        with pytest.raises(CoverlayError, match="not been analysed yet"):
            load(tmp_path)
        (tmp_path / "results" / f"{name}.parquet").write_bytes(b"PAR1")
    with pytest.raises(CoverlayError, match=r"cannot be read .* again"):
        load(tmp_path)


def test_filters_and_columns_reach_the_files(spark: Any, analysed: Summary, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark opens the folders of the runs asked for, skips row groups, and reads the columns it needs."""
    decisions = read(spark, find_runs(analysed.out), "decisions")
    decisions.where("run = 'simple-0.0-1' and outcome = 'forwarded' and probes > 3").select("broker").explain()
    plan = capsys.readouterr().out
    assert "(run#" in plan.split("PartitionFilters: [")[1].split("]")[0]
    assert "simple-0.0-1" in plan.split("PartitionFilters: [")[1].split("]")[0]
    pushed = plan.split("PushedFilters: [")[1].split("]")[0]
    assert "EqualTo(outcome,forwarded)" in pushed
    assert "GreaterThan(probes,3)" in pushed
    assert "ReadSchema: struct<broker:int,outcome:string,probes:bigint>" in plan


def test_numbers_are_the_same_however_tables_are_divided(spark: Any, analysed: Summary) -> None:
    """And whichever tasks the rows of a run come to; DuckDB has the same numbers."""
    sweep = find_runs(analysed.out)
    whole = aggregated(spark, sweep)
    twin = Twin(sweep.runs).values.astype(float)
    pd.testing.assert_frame_equal(whole["values"].set_index("run"), twin, check_exact=True, check_names=False)
    size, partitions = "spark.sql.files.maxPartitionBytes", "spark.sql.shuffle.partitions"
    before = {name: spark.conf.get(name) for name in (size, partitions)}
    try:
        spark.conf.set(size, "512")
        spark.conf.set(partitions, "5")
        for name, frame in aggregated(spark, sweep).items():
            pd.testing.assert_frame_equal(frame, whole[name], check_exact=True)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_single_metric_reads_only_what_it_needs(
    spark: Any, analysed: Summary, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's optimizer leaves out the other totals, their tables and their columns."""
    analysis.metric(analysed.out, "entries").explain()
    plan = capsys.readouterr().out
    assert plan.count("FileScan") == 1
    assert "ReadSchema: struct<broker:int,neighbour:int,entries:bigint,final:boolean>" in plan


def test_no_python_runs_in_the_aggregation(spark: Any, analysed: Summary, capsys: pytest.CaptureFixture[str]) -> None:
    frames = Frames(spark, find_runs(analysed.out), [run for run in analysed.brokers["run"].unique()])
    for frame in (frames.metrics(), *(frames[query] for query, _ in aggregate.PICTURES.values())):
        frame.explain()
    plan = capsys.readouterr().out
    assert "FileScan" in plan
    assert not re.search("Python|Arrow|MapIn|ExistingRDD", plan)


def test_a_metric_of_a_plug_in_is_in_every_result(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    def far(trace: Any) -> Any:
        return trace("deliveries").groupBy("run").agg(F.avg((F.col("hops") > 3).cast("double")).alias("far"))

    def peeks(trace: Any) -> Any:
        return trace("control")

    def twice(trace: Any) -> Any:
        return trace("deliveries").selectExpr("run", "latency")

    def wide(trace: Any) -> Any:
        return trace("deliveries")

    def broken(trace: Any) -> Any:
        return trace("deliveries").select("run", "nowhere")

    handmade.write(tmp_path, "a", deliveries=[{"hops": 4}, {"hops": 1}], seed=1)
    handmade.write(tmp_path, "b", seed=2)
    facts: Any = {"title": "far deliveries", "unit": "share", "definition": "…", "formula": "…"}
    wrong = {
        peeks: "asks for the table control",
        twice: "metric twice has more than one value for run a",
        wide: "must give run and its value",
        broken: "metric broken fails: .*nowhere",
    }
    try:
        assert analysis.register_metric(**facts, reads=["deliveries"], empty=0.25)(far) is far
        assert metrics.CATALOGUE["far"].title == "far deliveries"
        found = analyze(tmp_path)
        assert found.runs["far"].tolist() == [0.5, 0.25]
        assert load(tmp_path).value("{}", "far")["mean"] == 0.375
        _known_without_its_plug_in(tmp_path)
        analysis.register_metric(**facts, reads=["deliveries"], empty=0.25)(far)
        assert analysis.metric(tmp_path, "far").columns == ["run", "far"]
        for function, message in wrong.items():
            analysis.register_metric(**facts, reads=["deliveries"])(function)
            with pytest.raises(CoverlayError, match=message):
                analyze(tmp_path)
            del metrics.CATALOGUE[function.__name__]
    finally:
        for function in (far, *wrong):
            metrics.CATALOGUE.pop(function.__name__, None)
    with pytest.raises(CoverlayError, match="unknown trace table 'rumours'"):
        analysis.register_metric(**facts, reads=["rumours"])
    far.__name__ = "recall"
    with pytest.raises(CoverlayError, match="there is a metric 'recall' already"):
        analysis.register_metric(**facts, reads=[])(far)


def _known_without_its_plug_in(out: Any) -> None:
    """As in a process that does not import it: results say what the metric is, and nobody can compute it."""
    metrics.CATALOGUE.pop("far"), metrics.CATALOGUE.written.pop("far")
    assert load(out).value("{}", "far")["mean"] == 0.375
    assert metrics.CATALOGUE["far"].title == "far deliveries"
    assert "far" not in metrics.computed()
    assert "far" not in metrics.all_metrics().sql
    (note,) = aggregate._no_longer_computed(out)
    assert "metrics of plug-ins that were not given: far;" in note
    for name in ("metrics", "run_metrics", "summary"):
        assert "far" in (out / "results" / f"{name}.csv").read_text()


def test_the_page_has_the_columns_that_results_have(analysed: Summary) -> None:
    for frame, (_, columns) in RESULTS.items():
        more = [*aggregate.RECORD_COLUMNS, *metrics.CATALOGUE] if frame == "runs" else []
        assert [*columns, *more] == list(getattr(analysed, frame).columns), frame


UNSURE = float("nan")


@pytest.mark.parametrize(
    ("search", "epsilon"),
    [
        ({"method": "packed"}, 0.0),
        ({"method": "zorder", "probe_cap": 5}, 0.0),  # past the cap it finishes exactly,
        ({"method": "zorder", "finish": False}, UNSURE),  # unless told not to
        ({"method": "zorder-emulated", "epsilon": 0.1}, 0.1),
        ({"method": "zorder-emulated", "epsilon": 0.1, "probe_cap": 5}, 0.1),
        ({"method": "zorder-emulated", "probe_cap": 5}, UNSURE),
        ({"method": "zorder-emulated", "epsilon_per_level": [0.0, 0.3]}, UNSURE),
        ({"method": "zorder-emulated", "epsilon_per_link": {"0-1": 0.3}}, UNSURE),
        ({"method": "budget"}, UNSURE),
    ],
)
def test_a_search_that_may_miss_is_not_called_exact(tmp_path: Path, search: dict[str, Any], epsilon: float) -> None:
    """Its ε is unknown where it may miss although `covering.epsilon` is 0."""
    data = {
        "name": "who may miss",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"attributes": 1, "subscriptions": 3, "events": 1},
        "routing": {"strategy": "covering"},
        "sweep": {"covering": [search, {"method": "scan"}]},
    }
    for run in plan(data).runs:
        execute(run, tmp_path)
    sweep = find_runs(tmp_path)
    run = next(run for run in sweep.runs if run.parameters["covering"]["method"] == search["method"])
    assert labels(run)["epsilon"] == pytest.approx(epsilon, nan_ok=True)
    older = replace(run, record={name: value for name, value in run.record.items() if name != "may_miss"})
    if epsilon != 0:
        assert labels(older)["epsilon"] != 0
