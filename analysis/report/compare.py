"""Two or more results, or the values of one swept key, as a page compares settings: the first is the baseline.

Each of the others is compared with the first, over the settings that these two share. A setting is the value in force
of every key, so that what one file fixes is found where another sweeps it. Keys of which the two have no value in
common are what is compared; at most one of the two may sweep them. What only one of the two has is listed.

Runs are matched by their seeds, per setting and metric. Where no seed is on both sides the interval is not paired.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from analysis.report.answer import asked
from analysis.report.comparison import MACHINE, VERSION, Change, Comparison, count
from analysis.report.effects import Effects, Paired
from analysis.report.factors import EPSILON, STRATEGY, said
from analysis.report.numbers import and_all, value_text
from analysis.report.summary import Summary
from analysis.report.told import read_experiment
from analysis.report.words import with_factor
from analysis.spark.metrics import CATALOGUE, metric
from analysis.spark.traces import Run, canonical, read_record, run_folders, run_name
from coverlay import CoverlayError, quoted, unknown_name

__all__ = ["Comparison", "compare_by", "compare_results"]

CLOCK = {"wall_seconds"}  # differs between equal runs
NOT_SET = "not set"


class _Side:
    """One of the results: its settings, as the value in force of every key, in words."""

    def __init__(self, name: str, summary: Summary) -> None:
        self.name, self.summary, self.effects = name, summary, Effects(summary)
        rows = summary.runs.sort_values("seed").to_dict("records")
        self.runs: dict[str, dict[int, Mapping[Any, Any]]] = defaultdict(dict)  # by point and seed
        for row in rows:
            self.runs[row["point"]][row["seed"]] = row
        kept = run_folders(summary.out) if (summary.out / "runs").is_dir() else []
        folders = {run_name(folder): folder for folder in kept}
        first = {point: next(iter(of.values()))["run"] for point, of in self.runs.items()}
        self.whole = {*first.values()} <= {*folders}  # else only results were kept: what was not swept is unknown
        runs = {point: read_record(folders[run]) for point, run in first.items() if self.whole}
        self.values = {point: _flat(summary.settings(point)) for point in summary.order}
        self.values |= {point: _in_force(run) for point, run in runs.items()}
        facts = {(key, row[key]) for row in rows for key in ("engine", MACHINE) if row.get(key)}
        facts |= {("seeds", row["seed"]) for row in rows}
        facts |= {(f"version of {key}", of) for run in runs.values() for key, of in _json(run, "versions").items()}
        self.facts = {key: ", ".join(str(of) for name, of in sorted(facts) if name == key) for key, _ in sorted(facts)}

    def __str__(self) -> str:
        """a (out/a): 12 settings × 3 seeds, coverlay 0.1.0, this machine."""
        seeds, folder = {len(runs) for runs in self.runs.values()}, str(self.summary.out)
        each = count(max(seeds), "seed") if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
        version = f"coverlay {self.facts.get(VERSION, 'of unknown version')}" if self.whole else "runs not kept"
        told = [f"{count(len(self.runs), 'setting')} × {each}", version, self.facts.get(MACHINE, "")]
        return f"{self.name}{f' ({folder})' * (self.name != folder)}: {', '.join(filter(None, told))}"

    def texts(self, key: str) -> list[str]:
        """The values of a key, in table order."""
        return list(dict.fromkeys(self.values[point].get(key, NOT_SET) for point in self.summary.order))

    def word(self, point: str, key: str) -> str:
        """A value; of what an ε is a share, or the cap that decided instead."""
        labels, values = self.summary.labels(point), self.values[point].items()
        text = ", ".join(of for name, of in values if f"{name}.".startswith(f"{key}.")) or NOT_SET  # it may be a table
        if key != EPSILON or text in ("0", NOT_SET):
            return text
        cap = labels["ended"].partition(",")[0]
        return f"{text} ({cap})" if cap else f"{text} of the {labels['epsilon_of'] or 'volume'}"

    def without(self, paired: Iterable[str]) -> str:
        """The other points in words: levels of which all points are among them, then each that is left."""
        left = {*self.summary.order} - {*paired}
        words, told = [], set[str]()
        for factor in self.effects.factors:
            for level in factor.levels:
                mine = {point for point, at in factor.of.items() if at == level}
                if mine <= left and not mine <= told:
                    words.append(with_factor(factor, factor.names[level]))
                    told |= mine
        return "; ".join([*words, *(self.effects.title(point) for point in self.summary.order if point in left - told)])


def _json(run: Run, column: str) -> Mapping[str, Any]:
    return dict(json.loads(run.record[column] or "{}"))


def _in_force(run: Run) -> dict[str, str]:
    """The value of every key; a file is its name and what is in it, in whatever folder."""
    values, files = _flat(run.parameters), _json(run, "inputs")
    return values | {key: f"{PurePath(values[key]).name} ({files[key][:8]})" for key in files if key in values}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in values.items():
        nested = isinstance(value, Mapping)
        found |= _flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value_text(value)}
    return found


# ── what is compared with what ─────────────────────────────────────────────────────────────────────────────

Pair = tuple[str, str, str]  # a setting in words, and its point on both sides


def compare_results(results: Mapping[str, Summary], metrics: Sequence[str] = ()) -> Comparison:
    """The results by name, at least two; the first is the baseline."""
    if len(results) < 2:
        raise CoverlayError("there is nothing to compare: give two or more results, or one and a swept key (by)")
    first, *others = sides = [_Side(name, summary) for name, summary in results.items()]
    about, only, changes, unequal = [str(side) for side in sides], [], list[Change](), dict[str, str]()
    facts = {side.name: side.facts for side in sides}
    for other in others:
        apart, pairs = _matched(first, other)
        facts = {side.name: facts[side.name] | {key: ", ".join(side.texts(key)) for key in apart} for side in sides}
        changes += _changes(first, other, other.name, pairs)
        runs, differences = _runs(first, other, pairs)
        about.append(f"{other.name}: {runs}" if len(others) > 1 else runs)
        for side, its, part in ((first, other, 1), (other, first, 2)):
            if left := side.without(pair[part] for pair in pairs):
                only.append(f"only in {side.name}{f', not in {its.name}' * (len(others) > 1)}: {left}")
                differences = {"traces": only[-1], "metrics": only[-1]} | differences
        unequal = differences | unequal
    keys = dict.fromkeys(key for of in facts.values() for key in of)
    rows = [{"key": key, **{name: of.get(key, NOT_SET) for name, of in facts.items()}} for key in keys]
    differ = pd.DataFrame([row for row in rows if len({*row.values()}) > 2], columns=["key", *facts])
    shown = _shown(first, metrics)
    return Comparison((*results,), tuple(changes), differ, tuple(about), tuple(only), unequal, shown)


def compare_by(summary: Summary, key: str, metrics: Sequence[str] = ()) -> Comparison:
    """The values of one swept key, all else equal."""
    if key not in summary.swept:
        raise unknown_name("swept key", key, summary.swept)
    side, order = _Side(str(summary.out), summary), summary.order
    name = {point: side.word(point, key) for point in order}
    bases = (point for f in side.effects.factors if key in f.keys for point in order if f.of[point] not in f.base)
    base = name[next(bases, order[0])]
    rest = {point: canonical({other: of for other, of in json.loads(point).items() if other != key}) for point in order}
    at = {(name[point], rest[point]): point for point in order}
    words = {of: ", ".join(said(one, its, True) for one, its in json.loads(of).items()) for of in rest.values()}
    if len({*words.values()}) < len(words):  # two files of one name
        words = {of: ", ".join(f"{one} = {value_text(its)}" for one, its in json.loads(of).items()) for of in words}
    pairs = {
        of: [
            (words[left] or "all else equal", at[base, left], at[of, left])
            for left in words
            if {(base, left), (of, left)} <= at.keys()
        ]
        for of in dict.fromkeys(name.values())
        if of != base
    }
    every = [pair for found in pairs.values() for pair in found]
    if not every:
        raise CoverlayError(f"no two settings of {summary.out} differ in {quoted(key)} alone")
    changes = [change for of, found in pairs.items() for change in _changes(side, side, of, found)]
    about = f"{key}: {and_all([*pairs])} against {base}", str(side), _runs(side, side, every)[0]
    left = side.without(point for pair in every for point in pair[1:])
    only = (f"without a setting that differs in {key} alone: {left}",) if left else ()
    differ = pd.DataFrame(columns=["key", base, *pairs])
    return Comparison((base, *pairs), tuple(changes), differ, about, only, {}, _shown(side, metrics), key)


def _shown(side: _Side, metrics: Sequence[str]) -> tuple[str, ...]:
    """Those wanted, else what the experiment of the baseline asks about, else the usual ones."""
    asks = read_experiment(side.summary.out)[1].get("asks", ())
    return tuple(metric(name).name for name in metrics) or asked(side.effects, asks)


def _matched(one: _Side, other: _Side) -> tuple[list[str], list[Pair]]:
    """The keys in which they differ throughout, and the settings that are alike in all others."""
    values = {}  # by key: those of both
    for key in sorted({key for side in (one, other) for of in side.values.values() for key in of}):
        mine, its = values[key] = one.texts(key), other.texts(key)
        for side, texts in ((one, mine), (other, its)):
            if not side.whole and texts == [NOT_SET]:  # unknown
                del values[key]
                if len(mine) + len(its) > 2:
                    raise CoverlayError(f"{side.name} keeps no runs, so that its {key} is unknown")
                break
    apart = [key for key, (mine, its) in values.items() if {*mine}.isdisjoint(its)]
    same = [key for key in values if key not in apart]
    at = defaultdict[tuple[str, ...], list[str]](list)
    for point, of in other.values.items():
        at[tuple(of.get(key, NOT_SET) for key in same)].append(point)
    found = [(a, b) for a, of in one.values.items() for b in at[tuple(of.get(key, NOT_SET) for key in same)]]
    swept = [key for key in apart if min(map(len, values[key])) > 1]
    if swept or not found:
        why = (f": {key} is {' or '.join(values[key][0])}, and {' or '.join(values[key][1])}" for key in swept[:1])
        none = f"{one.name} and {other.name} have no setting in common{''.join(why)}"
        raise CoverlayError(f"{none}; settings of one result are compared with by = KEY")
    twins = {a for a, b in found if a == b}  # where points that are written differently have one meaning
    return apart, [(_title(one, other, a, b, apart), a, b) for a, b in found if a == b or a not in twins]


def _title(one: _Side, other: _Side, a: str, b: str, apart: Sequence[str]) -> str:
    """What is true of both: subscriptions 60; and how they differ in what either sweeps: strategy covering → simple."""
    best, point = max(((one, a), (other, b)), key=lambda of: len(of[0].runs))
    words, keys = [], [key for key in apart if len(one.texts(key)) + len(other.texts(key)) > 2]
    for factor in best.effects.factors:
        if all(one.word(a, key) == other.word(b, key) for key in factor.keys):
            words.append(factor.names[factor.of[point]])
        else:
            keys += [key for key in factor.keys if key not in keys and key in json.loads(point)]
    keys = keys or [key for key in apart if key == STRATEGY and not words]
    ends = [(key, one.word(a, key), other.word(b, key)) for key in keys]
    words += [f"{said(key, mine, True)}{f' → {its}' * (its != mine)}" for key, mine, its in ends]
    return ", ".join(words) or best.effects.title(point)


def _changes(one: _Side, other: _Side, of: str, pairs: Sequence[Pair]) -> list[Change]:
    """Each metric in each setting, over the seeds that both have, else over all."""
    found = []
    for setting, a, b in pairs:
        for name in [name for name in CATALOGUE if name not in CLOCK]:
            base, value = ends = one.effects.by_seed(name, a), other.effects.by_seed(name, b)
            both = sorted(base.keys() & value.keys())
            every = [np.array([*values.values()]) for values in ends]
            part = Paired.of("", *(np.array([values[seed] for seed in both]) for values in ends))
            part = part or Paired.unpaired("", *every)
            if part is None and (base or value):
                mine, its = (float(values.mean()) if len(values) else math.nan for values in every)
                part = Paired("", 0, mine, its, math.nan, False)
            if part is not None:
                found.append(Change(setting, of, name, part, bool(both), len(base.keys() | value.keys())))
    return found


def _runs(one: _Side, other: _Side, pairs: Sequence[Pair]) -> tuple[str, dict[str, str]]:
    """How many are pairs; and the first run that has no equal, by trace hash and by metrics."""
    found, both, equal = dict[str, str](), 0, 0
    for setting, a, b in pairs:
        ones, others = one.runs[a], other.runs[b]
        for seed in sorted(ones.keys() | others.keys()):
            where, x, y = f"seed {seed} of {setting}", ones.get(seed), others.get(seed)
            if x is None or y is None:
                alone = f"{where} is only in {other.name if x is None else one.name}"
                found = {"traces": alone, "metrics": alone} | found
                continue
            hashes = x["trace_hash"], y["trace_hash"]
            both, equal = both + 1, equal + (hashes[0] == hashes[1])
            if hashes[0] != hashes[1]:
                found.setdefault("traces", f"{where}: trace {hashes[0]} in {one.name}, {hashes[1]} in {other.name}")
            for name in [name for name in CATALOGUE if name not in CLOCK]:
                if x.get(name) != y.get(name) and not (pd.isna(x.get(name)) and pd.isna(y.get(name))):
                    numbers = f"{x.get(name)} in {one.name}, {y.get(name)} in {other.name}"
                    found.setdefault("metrics", f"{where}: {name} is {numbers}")
    return f"{count(both, 'pair')} of runs, {equal} with equal traces", found
