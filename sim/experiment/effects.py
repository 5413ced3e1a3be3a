"""Which settings matter: what the keys of `sim/experiment/config*.py` declare, and what follows from it.

A key can declare when it has no effect: `Annotated[float, NoEffect(exact_search, unless=0.0)]`. The function gets the
whole experiment and returns why the key cannot change a run there, or None. A plan drops such settings, so that it
recognises equal points, and names those that the user gave. A field that names a file of the user is marked
`INPUT_FILE`; the content of the file is part of a run like any setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from broker.trace.digests import file_digest
from broker.work import is_file
from coverlay import CoverlayError

INPUT_FILE = "input file"  # metadata of a field: the path of a file that the run reads
PROFILE = "profile"  # the same, unless it names a shipped profile


def names_file(metadata: Sequence[Any], value: Any) -> bool:
    """Does a key with this metadata and value name a file of the user?"""
    return value is not None and (INPUT_FILE in metadata or (PROFILE in metadata and is_file(value)))


Reason = Callable[[Any], str | None]


@dataclass(frozen=True)
class NoEffect:
    """Why a key has no effect in an experiment, or None; `unless`: a value that asks for nothing anyway."""

    why: Reason
    unless: Any = None


@dataclass(frozen=True)
class Given:
    """A key that the user gave, with its value."""

    key: str
    value: Any
    metadata: tuple[Any, ...]  # of its field, or of its section's options

    @property
    def effect(self) -> NoEffect | None:
        return next((item for item in self.metadata if isinstance(item, NoEffect)), None)


def given(section: BaseModel, prefix: str = "") -> Iterator[Given]:
    """The keys given in an experiment, without defaults, in the order of the model."""
    fields = type(section).model_fields
    for name in [*fields, *(section.model_extra or {})]:
        if name not in section.model_fields_set:
            continue
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from given(value, f"{prefix}{name}.")
        elif name in fields:
            yield Given(prefix + (fields[name].alias or name), value, tuple(fields[name].metadata))
        else:
            yield Given(prefix + name, value, section.option_metadata(name))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Idle:
    """A given setting that has no effect, and why."""

    key: str
    value: Any
    reason: str
    misleads: bool  # it asks for something that will not happen


def idle(experiment: BaseModel) -> list[Idle]:
    """The given settings of an experiment that cannot change its runs."""
    found = []
    for item in given(experiment):
        reason = item.effect.why(experiment) if item.effect else None
        if item.effect is not None and reason is not None:
            found.append(Idle(item.key, item.value, reason, item.value != item.effect.unless))
    return found


def file_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """The keys that name input files."""
    keys = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += file_keys(field.annotation, f"{prefix}{name}.")
        elif INPUT_FILE in field.metadata or PROFILE in field.metadata:
            keys.append(prefix + name)
    return keys


def input_digests(experiment: BaseModel, known: dict[str, str] | None = None) -> Mapping[str, str]:
    """Key → digest of each file that an experiment reads; `known` remembers files read before."""
    known = {} if known is None else known
    digests = {}
    for item in given(experiment):
        if names_file(item.metadata, item.value):
            if item.value not in known:
                known[item.value] = _digest(item.key, item.value)
            digests[item.key] = known[item.value]
    return digests


def _digest(key: str, path: str) -> str:
    try:
        return file_digest(Path(path))
    except OSError as error:
        raise CoverlayError(f"{key} {path!r} cannot be read: {error.strerror}") from None
