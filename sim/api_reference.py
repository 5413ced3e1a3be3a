"""docs/api.md, from the docstrings of what people use from Python: `python -m sim.api_reference > docs/api.md`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

HEAD = """# Python reference

Made from the docstrings (`python -m sim.api_reference`); the suite keeps it up to date. Times are milliseconds, bounds
are closed, ids of matchers are whole numbers, those of covering indexes any hashable. [Experiments](experiments.md) and
[keys](keys.md) have the files, [plug-ins](plugins.md) what you can write yourself.
"""
PUBLIC = {  # module → names, in the order of the page
    "sim": ("Network", "load", "run", "check_plugin", "plugin_checks"),
    "sim.network": ("Subscription", "Event", "Delivery", "Advertisement"),
    "sim.experiment.plan": ("Plan",),
    "analysis": (
        "load",
        "table",
        "differences",
        "compare",
        "advice",
        "trace",
        "metric",
        "metrics",
        "register_metric",
    ),
    "covering": ("create", "methods", "may_miss", "CoveringIndex", "register"),
    "covering.stats": ("Stats",),
    "topk": ("create", "methods", "Catalogue", "TopKIndex", "SparseIndex", "PlacedIndex", "register"),
    "routing": ("LinkStrategy", "Search", "RoutingOptions", "Filter", "register"),
    "routing.overlay": ("register",),
    "broker": ("Work", "register_service"),
    "sim.workloads": ("generate", "Workload", "register"),
    "coverlay": ("CoverlayError", "BrokenGuarantee", "Key"),
}
# Of a network and its subscriptions, what their own parts call.
INTERNAL = {"schedule", "schedule_check", "filter_of", "plan", "plan_at_rest", "receive"}


def as_markdown() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for module, names in PUBLIC.items() for line in _module(module, names))])


def _module(module: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"## {module}\n"
    for name in names:
        thing = getattr(import_module(module), name)
        yield f"### {module}.{name}{'' if inspect.isclass(thing) else _parameters(thing)}\n"
        yield _text(thing)
        if inspect.isclass(thing):
            members = [*_members(thing)]
            yield from [*members, ""] if members else []


def _members(cls: type) -> Iterator[str]:
    """The methods and properties that a class itself documents."""
    for name, member in vars(cls).items():
        if name.startswith("_") or (cls.__module__.startswith("sim.network") and name in INTERNAL):
            continue
        plain = getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", None)
        function = plain or member
        if inspect.isfunction(function) and function.__doc__:
            called = "" if isinstance(member, property) or hasattr(member, "func") else _parameters(function)
            yield f"- `{name}{called}`: {_first(function)}"


def _parameters(thing: Any) -> str:
    names: list[str] = []
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        default = parameter.default
        named = default.__name__ if callable(default) and hasattr(default, "__name__") else repr(default)
        given = "" if default is inspect.Parameter.empty else f"={named}"
        kinds: Any = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        stars = kinds.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names and not any(n[0] == "*" for n in names):
            names.append("*")
        names.append(f"{stars}{parameter.name}{given}")
    return f"({', '.join(names)})"


def _text(thing: Any) -> str:
    """The docstring; examples as code."""
    blocks = []
    for block in inspect.cleandoc(thing.__doc__ or "").split("\n\n"):
        code = block.startswith(">>> ")
        blocks.append("\n".join(f"    {line}" for line in block.splitlines()) if code else block)
    return "\n\n".join(blocks) + "\n"


def _first(function: Any) -> str:
    return " ".join(inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].split())


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
