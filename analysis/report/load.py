"""Load over time: utilisation, queue and waiting of the busiest brokers; which brokers are overloaded, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from analysis.report.effects import Effects
from analysis.report.numbers import number_text
from analysis.report.summary import Summary
from analysis.spark.traces import Run

IDLE = 0.001  # of a bin; if nobody is ever busier, there is nothing to draw
FULL = 0.95  # of a bin; a broker that is busy for longer is full: it has no time left
LONG = 3  # bins; a broker that is full for this many in a row is called overloaded
MOST_BROKERS = 6  # lines in the picture

# What can be drawn over time.
MEASURES = {
    "utilisation": {"title": "busy, share of the time", "unit": "share"},
    "queue": {"title": "messages waiting, on average", "unit": "messages"},
    "waiting": {"title": "wait of a message, mean", "unit": "ms"},
}


@dataclass(frozen=True)
class Load:
    """One setting: its verdict in words, and the lines of its busiest brokers."""

    title: str
    sentence: str
    overloaded: tuple[str, ...]
    busiest: float  # share of the time that the busiest broker is busy at its worst
    lines: dict[str, list[dict[str, Any]]]  # measure → rows


def names_of(runs: Iterable[Run]) -> dict[str, dict[int, str]]:
    """The names of the brokers, by run."""
    tables = ((run.name, run.read("brokers")) for run in runs)
    return {run: dict(zip(t["broker"].to_pylist(), t["name"].to_pylist(), strict=True)) for run, t in tables}


def loads(effects: Effects, names: dict[str, dict[int, str]], shown: Collection[str]) -> list[Load]:
    """The settings in `shown` in which work takes time, and all in which a broker is overloaded, in table order.

    `names`: of brokers, by run and broker.
    """
    summary = effects.summary
    wanted = {run for run in _runs(summary) if summary.point_of[run] in shown} | may_be_overloaded(summary)
    found = {}
    for run, times in summary.times.groupby("run") if wanted else ():
        if run in wanted:
            point = summary.point_of[str(run)]
            load = _load(effects.title(point), measured(times), names.get(str(run), {}))
            if load.overloaded or point in shown:
                found[point] = load
    return [found[point] for point in summary.order if point in found]


def may_be_overloaded(summary: Summary) -> set[str]:
    """The runs in which some broker is full in LONG bins or more; `_load` checks whether they are in a row."""
    if not len(summary.times):
        return set()
    full = summary.times[summary.times["busy"] >= FULL * summary.times["width"]]
    bins = full.groupby(["run", "broker"]).size()
    return set(bins[bins >= LONG].index.get_level_values("run"))


def _runs(summary: Summary) -> set[str]:
    return set(summary.times["run"]) if len(summary.times) else set()


def in_words(found: list[Load], summary: Summary) -> list[str]:
    """Sentences for the answer if a broker is overloaded: in how many settings, and the last of them in words."""
    full = [load for load in found if load.overloaded]
    settings = len(_runs(summary))
    if not full or settings == 1:
        return [load.sentence for load in full]
    return [f"In {len(full)} of {settings} settings a broker is overloaded. With {full[-1].title}: {full[-1].sentence}"]


def worst(drawn: Sequence[Load]) -> list[Load]:
    """Those with an overloaded broker; if there are none, the one with the busiest broker."""
    return [load for load in drawn if load.overloaded] or sorted(drawn, key=lambda load: -load.busiest)[:1]


def measured(times: pd.DataFrame) -> pd.DataFrame:
    """The frame with utilisation, queue and waiting added, and rows of 0 for bins that it lacks."""
    width = float(times["width"].iloc[0])
    bins = (times["start"] / width).round().astype(int)
    pairs = product(sorted(set(times["broker"])), range(int(bins.max()) + 1))
    every = pd.DataFrame(pairs, columns=["broker", "bin"])
    known = times[["broker", "messages", "events", "waited", "queued", "busy"]].assign(bin=bins)
    frame = every.merge(known, "left", ["broker", "bin"]).fillna(0)
    frame["start"], frame["width"] = frame["bin"] * width, width
    frame["utilisation"] = (frame["busy"] / width).clip(upper=1.0)
    frame["queue"] = frame["queued"] / width
    frame["waiting"] = (frame["waited"] / frame["messages"]).fillna(0.0)
    return frame


def _load(title: str, frame: pd.DataFrame, names: dict[int, str]) -> Load:
    most = frame.groupby("broker")[["utilisation", "queue"]].max()
    worst, by_queue = (most[name].sort_values(ascending=False, kind="stable") for name in most)
    shown = [int(b) for b in dict.fromkeys([*by_queue.index[: MOST_BROKERS // 2], *worst.index])][:MOST_BROKERS]
    full: dict[str, list[tuple[int, pd.DataFrame]]] = {}  # what was going on → overloaded brokers, and when
    for broker in dict.fromkeys([*shown, *most.index[most["utilisation"] >= FULL].tolist()]):
        when = _stretch(frame[frame["broker"] == broker])
        if when is not None:
            events = 2 * when["events"].sum() >= when["messages"].sum()
            full.setdefault("events are published" if events else "control messages spread", []).append((broker, when))
    sentences = [_overloaded(doing, brokers, names) for doing, brokers in full.items()]
    if not sentences:
        busy = number_text(float(worst.iloc[0]), "share")
        who = _called(int(worst.index[0]), names)
        sentences = [f"no broker is overloaded; the busiest is {who}: busy {busy} of the time at its worst."]
    overloaded = tuple(_called(broker, names) for brokers in full.values() for broker, _ in brokers)
    return Load(title, " ".join(sentences), overloaded, float(worst.iloc[0]), _lines(frame, shown, names))


def _called(broker: int, names: dict[int, str]) -> str:
    return names.get(broker, f"broker {broker}")


def _stretch(mine: pd.DataFrame) -> pd.DataFrame | None:
    """The longest stretch of bins in which a broker is full, if it has LONG bins."""
    is_full = mine["utilisation"] >= FULL
    stretches = [part for _, part in mine[is_full].groupby((is_full != is_full.shift()).cumsum()[is_full])]
    longest = max(stretches, key=len, default=None)
    return longest if longest is not None and len(longest) >= LONG else None


def _overloaded(doing: str, brokers: list[tuple[int, pd.DataFrame]], names: dict[int, str]) -> str:
    (worst, when), others = brokers[0], [_called(broker, names) for broker, _ in brokers[1:]]
    start, end = float(when["start"].min()), float(when["start"].max() + when["width"].iloc[0])
    queue, wait = number_text(float(when["queue"].max()), "messages"), number_text(float(when["waiting"].max()), "ms")
    also = f" So {'is' if len(others) == 1 else 'are'} {', '.join(others)}." if others else ""
    return (
        f"{_called(worst, names)} is overloaded while {doing}: it has no time left from {number_text(start, 'ms')} to "
        f"{number_text(end, 'ms')} ms, with up to {queue} messages waiting for {wait} ms.{also}"
    )


def _lines(frame: pd.DataFrame, shown: list[int], names: dict[int, str]) -> dict[str, list[dict[str, Any]]]:
    def row(broker: int, start: float, value: float, unit: str) -> dict[str, Any]:
        text = number_text(value, unit) + ("" if unit == "share" else f" {unit}")
        return {"x": start, "y": float(f"{value:.5g}"), "series": _called(broker, names), "text": text}

    of = {broker: frame[frame["broker"] == broker] for broker in shown}
    return {
        measure: [
            row(broker, float(start), float(value), words["unit"])
            for broker, mine in of.items()
            for start, value in zip(mine["start"], mine[measure], strict=True)
        ]
        for measure, words in MEASURES.items()
    }
