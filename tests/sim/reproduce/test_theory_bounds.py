"""The file of bounds that a sweep over ε leaves beside its traces."""

from __future__ import annotations

import json

import pytest

from covering.curve import theory
from sim.experiment.plan import load
from sim.reproduce.theory_bounds import bounds, regions, storage_prices, write_bounds


@pytest.fixture
def plan():
    return load("epsilon", ["workload.subscriptions=50"])


def test_a_family_per_workload_and_the_prices_of_storage(plan, tmp_path):
    write_bounds(plan, tmp_path)
    found = json.loads((tmp_path / "bounds.json").read_text())
    entries = found["families"]
    assert len(entries) == 9
    assert len({entry["family"] for entry in entries}) == 9
    assert {entry["dimensions"] for entry in entries} == {2, 4, 6, 8, 12}
    for entry in entries:
        assert set(entry["upper"]) == set(entry["greedy"]) == {"0.01", "0.1", "0.3", "0.5"}
        counts = [entry["greedy"][epsilon] for epsilon in sorted(entry["greedy"], key=float)]
        assert counts == sorted(counts, reverse=True)  # a larger ε never asks for more
        assert counts[0] <= entry["exact_cubes"]
        assert entry["exact_runs"] <= entry["exact_cubes"]
        assert all(entry["greedy"][e] <= entry["upper"][e] for e in entry["upper"])
    assert found["profiles"] == {
        "xeon-vm-2026-11": {"page": 0.0, "round_trip": 0.0},
        "disk": {"page": 90.0, "round_trip": 0.0},
        "remote": {"page": 0.0, "round_trip": 500.0},
    }


def test_prices_are_those_beside_the_profile_of_the_runs():
    run = load("epsilon", {"broker.service.profile": "disk", "workload.subscriptions": 50}).runs[0]
    prices = storage_prices(run.experiment)
    assert list(prices) == ["disk", "remote", "xeon-vm-2026-11"]
    assert prices["remote"] == {"page": -90.0, "round_trip": 500.0}
    without = load("epsilon", {"broker.service": {"kind": "none"}, "workload.subscriptions": 50}).runs[0]
    assert storage_prices(without.experiment) == {}


def test_nothing_for_what_is_no_study(tmp_path):
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
