"""Tables and pictures of a reproduction: CSV files and PNGs in its folder."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.series import Swept

_WIDE = 30.0  # an axis that spans this factor is logarithmic


@dataclass(frozen=True)
class Drawing:
    """A panel per quantity, a line per name, x → y in each."""

    title: str
    x: str
    panels: Mapping[str, Mapping[str, Mapping[float, float]]]
    log_x: bool = False
    ticks: Mapping[float, str] | None = None  # names of values of x that are not numbers


class Pictures:
    """What is drawn and written beside the verdicts of a document."""

    out: Path
    seeds: tuple[int, ...]
    drawing: bool  # else nothing is written
    drawn: dict[str, Drawing]  # what was or would have been drawn

    def table(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Write rows as CSV."""
        if not self.drawing:
            return
        names = list(dict.fromkeys(name for row in rows for name in row))
        with (self.out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)

    def plot(
        self,
        name: str,
        panels: Mapping[str, Mapping[str, Mapping[float, float]]],
        *,
        title: str,
        x: str,
        log_x: bool = False,
        ticks: Mapping[float, str] | None = None,
    ) -> None:
        """Draw, and keep what was drawn (`Drawing` has the meaning of the arguments)."""
        self.drawn[name] = Drawing(title, x, panels, log_x, ticks)
        if not self.drawing:
            return
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        # One below the other: side by side they are too small for a phone.
        figure, all_axes = pyplot.subplots(len(panels), 1, figsize=(6.5, 4.2 * len(panels)), squeeze=False)
        for axes, (y, series) in zip(all_axes[:, 0], panels.items(), strict=True):
            for label, points in series.items():
                at = sorted(points)
                axes.plot(at, [points[p] for p in at], marker="o", label=label)
            axes.set(xlabel=x, ylabel=y, yscale="log" if all_positive(series) else "linear")
            if log_x:
                axes.set_xscale("log", base=2)
            if ticks is not None:
                axes.set_xticks(list(ticks), list(ticks.values()))
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
        figure.suptitle(title)
        figure.tight_layout()
        figure.savefig(self.out / f"{name}.png", dpi=120)
        pyplot.close(figure)

    def draw(self, figure: str, title: str, x: str, swept: Swept, ticks: Mapping[float, str] | None = None) -> None:
        """Write what was swept as CSV, and draw the means over the seeds."""
        names = {TIME: "ms per event", COUNTS: "operations per event"}
        rows: list[dict[str, Any]] = [
            {x: value, "method": name, "measured": names.get(basis, basis), "seed": seed, "amount": amount}
            for basis, seeds in swept.by.items()
            for seed, series in zip(self.seeds, seeds, strict=False)
            for name, points in series.items()
            for value, amount in points.items()
        ]
        self.table(figure, rows)
        values = [row[x] for row in rows]
        wide = min(values) > 0.0 and max(values) >= _WIDE * min(values)
        panels = {names.get(basis, basis): swept.mean(basis) for basis in swept.by}
        self.plot(figure, panels, title=title, x=x, log_x=wide, ticks=ticks)


def all_positive(series: Mapping[str, Mapping[float, float]]) -> bool:
    return all(value > 0 for points in series.values() for value in points.values())
