"""The study of approximate covering: what each search keeps of exact covering's saving in a workload, and at what cost.

A case is a family of points (everything but routing and covering held fixed) with exact covering and at least LEAST
ways to approximate it. Numbers are compared seed by seed, because runs of one seed share their random numbers:

- *kept*: of the messages that exact covering saves against simple routing, the share that this search saves too.
  If no subscription leaves, simple routing sends one message per entry that it keeps (the run record has the number of
  entries). If some leave, the share is of table entries instead of messages.
- *cost*: what all searches for covers of one subscription take, at all brokers that it reaches, in each place where the
  index may be (places.py): time, or lookups. A cover that is missed is searched for again at the next hop, and this
  includes those searches, and those that an audited search makes to know what it misses. Only subscriptions that came
  after time 0 count: with preloaded ones it is the cost at that size. Under the profile of the runs time is measured;
  under others it is computed from the counts of the same runs (`Price`).

Both come with 95 % intervals over seeds; costs are paired ratios to the cheapest exact search of the same place. A
search *pays* there if the whole interval of what it keeps is at or above `keeps`, and the whole interval of its cost at
or below `cheaper`. It *may pay* if only the means are; a single seed has no interval. These thresholds are parameters;
`sensitivity` counts the verdicts for others. A place without an exact or without an approximate search has no verdict.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, starmap
from typing import Any

import numpy as np

from analysis.report.costs import Floats, charged_by, costs_by_seed, in_time, read_bounds
from analysis.report.numbers import value_text
from analysis.report.places import BITS, Place, Price, places
from analysis.report.summary import Summary, family, is_exact, is_plain_covering, search_name
from analysis.report.thresholds import Thresholds
from analysis.spark.statistics import quantile

LEAST = 5  # ways to approximate; a sweep with fewer is not a study
HARDLY = 0.01  # of the messages; if exact covering saves less, there is hardly anything to save
BUSY = 0.95  # of the time; a busier broker cannot keep up, and its waits mean nothing
PAYS, MAYBE, EXACT, NOTHING = "pays", "may pay", "use exact", "hardly any covers"
ATTRIBUTES, SIZE = "workload.attributes", "workload.subscriptions"


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % interval; low and high are NaN for a single seed."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> Interval:
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(math.nan, math.nan, math.nan)
        mean, n = float(known.mean()), len(known)
        half = quantile(n - 1) * float(known.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return cls(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Row:
    """One search for covers; NaN is unknown."""

    point: str
    method: str
    on_curve: bool  # the slides' bounds are about it
    name: str  # exact (auto), budget 64
    epsilon: float  # NaN where a search may miss for another reason
    exact: bool
    values: Mapping[str, float]  # metric → mean over seeds
    kept: Interval
    # By the title of each place where it competes:
    cost: Mapping[str, Interval]  # per subscription, in the place's unit
    ratio: Mapping[str, Interval]  # its cost ÷ that of the cheapest exact search
    rival: Mapping[str, str]  # the point of that search
    saturated: bool  # its busiest broker cannot keep up
    in_store: bool  # it can live in a store of sorted keys
    given_bits: str  # the resolution that was set; empty: it chose one

    @property
    def searched_by(self) -> str:
        """The name without `exact`: auto."""
        return self.name.removeprefix("exact (").removesuffix(")") if self.exact else self.name


@dataclass(frozen=True)
class Verdict:
    """What holds in one place."""

    place: Place
    what: str  # PAYS, MAYBE, EXACT or NOTHING
    exact: Row  # the cheapest exact search
    best: Row | None  # the cheapest that pays, or may pay; else what comes closest
    keeper: Row | None  # the cheapest approximation whose mean keeps enough, whatever it costs


@dataclass(frozen=True)
class Case:
    """One workload: its rows (exact ones first), what theory says, and a verdict per place."""

    fixed: Mapping[str, Any]  # the keys that distinguish it, usually of the workload
    rows: tuple[Row, ...]
    away: float  # share of simple routing's messages that exact covering saves
    verdicts: tuple[Verdict, ...]
    bounds: Mapping[str, Mapping[str, Any]]  # by the bits that were given; see sim/tell/study_bounds.py
    seeds: int  # the fewest of any search
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def nothing(self) -> bool:
        """Whether there is hardly anything to cover."""
        return self.away < HARDLY

    def verdict(self, place: Place) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if verdict.place == place), None)

    @property
    def title(self) -> str:
        """What was held fixed, in words: narrow uniform, d = 1, n = 2,000."""
        return self._said()

    @property
    def workload(self) -> str:
        """The same without the number of subscriptions."""
        return self._said(SIZE)

    @property
    def kind(self) -> str:
        """The same without the number of attributes too."""
        return self._said(SIZE, ATTRIBUTES)

    @property
    def size(self) -> int:
        """The number of subscriptions; 0 where it was not swept."""
        return int(self.fixed.get(SIZE, 0))

    def _said(self, *without: str) -> str:
        fixed = sorted((key, value) for key, value in self.fixed.items() if key not in without)
        words = " ".join(value for _, value in reversed(fixed) if isinstance(value, str))
        numbers = []
        for key, value in fixed:
            if not isinstance(value, str):
                name = {ATTRIBUTES: "d", SIZE: "n"}.get(key, key.removeprefix("workload."))
                numbers.append(f"{name} = {f'{value:,}' if isinstance(value, int) else value_text(value)}")
        return ", ".join(filter(None, [words, *numbers])) or "all"

    @property
    def order(self) -> tuple[Any, ...]:
        """A sort key: by words, then by numbers, with attributes and subscriptions last."""
        words = [value for _, value in sorted(self.fixed.items()) if isinstance(value, str)]
        others = sorted(k for k, v in self.fixed.items() if not isinstance(v, str) and k not in {ATTRIBUTES, SIZE})
        numbers = [(key, *self._sorted_by(key)) for key in others]
        return words, numbers, self._sorted_by(ATTRIBUTES), self._sorted_by(SIZE)

    def _sorted_by(self, key: str) -> tuple[float, str]:
        value = self.fixed.get(key)
        return (value if isinstance(value, int | float) else 0.0, value_text(value))


def study(
    summary: Summary, thresholds: Thresholds | None = None, profiles: Mapping[str, Price] | None = None
) -> list[Case]:
    """The cases of a sweep, by title; none where there are too few ways to approximate.

    `profiles`: to use instead of those that were shipped when it ran.
    """
    groups: dict[str, list[str]] = {}
    for point in summary.order:
        if is_plain_covering(summary.labels(point)):
            groups.setdefault(family(json.loads(point)), []).append(point)
    rough = {point for points in groups.values() for point in points if not is_exact(summary.labels(point))}
    chosen = {name: points for name, points in groups.items() if LEAST <= len(rough & {*points}) < len(points)}
    if not chosen:
        return []
    thresholds = thresholds or Thresholds()
    theory, shipped = read_bounds(summary.out)
    points = [point for points in chosen.values() for point in points]
    charged = {point: charged_by(point, shipped, summary.out) for point in points}
    prices = shipped if profiles is None else profiles
    by_seed = costs_by_seed(summary, charged, prices)
    timed = all(map(in_time, by_seed.values()))
    where = places(prices, timed)
    cases = [
        _case(summary, name, {point: by_seed[point] for point in points}, where, theory.get(name, {}), thresholds)
        for name, points in chosen.items()
    ]
    return sorted(cases, key=lambda case: case.order)


def places_of(cases: Sequence[Case]) -> list[Place]:
    """The places in which some case has a verdict, in their usual order."""
    longest = max((case.verdicts for case in cases), key=len, default=())
    found = dict.fromkeys(verdict.place for verdict in longest)
    return list(found | dict.fromkeys(verdict.place for case in cases for verdict in case.verdicts))


def _case(
    summary: Summary,
    name: str,
    numbers: Mapping[str, Mapping[str, Floats]],  # by point
    where: Sequence[Place],
    theory: Mapping[str, Any],
    thresholds: Thresholds,
) -> Case:
    exact = [point for point in numbers if is_exact(summary.labels(point))]
    base = numbers[exact[0]]
    saved, entries = _positive(base["none"] - base["messages"]), _positive(base["reduction"])
    rivals = {place.title: _rivals(summary, place, numbers, exact) for place in where}
    rows = []
    for point, mine in sorted(numbers.items(), key=lambda item: item[0] not in exact):
        labels, by_messages = summary.labels(point), (mine["none"] - mine["messages"]) / saved
        rival = {place: of[point] for place, of in rivals.items() if point in of}
        columns = {place.title: place.column for place in where if place.title in rival}
        rows.append(
            Row(
                point,
                str(labels["method"]),
                bool(labels["on_curve"]),
                search_name(summary, point),
                float(labels["epsilon"]),
                point in exact,
                {metric: summary.mean(point, metric) for metric in SHOWN},
                Interval.of(np.where(np.isnan(by_messages), mine["reduction"] / entries, by_messages)),
                {place: Interval.of(mine[column]) for place, column in columns.items()},
                {place: Interval.of(mine[of] / _positive(numbers[rival[place]][of])) for place, of in columns.items()},
                rival,
                summary.mean(point, "utilisation_max") >= BUSY,
                bool(labels["store"]),
                value_text(json.loads(point).get(BITS, "")),
            )
        )
    shares = (base["none"] - base["messages"]) / base["none"]
    away = Interval.of(np.where(np.isnan(shares), base["reduction"], shares)).mean
    found = (_verdict(place, rows, away, thresholds) for place in where)
    verdicts = tuple(verdict for verdict in found if verdict is not None)
    seeds = min(int((~np.isnan(mine["messages"])).sum()) for mine in numbers.values())
    return Case(json.loads(name), tuple(rows), away, verdicts, theory, seeds, thresholds)


def _rivals(
    summary: Summary, place: Place, numbers: Mapping[str, Mapping[str, Floats]], exact: Sequence[str]
) -> dict[str, str]:
    """For each point that can be compared in a place, the cheapest exact search that it is compared with."""
    keys = {point: json.loads(point) for point in numbers}
    there = [point for point in numbers if place.admits(summary.labels(point), keys[point])]
    costs = {point: Interval.of(numbers[point][place.column]).mean for point in there if point in exact}
    found = {}
    for point in there:
        alike = [other for other in costs if place.comparable(keys[point], keys[other])]
        if alike:
            found[point] = min(alike, key=lambda other: costs[other])
    return found


def _positive(values: Floats) -> Floats:
    """The values that may be a divisor; NaN for others."""
    return np.where(values > 0, values, np.nan)


# Metrics whose means are shown beside what is kept and what it costs.
SHOWN = (
    "recall", "recall_first_hop", "capped", "volume", "check_time", "probes_per_check", "candidates_per_check",
    "round_trips_per_check", "bits", "entries", "control_messages",
    "convergence_p95", "latency_p95",
)  # fmt: skip


def pays(row: Row, place: Place, thresholds: Thresholds) -> bool:
    """Whether the whole intervals, not only the means, meet the thresholds."""
    return row.kept.low >= thresholds.keeps and row.ratio[place.title].high <= thresholds.cheaper


def _verdict(place: Place, rows: Sequence[Row], away: float, thresholds: Thresholds) -> Verdict | None:
    def cheapest(some: Sequence[Row]) -> Row | None:
        return min(some, key=lambda row: row.ratio[place.title].mean, default=None)

    rough = [row for row in rows if not row.exact and place.title in row.ratio]
    if not rough:
        return None
    by_point = {row.point: row for row in rows}
    keeper = cheapest([row for row in rough if row.kept.mean >= thresholds.keeps])

    def found(what: str, best: Row | None) -> Verdict:
        rival = (best or min(rough, key=lambda row: by_point[row.rival[place.title]].cost[place.title].mean)).rival
        return Verdict(place, what, by_point[rival[place.title]], best, keeper)

    if away < HARDLY:
        keeper = None
        return found(NOTHING, None)
    worthy = cheapest([row for row in rough if pays(row, place, thresholds)])
    if worthy is not None:
        return found(PAYS, worthy)
    cheap = [row for row in rough if row.ratio[place.title].mean <= thresholds.cheaper]
    if keeper in cheap:
        return found(MAYBE, keeper)
    # The closest: of those that are cheap enough the one that keeps most, else the cheapest that keeps enough.
    return found(EXACT, max(cheap, key=lambda row: row.kept.mean) if cheap else keeper or cheapest(rough))


KEEPS, CHEAPER = (0.8, 0.9, 0.95, 0.99), (0.25, 0.5, 0.9)


def sensitivity(cases: Sequence[Case]) -> list[tuple[Thresholds, Counter[Place]]]:
    """In how many workloads approximation pays in each place, for thresholds around the chosen ones."""
    found = []
    for thresholds in starmap(Thresholds, product(KEEPS, CHEAPER)):
        worthy = (
            verdict.place
            for case in cases
            for verdict in case.verdicts
            if verdict.what != NOTHING and any(pays(row, verdict.place, thresholds) for row in _rough(case, verdict))
        )
        found.append((thresholds, Counter(worthy)))
    return found


def _rough(case: Case, verdict: Verdict) -> list[Row]:
    return [row for row in case.rows if not row.exact and verdict.place.title in row.ratio]
