"""The study of ε on sweeps whose right answer is plain to see, and the bounds that stand beside it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from analysis.report.study import BOUNDS_FILE, bound, overall, picture_rows, row_texts, study
from tests.analysis.report.test_summary import make

EPSILONS = (0.0, 0.001, 0.01, 0.1, 0.2, 0.5)
NONE = 100 * 9  # active × (brokers − 1)


def sweep(method: str, probes: list[float], messages: list[float], **keys: Any) -> list[Any]:
    """One method, one setting per value of EPSILONS."""
    return [
        (
            {"covering.method": method, "covering.epsilon": epsilon, **keys},
            {
                "probes_per_check": cost,
                "control_messages": sent,
                "entries": sent,
                "reduction": 1 - sent / NONE,
                "recall": 0.9,
                "recall_first_hop": 0.8,
                "unsubscribe_messages": 0,
                "checks": 10,
                "key_ranges": 10 * cost,
                "volume": 1 - epsilon,
            },
        )
        for epsilon, cost, sent in zip(EPSILONS, probes, messages, strict=True)
    ]


def made(points: list[Any]) -> Any:
    summary = make(points)
    summary.runs["active"], summary.runs["brokers"] = 100, 10
    summary.runs["method"] = [json.loads(point)["covering.method"] for point in summary.runs["point"]]
    return summary


CHEAP = [1000.0, 500.0, 90.0, 20.0, 10.0, 5.0]
GROWING = [90.0, 91.0, 100.0, 400.0, 600.0, 800.0]


def test_it_pays_where_a_cheap_search_keeps_nearly_all_away() -> None:
    (case,) = study(made(sweep("zorder-emulated", CHEAP, GROWING)))
    assert case.pays
    assert "Exact covering keeps 90.0 % of the messages away" in case.sentence
    assert "at ε = 0.01 keeps 98.8 % of that for 9.0 % of its own probes at ε = 0 (90 instead of 1,000" in case.sentence
    assert "Approximation pays: zorder-emulated at ε = 0.01 keeps 98.8 %" in case.sentence
    row = case.rows[2]
    assert row.messages_exact == pytest.approx(100 / 90)
    assert row.messages_none == pytest.approx(100 / NONE)
    assert row.entries_none == pytest.approx(100 / NONE)
    assert row.kept == pytest.approx((NONE - 100) / (NONE - 90))


def test_it_does_not_pay_beside_a_cheaper_exact_method() -> None:
    points = sweep("zorder-emulated", CHEAP, GROWING) + sweep("kdtree", [4.0] * 6, [90.0] * 6)
    (case,) = study(made(points))
    assert not case.pays
    assert "Exact search by kdtree takes 4 probes" in case.sentence
    assert "use exact covering" in case.sentence
    assert overall([case]).startswith("Of 1 workload, approximation pays in 0 and trades covers for probes in 0; in 1")


def test_a_trade_is_called_one() -> None:
    (case,) = study(made(sweep("zorder-emulated", [1000.0] * 3 + CHEAP[3:], GROWING)))
    assert not case.pays
    assert "What takes at most half of these keeps 61.7 % of that at best (zorder-emulated, ε = 0.1" in case.sentence
    assert "a trade" in case.sentence


def test_nothing_to_find_is_nothing_to_save() -> None:
    (case,) = study(made(sweep("zorder-emulated", CHEAP, [NONE - 1.0] + [float(NONE)] * 5)))
    assert not case.pays
    assert case.sentence.startswith("Exact covering keeps 0.11 % of the messages away. There is hardly anything to")


def test_titles_say_what_was_held_fixed() -> None:
    keys = {"workload.kind": "uniform", "workload.width": "narrow", "workload.attributes": 1}
    assert study(made(sweep("zorder-emulated", CHEAP, GROWING, **keys)))[0].title == "narrow uniform, d = 1"


def test_no_study_without_enough_epsilons_or_without_exact() -> None:
    points = sweep("zorder-emulated", CHEAP, GROWING)
    assert study(made(points[:4])) == []
    assert study(made(points[1:])) == []


def test_where_simple_routing_is_unknown_recall_stands_in() -> None:
    points = sweep("zorder-emulated", CHEAP, GROWING)
    for _, values in points:
        values["unsubscribe_messages"] = 3
    (case,) = study(made(points))
    assert math.isnan(case.rows[2].kept)
    assert not case.pays  # recall is 90 %
    assert "messages away" not in case.sentence


def test_bounds_stand_beside_curve_methods_only(tmp_path: Path) -> None:
    points = sweep("zorder-emulated", CHEAP, GROWING) + sweep("kdtree", [4.0] * 6, [90.0] * 6)
    summary = made(points)
    object.__setattr__(summary, "out", tmp_path)
    (case,) = study(summary)
    assert case.bounds == {}
    theory = {
        "family": "{}",
        "dimensions": 4,
        "bits": 8,
        "regions": 400,
        "alpha": {"low": 0, "median": 1.0, "high": 3},
        "shortest": 17.0,
        "exact_lower": 123.0,
        "exact_runs": 200.0,
        "exact_cubes": 300.0,
        "upper": {f"{e:g}": 7.0 / e for e in EPSILONS[1:]},
        "greedy": {f"{e:g}": 3.0 / e for e in EPSILONS[1:]},
    }
    (tmp_path / BOUNDS_FILE).write_text(json.dumps([theory]))
    (case,) = study(summary)
    curve = [row for row in case.rows if row.method == "zorder-emulated"]
    assert [bound(case, row) for row in curve[:3]] == [123.0, 7000.0, 700.0]
    assert all(math.isnan(bound(case, row)) for row in case.rows if row.method == "kdtree")
    assert row_texts(case, curve[2])[3:5] == ["90", "700"]
    drawn = picture_rows(case)
    assert {row["kind"] for row in drawn} == {"measured", "theory"}
    assert len([row for row in drawn if row["series"] == "upper bound on approximate search"]) == 5
