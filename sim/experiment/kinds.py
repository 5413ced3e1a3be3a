"""What each kind and method takes, read from the types that declare it: their options, and which keys take lists."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

import covering
import topk
from broker.transport import SERVICE_MODELS, service_options
from coverlay import quoted
from routing.options import accepted
from routing.overlay.graph import OVERLAYS
from routing.overlay.latency import LATENCIES
from routing.overlay.map import Area
from routing.strategies import STRATEGIES
from sim.experiment.config import Experiment
from sim.experiment.dotted import MISSING, lookup
from sim.experiment.effects import INPUT_FILE
from sim.workloads import PARAMETERS, WORKLOADS
from sim.workloads.arrivals import ARRIVALS, CLIENTS, schedule

# Section or table → what its options are passed to, by kind. The registries themselves: a plugin adds to them.
OPTIONS: dict[str, Mapping[str, Any]] = {
    "overlay": OVERLAYS,
    "overlay.latency": LATENCIES,
    "overlay.map": {"": Area},
    "broker.service": SERVICE_MODELS,
    "workload": ChainMap[str, Any](PARAMETERS, WORKLOADS),
    "arrivals": ARRIVALS,
    "covering": covering.METHODS,
    "routing": STRATEGIES,
}


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _chooser(section: str) -> str:
    """The key that chooses whose options a section or table has."""
    field = Experiment.model_fields.get(section)
    known = getattr(field.annotation, "model_fields", ()) if field is not None else ()
    return next((name for name in ("method", "strategy") if name in known), "kind")


CHOOSERS = {section: _chooser(section) for section in (*OPTIONS, "matching") if "" not in OPTIONS.get(section, ())}


def default_kind(section: str) -> Any:
    """What a section chooses that says nothing; None for a table, which says it."""
    field = Experiment.model_fields.get(section)
    model: Any = None if field is None else field.annotation
    return None if model is None else model.model_fields[CHOOSERS[section]].default


def sections() -> list[str]:
    """The keys that hold other keys; settings given for a section leave its other keys as they are."""
    fields = Experiment.model_fields.items()
    return [name for name, field in fields if _is_model(field.annotation)]


def by_key(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Split sections that are given whole (`covering = { method = "budget", budget = 64 }`) into their keys."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        whole = key in sections() and isinstance(value, dict)
        found |= {f"{key}.{name}": part for name, part in value.items()} if whole else {key: value}
    return found


# ── options of kinds and methods ───────────────────────────────────────────────────────────────────────────


def option_names(takes: Any) -> tuple[str, ...]:
    """The names of the options: keyword-only parameters, or the fields of a dataclass."""
    return accepted(takes) or (tuple(takes.__dataclass_fields__) if is_dataclass(takes) else ())


def option_hints(takes: Any) -> dict[str, Any]:
    """The declared types of the options, and of other parameters."""
    plain_class = inspect.isclass(takes) and not is_dataclass(takes)
    return get_type_hints(takes.__init__ if plain_class else takes, include_extras=True)


def options_by_kind(section: str) -> dict[str, set[str]]:
    """The options that each kind or method of a section takes."""
    if section == "matching":
        kinds = [(kind, method) for kind in topk.KINDS for method in topk.methods(kind)]
        return {
            method: {option for kind, name in kinds if name == method for option in topk.options_of(method, kind)}
            for _, method in kinds
        }
    if section == "broker.service":
        return {kind: set(options) for kind, options in service_options().items()}
    shared = CLIENTS if section == "arrivals" else ()
    return {kind: {*option_names(takes), *shared} for kind, takes in OPTIONS[section].items()}


def foreign(section: str, settings: Mapping[str, Any]) -> tuple[set[str], str]:
    """The options of a section that what is set does not take, because of its kind or of a file, and the reason."""
    chosen, known = settings.get(f"{section}.{CHOOSERS[section]}"), options_by_kind(section)
    options: set[str] = set().union(*known.values())
    file = next((key for key in _files_of(section) if settings.get(key) is not None), None)
    if file is not None:
        return options, f"{file} is set"
    if not isinstance(chosen, str) or chosen not in known:
        return set(), ""
    return options - known[chosen], f"{section}.{CHOOSERS[section]} = {quoted(chosen)} has no such option"


def _files_of(section: str) -> list[str]:
    """The keys of a section that name a file, which is then there in place of what a kind makes."""
    field = Experiment.model_fields.get(section)
    fields = getattr(field.annotation, "model_fields", {}) if field is not None else {}
    return [f"{section}.{name}" for name, inner in fields.items() if INPUT_FILE in inner.metadata]


def foreign_keys(data: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of the data that only other kinds than those in the settings take, each with the reason."""
    for section in CHOOSERS:
        options, why = foreign(section, settings)
        for option in sorted(options):
            if lookup(data, f"{section}.{option}") is not MISSING:
                yield f"{section}.{option}", why


# ── keys that take lists ───────────────────────────────────────────────────────────────────────────────────


def takes_list(key: str, values: list[Any], data: Mapping[str, Any]) -> bool:
    """Is the list one value of this key, as its type has it? If not, it lists values to sweep.

    What an option takes depends on the kinds that the data choose.
    """
    return any(_fits(hint, values) for hint in _hints(key.split("."), Experiment, data))


def _hints(names: list[str], hint: Any, data: Mapping[str, Any], section: str = "") -> Iterator[Any]:
    """The types that a key is declared with; several where it is an option of several kinds and none is chosen."""
    if not names or hint is Any:  # Any: within a table of the user's own
        yield hint
        return
    first, *rest = names
    inner = f"{section}.{first}".lstrip(".")
    if _is_model(hint):
        fields = {field.alias or name: field.annotation for name, field in hint.model_fields.items()}
        if first in fields:
            yield from _hints(rest, fields[first], data, inner)
            return
    kinds = OPTIONS.get(section, {})
    chosen = lookup(data, f"{section}.{CHOOSERS.get(section)}")
    among = [kinds[chosen]] if isinstance(chosen, str) and chosen in kinds else [*kinds.values()]
    for takes in (*among, *([schedule] if section == "arrivals" else [])):
        if first in option_names(takes):
            yield from _hints(rest, option_hints(takes)[first], data, inner)
    for part in _members(hint):
        if get_origin(part) is dict and section not in OPTIONS:
            yield from _hints(rest, get_args(part)[1], data, inner)


def _fits(hint: Any, value: Any) -> bool:
    """Can a list be of this type? Only texts and tables are told from numbers: its other mistakes are named later."""
    members = list(_members(hint))
    if hint is Any:
        return True
    if isinstance(value, list):
        lists = [get_args(part) for part in members if get_origin(part) in (list, tuple)]
        return any(all(any(_fits(part, item) for part in parts) for item in value) for parts in lists)
    return any(
        isinstance(value, part) if part in (str, dict) else not isinstance(value, str | dict)
        for part in (get_origin(part) or part for part in members)
        if part not in (list, tuple)
    )


def _members(hint: Any) -> Iterator[Any]:
    """The types of a union, without annotations and None; the type itself if it is none."""
    if hasattr(hint, "__metadata__"):
        yield from _members(hint.__origin__)
    elif get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _members(part)
    elif hint is not NoneType:
        yield hint
