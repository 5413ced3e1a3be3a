"""The style sheets, scripts and templates of our pages, from the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    return (files("analysis.report") / "templates" / name).read_text(encoding="utf-8")
