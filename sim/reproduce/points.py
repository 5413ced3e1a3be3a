"""Measured points of a document: kept as they are measured, so that `--resume` does not repeat them.

A file per document and size, a line per point, with date, load and machine. Points of full size ship with the ledger: a
run on another day continues where the last one ended.
"""

from __future__ import annotations

import json
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analysis.report.claims import replace_text
from coverlay import CoverlayError

SHIPPED = "points"  # subfolder of the ledger's folder
Point = dict[str, Any]  # name, value, date, load, seconds, machine
_SHARE = " at "


def points_file(folder: Path, quick: bool) -> Path:
    """The points of the document with this output folder."""
    return folder / f"points-{'quick' if quick else 'full'}.jsonl"


def point_name(name: str, share: float) -> str:
    """The name of a point, with the share of the document's subscriptions if it was not measured with all of them."""
    return name if share == 1.0 else f"{name}{_SHARE}{share:g}"


def shares(file: Path) -> list[float]:
    """The shares of the document's subscriptions that the points of a file were measured with, the largest first."""
    found = {float(name.split(_SHARE)[1]) if _SHARE in name else 1.0 for name in _read(file)}
    return sorted(found, reverse=True)


def shipped_file(ledger: Path, document: str) -> Path:
    return ledger / SHIPPED / f"{document}.jsonl"


class Points:
    """The points of `file`, and of `shipped`, which is only read."""

    def __init__(self, file: Path, shipped: Path | None = None) -> None:
        self._file, self._own = file, _read(file)
        self._shipped = _read(shipped) if shipped else {}

    def get(self, name: str) -> Point | None:
        return self._own.get(name) or self._shipped.get(name)

    def names(self) -> set[str]:
        return {*self._own, *self._shipped}

    def add(self, point: Point) -> None:
        self._own[point["name"]] = point
        _write(self._own, self._file)


def ship_points(document: str, folder: Path, ledger: Path) -> None:
    """Add a document's full-size points to those in the folder of the ledger, replacing older ones."""
    new, file = _read(points_file(folder, quick=False)), shipped_file(ledger, document)
    if new:
        file.parent.mkdir(parents=True, exist_ok=True)
        _write({**_read(file), **new}, file)


def _read(file: Path) -> dict[str, Point]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    try:
        return {point["name"]: point for point in map(json.loads, lines)}
    except (ValueError, TypeError, KeyError) as error:
        raise CoverlayError(f"{file} is not a file of measured points: {error}") from error


def _write(points: dict[str, Point], file: Path) -> None:
    replace_text(file, "".join(f"{json.dumps(points[name], ensure_ascii=False)}\n" for name in sorted(points)))


@cache
def machine() -> str:
    names = [line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, numba {version('numba')}"


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
