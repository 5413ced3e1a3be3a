"""What the bench of the engines says of its rows."""

from __future__ import annotations

from sim.bench.engines import verdicts


def test_another_trace_or_a_slow_engine_is_not_what_was_aimed_at() -> None:
    fast = {"engine": "compiled", "case": "simple", "seconds": 1.0, "first_seconds": 2.0, "ratio": 40.0}
    rows = [fast | {"same_trace": True}, fast | {"same_trace": False}, fast | {"same_trace": True, "ratio": 29.0}]
    assert [row["met"] for row in verdicts(rows)] == [True, False, False]
    assert "first turn 20.0×" in str(verdicts(rows)[0]["measured"])


def test_control_traffic_is_judged_by_its_rate() -> None:
    alone = {"engine": "compiled", "case": "simple, no events", "seconds": 1.0, "first_seconds": 2.0}
    rows = [alone | {"messages_per_s": rate} for rate in (2_000_000, 1_999_999)]
    assert [row["met"] for row in verdicts(rows)] == [True, False]
    assert "first turn 1e+06/s" in str(verdicts(rows)[0]["measured"])
