"""Measured figures: what every method takes at every x, per seed and way of measuring; and how they are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from sim.reproduce.rules import COUNTS, TIME

Series = Mapping[str, Mapping[float, float]]  # method → x → amount per event


@dataclass(frozen=True)
class Swept:
    """A figure: by way of measuring and seed, what every method takes per event at every x."""

    by: Mapping[str, Sequence[Series]]
    overhead: Mapping[str, float] = field(default_factory=dict)  # method → µs of a call with nothing to do

    def each(self, value: Callable[[Series], float]) -> dict[str, list[float]]:
        """What a function makes of each seed's series, by each way of measuring."""
        return {basis: [float(value(series)) for series in seeds] for basis, seeds in self.by.items()}

    def work(self, *names: str) -> tuple[str, dict[str, float]]:
        """A reason and what it rests on: operations per event at both ends of the figure, and the time of one."""
        counts, millis = self.mean(COUNTS), self.mean(TIME)
        found = {}
        for name in names:
            for x in (min(counts[name]), max(counts[name])):
                found[f"{name} at {x:,.6g}, operations"] = counts[name][x]
                found[f"{name} at {x:,.6g}, ns each"] = 1e6 * millis[name][x] / counts[name][x]
        return "work per event", found

    def mean(self, basis: str) -> Series:
        """Means over the seeds that measured a method: one that is only drawn may be missing from some."""
        found: dict[str, dict[float, float]] = {}
        for name, first in self.by[basis][0].items():
            seeds = [series[name] for series in self.by[basis] if name in series]
            found[name] = {x: sum(series[x] for series in seeds) / len(seeds) for x in first}
        return found


def saved(series: Series, slow: str, fast: str) -> float:
    """By how many per cent `fast` takes less than `slow`, mean over the points."""
    shares = [1.0 - series[fast][x] / series[slow][x] for x in series[slow]]
    return 100.0 * sum(shares) / len(shares)


def most_saved(series: Series, slow: str, fast: str) -> float:
    return 100.0 * max(1.0 - series[fast][x] / series[slow][x] for x in series[slow])


def next_best(series: Series, ours: str) -> float:
    """Mean over the points of the best other over ours; infinite where there is no other."""
    others = [t for name, t in series.items() if name != ours]
    ratios = [min((t[x] for t in others), default=inf) / series[ours][x] for x in series[ours]]
    return sum(ratios) / len(ratios)


def growth(series: Series, name: str) -> float:
    """What a method takes at the largest x over what it takes at the smallest."""
    return series[name][max(series[name])] / series[name][min(series[name])]
