"""A figure of a document as one picture: our curves as small multiples, with the numbers that the document states.

A column per part of the figure, a row per quantity. Lines and rings are published; a method has one colour throughout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.report.claims import NOT_RUN, Claim
from sim.reproduce.pictures import Drawing, all_positive
from sim.reproduce.tables.figures import AT, Mark, X

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS, _QUANTITIES = 2, 2  # columns, as a page has room for; rows of a part: what is timed or weighed, and counted
_CELL, _NARROWEST = (4.4, 2.6), 6.0  # inches
_TICKS = 8  # values of x that are all named
_DECADE, _CENTURY = 10.0, 100.0
_DPI = 90
_COLOURS = 10
_NOTES, _NOTE = 6, 75  # published numbers above a part, and characters of one
_PUBLISHED = "black"


@dataclass(frozen=True)
class Part:
    drawing: Drawing
    claims: Sequence[Claim] = ()  # that rest on it
    marks: Sequence[Mark] = ()  # published numbers that lie on its axes

    @property
    def heading(self) -> str:
        """Its title, and below it what the document states beside what came out here."""
        stated = [c for c in self.claims if any(map(str.isdigit, c.published)) and c.verdict != NOT_RUN]
        notes = [f"{c.id}: {c.published} published, {_here(c)}" for c in stated]
        more = [f"and {len(notes) - _NOTES} more below"] if len(notes) > _NOTES else []
        return "\n".join([self.drawing.title, *(note[:_NOTE] for note in notes[:_NOTES]), *more])


def _here(claim: Claim) -> str:
    """Our number, if it is of the same quantity as the published one: it has the same unit."""
    ours = claim.ours.split(";")[0].split(" (")[0]
    same = _unit(ours) == _unit(claim.published)
    return f"{ours} here" if same else claim.finding


def _unit(amount: str) -> str:
    return re.split(r"\d", amount)[-1].strip()


def small_multiples(parts: Sequence[Part], file: Path) -> None:
    drawn(parts).savefig(file, dpi=_DPI, metadata={"Software": None})


def drawn(parts: Sequence[Part]) -> Figure:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    parts = _merged(parts)
    across = ceil(len(parts) / ceil(len(parts) / _ACROSS))
    blocks = [parts[at : at + across] for at in range(0, len(parts), across)]
    deep = min(max(len(part.drawing.panels) for part in parts), _QUANTITIES)
    size = (max(_CELL[0] * across, _NARROWEST), _CELL[1] * deep * len(blocks) + 0.5)
    figure = Figure(size)
    grid = figure.subplots(deep * len(blocks), across, squeeze=False)
    names = list(dict.fromkeys(name for part in parts for series in part.drawing.panels.values() for name in series))
    colours = {name: colormaps["tab10"](number % _COLOURS) for number, name in enumerate(names)}
    for number, block in enumerate(blocks):
        for column, part in zip_longest(range(across), block):
            rows = grid[number * deep : (number + 1) * deep, column]
            panels = list(part.drawing.panels.items())[:deep] if part else []
            for axes, panel in zip_longest(rows, panels):
                if part and panel:
                    y, series = panel
                    _panel(axes, part, y, series, colours, first=panel == panels[0])
                else:
                    axes.axis("off")
    figure.legend(*_legend(grid, names), loc="upper center", ncol=min(len(names), 6), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / size[1]))
    return figure


def _panel(
    axes: Any, part: Part, y: str, series: Mapping[str, Mapping[float, float]], colours: Mapping[str, Any], first: bool
) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    drawing = part.drawing
    for name, points in series.items():
        at = sorted(points)
        axes.plot(at, [points[x] for x in at], marker="o", markersize=3, linewidth=1.2, label=name, color=colours[name])
    amounts = [amount for points in series.values() for amount in points.values()]
    if all_positive(series) and max(amounts) >= _DECADE * min(amounts):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(amounts) < _CENTURY * min(amounts) else (1,)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(lambda amount, _: _short(amount))
    values = sorted({x for points in series.values() for x in points})
    if drawing.log_x:
        axes.set_xscale("log")
    if drawing.ticks is not None:
        axes.set_xticks(list(drawing.ticks), list(drawing.ticks.values()))
    elif drawing.log_x or len(values) <= _TICKS:
        shown = values[:: ceil(len(values) / _TICKS)]
        axes.set_xticks(shown, [_short(x) for x in shown])
        axes.set_xticks([], minor=True)
    for mark in part.marks:
        if mark.quantity in y:
            _mark(axes, mark)
    axes.set_xlabel(drawing.x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(which="both", labelsize=8)
    axes.grid(alpha=0.3)
    if first:
        axes.set_title(part.heading, fontsize=8, loc="left")


def _short(x: float) -> str:
    """1000000 → 1M"""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= x < 1000 * unit:
            return f"{x / unit:g}{letter}"
    return f"{x:g}"


def _merged(parts: Sequence[Part]) -> Sequence[Part]:
    """Parts that have one value of x each as a single part."""
    if len(parts) == 1 or any(
        len(points) > 1 for p in parts for s in p.drawing.panels.values() for points in s.values()
    ):
        return parts
    panels: dict[str, dict[str, dict[float, float]]] = {}
    for part in parts:
        for y, series in part.drawing.panels.items():
            for name, points in series.items():
                panels.setdefault(y, {}).setdefault(name, {}).update(points)
    whole = replace(parts[0].drawing, panels=panels, log_x=True, title="")
    return [Part(whole, [c for p in parts for c in p.claims], [m for p in parts for m in p.marks])]


def _mark(axes: Any, mark: Mark) -> None:
    legible = {"fontsize": 7.5, "bbox": {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.5}}
    if mark.kind == AT:
        axes.plot(*mark.place, marker="o", markersize=9, markerfacecolor="none", color=_PUBLISHED, linestyle="")
        axes.annotate(mark.label, mark.place, (6, 4), textcoords="offset points", **legible)
    elif mark.kind == X:
        axes.axvline(mark.place[0], color=_PUBLISHED, linestyle="--", linewidth=0.8)
        at, beside = (mark.place[0], 0.03), {"xytext": (-3, 0), "textcoords": "offset points"}
        axes.annotate(mark.label, at, xycoords=("data", "axes fraction"), rotation=90, ha="right", **beside, **legible)
    else:
        axes.axhline(mark.place[0], color=_PUBLISHED, linestyle="--", linewidth=0.8)
        axes.annotate(mark.label, (0.02, mark.place[0]), xycoords=("axes fraction", "data"), va="top", **legible)


def _legend(grid: Any, names: Sequence[str]) -> tuple[list[Any], list[str]]:
    """A line per method, in the order in which they were met."""
    found: dict[str, Any] = {}
    for axes in grid.flat:
        found |= {label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    return [found[name] for name in names if name in found], [name for name in names if name in found]
