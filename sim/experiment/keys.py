"""Every key of an experiment file with type, default, unit and one line of meaning, in rows for reference.py.

Meanings are declared elsewhere: of the model's keys in config*.py, of a kind's options (`overlay.degree`) in the
signature that takes them, of a matcher's options in its `options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

import topk
from coverlay import Key
from sim.experiment.config import Experiment
from sim.experiment.config_base import LARGEST
from sim.experiment.config_methods import MatchingSection
from sim.experiment.effects import INPUT_FILE, PROFILE
from sim.experiment.kinds import OPTIONS, option_hints, option_names
from sim.experiment.reference import ABSENT, Setting
from sim.experiment.toml_text import toml_value
from sim.workloads.arrivals import CLIENTS, schedule
from sim.workloads.options import Range

WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text", dict: "table"}
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def settings() -> list[Setting]:
    """All keys, section by section, in the order of the model."""
    return list(_of_model(Experiment, ""))


# ── keys of the model ──────────────────────────────────────────────────────────────────────────────────────


def _of_model(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    sections = []
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            sections.append((field.annotation, f"{key}."))
            continue
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        yield _setting(key, field.annotation, default, field.metadata)
        yield from _of_options(key)
    yield from _of_options(prefix.rstrip("."))
    for section, inner in sections:
        yield from _of_model(section, inner)


def _setting(
    key: str, hint: Any, default: Any, metadata: Iterable[Any] = (), only_for: tuple[str, ...] = ()
) -> Setting:
    said = next((item for item in (*metadata, *_metadata(hint)) if isinstance(item, Key)), Key(""))
    written = ABSENT if default is None else toml_value(_plain(default))
    return Setting(key, _type(hint, metadata), written, said.unit or ABSENT, said.meaning, only_for)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# ── options of kinds and methods ───────────────────────────────────────────────────────────────────────────


def _of_options(section: str) -> Iterator[Setting]:
    """One row per option, shared by all kinds that have it with the same default and meaning."""
    found: dict[tuple[str, Setting], list[str]] = {}
    kinds = OPTIONS.get(section, {})
    for kind, takes in kinds.items():
        for setting in _declared(section, takes, option_names(takes)):
            found.setdefault((setting.key, setting), []).append(kind)
    if section == "matching":
        for method, setting in _of_matchers():
            found.setdefault((setting.key, setting), []).append(method)
    names = list(dict.fromkeys(key for key, _ in found))
    for (_, setting), of in sorted(found.items(), key=lambda item: names.index(item[0][0])):
        every = len(of) == len(kinds)
        yield replace(setting, only_for=() if every else tuple(of))
    if section == "arrivals":
        yield from _declared(section, schedule, CLIENTS)


def _declared(section: str, takes: Any, names: Iterable[str]) -> Iterator[Setting]:
    hints = option_hints(takes)
    parameters = inspect.signature(takes).parameters
    for name in names:
        default = parameters[name].default
        yield _setting(f"{section}.{name}", hints[name], None if default is inspect.Parameter.empty else default)


def _of_matchers() -> Iterator[tuple[str, Setting]]:
    for kind in topk.KINDS:
        for method in topk.methods(kind):
            for name, (meaning, default) in topk.options_of(method, kind).items():
                if name not in MatchingSection.model_fields:  # described there for all matchers
                    hint = Any if default is None else type(default)
                    yield method, _setting(f"matching.{name}", hint, default, [Key(meaning)])


# ── types in words ─────────────────────────────────────────────────────────────────────────────────────────


def _metadata(hint: Any) -> Iterator[Any]:
    """The annotations of a type, also those inside unions and other annotations."""
    yield from getattr(hint, "__metadata__", ())
    for part in get_args(hint):
        if get_args(part):
            yield from _metadata(part)


def _type(hint: Any, metadata: Iterable[Any] = ()) -> str:
    declared = [*metadata, *_metadata(hint)]
    for item in list(declared):
        if isinstance(item, FieldInfo):  # of a type within a union
            declared += item.metadata
    if INPUT_FILE in declared or PROFILE in declared:
        return "name or file" if PROFILE in declared else "file"
    bare = _bare(hint)
    if get_origin(bare) is Literal:
        return _either(get_args(bare))
    for item in declared:
        if isinstance(item, tuple) and not isinstance(item, Range) and all(isinstance(name, str) for name in item):
            return _either(item)
    return _with_bounds(_words(bare), declared)


def _bare(hint: Any) -> Any:
    """A type without its annotations and without `| None`."""
    if hasattr(hint, "__metadata__"):
        return _bare(hint.__origin__)
    members = [part for part in get_args(hint) if part is not NoneType]
    return _bare(members[0]) if NoneType in get_args(hint) else hint


def _words(bare: Any) -> str:
    origin, arguments = get_origin(bare) or bare, get_args(bare)
    if origin is list:
        return f"list of {_words(_bare(arguments[0]))}s"
    if origin is dict and arguments and arguments[1] is not Any:
        return f"table of {_words(_bare(arguments[1]))}s"
    if origin is UnionType:
        return _either(_words(_bare(part)) for part in arguments)
    if origin is tuple:
        return f"[{', '.join(_words(_bare(part)) for part in arguments)}]"
    return WORDS.get(origin, "any")


def _either(names: Iterable[Any]) -> str:
    *most, last = map(str, names)
    return f"{', '.join(most)} or {last}" if most else last


def _with_bounds(words: str, declared: Iterable[Any]) -> str:
    bounds: list[str] = []
    for item in declared:
        if isinstance(item, Range):
            limits: list[tuple[str, Any]] = [(">" if item.above else "≥", item.least), ("≤", item.most)]
        else:
            limits = [(sign, getattr(item, name, None)) for name, sign in SIGNS.items()]
        bounds += [f"{sign} {limit:,}" for sign, limit in limits if isinstance(limit, int | float) and limit < LARGEST]
    return f"{words} {', '.join(bounds)}" if bounds else words
