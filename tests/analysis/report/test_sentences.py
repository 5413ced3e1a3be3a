"""The plain sentences: numbers of the summary, said only where they apply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.report.cards import cards
from analysis.report.sentences import about_sweep
from analysis.report.summary import Summary

pytestmark = pytest.mark.spark


def only(summary: Summary, *strategies: str) -> Summary:
    """The same results without the other strategies."""
    runs = summary.runs[summary.runs["strategy"].isin(strategies)]
    keep = summary.points["point"].isin(set(runs["point"]))
    return replace(summary, runs=runs, points=summary.points[keep])


def test_tables_search_latency_and_truth(analysed: Summary) -> None:
    said = about_sweep(analysed)
    assert said[0].startswith("With simple routing")
    assert "16.5 routing entries in all. With exact covering they keep 4.5: 72.8 % fewer" in said[0]
    assert "covering at ε = 0.1" in said[1]
    assert "8.5 entries" in said[1]
    assert "95 % of the deliveries arrive within" in said[2]
    assert said[-1].startswith("All 12 deliveries were checked")


def test_without_simple_routing_the_settings_are_compared(analysed: Summary) -> None:
    said = about_sweep(only(analysed, "covering"))[0]
    assert said.startswith("Routing tables are smallest with exact covering: 4.5 entries")
    assert "largest with covering at ε = 0.1: 8.5" in said


def test_wrong_deliveries_come_with_a_warning(analysed: Summary) -> None:
    wrong = replace(analysed, runs=analysed.runs.assign(missed=1))
    assert about_sweep(wrong)[-1] == "Do not trust this: of 12 deliveries, 6 were missing, doubled or wrong."
    lost = replace(analysed, runs=analysed.runs.assign(missed_fault=2))
    assert about_sweep(lost)[-1].endswith("none is wrong or doubled; 12 lost during faults.")


def test_where_nothing_was_delivered_nothing_is_called_correct(analysed: Summary) -> None:
    empty = replace(analysed, runs=analysed.runs.assign(deliveries=0))
    assert about_sweep(empty)[-1] == "Nothing was delivered, and nobody who asked for an event went without it."
    assert [card["figure"] for card in cards(empty)][-1] == "No delivery"
    assert [card["figure"] for card in cards(analysed)][-1] == "All correct"
