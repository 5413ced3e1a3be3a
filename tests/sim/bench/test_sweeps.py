"""The table of large sweeps: what is measured, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from sim.bench import sweeps

STEPS = {"simulate": 50.0, "find": 4.0, "compact": 13.0, "find again": 1.0, "aggregate": 100.0, "page": 100.0}


def row(runs: int, cpu_seconds: float = 600.0, **changed: float) -> dict[str, Any]:
    return {"runs": runs, **STEPS, **changed, "cpu_seconds": cpu_seconds, "gigabytes": 2.0}


def test_what_grows_faster_than_the_number_of_runs_is_told():
    judged = sweeps.verdicts([row(10, find=90.0), row(100), row(1_000), row(6_400, find=7.0)])
    assert {r["target"]: r["met"] for r in judged if r["met"] is not True} == {
        "simulate: a run of 100 takes at most 1.5 times one of 10": None,  # so few runs say little
        "find: a run of 100 takes at most 1.5 times one of 10": None,
        "find again: a run of 100 takes at most 1.5 times one of 10": None,
        "find: a run of 6,400 takes at most 1.5 times one of 1,000": False,
    }


def test_only_the_largest_sweep_says_whether_time_and_memory_suffice():
    *_, minutes, memory = sweeps.verdicts([row(1_000), row(6_400, cpu_seconds=3_660.0)])
    assert (minutes["measured"], minutes["met"]) == ("6,400 runs: 30.5 min", False)
    assert (memory["measured"], memory["met"]) == ("2.0 GB", True)
    assert [r["met"] for r in sweeps.verdicts([row(10), row(100)])[-2:]] == [None, None]


@pytest.mark.spark
def test_a_sweep_is_measured_step_by_step(spark, tmp_path):
    found = sweeps.measure(sweeps.POINTS, tmp_path)
    assert found["runs"] == sweeps.POINTS
    assert all(found[name] > 0 for name in STEPS)
    assert found["files"] == 13 * sweeps.POINTS
    assert found["compacted_files"] == 0, "ten runs are not worth it"
    assert (tmp_path / "report.html").is_file()
