"""The study of approximate covering: what each search keeps of exact covering's saving in a workload, and at what cost.

A case is a family of points (everything but routing and covering held fixed) with exact covering and at least LEAST
ways to approximate it. Numbers are compared seed by seed, because runs of one seed share their random numbers:

- *kept*: of the messages that exact covering saves against simple routing, the share that this search saves too.
  If no subscription leaves, simple routing sends one message per entry that it keeps (the run record has the number of
  entries). If some leave, the share is of table entries instead of messages.
- *cost*: the time that all searches for covers of one subscription take, at all brokers that it reaches. A cover that
  is missed is searched for again at the next hop, and this includes those searches. Only subscriptions that came after
  time 0 count: with preloaded ones it is the cost at that size. Under the profile of the runs it is measured; under
  others it is computed from the counts of the same runs (`Price`).

Both come with 95 % intervals over seeds; costs are paired ratios to the cheapest exact search under that profile. A
search *pays* if the whole interval of what it keeps is at or above `keeps`, and the whole interval of its cost at or
below `cheaper`. It *may pay* if only the means are; a single seed has no interval. These thresholds are parameters;
`sensitivity` counts the verdicts for others.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.report.numbers import value_text
from analysis.report.summary import SIMPLE_ENTRIES, Summary, family, is_exact, is_plain_covering, search_name
from analysis.report.thresholds import Thresholds
from analysis.spark.statistics import quantile
from coverlay import CoverlayError, quoted

BOUNDS_FILE = "bounds.json"  # written by sim/tell/study_bounds.py, which may import the theory and the profiles
REWRITE = "delete it and run `coverlay report {out}`, which writes it again"
LEAST = 5  # ways to approximate; a sweep with fewer is not a study
HARDLY = 0.01  # of the messages; if exact covering saves less, there is hardly anything to save
BUSY = 0.95  # of the time; a busier broker cannot keep up, and its waits mean nothing
IN_PROBES = "in probes"  # the unit of costs if nothing takes time
PAYS, MAYBE, EXACT, NOTHING = "pays", "may pay", "use exact", "hardly any covers"
ATTRIBUTES, SIZE = "workload.attributes", "workload.subscriptions"
SERVICE, PROFILE = "broker.service", "broker.service.profile"

Floats = NDArray[np.float64]  # a number per seed; NaN: unknown


@dataclass(frozen=True)
class Price:
    """What a profile charges for searches, in µs: a page, a round trip, and by method a check and a probe."""

    page: float = 0.0
    round_trip: float = 0.0
    covering: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def instead_of(self, charged: Price, method: str, runs: pd.DataFrame) -> pd.Series[float]:
        """The mean time of a check under this profile, for runs that were charged by another.

        Time is linear in the counts. A check may search several partitions, or none; their number follows from what was
        charged. `auto` mixes several methods, so for it profiles may differ only in what they charge for storage.
        """
        pages, trips = (runs[f"{name}_per_check"].fillna(0.0) for name in ("pages", "round_trips"))
        time = runs["check_time"] + (self.page - charged.page) * pages
        time = time + (self.round_trip - charged.round_trip) * trips
        if self.covering == charged.covering:
            return time
        if method not in self.covering or method not in charged.covering:
            known = ", ".join(sorted({*self.covering} & {*charged.covering}))
            raise CoverlayError(
                f"costs under another profile cannot be worked out for covering method {method!r}: both profiles must "
                f"have its coefficients; both have: {known}"
            )
        old, new = charged.covering[method], self.covering[method]
        stored = charged.page * pages + charged.round_trip * trips
        searches = (runs["check_time"] - old["probe"] * runs["probes_per_check"] - stored) / old["check"]
        probes = (new["probe"] - old["probe"]) * runs["probes_per_check"]
        return time + (new["check"] - old["check"]) * searches + probes


IN_TIME = {"in time": Price()}  # if the folder has no prices


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
    cost: Mapping[str, Interval]  # by profile: per subscription, in µs (or probes, if nothing takes time)
    ratio: Mapping[str, Interval]  # by profile: its cost ÷ that of the cheapest exact search
    saturated: bool  # its busiest broker cannot keep up


@dataclass(frozen=True)
class Verdict:
    """What holds under one profile."""

    profile: str
    what: str  # PAYS, MAYBE, EXACT or NOTHING
    exact: Row  # the cheapest exact search
    best: Row | None  # the cheapest that pays, or may pay; else what comes closest
    keeper: Row | None  # the cheapest approximation whose mean keeps enough, whatever it costs


@dataclass(frozen=True)
class Case:
    """One workload: its rows (exact ones first), what theory says, and a verdict per profile."""

    fixed: Mapping[str, Any]  # the keys that distinguish it, usually of the workload
    rows: tuple[Row, ...]
    away: float  # share of simple routing's messages that exact covering saves
    verdicts: tuple[Verdict, ...]
    bounds: Mapping[str, Any]  # empty where unknown; see sim/tell/study_bounds.py
    unit: str  # of costs: µs or probes
    seeds: int  # the fewest of any search
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(verdict.profile for verdict in self.verdicts)

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
    theory, prices = read_bounds(summary.out)
    points = [point for points in chosen.values() for point in points]
    charged = {point: _charged(point, prices, summary.out) for point in points}
    by_seed = _by_seed(summary, charged, prices if profiles is None else profiles)
    timed = all(map(_in_time, by_seed.values()))
    cases = [
        _case(summary, name, {point: by_seed[point] for point in points}, timed, theory.get(name, {}), thresholds)
        for name, points in chosen.items()
    ]
    return sorted(cases, key=lambda case: case.order)


def _charged(point: str, prices: Mapping[str, Price], out: Path) -> Price:
    """What the runs of a point were charged: by the profile that the point sets, else by the first."""
    values = json.loads(point)
    name = values.get(PROFILE) or (values.get(SERVICE) or {}).get("profile") or next(iter(prices))
    if name not in prices:
        raise CoverlayError(
            f"{out / BOUNDS_FILE} has no prices of the profile {quoted(name)}; {REWRITE.format(out=out)}"
        )
    return prices[name]


def read_bounds(out: Path) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Price]]:
    """What the sweep wrote to its folder: the bounds by family, and what profiles charge, that of the runs first."""
    file = out / BOUNDS_FILE
    if not file.is_file():
        return {}, IN_TIME
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        prices = {name: Price(**price) for name, price in found["profiles"].items()}
        theory = {entry["family"]: entry for entry in found["families"]}
        return theory, prices or IN_TIME
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CoverlayError(f"{file} cannot be read: {quoted(error)}; {REWRITE.format(out=out)}") from None


def _case(
    summary: Summary,
    name: str,
    numbers: Mapping[str, Mapping[str, Floats]],  # by point
    timed: bool,  # whether the searches of all cases took time
    theory: Mapping[str, Any],
    thresholds: Thresholds,
) -> Case:
    exact = [point for point in numbers if is_exact(summary.labels(point))]
    profiles = [key for key in numbers[exact[0]] if key not in _COUNTS and (key != IN_PROBES) == timed]
    cheapest = {p: min(exact, key=lambda point: Interval.of(numbers[point][p]).mean) for p in profiles}
    base = numbers[exact[0]]
    saved, entries = _positive(base["none"] - base["messages"]), _positive(base["reduction"])
    rows = []
    for point, mine in sorted(numbers.items(), key=lambda item: item[0] not in exact):
        labels, by_messages = summary.labels(point), (mine["none"] - mine["messages"]) / saved
        rows.append(
            Row(
                point,
                str(labels["method"]),
                bool(labels["on_curve"]),
                f"exact ({labels['method']})" if point in exact else search_name(summary, point),
                float(labels["epsilon"]),
                point in exact,
                {metric: summary.mean(point, metric) for metric in SHOWN},
                Interval.of(np.where(np.isnan(by_messages), mine["reduction"] / entries, by_messages)),
                {profile: Interval.of(mine[profile]) for profile in profiles},
                {p: Interval.of(mine[p] / _positive(numbers[cheapest[p]][p])) for p in profiles},
                summary.mean(point, "utilisation_max") >= BUSY,
            )
        )
    shares = (base["none"] - base["messages"]) / base["none"]
    away = Interval.of(np.where(np.isnan(shares), base["reduction"], shares)).mean
    by_point = {row.point: row for row in rows}
    verdicts = tuple(_verdict(p, by_point[cheapest[p]], rows, away, thresholds) for p in profiles)
    seeds = min(int((~np.isnan(mine["messages"])).sum()) for mine in numbers.values())
    return Case(json.loads(name), tuple(rows), away, verdicts, theory, "µs" if timed else "probes", seeds, thresholds)


def _positive(values: Floats) -> Floats:
    """The values that may be a divisor; NaN for others."""
    return np.where(values > 0, values, np.nan)


# Metrics whose means are shown beside what is kept and what it costs.
SHOWN = (
    "recall", "recall_first_hop", "capped", "check_time", "probes_per_check", "entries", "control_messages",
    "convergence_p95", "latency_p95",
)  # fmt: skip
_COUNTS = ("messages", "reduction", "none", "time")  # beside these, a cost per profile


def _by_seed(
    summary: Summary, charged: Mapping[str, Price], prices: Mapping[str, Price]
) -> dict[str, dict[str, Floats]]:
    """By point, a number per seed: messages, those of simple routing, the share of entries saved, costs by profile.

    `charged`: by point, what its runs were charged.
    """
    runs = summary.runs[summary.runs["point"].isin(set(charged))]
    checks = runs["checks"] / runs["subscribe_requests"].where(lambda came: came > 0)
    columns = {
        "messages": runs["control_messages"],
        "reduction": runs["reduction"],
        "none": runs[SIMPLE_ENTRIES].where(runs["unsubscribe_messages"] == 0),
        "time": runs["check_time"],
        IN_PROBES: runs["probes_per_check"] * checks,
    }
    timed = runs[runs["check_time"].notna()]
    for name, price in prices.items():
        times = [
            price.instead_of(charged[str(point)], str(method), some)
            for (point, method), some in timed.groupby(["point", "charged_as"])
        ]
        columns[name] = pd.concat(times) * checks if times else checks * math.nan
    places = pd.MultiIndex.from_arrays([runs["point"], runs["seed"]])
    found: dict[str, dict[str, Floats]] = {point: {} for point in charged}
    for name, column in columns.items():
        wide = column.reindex(runs.index).astype(float).set_axis(places).unstack("seed")
        for point, values in zip(wide.index, wide.to_numpy(), strict=True):
            found[str(point)][name] = values
    return found


def _in_time(numbers: Mapping[str, Floats]) -> bool:
    """Whether the searches of a point took time with every seed."""
    return bool(np.array_equal(np.isnan(numbers["time"]), np.isnan(numbers["messages"])))


def pays(row: Row, profile: str, thresholds: Thresholds) -> bool:
    """Whether the whole intervals, not only the means, meet the thresholds."""
    return row.kept.low >= thresholds.keeps and row.ratio[profile].high <= thresholds.cheaper


def _verdict(profile: str, exact: Row, rows: Sequence[Row], away: float, thresholds: Thresholds) -> Verdict:
    if away < HARDLY:
        return Verdict(profile, NOTHING, exact, None, None)

    def cheapest(some: Sequence[Row]) -> Row | None:
        return min(some, key=lambda row: row.ratio[profile].mean, default=None)

    rough = [row for row in rows if not row.exact]
    keeper = cheapest([row for row in rough if row.kept.mean >= thresholds.keeps])
    worthy = cheapest([row for row in rough if pays(row, profile, thresholds)])
    if worthy is not None:
        return Verdict(profile, PAYS, exact, worthy, keeper)
    cheap = [row for row in rough if row.ratio[profile].mean <= thresholds.cheaper]
    if keeper in cheap:
        return Verdict(profile, MAYBE, exact, keeper, keeper)
    # The closest: of those that are cheap enough the one that keeps most, else the cheapest that keeps enough.
    closest = max(cheap, key=lambda row: row.kept.mean) if cheap else keeper or cheapest(rough)
    return Verdict(profile, EXACT, exact, closest, keeper)


KEEPS, CHEAPER = (0.8, 0.9, 0.95, 0.99), (0.25, 0.5, 0.9)


def sensitivity(cases: Sequence[Case]) -> list[tuple[Thresholds, Counter[str]]]:
    """In how many workloads approximation pays under each profile, for thresholds around the chosen ones."""
    found = []
    for thresholds in starmap(Thresholds, product(KEEPS, CHEAPER)):
        worthy = (
            profile
            for case in cases
            for profile in case.profiles
            if case.away >= HARDLY and any(pays(row, profile, thresholds) for row in case.rows if not row.exact)
        )
        found.append((thresholds, Counter(worthy)))
    return found
