"""The advisor: which search for covers to use, from a sweep, with the numbers that say so.

There is a piece of advice for each place where the index may be (places.py): in memory, on disk, in stores of sorted
keys. Cost is what a covering check takes there: time by the profile (probes, if nothing takes time), or lookups; size
is routing-table entries. Both should be small, and both are measured as ratios to exact covering. A setting is on the
Pareto front if none is at least as good in both and better in one. The advice is the front's knee: where the saved
share of the search exceeds the added share of the entries by most, that is, where cost ratio + size ratio is smallest.
Exact covering has 2. It is advised unless some approximation (an ε, a budget, a search that gives up) has less by
more than WORTH: giving up exact answers has to gain more than a little. Covering methods are choices too: if several
searched exactly, exact covering means the cheapest of them, which an approximation has to beat.

A setting with the same numbers as another (a k-d tree below a thousand entries ignores ε) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.report.costs import charged_by, costs_of_a_check, read_bounds
from analysis.report.numbers import duration_text, number_text
from analysis.report.places import Place, places
from analysis.report.summary import Summary, is_covering, other_keys, search_name

PROBES, SIZE = "probes_per_check", "entries"
WORTH = 0.1  # the saved share of the search must exceed the added share of the entries by more than this
MISLEADS = 0.2  # a note is due if the share of the saving kept exceeds the recall by more than this
SLOWER = 1.1  # the advice mentions settling times or latencies above this multiple of exact covering's


@dataclass(frozen=True)
class Option:
    """One setting of the sweep: what a check costs, how large the tables are, and what comes of it."""

    point: str
    name: str  # exact (auto), budget 32
    epsilon: float  # NaN where a search may miss for another reason
    cost: float  # per check, in the unit of the place
    probes: float
    entries: float
    recall: float | None
    place: Place
    saving: float = float("nan")  # share of simple routing's entries that is saved
    settled: float = float("nan")  # ms within which 95 % of the subscriptions have settled
    latency: float = float("nan")  # ms within which 95 % of the deliveries arrive
    on_front: bool = False

    @property
    def exact(self) -> bool:
        return self.epsilon == 0

    @property
    def searched_by(self) -> str:
        """The name without `exact`: auto."""
        return self.name.removeprefix("exact (").removesuffix(")")

    @property
    def in_time(self) -> bool:
        return self.place.unit == "µs"

    @property
    def cost_text(self) -> str:
        """0.27 µs (101 probes) per check."""
        probes = f"{number_text(self.probes, 'probes')} probes"
        if not self.in_time:
            return f"{number_text(self.cost, '')} {self.place.unit} per check"
        return f"{duration_text(self.cost / 1000)} ({probes}) per check"

    @property
    def size_text(self) -> str:
        return f"{number_text(self.entries, 'entries')} entries"


@dataclass(frozen=True)
class Advice:
    """The advised setting among the options of one family in one place, and the sentences that say why."""

    place: Place
    title: str  # the swept keys that were held fixed, and the place if there are several
    options: tuple[Option, ...]  # exact first
    advised: Option
    sentence: str


def advise(summary: Summary) -> list[Advice]:
    """A piece of advice per setting of everything but the search and per place, where an exact and an approximate
    search can be compared."""
    searching = [point for point in summary.order if is_covering(summary.labels(point))]
    costs, where = _costs(summary, searching)
    groups: dict[tuple[str, str], list[str]] = {}
    for point in searching:
        groups.setdefault(_held_fixed(summary, point), []).append(point)
    found = []
    for (title, _), points in groups.items():
        several = [_of_place(summary, place, title, points, costs[place.column], place is where[0]) for place in where]
        advice = [item for item in several if item is not None]
        named = [replace(item, title=", ".join(filter(None, [title, item.place.title]))) for item in advice]
        found += named if len(advice) > 1 else advice
    return found


def _costs(summary: Summary, points: list[str]) -> tuple[dict[str, dict[Any, float]], list[Place]]:
    """The mean cost of a check by column and point, and the places that can be compared.

    The slides' model is none of them: who asks which search to use chooses the resolution too.
    """
    if not points:
        return {}, []
    _, prices = read_bounds(summary.out)
    charged = {point: charged_by(point, prices, summary.out) for point in points}
    runs = summary.runs[summary.runs["point"].isin(points)]
    in_runs = costs_of_a_check(runs, charged, prices)
    costs = {column: cost.groupby(runs["point"]).mean().to_dict() for column, cost in in_runs.items()}
    timed = bool(runs["check_time"].notna().all())
    return costs, [place for place in places(prices, timed) if not place.given_bits]


def _of_place(
    summary: Summary, place: Place, title: str, points: Sequence[str], costs: Mapping[str, float], as_run: bool
) -> Advice | None:
    """`as_run`: the runs took the time that searches take there, so that it shows in what they settled in."""
    options = [
        _option(summary, point, place, costs[point])
        for point in points
        if place.admits(summary.labels(point), json.loads(point)) and costs[point] == costs[point]
    ]
    options.sort(key=lambda o: (not o.exact, o.epsilon != o.epsilon, o.epsilon, o.cost))
    if not options or not options[0].exact or options[-1].exact:
        return None
    return _advice(place, title, _different(options), as_run)


def _option(summary: Summary, point: str, place: Place, cost: float) -> Option:
    labels, recall = summary.labels(point), summary.mean(point, "recall")
    return Option(
        point,
        search_name(summary, point),
        labels["epsilon"],
        cost,
        summary.mean(point, PROBES),
        summary.mean(point, SIZE),
        recall if recall == recall else None,
        place,
        summary.mean(point, "reduction"),
        summary.mean(point, "convergence_p95"),
        summary.mean(point, "latency_p95"),
    )


def _different(options: list[Option]) -> list[Option]:
    """The options without those that have the same numbers as an earlier one."""
    kept: dict[tuple[float, float, float | None], Option] = {}
    for option in options:
        # If nothing was missed, a recall of 1 and an unknown recall mean the same.
        kept.setdefault((option.cost, option.entries, None if option.recall == 1 else option.recall), option)
    return list(kept.values())


def _held_fixed(summary: Summary, point: str) -> tuple[str, str]:
    """What the compared points share: a title for readers and the strategy."""
    strategies = {summary.labels(p)["strategy"] for p in summary.order if is_covering(summary.labels(p))}
    strategy = str(summary.labels(point)["strategy"])
    words = [strategy] if len(strategies) > 1 else []
    keys = [key for key in other_keys(summary, point) if not key.startswith("covering.")]
    return ", ".join([*words, *keys]), strategy


def pareto_front(options: list[Option]) -> list[Option]:
    """The options that no other beats, from the cheapest to the smallest."""
    front: list[Option] = []
    for option in sorted(options, key=lambda o: (o.cost, o.entries, not o.exact)):
        if not front or option.entries < front[-1].entries:
            front.append(option)
    return front


def knee(front: list[Option], exact: Option) -> Option:
    """The option with the smallest cost ratio + size ratio to exact covering; exact covering unless clearly beaten."""
    if exact.cost == 0 or exact.entries == 0:
        return exact  # nothing to save, or nothing to grow from

    def ratios(option: Option) -> float:
        return option.cost / exact.cost + option.entries / exact.entries

    best = min(front, key=ratios)
    return best if ratios(best) < 2 - WORTH else exact


def _advice(place: Place, title: str, options: list[Option], as_run: bool) -> Advice:
    exact = options[0]
    front = pareto_front(options)
    advised = knee(front, exact)
    marked = tuple(replace(option, on_front=option in front) for option in options)
    rough = [option for option in options if not option.exact]
    if not rough:
        numbers = f"{exact.cost_text} and {exact.size_text}"
        alike = f"Approximation makes no difference here: every setting has the numbers of exact covering, {numbers}."
        return Advice(place, title, marked, advised, alike)
    first = _use_exact(exact, front, rough) if advised.exact else _use_other(exact, advised)
    words = [first]
    if as_run:
        words += [_fewer_probes(exact, rough), _slow(exact, rough), _recall(exact, rough)]
    return Advice(place, title, marked, advised, " ".join(word for word in words if word))


def _use_exact(exact: Option, front: list[Option], rough: list[Option]) -> str:
    cheapest = min(rough, key=lambda option: option.cost)
    if not all(option.exact for option in front):
        why = f"nothing saves at least {number_text(WORTH, 'share')} more of the search than it adds to the entries"
    else:
        why = "no approximation searches faster here" if exact.in_time else "no approximation searches less here"
    return (
        f"Use exact covering ({exact.searched_by}): {why}. It needs {exact.cost_text} and {exact.size_text}, the "
        f"cheapest approximation ({cheapest.name}) {cheapest.cost_text} and {cheapest.size_text}."
    )


def _use_other(exact: Option, advised: Option) -> str:
    saved, grown = _change(exact.cost, advised.cost), _change(exact.entries, advised.entries)
    sentence = (
        f"Use {advised.name}: it searches {number_text(-saved, 'share')} {'faster' if exact.in_time else 'less'} than "
        f"exact covering ({advised.cost_text} instead of {exact.cost_text}) and keeps "
        f"{number_text(abs(grown), 'share')} {'more' if grown >= 0 else 'fewer'} entries ({advised.size_text} "
        f"instead of {number_text(exact.entries, 'entries')})"
    )
    if advised.recall is not None:
        sentence += f", finding {number_text(advised.recall, 'share')} of the covers"
    return sentence + "."


def _fewer_probes(exact: Option, rough: list[Option]) -> str:
    """A warning if fewer probes do not take less time."""
    found = [option for option in rough if option.probes < exact.probes and option.cost >= exact.cost]
    if not found or not exact.in_time:
        return ""
    least = min(found, key=lambda option: option.probes)
    return (
        f"Probes mislead: {least.name} needs {number_text(least.probes, 'probes')} instead of "
        f"{number_text(exact.probes, 'probes')} and yet {duration_text(least.cost / 1000)} instead of "
        f"{duration_text(exact.cost / 1000)}; what a probe and the call itself cost differs between methods."
    )


def _slow(exact: Option, rough: list[Option]) -> str:
    """How much the most expensive search delays subscriptions and events."""
    dearest = max(rough, key=lambda option: option.cost)
    compared = (
        ("95 % of the subscriptions have settled within", dearest.settled, exact.settled),
        ("95 % of the deliveries arrive within", dearest.latency, exact.latency),
    )
    parts = [f"{w} {duration_text(slow)} instead of {duration_text(t)}" for w, slow, t in compared if slow > SLOWER * t]
    if not parts or not exact.in_time:
        return ""
    return f"With {dearest.name}, {duration_text(dearest.cost / 1000)} per check, {', and '.join(parts)}."


def _recall(exact: Option, rough: list[Option]) -> str:
    """A warning if recall is far below the share of the saving that is kept."""
    kept = {option.name: option.saving / exact.saving for option in rough if exact.saving > 0}
    asked = {option.name: option.recall for option in rough if option.recall is not None and option.name in kept}
    found = [name for name, recall in asked.items() if recall + MISLEADS < kept[name]]
    if not found:
        return ""
    worst = max(found, key=lambda name: kept[name] - asked[name])
    return (
        f"Recall misleads: {worst} finds {number_text(asked[worst], 'share')} of the covers per check and keeps "
        f"{number_text(kept[worst], 'share')} of exact covering's saving, because what one broker misses is asked "
        "again at every hop."
    )


def _change(old: float, new: float) -> float:
    return (new - old) / old if old else 0.0
