"""Line plots and CSV files of the matching reproductions."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def plot_lines(
    path: Path,
    series: Mapping[str, Mapping[float, float]],
    *,
    title: str,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = True,
    ticks: Mapping[float, str] | None = None,
) -> None:
    """One line per name, from x to y; `ticks` names the values of x that are no numbers."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, points in series.items():
        at = sorted(points)
        axes.plot(at, [points[p] for p in at], marker="o", label=name)
    axes.set(title=title, xlabel=x, ylabel=y)
    if log_x:
        axes.set_xscale("log", base=2)
    if log_y:
        axes.set_yscale("log")
    if ticks is not None:
        axes.set_xticks(list(ticks), list(ticks.values()))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
