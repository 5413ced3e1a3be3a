"""The slides' theorems against the cubes and runs of rectangles: how both searches grow with D, α and ε."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise, product

import numpy as np

import covering
from covering.curve import theory
from covering.curve.zorder import ZorderIndex
from sim.reproduce import icdcs07_figures as figures
from sim.reproduce.icdcs07_measure import Cost, cost_study, key_of, random_rectangle, surface_study
from sim.reproduce.sheet import Cause, Sheet

_SMALL = 0.05  # the ε of claims about "small ε"
_SHORT, _LONG = 12, 17  # bits of the sides that growth is measured between; with few, ε is less than a cell
_WIDE = 32  # bits of a side: an attribute of 32 bits
_ALPHA = 4  # the worst aspect ratio that is drawn
_EPSILONS = (0.01, 0.05, 0.1, 0.3)


def run(sheet: Sheet) -> None:
    sheet.progress("bounds")
    costs = [
        [Cost(**row) for row in sheet.kept(f"costs-{seed}", partial(_costs, sheet, seed), timed=False)]
        for seed in sheet.seeds
    ]
    sheet.table("cubes", [asdict(cost) for cost in costs[0]])
    picture = figures.costs(costs[0], sheet.out)
    each = sheet.sized(20, 100)
    size = f"{each} rectangles for each of D = {_list(costs[0])}, α = 0, 2, 4 and four ε"
    _upper(sheet, costs, size, picture)
    _growth(sheet)
    _lower(sheet)
    _against_exact(sheet, costs, size, picture)
    _surface(sheet)


def _costs(sheet: Sheet, seed: int) -> list[dict[str, float]]:
    return [asdict(cost) for cost in cost_study(sheet, seed)]


def _list(costs: Sequence[Cost]) -> str:
    return ", ".join(str(d) for d in sorted({cost.dimensions for cost in costs}))


def _upper(sheet: Sheet, costs: Sequence[Sequence[Cost]], size: str, picture: str) -> None:
    worst = [max(cost.over_bound for cost in seed) for seed in costs]
    above = sum(cost.above_bound for seed in costs for cost in seed)
    sheet.judge(
        "upper-bound",
        worst,
        Cause("the constant must be larger than 1", {"rectangles above": above}),
        size=size,
        detail="largest share of the bound that any rectangle needs",
        figure=picture,
    )
    least = [_least_searched(sheet, seed) for seed in sheet.seeds]
    sheet.judge(
        "searched-fraction",
        least,
        Cause("the search ended too early", {"least ÷ (1 − ε)": min(least)}),
        size="the index at work: 1 attribute of 6 bits and 2 of 4, four ε, no cap",
        detail="volume of the cubes that it looked up, walked one by one",
        figure=picture,
    )


def _least_searched(sheet: Sheet, seed: int) -> float:
    """The least share that an index without entries searched ÷ (1 − ε). What it looked up is the first cubes of the
    walk, as many as it counted; their volume is added up cube by cube."""
    rng, least = np.random.default_rng([17, seed]), math.inf
    for attributes, bits in ((1, 6), (2, 4)):
        side = 1 << bits
        for epsilon in _EPSILONS:
            for _ in range(sheet.sized(10, 100)):
                low = rng.integers(0, side, attributes)
                box = np.stack([low, low + rng.integers(0, side - low)], axis=1) + 0.5
                index = covering.create("zorder", [[0.0, side]] * attributes, epsilon, bits=bits, probe_cap=16**4)
                assert isinstance(index, ZorderIndex)
                index.find_cover(box)
                lengths = index.lengths_of(np.stack([-box[:, 0], box[:, 1]], axis=1).ravel()).tolist()
                walked = [cube ** len(lengths) for cube, _ in figures.cubes_of(lengths, bits)]
                least = min(least, sum(walked[: index.stats.cubes]) / math.prod(lengths) / (1.0 - epsilon))
    return least


def _growth(sheet: Sheet) -> None:
    """How both searches grow with the length of the sides, and exact search with D."""
    each = sheet.sized(20, 200)
    approximate, exponents, details = [], [], []
    for seed in sheet.seeds:
        grown, powers = [], []
        for d in (2, 3, 4):
            cubes, runs = [], []
            for bits in (_SHORT, _LONG):
                sides = [random_rectangle(d, 0, bits, (seed, d, bits, i)) for i in range(each)]
                cubes.append(statistics.median(theory.plan(s, bits, _SMALL).quota for s in sides))
                runs.append(statistics.median(theory.runs(s, bits + 1) for s in sides))
            grown.append(cubes[1] / cubes[0])
            powers.append(math.log2(runs[1] / runs[0]) / (_LONG - _SHORT) / (d - 1))
        approximate.append(max(grown))
        exponents.append(statistics.mean(powers))
        details.append((grown, powers))
    size = f"D = 2, 3, 4; {each} rectangles of α = 0"
    grown, powers = details[0]
    sheet.judge(
        "independent-of-length",
        approximate,
        Cause("approximate search needs more cubes for longer sides", {"growth": max(approximate)}),
        size=size,
        detail=f"by D: {', '.join(f'{g:.2f}×' for g in grown)}",
    )
    sheet.judge(
        "lower-bound-growth",
        exponents,
        Cause("runs of random rectangles grow by another power", {"exponent ÷ (D − 1)": exponents[0]}),
        size=size,
        detail=f"by D: {', '.join(f'{p:.2f}' for p in powers)}",
    )
    steps = []
    for seed in sheet.seeds:
        runs = [
            statistics.median(theory.runs(random_rectangle(d, 0, 5, (seed, d, i)), 6) for i in range(each))
            for d in range(2, 9)
        ]
        steps.append(min(b / a for a, b in pairwise(runs)))
    sheet.judge(
        "exponential",
        steps,
        Cause("a dimension more costs less than twice as much", {"least": min(steps)}),
        size=f"D = 2 to 8; {each} rectangles each",
        detail="least factor per dimension",
    )


def _lower(sheet: Sheet) -> None:
    rows = []
    for d, alpha, b in product((2, 3, 4), (0, 1, 2, 3), (2, 3, 4, 5, 6)):
        lengths = theory.worst_rectangle(d, alpha, b) if alpha else [(1 << b) - 1] * d
        bound = float(theory.exact_lower_bound(d, theory.aspect_ratio(lengths), min(lengths)))
        rows.append((d, alpha, b, theory.runs(lengths, b + alpha + 1), bound))
    least = min(runs / bound for *_, runs, bound in rows)
    sheet.judge(
        "lower-bound",
        [least],
        Cause("the construction does not reach the bound everywhere", {"least": least}),
        size=f"{len(rows)} constructed rectangles, D = 2, 3, 4, α = 0 to 3",
        detail=f"at least; sides 100 × 011 have {theory.runs([4, 3], 3)} runs",
        figure=figures.lower_bounds(rows, sheet.out),
    )
    # In the slides' orientation the rectangle lies at the far corner: 1xx × 101 are the cells of the near face.
    cells, outside, apart = near_face([4, 3], 3)
    wrong = Cause("two cubes of the face can belong to one run", {"cubes": len(cells)})
    sheet.judge(
        "key-pattern",
        [float(len(cells) == 4 and outside and apart)],
        wrong,
        size="as on the slides",
        detail=f"keys {', '.join(f'{key:06b}' for key in cells)}; predecessors outside: {outside}",
    )
    right = tried = 0
    for d, alpha, b in product((2, 3), (1, 2), (2, 3)):
        lengths = theory.worst_rectangle(d, alpha, b)
        cells, outside, apart = near_face(lengths, b + alpha)
        volume = math.prod(1 << (side.bit_length() - 1) for side in lengths[:-1])
        right += len(cells) == volume and outside and apart
        tried += 1
    wrong = Cause("the face has another number of cubes, or two in a run", {"rectangles": right})
    sheet.judge(
        "face-of-cubes",
        [float(right == tried)],
        wrong,
        size=f"{tried} rectangles, every cell looked at",
        detail=f"true of {right} of {tried}",
    )


def near_face(lengths: Sequence[int], bits: int) -> tuple[list[int], bool, bool]:
    """Of the rectangle at the far corner of the grid: the keys of the cells where its last side begins, whether the key
    before each lies outside, and whether no two of them are in one run."""
    whole = 1 << bits
    spans = [range(whole - side, whole) for side in lengths]
    inside = {key_of(cell, bits) for cell in product(*spans)}
    face = sorted(key_of((*cell, spans[-1][0]), bits) for cell in product(*spans[:-1]))
    outside = all(key - 1 not in inside for key in face)
    runs = [sum(1 for key in inside if key <= f and key - 1 not in inside) for f in face]
    return face, outside, len(set(runs)) == len(face)


def _against_exact(sheet: Sheet, costs: Sequence[Sequence[Cost]], size: str, picture: str) -> None:
    def at(seed: Sequence[Cost], d: int, alpha: int) -> Cost:
        return next(c for c in seed if (c.dimensions, c.alpha, c.epsilon) == (d, alpha, _SMALL))

    dimensions = sorted({cost.dimensions for cost in costs[0]})
    first = {d: at(costs[0], d, 0) for d in dimensions}
    shown = "; ".join(
        f"D = {d}: {c.exact_runs / c.approximate_cubes:.3g}× fewer ({c.approximate_cubes:.3g} cubes)"
        for d, c in first.items()
    )
    cubes = {f"cubes at D = {d}": c.approximate_cubes for d, c in first.items()}
    cheaper = [min(at(seed, d, 0).exact_runs / at(seed, d, 0).approximate_cubes for d in dimensions) for seed in costs]
    sheet.judge(
        "substantially-faster-counts",
        cheaper,
        Cause("not cheaper for every D", cubes),
        size=size,
        detail=f"least over D; {shown}",
        figure=picture,
    )
    wide = [[_over_cubes(d, _WIDE, seed) for d in dimensions] for seed in sheet.seeds]
    least = {d: next(b for b in range(2, _WIDE + 1) if _over_cubes(d, b, 1) > 1.0) for d in dimensions}
    sheet.judge(
        "better-than-lower-bound",
        [min(seed) for seed in wide],
        Cause("the cubes of approximate search outnumber the lower bound of exact search", cubes),
        size=f"D = {_list(costs[0])}; 20 rectangles of α = 0 with sides of {_WIDE} bits",
        detail="least over D; true from sides of "
        + ", ".join(f"{b} bits at D = {d}" for d, b in least.items())
        + " on",
        figure=picture,
    )

    def growth(seed: Sequence[Cost], d: int) -> float:
        """How much more cubes α = 4 takes than α = 0."""
        return at(seed, d, _ALPHA).approximate_cubes / at(seed, d, 0).approximate_cubes

    grown = [min(growth(seed, d) for d in dimensions) for seed in costs]
    by_d = ", ".join(f"D = {d}: {growth(costs[0], d):.3g}×" for d in dimensions)
    none = Cause("no growth with α", {"least": min(grown)})
    sheet.judge("aspect-ratio", grown, none, size=size, detail=by_d, figure=picture)
    shares = [max(growth(seed, d) / 2 ** (_ALPHA * (d - 1)) for d in dimensions) for seed in costs]
    beyond = Cause("cubes grow faster with α than the bound", {"most": max(shares)})
    sheet.judge("aspect-ratio-bound", shares, beyond, size=size, detail="largest over D", figure=picture)


def _over_cubes(d: int, bits: int, seed: int) -> float:
    """The lower bound of exact search ÷ the cubes of approximate search, median of rectangles with α = 0."""
    sides = [random_rectangle(d, 0, bits, (seed, d, bits, i)) for i in range(20)]
    return statistics.median(
        float(theory.exact_lower_bound(d, 0, min(s)) / theory.plan(s, bits, _SMALL).quota) for s in sides
    )


def _surface(sheet: Sheet) -> None:
    rows = surface_study()
    per_side = [hilbert / side for side, _, hilbert in rows]
    spread, mean = max(per_side) / min(per_side), statistics.mean(per_side)
    curve = statistics.mean(z / side for side, z, _ in rows)
    sheet.judge(
        "hilbert-surface",
        [spread],
        Cause("runs per cell of side vary with the side", {"spread": spread}),
        size="squares of side 2–32 at every place in 64 × 64",
        detail=f"largest ÷ smallest runs per cell of side; mean {mean:.2f}, Z curve {curve:.2f}",
        figure=figures.hilbert_runs(rows, sheet.out),
    )
