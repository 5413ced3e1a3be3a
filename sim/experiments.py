"""From an experiment file to the list of runs: loading, `--set`, and expanding a sweep.

    [sweep]                          every combination of the listed values
    "covering.epsilon" = [0.0, 0.1]

    [[case]]                         named settings that belong together; each is crossed with [sweep]
    "routing.strategy" = "simple"

Every run of the sweep is checked before the first one starts.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverlay import CoverlayError, did_you_mean
from sim.config import Experiment, parse

SHIPPED = Path(__file__).parent / "shipped"
RUN_LIMIT = 100_000  # a sweep beyond this is a typing mistake


@dataclass(frozen=True)
class Run:
    """One seed at one point of a sweep."""

    experiment: Experiment
    seed: int
    point: dict[str, Any]

    @property
    def run_id(self) -> str:
        """Depends on the parameters and the seed only, so `--resume` finds it in a larger sweep too."""
        text = json.dumps([self.experiment.parameters(), self.point], sort_keys=True)
        return f"s{self.seed}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


@dataclass(frozen=True)
class Plan:
    """An experiment as given (for the record) and all its runs."""

    name: str
    data: dict[str, Any]
    runs: list[Run]


def shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def load(name_or_file: str, settings: Iterable[str] | Mapping[str, Any] = ()) -> Plan:
    """The plan of a shipped experiment or of the user's own file, with settings (`key=value`, or a dict) applied."""
    path = shipped().get(name_or_file, Path(name_or_file))
    if not isinstance(settings, Mapping):
        settings = dict(map(_parse_setting, settings))
    data = changed(_read(path, name_or_file), settings)
    _resolve_files(data, path.parent)
    return plan(data, where=name_or_file)


def changed(data: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of an experiment with dotted keys set."""
    result = copy.deepcopy(dict(data))
    for key, value in settings.items():
        _assign(result, key, value)
    return result


def plan(data: Mapping[str, Any], where: str = "experiment") -> Plan:
    """Expand `[sweep]` and `[[case]]` into runs, every one of them checked."""
    base = copy.deepcopy(dict(data))
    given = copy.deepcopy(base)
    sweep, cases = base.pop("sweep", {}), base.pop("case", [{}])
    base.setdefault("name", Path(where).stem)
    given.setdefault("name", base["name"])
    parse(base, where)  # mistakes outside the sweep are said once, without a swept value
    _check_sweep(sweep, cases, where)
    runs = []
    for case, *values in itertools.product(cases, *sweep.values()):
        point = {**case, **dict(zip(sweep, values, strict=True))}
        settled = copy.deepcopy(base)
        for key, value in point.items():
            _assign(settled, key, value)
        shown = ", ".join(f"{key} = {value!r}" for key, value in point.items())
        experiment = parse(settled, f"{where} with {shown}" if point else where)
        runs += [Run(experiment, seed, point) for seed in experiment.seeds]
    return Plan(base["name"], given, runs)


def _check_sweep(sweep: Any, cases: Any, where: str) -> None:
    if not isinstance(sweep, dict) or not all(isinstance(v, list) and v for v in sweep.values()):
        raise CoverlayError(
            f"{where}: [sweep] takes key = [value, …] with at least one value each; given: {sweep!r}"
        )
    if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
        raise CoverlayError(f"{where}: case must be [[case]] tables of key = value; given: {cases!r}")
    for key in {*sweep, *(key for case in cases for key in case)} & {"name", "question", "seeds", "tell"}:
        raise CoverlayError(f"{where}: {key!r} cannot be swept; sweep keys of the sections")
    count = len(cases)
    for values in sweep.values():
        count *= len(values)
    if count > RUN_LIMIT:
        raise CoverlayError(f"{where}: the sweep has {count} points; at most {RUN_LIMIT} are run")


def _read(path: Path, name: str) -> dict[str, Any]:
    if not path.is_file():
        known = ", ".join(shipped())
        hint = did_you_mean(name, shipped())
        raise CoverlayError(f"there is no experiment {name!r}: neither a file nor one of {known}{hint}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CoverlayError(f"{name} is not a TOML file: {error}") from None
    except OSError as error:
        raise CoverlayError(f"{name} cannot be read: {error.strerror}") from None


def _parse_setting(setting: str) -> tuple[str, Any]:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise CoverlayError(f"--set takes key=value, e.g. covering.epsilon=0.1; given: {setting!r}")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string
    return key.strip(), value


def _assign(data: dict[str, Any], key: str, value: Any) -> None:
    """Set `a.b.c` in nested tables. Swept keys are quoted: `--set 'sweep."covering.epsilon"=[0.1]'`."""
    if key.startswith("sweep."):
        data.setdefault("sweep", {})[key.removeprefix("sweep.").strip("\"'")] = value
        return
    *tables, last = key.split(".")
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise CoverlayError(f"{key!r} cannot be set: {table!r} is a value, not a section")
    data[last] = value


def _resolve_files(data: dict[str, Any], folder: Path) -> None:
    """Files named in an experiment lie beside it, unless their path is absolute."""
    files = {"overlay": ["file"], "workload": ["subscriptions_file", "events_file"], "faults": ["file"]}
    for section, keys in files.items():
        table = data.get(section)
        if isinstance(table, dict):
            for key in keys:
                if isinstance(table.get(key), str):
                    table[key] = str((folder / table[key]).resolve())


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
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids only controls
    return repr(value)
