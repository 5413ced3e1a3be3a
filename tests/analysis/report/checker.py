"""An independent reader of sentences: every number recomputed from the runs, seed by seed, in plain Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from analysis.report.effects import Best, Effect
from analysis.report.load import Load, Overloads
from analysis.report.numbers import number_text
from analysis.report.truth import Judged
from analysis.report.words import InTable, Missing, Sentence, Span, title, with_unit
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO

# Student's t, two-sided 95 %, by degrees of freedom; from a printed table.
T = {1: 12.706, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706}
SEARCHES = {"probes_per_check", "check_time"}
FLOODING_HAS_NO = {
    "entries", "entries_per_broker", "entries_max", "reduction", "pruned", "control_messages", "control_per_event",
    "subscribe_messages",
    "messages_per_subscribe", "convergence_mean", "convergence_p95", *SEARCHES,
}  # fmt: skip
MORE = {"recall", "recall_first_hop", "reduction", "delivery_ratio", "event_rate_held", "topk_overlap"}


def complaints(runs: pd.DataFrame, sentences: Iterable[Sentence], times: pd.DataFrame | None = None) -> list[str]:
    """What is wrong with the sentences; `runs` as in results/run_metrics.csv, `times` as in broker_times.csv.

    A sentence without a claim cannot be checked, which is wrong too.
    """
    table, busy = Runs(runs), Times(runs, times)
    checks: dict[type, Callable[[Any, str], Iterable[str]]] = {
        Effect: table.effect, Best: table.best, Span: table.span, Judged: table.judged,
        Missing: table.missing, InTable: table.in_table, Load: busy.load, Overloads: busy.where_overloaded,
    }  # fmt: skip
    found = []
    for sentence in sentences:
        found += [] if sentence.of else [f"made from nothing: {sentence}"]
        for claim in sentence.of:
            found += [f"{problem}: {sentence}" for problem in checks[type(claim)](claim, sentence.text)]
    return found


class Runs:
    def __init__(self, runs: pd.DataFrame) -> None:
        self.points = {point: json.loads(point) for point in dict.fromkeys(runs["point"])}
        self.rows = runs.to_dict("records")

    def values(self, point: str, metric: str) -> dict[int, float]:
        mine = [row for row in self.rows if row["point"] == point]
        if metric in FLOODING_HAS_NO:
            mine = [row for row in mine if row["sends_to"] != "nobody"]
        if metric in SEARCHES:
            mine = [row for row in mine if row["sends_to"] != "all" or row["holds_back"]]
        return {row["seed"]: row[metric] for row in mine if row.get(metric, math.nan) == row.get(metric)}

    def at(self, level: str, keys: Iterable[str]) -> dict[str, str]:
        """The points at a level of a factor, by their other keys."""
        wanted = json.loads(level)
        return {
            json.dumps({k: v for k, v in values.items() if k not in keys}, sort_keys=True): point
            for point, values in self.points.items()
            if {k: v for k, v in values.items() if k in keys} == wanted
        }

    def pairs(self, keys: Iterable[str], base: str, level: str, metric: str) -> list[list[tuple[float, float]]]:
        """By combination of the other keys: both values with every common seed."""
        ones, others = self.at(base, keys), self.at(level, keys)
        found = []
        for rest in ones.keys() & others.keys():
            a, b = self.values(ones[rest], metric), self.values(others[rest], metric)
            found.append([(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())])
        return [both for both in found if both]

    def effect(self, claim: Effect, text: str) -> Iterable[str]:
        pairs = self.pairs(claim.factor.keys, claim.base, claim.level, claim.metric)
        if len(pairs) != len(claim.parts):
            yield f"{len(pairs)} combinations, not {len(claim.parts)}"
        verdicts = {verdict(both) for both in pairs}
        sure = sum(verdict(both) == "differs" for both in pairs)
        if text.startswith("Whatever the "):
            yield from self.still(pairs, verdicts, claim, text)
            return
        alike = text.partition("alike in all digits shown: ")[2].partition("; equal")[0]
        if title(claim.metric) in alike.removesuffix(".").split(", "):
            if not all(len({with_unit(mean, claim.metric) for mean in means(both)}) == 1 for both in pairs):
                yield f"{claim.metric} is not alike"
            return
        text = text.partition("; alike in all")[0]
        first = "" if ", not beyond chance: " in text else text.partition("; ")[0]
        may_be_chance = text.partition("not beyond chance: ")[2].partition("; equal")[0]
        if "differs" in verdicts or "one seed" in verdicts:
            where = first
        elif "chance" in verdicts:
            where = may_be_chance + first * ("(may be chance)" in first)
        else:
            return
        expected = clauses(pairs, claim.metric)
        if not any(clause in where for clause in expected):
            yield f"{claim.metric} should be {' or '.join(expected)}"
        if 0 < sure < len(pairs) and f"beyond chance in {sure} of {len(pairs)}" not in where:
            yield f"{claim.metric} is beyond chance in {sure} of {len(pairs)} only"

    def still(
        self, pairs: list[list[tuple[float, float]]], verdicts: set[str], claim: Effect, text: str
    ) -> Iterable[str]:
        """Equal, or alike in what is written and perhaps chance."""
        equal = text.partition("alike in all digits shown: ")[0]
        shown = all(len({with_unit(mean, claim.metric) for mean in means(both)}) == 1 for both in pairs)
        if verdicts == {"equal"} if title(claim.metric) in equal else shown:
            return
        yield f"{claim.metric} is not the same whatever the {claim.factor.title}"

    def span(self, claim: Span, text: str) -> Iterable[str]:
        """From the smallest to the largest mean of all settings."""
        known = [fmean(of.values()) for point in self.points if (of := self.values(point, claim.metric))]
        ends = dict.fromkeys(with_unit(end, claim.metric) for end in (min(known), max(known)))
        if " to ".join(ends) not in text or title(claim.metric) not in text.lower():
            yield f"{claim.metric} is {' to '.join(ends)}"

    def judged(self, claim: Judged, text: str) -> Iterable[str]:
        """Sums over all runs: each that is not 0 has its number, and a sample its share."""

        def total(column: str) -> int:
            return int(sum(row[column] for row in self.rows if row[column] == row[column]))

        wrong = sum(map(total, MUST_BE_ZERO))
        events = sum(row["events"] for row in self.rows)
        judged = sum(row["events"] * row["judged_share"] for row in self.rows)
        lost = [] if wrong or not judged else [total(column) for column in LOSSES]
        counts = [total("deliveries"), wrong, *lost]
        if len(self.rows) > 1 and total("deliveries") and f" of {len(self.rows):,} runs" not in text:
            yield f"{len(self.rows)} runs"
        yield from (f"{count} is not said" for count in counts if count and f"{count:,}" not in text)
        if bool(wrong) != text.startswith("Do not trust this"):
            yield f"{wrong} are wrong"
        if judged < events and not wrong and f"{100 * judged / events:.3g} %" not in text and "None of" not in text:
            yield f"{judged} of {events} events were judged"

    def best(self, claim: Best, text: str) -> Iterable[str]:
        """Whoever is named has the least with all other keys, equal with every seed; whoever is not told apart from it
        is so with all of them."""
        sign = -1.0 if claim.metric in MORE else 1.0
        by_level = {level: self.at(level, claim.factor.keys) for level in claim.among}
        first, near = {*claim.among}, {*claim.among}
        somewhere: set[str] = set()
        seeds_seen: set[int] = set()
        spans: dict[str, list[float]] = {level: [] for level in claim.among}
        for rest in {rest for at in by_level.values() for rest in at}:
            values = {level: self.values(at[rest], claim.metric) for level, at in by_level.items() if rest in at}
            values = {level: of for level, of in values.items() if of}
            seeds = sorted(set.intersection(*(set(of) for of in values.values()))) if values else []
            if len(values) < 2 or not seeds:
                continue
            seeds_seen.add(len(seeds))
            means = {level: fmean(of[seed] for seed in seeds) for level, of in values.items()}
            best = min(means, key=lambda level: sign * means[level])
            for level, of in values.items():
                spans[level].append(means[level])
                what = verdict([(values[best][seed], of[seed]) for seed in seeds])
                (first if what != "equal" else set()).discard(level)
                somewhere |= {level} if what == "equal" else set()
                (near if what not in ("equal", "chance") else set()).discard(level)
        if {*claim.levels} != first:
            yield f"not {claim.levels} but {first} have the first place in {claim.metric}"
        if {*claim.unsure} != near - first:
            yield f"not {[*claim.unsure]} but {near - first} are not told apart from it"
        if claim.levels and bool(somewhere - first) != ("in some settings equal to others" in text):
            yield f"{somewhere - first} are equal in some settings"
        said = [*claim.levels] if len(claim.levels) <= 4 else [level for level in claim.among if level not in first]
        said += [*claim.unsure] if claim.levels and len(claim.unsure) <= 4 else []
        yield from (f"{level} is not named" for level in said if claim.factor.names[level] not in text)
        for level in [*claim.levels[:1], *(claim.unsure if claim.levels and len(claim.unsure) <= 4 else ())]:
            ends = dict.fromkeys(with_unit(end, claim.metric) for end in (min(spans[level]), max(spans[level])))
            if f"({' to '.join(ends)}" not in text:
                yield f"{level} has {' to '.join(ends)}"
        lacking = {
            level for level, at in by_level.items() if not any(self.values(p, claim.metric) for p in at.values())
        }
        if lacking and "none with" not in text and claim.metric in FLOODING_HAS_NO:
            yield f"nobody says that {lacking} has no {claim.metric}"
        if claim.levels and seeds_seen == {1} and "by one seed" not in text:
            yield "one seed makes nobody the best"

    def in_table(self, claim: InTable, text: str) -> Iterable[str]:
        if f"the {claim.count} comparisons" not in text or claim.count >= len(claim.factor.levels):
            yield f"not {claim.count} comparisons"

    def missing(self, claim: Missing, text: str) -> Iterable[str]:
        """Of keys that vary independently, as many combinations as were not run."""
        if not text.startswith("Not run: ") or not claim.count:
            yield "nothing is missing"


class Times:
    """Load over time, bin by bin."""

    def __init__(self, runs: pd.DataFrame, times: pd.DataFrame | None) -> None:
        self.point_of = dict(zip(runs["run"], runs["point"], strict=True))
        self.bins: dict[str, dict[int, dict[int, dict[Any, Any]]]] = {}  # by point, broker and number
        for row in times.to_dict("records") if times is not None else ():
            at = self.bins.setdefault(self.point_of[row["run"]], {}).setdefault(int(row["broker"]), {})
            at[round(row["start"] / row["width"])] = row

    def full(self, point: str) -> dict[int, list[dict[Any, Any]]]:
        """By broker: the first of the longest times of at least three bins, 95 % of each of which it is busy."""
        found = {}
        for broker, bins in self.bins[point].items():
            longest: list[dict[Any, Any]] = []
            here: list[dict[Any, Any]] = []
            for number in range(max(bins) + 1):
                row = bins.get(number)
                here = [*here, row] if row is not None and row["busy"] >= 0.95 * row["width"] else []
                longest = max(longest, here, key=len)
            if len(longest) >= 3:
                found[broker] = longest
        return found

    def load(self, claim: Load, text: str) -> Iterable[str]:
        full = self.full(claim.point)
        if {stretch.broker for stretch in claim.overloaded} != {*full}:
            yield f"overloaded are {sorted(full)}"
        yield from (f"{stretch.name} is not named" for stretch in claim.overloaded if stretch.name not in text)
        shares = [
            min(row["busy"] / row["width"], 1.0) for bins in self.bins[claim.point].values() for row in bins.values()
        ]
        if not full and number_text(max(shares), "share") not in text:
            yield f"the busiest is busy {max(shares)} of the time"
        for doing in ("events are published", "control messages spread"):
            first = next((stretch for stretch in claim.overloaded if stretch.doing == doing), None)
            if first is None:
                continue
            rows = full.get(first.broker) or [{"start": 0, "width": 1, "queued": 0, "waited": 0, "messages": 1}]
            ends = rows[0]["start"], rows[-1]["start"] + rows[-1]["width"]
            queue = max(row["queued"] / row["width"] for row in rows)
            wait = max(row["waited"] / row["messages"] for row in rows)
            said = [f"{number_text(end, 'ms')}" for end in ends]
            expected = [f"from {said[0]} to {said[1]} ms", f"{number_text(queue, 'messages')} messages wait"]
            expected += [f"for {number_text(wait, 'ms')} ms", f"{first.name} is overloaded while {doing}"]
            yield from (f"not {words}" for words in expected if words not in text)

    def where_overloaded(self, claim: Overloads, text: str) -> Iterable[str]:
        events = claim.doing == "events are published"
        full = {
            point
            for point in self.bins
            for rows in self.full(point).values()
            if events == (2 * sum(row["events"] for row in rows) >= sum(row["messages"] for row in rows))
        }
        if {*claim.points} != full or {*claim.among} != {*self.bins}:
            yield f"overloaded in {len(full)} of {len(self.bins)}"
        numbers = (
            f"{len(full)} of {len(self.bins)} settings" if len(full) < len(self.bins) else f"the {len(full)} settings"
        )
        if numbers not in text:
            yield f"not {numbers}"


def verdict(both: list[tuple[float, float]]) -> str:
    apart = [b - a for a, b in both]
    if all(math.isclose(a, b, rel_tol=1e-9) for a, b in both):
        return "equal"
    if len(apart) == 1:
        return "one seed"
    return "differs" if abs(fmean(apart)) > T[len(apart) - 1] * stdev(apart) / math.sqrt(len(apart)) else "chance"


def clauses(pairs: list[list[tuple[float, float]]], metric: str) -> list[str]:
    """Texts one of which must be in a sentence about these pairs."""
    if len(pairs) == 1:
        a, b = (with_unit(mean, metric) for mean in means(pairs[0]))
        return [f"{a} → {b}", *([f"stays {a}"] if a == b else [])]
    changes = [change(both, metric) for both in pairs]
    return ["times"] if "times" in changes and all(0 < a < b for both in pairs for a, b in [means(both)]) else changes


def means(both: list[tuple[float, float]]) -> tuple[float, float]:
    a, b = (fmean(values) for values in zip(*both, strict=True))
    return a, b


def change(both: list[tuple[float, float]], metric: str) -> str:
    if verdict(both) == "equal":
        return "unchanged"
    a, b = means(both)
    if CATALOGUE[metric].unit == "share":
        points = round(abs(100 * (b - a)), 1)
        return f"{'+' if b > a else '−'}{points:.1f} points" if points else "0.0 points"
    if a == 0:
        return f"{with_unit(a, metric)} → {with_unit(b, metric)}"
    if a > 0 and b / a >= 3:
        return "times"
    percent = round(abs(100 * (b - a) / abs(a)), 1)
    return f"{percent:,.1f} %" if percent == 0 else f"{'+' if b > a else '−'}{percent:,.1f} %"
