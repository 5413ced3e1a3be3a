"""Load over time: utilisation, queue and waiting of the busiest brokers; which brokers are overloaded, in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from analysis.report.effects import Effects
from analysis.report.factors import Factor
from analysis.report.numbers import and_all, number_text
from analysis.report.summary import Summary
from analysis.report.words import MOST_NAMES, Sentence, with_factor
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
class Stretch:
    """When a broker had no time left, for LONG bins or more: its longest such time."""

    broker: int
    name: str
    start: float  # ms
    end: float
    queue: float  # at most, mean of a bin
    waiting: float  # ms, at most, mean of a bin
    events: bool  # whether most of its messages then are events

    @property
    def doing(self) -> str:
        return "events are published" if self.events else "control messages spread"


@dataclass(frozen=True)
class Load:
    """One setting (its first seed): which brokers are overloaded, and the lines of its busiest ones."""

    point: str
    title: str
    overloaded: tuple[Stretch, ...]
    busiest: str  # name of the broker that is busiest at its worst
    busy: float  # share of the time that it is busy then
    lines: dict[str, list[dict[str, Any]]]  # measure → rows

    @property
    def sentence(self) -> str:
        """By what was going on: the overloaded broker with the longest queue, and all others."""
        if not self.overloaded:
            busy = number_text(self.busy, "share")
            return f"no broker is overloaded; the busiest is {self.busiest}: busy {busy} of the time at its worst."
        return " ".join(_without_time(self.while_(doing)) for doing in _doings([self]))

    def while_(self, doing: str) -> list[Stretch]:
        return [stretch for stretch in self.overloaded if stretch.doing == doing]


@dataclass(frozen=True)
class Overloads:
    """In which settings whose load was traced a broker is overloaded while something goes on."""

    doing: str
    points: tuple[str, ...]
    among: tuple[str, ...]


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
            load = _load(point, effects.title(point), measured(times), names.get(str(run), {}))
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


def in_words(found: Sequence[Load], effects: Effects) -> list[Sentence]:
    """For the answer, if a broker is overloaded: in a sweep, in which settings; else when, and how long others wait."""
    full = [load for load in found if load.overloaded]
    runs = _runs(effects.summary)
    traced = tuple(dict.fromkeys(effects.summary.point_of[run] for run in sorted(runs)))
    if len(traced) == 1:
        return [Sentence(load.sentence, (load,)) for load in full]
    claims = [
        Overloads(doing, tuple(load.point for load in full if load.while_(doing)), traced) for doing in _doings(full)
    ]
    return [
        Sentence(f"While {claim.doing}, a broker is overloaded {_where(claim, full, effects)}.", (claim,))
        for claim in claims
    ]


def _doings(some: Sequence[Load]) -> list[str]:
    return list(dict.fromkeys(stretch.doing for load in some for stretch in load.overloaded))


def _where(claim: Overloads, full: Sequence[Load], effects: Effects) -> str:
    """The settings and their brokers if they are few; else the levels of factors with which one always or never is."""
    among, some = len(claim.among), [load for load in full if load.point in claim.points]
    words = f"in {len(some)} of {among} settings" if len(some) < among else f"in each of the {among} settings"
    if len(some) <= MOST_NAMES:
        named = (f"{load.title} ({_names(load.while_(claim.doing))})" for load in some)
        return f"{words}: {'; '.join(named)}"
    where = []
    for factor in effects.factors if len(some) < among else ():
        shares = {level: _share(claim, factor, level) for level in factor.levels}
        for share, word in ((1.0, "always"), (0.0, "never")):
            names = [factor.names[level] for level in factor.levels if shares[level] == share]
            where += [f"{word} with {with_factor(factor, and_all(names))}"] if 0 < len(names) <= MOST_NAMES else []
    return f"{words}{': ' if where else ''}{'; '.join(where)}"


def _names(stretches: Sequence[Stretch]) -> str:
    names = [stretch.name for stretch in stretches]
    more = len(names) - MOST_NAMES
    return and_all(names) if more <= 0 else and_all([*names[:MOST_NAMES], f"{more} others"])


def _share(claim: Overloads, factor: Factor, level: str) -> float:
    mine = [point in claim.points for point in claim.among if factor.of[point] == level]
    return sum(mine) / len(mine) if mine else math.nan


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


def _load(point: str, title: str, frame: pd.DataFrame, names: dict[int, str]) -> Load:
    most = frame.groupby("broker")[["utilisation", "queue"]].max()
    worst, by_queue = (most[name].sort_values(ascending=False, kind="stable") for name in most)
    shown = [int(b) for b in dict.fromkeys([*by_queue.index[: MOST_BROKERS // 2], *worst.index])][:MOST_BROKERS]
    full = most.index[most["utilisation"] >= FULL].tolist()
    stretches = (_stretch(frame[frame["broker"] == broker], names) for broker in dict.fromkeys([*shown, *full]))
    overloaded = tuple(stretch for stretch in stretches if stretch is not None)
    busiest = _called(int(worst.index[0]), names)
    return Load(point, title, overloaded, busiest, float(worst.iloc[0]), _lines(frame, shown, names))


def _called(broker: int, names: dict[int, str]) -> str:
    return names.get(broker, f"broker {broker}")


def _stretch(mine: pd.DataFrame, names: dict[int, str]) -> Stretch | None:
    """The longest time in which a broker is full, if it has LONG bins."""
    is_full = mine["utilisation"] >= FULL
    stretches = [part for _, part in mine[is_full].groupby((is_full != is_full.shift()).cumsum()[is_full])]
    when = max(stretches, key=len, default=None)
    if when is None or len(when) < LONG:
        return None
    broker = int(mine["broker"].iloc[0])
    return Stretch(
        broker,
        _called(broker, names),
        start=float(when["start"].min()),
        end=float(when["start"].max() + when["width"].iloc[0]),
        queue=float(when["queue"].max()),
        waiting=float(when["waiting"].max()),
        events=bool(2 * when["events"].sum() >= when["messages"].sum()),
    )


def _without_time(stretches: Sequence[Stretch]) -> str:
    first, others = stretches[0], [stretch.name for stretch in stretches[1:]]
    also = f" So {'is' if len(others) == 1 else 'are'} {and_all(others)}." if others else ""
    return (
        f"{first.name} is overloaded while {first.doing}: it has no time left from {number_text(first.start, 'ms')} to "
        f"{number_text(first.end, 'ms')} ms; at worst {number_text(first.queue, 'messages')} messages wait, for "
        f"{number_text(first.waiting, 'ms')} ms on average.{also}"
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
