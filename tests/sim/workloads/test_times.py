"""Times of recordings: units, dates, what looks like another unit, and what milliseconds cannot hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from coverlay import CoverlayError
from sim.experiment.plan import load
from sim.experiment.runner import simulate
from sim.workloads.tables import Table
from sim.workloads.times import in_milliseconds


def converted(times, unit="ms", until=None):
    columns = {"time": list(times)} if until is None else {"time": list(times), "until": list(until)}
    table = Table("a.csv", columns, list(range(2, 2 + len(times))))
    notes = in_milliseconds([table], unit)
    found = [[None if cell is None else float(cell) for cell in column] for column in table.columns.values()]
    return (found[0] if until is None else found), notes


@pytest.mark.parametrize(
    ("unit", "given", "milliseconds"),
    [
        ("ms", ["1.5", 2, None, 0.0], [1.5, 2.0, None, 0.0]),
        ("s", ["0.29", "0.007", 1.1, 3], [290.0, 7.0, 1100.0, 3000.0]),
        ("us", ["1500", 1, 2.5], [1.5, 0.001, 0.0025]),
        ("ns", ["1500000", 1], [1.5, 1e-6]),
    ],
)
def test_numbers_have_the_unit_that_is_set(unit, given, milliseconds):
    assert converted(given, unit) == (milliseconds, [])


def test_dates_count_from_the_earliest_in_any_file():
    subscriptions = Table("s.csv", {"time": ["2026-11-18T12:00:01Z"], "until": ["inf"]}, [2])
    events = Table("e.csv", {"time": ["2026-11-18T13:00:00.25+01:00", "2026-11-18 12:00:00.000000001Z"]}, [2, 3])
    notes = in_milliseconds([subscriptions, events], "s")
    assert subscriptions.columns == {"time": [1000.0 - 1e-6], "until": ["inf"]}
    assert events.columns["time"] == [250.0 - 1e-6, 0.0]
    assert notes == ["times count from 2026-11-18T12:00:00Z, the earliest in your files"]


def test_dates_without_a_zone_and_those_of_parquet():
    found, _ = converted(["2026-11-18", "20261118T000001", "2026-11-18T00:00:02"])
    assert found == [0.0, 1000.0, 2000.0]
    found, _ = converted([datetime(2026, 11, 18, tzinfo=UTC), pd.Timestamp("2026-11-18T00:00:00.000000007Z")])
    assert found == [0.0, 7e-6]


@pytest.mark.parametrize(
    ("read_as", "looks_like", "first"),
    [("ms", "s", 2 * 10**9), ("s", "ms", 2 * 10**12), ("ms", "us", 2 * 10**15), ("ns", "s", 2 * 10**9)],
)
def test_numbers_that_look_like_another_unit_since_1970_are_noted(read_as, looks_like, first):
    _, (note,) = converted([first, first + 6], read_as)
    assert f"({first} would be 2033-05-18)" in note
    assert note.endswith(f'workload.time_unit = "{looks_like}" changes that')
    assert converted([first], looks_like)[1] == []
    assert converted([0.0, first], read_as)[1] == [], "a recording that begins at 0 does not count from 1970"


@pytest.mark.parametrize(
    ("unit", "times", "said"),
    [
        ("ns", ["1700000000000000123"], "'1700000000000000123' ns would be rounded: .* 0.24 µs there"),
        ("ms", [2**53 + 1], "9007199254740993 ms would be rounded"),
        ("s", ["1700000000.1234567", "1700000000.1234568"], "would be the same number of milliseconds"),
        ("ms", ["2026-11-18T12:00:00.1234567891Z"], "finer than nanoseconds"),
        ("ms", ["2026-11-18T25:00:00Z"], "is not a date and time like"),
        ("ms", ["2026-11-18T12:00:00Z", "5"], "line 3, column time: '5' is no date, but a.csv, line 2 has one"),
        ("ms", ["2026-11-18T12:00:00Z", "2026-11-18T12:00:00"], "has no zone"),
        ("s", ["soon"], "line 2, column time: 'soon' is not a number; a time is a number or a date"),
        ("s", ["-1"], "'-1' must not be negative"),
    ],
)
def test_times_that_would_change_are_refused(unit, times, said):
    with pytest.raises(CoverlayError, match=said):
        converted(times, unit)


def test_epoch_seconds_last_as_long_as_they_did(tmp_path):
    (tmp_path / "s.csv").write_text("a_lo,a_hi,time,broker\n0,9,1700000000,0\n")
    (tmp_path / "e.csv").write_text("a,time,broker\n3,1700000003,0\n4,1700000006,0\n")
    (tmp_path / "mine.toml").write_text('[workload]\nsubscriptions_file = "s.csv"\nevents_file = "e.csv"\n')
    spans = {}
    for unit in ("ms", "s"):
        (run,) = load(str(tmp_path / "mine.toml"), [f"workload.time_unit={unit}", "overlay.brokers=2"]).runs
        tables, notes = simulate(run)
        came, times = (tables[name].column("time").to_pylist() for name in ("operations", "publications"))
        spans[unit] = times[-1] - came[0]
        assert any("look like seconds since 1970 (1700000000 would be 2023-11-14)" in note for note in notes) == (
            unit == "ms"
        )
    assert spans == {"ms": 6.0, "s": 6000.0}
    with pytest.raises(CoverlayError, match="time_unit = 'min': it should be 'ms', 's', 'us' or 'ns'"):
        load(str(tmp_path / "mine.toml"), ["workload.time_unit=min"])
