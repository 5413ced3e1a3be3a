"""A bit that flips on disk is found, by whoever reads the data or opens the run, and by `coverlay verify`."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.spark.traces import find_runs, open_run, read
from analysis.spark.verify import damages, verify, write_digests
from broker import trace
from broker.trace import digests
from coverlay import CoverlayError
from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

SMALL = {
    "name": "small",
    "overlay": {"kind": "random-tree", "brokers": 6},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 80, "events": 60},
    "arrivals": {"kind": "churn", "lifetime": 600.0},
    "broker": {"queue": 3, "service": {"kind": "constant", "value": 0.6}},
    "run": {"sample_decisions": 0.5, "sample_deliveries": 0.5},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The output folder of one run in which every table has rows."""
    out = tmp_path_factory.mktemp("flips")
    tables, _ = simulate(plan(SMALL).runs[0])
    assert all(len(table) for table in tables.values())
    write(out, "a", tables)
    return out


def write(out: Path, name: str, tables: dict[str, pa.Table]) -> None:
    named = {**tables, "run": trace.with_column(tables["run"], "run_id", [name])}
    trace.write_run(out / "runs" / f"run={name}", named)


def tables_of(folder: Path) -> dict[str, pa.Table]:
    return {path.stem: pq.read_table(path, partitioning=None) for path in folder.glob("*.parquet")}


@pytest.fixture
def out(written, tmp_path) -> Path:
    shutil.copytree(written / "runs", tmp_path / "runs")
    return tmp_path


def flip(path: Path, place: int, bit: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1 << bit
    path.write_bytes(raw)


def chunks(path: Path) -> list[tuple[str, int, int]]:
    """The name, first byte and end of every column chunk of a file."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    starts = [c.dictionary_page_offset or c.data_page_offset for c in columns]
    return [(c.path_in_schema, s, s + c.total_compressed_size) for c, s in zip(columns, starts, strict=True)]


@pytest.mark.parametrize("table", trace.SCHEMAS)
def test_a_flip_in_the_data_of_any_column_is_found_by_reading(out, table):
    """The last bytes of a chunk are data; its first are the header of a page, which verify covers."""
    path = out / "runs" / "run=a" / f"{table}.parquet"
    whole = path.read_bytes()
    for name, place in ((name, end - 1 - back) for name, _, end in chunks(path) for back in (0, 3)):
        flip(path, place, bit=place % 8)
        with pytest.raises(CoverlayError, match=rf"{table}\.parquet is damaged .*--resume"):
            open_run(path.parent).read(table)
        assert list(damages(path.parent)), name
        path.write_bytes(whole)
    assert list(damages(path.parent)) == []


@pytest.mark.parametrize("table", ["deliveries", "control", "run"])
def test_no_flip_anywhere_passes_unseen(out, table):
    """Headers, data and footers: each of many flips is found, or changed no value that anybody reads."""
    path = out / "runs" / "run=a" / f"{table}.parquet"
    whole, record = path.read_bytes(), open_run(path.parent).record
    draw = random.Random(table)
    for _ in range(60):
        place = draw.randrange(len(whole))
        flip(path, place, draw.randrange(8))
        found = list(damages(path.parent))
        if table != "run":
            assert found, place
        elif not found:  # the record's own file: its values are what has a digest
            assert open_run(path.parent).record == record
        path.write_bytes(whole)


def test_a_flip_in_a_footer_is_found_when_the_run_is_opened(out):
    path = out / "runs" / "run=a" / "deliveries.parquet"
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in np.linspace(start, len(whole) - 1, 100).astype(int):
        flip(path, place, bit=place % 8)
        with pytest.raises(CoverlayError, match=r"deliveries\.parquet .*--resume"):
            find_runs(out)
        path.write_bytes(whole)


@pytest.mark.spark
def test_spark_verifies_the_pages_it_reads(out):
    from analysis.spark.session import session

    spark = session("local[2]", quick=True)
    path = out / "runs" / "run=a" / "deliveries.parquet"
    sweep, whole = find_runs(out), path.read_bytes()
    for name, _, end in chunks(path):
        if name in {"latency", "hops", "score"}:
            flip(path, end - 1, bit=2)
            with pytest.raises(Exception, match="CRC checksum verification failed"):
                read(spark, sweep, "deliveries").select(name).collect()
            path.write_bytes(whole)
    assert read(spark, sweep, "deliveries").count() == pq.read_metadata(path).num_rows


def test_verify_names_what_is_wrong_and_goes_on(out, capsys):
    write(out, "b", tables_of(out / "runs" / "run=a"))
    assert main(["verify", str(out)]) == 0
    assert "2 runs checked (26 files): all as written" in capsys.readouterr().out
    flip(out / "runs" / "run=a" / "control.parquet", 50, 1)
    flip(out / "runs" / "run=a" / "tables.parquet", 50, 1)
    (out / "runs" / "run=b" / "links.parquet").unlink()
    assert main(["verify", str(out)]) == 2
    said = capsys.readouterr()
    assert "2 runs checked, 3 things wrong" in said.out
    for text in ("control.parquet is damaged", "tables.parquet is damaged", "links.parquet is missing"):
        assert text in said.err


def test_verify_recomputes_the_hash(written, tmp_path):
    """Files that agree with their digests and not with the trace that was hashed: another program made them."""
    folder = written / "runs" / "run=a"
    tables = tables_of(folder)
    tables["links"] = tables["links"].slice(1)
    trace.write_run(tmp_path / "runs" / "run=a", tables)
    (wrong,) = verify(tmp_path).wrong
    assert f"and was {open_run(folder).record['trace_hash']}" in wrong


def test_traces_without_checksums_get_a_note(out, capsys):
    """As an earlier version wrote them: no digests in the record, no checksums in the pages."""
    folder = out / "runs" / "run=a"
    tables = {name: table for name, table in tables_of(folder).items() if name in trace.SCHEMAS}
    tables["run"] = trace.with_column(tables["run"], "trace_hash", [trace.trace_hash(tables)])
    write(out, "a", tables)
    for name in trace.SCHEMAS:
        table = pq.read_table(folder / f"{name}.parquet", partitioning=None)
        mark = {trace.MARK: table.schema.metadata[trace.MARK]}
        kept = [column for column in table.column_names if column != digests.COLUMN]
        pq.write_table(table.select(kept).replace_schema_metadata(mark), folder / f"{name}.parquet")
    (note,) = find_runs(out).warnings
    assert "1 of these runs without checksums (e.g. a)" in note
    assert main(["verify", str(out)]) == 0
    assert "only its trace hash was checked" in capsys.readouterr().err


def test_a_record_that_lost_its_digests_is_not_taken_for_an_old_one(out):
    folder = out / "runs" / "run=a"
    table = pq.read_table(folder / "run.parquet", partitioning=None)
    pq.write_table(table.drop_columns([digests.COLUMN]), folder / "run.parquet")
    with pytest.raises(CoverlayError, match="has lost its digests"):
        find_runs(out)


def test_the_record_has_a_digest_of_every_file(out):
    folder = out / "runs" / "run=a"
    kept = json.loads(open_run(folder).record[digests.COLUMN])
    assert set(kept) == {path.stem for path in folder.iterdir()}
    del kept["run"]
    assert all(digests.digests_of(folder / f"{name}.parquet") == kept[name] for name in kept)


def test_a_run_proves_its_own_name(out):
    """Whether its folder was renamed, or the files of another run were copied into it."""
    folder = out / "runs" / "run=a"
    shutil.copytree(folder, out / "runs" / "run=b")
    (wrong,) = verify(out).wrong
    assert "run=b holds run a: it was renamed, or its files were copied" in wrong
    with pytest.raises(CoverlayError, match="holds run a"):
        find_runs(out)
    folder.rename(out / "runs" / "run=c")
    assert len(verify(out).wrong) == 2


@pytest.fixture
def analysed_once(out) -> Path:
    """A run, and results of it as far as verify looks at them."""
    folder = out / "results"
    folder.mkdir()
    (folder / "run_metrics.csv").write_text("run,delivered\na,1.0\n")
    (folder / "summary.csv").write_text("point,mean\n{},1.0\n")
    write_digests(folder, find_runs(out).runs)
    return out


def test_edited_results_are_not_as_written(analysed_once, capsys):
    assert main(["verify", str(analysed_once)]) == 0
    assert "1 run checked (15 files): all as written" in capsys.readouterr().out
    edited, gone = (analysed_once / "results" / name for name in ("run_metrics.csv", "summary.csv"))
    edited.write_text(edited.read_text().replace("1.0", "0.9"))
    gone.unlink()
    assert main(["verify", str(analysed_once)]) == 2
    said = capsys.readouterr().err
    assert "run_metrics.csv is not what was written" in said
    assert "summary.csv is missing" in said


def test_results_of_other_runs_than_those_that_are_there(analysed_once):
    folder = analysed_once / "runs" / "run=a"
    tables = tables_of(folder)
    tables["run"] = trace.with_column(tables["run"], "made", ["2020-01-01T00:00:00"])
    write(analysed_once, "a", tables)
    write(analysed_once, "b", tables)
    again, new = verify(analysed_once).wrong
    assert "come from another run a than the one that is there" in again
    assert "are without run b" in new
    shutil.rmtree(folder)
    assert any("come from run a, which is not there any more" in sentence for sentence in verify(analysed_once).wrong)


def test_results_without_digests_get_a_note(analysed_once, capsys):
    (analysed_once / "results" / "digests.json").unlink()
    assert main(["verify", str(analysed_once)]) == 0
    assert "results was not checked: it has no digests.json" in capsys.readouterr().err
