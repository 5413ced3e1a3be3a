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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from coverlay import user_cache
from sim.experiment.reference import Setting

Rows = list[tuple[str, str]]
PACKAGES = ("analysis", "broker", "covering", "routing", "sim", "topk")
SOURCES = (".py", ".toml")
ROOT = Path(__file__).parents[2]


def _described(registry: Mapping[str, Any]) -> Rows:
    """Of ours: those of plug-ins are not kept."""
    plugged = getattr(registry, "written", {})
    ours = {name: entry for name, entry in registry.items() if name not in plugged}
    files = Counter(entry.__module__ for entry in ours.values())
    return [(name, _sentence(entry, files[entry.__module__] == 1)) for name, entry in ours.items()]


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


def _covering() -> Rows:
    """What an ε of each method is a share of, and the store of sorted keys that it can live in."""
    from covering import METHODS

    shares, rows = {"volume": "of the volume left out", "covers": "of the covers missed"}, []
    for name, text in _described(METHODS):
        method = METHODS[name]
        facts = [f"ε: share {shares[method.epsilon_of]}"] if method.takes_epsilon else []
        if store := method([[0.0, 1.0]], 0.1 if method.takes_epsilon else 0.0).store:
            facts.append(f"lives on sorted keys: {store}")
        rows.append((name, f"{text} [{'; '.join(facts)}]" if facts else text))
    return rows


def _workloads() -> Rows:
    from sim.workloads import WORKLOADS, workload_options

    rows = _described(WORKLOADS)
    return [(name, f"{text} [{', '.join(workload_options(name)) or 'no options'}]") for name, text in rows]


def _services() -> Rows:
    from broker.transport import NO_SERVICE, SERVICE_MODELS, WORK, service_options

    options = service_options()
    rows = [
        (NO_SERVICE, "No time at all"),
        *_described(SERVICE_MODELS),
        (WORK, "What the counted work costs by a profile"),
    ]
    return [(name, f"{text} [{', '.join(options[name]) or 'no options'}]") for name, text in rows]


def _experiments() -> Rows:
    from sim.experiment.shipped import shipped

    return [(name, tomllib.loads(path.read_text())["question"]) for name, path in shipped().items()]


def _metrics() -> Rows:
    from analysis.spark.metrics import OURS

    return [(name, _of_metric(name)) for name in sorted(OURS)]


def _of_metric(name: str) -> str:
    from analysis.spark.metrics import CATALOGUE

    return f"{CATALOGUE[name].definition} [{CATALOGUE[name].unit}]"


LISTS: dict[str, Callable[[], Rows]] = {
    "topologies": _registry("routing.overlay.graph", "OVERLAYS"),
    "strategies": _registry("routing.strategies", "STRATEGIES"),
    "covering": _covering,
    "matchers": _matchers,
    "workloads": _workloads,
    "services": _services,
    "experiments": _experiments,
    "metrics": _metrics,
}


GROUPS = {  # list → the group of plug-ins in it, see sim/plugins.py
    "topologies": "overlays", "strategies": "routing", "covering": "covering", "matchers": "topk",
    "workloads": "workloads", "services": "services", "metrics": "metrics",
}  # fmt: skip


def listed(what: str, plugins: Sequence[str] = ()) -> Rows:
    """The rows of a list: ours, those of these plug-ins, and those that installed packages announce."""
    ours = [(name, text) for name, text in _kept(what, LISTS[what])]
    return [*ours, *_yours(GROUPS[what], plugins)] if what in GROUPS else ours


def _yours(group: str, named: Sequence[str]) -> Rows:
    announced = entry_points(group=f"coverlay.{group}")
    rows = {point.name: f"yours, {point.module}" for point in announced}  # not imported: a broken one breaks nobody
    if named:
        from sim import plugins

        for name in named:
            plugins.load(name)
        for of, _, name, written in plugins.registered():
            if of == group:
                said = _of_metric(name) if group == "metrics" else _sentence(written, False)
                rows[name] = f"yours, {plugins.source_of(written)}: {said}"
    return list(rows.items())


def settings(plugins: Sequence[str] = ()) -> list[Setting]:
    """The keys of experiment files, with the options of these plug-ins."""
    if plugins:
        from sim.experiment.keys import settings as all_keys
        from sim.plugins import load

        for name in plugins:
            load(name)
        return all_keys()

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
