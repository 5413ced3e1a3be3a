"""A small sweep that was simulated and aggregated, for tests that break what comes after."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.sweep import run_sweep

ANALYSED = {
    "name": "analysed",
    "seeds": [1, 2],
    "overlay": {"kind": "line", "brokers": 3},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 20, "events": 5},
}


@pytest.fixture(scope="session")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Do not change it: copy it."""
    out = tmp_path_factory.mktemp("analysed") / "out"
    run_sweep(plan(ANALYSED), out)
    assert main(["analyze", str(out)]) == 0
    return out
