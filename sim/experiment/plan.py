"""From an experiment file to the list of runs: loading, `--set`, and expanding a sweep.

    [sweep]                          every combination of the listed values
    "covering.epsilon" = [0.0, 0.1]

    [[case]]                         named settings that belong together; each is crossed with [sweep]
    "routing.strategy" = "simple"
    sweep = { "covering.epsilon" = [0.2] }   and with its own, whose keys win

A section can be swept whole: covering = [{ method = "auto" }, { method = "budget", budget = 64 }].

A setting given beside the file wins over everything in it: a swept key gets this one value. Settings without effect at
a point (effects.py) are left out there, and points that are then equal are run once. A setting that no point uses is an
error.
Every run of the sweep is checked before the first one starts.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from broker.work import is_file
from coverlay import CoverlayError, did_you_mean, quoted
from sim.experiment.config import Experiment, parse
from sim.experiment.dotted import MISSING, after, assign, lookup, related, remove
from sim.experiment.effects import file_keys, input_digests
from sim.experiment.points import ABOUT_THE_SWEEP, Point, expand, superfluous, swept_key
from sim.experiment.shipped import shipped

SWEEP = "sweep"  # of an experiment, or of one of its cases
EXPERIMENT = "experiment.toml"  # in the folder of a sweep: the experiment as it was run
RUN_LIMIT = 100_000  # a larger sweep is taken for a typing mistake


@dataclass(frozen=True)
class PlannedRun:
    """One seed at one point of a sweep."""

    experiment: Experiment
    seed: int
    point: dict[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)  # key of each input file → digest of its content
    ignored: tuple[str, ...] = ()  # keys that were given and are left out here: they have no effect

    @property
    def run_id(self) -> str:
        """Depends on the parameters, the input files' content and the seed only, so `--resume` finds it in a larger
        sweep too."""
        parameters, point = self.experiment.parameters(), dict(self.point)
        for key, digest in self.inputs.items():  # not the path, which may change
            content = f"{digest}{Path(lookup(parameters, key)).suffix}"
            assign(parameters, key, content)
            if key in point:
                point[key] = content
        text = json.dumps([parameters, point], sort_keys=True)
        return f"s{self.seed}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


@dataclass(frozen=True)
class Plan:
    """An experiment as given (for the record) and all its runs."""

    name: str
    data: dict[str, Any]
    runs: list[PlannedRun]
    notes: tuple[str, ...] = ()  # what the user should know: settings without effect, keys no longer swept


def load(name_or_file: str, settings: Iterable[str] | Mapping[str, Any] = ()) -> Plan:
    """The plan of a shipped experiment or of the user's own file, with settings (`key=value`, or a dict) applied."""
    path = shipped().get(name_or_file, Path(name_or_file))
    if not isinstance(settings, Mapping):
        settings = dict(map(parse_setting, settings))
    data = _read(path, name_or_file)
    made = plan(data, where=name_or_file, settings=settings, folder=path.parent)
    empty = f"{name_or_file} is empty: every key that is not set has its default (coverlay keys)"
    return made if data else replace(made, notes=(empty, *made.notes))


def plan(
    data: Mapping[str, Any],
    where: str = "experiment",
    settings: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Plan:
    """Expand `[sweep]` and `[[case]]` into runs, every one of them checked.

    `settings` are dotted keys that win over the data. Relative paths in the data start from `folder`, those in settings
    from the current folder.
    """
    settings = settings or {}
    whole, fixed = changed(_with_paths(data, folder or Path()), settings)
    whole = _with_paths(whole, Path())  # paths that are still relative come from settings
    whole.setdefault("name", Path(where).stem)
    base = copy.deepcopy(whole)
    sweep, cases = base.pop("sweep", {}), base.pop("case", [{}])
    seeds = parse(base, where).seeds  # mistakes outside the sweep are reported once, without swept values
    _check_sweep(sweep, cases, len(seeds), where)
    points = list(expand(base, sweep, cases, where))
    notes, unused = superfluous(points, settings, where)
    notes[:0] = base.get("notes", [])
    for key in unused:
        _forget(whole, key)
    different: dict[str, Point] = {}
    for point in points:
        different.setdefault(json.dumps(point.experiment.parameters(), sort_keys=True), point)
    if fixed:
        values = ", ".join(f"{key} = {quoted(settings[key])}" for key in fixed)
        left = "one point" if len(different) == 1 else f"{len(different)} points"
        notes.insert(0, f"set, so neither swept nor taken from cases: {values}; this leaves {left}")
    if len(different) < len(points):
        distinct = "all the same" if len(different) == 1 else f"only {len(different)} different ones"
        notes.append(f"{len(points)} points are {distinct}, and equal ones are run once")
    digests: dict[str, str] = {}
    runs = []
    for point in different.values():
        inputs, ignored = input_digests(point.experiment, digests), tuple(item.key for item in point.idle)
        runs += [PlannedRun(point.experiment, seed, point.point, inputs, ignored) for seed in point.experiment.seeds]
    return Plan(base["name"], whole, runs, tuple(notes))


def changed(data: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A copy of an experiment with dotted keys set, and which of these keys it sweeps or has in cases."""
    result = copy.deepcopy(dict(data))
    fixed = []
    for key, value in settings.items():
        if key.startswith("sweep."):  # swept keys are quoted: `--set 'sweep."covering.epsilon"=[0.1]'`
            sweep = result.setdefault(SWEEP, {})
            if not isinstance(sweep, dict):
                raise CoverlayError(f"sweep is {quoted(sweep)}; it must be a table of key = [value, …]")
            sweep[swept_key(key)] = value
            continue
        if key not in ("sweep", "case") and _fix(result, key, value):
            fixed.append(key)
        if not _replaced(result, key):
            assign(result, key, value)
    return result, fixed


def _fix(data: dict[str, Any], key: str, value: Any) -> bool:
    """Let a setting win over `[sweep]` and `[[case]]`; returns whether any of them had it.

    A swept key stays in the sweep with one value, so that it is still a column of the results.
    """
    sweeps, cases = _tables(data)
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


def _replaced(data: Mapping[str, Any], key: str) -> bool:
    """Is the key inside a section that every point replaces?"""
    _, cases = _tables(data)
    swept = [{**_sweep_of(data), **_sweep_of(case)} for case in cases or [{}]]
    return all(any(key.startswith(f"{whole}.") for whole in sweep) for sweep in swept)


def _tables(data: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """`[sweep]` and the sweeps of cases, and the `[[case]]` tables. Malformed ones are skipped, and refused later."""
    cases = data.get("case")
    tables = [case for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []
    return [found for table in (data, *tables) if (found := _sweep_of(table))], tables


def _sweep_of(table: Mapping[str, Any]) -> dict[str, Any]:
    found = table.get(SWEEP)
    return found if isinstance(found, dict) else {}


def _forget(data: dict[str, Any], key: str) -> None:
    """Delete a key that no point uses from the record, which must be a valid experiment itself."""
    sweeps, cases = _tables(data)
    for table in (*sweeps, *cases):
        table.pop(key, None)
    if lookup(data, key) is not MISSING:
        remove(data, key)


def _check_sweep(sweep: Any, cases: Any, seeds: int, where: str) -> None:
    if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
        raise CoverlayError(f"{where}: case must be [[case]] tables of key = value; given: {quoted(cases)}")
    own = [case.get(SWEEP, {}) for case in cases]
    for table in (sweep, *own):
        if not isinstance(table, dict) or not all(isinstance(v, list) and v for v in table.values()):
            raise CoverlayError(
                f"{where}: [sweep] takes key = [value, …] with at least one value each; given: {quoted(table)}"
            )
    for key in set().union(sweep, *own, *cases) & ABOUT_THE_SWEEP:
        raise CoverlayError(f"{where}: {key!r} cannot be swept; sweep keys of the sections")
    count = sum(math.prod(map(len, {**sweep, **table}.values())) for table in own)
    if count * seeds > RUN_LIMIT:
        many = f"{count:,} points with {seeds:,} seeds each are {count * seeds:,} runs"
        raise CoverlayError(f"{where}: {many}; at most {RUN_LIMIT:,} are run")


def _read(path: Path, name: str) -> dict[str, Any]:
    if not path.is_file():
        known = ", ".join(shipped())
        hint = did_you_mean(name, shipped())
        raise CoverlayError(f"there is no experiment {name!r}: neither a file nor one of {known}{hint}")
    try:
        return _toml(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise CoverlayError(f"{name} is not a TOML file: it is not UTF-8 text") from None
    except ValueError as error:
        raise CoverlayError(f"{name} is not a TOML file: {error}") from None
    except OSError as error:
        raise CoverlayError(f"{name} cannot be read: {error.strerror}") from None


def _toml(text: str) -> dict[str, Any]:
    """Raises ValueError: a TOMLDecodeError, or another one for integers of thousands of digits."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def parse_setting(setting: str) -> tuple[str, Any]:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise CoverlayError(f"--set takes key=value, e.g. covering.epsilon=0.1; given: {quoted(setting)}")
    try:
        value = _toml(f"value = {text.strip()}")["value"]
    except ValueError:
        value = text.strip()  # a bare word is a string
    return key.strip(), value


PROFILE_KEY = "broker.service.profile"  # the name of a shipped profile, or a file


def _with_paths(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A copy in which relative file names of the experiment, its sweep and its cases start from `folder`."""
    result = copy.deepcopy(dict(data))
    sweeps, cases = _tables(result)
    for key in file_keys(Experiment):

        def resolved(named: str, value: Any, key: str = key) -> Any:
            """The value of `named`, which is the key of a file or a section around it."""
            table: dict[str, Any] = {}
            assign(table, named, value)
            path = lookup(table, key)
            if isinstance(path, str) and (key != PROFILE_KEY or is_file(path)):
                assign(table, key, str((folder / path).resolve()))
            return lookup(table, named)

        for table in (result, *cases):
            table.update({name: resolved(name, value) for name, value in table.items() if _holds(name, key)})
        for sweep in sweeps:
            lists = {name: values for name, values in sweep.items() if _holds(name, key) and isinstance(values, list)}
            sweep.update({name: [resolved(name, value) for value in values] for name, values in lists.items()})
    return result


def _holds(named: str, key: str) -> bool:
    """Is `named` this key, or a section around it?"""
    return f"{key}.".startswith(f"{named}.")


def to_toml(data: Mapping[str, Any]) -> str:
    """Nested tables of plain values as TOML text: enough for experiment files."""
    plain = {k: v for k, v in data.items() if not isinstance(v, dict) and not _is_tables(v)}
    lines = [f"{_key(k)} = {toml_value(v)}" for k, v in plain.items()]
    for key, value in data.items():
        if isinstance(value, dict):
            lines += ["", f"[{_key(key)}]", *(f"{_key(k)} = {toml_value(v)}" for k, v in value.items())]
        elif _is_tables(value):
            for table in value:
                lines += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {toml_value(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def toml_value(value: Any) -> str:
    if isinstance(value, dict) and not value:
        return "{}"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a control: TOML forbids it
    return repr(value)
