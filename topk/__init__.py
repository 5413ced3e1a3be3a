"""Ranked matching: which k stored subscriptions match this event best? Arrays in, answers out."""

from __future__ import annotations

from typing import Any

from coverlay import CoverlayError, unknown_name
from topk.base import SEMANTICS, Batch, Stats, TopKIndex
from topk.catalogue import Catalogue
from topk.scan import Scan

__all__ = ["SEMANTICS", "Batch", "Catalogue", "Stats", "TopKIndex", "create", "methods"]

_METHODS: dict[str, type[TopKIndex]] = {cls.name: cls for cls in (Scan,)}


def methods() -> list[str]:
    """The names `create` knows."""
    return sorted(_METHODS)


def create(name: str, catalogue: Catalogue, *, semantics: str = "exact", **options: Any) -> TopKIndex:
    """Build the matcher `name` over a catalogue; CoverlayError lists the valid names and options."""
    if name not in _METHODS:
        raise unknown_name("matching method", name, _METHODS)
    cls = _METHODS[name]
    for option in options:
        if option not in cls.options:
            known = ", ".join(sorted(cls.options)) or "none"
            raise CoverlayError(f"{name} has no option {option!r}; it has: {known}")
    return cls(catalogue, semantics, **options)
