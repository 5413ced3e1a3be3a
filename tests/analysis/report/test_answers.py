"""The answer a page opens with: chosen by what was swept and what happened, and nothing drawn that is all the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.report.answers import ANSWERS, answer, in_general
from analysis.report.findings import Findings, differing, differs, same_everywhere
from analysis.report.overlay_data import CLOSE, spread
from analysis.report.page_data import bounded, charts_that_differ
from analysis.report.sentences import about_latency
from analysis.report.summary import Summary
from analysis.report.table import table_metrics
from analysis.report.told import Held, Loss, Told
from tests.analysis.report.summaries import make

BASE = {"entries": 100.0, "latency_p99": 9.0, "latency_p95": 8.0, "event_messages": 50.0, "deliveries": 10.0}


def sweep(*points: tuple[dict[str, Any], dict[str, float]], **columns: Any) -> Summary:
    summary = make([(keys, {**BASE, **values}) for keys, values in points])
    zero = {"active": 10, "subscriptions": 10}
    summary.runs[list({**zero, **columns})] = list({**zero, **columns}.values())
    return replace(summary, differences=pd.DataFrame(columns=["point", "baseline", "metric", "differs"]))


def kind_of(summary: Summary, told: Told | None = None) -> str:
    findings = Findings(summary, told or Told())
    return next(kind.__name__ for kind in ANSWERS if kind(findings) is not None)


LOST = {"failures": 3.0, "delivery_ratio": 0.9, "outage_mean": 40.0, "repair_mean": 20.0}
STATE = "faults.state"


CHURN = {"unsubscribe_messages": 5.0}
TREES = "routing.trees"
SWEEPS: dict[str, list[tuple[dict[str, Any], dict[str, float]]]] = {
    "after_failures": [({STATE: "lost"}, LOST), ({STATE: "kept"}, {**LOST, "delivery_ratio": 0.8})],
    "of_churn": [
        ({"arrivals.kind": "churn"}, {**CHURN, "convergence_p95": 3.0}),
        ({"arrivals.kind": "bursty"}, {**CHURN, "convergence_p95": 9.0}),
    ],
    "of_ranks": [
        ({"routing.rank": rank}, {"messages_per_event": messages, "reduction": saved})
        for rank, messages, saved in (("none", 90.0, 0.8), ("cover", 60.0, 0.6), ("skyband", 20.0, 0.2))
    ],
    "of_trees": [({TREES: "spanning"}, {"entries": 10.0}), ({TREES: "per-source"}, {"entries": 30.0})],
    "of_topology": [({"overlay.kind": kind}, {"hops": hops}) for kind, hops in (("line", 5.0), ("star", 2.0))],
    "of_growth": [({"workload.subscriptions": n}, {"entries": float(n)}) for n in (10, 20, 40)],
    "of_load": [({"arrivals.publish_rate": r}, {"latency_p99": r * 9, "event_load": r / 3}) for r in (1.0, 2.0, 4.0)],
    "of_matchers": [({"matching.method": m}, {"latency_p99": v}) for m, v in (("scan", 3.0), ("be-star", 9.0))],
    "of_routing": [
        ({"routing.strategy": "simple"}, {"entries": 9.0, "reduction": 0.0}),
        ({"routing.strategy": "covering"}, {"entries": 3.0, "reduction": 0.7}),
    ],
    "in_general": [({"links.jitter": 1.0}, {}), ({"links.jitter": 2.0}, {"latency_p99": 30.0})],
}


@pytest.mark.parametrize(("kind", "points"), SWEEPS.items())
def test_what_is_swept_chooses_the_answer(kind: str, points: list[Any]) -> None:
    summary = sweep(*points)
    assert kind_of(summary) == kind
    found = answer(Findings(summary))
    assert all(found.sentences), "no empty sentence"
    assert found.sentences
    assert found.pictures


def test_ranks_say_what_they_keep_of_the_saving_of_covering() -> None:
    words = answer(Findings(sweep(*SWEEPS["of_ranks"]))).sentences
    assert any("20 messages" in sentence and "90 messages" in sentence for sentence in words)
    assert any("rank cover keeps 75 % and rank skyband keeps 25 %" in sentence for sentence in words), words


def test_where_more_is_swept_the_least_and_the_most_of_the_saving_that_is_kept_are_told_with_their_settings() -> None:
    """Against plain covering by an exact search; the skyband has no ε and is held against the same."""

    def point(rank: str | None, k: int, epsilon: float | None, saved: float) -> tuple[dict[str, Any], dict[str, float]]:
        keys = {"routing.rank": rank, "matching.k": k, "covering.epsilon": epsilon}
        given = {key: value for key, value in keys.items() if value is not None}
        return given, {"messages_per_event": 5.0, "reduction": saved}

    points = [point(None, k, e, saved) for k in (1, 10) for e, saved in ((0.0, 0.8), (0.1, 0.5))]
    points += [point("cover", 1, 0.0, 0.6), point("cover", 10, 0.1, 0.4), point("skyband", 10, None, 0.2)]
    said = answer(Findings(sweep(*points))).sentences[-1]
    assert "rank cover keeps 50 % (epsilon = 0.1, k = 10) to 75 % (epsilon = 0, k = 1)" in said, said
    assert "rank skyband keeps 25 %" in said
    few = [point(None, 1, None, 0.8), point("cover", 1, None, 0.6), point("cover", 1, 0.1, 0.4)]
    said = answer(Findings(sweep(*few))).sentences[-1]
    assert "rank cover keeps 50 % (epsilon = 0.1) to 75 % (exact search)" in said, said
    budget = point(None, 1, float("nan"), 0.4)
    budget[0]["covering.budget"] = 8
    assert answer(Findings(sweep(budget, *few))).sentences[-1] == said, "a budget has no ε but is not exact"


def test_events_that_met_subscriptions_on_their_way_ask_how_long_settling_takes() -> None:
    found = {"missed_transient": 3.0, "entries": 9.0}
    points = [
        ({"routing.strategy": s}, {**found, "convergence_p95": v}) for s, v in (("simple", 9.0), ("covering", 5.0))
    ]
    assert kind_of(sweep(*points)) == "of_churn"


def test_a_rate_that_was_searched_is_the_answer_whatever_else_happened() -> None:
    rates = (1.0, 2.0, 4.0)
    points = [({"arrivals.publish_rate": rate}, {**LOST, "latency_p99": 9.0, "event_load": rate / 3}) for rate in rates]
    assert kind_of(sweep(*points)) == "after_failures"
    told = Told(held=Held(40.0, ("2,040 events/s are held.",)))
    assert kind_of(sweep(*points), told) == "of_capacity"
    found = answer(Findings(sweep(*points), told))
    assert found.sentences == ("2,040 events/s are held.",)
    assert [mark["y"] for picture in found.pictures for mark in picture["marks"]] == [40.0, 1.0]
    assert told.held is not None
    assert told.held.question.endswith("below 40 ms?")


def test_from_which_rate_on_a_broker_is_full() -> None:
    points = [
        ({"arrivals.publish_rate": rate}, {"latency_p99": 9 * rate, "latency_p50": rate, "event_load": rate / 2})
        for rate in (0.5, 1.0, 2.2)
    ]
    within = "99 % of the deliveries arrive within 4.5 ms at 500 events/s and within 19.8 ms at 2,200"
    assert answer(Findings(sweep(*points))).sentences == (
        f"{within}; at 2,200 events/s, not yet at 1,000, a broker has more work than time: "
        "its queue grows for as long as events come.",
    )
    below = answer(Findings(sweep(*[(p, {**v, "event_load": 0.25}) for p, v in points]))).sentences
    assert below == (f"{within}; the busiest broker has work for at most 25.0 % of the time in which events come.",)
    # Drawn closer together than the rate says, which is one that is held.
    bursts = [(p, {**v, "event_load": 1.3, "event_rate_held": 2500.0}) for p, v in points]
    assert "130" in answer(Findings(sweep(*bursts))).sentences[0]
    assert "grows" not in answer(Findings(sweep(*bursts))).sentences[0]
    ways = ("bursty", "poisson")
    both = [({**p, "arrivals.publishing": way}, v) for way in ways for p, v in points]
    assert [words.split(": ")[0] for words in answer(Findings(sweep(*both))).sentences] == [
        f"With publishing {way}" for way in ways
    ]


def test_one_setting_or_several_that_are_alike_have_an_answer_too() -> None:
    settled = "95 % of the subscriptions have settled within: 3 ms"
    churn = {**CHURN, "convergence_p95": 3.0}
    ways = [({"arrivals.kind": kind}, churn) for kind in ("churn", "bursty")]
    assert answer(Findings(sweep(*ways))).sentences[0] == f"{settled}, in every setting."
    assert answer(Findings(sweep(*ways[:1], active=1))).sentences[0] == f"{settled}."
    overlays = [({"overlay.kind": kind}, {}) for kind in ("line", "star")]
    assert answer(Findings(sweep(*overlays))).sentences[0].startswith("The same in every setting: ")


def test_growth_is_told_with_the_setting_it_is_of_and_each_unit_once() -> None:
    points = [
        ({"routing.strategy": strategy, "overlay.brokers": n}, {"entries": n * factor, "latency_p99": 9.0})
        for strategy, factor in (("simple", 4.0), ("covering", 2.0))
        for n in (5, 10, 20)
    ]
    said = answer(Findings(sweep(*points))).sentences[0]
    assert said == "Routing-table entries (with strategy covering): 10 at brokers 5, 40 at 20 (4 times as many)."
    alone = answer(Findings(sweep(({}, {"probes_per_check": 43.6})))).sentences[0]
    assert alone.endswith("event messages: 50; probes per check: 43.6.")


def test_one_baseline_for_trees() -> None:
    summary = sweep(
        ({"routing.trees": "spanning", "routing.strategy": "simple"}, {"entries": 50.0, "hops": 4.0}),
        ({"routing.trees": "per-source", "routing.strategy": "simple"}, {"entries": 200.0, "hops": 2.0}),
        ({"routing.trees": "spanning", "routing.strategy": "covering"}, {"entries": 20.0, "hops": 4.0}),
        ({"routing.trees": "per-source", "routing.strategy": "covering"}, {"entries": 90.0, "hops": 2.0}),
    )
    words = answer(Findings(summary)).sentences
    assert "keep 20 entries; a tree per source takes 90 entries, 4.5 times as many" in words[0]
    assert "over 2 links instead of 4" in words[1]


def test_matchers_are_ranked_by_the_rate_they_hold_where_tables_are_largest_and_smallest() -> None:
    held = {(30, "scan"): 90.0, (30, "auto"): 60.0, (60, "scan"): 45.0, (60, "auto"): 60.0}
    held |= {(300, "scan"): 10.0, (300, "auto"): 40.0}
    points = [
        ({"workload.subscriptions": n, "matching.method": m}, {"event_rate_held": rate, "latency_p99": 100 / rate})
        for (n, m), rate in held.items()
    ]
    found = answer(Findings(sweep(*points, brokers=3)))
    assert found.metrics == ("event_rate_held", "latency_p99")
    assert [(p["kind"], p["key"]) for p in found.pictures] == 2 * [("lines", "workload.subscriptions")]
    assert found.sentences[:4] == (
        "With 100 subscriptions per broker: auto holds 40 events/s, scan 10 events/s.",
        "So auto holds 4 times as many as scan, and 99 % of the deliveries arrive within 2.5 ms instead of 10 ms.",
        "With 10 subscriptions per broker: scan holds 90 events/s, auto 60 events/s.",
        "So scan holds 1.5 times as many as auto, and 99 % of the deliveries arrive within 1.11 ms instead of 1.67 ms.",
    )
    only = sweep(*points[4:])
    assert answer(Findings(only)).sentences[0] == "auto holds 40 events/s, scan 10 events/s."


def test_growth_says_by_how_much() -> None:
    summary = sweep(*(({"overlay.brokers": n}, {"entries": 3.0 * n}) for n in (10, 20, 40)))
    assert answer(Findings(summary)).sentences[0] == (
        "Routing-table entries: 30 at brokers 10, 120 at 40 (4 times as many)."
    )


def test_what_is_the_same_everywhere_is_a_sentence_and_no_picture() -> None:
    summary = sweep(
        ({"routing.strategy": "simple"}, {"entries": 9.0}), ({"routing.strategy": "covering"}, {"entries": 3.0})
    )
    drawn, alike = charts_that_differ(summary)
    assert [chart["title"] for chart in drawn] == ["Table size"]
    assert "latency, 99th percentile (9 ms)" in alike
    assert same_everywhere(summary, ["entries"]) == ""
    assert not differs(summary, "latency_p99")
    only = sweep(({}, {}))
    assert charts_that_differ(only) == ([], "")
    assert "latency, 99th percentile: 9 ms" in in_general(Findings(only)).sentences[0]


def test_a_metric_that_repeats_another_is_not_drawn_again() -> None:
    twice = [{"entries": count, "control_messages": count} for count in (9.0, 3.0)]
    points = zip(({"routing.strategy": "simple"}, {"routing.strategy": "covering"}), twice, strict=True)
    assert differing(sweep(*points), ("entries", "control_messages", "latency_p99")) == ("entries",)


def test_columns_that_answer_come_first_and_p99_is_there() -> None:
    summary = sweep(({STATE: "lost"}, {**LOST, "missed_fault": 2.0}), ({STATE: "kept"}, LOST))
    columns = table_metrics(summary, answer(Findings(summary)).metrics)
    assert columns[:4] == ("delivery_ratio", "missed_fault", "outage_mean", "repair_mean")
    assert "latency_p99" in columns
    assert len(set(columns)) == len(columns)


def test_how_much_smaller_tables_are_is_said_beside_their_size() -> None:
    together = ("entries", "reduction", "pruned", "latency_p99", "latency_p95", "check_time")
    columns = table_metrics(sweep(({}, dict.fromkeys(together, 0.5))), ("entries", "latency_p99", "check_time"))
    assert columns[:6] == together


def test_losses_are_drawn_over_time_and_lines_that_coincide_are_one() -> None:
    summary = sweep(({STATE: "lost"}, LOST), ({STATE: "kept"}, LOST))
    times = ((0.0, 10, 1), (5.0, 0, 0), (10.0, 4, 4))
    losses = tuple(
        Loss(point, times, (("Paris", 4), ("Rome", 1)), ({"x": 1.0, "kind": "crash"},)) for point in summary.order
    )
    found = answer(Findings(summary, Told(losses=losses)))
    (picture,) = found.pictures
    assert [row["y"] for row in picture["rows"]] == [0.1, 1.0], "a bin without events has no share"
    assert len({row["series"] for row in picture["rows"]}) == 1
    assert "state kept) = " in picture["rows"][0]["series"]
    assert "With " in found.sentences[-1], "of which setting it is said"
    assert "Paris lost most (80.0 % of all that was lost), then those of Rome (20.0 %)" in found.sentences[-1]


def test_what_is_nearly_the_same_is_not_called_the_same() -> None:
    """A table below shows 62.1 and 62.4 ms."""
    points = [({STATE: state}, {"latency_p95": ms, "latency_p99": 70.0}) for state, ms in (("a", 62.4), ("b", 62.1))]
    said = same_everywhere(sweep(*points), ("latency_p95", "latency_p99"))
    assert said.startswith("The same, or nearly so, in every setting: ")
    assert "(62.1 to 62.4 ms)" in said
    assert "(70 ms)" in said
    assert about_latency(sweep(*points[::-1])) == "95 % of the deliveries arrive within 62.4 ms, in every setting."
    assert same_everywhere(sweep(*points), ("latency_p99",)).startswith("The same in every setting: ")


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


def test_told_is_read_as_it_was_written_and_nonsense_is_only_a_note(tmp_path: Any) -> None:
    from analysis.report.told import FILE, read_told

    assert read_told(tmp_path) == Told()
    (tmp_path / FILE).write_text("{")
    assert read_told(tmp_path) == Told(
        (f"{tmp_path / FILE} is damaged: notes, stories and what was lost where are missing here",)
    )
    loss = {"run": "r", "times": [[0.0, 2, 1]], "brokers": [["b", 1]], "marks": []}
    (tmp_path / FILE).write_text(json.dumps({"notes": ["n"], "stories": ["s"], "losses": [loss]}))
    assert read_told(tmp_path) == Told(("n",), ("s",), (Loss("r", ((0.0, 2, 1),), (("b", 1),), ()),))
