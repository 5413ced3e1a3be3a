"""The points of a sweep: every combination of its values, each without the settings that have no effect in it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coverlay import CoverlayError, quoted
from sim.experiment.config import Experiment, parse
from sim.experiment.dotted import MISSING, assign, lookup, related, remove
from sim.experiment.effects import Idle, given, idle
from sim.experiment.kinds import by_key, foreign_keys

REASONS = 4  # shown in a note
# Keys that decide nothing about a single run, so they cannot be swept, nor make another key superfluous.
ABOUT_THE_SWEEP = {"name", "question", "asks", "notes", "seeds", "tell", "run.force", "run.limit_bytes", "run.engine"}


@dataclass(frozen=True)
class Point:
    """One combination of the sweep, without the settings that have no effect in it."""

    point: dict[str, Any]
    experiment: Experiment
    used: frozenset[str]  # given keys that have an effect
    idle: tuple[Idle, ...]  # the others


def expand(base: dict[str, Any], sweep: dict[str, list[Any]], cases: list[Any], where: str) -> Iterator[Point]:
    """Every combination, with the settings that have no effect in it, or are options of other kinds, left out."""
    for point in map(by_key, _combinations(sweep, cases)):
        settled = copy.deepcopy(base)
        for key, value in point.items():
            assign(settled, key, copy.deepcopy(value))
        shown = ", ".join(f"{key} = {quoted(value)}" for key, value in point.items())
        left_out = _without_foreign(settled, point)
        experiment = parse(settled, f"{where} with {shown}" if point else where)
        if without_effect := idle(experiment):
            for item in without_effect:
                remove(settled, item.key)
            experiment = parse(settled, where)
        left_out += without_effect
        counts = {key: lookup(settled, key) for key in point}
        used = frozenset(item.key for item in given(experiment))
        yield Point({k: v for k, v in counts.items() if v is not MISSING}, experiment, used, tuple(left_out))


def _without_foreign(settled: dict[str, Any], point: Mapping[str, Any]) -> list[Idle]:
    """Delete the options that the kinds and methods which a point chooses do not take, but others do."""
    found = [Idle(key, lookup(settled, key), why, misleads=True) for key, why in foreign_keys(settled, point)]
    for item in found:
        remove(settled, item.key)
    return found


def _combinations(sweep: dict[str, list[Any]], cases: list[Any]) -> Iterator[dict[str, Any]]:
    """Each case with each combination of what is swept; a case may have a sweep of its own, whose keys win."""
    for case in cases:
        swept = {**sweep, **case.get("sweep", {})}
        named = {key: value for key, value in case.items() if key != "sweep"}
        for values in itertools.product(*swept.values()):
            yield {**named, **dict(zip(swept, values, strict=True))}


def superfluous(points: list[Point], settings: Mapping[str, Any], where: str) -> tuple[list[str], list[str]]:
    """Notes about settings without effect at some points, and keys that no point uses; raises if those are a mistake.

    Settings given beside the file may leave keys of the file without effect: that is only noted.
    """
    used = frozenset().union(*(point.used for point in points))
    found: dict[str, list[Idle]] = {}
    for item in (item for point in points for item in point.idle if item.misleads):
        found.setdefault(item.key, []).append(item)
    chosen = [swept_key(key) for key in settings if key not in ABOUT_THE_SWEEP]
    unused = [key for key in found if key not in used]
    mistakes = [key for key in unused if not chosen or any(related(key, setting) for setting in chosen)]
    if mistakes:
        said = (_note(f"{key} = {quoted(found[key][0].value)}", found[key], len(points)) for key in mistakes)
        raise CoverlayError(f"{where}: {'; '.join(said)}")
    return [_note(key, items, len(points)) for key, items in found.items()], unused


def _note(key: str, items: list[Idle], total: int) -> str:
    places = f" in {len(items)} of {total} points" if len(items) < total else ""
    reasons = list(dict.fromkeys(item.reason for item in items))
    more = f", and {len(reasons) - REASONS} other reasons" if len(reasons) > REASONS else ""
    return f"{key} has no effect{places}: {', or '.join(reasons[:REASONS])}{more}"


def swept_key(key: str) -> str:
    """The key that a setting is about: `sweep."a.b"` is about `a.b`."""
    return key.removeprefix("sweep.").strip("\"'")
