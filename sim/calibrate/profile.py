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
from broker.work import MATCHER, MESSAGE, TABLES, search_keys
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
        return list(search_keys()), known
    if methods is None:
        return list(search_keys()), {kind: _usual(kind) for kind in topk.KINDS}
    wanted = [name.strip() for name in methods.split(",")]
    every = {*search_keys(), *(name for names in known.values() for name in names)}
    for name in wanted:
        if name not in every:
            raise unknown_name("method to calibrate", name, sorted(every))
    return [n for n in search_keys() if n in wanted], {
        kind: [name for name in names if name in wanted] for kind, names in known.items()
    }


def calibrate(methods: str | None, progress: Progress, plugged: Sequence[str] = ()) -> list[Fitted]:
    """Everything that a profile has, for these methods; those of plug-ins, if there are any, are always measured."""
    names, wanted = chosen(methods)
    names += [name for name in search_keys() if name in plugged and name not in names]
    for kind, some in wanted.items():
        some += [name for name in topk.methods(kind) if name in plugged and name not in some]
    found = messages(progress) + tables(progress) + searches(names, progress)
    for kind, some in wanted.items():
        found += matchers(kind, some, progress)
    return found


# By the first part of a name: the keys of the coefficients; those of searches depend on the method.
_KEYS = {"message": MESSAGE, "tables": TABLES, "matching": MATCHER}
# By the first part of a name: what coefficients are for in words; those without words are not shown.
_WORDS = {
    "message": {"control": "to receive", "byte": "per byte sent", "result": "per result served"},
    "tables": {"table": "per table asked", "entry": "per entry compared"},
    "covering": {"check": "", "probe": "per probe", "candidate": "per candidate"},
    "matching": {"query": "", "entry": "per entry", "node": "per node"},
}


def _coefficients(item: Fitted) -> dict[str, float]:
    part, _, name = item.name.partition(".")
    keys = search_keys()[name] if part == "covering" else _KEYS[part]
    return dict(zip(keys, item.values, strict=True))


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
        lines.append(f"[{item.name}]  # fits within {item.error:.0%} on average{told}")
        lines += [*(f"{key} = {value:.4g}" for key, value in _coefficients(item).items()), ""]
    return "\n".join(lines)


def in_words(item: Fitted) -> str:
    """As in: covering.kdtree: 0.4 µs + 1.1 ns per probe."""
    words = _WORDS[item.name.split(".")[0]]
    told = [(value, words[key]) for key, value in _coefficients(item).items() if key in words]
    parts = [f"{_time(value)} {unit}".strip() for value, unit in told if value or not unit]
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
