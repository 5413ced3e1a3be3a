"""What `coverlay list` and `coverlay keys` show: the names of every registry with a line of documentation; keys.

The lines are docstrings: of the file where a class or function is the only one registered from it, else its own.
Loading the registries takes seconds, so answers are kept in the user's cache until a source file changes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from coverlay import user_cache
from sim.experiment.reference import Setting

Rows = list[tuple[str, str]]
PACKAGES = ("analysis", "broker", "covering", "routing", "sim", "topk")
SOURCES = (".py", ".toml")
ROOT = Path(__file__).parents[2]


def _described(registry: Mapping[str, Any]) -> Rows:
    files = Counter(entry.__module__ for entry in registry.values())
    return [(name, _sentence(entry, files[entry.__module__] == 1)) for name, entry in registry.items()]


def _sentence(entry: Any, alone: bool) -> str:
    """The first paragraph of the documentation, up to the end of its first sentence or clause."""
    own, file = entry.__doc__ or "", sys.modules[entry.__module__].__doc__ or ""
    text = inspect.cleandoc((file or own) if alone else (own or file))
    return " ".join(text.split("\n\n")[0].split("\n")).split(". ")[0].rstrip(".:")


def _registry(module: str, name: str) -> Callable[[], Rows]:
    """The rows of a registry, whose module is imported when they are asked for."""
    return lambda: _described(getattr(import_module(module), name))


def _matchers() -> Rows:
    import topk

    rows = []
    for kind in ("boxes", "predicates", "places"):
        rows += [(name, f"{kind}: {text}") for name, text in _described(topk.registry(kind))]
    return rows


def _workloads() -> Rows:
    from sim.workloads import WORKLOADS, workload_options

    rows = _described(WORKLOADS)
    return [(name, f"{text} [{', '.join(workload_options(name)) or 'no options'}]") for name, text in rows]


def _experiments() -> Rows:
    from sim.experiment.shipped import shipped

    return [(name, tomllib.loads(path.read_text())["question"]) for name, path in shipped().items()]


def _metrics() -> Rows:
    from analysis.spark.metrics import CATALOGUE

    return [(name, f"{metric.definition} [{metric.unit}]") for name, metric in sorted(CATALOGUE.items())]


LISTS: dict[str, Callable[[], Rows]] = {
    "topologies": _registry("routing.overlay.graph", "OVERLAYS"),
    "strategies": _registry("routing.strategies", "STRATEGIES"),
    "covering": _registry("covering", "METHODS"),
    "matchers": _matchers,
    "workloads": _workloads,
    "experiments": _experiments,
    "metrics": _metrics,
}


def listed(what: str) -> Rows:
    """The rows of a list."""
    return [(name, text) for name, text in _kept(what, LISTS[what])]


def settings() -> list[Setting]:
    """The keys of experiment files."""

    def rows() -> list[Any]:
        from sim.experiment.keys import settings

        return [asdict(setting) for setting in settings()]

    return [Setting(**{**row, "only_for": tuple(row["only_for"])}) for row in _kept("keys", rows)]


def _kept(what: str, make: Callable[[], list[Any]]) -> list[Any]:
    """Rows of plain values, from the cache if no source file changed since they were kept."""
    clone = f"{what}-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"  # each clone keeps its own
    kept = user_cache() / "lists" / f"{clone}-{_state_of_sources(ROOT)}.json"
    with suppress(OSError, ValueError):
        found: list[Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    rows = make()
    with suppress(OSError):  # a cache that cannot be written only costs time
        kept.parent.mkdir(parents=True, exist_ok=True)
        for old in kept.parent.glob(f"{clone}-*.json"):
            old.unlink(missing_ok=True)
        kept.write_text(json.dumps(rows), encoding="utf-8")
    return rows


@cache
def _state_of_sources(root: Path) -> str:
    """Names, sizes and times of all files that a list could come from."""
    files = [file for package in PACKAGES for file in sorted((root / package).rglob("*")) if file.suffix in SOURCES]
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]
