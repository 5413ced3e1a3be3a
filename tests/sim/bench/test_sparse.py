"""The sparse bench at a size that takes a second: every method and peer agrees, every aim gets its verdict."""

from __future__ import annotations

import pytest

from sim.bench import sparse as bench
from sim.bench.sparse_peers import PEERS


def quiet(message: str) -> None:
    """Progress that nobody reads."""


def test_rows_agree_and_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """That all give the same answers is asserted inside."""
    small = {"_EVENTS": 4, "_PLACED_EVENTS": 3, "_WARM_UP": 1, "_ROUNDS": 1, "_PEER_ROUNDS": 1, "_BATCH": 2}
    for name, value in small.items():
        monkeypatch.setattr(bench, name, value)
    rows = bench.expressions(400, quiet) + bench.with_places(500, quiet)
    methods = {str(row["method"]) for row in rows}
    assert {"scan (numba)", "pivot", "pivot, batch", "be-star", "be-tree", "k-index", "ri-tree", "tas"} <= methods
    assert methods & set(PEERS)
    verdicts = bench.verdicts(rows)
    assert len(verdicts) == sum(len(aim.sets) for aim in bench.AIMS) == 18
    assert {verdict["met"] for verdict in verdicts} == {None}  # asked at larger sizes
    assert all(list(verdict) == ["target", "asked", "measured", "met"] for verdict in verdicts)


@pytest.mark.parametrize(("ratio", "seconds", "met"), [(150.0, 5.0, True), (149.9, 5.01, False)])
def test_the_largest_size_decides(ratio: float, seconds: float, met: bool) -> None:
    row = {"data": "zipf", "events": bench.MATCHING, "method": "pivot", "bytes_per_subscription": 190}
    small = {**row, "subscriptions": 100, "times_scan": 1.0, "build_s": 100.0}
    large = {**row, "subscriptions": 1_000_000, "times_scan": ratio, "build_s": seconds}
    verdicts = {str(v["target"]).split(":")[0]: v for v in bench.verdicts([large, small])}
    assert verdicts["pivot against the scan"]["met"] is met
    assert verdicts["pivot is built"]["met"] is met
    assert verdicts["pivot is built"]["asked"] == "≤ 5 s at 1000000"
    assert verdicts["pivot, bytes per subscription beyond the catalogue"]["met"] is True
