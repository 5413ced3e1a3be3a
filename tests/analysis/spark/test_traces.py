"""Reading runs from disk: what is skipped, what is refused, and that the message names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.aggregate import _cause
from analysis.spark.traces import find_runs, read
from broker.trace.schema import SCHEMAS, write_run
from coverlay import CoverlayError
from sim.cli.main import main
from tests.analysis import handmade


@pytest.fixture
def out(tmp_path: Path) -> Path:
    handmade.write(tmp_path, "one", run=[handmade.record(seed=1, trace_hash="01")])
    handmade.write(tmp_path, "two", run=[handmade.record(seed=2, trace_hash="02")])
    return tmp_path


def test_runs_come_in_order_with_their_records(out: Path) -> None:
    sweep = find_runs(out)
    assert [run.name for run in sweep.runs] == ["one", "two"]
    assert [run.record["seed"] for run in sweep.runs] == [1, 2]
    assert sweep.warnings == ()


def test_foreign_and_unfinished_names_are_ignored(out: Path) -> None:
    (out / "runs" / ".run=three.ab12").mkdir()
    (out / "runs" / "notes").mkdir()
    (out / "runs" / "run=file").write_text("not a folder")
    assert len(find_runs(out).runs) == 2


def test_a_run_that_lacks_a_table_is_skipped_with_a_warning(out: Path) -> None:
    (out / "runs" / "run=two" / "deliveries.parquet").unlink()
    sweep = find_runs(out)
    assert [run.name for run in sweep.runs] == ["one"]
    (warning,) = sweep.warnings
    assert "run=two" in warning
    assert "deliveries.parquet" in warning


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    path.write_text("event,time\n1,2\n")


def _other_version(path: Path) -> None:
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["latency"]), path)


def _other_type(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index("latency")
    pq.write_table(table.set_column(at, "latency", pa.array([], pa.string())), path)


def _of_another_run(path: Path) -> None:
    path.write_bytes((path.parents[1] / "run=two" / path.name).read_bytes())


def _of_nobody(path: Path) -> None:
    pq.write_table(pq.read_table(path, partitioning=None).replace_schema_metadata(None), path)


def _without_values(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    nothing = [pa.nulls(3, kind) for kind in table.schema.types]
    marked = pa.schema(list(zip(table.column_names, table.schema.types, strict=True)), table.schema.metadata)
    pq.write_table(pa.Table.from_arrays(nothing, schema=marked), path)


def _garbage_in_the_middle(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 :] = bytes(len(raw) - len(raw) // 2)
    path.write_bytes(raw)


DAMAGES = [
    _truncate, _empty, _foreign, _other_version, _other_type, _of_another_run, _of_nobody, _without_values,
    _garbage_in_the_middle,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_table_is_refused_by_name(out: Path, damage: Callable[[Path], None]) -> None:
    path = out / "runs" / "run=one" / "deliveries.parquet"
    damage(path)
    with pytest.raises(CoverlayError) as refused:
        find_runs(out)
    assert str(path) in str(refused.value)
    assert "--resume" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("damage", DAMAGES)
def test_explain_refuses_the_same_in_one_sentence(
    out: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(out / "runs" / "run=one" / "deliveries.parquet")
    assert main(["explain", str(out), "--event", "0", "--run", "one"]) == 2
    said = capsys.readouterr().err
    assert "deliveries.parquet" in said
    assert said.count("\n") == 1


def test_runs_of_different_versions_are_pointed_out(tmp_path: Path) -> None:
    for seed, version in ((1, "0.1"), (2, "0.2"), (3, "0.2")):
        record = handmade.record(seed=seed, versions=f'{{"coverlay": "{version}"}}')
        handmade.write(tmp_path, f"r{seed}", run=[record])
    (warning,) = find_runs(tmp_path).warnings
    assert "different versions of Coverlay" in warning
    assert "0.2 (2, e.g. r2)" in warning


def test_a_newer_table_with_more_columns_is_read(out: Path) -> None:
    folder = out / "runs" / "run=one"
    tables = {name: pq.read_table(folder / f"{name}.parquet", partitioning=None) for name in SCHEMAS}
    tables["brokers"] = tables["brokers"].append_column("rack", pa.array([1, 2, 3]))
    write_run(folder, tables)
    assert len(find_runs(out).runs) == 2


@pytest.mark.parametrize("column", ["point", "parameters", "versions"])
@pytest.mark.parametrize("text", ["{", "[1]", ""])
def test_a_record_that_is_not_json_is_refused(tmp_path: Path, column: str, text: str) -> None:
    handmade.write(tmp_path, "one", run=[{**handmade.record(), column: text}])
    with pytest.raises(CoverlayError, match=f"column '{column}' of .*run.parquet is not a JSON object"):
        find_runs(tmp_path)


def test_a_record_of_two_rows_is_refused(tmp_path: Path) -> None:
    handmade.write(tmp_path, "one", run=[handmade.record(), handmade.record()])
    with pytest.raises(CoverlayError, match="has 2 rows and must have one"):
        find_runs(tmp_path)


def test_the_same_run_twice_is_refused(out: Path) -> None:
    handmade.write(out, "copy", seed=1)
    with pytest.raises(CoverlayError, match="same seed 1 and would count twice"):
        find_runs(out)


def test_runs_of_two_experiments_are_refused(out: Path) -> None:
    handmade.write(out, "other", seed=3, run=[handmade.record(seed=3, parameters='{"overlay": {"kind": "star"}}')])
    with pytest.raises(CoverlayError, match="different parameters"):
        find_runs(out)


def test_seeds_do_not_make_another_experiment(tmp_path: Path) -> None:
    for seed in (1, 2):
        parameters = f'{{"seed": {seed}, "overlay": {{"kind": "star"}}}}'
        handmade.write(tmp_path, f"r{seed}", seed=seed, run=[handmade.record(seed=seed, parameters=parameters)])
    assert len(find_runs(tmp_path).runs) == 2


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match="there are no runs in"):
        find_runs(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(CoverlayError, match="no complete runs"):
        find_runs(tmp_path)
    (tmp_path / "runs" / "run=empty").mkdir()
    with pytest.raises(CoverlayError, match=f"{next(iter(SCHEMAS))}.parquet is missing"):
        find_runs(tmp_path)


@pytest.mark.spark
def test_files_that_only_this_machine_sees_are_named_as_what_they_are(spark: Any, out: Path) -> None:
    """A worker elsewhere: for Spark the files are gone, and for this machine they are there."""
    sweep = find_runs(out)
    rows = read(spark, sweep, "links")
    elsewhere = out.rename(out.with_name("elsewhere"))
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as failed:
        rows.collect()
    assert "is missing" in str(_cause(failed.value, sweep))
    elsewhere.rename(out)
    assert "must be on storage that this machine and all workers see" in str(_cause(failed.value, sweep))
