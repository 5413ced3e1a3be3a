"""What a sweep varies: its factors, the levels of each, and which level is compared with which.

A factor is a swept key, or several keys that are varied together only (the cases of an experiment, tables as values):
keys of the same part of an experiment are of one factor if not every combination of their values was run; keys of
different parts only if some values cannot be compared with the others otherwise (ten brokers with 100 subscriptions,
twenty with 200). So one run that is missing joins nothing. Two settings may be compared if they differ in
one factor alone. In it, a level is compared with the one it differs least from, so that a comparison says what one
choice changes: lazy against active covering, exact against ε = 0.1. Simple routing is where this starts, else exact
covering. Settings of a search for covers do not apply to a strategy without one, and hardly count as a difference.

A key that a setting lacks has no effect there, or its default.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePath
from typing import Any

from analysis.report.numbers import value_text
from analysis.report.summary import (
    ROUTING_KEYS,
    Summary,
    approximation,
    is_covering,
    is_exact,
    is_flooding,
    is_plain_covering,
    is_simple,
)

STRATEGY, EPSILON, METHOD = "routing.strategy", "covering.epsilon", "covering.method"
SEARCH = ("covering.", "routing.mode")  # what these keys set, only a search for covers heeds
# Whether recall is measured changes no result.
ABOUT_NOTHING = {"covering.recall"}
NESTED = 0.25  # as a difference: a key that does not apply on one of the two sides
NEVER = 100.0  # no two runs of them differ in this factor alone
ONE = 1.1 + 3 * NESTED  # two levels that differ by no more differ in one choice


@dataclass(frozen=True)
class Factor:
    """Levels are in table order; a level is the JSON of the values of the factor's keys."""

    keys: tuple[str, ...]
    levels: tuple[str, ...]
    names: Mapping[str, str]  # each level in words
    base: Mapping[str, str]  # each level but the first one → the level that it is compared with
    apart: Mapping[str, float]  # how many choices it differs in from that
    of: Mapping[str, str]  # the level of each point
    meaning: str = ""  # of an ε, what it is a share of, if all levels agree
    ended: bool = False  # a cap ended searches at some level, so that its number is not what decided

    @property
    def title(self) -> str:
        """routing; or the swept key’s own name: subscriptions; ε of the volume; search, where caps decided."""
        if self.keys == (EPSILON,):
            return "search" if self.ended else f"ε{self.meaning}"
        if {_part(key) for key in self.keys} == {"routing"} and len(self.keys) > 1:
            return "routing"
        return ", ".join(_short(key) for key in self.keys)

    @property
    def routes(self) -> bool:
        """Whether its levels are ways to route, so that their names say enough."""
        return bool({STRATEGY, EPSILON, METHOD} & {*self.keys})

    @property
    def numbers(self) -> list[float]:
        """The levels as numbers, if all are."""
        values = [json.loads(level).get(self.keys[0]) for level in self.levels]
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        return [float(value) for value in values] if len(self.keys) == 1 and is_number and not self.ended else []


def factors_of(summary: Summary, apart: Sequence[str] = ()) -> list[Factor]:
    """The factors with more than one level, routing first, then those with most levels.

    Keys in `apart` are factors of their own although not every combination was run: a search tries its own rates in
    each setting.
    """
    points = {point: _values(point) for point in summary.order}
    keys = [key for key in dict.fromkeys(key for of in points.values() for key in of) if key not in ABOUT_NOTHING]
    varied = [key for key in keys if len({json.dumps(of.get(key)) for of in points.values()}) > 1]
    together = _together([key for key in varied if key not in apart], list(points.values()))
    groups = [*together, *([key] for key in varied if key in apart)]
    found = [_factor(summary, tuple(group), points) for group in groups]
    routing_first = sorted(found, key=lambda f: (not f.keys[0].startswith(ROUTING_KEYS), -len(f.levels)))
    return routing_first


def _values(point: str) -> dict[str, Any]:
    return dict(json.loads(point))


def _together(keys: Sequence[str], points: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The keys in groups, each of which is a factor."""
    groups = [[key] for key in keys]
    for one, other in combinations(keys, 2):
        pairs = {(json.dumps(of.get(one)), json.dumps(of.get(other))) for of in points}
        every = len(pairs) == len({pair[0] for pair in pairs}) * len({pair[1] for pair in pairs})
        mine, its = (next(group for group in groups if key in group) for key in (one, other))
        if mine is not its and not every and (_part(one) == _part(other) or not _comparable(pairs)):
            mine += its
            groups.remove(its)
    return groups


def _part(key: str) -> str:
    """Of an experiment; routing and covering are one, how to route."""
    return "routing" if key.startswith(ROUTING_KEYS) else key.partition(".")[0]


def _comparable(pairs: Collection[tuple[str, str]]) -> bool:
    """Whether all values of two keys hang together: steps that change one of them lead from any pair to any other."""
    reached, left = [next(iter(pairs))], {*pairs}
    for one, other in reached:
        new = {pair for pair in left if pair[0] == one or pair[1] == other}
        left -= new
        reached += new
    return not left


def _factor(summary: Summary, keys: tuple[str, ...], points: Mapping[str, Mapping[str, Any]]) -> Factor:
    of = {
        point: json.dumps({key: values[key] for key in sorted(keys) if key in values})
        for point, values in points.items()
    }
    levels = list(dict.fromkeys(of.values()))
    at = {level: [point for point in of if of[point] == level] for level in levels}
    labels = {level: summary.labels_of(at[level]) for level in levels}
    in_force = {level: {**summary.settings(at[level][0]), **json.loads(level)} for level in levels}
    choices = {level: {key: of.get(key) for key in keys} for level, of in in_force.items()}
    if all(len(json.loads(level)) == 1 for level in levels) and len(keys) == 1:
        levels.sort(key=lambda level: _order(json.loads(level)[keys[0]]))
    others = {level: {_without(keys, points[point]) for point in at[level]} for level in levels}
    base, apart = _compared(levels, labels, choices, others)
    names = _distinct({level: _name(level, labels[level], keys) for level in levels})
    shares = {str(of["epsilon_of"]) for of in labels.values() if of["epsilon_of"]}
    meaning = f" of the {shares.pop()}" if len(shares) == 1 else ""
    ended = EPSILON in keys and any(of["ended"] for of in labels.values())
    return Factor(keys, tuple(levels), names, base, apart, of, meaning, ended)


def _without(keys: Collection[str], values: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in values.items() if key not in keys})


def _order(value: Any) -> tuple[bool, float]:
    """Numbers by size, and none before what is done instead; anything else stays as it was."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return not is_number, float(value) if is_number else float(value != "none")


def _compared(
    levels: Sequence[str],
    labels: Mapping[str, Mapping[str, Any]],
    choices: Mapping[str, Mapping[str, Any]],
    others: Mapping[str, Collection[str]],
) -> tuple[dict[str, str], dict[str, float]]:
    """Each level's base: a tree in which every level hangs on the one that it differs least from.

    `others` are the values of all other keys that a level was run with: levels that share none cannot be compared.
    """

    def far(one: str, other: str) -> float:
        never = not {*others[one]} & {*others[other]}
        return _distance(one, other, labels, choices) + NEVER * never

    def rank(level: str) -> tuple[bool, bool, bool, int, int]:
        have = labels[level]
        covers = not (is_plain_covering(have) and is_exact(have))
        return not is_simple(have), covers, is_flooding(have), len(json.loads(level)), levels.index(level)

    first, *rest = sorted(levels, key=rank) if len({rank(level)[:3] for level in levels}) > 1 else list(levels)
    order = {level: number for number, level in enumerate(rest)}
    # Of each level that hangs nowhere yet, the nearest that does: how far it is, and when it was hung up.
    nearest = {level: (far(level, first), 0) for level in rest}
    placed, base, apart = [first], dict[str, str](), dict[str, float]()
    while nearest:
        new = min(nearest, key=lambda level: (nearest[level][0], order[level]))
        apart[new], old = nearest.pop(new)
        base[new] = placed[old]
        for level, known in nearest.items():
            nearest[level] = min(known, (far(level, new), len(placed)))
        placed.append(new)
    return base, apart


def _distance(
    one: str, other: str, labels: Mapping[str, Mapping[str, Any]], choices: Mapping[str, Mapping[str, Any]]
) -> float:
    """In how many choices two levels differ; how covers are searched is one choice, whatever its keys."""
    a, b = choices[one], choices[other]
    keys = {key for key in a if a[key] != b[key]}
    different = {"covering." if key.startswith("covering.") else key for key in keys}
    both_search = is_covering(labels[one]) and is_covering(labels[other])
    nearly = 0.001 * len(keys)  # of several that differ in one choice, the one with most keys alike
    return nearly + sum(NESTED if choice.startswith(SEARCH) and not both_search else 1.0 for choice in different)


# ── names ──────────────────────────────────────────────────────────────────────────────────────────────────


def _name(level: str, labels: Mapping[str, Any], keys: Sequence[str]) -> str:
    """exact covering, mode active; covering, ε = 0.1; star; 500."""
    values = json.loads(level)
    if not {STRATEGY, EPSILON, METHOD} & {*keys}:  # see Factor.routes
        texts = [said(key, value, len(keys) > 1) for key, value in values.items()]
        return ", ".join(texts) or f"no {_short(keys[0])}"
    strategy = str(labels["strategy"])
    words = [strategy if is_covering(labels) or is_flooding(labels) else f"{strategy} routing"]
    if is_covering(labels):
        searched = any(key.startswith("covering.") for key in keys)
        if searched and is_exact(labels) and is_plain_covering(labels):
            words = [f"exact {strategy}"]
        elif limit := approximation(labels):
            words.append(limit)
    words += [said(key, value, True) for key, value in values.items() if key not in {STRATEGY, EPSILON, METHOD}]
    return ", ".join(words)


def _short(key: str) -> str:
    """subscriptions, publish rate; overlay kind, for there are other kinds too."""
    section, _, name = key.rpartition(".")
    return f"{section} {name}" if name in {"kind", "method", "file"} else name.replace("_", " ")


def said(key: str, value: Any, with_key: bool) -> str:
    """A setting in words: subscriptions 500, mode lazy; a file without its folders."""
    if isinstance(value, Mapping):
        return ", ".join(said(name, item, False) for name, item in value.items())
    is_word = isinstance(value, str)
    text = PurePath(value).stem if is_word and key.endswith("file") else value_text(value)
    return f"{_short(key)} {text}" if with_key or not is_word else text


def _distinct(names: dict[str, str]) -> dict[str, str]:
    """Names that two levels share get the method of their search, else everything that was set."""
    twice = {name for name in names.values() if list(names.values()).count(name) > 1}
    with_method = {
        level: f"{name} ({json.loads(level)[METHOD]})" if name in twice and METHOD in json.loads(level) else name
        for level, name in names.items()
    }
    if len(set(with_method.values())) == len(names):
        return with_method
    return {
        level: name
        if list(with_method.values()).count(name) == 1
        else f"{name} ({', '.join(f'{key} = {value_text(value)}' for key, value in json.loads(level).items())})"
        for level, name in with_method.items()
    }
