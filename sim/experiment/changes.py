"""Settings given beside an experiment (`--set`, or a dict in Python), which win over everything in it.

A section is merged: its other keys stay as they are. `sweep`, `case` and tables that are values (`overlay.latency`,
`broker.service`) are replaced. A swept key gets the one value that is set. A list, where the key does not take one,
lists values to sweep, in place of those of the experiment. Another `kind` or `method` drops the options of the others,
a file those of all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coverlay import CoverlayError, quoted
from sim.experiment.dotted import MISSING, after, assign, lookup, related, remove
from sim.experiment.kinds import CHOOSERS, by_key, default_kind, foreign, takes_list
from sim.experiment.points import ABOUT_THE_SWEEP, swept_key

SWEEP = "sweep"  # of an experiment, or of one of its cases
REPLACED = (SWEEP, "case")


@dataclass
class Changed:
    """An experiment with settings, and what they did beside setting keys."""

    data: dict[str, Any]
    fixed: dict[str, Any] = field(default_factory=dict)  # keys that it sweeps or has in cases, which now have one value
    swept: dict[str, list[Any]] = field(default_factory=dict)  # keys that a setting sweeps
    dropped: list[str] = field(default_factory=list)  # notes about options of kinds that are no longer chosen


def changed(data: Mapping[str, Any], settings: Mapping[str, Any]) -> Changed:
    """A copy of an experiment with dotted keys set."""
    result = Changed(copy.deepcopy(dict(data)))
    settings = by_key(settings)
    result.dropped = list(_drop_foreign(result.data, settings))
    kinds = _kinds(result.data, settings)
    for key in sorted(settings, key=lambda key: key not in REPLACED):  # a list is added to a sweep that is replaced
        value = settings[key]
        if key.startswith("sweep."):  # swept keys are quoted: `--set 'sweep."covering.epsilon"=[0.1]'`
            _sweep(result.data)[swept_key(key)] = value
        elif key in REPLACED:
            result.data[key] = value
        elif isinstance(value, list) and key not in ABOUT_THE_SWEEP and not takes_list(key, value, kinds):
            _list(result.data, key, value)
            result.swept[key] = value
        else:
            if _fix(result.data, key, value):
                result.fixed[key] = value
            if not _replaced(result.data, key):
                assign(result.data, key, value)
    return result


def _kinds(data: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds and methods that an experiment with these settings chooses, defaults included."""
    found: dict[str, Any] = {}
    for section, chooser in CHOOSERS.items():
        key = f"{section}.{chooser}"
        chosen = settings.get(key, lookup(data, key))
        assign(found, key, default_kind(section) if chosen is MISSING else chosen)
    return found


def _sweep(data: dict[str, Any]) -> dict[str, Any]:
    sweep = data.setdefault(SWEEP, {})
    if not isinstance(sweep, dict):
        raise CoverlayError(f"sweep is {quoted(sweep)}; it must be a table of key = [value, …]")
    return sweep


def _list(data: dict[str, Any], key: str, values: list[Any]) -> None:
    """Sweep these values of a key. Swept keys win over those of cases, so only other sweeps must lose it."""
    sweep = _sweep(data)
    sweep[key] = values
    for table in tables(data)[0]:
        if table is not sweep:
            table.pop(key, None)
        for name, listed in table.items():
            if key.startswith(f"{name}."):
                _delete_within(listed, key.removeprefix(f"{name}."))


def _fix(data: dict[str, Any], key: str, value: Any) -> bool:
    """Let a setting win over `[sweep]` and `[[case]]`; returns whether any of them had it.

    A swept key stays in the sweep with one value, so that it is still a column of the results.
    """
    sweeps, cases = tables(data)
    found = False
    for sweep, swept, values in [(table, *item) for table in sweeps for item in table.items()]:
        if related(swept, key) and isinstance(values, list):
            found = True
            kept: list[Any] = []
            for one in (after(swept, old, key, value) for old in values):
                if one is not MISSING and one not in kept:
                    kept.append(one)
            sweep[swept] = kept
            if not kept:
                del sweep[swept]
    for case in cases:
        for cased in [name for name in case if name != SWEEP and related(name, key)]:
            found = True
            case[cased] = after(cased, case[cased], key, value)
            if case[cased] is MISSING:
                del case[cased]
    return found


def _drop_foreign(data: dict[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Delete the options that only other kinds take than those that are set, wherever the experiment has them."""
    sweeps, cases = tables(data)
    for section in CHOOSERS:
        options, why = foreign(section, settings)
        for option in sorted(options):
            key = f"{section}.{option}"
            if key in settings:
                continue  # the user asks for it: an error, told with the options that there are
            if any([_delete(table, key) for table in (data, *cases, *sweeps)]):
                yield f"{key} is left out: {why}"


def _delete(table: dict[str, Any], key: str) -> bool:
    """Delete a dotted key from a table, from tables in it, and from those that a sweep lists; was it there?"""
    found = table.pop(key, MISSING) is not MISSING
    for name, value in table.items():
        if key.startswith(f"{name}."):
            found |= _delete_within(value, key.removeprefix(f"{name}."))
    return found


def _delete_within(value: Any, key: str) -> bool:
    """The same for a value: a table, or the tables that a sweep lists."""
    having = [one for one in (value if isinstance(value, list) else [value]) if lookup(one, key) is not MISSING]
    for one in having:
        remove(one, key)
    return bool(having)


def _replaced(data: Mapping[str, Any], key: str) -> bool:
    """Is the key inside a section that every point replaces?"""
    _, cases = tables(data)
    swept = [{**sweep_of(data), **sweep_of(case)} for case in cases or [{}]]
    return all(any(key.startswith(f"{whole}.") for whole in sweep) for sweep in swept)


def tables(data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """`[sweep]` and the sweeps of cases, and the `[[case]]` tables. Malformed ones are skipped, and refused later."""
    cases = data.get("case")
    found = [case for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []
    return [sweep for table in (data, *found) if (sweep := sweep_of(table))], found


def sweep_of(table: Mapping[str, Any]) -> dict[str, Any]:
    found = table.get(SWEEP)
    return found if isinstance(found, dict) else {}


def forget(data: dict[str, Any], key: str) -> None:
    """Delete a key that no point uses from the record, which must be a valid experiment itself."""
    sweeps, cases = tables(data)
    for table in (data, *sweeps, *cases):
        _delete(table, key)
