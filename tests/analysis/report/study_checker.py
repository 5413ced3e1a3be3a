"""An independent reader of a study's sentences: verdicts recomputed from the runs, seed by seed, in plain Python."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from analysis.report.study import Unjudged, Verdict
from analysis.report.words import Sentence
from tests.analysis.report.checker import T, verdict

KEEPS, CHEAPER = 0.95, 0.5
SAID = {
    "in memory": "In memory",
    "on disk": "On disk",
    "next-key store": "In a store that returns the next key",
    "yes-or-no store": "In a store that says yes or no of a range",
    "slides’ model": "In the slides’ model",
}
USUAL = {"in memory": {"auto", "kdtree", "packed"}, "next-key store": {"bigmin", "density"}}
USUAL["on disk"] = USUAL["in memory"]
TO_ADD = {"next-key store": '"bigmin"', "yes-or-no store": "epsilon = 0 to", "slides’ model": "the same covering.bits"}
LIVES = {"next-key store": {"yes or no", "next key"}, "yes-or-no store": {"yes or no"}, "slides’ model": {"yes or no"}}


def complaints(runs: pd.DataFrame, sentences: Iterable[Sentence], page: float = 90.0) -> list[str]:
    """What is wrong with the sentences; `runs` as in results/run_metrics.csv, `page`: what the disk charges for one."""
    rows = runs.to_dict("records")
    return [f"{problem}: {sentence}" for sentence in sentences for problem in _problems(rows, sentence, page)]


@dataclass(frozen=True)
class Found:
    """One workload in one place."""

    what: str
    best: frozenset[str]  # points
    kept: tuple[tuple[float, float], ...] = ()  # mean and half of each of these
    ratio: tuple[tuple[float, float], ...] = ()
    against: str = ""  # verdict of their cost against exact search's
    cost: tuple[float, ...] = ()  # of exact searches that are not told apart
    chance: bool = False  # some of the best do not cost the same with every seed


def _problems(rows: list[dict[Any, Any]], sentence: Sentence, page: float) -> Iterable[str]:
    claims: Sequence[Verdict] = sentence.of
    if not claims:
        return
    if isinstance(claims[0], Unjudged):
        for one in claims:
            if _is_judged(_of_case(rows, one.held), one.place.title):
                yield f"{one.place.title} can be judged"
        where = SAID[claims[0].place.title]
        lacking = [f"{where[0].lower()}{where[1:]}", TO_ADD.get(claims[0].place.title, '"auto"')]
        yield from (f"not {part}" for part in lacking if part not in sentence.text)
        return
    if sentence.text.startswith("With other thresholds"):
        for place, said in SAID.items():
            there = [claim for claim in claims if claim.place.title == place]
            ends = [
                sum(_found(rows, claim, page, *t).what == "pays" for claim in there) for t in ((0.99, 0.25), (0.8, 0.9))
            ]
            words = f"{said[0].lower()}{said[1:]} {ends[0]} to {ends[1]} of {len(there)}"
            if there and words not in sentence.text:
                yield f"not {words}"
        return
    bad = [claim for claim in claims if not _is_judged(_of_case(rows, claim.held), claim.place.title)]
    if bad:
        yield f"nobody would search like this {bad[0].place.title}"
        return
    found = [(claim, _found(rows, claim, page)) for claim in claims]
    for claim, mine in found:
        if claim.what != mine.what:
            yield f"{claim.held} {claim.place.title} {claim.what}, not {mine.what}"
        if {row.point for row in (claim.best.rows if claim.best else ())} != mine.best:
            yield f"the cheapest are {sorted(mine.best)}"
    if not sentence.text.startswith("Hardly") and not sentence.text.startswith(SAID[claims[0].place.title]):
        yield f"not {claims[0].place.title}"
    expected = _one(*found[0]) if len(found) == 1 and " workloads" not in sentence.text else _many(found)
    yield from (f"not {words}" for words in expected if words not in sentence.text)
    if "may pay" in sentence.text and all(mine.what != "may pay" for _, mine in found):
        yield "not may"


def _one(claim: Verdict, mine: Found) -> list[str]:
    if mine.what == "hardly any covers":
        return ["hardly anything is covered"]
    words = [_amount(mine.cost, claim), "use exact search" if mine.what == "use exact" else "cost of exact search"]
    if not mine.best:
        return [*words, "no approximation keeps at least 95 %"]
    cost = each(mine.ratio)
    rows = claim.best.rows if claim.best else ()
    who = (" ≈ " if mine.chance else " = ").join(row.name.replace(", ε", " at ε") for row in rows[:3])
    who += f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    if mine.what == "use exact":
        unsure = {"chance": f"{cost} of that, which may be chance", "equal": "as much with every seed"}
        return [*words, f": {who}, the cheapest that", unsure.get(mine.against, f"{cost} of that")]
    verbs = {"pays": ("pays", "pay"), "may pay": ("may pay", "may pay"), "is cheaper": ("is cheaper", "are cheaper")}
    than = " than exact search, but too little to pay" if mine.what == "is cheaper" else ""
    does = f" {who} {verbs[mine.what][len(rows) > 1]}{than}: "
    return [*words, does, f"{each(mine.kept)} of the saving for {cost}"]


def _many(found: Sequence[tuple[Verdict, Found]]) -> list[str]:
    if all(mine.what == "hardly any covers" for _, mine in found):
        return [f"covered in {len({claim.held for claim, _ in found})} of"]
    paying, maybe, cheaper = ([f for _, f in found if f.what == w] for w in ("pays", "may pay", "is cheaper"))
    words = [f"pays in {len(paying) or 'none'} of {len(found)} workloads"]
    if maybe:
        words.append(f"may pay in {len(maybe)} ")
    if len(paying) <= 3:
        words += [f"{span(f.kept)} of the saving for {span(f.ratio)} of the cost" for f in paying]
    for some in (paying if len(paying) > 3 else [], cheaper if not paying else []):
        words += [span([one for f in some for one in f.ratio])] if some else []
    if not paying:
        told = (
            f"in {len(cheaper)} what keeps enough is cheaper" if cheaper else "; nothing that keeps enough is cheaper"
        )
        words.append(told)
    return words


def percent(mean: float, half: float = 0.0) -> str:
    return (f"{100 * mean:.3g} %" if mean < 9.995 else f"{100 * mean:,.0f} %") + (
        f" ± {100 * half:.1f}" if half >= 0.0005 else ""
    )


def span(some: Iterable[tuple[float, float]]) -> str:
    """From the smallest mean to the largest."""
    means = [mean for mean, _ in some]
    return " to ".join(dict.fromkeys(percent(end(means)) for end in (min, max)))


def each(some: Sequence[tuple[float, float]]) -> str:
    """What holds of every search: one number if it is that of all."""
    same = {percent(*one) for one in some}
    return same.pop() if len(same) == 1 else span(some)


def _amount(costs: Sequence[float], claim: Verdict) -> str:
    """2 µs per subscription, without the number if it is not in µs or lookups below a hundred."""
    low, high = min(costs), max(costs)
    if claim.place.title in LIVES and high < 100:
        unit = "lookups"
    elif claim.place.unit == "µs" and low >= 0.01 and high < 999.5:
        unit = "µs"
    else:
        return "per subscription"
    return f"{' to '.join(dict.fromkeys(f'{cost:.3g} {unit}' for cost in (low, high)))} per subscription"


def _found(
    rows: list[dict[Any, Any]], claim: Verdict, page: float, keeps: float = KEEPS, cheaper: float = CHEAPER
) -> Found:
    points, place = _of_case(rows, claim.held), claim.place.title
    exact = _exact(points)
    bits = {point: json.loads(point).get("covering.bits") for point in points}
    there = _there(points, place)
    costs = {p: {s: _cost(row, place, page) for s, row in points[p].items()} for p in there}
    saved = {s: fmean(_saved(points[p][s]) for p in exact) for s in points[exact[0]]}
    kept, ratio, rival = {}, {}, {}
    for point in there:
        alike = [p for p in there if p in exact and (place != "slides’ model" or bits[p] == bits[point])]
        if alike:
            rival[point] = min(alike, key=lambda p: fmean(costs[p].values()))
            ratio[point] = {s: c / costs[rival[point]][s] for s, c in costs[point].items()}
            kept[point] = {s: _saved(row) / saved[s] for s, row in points[point].items()}
    rough = [point for point in ratio if point not in exact]

    def exact_cost(first: str) -> tuple[float, ...]:
        others = [p for p in rival if p in exact and rival[p] == first]
        alike = {p for p in others if _against(costs[first], costs[p]) in ("equal", "chance")} | {first}
        return tuple(fmean(costs[p].values()) for p in alike)

    if fmean(saved.values()) < 0.01:
        return Found("hardly any covers", frozenset())
    paying = [p for p in rough if low(kept[p].values()) >= keeps and -low(-r for r in ratio[p].values()) <= cheaper]
    some = paying or [p for p in rough if fmean(kept[p].values()) >= keeps]
    if not some:
        least = min(rival.values(), key=lambda p: fmean(costs[p].values()))
        return Found("use exact", frozenset(), cost=exact_cost(least))
    best = min(some, key=lambda p: (fmean(ratio[p].values()), fmean(costs[p].values())))

    def holds(point: str) -> tuple[str, str]:
        against, mean = verdict([(1.0, r) for r in ratio[point].values()]), fmean(ratio[point].values())
        if point in paying or mean <= cheaper:
            return "pays" if point in paying else "may pay", ""
        return ("is cheaper", "") if against == "differs" and mean < 1 else ("use exact", against)

    beside = {p for p in some if _against(costs[best], costs[p]) in ("equal", "chance") and holds(p) == holds(best)}
    same = sorted(beside | {best})
    kept_here, cost_here = (tuple((fmean(of[p].values()), half(of[p].values())) for p in same) for of in (kept, ratio))
    what, against = holds(best)
    chance = any(_against(costs[best], costs[p]) == "chance" for p in same)
    return Found(what, frozenset(same), kept_here, cost_here, against, exact_cost(rival[best]), chance)


Points = Mapping[str, Mapping[int, Mapping[Any, Any]]]


def _of_case(rows: list[dict[Any, Any]], held: str) -> Points:
    """By point and seed: what differs only in how covers are searched."""
    points: dict[str, dict[int, dict[Any, Any]]] = {}
    for row in rows:
        keys = json.loads(row["point"])
        if row["searches"] and {k: v for k, v in keys.items() if not k.startswith("covering.")} == json.loads(held):
            points.setdefault(row["point"], {})[row["seed"]] = row
    return points


def _exact(points: Points) -> list[str]:
    return [point for point, of in points.items() if all(row["epsilon"] == 0 for row in of.values())]


def _there(points: Points, place: str) -> list[str]:
    bits = {point: json.loads(point).get("covering.bits") for point in points}
    return [
        point
        for point, of in points.items()
        if (place not in LIVES or next(iter(of.values()))["store"] in LIVES[place])
        and (place != "slides’ model" or bits[point] is not None)
    ]


def _is_judged(points: Points, place: str) -> bool:
    """Whether an exact search that one would use there can be compared with an approximate one."""
    there, exact = _there(points, place), set(_exact(points))
    usual = {json.loads(p)["covering.method"] for p in exact.intersection(there)} & USUAL.get(place, set())
    bits = {p: json.loads(p).get("covering.bits") for p in there}
    alike = {bits[p] for p in there if p in exact} & {bits[p] for p in there if p not in exact}
    return bool(usual) if place in USUAL else bool(alike) if place == "slides’ model" else bool(exact & {*there})


def _cost(row: Mapping[Any, Any], place: str, page: float) -> float:
    """Per subscription."""
    of_a_check: float = row["check_time"] if row["check_time"] == row["check_time"] else row["probes_per_check"]
    if place == "on disk":
        of_a_check += page * row["pages_per_check"]
    if place in LIVES:
        of_a_check = row["round_trips_per_check"]
    return of_a_check * float(row["checks"]) / float(row["subscribe_requests"])


def _saved(row: Mapping[Any, Any]) -> float:
    """The share of simple routing's messages, or of its entries where subscriptions leave."""
    if row["unsubscribe_messages"] > 0:
        return float(row["reduction"])
    return 1 - float(row["control_messages"]) / float(row["simple_entries"])


def _against(one: Mapping[int, float], other: Mapping[int, float]) -> str:
    return verdict([(1.0, other[seed] / one[seed]) for seed in one])


def half(values: Iterable[float]) -> float:
    known = list(values)
    return T[len(known) - 1] * stdev(known) / math.sqrt(len(known)) if len(known) > 1 else math.nan


def low(values: Iterable[float]) -> float:
    known = list(values)
    return fmean(known) - half(known)
