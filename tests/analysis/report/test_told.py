"""What the simulator told is read as it was written, and drawn: losses over time, a rate that was searched for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.report.answer import answer
from analysis.report.effects import Effects
from analysis.report.overlay_data import CLOSE, spread
from analysis.report.page_data import bounded
from analysis.report.told import FILE, Held, Loss, Rates, Told, read_told
from tests.analysis.report.summaries import make

STATE = "faults.state"
LOST = {"failures": 3.0, "delivery_ratio": 0.9, "outage_mean": 40.0, "repair_mean": 20.0}


def test_told_is_read_as_it_was_written_and_nonsense_is_only_a_note(tmp_path: Path) -> None:
    assert read_told(tmp_path) == Told()
    (tmp_path / FILE).write_text("{")
    lacks = "notes, stories and what was lost where are missing here"
    assert read_told(tmp_path) == Told((f"{tmp_path / FILE} is damaged or of another version: {lacks}",))
    loss = {"run": "r", "times": [[0.0, 2, 1]], "brokers": [["b", 1]], "marks": []}
    (tmp_path / FILE).write_text(json.dumps({"notes": ["n"], "stories": ["s"], "losses": [loss]}))
    assert read_told(tmp_path) == Told(("n",), ("s",), (Loss("r", ((0.0, 2, 1),), (("b", 1),), ()),))


def test_losses_are_drawn_over_time_and_lines_that_coincide_are_one() -> None:
    summary = make([({STATE: "lost"}, LOST), ({STATE: "kept"}, LOST)])
    times = ((0.0, 10, 1), (5.0, 0, 0), (10.0, 4, 4))
    losses = tuple(
        Loss(point, times, (("Paris", 4), ("Rome", 1)), ({"x": 1.0, "kind": "crash"},)) for point in summary.order
    )
    found = answer(Effects(summary), Told(losses=losses))
    (picture,) = found.pictures
    assert [row["y"] for row in picture["rows"]] == [0.1, 1.0], "a bin without events has no share"
    assert {row["series"] for row in picture["rows"]} == {"kept\u00a0= lost"}
    whose = "5 deliveries lost, of which clients of Paris 80.0 % and Rome 20.0 %."
    assert picture["lost"] == [f"kept\u00a0= lost: {whose}"]
    other = replace(losses[1], brokers=(("Rome", 5),))
    (picture,) = answer(Effects(summary), Told(losses=(losses[0], other))).pictures
    assert picture["lost"] == [f"kept: {whose}", "lost: 5 deliveries lost, of which clients of Rome 100.0 %."]


def test_a_rate_that_was_searched_is_the_answer_whatever_else_happened() -> None:
    rates = (1.0, 2.0, 4.0)
    points: list[Any] = [
        ({"arrivals.publish_rate": rate}, {**LOST, "latency_p99": 9.0, "event_load": rate / 3}) for rate in rates
    ]
    told = Told(held=Held(40.0, (Rates("2,040 events/s are held.", "{}", 2040.0, 2100.0, 2038.0, ()),), 1))
    found = answer(Effects(make(points)), told)
    assert str(found.sentences[0]) == "2,040 events/s are held."
    assert str(found.sentences[1]).startswith("One seed decides, so no number here has an interval"), "and nothing else"
    assert len(found.sentences) == 2
    assert [mark["y"] for picture in found.pictures for mark in picture["marks"]] == [40.0, 1.0]
    assert told.held is not None
    assert told.held.question.endswith("below 40 ms?")


@pytest.mark.parametrize(
    ("name", "low", "high", "seeds", "expected"),
    [
        ("entries", -5.0, 9.0, 3, (0.0, 9.0)),
        ("recall", 0.5, 1.2, 3, (0.5, 1.0)),
        ("reduction", -0.5, 0.4, 3, (-0.5, 0.4)),
        ("entries", float("nan"), float("nan"), 1, (None, None)),
    ],
)
def test_an_interval_ends_where_the_quantity_does(
    name: str, low: float, high: float, seeds: int, expected: tuple[float | None, float | None]
) -> None:
    shown = bounded({"mean": 0.3, "low": low, "high": high, "n": seeds}, name)
    assert (shown["low"], shown["high"]) == expected


def test_brokers_at_one_place_are_drawn_side_by_side() -> None:
    x, y = np.array([0.0, 0.0, 0.0, 10.0]), np.array([0.0, 0.0, 0.0, 5.0])
    apart_x, apart_y, moved = spread(x, y)
    assert moved == 2
    at = np.stack([apart_x, apart_y], axis=1)
    distances = [np.hypot(*(at[i] - at[j])) for i in range(4) for j in range(i)]
    assert min(distances) > 0.9 * CLOSE * 10
    assert (at[[0, 3]] == [[0, 0], [10, 5]]).all(), "the first at a place stays there"
