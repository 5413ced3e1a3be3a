"""What the simulator says of a sweep beside its traces: the experiment, notes, stories, losses over time, a rate found.

Most of it needs the workload, which the analysis does not know, so `sim/tell/keep.py` writes it to `told.json` in the
output folder. Without that file the page lacks these parts.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.report.numbers import and_all, number_text

FILE = "told.json"


@dataclass(frozen=True)
class Loss:
    """What one run lost, by time of publication and by broker."""

    run: str
    times: tuple[tuple[float, int, int], ...]  # start of the bin in ms, deliveries required, deliveries lost
    brokers: tuple[tuple[str, int], ...]  # name, deliveries lost to its clients; most first
    marks: tuple[Mapping[str, Any], ...]  # failures and repairs: time, kind, name

    def rows(self, series: str) -> list[dict[str, Any]]:
        """For the picture: the share lost in each bin that has events."""
        words = {"series": series, "setting": series}
        return [
            {"x": start, "y": lost / required, **words, "text": f"{lost:,} of {required:,} lost"}
            for start, required, lost in self.times
            if required
        ]

    @property
    def total(self) -> int:
        return sum(lost for _, _, lost in self.times)  # `brokers` has only those that lost most

    def in_words(self) -> str:
        """5 deliveries lost, of which clients of Paris 80 % and Rome 20 %."""
        shares = [f"{name} {number_text(lost / self.total, 'share')}" for name, lost in self.brokers[:3] if lost]
        whose = f", of which clients of {and_all(shares)}" if shares else ""
        return f"{self.total:,} {'delivery' if self.total == 1 else 'deliveries'} lost{whose}."


@dataclass(frozen=True)
class Rates:
    """What a search for the highest rate found in one setting, in events per second as they were asked for."""

    text: str
    setting: str  # the point without its rate, as JSON
    holds: float | None  # the highest that holds; None: none does
    fails: float | None  # the lowest that does not; None: none was found
    drawn: float | None  # the rate of the events at the highest, with the seed where they came slowest
    row: tuple[str, ...]  # of the terminal's table


@dataclass(frozen=True)
class Held:
    """What a search for the highest rate found (sim/capacity)."""

    limit: float  # ms, of the 99th percentile
    found: tuple[Rates, ...]
    seeds: int

    @property
    def question(self) -> str:
        limit = number_text(self.limit, "ms")
        return f"How many events per second does the network hold with a 99th percentile below {limit} ms?"


@dataclass(frozen=True)
class Told:
    notes: tuple[str, ...] = ()
    stories: tuple[str, ...] = ()  # lines, as the terminal shows them
    losses: tuple[Loss, ...] = ()
    held: Held | None = None


def read_told(out: Path) -> Told:
    try:
        found = json.loads((out / FILE).read_text(encoding="utf-8"))
        losses = []
        for loss in found["losses"]:
            times, brokers = (tuple(map(tuple, loss[name])) for name in ("times", "brokers"))
            losses.append(Loss(loss["run"], times, brokers, tuple(loss["marks"])))
        held = found.get("held")
        held = held and Held(held["limit"], tuple(Rates(**of) for of in held["found"]), held["seeds"])
        return Told(tuple(found["notes"]), tuple(found["stories"]), tuple(losses), held)
    except FileNotFoundError:
        return Told()
    except (OSError, ValueError, KeyError, TypeError):
        lacks = "notes, stories and what was lost where are missing here"
        return Told((f"{out / FILE} is damaged or of another version: {lacks}",))


def read_experiment(out: Path) -> tuple[str, Mapping[str, Any]]:
    """The experiment's file, and of it the question, notes and what it asks; it may be gone, or edited by hand."""
    try:
        text = (out / "experiment.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", {}
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text, {}
    kinds = {"question": str, "notes": list, "asks": list}
    return text, {key: found[key] for key, kind in kinds.items() if isinstance(found.get(key), kind)}
