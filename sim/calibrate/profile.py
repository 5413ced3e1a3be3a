"""What to measure, and the profile that comes of it: as a file and in words."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

import topk
from broker.trace.disk import replaced_file, writing
from broker.work import MATCHER, MESSAGE, SEARCH, TABLES, search_names
from coverlay import CoverlayError, __version__, quoted, unknown_name
from sim.calibrate.fit import Fitted
from sim.calibrate.measure import Progress, matchers, messages, searches, tables
from sim.experiment.toml_text import toml_value
from sim.machine import machine


def _usual(kind: str) -> list[str]:
    """The matchers that say themselves that they are to be measured, and what `auto` does."""
    known = topk.registry(kind)
    return [name for name in topk.methods(kind) if name == topk.AUTO or vars(known[name]).get("calibrated")]


def chosen(methods: str | None) -> tuple[list[str], dict[str, list[str]]]:
    """Which searches and matchers to measure: the usual ones, all, or a list separated by commas."""
    known = {kind: topk.methods(kind) for kind in topk.KINDS}
    if methods == "all":
        return search_names(), known
    if methods is None:
        return search_names(), {kind: _usual(kind) for kind in topk.KINDS}
    wanted = [name.strip() for name in methods.split(",")]
    every = {*search_names(), *(name for names in known.values() for name in names)}
    for name in wanted:
        if name not in every:
            raise unknown_name("method to calibrate", name, sorted(every))
    return [n for n in search_names() if n in wanted], {
        kind: [name for name in names if name in wanted] for kind, names in known.items()
    }


def calibrate(methods: str | None, progress: Progress) -> list[Fitted]:
    """Everything that a profile has, for these methods."""
    names, wanted = chosen(methods)
    found = messages(progress) + tables(progress) + searches(names, progress)
    for kind, some in wanted.items():
        found += matchers(kind, some, progress)
    return found


# By the first part of a name: the keys of the coefficients, and what they are for in words, None where not shown.
COEFFICIENTS: dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]] = {
    "message": (MESSAGE, ("to receive", None, "per byte sent", "per result served")),
    "tables": (
        TABLES,
        ("per table asked", "per entry compared"),
    ),
    "covering": (SEARCH, ("", "per probe")),
    "matching": (MATCHER, ("", "per entry", "per node")),
}


def to_profile(found: Sequence[Fitted]) -> str:
    """The text of a profile."""
    made_by = f"coverlay {__version__}, Python {platform.python_version()}, numba {version('numba')}"
    about = f"measured by coverlay calibrate on {machine()}, {time.strftime('%Y-%m-%d')}, with {made_by}"
    lines = [
        "# Microseconds; see broker/work.py for what each coefficient is multiplied with.",
        f"about = {toml_value(about)}",
    ]
    lines += ["", "[storage]", "page = 0.0", "round_trip = 0.0", ""]
    for item in found:
        held_out = f", a held-out workload is predicted at {item.held_out:.2f} of its time"
        told = "" if np.isnan(item.held_out) else held_out
        keys, _ = COEFFICIENTS[item.name.split(".")[0]]
        lines.append(f"[{item.name}]  # fits within {item.error:.0%} on average{told}")
        lines += [*(f"{key} = {value:.4g}" for key, value in zip(keys, item.values, strict=True)), ""]
    return "\n".join(lines)


def in_words(item: Fitted) -> str:
    """As in: covering.kdtree: 0.4 µs + 1.1 ns per probe."""
    values = zip(item.values, COEFFICIENTS[item.name.split(".")[0]][1], strict=False)
    parts = [f"{_time(v)} {unit}".strip() for v, unit in values if unit is not None and (v or not unit)]
    return f"{item.name}: {' + '.join(parts)}"


def _time(microseconds: float) -> str:
    return f"{microseconds:.3g} µs" if microseconds >= 0.1 else f"{microseconds * 1000:.3g} ns"


def refuse_unusable(path: Path) -> None:
    """Refuse, before a minute of measuring, a file that cannot be written or that an experiment would not take."""
    if not path.name.endswith(".toml"):
        raise CoverlayError(f"--out {quoted(str(path))} must end with .toml, as the profile of an experiment does")
    with writing(path, "nothing was measured"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a"):
            new = not path.stat().st_size
        if new:
            path.unlink()


def write_profile(path: Path, text: str) -> None:
    with writing(path, "the profile is lost"), replaced_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
