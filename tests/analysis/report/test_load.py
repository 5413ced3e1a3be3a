"""Who is overloaded: said with the broker's name, and only of those who had no time left for long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from analysis.report.effects import Effects
from analysis.report.load import LONG, Load, in_words, loads, measured
from analysis.report.words import Sentence
from tests.analysis.report.checker import complaints
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


def found(busy: dict[int, list[float]], events: bool = True) -> tuple[Load, Effects]:
    """Of one setting."""
    summary = make([({}, {})])
    run = summary.runs["run"].iloc[0]
    effects = Effects(replace(summary, times=times(run, busy, events)))
    (load,) = loads(effects, {run: {0: "Oslo", 1: "Rome"}}, summary.order)
    return load, effects


def swept(busy: list[dict[int, list[float]]], points: list[dict[str, Any]]) -> tuple[list[Load], Effects]:
    summary = make([(keys, {}) for keys in points])
    frames = [times(run, of) for run, of in zip(summary.runs["run"], busy, strict=True)]
    effects = Effects(replace(summary, times=pd.concat(frames)))
    return loads(effects, {}, []), effects


def wrong(said: list[Sentence], effects: Effects) -> list[str]:
    return complaints(effects.summary.runs, said, effects.summary.times)


IDLE, FULL = {0: [1.0]}, {0: [10.0] * LONG}


def test_no_time_left_for_long_is_overload_with_a_name() -> None:
    load, effects = found({0: [1.0] * 6, 1: [0.0, *([10.0] * LONG), 2.0]})
    assert [stretch.name for stretch in load.overloaded] == ["Rome"]
    assert load.sentence == (
        "Rome is overloaded while events are published: it has no time left from 10 to 40 ms; at worst 0.8 messages "
        "wait, for 2 ms on average."
    )
    (said,) = in_words([load], effects)
    assert str(said) == load.sentence
    assert wrong([said], effects) == []
    assert wrong([said], found({0: [1.0] * 6, 1: [0.0, *([10.0] * (LONG + 1)), 2.0]})[1])
    assert "while control messages spread" in found({1: [10.0] * LONG}, events=False)[0].sentence


def test_short_peaks_are_none_and_gaps_end_a_stretch() -> None:
    load, effects = found({0: [10.0] * (LONG - 1) + [0.0] + [10.0] * (LONG - 1), 1: [3.0]})
    assert load.overloaded == ()
    assert load.sentence == "no broker is overloaded; the busiest is Oslo: busy 100.0 % of the time at its worst."
    assert wrong([Sentence(load.sentence, (load,))], effects) == []
    assert in_words([load], effects) == []


def test_a_bin_without_messages_is_idle() -> None:
    frame = measured(times("r", {0: [5.0, 0.0, 5.0]}))
    assert frame["utilisation"].tolist() == [0.5, 0.0, 0.5]
    assert frame["waiting"].tolist() == [2.0, 0.0, 2.0]


def test_whoever_is_overloaded_is_shown_though_its_setting_was_not_chosen() -> None:
    points = [{"overlay.brokers": number} for number in (3, 4, 5)]
    shown, effects = swept([{0: [10.0, 1.0, 10.0, 1.0, 10.0]}, FULL, IDLE], points)
    assert [[stretch.name for stretch in load.overloaded] for load in shown] == [["broker 0"]]
    (said,) = in_words(shown, effects)
    assert str(said) == "While events are published, a broker is overloaded in 1 of 3 settings: brokers 4 (broker 0)."
    assert wrong([said], effects) == []
    assert in_words([], effects) == []


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        ("1x 1y 1z 2x 2y 2z", "in each of the 6 settings"),
        ("1x 1y 1z 2x 2y", "in 5 of 6 settings: always with overlay kind x and y; always with brokers 1"),
        (
            "1x 1y 1z 2x",
            "in 4 of 6 settings: "
            "x, brokers 1 (broker 0); y, brokers 1 (broker 0); z, brokers 1 (broker 0); x, brokers 2 (broker 0)",
        ),
        ("1x 1y 2x 2y 1w 2w", "in 6 of 8 settings: always with overlay kind w, x and y; never with overlay kind z"),
    ],
)
def test_where_brokers_are_overloaded_is_told_level_by_level(full: str, expected: str) -> None:
    kinds = sorted({*"xyz", *full} - {*"12 "})
    points = [{"overlay.brokers": number, "overlay.kind": kind} for number in (1, 2) for kind in kinds]
    busy = [FULL if f"{point['overlay.brokers']}{point['overlay.kind']}" in full else IDLE for point in points]
    shown, effects = swept(busy, points)
    (said,) = in_words(shown, effects)
    assert str(said) == f"While events are published, a broker is overloaded {expected}."
    assert wrong([said], effects) == []
    other = [FULL if of is IDLE else IDLE for of in busy[:1]]
    assert wrong([said], swept([*other, *busy[1:]], points)[1]), "the first one has changed"
