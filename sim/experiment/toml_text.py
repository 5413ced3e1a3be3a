"""Experiments as TOML text: reading it, and writing as much of the format as experiment files need."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any


def read_toml(text: str) -> dict[str, Any]:
    """Raises ValueError: a TOMLDecodeError, or another one for integers of thousands of digits."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def to_toml(data: Mapping[str, Any]) -> str:
    """Nested tables of plain values as TOML text: enough for experiment files."""
    plain = {k: v for k, v in data.items() if not isinstance(v, dict) and not _is_tables(v)}
    lines = [f"{_key(k)} = {toml_value(v)}" for k, v in plain.items()]
    for key, value in data.items():
        if isinstance(value, dict):
            lines += ["", f"[{_key(key)}]", *(f"{_key(k)} = {toml_value(v)}" for k, v in value.items())]
        elif _is_tables(value):
            for table in value:
                lines += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {toml_value(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def toml_value(value: Any) -> str:
    if isinstance(value, dict) and not value:
        return "{}"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a control: TOML forbids it
    return repr(value)
