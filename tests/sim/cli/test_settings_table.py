"""The terminal's table: whole numbers, names as wide as there is room, and no column that says nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rich.console import Console

from analysis.report.effects import Effects
from sim.cli import settings_table
from sim.cli.settings_table import LEAST_NAME, print_settings
from tests.analysis.report.test_effects import point, summary_of


def printed(capsys: pytest.CaptureFixture[str], names: list[str], entries: list[float]) -> list[str]:
    runs = {
        (point(overlay__file=name, matching__k=k), 1): {"entries": value}
        for name, value in zip(names, entries, strict=True)
        for k in (1, 2)
    }
    effects = Effects(summary_of(runs))
    begun = SimpleNamespace(effects=effects, answer=SimpleNamespace(metrics=("entries",)))
    print_settings(begun, effects.summary.order, wide=False)
    return capsys.readouterr().out.splitlines()


def test_a_short_name_leaves_its_room_to_a_long_one() -> None:
    assert settings_table._shared({0: 2, 1: 40, 2: 90}, 100) == {0: 2, 1: 40, 2: 58}
    assert settings_table._shared({0: 40, 1: 40}, 20) == {0: LEAST_NAME, 1: LEAST_NAME}


def test_numbers_are_whole_and_what_is_the_same_everywhere_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_table, "OUT", Console(width=60))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    names = ["a long name of an overlay, that takes more than a line of it", "b"]
    lines = printed(capsys, names, [1234567.0, 5.0])
    assert any(line.rstrip().endswith("1,234,567") for line in lines)
    assert max(map(len, lines[:6])) <= 60
    same = printed(capsys, ["a", "b"], [5.0, 5.0])
    assert same[0] == "The same in every setting: routing-table entries 5."
    assert same[1].startswith("In out"), "no table repeats it"


def test_all_columns_are_as_many_tables_as_it_takes_with_every_number_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    values = {"entries": 1234567.0, "control_messages": 2345678.0, "event_messages": 3456789.0, "latency_p99": 51.2}
    runs = {(point(overlay__file=name), 1): values for name in ("a name that may be broken", "another")}
    effects = Effects(summary_of(runs))
    begun = SimpleNamespace(effects=effects, answer=SimpleNamespace(metrics=tuple(values)))
    for width in (30, 60, 200):
        monkeypatch.setattr(settings_table, "OUT", Console(width=width, color_system=None))
        print_settings(begun, effects.summary.order, wide=True)
        table = capsys.readouterr().out.partition("In out")[0]
        for number in ("1,234,567", "2,345,678", "3,456,789", "51.2"):
            assert table.count(number) == 2, "a row each"
        assert max(map(len, table.splitlines())) <= width
