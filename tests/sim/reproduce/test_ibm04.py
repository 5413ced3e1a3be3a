"""Verdicts of the ibm04 reproduction that need no timing: storage, by both accounts."""

from __future__ import annotations

import numpy as np
import pytest

from sim.reproduce.ibm04_indexes import MODERATE, make, predicates
from sim.reproduce.ibm04_storage import _crossing, figure5, storage_claims
from sim.reproduce.rules import ACCOUNTED, ALLOCATED
from sim.reproduce.series import Swept
from sim.reproduce.sheet import Sheet

SIZES = (1_000.0, 64_000.0, 1_024_000.0)


def test_sizes_cross_between_two_points():
    series = {"a": {1.0: 1.0, 2.0: 2.0, 4.0: 8.0}, "b": {1.0: 3.0, 2.0: 3.0, 4.0: 3.0}}
    assert _crossing(series, "a", "b") == pytest.approx(2.0 + 2.0 / 6.0)
    assert _crossing(series, "b", "a") == np.inf, "it is ahead from the start, and falls behind"


def test_storage_is_judged_by_both_accounts(tmp_path):
    def account(islists):
        flat = {"LCI": 24.0, "LCI-BC": 1.0, "LCI-BV": 0.2, "LCI-BV(DT)": 0.2}
        series = {label: dict.fromkeys(SIZES, mb) for label, mb in flat.items()}
        return {
            **series,
            "Dlist": {n: n / 1_300 for n in SIZES},
            "IS-lists": {n: islists + n / 5_500 for n in SIZES},
        }

    sheet = Sheet("ibm04", tmp_path, lambda _: None, seeds=1)
    sizes = Swept({ACCOUNTED: [account(0.0)], ALLOCATED: [account(1.0)]})
    storage_claims(sheet, sizes, sizes, SIZES)
    figure5(sheet)
    judged = {claim.id: claim for claim in sheet.claims}
    assert judged["fig7-moderate"].verdict == "does not hold"
    assert judged["fig7-moderate"].disagrees == [ALLOCATED]
    assert judged["fig7-dlist"].verdict == judged["fig7-islists"].verdict == judged["fig5-crossing"].verdict == "holds"
    assert judged["summary-storage"].verdict == "holds"


def test_islists_allocate_more_edges_than_they_use():
    index = make("IS-lists", *predicates(500, MODERATE, 1), MODERATE)
    assert index.allocated_bytes > index.nbytes
