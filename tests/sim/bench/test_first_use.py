"""What the bench of the engines says of its rows."""

from __future__ import annotations

import os
import subprocess
import sys

from sim.bench import events, first_use
from sim.bench.engine_speed import RUNS, SIZES, SUBSCRIPTIONS, verdicts

FAST = {"engine": "compiled", "case": "simple", "seconds": 1.0, "first_seconds": 2.0, "ratio": 40.0}
ALONE = {"engine": "compiled", "case": "simple, no events", "seconds": 1.0, "first_seconds": 2.0}
AT_FULL_SIZE = {"subscriptions": SUBSCRIPTIONS}


def test_another_trace_or_a_slow_engine_is_not_what_was_aimed_at() -> None:
    fast = FAST | AT_FULL_SIZE
    rows = [fast | {"same_trace": True}, fast | {"same_trace": False}, fast | {"same_trace": True, "ratio": 9.0}]
    assert [row["met"] for row in verdicts(rows)] == [True, False, False]
    assert "first turn 20.0×" in str(verdicts(rows)[0]["measured"])


def test_control_traffic_is_judged_by_its_rate() -> None:
    rows = [ALONE | AT_FULL_SIZE | {"messages_per_s": rate} for rate in (1_200_000, 1_199_999)]
    assert [row["met"] for row in verdicts(rows)] == [True, False]
    assert "first turn 6e+05/s" in str(verdicts(rows)[0]["measured"])


def test_less_than_the_targets_are_meant_for_is_shown_but_not_judged() -> None:
    """As `--quick` measures it. A trace that differs is wrong at any size."""
    small = {"subscriptions": SUBSCRIPTIONS // 10}
    bulk = {"engine": "compiled", "case": "bulk loading", "seconds": 1.0, "peak_bytes": 1.0}
    sweep = {"engine": "simpy", "case": "sweep", "jobs": 2}
    rows = [
        FAST | small | {"same_trace": True},
        FAST | small | {"same_trace": False},
        ALONE | small | {"messages_per_s": 1.0},
        bulk | {"subscriptions": SIZES[1] // 50, "times_the_half": 1.0},
        bulk | {"subscriptions": SIZES[1], "times_the_half": 1.0},
        sweep | {"runs": RUNS // 4, "ratio": 1.0},
        sweep | {"runs": RUNS, "ratio": 1.0},
    ]
    assert [row["met"] for row in verdicts(rows)] == [None, False, None, None, True, None, False]
    assert all(row["measured"] for row in verdicts(rows))


def test_first_uses_are_judged_by_what_they_are_meant_to_cost() -> None:
    rows: list[dict[str, object]] = [
        {"case": "first use, engine: covering", "engine": "compiler", "cpu_seconds": 44.0},
        {"case": "first use, engine: simple", "engine": "compiler", "cpu_seconds": 46.0},
        {"case": "first use, covering: kdtree", "engine": "compiler", "cpu_seconds": 21.0},
        {"case": "another row", "engine": "simpy"},
    ]
    assert [row["met"] for row in first_use.verdicts(rows)] == [True, False, False]
    assert verdicts(rows) == []


def test_every_family_of_parts_can_be_used_for_the_first_time() -> None:
    parts = first_use.parts(quick=False)
    cheap = [("engine", "simple"), ("covering", "scan"), ("boxes", "scan"), ("predicates", "scan"), ("places", "scan")]
    assert {family for family, _ in parts} == {family for family, _ in cheap}
    for family, name in set(cheap) & set(parts):
        assert first_use.use(family, name) > 0.0


def test_event_traffic_and_the_full_scale_run_are_judged() -> None:
    for engine, rate in events.RATES.items():
        traffic = {"case": "event traffic, simple", "engine": engine, "messages_per_s": rate, **AT_FULL_SIZE}
        slow, small = {"messages_per_s": rate - 1}, {"subscriptions": SUBSCRIPTIONS // 10}
        found = events.verdicts([traffic, traffic | slow, traffic | small])
        assert [row["met"] for row in found] == [True, False, None]
    full = {"case": "full scale", "engine": "compiled", "seconds": 300.0, "oracle_seconds": 90.0, "peak": 7e9}
    full |= {"missed": 0, "duplicates": 0, "status": 0}
    assert [row["met"] for row in events.verdicts([full])] == [True] * 4
    worse = {"seconds": 400.0, "oracle_seconds": 150.0, "peak": 9e9, "duplicates": 1}
    assert [row["met"] for row in events.verdicts([full | worse])] == [False] * 4


def test_the_full_scale_run_measures_memory_of_all_its_processes() -> None:
    program = [sys.executable, "-c", "print('ready', flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert events._peak(os.getpid()) > events._peak(child.pid) > 1 << 16
        child.communicate(b"\n")
