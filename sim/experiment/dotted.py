"""Dotted keys (`covering.epsilon`) of nested tables, as `--set`, `[sweep]` and `[[case]]` use them."""

from __future__ import annotations

import copy
from typing import Any

from coverlay import CoverlayError, quoted

MISSING = object()


def assign(data: dict[str, Any], key: str, value: Any) -> None:
    """Set `a.b.c` in nested tables."""
    *tables, last = key.split(".")
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise CoverlayError(f"{quoted(key)} cannot be set: {quoted(table)} is a value, not a section")
    data[last] = value


def lookup(data: Any, key: str) -> Any:
    """The value of `a.b.c`, or MISSING."""
    for name in key.split("."):
        if not isinstance(data, dict) or name not in data:
            return MISSING
        data = data[name]
    return data


def remove(data: dict[str, Any], key: str) -> None:
    """Delete `a.b.c`, which must exist, and tables that this leaves empty."""
    first, _, rest = key.partition(".")
    if rest:
        remove(data[first], rest)
    if not rest or not data[first]:
        del data[first]


def related(one: str, other: str) -> bool:
    """Setting one of these keys changes the value of the other: they are equal, or one is a part of the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def after(key: str, value: Any, then: str, changed: Any) -> Any:
    """The value of `key`, which was `value`, after setting `then` to `changed`; MISSING if nothing of it is left."""
    table: dict[str, Any] = {}
    assign(table, key, copy.deepcopy(value))
    assign(table, then, copy.deepcopy(changed))
    return lookup(table, key)
