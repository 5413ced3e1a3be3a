"""The table people read first: its columns, its order, its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis import notebook
from analysis.report.cards import cards, truth_card
from analysis.report.findings import same_everywhere
from analysis.report.numbers import number_text, value_text
from analysis.report.page_data import dimensions_of
from analysis.report.sentences import about_sweep
from analysis.report.summary import FILES, load, point_title
from analysis.report.table import table
from coverlay import CoverlayError
from tests.analysis.report.summaries import make, with_counts

NAN = float("nan")


def test_rows_go_from_most_to_least_state_and_then_by_epsilon() -> None:
    summary = make(
        [
            ({"routing.strategy": "covering", "covering.epsilon": 0.3}, {}),
            ({"routing.strategy": "covering", "covering.epsilon": 0.0}, {}),
            ({"routing.strategy": "covering", "covering.epsilon": 0.05}, {}),
            ({"routing.strategy": "simple"}, {}),
            ({"routing.strategy": "flooding"}, {"entries": 0}),
        ]
    )
    shown = table(summary)
    assert [row[:2] for row in shown.rows] == [
        ("flooding", "–"),
        ("simple", "–"),
        ("covering", "0 (exact)"),
        ("covering", "0.05"),
        ("covering", "0.3"),
    ]
    assert shown.headers[:3] == ("strategy", "ε", "table entries")
    assert len({len(row) for row in shown.rows} | {len(shown.headers)}) == 1


def test_other_swept_keys_get_a_column_and_sort_as_numbers() -> None:
    summary = make([({"overlay.brokers": n}, {"entries": n}) for n in (100, 9, 20)])
    shown = table(summary)
    assert shown.headers[:4] == ("strategy", "ε", "overlay.brokers", "table entries")
    assert [row[2] for row in shown.rows] == ["9", "20", "100"]
    assert shown.columns[2].numeric


def test_a_key_with_one_value_is_no_column() -> None:
    summary = make(
        [
            ({"routing.strategy": "simple"}, {}),
            ({"routing.strategy": "covering", "covering.method": "scan"}, {}),
        ]
    )
    assert "covering.method" not in table(summary).headers
    assert [point_title(summary, point) for point in summary.order] == ["simple", "covering exact"]


def test_cells_show_means_and_on_demand_intervals() -> None:
    other = {"entries": 1.0, "recall": 0.5, "probes_per_check": float("nan")}
    summary = make([({}, {"entries": 12340.0, "reduction": 0.876, "missed": 0.0}), ({"overlay.brokers": 9}, other)])
    plain = dict(zip(table(summary).headers, table(summary).rows[0], strict=True))
    assert plain["table entries"] == "12,340"
    assert plain["less than simple"] == "87.6 %"
    assert plain["recall"] == "–"
    assert plain["missed"] == "0"
    assert "probes/check" not in plain, "a column that nobody has a value for"
    quoted = table(summary, intervals=("entries", "reduction")).rows[0]
    assert "12,340 ± 1,234" in quoted
    assert "87.6 % ± 8.8 points" in quoted


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (NAN, "ms", "–"),
        (None, "ms", "–"),
        (0.0, "ms", "0"),
        (3.14159, "ms", "3.14"),
        (250.4, "ms", "250"),
        (1.77e13, "probes", "1.77×10¹³"),
        (1.0, "share", "100.0 %"),
    ],
)
def test_numbers(number: float | None, unit: str, text: str) -> None:
    assert number_text(number, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1e-7, "1e-07"), (0.12345678, "0.12345678"), ([1, 2], "[1, 2]"), ("x", "x")],
)
def test_swept_values_are_shown_without_loss(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_a_key_that_only_some_points_of_a_strategy_have_is_shown() -> None:
    values = {"entries": 1.0}
    plain = {"routing.strategy": "covering"}
    points = [(plain, values), ({**plain, "routing.mode": "active"}, values)]
    assert make(points).other_swept == ["routing.mode"]


def test_a_line_is_named_by_a_key_that_only_some_points_have() -> None:
    strategies = [{"routing.strategy": name} for name in ("simple", "covering")]
    advertised = {"routing.strategy": "covering", "routing.advertisements": "covering"}
    summary = make([(keys, {"entries": 9.0}) for keys in (*strategies, advertised)])
    named = {d["name"]: d for d in dimensions_of(summary)}
    assert named["routing.advertisements"]["of"] == {json.dumps(advertised, sort_keys=True): "covering"}
    assert named["routing.advertisements"]["said"] == "advertisements "
    assert named["strategy"]["said"] == ""


def test_epsilon_is_that_of_every_strategy_that_searches() -> None:
    points = [{"routing.strategy": "hierarchical", "covering.epsilon": epsilon} for epsilon in (0.0, 0.1)]
    costs = [{"check_time": 9.0, "probes_per_check": 9.0, "entries": 9.0}, {"check_time": 1.0, "entries": 9.5}]
    summary = make(list(zip(points, costs, strict=True)))
    assert notebook.table(summary)["epsilon"].tolist() == [0.0, 0.1]
    assert [point_title(summary, point) for point in summary.order] == ["hierarchical exact", "hierarchical ε=0.1"]
    (advised,) = notebook.advice(summary)["search"]
    assert advised == "ε = 0.1"


def test_the_card_about_truth_says_what_it_covers_and_is_green_only_without_losses() -> None:
    def card(**counts: float) -> tuple[str, str, str]:
        found = truth_card(with_counts(make([({}, {}), ({"overlay.brokers": 9}, {})]), **counts))
        return found["figure"], found["text"], found["tone"]

    checked = "200 deliveries checked against the oracle: "
    assert card() == ("All correct", f"{checked}none missed, doubled or spurious", "good")
    kept = f"{checked}none doubled or spurious, none missed"
    assert card(missed_fault=2) == ("4 lost", f"{kept} after repair; 4 lost during faults", "warn")
    words = "2 lost to full queues, 6 while subscriptions were on their way"
    both = card(missed_dropped=1, missed_transient=3)
    assert both == ("8 lost", f"{kept} once the network had settled; {words}", "warn")
    sampled = "200 deliveries, those of 25 % of the events (run.sample_oracle), checked against the oracle: "
    assert card(judged_share=0.25) == ("All correct", f"{sampled}none missed, doubled or spurious", "good")
    assert card(strays=1, missed_fault=2) == ("2 wrong", f"{checked}stray events", "bad")


def test_events_that_nobody_judged_are_not_called_correct() -> None:
    summary = with_counts(make([({}, {})]), judged_share=0.0)
    assert truth_card(summary)["figure"] == "Not checked"
    assert about_sweep(summary)[-1] == "None of 100 deliveries was checked: run.sample_oracle chose no event."


def test_recall_that_was_not_asked_is_nowhere_a_number() -> None:
    """Of two budgets one was not compared with exact covering; only exact rows have a recall of 100 %."""
    exact = {"recall": 1.0, "entries": 10.0, "reduction": 0.9}
    rough = {"entries": 12.0, "reduction": 0.88}
    key = {"covering.epsilon": NAN, "covering.recall": False}
    points = [({}, exact), ({**key, "covering.budget": 8}, rough), ({**key, "covering.budget": 16}, rough)]
    summary = with_counts(make(points))
    shown = table(summary)
    assert shown.headers.count("recall") == 1
    assert [row[shown.headers.index("recall")] for row in shown.rows] == ["100.0 %", "–", "–"]
    assert not [card for card in cards(summary) if "covers" in card["text"]]
    assert same_everywhere(summary, ["recall"]).endswith("recall of covering (100.0 %, where it is known).")
    asked = with_counts(make([*points[:2], (points[2][0], {**rough, "recall": 0.7})]))
    (card,) = [card for card in cards(asked) if "covers" in card["text"]]
    assert card["figure"] == "70.0 %"
    assert "at worst where it is known, in 1 of 2 settings" in card["text"]


def test_simple_routing_saves_nothing_against_itself_and_that_is_no_figure() -> None:
    simple = {"routing.strategy": "simple"}
    alone = with_counts(make([(simple, {"reduction": 0.0})]))
    assert not [card for card in cards(alone) if "fewer table entries" in card["text"]]
    both = with_counts(make([(simple, {"reduction": 0.0}), ({}, {"reduction": 0.7})]))
    (card,) = [card for card in cards(both) if "fewer table entries" in card["text"]]
    assert card["figure"] == "70.0 %"


def test_simple_routing_is_compared_within_its_own_trees() -> None:
    """On an overlay with cycles simple routing may have been run in one tree and in a tree per source."""
    many, few = {"entries": 900.0, "reduction": 0.0}, {"entries": 100.0, "reduction": 0.0}
    covered = ({"routing.strategy": "covering", "routing.trees": "spanning"}, {"entries": 60.0, "reduction": 0.4})
    elsewhere = ({"routing.strategy": "simple", "routing.trees": "per-source"}, many)
    beside = ({"routing.strategy": "simple", "routing.trees": "spanning"}, few)
    said = about_sweep(with_counts(make([covered, elsewhere, beside])))[0]
    assert "keep 100 routing entries in all. With exact covering (trees spanning) they keep 60: 40.0 %" in said
    alone = about_sweep(with_counts(make([covered, elsewhere])))[0]
    assert "60 entries in all, 40.0 % fewer than simple routing would need" in alone


def test_results_that_lack_a_table_are_not_analysed_yet(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match=r"has not been analysed yet; run `coverlay analyze"):
        load(tmp_path)
    (tmp_path / "results").mkdir()
    for name in FILES.values():
        (tmp_path / "results" / f"{name}.parquet").touch()
    (tmp_path / "results" / "broker_times.parquet").unlink()
    with pytest.raises(CoverlayError, match=r"yet, or by another version: .* lacks broker_times\.parquet"):
        load(tmp_path)
