"""The effect of every swept factor on every metric: what sentences, cards, charts and comparisons are made from.

Two settings that differ in one factor alone are compared seed by seed, because runs of one seed share their random
numbers. This is repeated for every combination of the other factors (an effect's `parts`): an effect that depends on
them is a range, never a comparison of one combination with another. What comes of it is one of these:

- EQUAL: the same number with every seed. A tie; nobody wins it.
- CHANCE: the 95 % interval of the paired differences contains 0.
- DIFFERS: it does not.
- UNSURE: one seed, so that there is no interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.report.factors import Factor, factors_of
from analysis.report.summary import Summary, is_flooding, is_simple
from analysis.spark.metrics import CATALOGUE
from analysis.spark.statistics import quantile

EQUAL, CHANCE, DIFFERS, UNSURE = "equal", "chance", "differs", "one seed"
CLOSE = 1e-9  # relative: rounding of sums, no difference
# Flooding sends no subscriptions and keeps no tables, and simple routing searches for no covers: zeros are no success.
_OF_SEARCHES = {"probes_per_check", "check_time"}
_OF_TABLES = {
    "entries", "entries_per_broker", "entries_max", "reduction", "pruned", "control_messages", "control_per_event",
    "subscribe_messages",
    "messages_per_subscribe", "convergence_mean", "convergence_p95", *_OF_SEARCHES,
}  # fmt: skip
MORE_IS_BETTER = {"recall", "recall_first_hop", "reduction", "delivery_ratio", "event_rate_held", "topk_overlap"}

Floats = NDArray[np.float64]


def lacks(labels: Mapping[str, Any], metric: str) -> bool:
    """Whether a way to route has no such thing; its 0 would look like a success."""
    return metric in _OF_TABLES if is_flooding(labels) else metric in _OF_SEARCHES and is_simple(labels)


@dataclass(frozen=True)
class Paired:
    """The differences between two settings over the seeds that both have."""

    rest: str  # the values of all other factors, as JSON
    n: int
    base: float  # means over these seeds
    value: float
    half: float  # of the 95 % interval of the mean difference; NaN for one seed
    equal: bool  # with every seed

    @classmethod
    def of(cls, rest: str, base: Floats, value: Floats) -> Paired | None:
        """From a value per seed on both sides; None if no seed has both."""
        both = ~(np.isnan(base) | np.isnan(value))
        n = int(both.sum())
        if n == 0:
            return None
        one, other = base[both], value[both]
        apart = other - one
        half = quantile(n - 1) * float(apart.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        equal = bool(np.allclose(one, other, rtol=CLOSE, atol=0))
        return cls(rest, n, float(one.mean()), float(other.mean()), half, equal)

    @classmethod
    def unpaired(cls, rest: str, base: Floats, value: Floats) -> Paired | None:
        """Of other seeds on each side: Welch's interval, which is wider."""
        one, other = base[~np.isnan(base)], value[~np.isnan(value)]
        n = min(len(one), len(other))
        if n == 0:
            return None
        half = math.nan
        if n > 1:
            parts = [float(of.var(ddof=1)) / len(of) for of in (one, other)]
            squares = sum(part**2 / (len(of) - 1) for part, of in zip(parts, (one, other), strict=True))
            degrees = max(1, int(sum(parts) ** 2 / squares)) if squares else n - 1
            half = quantile(degrees) * math.sqrt(sum(parts))
        return cls(
            rest, n, float(one.mean()), float(other.mean()), half, bool(n > 1 and half == 0 and one[0] == other[0])
        )

    @property
    def difference(self) -> float:
        return self.value - self.base

    @property
    def verdict(self) -> str:
        if self.equal:
            return EQUAL
        if self.n == 1:
            return UNSURE
        return DIFFERS if abs(self.difference) > self.half else CHANCE

    @property
    def low(self) -> float:
        """Of the interval of the value, as far as it differs from the base."""
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    @property
    def change(self) -> float:
        """The difference as a share of the base; NaN where that is 0."""
        return self.difference / abs(self.base) if self.base else math.nan


@dataclass(frozen=True)
class Effect:
    """One level of a factor against another, on one metric: a part per combination of the other factors."""

    factor: Factor
    base: str
    level: str
    metric: str
    parts: tuple[Paired, ...]

    @property
    def verdict(self) -> str:
        """That of all parts if they agree; DIFFERS if any differs."""
        found = {part.verdict for part in self.parts}
        return next(verdict for verdict in (DIFFERS, UNSURE, CHANCE, EQUAL) if verdict in found)

    @property
    def sure(self) -> int:
        """In how many parts it is more than chance."""
        return sum(part.verdict == DIFFERS for part in self.parts)

    def ordered(self) -> list[Paired]:
        """From the largest decrease to the largest increase: relative, or absolute if shares or zeros are compared."""
        absolute = CATALOGUE[self.metric].unit == "share" or any(part.base == 0 for part in self.parts)
        return sorted(self.parts, key=lambda part: part.difference if absolute else part.change)


@dataclass(frozen=True)
class Best:
    """The levels of a factor with the least (or most) of a metric, among some, whatever the other factors."""

    factor: Factor
    metric: str
    levels: tuple[str, ...]  # more than one: equal with every seed; none: it depends on the other factors
    among: tuple[str, ...]
    unsure: Mapping[str, tuple[float, float]]  # others that chance may have kept from it, and their means, as below
    without: tuple[str, ...]  # levels that have no such thing; see `lacks`
    shared: bool  # with levels that are equal in some combinations of the other factors, and not in all
    seeds: int  # that all have; the fewest over the combinations of the other factors
    low: float  # means of the best level over seeds, the smallest and the largest over the other factors
    high: float


@dataclass(frozen=True)
class _First:
    """The same with one combination of the other factors."""

    levels: tuple[str, ...]
    unsure: tuple[str, ...]
    means: Mapping[str, float]  # of all levels
    seeds: int


class Effects:
    """All effects of a sweep. Titles of settings are made here too, so that every part of a page calls them alike."""

    def __init__(self, summary: Summary, factors: Sequence[Factor] | None = None) -> None:
        self.summary = summary
        self.factors = factors_of(summary) if factors is None else list(factors)
        self._seeds = sorted(set(summary.runs["seed"]))
        self._frames: dict[str, dict[str, Floats]] = {}

    # ── settings ───────────────────────────────────────────────────────────────────────────────────────────

    def title(self, point: str, without: Factor | None = None) -> str:
        """A setting in words: its level of every factor, or of all but one."""
        words = [factor.names[factor.of[point]] for factor in self.factors if factor is not without]
        return ", ".join(words) or str(self.summary.labels(point)["strategy"])

    def rest(self, point: str, factor: Factor) -> str:
        """The levels of all other factors, as JSON."""
        return json.dumps([other.of[point] for other in self.factors if other is not factor])

    def rest_in_words(self, rest: str, factor: Factor) -> str:
        others = [other for other in self.factors if other is not factor]
        levels = json.loads(rest)
        return ", ".join(other.names[level] for other, level in zip(others, levels, strict=True))

    @cached_property
    def _places(self) -> dict[int, dict[tuple[str, str], str]]:
        """By factor: the point at a level and a rest."""
        return {
            id(factor): {(factor.of[point], self.rest(point, factor)): point for point in self.summary.order}
            for factor in self.factors
        }

    def rests(self, factor: Factor) -> list[str]:
        return list(dict.fromkeys(rest for _, rest in self._places[id(factor)]))

    # ── values ─────────────────────────────────────────────────────────────────────────────────────────────

    def values(self, metric: str) -> dict[str, Floats]:
        """A value per seed, by point; NaN is unknown, or says nothing."""
        if metric not in self._frames:
            runs = self.summary.runs
            wide = pd.DataFrame(index=pd.Index(self.summary.order), columns=self._seeds, dtype=float)
            if metric in runs:
                found = runs.pivot_table(index="point", columns="seed", values=metric, aggfunc="mean", dropna=False)
                wide = found.astype(float).reindex(index=self.summary.order, columns=self._seeds)
            wide.loc[[point for point in self.summary.order if lacks(self.summary.labels(point), metric)]] = math.nan
            self._frames[metric] = {point: wide.loc[point].to_numpy(np.float64) for point in self.summary.order}
        return self._frames[metric]

    def by_seed(self, metric: str, point: str) -> dict[int, float]:
        """The known values of a setting."""
        found = zip(self._seeds, self.values(metric)[point], strict=True)
        return {seed: float(value) for seed, value in found if not math.isnan(value)}

    def compare(self, factor: Factor, base: str, level: str, metric: str) -> Effect | None:
        """None if no seed has both."""
        values, places = self.values(metric), self._places[id(factor)]
        parts = []
        for rest in self.rests(factor):
            one, other = places.get((base, rest)), places.get((level, rest))
            if one is not None and other is not None:
                parts.append(Paired.of(rest, values[one], values[other]))
        found = tuple(part for part in parts if part is not None)
        return Effect(factor, base, level, metric, found) if found else None

    # ── the best ───────────────────────────────────────────────────────────────────────────────────────────

    def best(self, factor: Factor, metric: str, among: Sequence[str] = ()) -> Best | None:
        """The levels with the least in every combination of the other factors: none if it depends on these.

        None if it is unknown: a level that was not run in some combination may be the best or not.
        """
        among = tuple(among or factor.levels)
        without = tuple(level for level in among if self._lacks(factor, level, metric))
        at_rests = [self._known_at(factor, metric, among, rest) for rest in self.rests(factor)]
        found = [self._first(metric, mine) for mine in at_rests if mine]
        known = [one for one in found if one is not None]
        if len(known) < len(found) or len({tuple(one.means) for one in known}) != 1:
            return None
        here = tuple(known[0].means)
        best = tuple(level for level in here if all(level in one.levels for one in known))
        beside = (level for level in here if level not in best)
        near = [level for level in beside if all(level in (*one.levels, *one.unsure) for one in known)]
        spans = {level: [one.means[level] for one in known] for level in (*best[:1], *near)}
        ends = {level: (min(means), max(means)) for level, means in spans.items()}
        low, high = ends.pop(best[0]) if best else (math.nan, math.nan)
        shared = any(level not in best for one in known for level in one.levels)
        seeds = min(one.seeds for one in known)
        return Best(factor, metric, best, here, ends, without, shared, seeds, low, high)

    def has(self, factor: Factor, level: str, metric: str) -> bool:
        """Whether the metric is known at a level."""
        values = self.values(metric)
        return any(at == level and not np.isnan(values[point]).all() for point, at in factor.of.items())

    def _lacks(self, factor: Factor, level: str, metric: str) -> bool:
        return any(at == level and lacks(self.summary.labels(point), metric) for point, at in factor.of.items())

    def _known_at(self, factor: Factor, metric: str, among: Sequence[str], rest: str) -> dict[str, Floats]:
        """By level: the values with one combination of the other factors, where there are any."""
        places, values = self._places[id(factor)], self.values(metric)
        mine = {level: values[places[level, rest]] for level in among if (level, rest) in places}
        return {level: of for level, of in mine.items() if not np.isnan(of).all()}

    def _first(self, metric: str, mine: Mapping[str, Floats]) -> _First | None:
        common = ~np.isnan(np.array([*mine.values()])).any(axis=0)
        if len(mine) < 2 or not common.any():
            return None
        mine = {level: of[common] for level, of in mine.items()}  # seeds differ more than settings
        means = {level: float(of.mean()) for level, of in mine.items()}
        sign = -1.0 if metric in MORE_IS_BETTER else 1.0
        first = min(means, key=lambda level: sign * means[level])
        pairs = {level: Paired.of("", mine[first], of) for level, of in mine.items()}
        verdicts = {level: pair.verdict for level, pair in pairs.items() if pair is not None}
        equal, unsure = (tuple(level for level in mine if verdicts[level] == what) for what in (EQUAL, CHANCE))
        return _First(equal, unsure, means, int(common.sum()))


def baselines(points: Sequence[str], factors: Sequence[Factor]) -> list[tuple[str, str, str]]:
    """(point, factor, baseline): for every factor, the point at the base of its level and otherwise alike."""
    found = []
    for factor in factors:
        others = [other for other in factors if other is not factor]
        places = {(factor.of[p], *(other.of[p] for other in others)): p for p in points}
        for point in points:
            at = factor.base.get(factor.of[point])
            baseline = places.get((at, *(other.of[point] for other in others))) if at is not None else None
            if baseline is not None:
                found.append((point, factor.title, baseline))
    return found


def varied(effects: Effects, metrics: Iterable[str]) -> list[str]:
    """The metrics in which some settings differ with some seed."""

    def varies(metric: str) -> bool:
        by_seed = np.array([*effects.values(metric).values()]).T
        known = [of[~np.isnan(of)] for of in by_seed]
        return any(len(of) and np.ptp(of) > CLOSE * np.abs(of).max() for of in known)

    return [metric for metric in metrics if varies(metric)]
