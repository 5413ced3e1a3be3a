"""What a study needs beside traces: what theory says about searches, what profiles charge for storage.

The slides bound the cost of one search by the shape of its region: a check of a subscription searches the region
above its dominance point, with side lengths l_j in cells of the greedy methods' grid. Here the closed forms of
covering/curve/theory.py are averaged over the regions of a workload's subscriptions (SAMPLE of them, evenly picked), so
that they can be compared with means per check:

    exact_lower   (2^(α−1)·l_min)^(D−1)            the slides' Ω for exact search (for their worst rectangle)
    exact_runs    runs of the region                the least an exact search can do, region by region
    exact_cubes   cubes of the region               what the exact greedy does
    upper[ε]      log2(D/ε)·(2^(α+1)·D/ε)^(D−1)     the slides' O for approximate search, constant 1
    greedy[ε]     cubes until 1 − ε is searched     what the greedy does where there is no cover

They depend on the resolution, so they are given for each that was set (`covering.bits`), and for the one that a search
chooses. Beside them are the slides' own figures and ours.

For profiles the file has what they charge for searches, the profile of the runs first. With it the report works out
costs under all of them, and under others, from one run's counts. `analysis` may import neither `covering` nor
`broker.work`, hence a file: `<out>/bounds.json`, with an entry per family of points and one per profile. No profile
that charges for round trips is among them unless it is that of the runs: sorted keys are compared by their lookups.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import covering
from analysis.report.costs import BOUNDS_FILE
from analysis.report.places import BITS
from analysis.report.study import LEAST
from analysis.report.summary import family, is_plain_covering
from broker.trace.disk import replaced_file, writing
from broker.work import is_file, load_profile, shipped_profiles
from covering.curve import theory
from covering.curve.keys import mirror
from covering.curve.resolution import greedy_bits
from covering.quantiser import Quantiser
from coverlay import CoverlayError
from sim.experiment.build import workload_of
from sim.experiment.config import Experiment
from sim.experiment.plan import EXPERIMENT, Plan, PlannedRun, load
from sim.experiment.runner import facts_of, runs_kept
from sim.random_streams import streams

SAMPLE = 4000  # regions; the closed forms take about 0.15 ms each, and their means depend on a few thin regions


def write_bounds(plan: Plan, out: Path) -> None:
    """Write the bounds of every workload of a study, and what profiles charge where searches are approximate."""
    families: dict[str, list[PlannedRun]] = {}
    for run in plan.runs:
        if is_plain_covering(facts_of(run.experiment)):
            families.setdefault(family(run.point), []).append(run)
    entries: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    for name, runs in families.items():
        rough = sum(run.experiment.covering.approximate for run in runs if run.seed == runs[0].seed)
        if rough:
            profiles |= prices_beside(runs[0].experiment.broker.service.profile)
        if rough < LEAST:
            continue
        if found := _by_bits([run for run in runs if run.seed == runs[0].seed]):
            entries.append({"family": name, "bounds": found})
    if entries or profiles:
        content = {"families": entries, "profiles": profiles, "slides": slides_beside_ours()}
        with writing(out / BOUNDS_FILE, partial(runs_kept, out)), replaced_file(out / BOUNDS_FILE) as unfinished:
            unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


def _by_bits(runs: list[PlannedRun]) -> dict[str, dict[str, Any]]:
    """The bounds of a family's curve searches, by the bits that were set; empty: a search chooses them."""
    found: dict[str, list[PlannedRun]] = {}
    for run in runs:
        if covering.METHODS[run.experiment.covering.method].on_curve:
            found.setdefault(str(run.point.get(BITS, "")), []).append(run)
    return {
        given: bounds(some[0].experiment, some[0].seed, sorted({run.experiment.covering.epsilon for run in some}))
        for given, some in found.items()
    }


def slides_beside_ours() -> str:
    """The slides' two examples: their numbers, and ours."""
    runs, near = theory.runs([257, 257], 9), theory.plan([257, 257], 9, 0.01).quota
    cut = theory.plan([5, 7], 3, 0.1)
    shares = ", ".join(f"{100 * cut.fraction(cubes):.1f}" for cubes in (1, 2, 3, cut.quota))
    return (
        f"257 × 257 takes 385 runs exactly and 1 for 99 % of its volume (ours: {runs} and {near}); of 5 × 7 the search "
        f"has seen γ = 45.7, 57.1, 68.6 and at last 91.4 % (ours: {shares} %)"
    )


def write_missing_bounds(out: Path) -> None:
    """Write the bounds of a sweep that was cut short before they were written."""
    experiment = out / EXPERIMENT
    if not (out / BOUNDS_FILE).is_file() and experiment.is_file():
        with suppress(CoverlayError):  # another version, or files that are gone: the page is without bounds
            write_bounds(load(str(experiment)), out)


def prices_beside(own: str | None) -> dict[str, dict[str, Any]]:
    """What profiles charge: the one that an experiment runs under, and the shipped ones.

    Beside a profile of the user's, shipped ones charge for storage only: they were measured on another machine.
    """
    if own is None:
        return {}
    found = {own: prices_of(own)}
    for name in shipped_profiles():
        shipped = prices_of(name)
        if shipped["round_trip"]:
            continue
        if is_file(own) and shipped["page"]:
            found[name] = {**shipped, "covering": found[own]["covering"]}
        elif not is_file(own):
            found.setdefault(name, shipped)
    return found


def prices_of(name: str) -> dict[str, Any]:
    """What a profile charges for searches, as the study takes it (`Price`)."""
    profile = load_profile(name)
    charged = ("check", "probe", "candidate")
    searches = {method: {key: c[key] for key in charged if key in c} for method, c in profile.covering.items()}
    return {"page": profile.flat["page"], "round_trip": profile.flat["round_trip"], "covering": searches}


def bounds(experiment: Experiment, seed: int, swept: list[float]) -> dict[str, Any]:
    """The closed forms, averaged over the search regions of an experiment's subscriptions."""
    lengths, bits = regions(experiment, seed)
    alphas = [theory.aspect_ratio(sides) for sides in lengths]
    dimensions = len(lengths[0])
    above = [epsilon for epsilon in swept if epsilon > 0]
    return {
        "dimensions": dimensions,
        "bits": bits,
        "regions": len(lengths),
        "alpha": {"low": min(alphas), "median": float(np.median(alphas)), "high": max(alphas)},
        "shortest": float(np.median([min(sides) for sides in lengths])),
        "exact_lower": _mean(
            [theory.exact_lower_bound(dimensions, a, min(s)) for a, s in zip(alphas, lengths, strict=True)]
        ),
        "exact_runs": _mean([theory.runs(sides, bits) for sides in lengths]),
        "exact_cubes": _mean([sum(theory.cubes_per_level(sides, bits)) for sides in lengths]),
        "upper": {
            f"{e:g}": _mean([theory.approximate_upper_bound(dimensions, alpha, e) for alpha in alphas]) for e in above
        },
        "greedy": {f"{e:g}": _mean([theory.plan(sides, bits, e).quota for sides in lengths]) for e in above},
    }


def regions(experiment: Experiment, seed: int) -> tuple[list[list[int]], int]:
    """Side lengths of the search regions of up to SAMPLE subscriptions, and the bits of their grid."""
    workload = workload_of(experiment, streams(seed))
    rows = np.unique(np.linspace(0, len(workload.lo) - 1, SAMPLE).astype(int))
    points = np.empty((len(rows), 2 * workload.lo.shape[1]))
    points[:, 0::2], points[:, 1::2] = -workload.lo[rows], workload.hi[rows]
    bits = experiment.covering.options.get("bits") or greedy_bits(len(workload.lo), points.shape[1])
    quantiser = Quantiser.of(workload.schema.domain, bits)
    codes = np.empty(points.shape[1], np.int64)
    lengths = []
    for point in points:
        mirror(point, quantiser.offset, quantiser.scale, quantiser.bits, codes)
        lengths.append((codes + 1).tolist())
    return lengths, bits


def _mean(counts: list[Any]) -> float:
    return float(sum(counts) / len(counts))
