"""The files that an experiment names: where they are, and copies of them beside it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from broker.trace.disk import replaced_file, writing
from broker.work import is_file
from coverlay import CoverlayError, quoted
from sim.experiment.changes import tables
from sim.experiment.config import Experiment
from sim.experiment.dotted import assign, lookup
from sim.experiment.effects import file_keys
from sim.experiment.shipped import from_shipped
from sim.experiment.toml_text import to_toml
from sim.plugins import Plugin, keep

OVERLAY_KEY = "overlay.file"  # a file, or the name of a shipped graph
PROFILE_KEY = "broker.service.profile"  # the name of a shipped profile, or a file


def from_folder(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A copy in which relative file names of the experiment, its sweep and its cases start from `folder`."""

    def resolved(key: str, path: str) -> str:
        given = from_shipped(path) if key == OVERLAY_KEY and not (folder / path).exists() else None
        return str((given or folder / path).resolve())

    return with_files(data, resolved)


def with_files(data: Mapping[str, Any], named: Callable[[str, str], str]) -> dict[str, Any]:
    """A copy in which each file that the experiment, its sweep or its cases name, by its key, has another name."""
    result = copy.deepcopy(dict(data))
    sweeps, cases = tables(result)
    for key in file_keys(Experiment):

        def renamed(of: str, value: Any, key: str = key) -> Any:
            """The value of `of`, which is the key of a file or a section around it."""
            table: dict[str, Any] = {}
            assign(table, of, value)
            path = lookup(table, key)
            if isinstance(path, str) and (key != PROFILE_KEY or is_file(path)):
                assign(table, key, named(key, path))
            return lookup(table, of)

        for table in (result, *cases):
            table.update({name: renamed(name, value) for name, value in table.items() if _holds(name, key)})
        for sweep in sweeps:
            lists = {name: values for name, values in sweep.items() if _holds(name, key) and isinstance(values, list)}
            sweep.update({name: [renamed(name, value) for value in values] for name, values in lists.items()})
    return result


def as_file(data: Mapping[str, Any], plugins: Sequence[Plugin], folder: Path) -> str:
    """An experiment as the text of a file in a folder: what lies below it is named as seen from there."""
    here = folder.resolve()

    def named(_: str, path: str) -> str:
        return str(Path(path).relative_to(here)) if here in Path(path).parents else path

    own = [plugin.copy if plugin.is_file else plugin.name for plugin in plugins]
    here_named = with_files(data, named)
    return to_toml({**here_named, "plugins": own} if own else here_named)


def save(data: Mapping[str, Any], plugins: Sequence[Plugin], file: Path) -> None:
    """Write an experiment as a file, and beside it what it reads: input files and plug-ins."""
    inputs, copied = file.parent / f"{file.stem}-inputs", dict[str, str]()

    def copy_of(_: str, path: str) -> str:
        if path not in copied:
            taken = {Path(other).name for other in copied.values()}
            name = next(name for name in _names(Path(path).name) if name not in taken)
            content = Path(path).read_bytes()
            inputs.mkdir(parents=True, exist_ok=True)
            with replaced_file(inputs / name) as unfinished:
                unfinished.write_bytes(content)
            copied[path] = str((inputs / name).resolve())
        return copied[path]

    if not file.name.endswith(".toml"):
        raise CoverlayError(f"{quoted(str(file))} is no name of an experiment file; it ends in .toml")
    with writing(file, "nothing is complete"):
        file.parent.mkdir(parents=True, exist_ok=True)
        there = with_files(data, copy_of)
        keep(plugins, file.parent)
        with replaced_file(file) as unfinished:
            unfinished.write_text(as_file(there, plugins, file.parent), encoding="utf-8")


def _names(name: str) -> Iterator[str]:
    """A file name, and others like it."""
    yield name
    yield from (f"{Path(name).stem}-{number}{Path(name).suffix}" for number in count(2))


def _holds(named: str, key: str) -> bool:
    """Is `named` this key, or a section around it?"""
    return f"{key}.".startswith(f"{named}.")
