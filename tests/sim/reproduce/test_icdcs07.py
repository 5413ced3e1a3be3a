"""The benchmark and the reproduction run, agree with themselves, and report what they promise."""

from __future__ import annotations

import pytest

from analysis.report.claims import FAILS, HOLDS
from sim.bench import covering as bench
from sim.reproduce import icdcs07
from sim.reproduce.sheet import Sheet


def test_bench_rows_and_verdicts():
    rows = [*bench._static("narrow", 3000, 2), *bench._adversarial(3000, 2), *bench._mixed("narrow", 3000, 2)]
    assert {row["case"] for row in rows} == {"uncovered", "covered", "adversarial", "mixed"}
    ours = {str(row["method"]).split(" ")[0] for row in rows}
    assert set(bench.EXACT) < ours
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


def test_worked_examples_of_the_slides(tmp_path):
    sheet = Sheet("icdcs07", tmp_path, lambda _: None)
    icdcs07._examples(sheet, "none")
    assert [claim.verdict for claim in sheet.claims] == [HOLDS] * 6
    assert {claim.id for claim in sheet.claims} >= {"385-runs", "gamma-sequence", "cubes-1101-0110"}


@pytest.mark.slow
def test_whole_reproduction(tmp_path):
    claims = {claim.id: claim for claim in icdcs07.run(tmp_path, True, lambda _: None)}
    assert claims["safety"].verdict == HOLDS
    assert claims["upper-bound"].verdict == HOLDS
    assert claims["lower-bound"].verdict == HOLDS
    assert claims["substantially-faster-time"].verdict == FAILS
    for claim in claims.values():
        assert claim.figure is None or (tmp_path / claim.figure).exists()
