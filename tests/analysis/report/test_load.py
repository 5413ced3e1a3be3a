"""Who is overloaded: said with the broker's name, and only of those who had no time left for long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.report.effects import Effects
from analysis.report.load import LONG, in_words, loads, measured
from analysis.report.summary import Summary
from tests.analysis.report.summaries import make

WIDTH = 10.0


def times(run: str, busy: dict[int, list[float]], events: bool = True) -> pd.DataFrame:
    """Per broker the ms it was busy in each bin; a bin with 0 has no row, as in the results."""
    rows: list[dict[str, Any]] = []
    for broker, bins in busy.items():
        for number, ms in enumerate(bins):
            if ms:
                row = {"run": run, "broker": broker, "start": number * WIDTH, "width": WIDTH, "messages": 4}
                rows.append({**row, "events": 4 * events, "waited": 8.0, "queued": 8.0, "busy": ms})
    return pd.DataFrame(rows)


def found(busy: dict[int, list[float]], events: bool = True) -> Any:
    summary = make([({}, {})])
    run = summary.runs["run"].iloc[0]
    (load,) = loads(
        Effects(replace(summary, times=times(run, busy, events))), {run: {0: "Oslo", 1: "Rome"}}, summary.order
    )
    return load


def of_one_setting(busy: dict[int, list[float]]) -> Summary:
    summary = make([({}, {})])
    return replace(summary, times=times(summary.runs["run"].iloc[0], busy))


def test_no_time_left_for_long_is_overload_with_a_name() -> None:
    busy = {0: [1.0] * 6, 1: [0.0, *([10.0] * LONG), 2.0]}
    load = found(busy)
    assert load.overloaded == ("Rome",)
    assert load.sentence.startswith(
        "Rome is overloaded while events are published: it has no time left from 10 to 40 ms"
    )
    assert "0.8 messages waiting for 2 ms" in load.sentence
    assert in_words([load], of_one_setting(busy)) == [load.sentence]
    assert "while control messages spread" in found({1: [10.0] * LONG}, events=False).sentence


def test_short_peaks_are_none_and_gaps_end_a_stretch() -> None:
    load = found({0: [10.0] * (LONG - 1) + [0.0] + [10.0] * (LONG - 1), 1: [3.0]})
    assert load.overloaded == ()
    assert load.sentence == "no broker is overloaded; the busiest is Oslo: busy 100.0 % of the time at its worst."


def test_a_bin_without_messages_is_idle() -> None:
    frame = measured(times("r", {0: [5.0, 0.0, 5.0]}))
    assert frame["utilisation"].tolist() == [0.5, 0.0, 0.5]
    assert frame["waiting"].tolist() == [2.0, 0.0, 2.0]


def test_whoever_is_overloaded_is_shown_though_its_setting_was_not_chosen() -> None:
    summary = make([({"overlay.brokers": number}, {}) for number in (3, 4, 5)])
    busy = {3: [10.0, 1.0, 10.0, 1.0, 10.0], 4: [10.0] * LONG, 5: [1.0]}
    frames = [times(run, {0: busy[3 + number]}) for number, run in enumerate(summary.runs["run"])]
    summary = replace(summary, times=pd.concat(frames))
    shown = loads(Effects(summary), {}, summary.order[2:])
    assert [load.overloaded for load in shown] == [("broker 0",), ()]
    assert in_words(shown, summary)[0].startswith("In 1 of 3 settings a broker is overloaded. With")
    assert in_words(shown[1:], summary) == []
