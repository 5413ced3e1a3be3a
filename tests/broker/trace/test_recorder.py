"""However often rows are turned into columns and spilled, the trace is the same; and memory stays bounded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker import trace
from broker.trace import recorder as recording
from broker.trace.recorder import Recorder
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

SMALL = {
    "name": "small",
    "overlay": {"kind": "random-tree", "brokers": 8},
    "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 120, "events": 60},
    "arrivals": {"kind": "churn", "lifetime": 60.0},
    "broker": {"service": {"kind": "constant", "value": 0.3}},
}


@pytest.fixture(scope="module")
def whole():
    """The tables of a run too small to be compacted before its end."""
    return simulate(plan(SMALL).runs[0])[0]


@pytest.mark.parametrize("spill", [10**9, 20_000, 0])
def test_batches_and_spilling_change_nothing(whole, spill, monkeypatch):
    monkeypatch.setattr(recording, "BATCH_ROWS", 50)
    monkeypatch.setattr(recording, "CHECK_STEPS", 7)
    monkeypatch.setattr(recording, "SPILL_BYTES", spill)
    tables = simulate(plan(SMALL).runs[0])[0]
    assert tables["control"].column("kind").num_chunks > 3
    for name in trace.HASHED:
        assert tables[name].equals(whole[name]), name
    assert tables["run"].column("trace_hash") == whole["run"].column("trace_hash")


def test_the_hash_sees_values_and_not_chunks(whole):
    tables = {name: table.combine_chunks() for name, table in whole.items()}
    cut = {n: pa.concat_tables([t.slice(0, 3), t.slice(3)]) if len(t) > 3 else t for n, t in tables.items()}
    assert trace.trace_hash(cut) == trace.trace_hash(tables) == whole["run"].column("trace_hash")[0].as_py()
    for name, column, value in (("control", "kind", "x"), ("decisions", "probes", 10**6), ("tables", "final", True)):
        values = tables[name].column(column).to_pylist()
        assert values[0] != value
        columns = {c: tables[name].column(c) for c in tables[name].column_names} | {column: [value, *values[1:]]}
        assert trace.trace_hash({**tables, name: trace.to_table(name, columns)}) != trace.trace_hash(tables)
    moved = ["ab", "c"], ["a", "bc"]
    brokers = [trace.to_table("brokers", {"broker": [0, 1], "name": m, "x": [0.0] * 2, "y": [0.0] * 2}) for m in moved]
    assert len({trace.trace_hash({**tables, "brokers": b}) for b in brokers}) == 2


def test_few_rows_wait_as_tuples(monkeypatch):
    monkeypatch.setattr(recording, "BATCH_ROWS", 100)
    monkeypatch.setattr(recording, "CHECK_STEPS", 10)
    monkeypatch.setattr(recording, "SPILL_BYTES", 5000)
    recorder = Recorder()
    rows, waiting, kept = recorder.rows["faults"], 0, 0
    for step in range(5000):
        recorder.step()
        rows.append((float(step), "crash", step % 7, -1, step))
        waiting = max(waiting, len(rows))
        kept = max(kept, sum(columns.nbytes for columns in recorder._columns.values()))
    assert waiting <= 120
    assert kept <= 5000 + 120 * 40
    table = recorder.tables()["faults"]
    assert table.column("event").to_pylist() == list(range(5000))
    assert table.column("kind").to_pylist() == ["crash"] * 5000


@pytest.mark.parametrize("seed", range(5))
def test_a_hop_is_useful_when_one_behind_it_delivered(seed):
    rng = np.random.default_rng(seed)
    recorder, hops, parents, served = Recorder(), [], [], []
    for _ in range(300):
        parent = int(rng.integers(-1, len(hops))) if hops else -1
        hop = 0 if parent < 0 else hops[parent] + 1
        hops.append(hop)
        parents.append(parent)
        served.append(int(rng.random() < 0.1))
        work = (0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0)
        row = (recorder.step(), 0, 0.0, 0.0, -1, 0, hop, 0.0, 0.0, served[-1], 0, *work)
        assert recorder.publication(parent, *row) == len(hops) - 1
    expected = [count > 0 for count in served]
    for row in reversed(range(300)):  # the obvious way: children come after their parents
        if expected[row] and parents[row] >= 0:
            expected[parents[row]] = True
    assert recorder.tables()["publications"].column("useful").to_pylist() == expected


def test_tables_come_back_from_disk_as_they_were(whole, tmp_path):
    trace.write_run(tmp_path / "run=a", whole)
    for name, table in whole.items():
        back = pq.read_table(tmp_path / "run=a" / f"{name}.parquet", partitioning=None)
        if name == "run":  # has the digests of the files now
            back, table = (t.drop_columns(["file_digests"]) for t in (back, table))
        assert back.equals(table.cast(back.schema)), name
    encodings = pq.ParquetFile(tmp_path / "run=a" / "control.parquet").metadata.row_group(0)
    by_column = {encodings.column(i).path_in_schema: encodings.column(i) for i in range(encodings.num_columns)}
    assert by_column["kind"].has_dictionary_page
    assert by_column["target"].has_dictionary_page
    assert "DELTA_BINARY_PACKED" in by_column["step"].encodings
