"""An independent reader of a study's sentences: verdicts recomputed from the runs, seed by seed, in plain Python."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from analysis.report.study import Verdict
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
    kept: tuple[float, float]  # mean, half
    ratio: tuple[float, float]
    against: str  # verdict of the cost against exact search's
    cost: float  # of exact search


def _problems(rows: list[dict[Any, Any]], sentence: Sentence, page: float) -> Iterable[str]:
    claims: Sequence[Verdict] = sentence.of
    if not claims:
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
    cost = percent(*mine.ratio)
    words = [_amount(mine.cost, claim), "use exact search" if mine.what == "use exact" else "cost of exact search"]
    if not mine.best:
        return [*words, "no approximation keeps at least 95 %"]
    names = [row.name.replace(", ε", " at ε") for row in claim.best.rows[:3]] if claim.best else []
    if mine.what == "use exact":
        unsure = {"chance": f"{cost} of that, which may be chance", "equal": "as much with every seed"}
        return [*words, *names, unsure.get(mine.against, f"{cost} of that")]
    verb = {"pays": " pay", "may pay": " may pay", "is cheaper": "cheaper than exact search, but too little to pay"}
    return [*words, *names, verb[mine.what], f"{percent(*mine.kept)} of the saving for {cost}"]


def _many(found: Sequence[tuple[Verdict, Found]]) -> list[str]:
    if all(mine.what == "hardly any covers" for _, mine in found):
        return [f"covered in {len({claim.held for claim, _ in found})} of"]
    paying, maybe, cheaper = ([f for _, f in found if f.what == w] for w in ("pays", "may pay", "is cheaper"))
    words = [f"pays in {len(paying) or 'none'} of {len(found)} workloads"]
    if maybe:
        words.append(f"may pay in {len(maybe)} ")
    if len(paying) <= 3:
        words += [f"{percent(f.kept[0])} of the saving for {percent(f.ratio[0])} of the cost" for f in paying]
    for some in (paying if len(paying) > 3 else [], cheaper if not paying else []):
        ends = list(dict.fromkeys(percent(end([f.ratio[0] for f in some])) for end in (min, max) if some))
        words += [" to ".join(ends)] if ends else []
    if not paying:
        told = (
            f"in {len(cheaper)} what keeps enough is cheaper" if cheaper else "; nothing that keeps enough is cheaper"
        )
        words.append(told)
    return words


def percent(mean: float, half: float = 0.0) -> str:
    return f"{100 * mean:.3g} %" + (f" ± {100 * half:.1f}" if half >= 0.0005 else "")


def _amount(cost: float, claim: Verdict) -> str:
    """2 µs per subscription, without the number if it is not in µs or lookups below a hundred."""
    if claim.place.title in LIVES and cost < 100:
        return f"{cost:.3g} lookups per subscription"
    in_us = claim.place.unit == "µs" and 0.01 <= cost < 999.5
    return f"{cost:.3g} µs per subscription" if in_us else "per subscription"


def _found(
    rows: list[dict[Any, Any]], claim: Verdict, page: float, keeps: float = KEEPS, cheaper: float = CHEAPER
) -> Found:
    held, place = json.loads(claim.held), claim.place.title
    points: dict[str, dict[int, dict[Any, Any]]] = {}
    for row in rows:
        keys = json.loads(row["point"])
        if row["searches"] and {k: v for k, v in keys.items() if not k.startswith("covering.")} == held:
            points.setdefault(row["point"], {})[row["seed"]] = row
    exact = [point for point, of in points.items() if all(row["epsilon"] == 0 for row in of.values())]
    bits = {point: json.loads(point).get("covering.bits") for point in points}
    there = [
        point
        for point, of in points.items()
        if (place not in LIVES or next(iter(of.values()))["store"] in LIVES[place])
        and (place != "slides’ model" or bits[point] is not None)
    ]
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
    if fmean(saved.values()) < 0.01:
        return Found("hardly any covers", frozenset(), (0, 0), (0, 0), "", 0)
    paying = [p for p in rough if low(kept[p].values()) >= keeps and -low(-r for r in ratio[p].values()) <= cheaper]
    some = paying or [p for p in rough if fmean(kept[p].values()) >= keeps]
    if not some:
        least = min(rival.values(), key=lambda p: fmean(costs[p].values()))
        return Found("use exact", frozenset(), (0, 0), (0, 0), "", fmean(costs[least].values()))
    best = min(some, key=lambda p: (fmean(ratio[p].values()), fmean(costs[p].values())))
    same = {p for p in some if _against(costs[best], costs[p]) in ("equal", "chance")} | {best}
    against, mean = verdict([(1.0, r) for r in ratio[best].values()]), fmean(ratio[best].values())
    sure = "is cheaper" if against == "differs" and mean < 1 else "use exact"
    what = "pays" if paying else "may pay" if mean <= cheaper else sure
    kept_here, cost_here = ((fmean(of.values()), half(of.values())) for of in (kept[best], ratio[best]))
    return Found(what, frozenset(same), kept_here, cost_here, against, fmean(costs[rival[best]].values()))


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
