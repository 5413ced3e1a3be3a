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
