"""A commented experiment file to start from (`coverlay init`): the settings asked for, and those that can be changed.

Comments are the meanings that keys declare (keys.py). The experiment is checked, input files included, before anything
is written: the file runs as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.trace.disk import replaced_file, writing
from coverlay import CoverlayError, did_you_mean, quoted
from routing.overlay.graph import OVERLAYS
from sim.experiment.build import check_files
from sim.experiment.changes import changed
from sim.experiment.config import Experiment
from sim.experiment.dotted import MISSING, assign, lookup
from sim.experiment.effects import NoEffect, file_keys
from sim.experiment.keys import settings
from sim.experiment.plan import Plan, plan
from sim.experiment.reference import ABSENT, TOP, Setting, by_section
from sim.experiment.toml_text import to_toml, toml_value
from sim.workloads.files import EVENT_EXTRAS, PARTS
from sim.workloads.tables import Table

COLUMN = 44  # where comments begin
SEARCHES_WITH_EPSILON = "zorder-emulated"  # for an ε without a method: finishes with any number of attributes
MOST_CATEGORIES = 30  # of a column of words; a column with more is text
# Written down although they are defaults: what people change first.
SHOWN = {
    *("seeds", "overlay.kind", "overlay.brokers", "routing.strategy", "covering.method"),
    *("workload.kind", "workload.attributes", "workload.subscriptions", "workload.events"),
}
HEAD = """# Written by coverlay init. Run it with: coverlay run {file}
# Lines that begin with # and a key are defaults; remove the # to change one (… needs a value). All keys: coverlay keys
"""
SWEEP = """
# [sweep]                                   # lists of values for any keys: every combination is run
# "routing.strategy" = ["simple", "covering", "merging"]
"""
# Flag → the key whose default an empty answer takes, and the question.
QUESTIONS = {
    "overlay": ("overlay.kind", "overlay: a kind (coverlay list topologies) or a GraphML, GML or edge-list file"),
    "brokers": ("overlay.brokers", "brokers"),
    "subscriptions": ("workload.subscriptions", "subscriptions: how many, or a CSV, Parquet or JSON-lines file"),
    "events": ("workload.events", "events: how many, or a file"),
    "strategy": ("routing.strategy", "routing strategy (coverlay list strategies)"),
}


def asked(given: Mapping[str, Any], ask: Callable[[str, str], str]) -> dict[str, Any]:
    """The flags with answers for those that were not given; an empty answer takes the default."""
    answers = dict(given)
    defaults = {s.key: s.default.strip('"') for s in settings()}
    for flag, (key, question) in QUESTIONS.items():
        if flag == "brokers" and answers.get("overlay") and answers["overlay"] not in OVERLAYS:
            continue  # the file has them
        answers[flag] = answers.get(flag) or ask(question, defaults[key]).strip() or None
    return answers


def compose(given: Mapping[str, Any], set_keys: Mapping[str, Any], folder: Path, name: str) -> dict[str, Any]:
    """The experiment that flags ask for; files are named as seen from `folder`, where the experiment will be."""
    data: dict[str, Any] = {"name": name, "seeds": [1, 2, 3]}

    def put(key: str, value: Any) -> None:
        if value is not None:
            assign(data, key, value)

    overlay = given.get("overlay")
    if overlay is not None and overlay not in OVERLAYS:
        kinds = f" or one of the kinds {', '.join(OVERLAYS)}{did_you_mean(overlay, OVERLAYS)}"
        put("overlay.file", _file("--overlay", overlay, folder, kinds))
    else:
        put("overlay.kind", overlay)
    put("overlay.brokers", _count("--brokers", given.get("brokers")))
    for what in ("subscriptions", "events"):
        wanted = given.get(what)
        if wanted is not None and not wanted.isdecimal():
            put(f"workload.{what}_file", _file(f"--{what}", wanted, folder, " or a whole number"))
        else:
            put(f"workload.{what}", _count(f"--{what}", wanted))
    put("workload.kind", given.get("workload"))
    put("routing.strategy", given.get("strategy"))
    if given.get("epsilon") is not None:
        put("covering.epsilon", given["epsilon"])
        if given["epsilon"] and "covering.method" not in set_keys:
            put("covering.method", SEARCHES_WITH_EPSILON)
    data = changed(data, {key: _from(folder, key, value) for key, value in set_keys.items()}).data
    schema = _schema(data, folder)
    return {**data, "schema": schema} if schema else data


def refuse_existing(out: Path, force: bool) -> None:
    """Called before any question is asked, so that no answer is lost."""
    if out.exists() and not force:
        raise CoverlayError(f"{out} exists already; --force replaces it, --out FILE writes another")


def write(data: dict[str, Any], out: Path, force: bool) -> Plan:
    """Check the experiment and write it, commented."""
    refuse_existing(out, force)
    made = plan(data, str(out), folder=out.parent)
    check_files(made.runs)
    text = commented(data, made.runs[0].experiment, out)
    with writing(out, "nothing was written"):
        out.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(out) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return made


def commented(data: Mapping[str, Any], experiment: Experiment, out: Path) -> str:
    """The experiment as TOML: every key with its meaning, those that are not set as comments with their defaults."""
    lines = [HEAD.format(file=out)]
    shown = [s for s in settings() if _has(experiment, s) or lookup(data, s.key) is not MISSING]
    for section, rows in by_section(shown).items():
        if section != TOP:
            lines += ["", f"[{section}]"]
        lines += [_line(setting, data) for setting in rows if setting.key != "schema"]
    if "schema" in data:
        lines += ["", "[schema]" + " " * (COLUMN - 8) + "# guessed from your files: check kinds and bounds"]
        lines += [f"{name} = {toml_value(entry)}" for name, entry in data["schema"].items()]
    rest = {key: data[key] for key in ("sweep", "case") if key in data}
    return "\n".join(lines) + "\n" + (to_toml(rest) if rest else SWEEP)


def _line(setting: Setting, data: Mapping[str, Any]) -> str:
    name = setting.key.removeprefix(f"{setting.section}.")
    value = lookup(data, setting.key)
    if value is not MISSING:
        text = f"{name} = {toml_value(value)}"
    elif setting.key in SHOWN:
        text = f"{name} = {setting.default}"
    else:
        text = f"# {name} = {'…' if setting.default == ABSENT else setting.default}"
    unit = "" if setting.unit == ABSENT else f" [{setting.unit}]"
    return f"{text.ljust(COLUMN - 1)} # {setting.meaning}{unit}"


def _has(experiment: Experiment, setting: Setting) -> bool:
    """Does this experiment use the key, or could it?"""
    *path, name = setting.key.split(".")
    section: Any = experiment
    for part in path:
        section = getattr(section, part, None)
        if not hasattr(section, "model_fields_set"):
            return False  # within a table of the user
    chosen = [getattr(section, name, None) for name in ("kind", "method", "strategy")]
    if setting.only_for and (not set(setting.only_for) & set(chosen) or getattr(section, "from_files", False)):
        return False
    field = type(section).model_fields.get(name)
    metadata = section.option_metadata(name) if field is None and hasattr(section, "option_metadata") else ()
    effects = [item for item in (field.metadata if field else metadata) if isinstance(item, NoEffect)]
    return not any(effect.why(experiment) for effect in effects)


def _count(flag: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise CoverlayError(f"{flag} is {quoted(text)}; it must be a whole number, 0 or more")
    return int(text)


def _file(flag: str, path: str, folder: Path, otherwise: str) -> str:
    if not Path(path).is_file():
        raise CoverlayError(f"{flag} {quoted(path)} is not a file{otherwise}")
    return os.path.relpath(path, folder)


def _from(folder: Path, key: str, value: Any) -> Any:
    """The value of a key; if it names a file as seen from the current folder, as seen from `folder`."""
    is_file = key in file_keys(Experiment) and isinstance(value, str) and Path(value).is_file()
    return os.path.relpath(value, folder) if is_file else value


def _schema(data: Mapping[str, Any], folder: Path) -> dict[str, Any] | None:
    """The attributes of the user's events, where subscriptions are text and need them."""
    workload = data.get("workload", {})
    subscriptions, events = workload.get("subscriptions_file"), workload.get("events_file")
    if "schema" in data or subscriptions is None:
        return data.get("schema")
    if "text" not in Table.read("--subscriptions", str(folder / subscriptions)).columns:
        return None
    if events is None:
        raise CoverlayError(f"{subscriptions} has a text column: give --events FILE too, which has the attributes")
    table = Table.read("--events", str(folder / events))
    return {column: guessed(table.columns[column]) for column in table.columns if of_attribute(column)}


def of_attribute(column: str) -> bool:
    """Does a column of events have the values of an attribute?"""
    return column not in EVENT_EXTRAS and not column.endswith(PARTS[2])


def guessed(cells: Sequence[Any]) -> dict[str, Any]:
    """An attribute of a schema with these values; an empty cell is None."""
    cells = [cell for cell in cells if cell is not None]
    try:
        numbers = [float(cell) for cell in cells]
    except (TypeError, ValueError):
        words = sorted({str(cell) for cell in cells})
        return {"kind": "categorical", "categories": words} if len(words) <= MOST_CATEGORIES else {"kind": "text"}
    return {"kind": "continuous", "low": min(numbers, default=0.0), "high": max(numbers, default=1.0)}
