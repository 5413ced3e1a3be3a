"""Compacted copies: the rows of the run folders, whatever happens to either. Slow twin: every folder by itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from analysis.spark import compaction, traces
from analysis.spark.runs import open_run
from analysis.spark.traces import Sweep, compacted, find_runs, read
from broker.trace.schema import ALL, SCHEMAS, write_run
from coverlay import CoverlayError
from tests.analysis import handmade

SEEDS = st.integers(1, 7)


@pytest.fixture(autouse=True)
def few_runs_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "LEAST", 2)
    monkeypatch.setattr(compaction, "MOST", 3)


def write(out: Path, seed: int, rows: int = 2, missed: int = 0) -> Path:
    deliveries = [{"event": event, "subscription": seed, "latency": event / 3} for event in range(rows)]
    return handmade.write(
        out, f"r{seed}", None, seed, deliveries=deliveries, control=[{"kind": "subscribe", "step": rows}],
        run=[handmade.record(seed=seed, trace_hash=f"{seed:02x}{rows:02x}", deliveries=rows, missed=missed)],
    )  # fmt: skip


def in_folders(out: Path, table: str) -> dict[str, list[dict[str, Any]]]:
    """The slow twin: what is in each run's own file."""
    found = {}
    for folder in sorted((out / "runs").glob("run=*")):
        path = folder / f"{table}.parquet"
        found[folder.name] = pq.read_table(path, partitioning=None).to_pylist() if path.is_file() else []
    return found


def as_read(sweep: Sweep, table: str) -> dict[str, list[dict[str, Any]]]:
    """What Spark is given to read, without Spark."""
    found: dict[str, list[dict[str, Any]]] = {run.folder.name: [] for run in sweep.runs}
    for run in sweep.loose:
        if run.has(table):
            found[run.folder.name] += run.read(table).to_pylist()
    for block in sweep.blocks:
        if table in block.files:
            for row in pq.read_table(block.path(table), partitioning=None).to_pylist():
                found[f"run={row.pop('run')}"].append(row)
    return found


def flip(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at % len(raw)] ^= 1
    path.write_bytes(raw)


class Cached(RuleBasedStateMachine):
    """Runs come, go and change, and so do their copies; whatever is read is what the run folders have."""

    @initialize()
    def begin(self) -> None:
        self.out = Path(mkdtemp())
        self.rows: dict[int, int] = {}

    @rule(seed=SEEDS, rows=st.integers(1, 3))
    def simulate(self, seed: int, rows: int) -> None:
        write(self.out, seed, rows)
        self.rows[seed] = rows

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        seed = data.draw(st.sampled_from(sorted(self.rows)))
        shutil.rmtree(self.out / "runs" / f"run=r{seed}")
        del self.rows[seed]

    @precondition(lambda self: self.rows)
    @rule()
    def analyze(self) -> None:
        sweep = compacted(find_runs(self.out))
        kept = {block.folder for block in sweep.blocks}
        assert set((self.out / "compacted").glob("*")) == kept, "nothing else is left"
        assert len(sweep.loose) < 2, "all but one run are compacted"
        self.same(sweep)

    @precondition(lambda self: any((self.out / "compacted").glob("*/*")))
    @rule(data=st.data(), at=st.integers(0, 10_000), how=st.sampled_from(["flip", "cut", "remove"]))
    def damage_a_copy(self, data: st.DataObject, at: int, how: str) -> None:
        path = data.draw(st.sampled_from(sorted((self.out / "compacted").glob("*/*"))))
        if how == "flip":
            flip(path, at)
        elif how == "cut":
            path.write_bytes(path.read_bytes()[:-1])
        else:
            path.unlink()

    @precondition(lambda self: len(list((self.out / "compacted").glob("*"))) > 0)
    @rule()
    def remove_all_copies(self) -> None:
        shutil.rmtree(self.out / "compacted")

    @invariant()
    def read_as_it_is(self) -> None:
        if getattr(self, "rows", None):
            self.same(find_runs(self.out))

    def same(self, sweep: Sweep) -> None:
        assert [run.record["deliveries"] for run in sweep.runs] == [self.rows[seed] for seed in sorted(self.rows)]
        for table in ("deliveries", "control", "run"):
            assert as_read(sweep, table) == in_folders(self.out, table)

    def teardown(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)


TestCached = Cached.TestCase
TestCached.settings = settings(max_examples=8, stateful_step_count=10, deadline=None)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for seed in range(1, 6):
        write(tmp_path, seed)
    return tmp_path


def test_a_copy_is_used_as_long_as_every_run_in_it_is_unchanged(out: Path) -> None:
    sweep = compacted(find_runs(out))
    assert sorted(len(block.runs) for block in sweep.blocks) == [2, 3]
    again = find_runs(out)
    assert again == sweep, "records are the same, from the copy as from the folders"
    for table in ALL:
        assert as_read(again, table) == in_folders(out, table)
    write(out, 2, rows=7)
    changed = find_runs(out)
    assert [len(block.runs) for block in changed.blocks] == [2], "the copy with run 2 is of no use"
    assert len(as_read(changed, "deliveries")["run=r2"]) == 7
    said: list[str] = []
    assert sorted(len(block.runs) for block in compacted(changed, said.append).blocks) == [2, 3]
    assert said == ["compacted copies that are damaged, or of runs that changed: 1 removed"]


def test_a_run_of_which_only_the_record_changed_is_not_taken_from_the_copy(out: Path) -> None:
    compacted(find_runs(out))
    write(out, 2, missed=3)
    found = find_runs(out)
    assert [run.record["missed"] for run in found.runs] == [0, 3, 0, 0, 0]
    assert as_read(found, "run") == in_folders(out, "run")


def test_runs_in_copies_are_not_opened_again(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted(find_runs(out))
    write(out, 9)
    opened: list[Path] = []

    def counting(folder: Path) -> Any:
        opened.append(folder)
        return open_run(folder)

    monkeypatch.setattr(traces, "open_run", counting)
    assert len(find_runs(out).runs) == 6
    assert [folder.name for folder in opened] == ["run=r9"]


@pytest.mark.parametrize("table", ["deliveries", "control", "links"])
def test_a_run_that_was_damaged_after_it_was_copied_is_not_taken_from_the_copy(out: Path, table: str) -> None:
    compacted(find_runs(out))
    flip(out / "runs" / "run=r2" / f"{table}.parquet", 30)  # data: the footer is as it was
    assert [len(block.runs) for block in find_runs(out).blocks] == [2]


def test_a_damaged_run_is_refused_by_name_when_it_would_be_copied(out: Path) -> None:
    flip(out / "runs" / "run=r2" / "deliveries.parquet", 30)
    with pytest.raises(CoverlayError, match=r"run=r2/deliveries.parquet is damaged .*--resume"):
        compacted(find_runs(out))
    assert not list((out / "compacted").glob("*"))


def test_a_damaged_copy_is_told_and_made_again(out: Path) -> None:
    first = compacted(find_runs(out))
    flip(first.blocks[0].path("control"), 40)
    found = find_runs(out)
    assert len(found.blocks) == 1
    assert any("is damaged and was not used" in warning for warning in found.warnings)
    assert {block.folder for block in compacted(found).blocks} == {block.folder for block in first.blocks}


def test_no_run_is_read_from_two_copies(out: Path) -> None:
    sweep = find_runs(out)
    compaction.compact(out, sweep.runs[:3])
    compaction.compact(out, sweep.runs[2:])
    found = find_runs(out)
    assert len(found.blocks) == 1
    assert as_read(found, "deliveries") == in_folders(out, "deliveries")


def test_two_analyses_of_the_same_runs_make_the_same_copy(out: Path) -> None:
    sweep = find_runs(out)
    one, other = compacted(sweep), compacted(replaced_nothing(sweep))
    assert one == other == find_runs(out)


def replaced_nothing(sweep: Sweep) -> Sweep:
    """The sweep as another process found it, before there were copies."""
    return Sweep(sweep.out, sweep.runs, sweep.warnings)


def _few(out: Path) -> None:
    for seed in (2, 3, 4, 5):
        shutil.rmtree(out / "runs" / f"run=r{seed}")


def _of_an_earlier_version(out: Path) -> None:
    """Without digests nobody can tell whether a run has changed."""
    for folder in (out / "runs").iterdir():
        tables = {name: pq.read_table(folder / f"{name}.parquet", partitioning=None) for name in SCHEMAS}
        shutil.rmtree(folder)
        write_run(folder, tables)
        path = folder / "run.parquet"
        old = pq.read_table(path, partitioning=None).drop_columns(["file_digests"])
        pq.write_table(old.replace_schema_metadata({b"coverlay.trace": old.column("trace_hash")[0].as_py()}), path)
        for name in tables:
            if name != "run":
                path = folder / f"{name}.parquet"
                mark = old.column("trace_hash")[0].as_py()
                pq.write_table(tables[name].replace_schema_metadata({b"coverlay.trace": mark}), path)


@pytest.mark.parametrize("runs", [_few, _of_an_earlier_version])
def test_where_it_does_not_pay_or_cannot_be_trusted_nothing_is_copied(out: Path, runs: Callable[[Path], None]) -> None:
    runs(out)
    assert compacted(find_runs(out)).blocks == ()
    assert not (out / "compacted").exists()


def test_large_runs_are_read_from_their_own_files(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(out, 3, rows=900)
    sizes = {run.name: sum(run.path(table).stat().st_size for table in run.files) for run in find_runs(out).runs}
    monkeypatch.setattr(compaction, "SMALL_BYTES", sizes["r3"] - 1)
    assert [run.name for run in compacted(find_runs(out)).loose] == ["r3"]


def test_a_folder_that_cannot_be_written_is_read_run_by_run(out: Path) -> None:
    (out / "compacted").write_text("a file where the copies should be")
    sweep = compacted(find_runs(out))
    assert sweep.blocks == ()
    (warning,) = sweep.warnings
    assert "read one by one" in warning
    assert as_read(sweep, "deliveries") == in_folders(out, "deliveries")


def test_a_copy_of_other_columns_is_of_another_version(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted(find_runs(out))
    more = ALL["deliveries"].append(pa.field("later", pa.int64()))
    monkeypatch.setitem(compaction.ALL, "deliveries", more)
    assert compaction.blocks_in(out) == ([], [])


@pytest.mark.spark
def test_spark_reads_the_same_from_copies_and_from_folders(spark: Any, out: Path) -> None:
    published = [{"event": 1, "broker": 2, "time": 1.5, "step": 3}]
    folder = out / "runs" / "run=r4"
    tables = {name: pq.read_table(folder / f"{name}.parquet", partitioning=None) for name in SCHEMAS}
    shutil.rmtree(folder)
    write_run(folder, {**tables, "published": handmade.rows_to_table("published", published)})
    before = find_runs(out)
    after = compacted(before)
    partly = Sweep(out, after.runs, (), after.blocks[:1])
    assert not before.blocks
    for table in ("deliveries", "published", "run", "faults"):
        found = []
        for sweep in (before, after, partly):
            frame = read(spark, sweep, table)
            assert frame.schema == read(spark, before, table).schema
            found.append(sorted(map(json.dumps, (row.asDict() for row in frame.collect()))))
        assert found[0] == found[1] == found[2]
