"""The file of bounds that a sweep over ε leaves beside its traces."""

from __future__ import annotations

import json

import pytest

from covering.curve import theory
from sim.experiment.plan import load
from sim.reproduce.theory_bounds import bounds, regions, write_bounds


@pytest.fixture
def plan():
    return load("epsilon", ["workload.subscriptions=50"])


def test_a_family_per_workload(plan, tmp_path):
    write_bounds(plan, tmp_path)
    entries = json.loads((tmp_path / "bounds.json").read_text())
    assert len(entries) == 19
    assert len({entry["family"] for entry in entries}) == 19
    assert {entry["dimensions"] for entry in entries} == {2, 4, 6, 8}
    for entry in entries:
        assert set(entry["upper"]) == set(entry["greedy"]) == {"0.001", "0.01", "0.05", "0.1", "0.2", "0.3", "0.5"}
        counts = [entry["greedy"][epsilon] for epsilon in sorted(entry["greedy"], key=float)]
        assert counts == sorted(counts, reverse=True)  # a larger ε never asks for more
        assert counts[0] <= entry["exact_cubes"]
        assert entry["exact_runs"] <= entry["exact_cubes"]
        assert all(entry["greedy"][e] <= entry["upper"][e] for e in entry["upper"])


def test_nothing_where_epsilon_is_not_swept(tmp_path):
    write_bounds(load("strategies", ["workload.subscriptions=50"]), tmp_path)
    assert not (tmp_path / "bounds.json").exists()


def test_the_closed_forms_of_one_region_by_hand(plan):
    run = next(run for run in plan.runs if run.experiment.workload.attributes == 1)
    sides, bits = regions(run.experiment, run.seed)
    assert len(sides) == 50
    found = bounds(run.experiment, run.seed, [0.0, 0.1])
    assert found["exact_runs"] == pytest.approx(sum(theory.runs(s, bits) for s in sides) / 50)
    lower = [(2 ** (theory.aspect_ratio(s) - 1) * min(s)) for s in sides]  # D = 2
    assert found["exact_lower"] == pytest.approx(sum(lower) / 50)
