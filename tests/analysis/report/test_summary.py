"""The table people read first: its columns, its order, its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis import notebook
from analysis.report.effects import Effects
from analysis.report.numbers import number_text, value_text
from analysis.report.summary import FILES, Summary, load
from analysis.report.table import alike, answering, table, table_metrics
from analysis.report.truth import about_truth, truth_card
from coverlay import CoverlayError
from tests.analysis.report.checker import complaints
from tests.analysis.report.summaries import make, with_counts

NAN = float("nan")


def shown(summary: Summary, **options: Any) -> Any:
    return table(Effects(summary), table_metrics(summary), **options)


def titles(summary: Summary) -> list[str]:
    effects = Effects(summary)
    return [effects.title(point) for point in summary.order]


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
    found = shown(summary)
    assert [row[:2] for row in found.rows] == [
        ("flooding", "none"),
        ("simple routing", "–"),
        ("exact covering", "–"),
        ("covering, ε = 0.05 of the volume", "–"),
        ("covering, ε = 0.3 of the volume", "–"),
    ]
    assert found.headers[:2] == ("routing", "table entries")
    assert len({len(row) for row in found.rows} | {len(found.headers)}) == 1


def test_swept_numbers_get_a_column_and_sort_as_numbers() -> None:
    found = shown(make([({"overlay.brokers": n}, {"entries": n}) for n in (100, 9, 20)]))
    assert found.headers[:2] == ("brokers", "table entries")
    assert [row[0] for row in found.rows] == ["9", "20", "100"]
    assert found.columns[0].numeric


def test_a_method_is_named_only_where_it_tells_settings_apart() -> None:
    scanned = {"routing.strategy": "covering", "covering.method": "scan"}
    points = [({"routing.strategy": "simple"}, {}), (scanned, {})]
    assert titles(make(points)) == ["simple routing", "exact covering"]
    assert titles(make([*points, ({**scanned, "covering.method": "packed"}, {})])) == [
        "simple routing", "exact covering (packed)", "exact covering (scan)",
    ]  # fmt: skip


def test_cells_show_means_and_on_demand_intervals() -> None:
    other = {"entries": 1.0, "recall": 0.5, "probes_per_check": float("nan")}
    summary = make([({}, {"entries": 12340.0, "reduction": 0.876, "missed": 0.0}), ({"overlay.brokers": 9}, other)])
    plain = dict(zip(shown(summary).headers, shown(summary).rows[0], strict=True))
    assert plain["table entries"] == "12,340"
    assert plain["less than simple"] == "87.6 %"
    assert plain["recall"] == "–"
    assert plain["missed"] == "0"
    assert "probes/check" not in plain, "a column that nobody has a value for"
    quoted = shown(summary, intervals=("entries", "reduction")).rows[0]
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


def test_a_key_that_only_some_settings_have_is_named() -> None:
    strategies = [{"routing.strategy": name} for name in ("simple", "covering")]
    advertised = {"routing.strategy": "covering", "routing.advertisements": "covering"}
    summary = make([(keys, {"entries": 9.0}) for keys in (*strategies, advertised)])
    assert titles(summary) == ["simple routing", "covering", "covering, advertisements covering"]


def test_epsilon_is_that_of_every_strategy_that_searches() -> None:
    points = [{"routing.strategy": "hierarchical", "covering.epsilon": epsilon} for epsilon in (0.0, 0.1)]
    summary = make([(keys, {"entries": 9.0}) for keys in points])
    assert notebook.table(summary)["epsilon"].tolist() == [0.0, 0.1]
    assert titles(summary) == ["hierarchical", "hierarchical, ε = 0.1 of the volume"]


def test_what_is_the_same_everywhere_is_a_line_and_no_column() -> None:
    summary = make([({"overlay.brokers": n}, {"entries": n, "latency_p99": 9.0, "missed": 0.0}) for n in (3, 4)])
    effects, metrics = Effects(summary), ("entries", "latency_p99")
    assert answering(effects, metrics) == ["entries"]
    assert alike(effects, metrics) == "The same in every setting: latency p99 9 ms."
    wrong = make([({"overlay.brokers": n}, {"entries": n, "missed": 1.0}) for n in (3, 4)])
    assert answering(Effects(wrong), metrics) == ["missed", "entries"], "what must be 0 and is not comes first"


def test_the_card_about_truth_says_what_it_covers_and_is_green_only_without_losses() -> None:
    def card(**counts: float) -> tuple[str, str, str]:
        found = truth_card(with_counts(make([({}, {}), ({"overlay.brokers": 9}, {})]), **counts))
        return found["figure"], found["text"], found["tone"]

    checked = "200 deliveries of 2 runs checked against the oracle: "
    assert card() == ("All correct", f"{checked}none missed, doubled or spurious", "good")
    kept = f"{checked}none doubled or spurious, none missed"
    assert card(missed_fault=2) == ("4 lost", f"{kept} after repair; 4 lost during faults", "warn")
    words = "2 lost to full queues, 6 while subscriptions were on their way"
    both = card(missed_dropped=1, missed_transient=3)
    assert both == ("8 lost", f"{kept} once the network had settled; {words}", "warn")
    sampled = "200 deliveries of 2 runs, those of 25 % of the events (run.sample_oracle), checked against the oracle: "
    assert card(judged_share=0.25) == ("All correct", f"{sampled}none missed, doubled or spurious", "good")
    assert card(strays=1, missed_fault=2) == ("2 wrong", f"{checked}stray events", "bad")


def test_events_that_nobody_judged_are_not_called_correct() -> None:
    summary = with_counts(make([({}, {})]), judged_share=0.0)
    assert truth_card(summary)["figure"] == "Not checked"
    assert str(about_truth(summary)) == "None of 100 deliveries was checked: run.sample_oracle chose no event."


def test_recall_that_was_not_asked_is_nowhere_a_number() -> None:
    """Of two budgets one was not compared with exact covering; only exact rows have a recall of 100 %."""
    exact = {"recall": 1.0, "entries": 10.0, "reduction": 0.9}
    rough = {"entries": 12.0, "reduction": 0.88}
    key = {"covering.epsilon": NAN, "covering.recall": False}
    points = [({}, exact), ({**key, "covering.budget": 8}, rough), ({**key, "covering.budget": 16}, rough)]
    summary = with_counts(make(points))
    found = shown(summary)
    assert found.headers.count("recall") == 1
    assert [row[found.headers.index("recall")] for row in found.rows] == ["100.0 %", "–", "–"]
    effects = Effects(summary)
    (factor,) = effects.factors
    assert {effects.compare(factor, base, level, "recall") for level, base in factor.base.items()} == {None}
    assert alike(effects, ["recall"]) == "The same in every setting: recall of covering 100.0 %, where known."


def test_wrong_deliveries_come_with_a_warning() -> None:
    def said(**counts: float) -> str:
        summary = with_counts(make([({}, {})]), **counts)
        sentence = about_truth(summary)
        assert complaints(summary.runs, [sentence]) == []
        assert complaints(summary.runs.assign(missed_fault=7, missed=5 * (counts.get("missed", 0) > 0)), [sentence])
        return str(sentence)

    assert said().startswith("All 100 deliveries were checked one by one: none is wrong")
    assert said(missed=6) == "Do not trust this: of 100 deliveries, 6 were missing, doubled or wrong."
    after = "once subscriptions had spread and repairs were done, none was missed; 2 lost during faults."
    assert said(missed_fault=2).endswith(after)
    assert said(judged_share=0.25).startswith("Of 100 deliveries those of 25 % of the events, a sample, were checked")
    assert said(deliveries=0) == "Nothing was delivered, and nobody who asked for an event went without it."
    assert truth_card(with_counts(make([({}, {})]), deliveries=0))["figure"] == "No delivery"


def test_results_that_lack_a_table_are_not_analysed_yet(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match=r"has not been analysed yet; run `coverlay analyze"):
        load(tmp_path)
    (tmp_path / "results").mkdir()
    for name in FILES.values():
        (tmp_path / "results" / f"{name}.parquet").touch()
    (tmp_path / "results" / "broker_times.parquet").unlink()
    with pytest.raises(CoverlayError, match=r"yet, or by another version: .* lacks broker_times\.parquet"):
        load(tmp_path)
