"""The pictures of a study in print: one per workload and place, and names that lie on nothing else."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.report.figures import points
from analysis.report.print_style import LETTER
from analysis.report.study import study
from analysis.report.study_figures import GAP, LINE, SIDES, _named, _ticks, study_figures
from tests.analysis.report.summaries import made, search, sweep

WIDTH = 237.6


def test_a_chart_per_workload_and_place() -> None:
    points_of_stores = [
        search("auto", 1.0, 90.0, trips=1.0),
        search("bigmin", 2.0, 90.0, trips=20.0),
        *(search("zorder-emulated", 9.0, 90.0 + e, trips=9.0 - e, epsilon=e) for e in (0.0, 0.01, 0.1, 0.2, 0.3, 0.5)),
    ]
    figures = study_figures(study(made(points_of_stores)), points("3.3in"))
    assert [figure.name for figure in figures] == [
        "saving-kept-against-the-cost-of-searching-in-memory-all",
        "saving-kept-against-lookups-sorted-keys-only-all",
        "covers-found-against-lookups-sorted-keys-only-all",
    ]
    memory, kept, _ = figures
    assert len(memory.data) == 8
    assert set(kept.data["name"]) >= {"exact (bigmin)", "zorder-emulated, ε = 0.1 of the volume"}
    assert "exact (auto)" not in set(kept.data["name"]), "it cannot live in a store"
    assert "5 seeds" in kept.caption
    drawn = json.dumps(kept.spec, ensure_ascii=False)
    assert "ε = 0.1 of the volume" in drawn
    assert "datum.front" in drawn, "the caption speaks of it"


def test_no_chart_of_nothing() -> None:
    assert study_figures([], WIDTH) == []
    assert len(study_figures(study(made(sweep(0.2, 100.0))), WIDTH)) == 1


@pytest.mark.parametrize("messages", [90.0, 80.0], ids=["everything", "more"])
def test_searches_that_all_keep_everything_are_drawn(messages: float) -> None:
    (figure,) = study_figures(study(made(sweep(0.2, messages))), WIDTH)
    domain = figure.spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert domain == pytest.approx([0.8, 1.02])
    assert all(dot["y"] > 0 and dot["low"] == dot["high"] for dot in figure.data.to_dict("records"))


def dot(x: float, y: float, front: bool, name: str) -> dict[str, Any]:
    ends = {"low": y, "high": y, "xlow": x, "xhigh": x}
    return {"series": "budget", "name": name, "label": name, "kind": "measured", "x": x, "y": y, **ends, "front": front}


@given(
    st.lists(
        st.tuples(st.floats(1, 1000), st.floats(0, 1), st.booleans(), st.integers(1, 4000)), min_size=2, max_size=12
    )
)
def test_names_lie_on_no_dot_and_on_no_other_name(drawn: list[tuple[float, float, bool, int]]) -> None:
    rows = [dot(x, y, front, f"budget {number}") for x, y, front, number in drawn]
    found = _named(rows, (0.5, 2000.0), (0.0, 1.1), WIDTH).to_dict("records")
    x = {i: 0.86 * WIDTH * _log(row["x"]) for i, row in enumerate(rows)}
    y = {i: 150 * (1.1 - row["y"]) / 1.1 for i, row in enumerate(rows)}
    names = {i: _box(row, x[i], y[i]) for i, row in enumerate(found) if row["at"]}
    for one, other in combinations(names, 2):
        assert _apart(names[one], names[other])
    for i, box in names.items():
        assert box[0] >= 0
        assert box[2] <= WIDTH
        others = [j for j in x if j != i]
        assert all(_apart(box, (x[j] - GAP, y[j] - GAP, x[j] + GAP, y[j] + GAP)) for j in others)


def _log(value: float) -> float:
    return math.log(value / 0.5) / math.log(2000 / 0.5)


def _box(row: dict[str, Any], h: float, v: float) -> tuple[float, float, float, float]:
    """Where Vega draws the name, by what the chart tells it."""
    _, _, align, dx, dy = SIDES[row["at"]]
    long = LETTER * len(row["label"])
    left = h + dx - {"left": 0.0, "center": long / 2, "right": long}[align]
    return left, v + dy - LINE / 2, left + long, v + dy + LINE / 2


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    close = 1e-6
    return any(
        a >= b - close for a, b in ((one[0], other[2]), (other[0], one[2]), (one[1], other[3]), (other[1], one[3]))
    )


def test_a_name_with_room_is_there() -> None:
    found = _named(
        [dot(10.0, 0.5, True, "budget 64"), dot(500.0, 0.9, False, "budget 512")], (0.5, 2000), (0, 1.1), WIDTH
    )
    assert [*found["at"]] == ["right", "left"]


@pytest.mark.parametrize(
    ("least", "most", "ticks"), [(0.15, 3, [0.2, 0.5, 1, 2]), (3, 400, [10, 100]), (8, 60, [10, 20, 50])]
)
def test_ticks_are_round(least: float, most: float, ticks: list[float]) -> None:
    assert _ticks(least, most) == pytest.approx(ticks)
