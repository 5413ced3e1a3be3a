"""The benchmark and the reproduction run, agree with themselves, and report what they promise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from analysis.report.claims import FAILS, HOLDS
from sim.bench import covering as bench
from sim.reproduce import icdcs07, icdcs07_bounds
from sim.reproduce.icdcs07_measure import mean_runs
from sim.reproduce.sheet import Sheet


def test_bench_rows_and_verdicts():
    rows = [*bench._static("narrow", 3000, 2), *bench._adversarial(3000, 2), *bench._mixed("narrow", 3000, 2)]
    assert {row["case"] for row in rows} == {"uncovered", "covered", "adversarial", "mixed"}
    ours = {str(row["method"]).split(" ")[0] for row in rows}
    assert set(bench.OURS) < ours
    for row in rows:
        if row["case"] in ("uncovered", "covered"):
            assert row["us_single"] > 0
            assert row["us_batch"] > 0
            assert row["ratio_to_scalar_scan"] > 0
    verdicts = bench.verdicts(rows)
    assert len(verdicts) == 8
    assert all(isinstance(verdict["met"], bool) for verdict in verdicts)
    memory = next(v for v in verdicts if "memory" in v["target"])
    assert memory["asked"] == 1.5


def test_runs_over_all_places_are_those_of_every_square():
    rng, size = np.random.default_rng(1), 8
    walk = np.stack(np.divmod(rng.permutation(size * size), size), axis=1)  # any order of the cells
    place = {tuple(cell): number for number, cell in enumerate(walk.tolist())}
    for side in (1, 3, 8):
        corners = [(x, y) for x in range(size - side + 1) for y in range(size - side + 1)]
        squares = [sorted(place[x + i, y + j] for i in range(side) for j in range(side)) for x, y in corners]
        runs = [1 + sum(b - a > 1 for a, b in pairwise(keys)) for keys in squares]
        assert mean_runs(walk, side, size) == pytest.approx(sum(runs) / len(runs))


def test_worked_examples_of_the_slides(tmp_path):
    sheet = Sheet("icdcs07", tmp_path, lambda _: None)
    icdcs07.examples(sheet)
    assert {claim.id: claim.verdict for claim in sheet.claims if claim.verdict != HOLDS} == {}
    assert {claim.id for claim in sheet.claims} >= {
        "385-runs",
        "gamma-sequence",
        "cubes-1101-0110",
        "filtering-example",
    }
    drawn = {claim.figure for claim in sheet.claims if claim.id in ("385-runs", "gamma-sequence")}
    assert drawn == {"slides_beside_ours.png"}
    assert (tmp_path / "slides_beside_ours.png").stat().st_size > 10_000


def test_theorems_of_the_slides(tmp_path):
    sheet = Sheet("icdcs07", tmp_path, lambda _: None, quick=True)
    icdcs07_bounds.run(sheet)
    found = {claim.id: claim.verdict for claim in sheet.claims}
    for id in ("upper-bound", "lower-bound", "searched-fraction", "key-pattern", "face-of-cubes", "aspect-ratio"):
        assert found[id] == HOLDS, id


def test_the_near_face_of_a_rectangle_that_joins_is_not_apart():
    """Sides 100 × 100 fill a standard cube: one run, so its face is not apart, and most predecessors lie inside."""
    keys, outside, apart = icdcs07_bounds.near_face([4, 4], 3)
    assert len(keys) == 4
    assert not outside
    assert not apart


@pytest.mark.slow
def test_whole_reproduction(tmp_path):
    sheet = Sheet("icdcs07", tmp_path, lambda _: None, quick=True)
    for step in icdcs07.steps(sheet).values():
        step()
    claims = {claim.id: claim for claim in sheet.finish()}
    assert claims["safety"].verdict == HOLDS
    assert claims["works-without"].verdict == HOLDS
    assert claims["benefit-forwarding"].verdict == HOLDS
    assert claims["substantially-faster-exact"].verdict == FAILS
    for claim in claims.values():
        assert claim.figure is None or (tmp_path / claim.figure).exists()
