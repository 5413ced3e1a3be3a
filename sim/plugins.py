"""Plug-ins: methods of the user's own, from files, from installed packages, or registered in this session.

A plug-in is one file, or a module of an installed package. Importing it registers what it has (`covering.register` and
so on). A file is imported under a name made of its content. So that all processes of a sweep run the same code, it is
copied to OUT/plugins, and a process that lacks it imports the copy. Packages announce their methods as entry points,
and are imported when an experiment uses one of them.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import covering
import topk
from analysis.spark.metrics import CATALOGUE
from broker.transport import SERVICE_MODELS
from coverlay import CoverlayError, Registry, file_of, quoted
from routing.overlay.kinds import OVERLAYS
from routing.strategies import STRATEGIES
from sim.workloads import WORKLOADS

FOLDER = "plugins"  # of a sweep's output, with the copies
# Group of entry points, after "coverlay." → the registries that its names are for.
REGISTRIES: dict[str, tuple[Registry[Any], ...]] = {
    "covering": (covering.METHODS,),
    "topk": tuple(topk.REGISTRIES.values()),
    "routing": (STRATEGIES,),
    "overlays": (OVERLAYS,),
    "services": (SERVICE_MODELS,),
    "workloads": (WORKLOADS,),
    "metrics": (CATALOGUE,),
}
CHOOSING = ("kind", "method", "strategy")  # the last parts of keys that choose by name


@dataclass(frozen=True)
class Plugin:
    """What a run needs to have imported: a file by its content, or a module by its name."""

    name: str  # mine.py, or package.module
    digest: str
    is_file: bool

    @property
    def module(self) -> str:
        return f"coverlay_plugin_{self.digest}" if self.is_file else self.name

    @property
    def copy(self) -> str:
        """Where the copy of a file is, in the folder of a sweep."""
        return f"{FOLDER}/{self.digest}/{self.name}"


_sources: dict[Plugin, bytes] = {}  # files as they were imported


# ── importing ──────────────────────────────────────────────────────────────────────────────────────────────


def load(named: str) -> Plugin:
    """Import a plug-in: a path that ends in .py, or a module of an installed package."""
    if not named.endswith(".py"):
        return _load_module(named)
    try:
        source = Path(named).read_bytes()
    except OSError as error:
        raise CoverlayError(f"plug-in {quoted(named)} cannot be read: {error.strerror}") from None
    plugin = Plugin(Path(named).name, hashlib.blake2b(source, digest_size=6).hexdigest(), True)
    if not _is_active(plugin):
        _import_file(plugin, Path(named).resolve())
    _sources[plugin] = source
    return plugin


def _load_module(named: str) -> Plugin:
    try:
        module = import_module(named)
    except CoverlayError:
        raise
    except ModuleNotFoundError as error:
        said = f"there is no module {quoted(error.name)}; a file ends in .py, a module is one that is installed"
        raise CoverlayError(f"plug-in {quoted(named)}: {said}") from None
    except SyntaxError as error:
        where = f"{Path(error.filename or named).name}, line {error.lineno}"
        raise CoverlayError(f"plug-in {quoted(named)}: {where}: {error.msg}") from None
    except Exception as error:  # whatever it raises when it is imported
        at = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{Path(at.filename).name}, line {at.lineno}, in {at.name}: {type(error).__name__}: {error}"
        raise CoverlayError(f"plug-in {quoted(named)}: {said}") from error
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    files = sorted(file for folder in folders for file in folder.rglob("*.py")) or [Path(str(module.__file__))]
    content = b"".join(file.read_bytes() for file in files)
    plugin = Plugin(named, hashlib.blake2b(content, digest_size=6).hexdigest(), False)
    _refuse_empty(plugin)
    return plugin


def _import_file(plugin: Plugin, path: Path) -> None:
    spec = spec_from_file_location(plugin.module, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[plugin.module] = module  # so that its classes can be pickled
    try:
        spec.loader.exec_module(module)
    except CoverlayError:
        raise
    except SyntaxError as error:
        raise CoverlayError(f"{Path(error.filename or path).name}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        raise CoverlayError(blame(error, {path}) or f"{plugin.name}: {error}") from error
    _refuse_empty(plugin)


def _refuse_empty(plugin: Plugin) -> None:
    if not _is_active(plugin):
        raise CoverlayError(f"plug-in {plugin.name} registers nothing; docs/plugins.md shows how")


def _is_active(plugin: Plugin) -> bool:
    """Is what it registers what its names mean now? Another version of the file may have replaced it."""
    return any(_is_of(plugin.module, written) for *_, written in registered())


def _is_of(module: str, written: Any) -> bool:
    """Was something registered by a module, or by one inside that package?"""
    return f"{written.__module__}.".startswith(f"{module}.")


def ensure(plugins: Iterable[Plugin], out: Path) -> None:
    """Import what a run needs and this process lacks, files from the folder of the sweep."""
    for plugin in plugins:
        if _is_active(plugin):
            continue
        if plugin.is_file:
            _import_file(plugin, (out / plugin.copy).resolve())
        else:
            _load_module(plugin.name)


def keep(plugins: Iterable[Plugin], out: Path) -> None:
    """Write the files, as they were imported, into the folder of a sweep."""
    for plugin in plugins:
        if plugin.is_file:
            copy = out / plugin.copy
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_sources[plugin])


def load_used(data: Mapping[str, Any]) -> list[Plugin]:
    """Import all plug-ins that an experiment names, and the packages that announce a name which it chooses."""
    named = data.get("plugins", [])
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise CoverlayError(f'plugins is {quoted(named)}; it must be a list of files and modules, ["mine.py"]')
    loaded = [load(name) for name in named]
    chosen = set(_chosen(data))
    for group, registries in REGISTRIES.items():
        for name, point in announced(group).items():
            known = [registry for registry in registries if name in registry]
            others = [r for r in known if name not in r.written or not _is_of(point.module, r.written[name])]
            if name not in chosen or others:
                continue  # it is ours, or that of a plug-in which the experiment names
            package = _load_module(point.module)
            loaded += [package] if package not in loaded else []
            if not any(name in registry for registry in registries):
                raise CoverlayError(f"{point.module} is announced to register {name!r}, but does not")
    return loaded


def load_of_folder(out: Path) -> list[Plugin]:
    """Import the plug-ins that the experiment in a folder of results names: its copies, and installed modules."""
    try:
        data = tomllib.loads((out / "experiment.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [load(str(out / name) if name.endswith(".py") else name) for name in data.get("plugins", [])]


def _chosen(data: Any, key: str = "") -> Iterator[str]:
    """The texts that an experiment gives for keys which choose by name, sweeps and cases included."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from _chosen(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from _chosen(value, key)
    elif isinstance(data, str) and (key.rsplit(".", 1)[-1] in CHOOSING or key == "asks"):
        yield data


@cache
def announced(group: str) -> dict[str, EntryPoint]:
    """The entry points of installed packages, by name."""
    return {point.name: point for point in entry_points(group=f"coverlay.{group}")}


# ── who uses what ──────────────────────────────────────────────────────────────────────────────────────────


def registered() -> Iterator[tuple[str, Registry[Any], str, Any]]:
    """Everything that plug-ins registered: group, registry, name, and the class or function."""
    for group, registries in REGISTRIES.items():
        for registry in registries:
            for name, written in registry.written.items():
                yield group, registry, name, written


def of(plugin: Plugin) -> list[tuple[str, Registry[Any], str, Any]]:
    """What one plug-in registered."""
    return [entry for entry in registered() if _is_of(plugin.module, entry[-1])]


def of_name(group: str, name: str) -> str | None:
    """What to put into `plugins = […]` for a name: a file, or a module; None for ours."""
    for of, _, known, written in registered():
        if (of, known) == (group, name):
            file = file_of(written)
            return (
                str(file)
                if file.is_file() and written.__module__.startswith("coverlay_plugin_")
                else written.__module__
            )
    return None


def source_of(written: Any) -> str:
    """Where something registered comes from, for people."""
    module = written.__module__
    return (
        module
        if module in {point.module for group in REGISTRIES for point in announced(group).values()}
        else (file_of(written).name)
    )


def used_by(experiment: Any, loaded: Iterable[Plugin]) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The plug-ins that an experiment uses, and the names it uses that this session itself registered."""
    choices: list[tuple[Registry[Any], str]] = [
        (covering.METHODS, experiment.covering.method),
        (STRATEGIES, experiment.routing.strategy),
        (SERVICE_MODELS, experiment.broker.service.kind),
        *((registry, experiment.matching.method) for registry in topk.REGISTRIES.values()),
    ]
    if experiment.overlay.file is None:
        choices.append((OVERLAYS, experiment.overlay.kind))
    if not experiment.workload.from_files:
        choices.append((WORKLOADS, experiment.workload.kind))
    chosen = {name: registry.written[name] for registry, name in choices if name in registry.written}
    owners = {name: [p for p in loaded if _is_of(p.module, written)] for name, written in chosen.items()}
    used = {owner for some in owners.values() for owner in some[:1]}
    local = [name for name, some in owners.items() if not some]
    return tuple(sorted(used, key=lambda plugin: plugin.name)), tuple(sorted(local))


# ── what goes wrong in them ────────────────────────────────────────────────────────────────────────────────


def blame(error: BaseException, files: Iterable[Path] = ()) -> str | None:
    """Where in a plug-in an exception happened, in a sentence; None if it happened elsewhere."""
    where = whereabouts(error, files)
    if where is None:
        return None
    return f"{where}: {error}" if isinstance(error, CoverlayError) else f"{where}: {type(error).__name__}: {error}"


def whereabouts(error: BaseException, files: Iterable[Path] = ()) -> str | None:
    """`mine.py, line 21, in search`."""
    known = {str(file) for file in (*files, *(file_of(written) for *_, written in registered()))}
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if frame.filename in known), None)
    return None if last is None else f"{Path(last.filename).name}, line {last.lineno}, in {last.name}"


@contextmanager
def explained() -> Iterator[None]:
    """An exception in a plug-in becomes a sentence that says where."""
    try:
        yield
    except CoverlayError:
        raise
    except Exception as error:
        said = blame(error)
        if said is None:
            raise
        raise CoverlayError(said) from error
