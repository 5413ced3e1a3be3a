"""The study of approximate covering: what each search keeps of exact covering's saving in a workload, and at what cost.

A case is a set of points that differ only in how covers are searched, with exact and approximate searches; a sweep with
LEAST approximations of one is called a study. Numbers are compared seed by seed, because runs of one seed share their
random numbers:

- *kept*: of the messages that exact covering saves against simple routing, the share that this search saves too.
  If no subscription leaves, simple routing sends one message per entry that it keeps (the run record has the number of
  entries). If some leave, the share is of table entries instead of messages.
- *cost*: what all searches for covers of one subscription take, at all brokers that it reaches, in each place where the
  index may be (places.py): time, or lookups. A cover that is missed is searched for again at the next hop, and this
  includes those searches, and those that an audited search makes to know what it misses. Only subscriptions that came
  after time 0 count: with preloaded ones it is the cost at that size. Under the profile of the runs time is measured;
  under others it is computed from the counts of the same runs (`Price`).

Both are ratios with 95 % intervals over seeds (`Paired`): to exact covering's saving, and to the cheapest exact search
of the same place. A search *pays* there if the whole interval of what it keeps is at or above `keeps`, and the whole
interval of its cost at or below `cheaper`. It *may pay* if only the means are; a single seed has no interval. What
costs less than exact search beyond chance, but more than that, *is cheaper*. These thresholds are parameters;
`sensitivity` counts the verdicts for others. A place without an approximate search has no verdict, nor has one without
an exact search that one would use there (`Place.usual`): what is cheaper than a bad search is not advised. Of equal
searches none is the best: all are named, and so are those that are not told apart and of which the same holds.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, starmap
from types import MappingProxyType
from typing import Any

import numpy as np

from analysis.report.costs import Floats, charged_by, costs_by_seed, in_time, read_bounds
from analysis.report.effects import CHANCE, DIFFERS, EQUAL, Paired
from analysis.report.numbers import value_text
from analysis.report.places import BITS, Place, Price, places
from analysis.report.summary import Summary, family, is_covering, is_exact, search_name
from analysis.report.thresholds import Thresholds

LEAST = 5  # ways to approximate
HARDLY = 0.01  # of the messages; if exact covering saves less, there is hardly anything to save
BUSY = 0.95  # of the time; a busier broker cannot keep up, and its waits mean nothing
PAYS, MAYBE, CHEAPER, EXACT = "pays", "may pay", "is cheaper", "use exact"
NOTHING, NOT_JUDGED = "hardly any covers", "not judged"
ATTRIBUTES, SIZE = "workload.attributes", "workload.subscriptions"
CALLED_BY = {"workload.kind", "workload.width", ATTRIBUTES, SIZE}


def against_one(ratios: Floats) -> Paired:
    """A ratio per seed, against 1."""
    return Paired.of("", np.ones_like(ratios), ratios) or Paired("", 0, 1.0, math.nan, math.nan, False)


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
    kept: Paired  # the share of exact covering's saving
    # By the title of each place where it competes:
    costs: Mapping[str, Floats]  # per subscription, in the place's unit, by seed
    ratio: Mapping[str, Paired]  # its cost ÷ that of the cheapest exact search
    rival: Mapping[str, str]  # the point of that search
    saturated: bool  # its busiest broker cannot keep up
    in_store: bool  # it can live in a store of sorted keys
    given_bits: str  # the resolution that was set; empty: it chose one

    @property
    def searched_by(self) -> str:
        """The name without `exact`: auto."""
        return self.name.removeprefix("exact (").removesuffix(")") if self.exact else self.name

    def cost(self, place: Place) -> float:
        """The mean over seeds."""
        return _mean(self.costs[place.title])

    def keeps(self, thresholds: Thresholds) -> bool:
        return self.kept.value >= thresholds.keeps

    def pays(self, place: Place, thresholds: Thresholds) -> bool:
        """Whether the whole intervals, not only the means, meet the thresholds."""
        return self.kept.low >= thresholds.keeps and self.ratio[place.title].high <= thresholds.cheaper


@dataclass(frozen=True)
class Cheapest:
    """The search of least cost among some, with those that cost as much."""

    rows: tuple[Row, ...]  # the one with the least mean first
    chance: bool  # some do not cost the same with every seed, but are not told apart

    @property
    def row(self) -> Row:
        return self.rows[0]


@dataclass(frozen=True)
class Verdict:
    """What holds in one place."""

    held: str  # what its points share, as JSON
    place: Place
    thresholds: Thresholds
    what: str  # PAYS, MAYBE, CHEAPER, EXACT or NOTHING
    exact: Cheapest
    # Of those that pay the cheapest; if none pays, of those whose mean keeps enough.
    best: Cheapest | None


@dataclass(frozen=True)
class Unjudged:
    """A place whose approximate searches have no exact one to be compared with."""

    held: str
    place: Place


@dataclass(frozen=True)
class Case:
    """One workload: its rows (exact ones first), what theory says, and a verdict per place."""

    fixed: Mapping[str, Any]  # the keys that describe it, usually of the workload
    rows: tuple[Row, ...]
    away: float  # share of simple routing's messages that exact covering saves
    verdicts: tuple[Verdict, ...]
    bounds: Mapping[str, Mapping[str, Any]]  # by the bits that were given; see sim/tell/study_bounds.py
    seeds: int  # the fewest of any search
    unjudged: tuple[Unjudged, ...] = ()
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
    """The cases of a sweep, by title; none where no approximate search can be compared with an exact one.

    `profiles`: to use instead of those that were shipped when it ran.
    """
    groups: dict[str, list[str]] = {}
    for point in summary.order:
        if is_covering(summary.labels(point)):
            groups.setdefault(_held(point), []).append(point)
    exact = {point for point in summary.order if is_exact(summary.labels(point))}
    chosen = {held: points for held, points in groups.items() if 0 < len(exact & {*points}) < len(points)}
    if not chosen:
        return []
    thresholds = thresholds or Thresholds()
    theory, shipped = read_bounds(summary.out)
    charged = {point: charged_by(point, shipped, summary.out) for points in chosen.values() for point in points}
    prices = shipped if profiles is None else profiles
    by_seed = costs_by_seed(summary, charged, prices)
    where = places(prices, all(map(in_time, by_seed.values())))
    told = _describing([json.loads(held) for held in chosen])
    cases = []
    for held, points in chosen.items():
        fixed = {key: value for key, value in json.loads(held).items() if key in told}
        bounds = theory.get(family(json.loads(held)), {})
        numbers = {point: by_seed[point] for point in points}
        cases.append(_case(summary, held, fixed, numbers, where, bounds, thresholds))
    return sorted(cases, key=lambda case: case.order)


def is_study(cases: Sequence[Case]) -> bool:
    """Whether a sweep is about approximate searches, so that its page is."""
    return any(sum(not row.exact for row in case.rows) >= LEAST for case in cases)


def _held(point: str) -> str:
    """What a point shares with those that differ only in how covers are searched."""
    return json.dumps({key: value for key, value in json.loads(point).items() if not key.startswith("covering.")})


def _describing(held: Sequence[Mapping[str, Any]]) -> set[str]:
    """The keys in titles: those in which cases differ, and what a workload is called by."""
    keys = {key for of in held for key in of}
    return {key for key in keys if key in CALLED_BY or len({value_text(of.get(key)) for of in held}) > 1}


def places_of(cases: Sequence[Case]) -> list[Place]:
    """The places in which some case has a verdict, in their usual order."""
    longest = max((case.verdicts for case in cases), key=len, default=())
    found = dict.fromkeys(verdict.place for verdict in longest)
    return list(found | dict.fromkeys(verdict.place for case in cases for verdict in case.verdicts))


def _case(
    summary: Summary,
    held: str,
    fixed: Mapping[str, Any],
    numbers: Mapping[str, Mapping[str, Floats]],  # by point
    where: Sequence[Place],
    theory: Mapping[str, Any],
    thresholds: Thresholds,
) -> Case:
    exact = [point for point in numbers if is_exact(summary.labels(point))]
    # Which of several covers is found may change a message or two: exact covering is the mean of all exact searches.
    base = {
        name: np.mean([numbers[point][name] for point in exact], axis=0) for name in ("none", "messages", "reduction")
    }
    saved, entries = _positive(base["none"] - base["messages"]), _positive(base["reduction"])
    rivals = {place.title: _rivals(summary, place, numbers, exact) for place in where}
    unjudged = [place for place in where if rivals[place.title] is None]
    rows = []
    for point, mine in sorted(numbers.items(), key=lambda item: item[0] not in exact):
        labels, by_messages = summary.labels(point), (mine["none"] - mine["messages"]) / saved
        rival = {place: of[point] for place, of in rivals.items() if of and point in of}
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
                against_one(np.where(np.isnan(by_messages), mine["reduction"] / entries, by_messages)),
                {place: mine[column] for place, column in columns.items()},
                {place: against_one(mine[of] / _positive(numbers[rival[place]][of])) for place, of in columns.items()},
                rival,
                summary.mean(point, "utilisation_max") >= BUSY,
                bool(labels["store"]),
                value_text(json.loads(point).get(BITS, "")),
            )
        )
    shares = (base["none"] - base["messages"]) / base["none"]
    away = _mean(np.where(np.isnan(shares), base["reduction"], shares))
    by_place: dict[str, Verdict] = {}
    for place in where:
        # Where all searches have the resolution that was given, the slides' model is any store.
        alike = [
            of for of in by_place.values() if of.place.stores and _competing(rows, of.place) == _competing(rows, place)
        ]
        if not (place.given_bits and alike) and (found := _verdict(held, place, rows, away, thresholds)):
            by_place[place.title] = found
    seeds = min(int((~np.isnan(mine["messages"])).sum()) for mine in numbers.values())
    lacking = tuple(Unjudged(held, place) for place in unjudged)
    return Case(fixed, tuple(rows), away, tuple(by_place.values()), theory, seeds, lacking, thresholds)


def _competing(rows: Sequence[Row], place: Place) -> list[str]:
    return [row.point for row in rows if place.title in row.ratio]


def _rivals(
    summary: Summary, place: Place, numbers: Mapping[str, Mapping[str, Floats]], exact: Sequence[str]
) -> dict[str, str] | None:
    """For each point that can be compared in a place, the cheapest exact search that it is compared with.

    None if there are searches to judge, but no exact one that one would use there.
    """
    keys = {point: json.loads(point) for point in numbers}
    there = [point for point in numbers if place.admits(summary.labels(point), keys[point])]
    usual = [point for point in there if point in exact and place.is_usual(summary.labels(point)["method"])]
    rough = [point for point in there if point not in exact]
    if not any(place.comparable(keys[point], keys[other]) for point in rough for other in usual):
        return None if rough else {}
    costs = {point: cost for point in there if point in exact and (cost := _mean(numbers[point][place.column])) > 0}
    found = {}
    for point in there:
        alike = [other for other in costs if place.comparable(keys[point], keys[other])]
        if alike:
            found[point] = min(alike, key=lambda other: costs[other])
    return found


def _positive(values: Floats) -> Floats:
    """The values that may be a divisor; NaN for others."""
    return np.where(values > 0, values, np.nan)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


# Metrics whose means are shown beside what is kept and what it costs.
SHOWN = (
    "recall", "recall_first_hop", "capped", "volume", "check_time", "probes_per_check", "candidates_per_check",
    "round_trips_per_check", "bits", "entries", "control_messages",
    "convergence_p95", "latency_p95",
)  # fmt: skip


def _verdict(held: str, place: Place, rows: Sequence[Row], away: float, thresholds: Thresholds) -> Verdict | None:
    there = [row for row in rows if place.title in row.ratio]
    rough = [row for row in there if not row.exact]
    if not rough:
        return None
    paying = [row for row in rough if row.pays(place, thresholds)]
    keeping = [row for row in rough if row.keeps(thresholds)]
    standing = {row.point: _standing(row, place, thresholds) for row in keeping}
    best = None if away < HARDLY else _cheapest(paying or keeping, place, standing)
    what = NOTHING if away < HARDLY else standing[best.row.point][0] if best else EXACT
    rival = best.row.rival[place.title] if best else None
    exact = _cheapest([row for row in there if row.exact and rival in (None, row.rival[place.title])], place)
    assert exact is not None, "a row has a ratio only to an exact one"
    return Verdict(held, place, thresholds, what, exact, best)


def _standing(row: Row, place: Place, thresholds: Thresholds) -> tuple[str, str]:
    """What holds of a search that keeps enough, and how its cost compares with exact search's."""
    ratio = row.ratio[place.title]
    if row.pays(place, thresholds):
        return PAYS, ""
    if ratio.value <= thresholds.cheaper:
        return MAYBE, ""
    if ratio.verdict == DIFFERS and ratio.value < 1:
        return CHEAPER, ""
    return EXACT, ratio.verdict


def _cheapest(rows: Sequence[Row], place: Place, standing: Mapping[str, Any] = MappingProxyType({})) -> Cheapest | None:
    """By the ratio to exact search, since places may compare with several; with others of the same standing."""
    if not rows:
        return None
    first = min(rows, key=lambda row: (row.ratio[place.title].value, row.cost(place)))
    cost = _positive(first.costs[place.title])
    against = {row.point: against_one(row.costs[place.title] / cost).verdict for row in rows if row is not first}
    same = standing.get(first.point)
    others = [row for row in rows if against.get(row.point) in (EQUAL, CHANCE) and standing.get(row.point) == same]
    return Cheapest((first, *others), any(against[row.point] == CHANCE for row in others))


OTHER_THRESHOLDS = [*starmap(Thresholds, product((0.8, 0.9, 0.95, 0.99), (0.25, 0.5, 0.9)))]


def sensitivity(cases: Sequence[Case]) -> list[tuple[Thresholds, Counter[Place]]]:
    """In how many workloads approximation pays in each place, for thresholds around the chosen ones."""
    found = []
    for thresholds in OTHER_THRESHOLDS:
        worthy = (
            verdict.place
            for case in cases
            for verdict in case.verdicts
            if not case.nothing and any(row.pays(verdict.place, thresholds) for row in _rough(case, verdict))
        )
        found.append((thresholds, Counter(worthy)))
    return found


def _rough(case: Case, verdict: Verdict) -> list[Row]:
    return [row for row in case.rows if not row.exact and verdict.place.title in row.ratio]
