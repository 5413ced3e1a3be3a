"""From an experiment file to the list of runs: loading, `--set`, and expanding a sweep.

    [sweep]                          every combination of the listed values
    "covering.epsilon" = [0.0, 0.1]

    [[case]]                         named settings that belong together; each is crossed with [sweep]
    "routing.strategy" = "simple"
    sweep = { "covering.epsilon" = [0.2] }   and with its own, whose keys win

A section can be swept whole: covering = [{ method = "auto" }, { method = "budget", budget = 64 }].

Settings given beside the file win over everything in it (changes.py). Settings without effect at a point (effects.py)
are left out there, and points that are then equal are run once. A setting that no point uses is an error.
Every run of the sweep is checked before the first one starts.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from coverlay import CoverlayError, did_you_mean, quoted, shortened
from sim.experiment.changes import SWEEP, changed, forget
from sim.experiment.config import Experiment, bits_that_follow, borrowed_prices, parse
from sim.experiment.dotted import assign, lookup
from sim.experiment.effects import input_digests
from sim.experiment.input_files import from_folder, save
from sim.experiment.kinds import by_key
from sim.experiment.latency_origins import differing_origins
from sim.experiment.points import ABOUT_THE_SWEEP, Point, expand, superfluous
from sim.experiment.shipped import shipped
from sim.experiment.toml_text import read_toml
from sim.plugins import Plugin, explained, load_used, used_by

EXPERIMENT = "experiment.toml"  # in the folder of a sweep: the experiment as it was run
MOST_SHOWN = 20  # points, in a notebook
RUN_LIMIT = 100_000  # a larger sweep is taken for a typing mistake


@dataclass(frozen=True)
class PlannedRun:
    """One seed at one point of a sweep."""

    experiment: Experiment
    seed: int
    point: dict[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)  # key of each input file → digest of its content
    ignored: tuple[str, ...] = ()  # keys that were given and are left out here: they have no effect
    plugins: tuple[Plugin, ...] = ()  # that it uses
    local: tuple[str, ...] = ()  # names that it uses and only this session knows

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
        own = [plugin.digest for plugin in self.plugins]
        text = json.dumps([parameters, point, *([own] if own else [])], sort_keys=True)
        return f"s{self.seed}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


@dataclass(frozen=True)
class Plan:
    """An experiment as given (for the record) and all its runs.

    >>> import sim
    >>> sim.load("demo", {"routing.strategy": ["simple", "covering"], "sweep": {}, "case": [{}]})
    Plan demo: 6 runs, 2 points × 3 seeds
    """

    name: str
    data: dict[str, Any]
    runs: list[PlannedRun]
    notes: tuple[str, ...] = ()  # what the user should know: settings without effect, keys no longer swept
    plugins: tuple[Plugin, ...] = ()  # that it names; their files are copied to the results

    def __repr__(self) -> str:
        points, seeds = {str(run.point) for run in self.runs}, {run.seed for run in self.runs}
        return f"Plan {self.name}: {len(self.runs)} runs, {len(points)} points × {len(seeds)} seeds"

    def _repr_html_(self) -> str:
        """For notebooks: the line, and the points."""
        rows = list({str(run.point): run.point for run in self.runs}.values())
        keys = list(dict.fromkeys(key for row in rows for key in row))
        shown = [[str(row.get(key, "")) for key in keys] for row in rows[:MOST_SHOWN]]
        more = f"<p>the first {MOST_SHOWN} of {len(rows)} points</p>" if len(rows) > MOST_SHOWN else ""
        return f"<p>{escape(repr(self))}</p>{_html_table(keys, shown) if keys else ''}{more}"

    def save(self, file: str | Path) -> Path:
        """Write it as an experiment file that `coverlay run` takes; what it reads is copied beside it."""
        save(self.data, self.plugins, Path(file))
        return Path(file)


def _html_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def load(name_or_file: str, settings: Iterable[str] | Mapping[str, Any] = (), plugins: Sequence[str] = ()) -> Plan:
    """The plan of a shipped experiment or of the user's own file, with settings (`key=value`, or a dict) applied."""
    path = shipped().get(name_or_file, Path(name_or_file))
    if not isinstance(settings, Mapping):
        settings = dict(map(parse_setting, settings))
    data = _read(path, name_or_file)
    made = plan(data, where=name_or_file, settings=settings, folder=path.parent, plugins=plugins)
    empty = f"{name_or_file} is empty: every key that is not set has its default (coverlay keys)"
    return made if data else replace(made, notes=(empty, *made.notes))


def plan(
    data: Mapping[str, Any],
    where: str = "experiment",
    settings: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    plugins: Sequence[str] = (),
) -> Plan:
    """Expand `[sweep]` and `[[case]]` into runs, every one of them checked.

    `settings` are dotted keys that win over the data. Relative paths in the data start from `folder`, those in settings
    from the current folder, and so do those of `plugins`, which are imported beside those in the data.
    """
    settings, data = by_key(settings or {}), _with_plugins(data, folder or Path(), plugins)
    with explained():
        return _plan(data, load_used({**data, "settings": settings}), where, settings, folder)


def _plan(
    data: Mapping[str, Any], plugins: list[Plugin], where: str, settings: Mapping[str, Any], folder: Path | None
) -> Plan:
    change = changed(from_folder(data, folder or Path()), settings)
    whole = from_folder(change.data, Path())  # paths that are still relative come from settings
    whole.setdefault("name", Path(where).stem)
    base = copy.deepcopy(whole)
    sweep, cases = base.pop("sweep", {}), base.pop("case", [{}])
    whole_experiment = parse(base, where)  # mistakes outside the sweep are reported once, without swept values
    _check_sweep(sweep, cases, len(whole_experiment.seeds), where)
    _check_asked(whole_experiment.asks, where)
    points = list(expand(base, sweep, cases, where))
    notes, unused = superfluous(points, settings, where)
    notes[:0] = [*base.get("notes", []), *change.dropped]
    for key in unused:
        forget(whole, key)
    different: dict[str, Point] = {}
    for point in points:
        different.setdefault(json.dumps(point.experiment.parameters(), sort_keys=True), point)
    left = "one point" if len(different) == 1 else f"{len(different)} points"
    for what, found in (("neither swept nor taken from cases", change.fixed), ("swept", change.swept)):
        if found:
            values = ", ".join(f"{key} = {quoted(value)}" for key, value in found.items())
            notes.insert(0, f"set, so {what}: {values}; this leaves {left}")
    if len(different) < len(points):
        distinct = "all the same" if len(different) == 1 else f"only {len(different)} different ones"
        notes.append(f"{len(points)} points are {distinct}, and equal ones are run once")
    notes += bits_that_follow(point.experiment for point in different.values())
    notes += differing_origins(point.experiment.overlay for point in different.values())
    digests: dict[str, str] = {}
    runs = []
    for point in different.values():
        inputs, ignored = input_digests(point.experiment, digests), tuple(item.key for item in point.idle)
        used = used_by(point.experiment, plugins)
        notes += [note for note in borrowed_prices(point.experiment) if note not in notes]
        for seed in point.experiment.seeds:
            runs.append(PlannedRun(point.experiment, seed, point.point, inputs, ignored, *used))
    if local := sorted({name for run in runs for name in run.local}):
        notes.append(f"registered in this session only, so runs are made in this process: {', '.join(local)}")
    return Plan(base["name"], whole, runs, tuple(notes), tuple(plugins))


def _with_plugins(data: Mapping[str, Any], folder: Path, given: Sequence[str]) -> dict[str, Any]:
    """The data, with plug-ins given beside it, and the paths of all plug-ins' files."""
    named = data.get("plugins", [])
    if not isinstance(named, list):
        return dict(data)  # refused when they are imported
    here = [str((folder / name).resolve()) if str(name).endswith(".py") else name for name in named]
    here += [str(Path(name).resolve()) if name.endswith(".py") else name for name in given]
    return {**data, "plugins": list(dict.fromkeys(here))} if here else dict(data)


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
    points = sum(math.prod(map(len, {**sweep, **table}.values())) for table in own)
    if points * seeds > RUN_LIMIT:
        many = f"{points:,} points with {seeds:,} seeds each are {points * seeds:,} runs"
        raise CoverlayError(f"{where}: {many}; at most {RUN_LIMIT:,} are run")


def _check_asked(names: list[str], where: str) -> None:
    if names:
        from analysis.spark.metrics import metric  # only here: it takes half a second

        for name in names:
            try:
                metric(name)
            except CoverlayError as error:
                raise CoverlayError(f"{where}: asks: {error}") from None


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        if not path.is_file():
            known = ", ".join(shipped())
            hint = did_you_mean(name, shipped())
            raise CoverlayError(f"there is no experiment {quoted(name)}: neither a file nor one of {known}{hint}")
        return read_toml(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise CoverlayError(f"{name} is not a TOML file: it is not UTF-8 text") from None
    except CoverlayError:
        raise
    except ValueError as error:
        raise CoverlayError(f"{name} is not a TOML file: {error}") from None
    except OSError as error:
        raise CoverlayError(f"{shortened(name)} cannot be read: {error.strerror}") from None


def parse_setting(setting: str) -> tuple[str, Any]:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise CoverlayError(f"--set takes key=value, e.g. covering.epsilon=0.1; given: {quoted(setting)}")
    try:
        value = read_toml(f"value = {text.strip()}")["value"]
    except ValueError:
        value = text.strip()  # a bare word is a string
    return key.strip(), value
