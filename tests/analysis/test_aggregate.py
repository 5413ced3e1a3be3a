"""The whole way: traces on disk to results on disk, through Spark."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis import aggregate
from analysis.aggregate import aggregated, analyze, labels, metric_values
from analysis.report.summary import FILES, Summary, load
from analysis.spark import parts
from analysis.spark.traces import find_runs, read
from coverlay import CoverlayError
from sim.experiment.plan import plan
from sim.experiment.runner import execute
from tests.analysis import handmade

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


def test_points_are_compared_with_exact_covering(analysed: Summary) -> None:
    rows = analysed.differences.query("metric == 'entries'").set_index(["strategy", "epsilon"])
    assert set(rows.index) == {("simple", 0.0), ("covering", 0.1)}
    assert set(rows["baseline"]) == {_point(analysed, "covering", 0.0)}
    assert rows.loc[("simple", 0.0), "mean"] == 12.0
    assert bool(rows.loc[("simple", 0.0), "differs"])  # the same 12 for both seeds


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
    shutil.copytree(analysed.out / "runs", tmp_path / "runs")
    run = find_runs(tmp_path).runs[0]
    path = run.path("deliveries")
    with pq.ParquetFile(path) as file:
        rows = file.read()
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=True)
    assert parts.Part(run, False, "deliveries", 0).count()
    group = pq.ParquetFile(path).metadata.row_group(0)
    latency = next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == "latency")
    raw = bytearray(path.read_bytes())
    raw[latency.data_page_offset + latency.total_compressed_size - 1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(OSError, match="CRC"):
        parts.Part(run, False, "deliveries", 0).count()


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


def test_large_tables_are_shared_out_by_row_groups(
    spark: Any, analysed: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number is the same however tables are cut up, and whichever tasks the parts of a run come to."""
    sweep = find_runs(analysed.out)
    whole = metric_values(sweep, aggregated(spark.sparkContext, sweep))
    monkeypatch.setattr(parts, "LARGE_BYTES", 0)
    cut = list(parts.parts_of(sweep.runs, set()))
    share = sum(part.nbytes for part in cut) // 4  # four tasks for six runs: some end one run and begin another
    monkeypatch.setattr(aggregate, "TASK_BYTES", share)
    monkeypatch.setattr(aggregate, "LEAST_BYTES", share)
    assert all(part.group is not None for part in cut)
    tasks = aggregate._tasks(cut, 2)
    assert len(tasks) == 4
    assert [part for task in tasks for part in task] == cut, "each part once"
    assert sum(len({part.run.name for part in task}) for task in tasks) > len(sweep.runs), "a run in two tasks"
    pd.testing.assert_frame_equal(metric_values(sweep, aggregated(spark.sparkContext, sweep)), whole, check_exact=True)


def test_a_run_is_read_once_and_only_what_somebody_counts(analysed: Summary) -> None:
    """No column is read twice, and none that no count asks for; misses are looked for in drawn runs only."""
    run = find_runs(analysed.out).runs[0]

    def columns(table: str, drawn: bool) -> list[str]:
        asked: list[str] = []

        class Listed(parts.Rows):
            def _read(self, name: str) -> Any:
                asked.append(name)
                return super()._read(name)

        with pq.ParquetFile(run.path(table)) as file:
            rows = Listed(run, drawn, table, file, 0)
            for count in parts.TABLES[table]:
                count.of[table](rows)
        assert len(asked) == len(set(asked))
        return asked

    assert "subscription" in columns("decisions", drawn=True)
    assert not {"subscription", "time", "witness", "operation"} & set(columns("decisions", drawn=False))


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
    """Its ε is unknown where it may miss although `covering.epsilon` is 0, and it is no exact baseline."""
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
        (baseline,) = set(aggregate._baselines(sweep).values())
        assert json.loads(baseline) == {"covering.method": "scan"}
