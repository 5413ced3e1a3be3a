"""One run on both engines, and where their traces differ."""

from __future__ import annotations

from typing import Any

from broker import trace
from sim.experiment.plan import PlannedRun
from sim.experiment.runner import simulate


def with_engine(run: PlannedRun, engine: str) -> PlannedRun:
    section = run.experiment.run.model_copy(update={"engine": engine})
    return PlannedRun(run.experiment.model_copy(update={"run": section}), run.seed, run.point)


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The columns in which two traces differ, for the message of a failure."""
    found = []
    for name in (*trace.HASHED, "published"):
        a, b = one[name], other[name]
        if a.num_rows != b.num_rows:
            found.append(f"{name}: {a.num_rows} and {b.num_rows} rows")
            continue
        for column in a.column_names:
            x, y = a.column(column).to_pylist(), b.column(column).to_pylist()
            rows = [i for i, (u, v) in enumerate(zip(x, y, strict=True)) if u != v]
            if rows:
                found.append(f"{name}.{column}: {len(rows)} rows, row {rows[0]}: {x[rows[0]]} and {y[rows[0]]}")
    return found


def assert_same(run: PlannedRun) -> dict[str, Any]:
    reference, _ = simulate(with_engine(run, "simpy"))
    compiled, _ = simulate(with_engine(run, "compiled"))
    one, other = (tables["run"].to_pylist()[0] for tables in (reference, compiled))
    assert one["engine"] == "simpy"
    assert other["engine"] == "compiled"
    assert one["trace_hash"] == other["trace_hash"], differences(reference, compiled)
    assert one["finished"] == other["finished"]
    assert one["active"] == other["active"]
    assert one["missed"] == other["missed"] == 0
    return compiled
