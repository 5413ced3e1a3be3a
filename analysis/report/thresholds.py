"""When approximation counts as paying. Not in study.py, which imports pandas: the command line shows the defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """When approximation counts as paying."""

    keeps: float = 0.95  # at least this share of exact covering's saving
    cheaper: float = 0.5  # for at most this share of the cheapest exact search's cost
