"""Lookups per check where the index is a store of sorted keys, which is asked over a network: no time is measured here.

A link has stored the boxes that no earlier one covers. Then come checks drawn alike, covered or not. A lookup reads
one record; rows that a range holds and that are no covers are lookups too. Searches compete within a store: one that
answers yes or no per range (the slides' model), or one that returns the next key. `share_missed` is of the checks with
a cover.

- `greedy cubes`: the slides' search, on the curve divided as its entries ask for, and as fine as serves it best here
- `bigmin`, `density`: exact; `density ε`: audited, after enough audits, its audits counted in (`audits`: their part)
- `arrivals`: audited from the first arrival on, what is missed being stored, against exact from the first arrival on
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

import covering
from covering.stats import Stats
from sim.bench import Progress, Row
from sim.workloads.boxes import WORKLOADS, Boxes, Make

GRID = (
    *(("wide", 2), ("wide", 4), ("narrow", 1), ("narrow", 2), ("zipf", 2), ("zipf", 3), ("zipf", 4)),
    *(("even", 2), ("even", 4), ("small", 2), ("spots", 2), ("spots", 3), ("spots", 4)),
)
SEEDS = (1, 2, 3)
BITS = range(1, 9)  # that greedy cubes are tried with
WARM_UP, CHECKS, FEW = 4000, 4000, 200  # of the emulation, whose checks take a millisecond, few are enough
EPSILONS = (0.05, 0.1)
VOLUMES = (0.01, 0.1)
STREAM = 10_000  # arrivals that are checked one by one at most


def even(n: int, d: int, rng: np.random.Generator, longest: float = 1.0) -> Boxes:
    """Lengths uniform up to the longest, the place uniform among those where the box fits."""
    length = longest * rng.random((n, d))
    low = (1.0 - length) * rng.random((n, d))
    return np.stack([low, low + length], axis=2)


def small(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """The same, up to a twentieth of the domain."""
    return even(n, d, rng, 0.05)


def spots(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """Twenty centres of Zipf popularity, lengths of a hundred Zipf classes up to half of the domain."""
    centres = rng.random((20, d))
    popularity, classes = 1 / np.arange(1, 21), 1 / np.arange(1, 101)
    spot = rng.choice(20, n, p=popularity / popularity.sum())
    centre = np.clip(centres[spot] + rng.normal(0, 0.05, (n, d)), 0.0, 1.0)
    half = 0.0025 * (rng.choice(100, (n, d), p=classes / classes.sum()) + rng.random((n, d)))
    return np.clip(np.stack([centre - half, centre + half], axis=2), 0.0, 1.0)


# The shapes of the other benchmarks, and those that docs/covering-guarantee.md compares with a second implementation.
SHAPES: dict[str, Make] = WORKLOADS | {make.__name__: make for make in (even, small, spots)}


def rows(quick: bool, progress: Progress) -> list[Row]:
    found: list[Row] = []
    for n in (1_000,) if quick else (1_000, 10_000, 100_000):
        for workload, d in GRID:
            for seed in SEEDS[:1] if quick else SEEDS:
                progress(f"lookups in sorted keys, {workload}, n = {n:,}, d = {d}, seed {seed}")
                found += compared(workload, n, d, seed)
    return found


def compared(workload: str, n: int, d: int, seed: int) -> Iterator[Row]:
    """One workload in both stores."""
    boxes = SHAPES[workload](n + WARM_UP + CHECKS, d, np.random.default_rng([seed, n, d, 4]))
    arrivals, warm_up, asked = np.split(boxes, [n, n + WARM_UP])
    exact = covering.create("auto", [[0, 1]] * d)
    stored = arrivals[[cover is None for cover in exact.add_uncovered(range(n), arrivals)]]
    truth = np.array([cover is not None for cover in exact.find_cover_many(asked)])
    where: Row = {"workload": workload, "n": n, "d": d, "seed": seed, "stored": len(stored), "covered": truth.mean()}

    def row(store: str, name: str, method: str, epsilon: float = 0.0, bits: int | None = None) -> Row:
        index = covering.create(method, [[0, 1]] * d, epsilon, **({} if bits is None else {"bits": bits}))
        index.add_many(range(len(stored)), stored)
        few = method == "zorder-emulated"
        if epsilon and not few:
            index.find_cover_many(warm_up)
        checks = slice(FEW if few else CHECKS)
        before = index.stats.copy()
        found = np.array([cover is not None for cover in index.find_cover_many(asked[checks])])
        if (found & ~truth[checks]).any() or (not epsilon and (found != truth[checks]).any()):
            raise AssertionError(f"{name} is wrong: {where}")
        return {
            "case": f"sorted keys, {store}", **where, "method": name, "epsilon": epsilon, "bits": index.bits,
            **_counted(index.stats.since(before)), "share_missed": 1.0 - found.sum() / max(1, truth[checks].sum()),
        }  # fmt: skip

    cubes = [row("yes or no", f"greedy cubes, {bits} bits", "zorder-emulated", 0.0, bits) for bits in BITS]
    yield min(cubes, key=lambda cube: float(cube["lookups"])) | {"method": "greedy cubes, best bits"}
    for epsilon in (0.0, *VOLUMES):
        name = f"greedy cubes, ε = {epsilon} of the volume" if epsilon else "greedy cubes"
        yield row("yes or no", name, "zorder-emulated", epsilon)
    yield row("next key", "bigmin", "bigmin")
    yield row("next key", "density", "density")
    for epsilon in EPSILONS:
        yield row("next key", f"density, ε = {epsilon} of the covers", "density", epsilon)
    if n <= STREAM:
        yield from _from_the_first(where, arrivals)


def _from_the_first(where: Row, arrivals: Boxes) -> Iterator[Row]:
    """Every arrival is checked, and stored if no cover is found."""
    for epsilon in (0.0, *EPSILONS):
        domain = [[0, 1]] * arrivals.shape[1]
        index, twin = covering.create("density", domain, epsilon), covering.create("auto", domain)
        missed = there = 0
        for number, box in enumerate(arrivals):
            cover = twin.find_cover(box) is not None
            found = index.find_cover(box) is not None
            missed, there = missed + (cover and not found), there + cover
            if not found:
                index.add(number, box)
                twin.add(number, box)
        yield {
            "case": "sorted keys, arrivals", **where, **_counted(index.stats), "stored": len(index),
            "method": f"density, ε = {epsilon} of the covers", "epsilon": epsilon,
            "share_missed": missed / max(1, there),
        }  # fmt: skip


def _counted(work: Stats) -> Row:
    return {"lookups": lookups(work) / work.checks, "audits": work.past_stop / work.checks}


def lookups(work: Stats) -> int:
    """One per probe and per candidate that was no cover."""
    return work.probes + max(0, work.candidates - work.hits)


def table(found: Iterable[Row]) -> list[str]:
    """Means over seeds, one line per workload and size: lookups per check, and of `density` with ε the share missed."""
    cells: dict[tuple[int, str, int], dict[str, list[Row]]] = {}
    for row in found:
        name = f"{row['case']}: {row['method']}"
        cells.setdefault((row["n"], row["workload"], row["d"]), {}).setdefault(name, []).append(row)

    def mean(rows: list[Row], key: str) -> float:
        return float(np.mean([row[key] for row in rows]))

    lines = []
    for (n, workload, d), methods in cells.items():
        words = [f"{workload}, d = {d}, n = {n:,}"]
        for name, some in methods.items():
            missed = mean(some, "share_missed")
            words.append(f"{name}: {mean(some, 'lookups'):.3g}" + (f" ({missed:.1%} missed)" if missed else ""))
        lines.append("; ".join(words))
    return lines
