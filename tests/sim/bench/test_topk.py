"""The paper's generator, and the bench and reproductions at sizes that take a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sim.bench import topk as bench
from sim.bench.topk_peers import PEERS
from sim.reproduce import ibm04, ibm04_indexes, ibm04_storage, vldb08
from sim.reproduce.sheet import Sheet
from sim.workloads.points_in_regions import regional_points, zipf_lengths


def quiet(message: str) -> None:
    """Progress that nobody reads."""


@pytest.mark.parametrize("d", [1, 2, 8])
def test_regional_points_lie_in_regions_and_in_the_domain(d: int) -> None:
    points = regional_points(np.random.default_rng(1), 4000, d, regions=3)
    assert points.shape == (4000, d)
    assert points.min() >= 0
    assert points.max() < 1
    cells = np.unique((points * 100).astype(int), axis=0)
    assert len(cells) <= 3 * 1.6**d * 100**d / 20  # three regions of about 100^d/20 cells, 1.25 per side


def test_more_skew_concentrates_points_and_shortens_lengths() -> None:
    rng = np.random.default_rng(2)
    share = []
    for skew in (0.0, 1.0, 2.0):
        points = regional_points(np.random.default_rng(3), 20_000, 1, skew_within=skew)[:, 0]
        share.append(np.sort(np.bincount((points * 100).astype(int), minlength=100))[-10:].sum())
    assert share == sorted(share)
    mean = [zipf_lengths(rng, 20_000, 1, skew).mean() for skew in (0.0, 0.75, 2.0)]
    assert zipf_lengths(rng, 20_000, 1, 2.0, steps=100_000).mean() < 0.1 * mean[2], "more steps, shorter lengths"
    assert mean == sorted(mean, reverse=True)
    assert mean[0] == pytest.approx(0.5, abs=0.02)
    same = [regional_points(np.random.default_rng(9), 50, 2).tolist() for _ in range(2)]
    assert same[0] == same[1]


def test_bench_rows_agree_and_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every peer that is installed gives our answers (asserted inside), and every target gets a verdict."""
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "_EVENTS", 500)
    monkeypatch.setattr(bench, "_BATCH", 20)
    n = 700
    kinds = ("paper", "paper, elsewhere", "short", "wide")
    rows = [row for kind in kinds for row in bench.one_dimension(kind, n, quiet)]
    rows += bench.several_dimensions(4, n, quiet) + bench.space(n)
    assert {str(row["method"]) for row in rows} & set(PEERS)
    verdicts = bench.verdicts(rows)
    assert len(verdicts) == 12
    assert all(set(v) == {"target", "measured", "met"} for v in verdicts)


def test_storage_figure_of_ibm04(tmp_path: Path) -> None:
    sheet = Sheet("ibm04", tmp_path, quiet)
    ibm04.figure5(sheet)
    assert {c.id for c in sheet.claims} >= {"fig5-clipping", "fig5-lci", "fig5-crossing", "fig5-best"}
    assert (tmp_path / "figure5.png").stat().st_size > 1000
    # The lists are counted by arithmetic: as many cells as a real index uses.
    x, y = ibm04_indexes.predicates(300, 200, 40)
    for label in ("SCI-BV(DT)", "LCI"):
        index = ibm04_indexes.make(label, x, y, 200, 8)
        pieces = ibm04_storage._pieces(index.shape, (y - x).astype(np.int64))
        assert index._lists.meta[0] == pieces


def test_table2_of_vldb08(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = Sheet("vldb08", tmp_path, quiet, quick=True)
    vldb08.table2(sheet)
    by_id = {c.id: c for c in sheet.claims}
    assert by_id["table2-ir"].verdict == "holds"
    assert (tmp_path / "table2.csv").read_text().count("\n") == 21
