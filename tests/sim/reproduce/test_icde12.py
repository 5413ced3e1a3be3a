"""The counted parts of the icde12 reproduction at a size that takes seconds; what is timed is too slow for here."""

from __future__ import annotations

from sim.reproduce import icde12, icde12_bouts, icde12_parts, icde12_topk
from sim.reproduce.icde12_ablations import VARIANTS, ablation, drift
from sim.reproduce.series import most_saved
from sim.reproduce.sheet import Sheet
from sim.workloads.begen import Begen, begen
from topk.sparse import METHODS


def test_every_ablation_has_a_row_per_variant():
    workload = begen(Begen(subscriptions=600, events=4, dimensions=40, match_probability=0.01))
    for variants in VARIANTS.values():
        rows = ablation(workload, variants)
        assert [row["variant"] for row in rows] == list(variants)
        assert all(float(row["entries, best"]) <= float(row["entries, all"]) for row in rows)


def test_published_trees_recycle_when_topics_drift():
    rows = drift(Begen(subscriptions=400, events=30, dimensions=40, match_probability=0.01), phases=3, window=10)
    assert [row["phase"] for row in rows] == [0, 1, 2]
    assert all(float(row[name]) > 0 for row in rows for name in ("recycling", "never", "built anew"))


def test_counted_parts_are_judged_and_drawn(tmp_path):
    sheet = Sheet("icde12", tmp_path, lambda _: None, quick=True)
    sheet.size = "small"
    icde12_parts.report(sheet, Begen(subscriptions=1500))
    judged = {claim.id: claim for claim in sheet.claims}
    assert set(judged) == {"chosen-alpha", "chosen-beta", "chosen-splitting", "memory-k-ind", "search-space"}
    assert judged["memory-k-ind"].verdict == "holds"
    for figure in (
        *(f"ablation-{name}" for name in VARIANTS),
        "ablation-bounds-author",
        "ablation-bounds-title",
        "drift",
    ):
        assert (tmp_path / f"{figure}.csv").exists()
        assert (tmp_path / f"{figure}.png").exists()


def test_claims_are_measured_on_the_published_structures(monkeypatch):
    assert {icde12_bouts.METHODS[name][0] for name in (icde12_bouts.KIND, icde12_bouts.STAR)} == {
        "k-index-paper",
        "be-star-paper",
    }
    workload = begen(Begen(subscriptions=300, events=5, dimensions=40, match_probability=0.01))
    monkeypatch.setattr(icde12_bouts, "WARM_UP", 1)
    made = icde12_bouts.bout(workload, tuple(icde12_bouts.METHODS), icde12_topk.TOP_K, match_probability=0.01, slots=32)
    assert {"BE*", "BE*(1)", "BE*(5)", "BE*, ours(1)", "k-ind(1)", "BE", "SCAN"} <= set(made.asks)
    answers = {name: ask(made.events[0]) for name, ask in made.asks.items() if "(" not in name}
    assert all(answer == answers["SCAN"] for answer in answers.values())
    assert "slots" not in METHODS["be-tree"].options


def test_the_clustered_maximum_leaves_the_unclustered_point_out():
    series = {icde12_bouts.BE: {2.0: 10.0, icde12._NONE: 100.0}, icde12_bouts.STAR: {2.0: 5.0, icde12._NONE: 1.0}}
    assert most_saved(icde12._without(series, icde12._NONE), icde12_bouts.BE, icde12_bouts.STAR) == 50.0
