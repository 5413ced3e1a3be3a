"""Pictures for the reproduction of the ICDCS 2007 slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

from covering.curve.cubes import cube_rows
from covering.curve.zorder import as_integer
from sim.reproduce.icdcs07_measure import Cost, Recall

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle


def cubes_of(lengths: Sequence[int], bits: int) -> list[tuple[int, tuple[int, ...]]]:
    """(side, corner) of the standard cubes in the order the search meets them, from the kernel that walks them."""
    rows, levels = cube_rows(np.array(lengths), bits, False, 10**6)
    dimensions = len(lengths)
    shift = 64 * (rows.shape[1] - 1) - dimensions * bits
    cubes = []
    for row, level in zip(rows, levels.tolist(), strict=True):
        key = as_integer(row) >> shift
        corner = [0] * dimensions
        for t in range(dimensions * bits):
            corner[t % dimensions] = corner[t % dimensions] << 1 | (key >> (dimensions * bits - 1 - t) & 1)
        cubes.append((1 << level, tuple(corner)))
    return cubes


_OURS, _SLIDES = "tab:blue", "tab:orange"


Runs = tuple[int, int]  # of 257 × 257: by exact search, and for 99 % of its volume


def slides_beside_ours(
    told_runs: Runs, runs: Runs, told_shares: Mapping[int, float], shares: Sequence[float], out: Path
) -> str:
    """The slides' two examples, 257 × 257 and 5 × 7, and their numbers beside what the index does.

    Shares are γ, per cent of the volume of 5 × 7: those told after some numbers of cubes, ours after every cube.
    """
    figure, ((square, counts), (cut, searched)) = plt.subplots(2, 2, figsize=(10, 8.4))
    _cubes(square, (257, 257), 9)
    square.set_title("257 × 257: a cube of 256 × 256, a margin of cells")
    corner = square.inset_axes((0.34, 0.34, 0.36, 0.36), xlim=(249, 257), ylim=(249, 257), xticks=[], yticks=[])
    _cubes(corner, (257, 257), 9)
    square.indicate_inset_zoom(corner, edgecolor="black")
    for offset, values, colour, label in ((-0.2, told_runs, _SLIDES, "slides"), (0.2, runs, _OURS, "ours")):
        bars = counts.bar([offset, 1 + offset], values, 0.38, color=colour, label=label)
        counts.bar_label(bars)
    counts.set(yscale="log", ylim=(0.5, 2000), ylabel="runs looked up", xticks=[0, 1])
    counts.set_xticklabels(["exact search", "99 % of the volume"])
    counts.set_title("257 × 257: runs")
    counts.legend()
    _cubes(cut, (5, 7), 3, numbered=True)
    cut.set_title("5 × 7: standard cubes in the order of the search")
    searched.step(range(len(shares) + 1), [0.0, *shares], where="post", color=_OURS, label="ours")
    searched.plot([*told_shares], [*told_shares.values()], "o", color=_SLIDES, label="slides")
    for cubes, told in told_shares.items():
        searched.annotate(f"{told:g} %", (cubes, told), (6, -12), textcoords="offset points")
    searched.axhline(90.0, color="grey", linestyle="--", linewidth=0.8)
    searched.text(0.1, 91.0, "1 − ε = 90 %", color="grey")
    searched.set(xlabel="cubes looked up", ylabel="γ: share of the volume searched, %", xlim=(0, 13), ylim=(0, 104))
    searched.set_title("5 × 7: volume searched")
    searched.legend(loc="lower right")
    return _save(figure, out, "slides_beside_ours")


def _cubes(axis: Axes, lengths: tuple[int, int], bits: int, numbered: bool = False) -> None:
    """A rectangle cut into standard cubes, mirrored as the search sees it."""
    for rank, (side, (x, y)) in enumerate(cubes_of(lengths, bits), 1):
        colour = plt.get_cmap("viridis")(0.15 + 0.7 * np.log2(side) / np.log2(max(lengths)))
        axis.add_patch(Rectangle((x, y), side, side, facecolor=colour, edgecolor="white", linewidth=0.6))
        if numbered:
            axis.text(x + side / 2, y + side / 2, str(rank), ha="center", va="center", color="white")
    axis.set_aspect("equal")
    if not axis.get_xlim()[0]:
        axis.set(xlim=(0, lengths[0]), ylim=(0, lengths[1]))


def costs(measured: Sequence[Cost], out: Path) -> str:
    """Cubes that approximate search needs, the slides' upper bound, and what exact search needs."""
    dimensions = sorted({cost.dimensions for cost in measured})
    figure, axes = _panels(len(dimensions))
    for axis, d in zip(axes, dimensions, strict=False):
        for alpha, colour in zip((0, 2, 4), ("tab:blue", "tab:orange", "tab:red"), strict=True):
            rows = [cost for cost in measured if cost.dimensions == d and cost.alpha == alpha]
            epsilon = [cost.epsilon for cost in rows]
            axis.plot(epsilon, [c.approximate_cubes for c in rows], "o-", color=colour, label=f"α = {alpha}, needed")
            axis.plot(epsilon, [c.upper_bound for c in rows], ":", color=colour, label="upper bound")
            axis.axhline(rows[0].exact_runs, color=colour, linestyle="--", linewidth=0.8, label="exact, runs")
        axis.set(xscale="log", yscale="log", xlabel="ε", title=f"D = {d}")
        axis.axhline(4096, color="grey", linewidth=0.5)
    axes[0].set_ylabel("standard cubes (grey: the probe cap)")
    _legend(axes)
    return _save(figure, out, "cubes_over_epsilon")


def recalls(measured: Sequence[Recall], out: Path) -> str:
    """Share of the covers found, over ε, per workload and number of attributes."""
    attributes = sorted({row.attributes for row in measured})
    figure, axes = _panels(len(attributes))
    names = list(dict.fromkeys(row.workload for row in measured))
    for axis, d in zip(axes, attributes, strict=False):
        for name, colour in zip(names, plt.get_cmap("tab10").colors, strict=False):
            for method, style in (("zorder-emulated", "o-"), ("kdtree", "x:")):
                rows = [r for r in measured if r.attributes == d and r.workload == name and r.method == method]
                if rows and rows[0].covered:
                    label = name if method != "kdtree" else None
                    shown = [max(r.epsilon, 5e-4) for r in rows]
                    axis.plot(shown, [r.recall for r in rows], style, color=colour, label=label, markersize=4)
        axis.set(xscale="log", xlabel="ε (left end: 0)", title=f"d = {d}", ylim=(-0.02, 1.02))
    axes[0].set_ylabel("covers found")
    _legend(axes, "dots: greedy Z order\ncrosses: k-d tree")
    return _save(figure, out, "recall_over_epsilon")


def lower_bounds(rows: Sequence[tuple[int, int, int, int, float]], out: Path) -> str:
    """Runs of the slides' worst rectangles and the lower bound: (D, α, b, runs, bound)."""
    figure, axis = plt.subplots(figsize=(5, 4))
    for d in sorted({row[0] for row in rows}):
        some = [row for row in rows if row[0] == d]
        axis.plot([row[4] for row in some], [row[3] for row in some], "o", label=f"D = {d}", markersize=4)
    span = [min(row[4] for row in rows), max(row[4] for row in rows)]
    axis.plot(span, span, "k--", linewidth=0.8, label="the bound itself")
    axis.set(xscale="log", yscale="log", xlabel="lower bound (2^(α−1)·l_min)^(D−1)", ylabel="runs of exact search")
    axis.legend()
    return _save(figure, out, "lower_bound")


def hilbert_runs(rows: Sequence[tuple[int, float, float]], out: Path) -> str:
    """Mean runs over the side of a square, for both curves: (side, Z, Hilbert)."""
    figure, axis = plt.subplots(figsize=(5, 4))
    axis.plot([r[0] for r in rows], [r[1] for r in rows], label="Z curve", linewidth=0.9)
    axis.plot([r[0] for r in rows], [r[2] for r in rows], label="Hilbert curve", linewidth=0.9)
    axis.set(xlabel="side of the square", ylabel="runs, mean over positions")
    axis.legend()
    return _save(figure, out, "runs_z_hilbert")


_ACROSS = 3


def _panels(count: int) -> tuple[plt.Figure, list[Axes]]:
    """Panels in rows, and one more for the legend."""
    down = count // _ACROSS + 1
    figure, grid = plt.subplots(down, _ACROSS, figsize=(3.4 * _ACROSS, 3.2 * down), squeeze=False)
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.axis("off")
    return figure, axes[: count + 1]


def _legend(axes: Sequence[Axes], title: str = "") -> None:
    lines, names = axes[0].get_legend_handles_labels()
    axes[-1].legend(lines, names, title=title, loc="center", fontsize=9, frameon=False)


def _save(figure: plt.Figure, out: Path, name: str) -> str:
    figure.tight_layout()
    figure.savefig(out / f"{name}.png", dpi=130)
    plt.close(figure)
    return name
