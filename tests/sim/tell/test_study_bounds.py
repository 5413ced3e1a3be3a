"""The file of bounds that a sweep over ε leaves beside its traces."""

from __future__ import annotations

import json

import pytest

from broker.work import DEFAULT, load_profile
from covering.curve import theory
from sim.experiment.plan import load
from sim.experiment.toml_text import to_toml
from sim.tell.study_bounds import bounds, prices_beside, regions, write_bounds, write_missing_bounds


@pytest.fixture
def plan():
    return load("epsilon", ["workload.subscriptions=50"])


def test_a_family_per_workload_and_the_prices_of_storage(plan, tmp_path):
    write_bounds(plan, tmp_path)
    found = json.loads((tmp_path / "bounds.json").read_text())
    families = found["families"]
    assert len({entry["family"] for entry in families}) == len(families) == 7, "those with searches on the curve"
    assert "(ours: 385 and 1)" in found["slides"]
    assert "(ours: 45.7, 57.1, 68.6, 91.4 %)" in found["slides"]
    given = {bits for entry in families for bits in entry["bounds"]}
    assert given == {"", "8", "16"}, "the slides' model, and searches that choose their bits"
    assert all(of["bits"] == int(bits) for entry in families for bits, of in entry["bounds"].items() if bits)
    entries = [entry["bounds"][""] for entry in families]
    assert {entry["dimensions"] for entry in entries} == {2, 4, 8}
    for entry in entries:
        assert set(entry["upper"]) == set(entry["greedy"]) == {"0.01", "0.1", "0.3"}
        counts = [entry["greedy"][epsilon] for epsilon in sorted(entry["greedy"], key=float)]
        assert counts == sorted(counts, reverse=True)  # a larger ε never asks for more
        assert counts[0] <= entry["exact_cubes"]
        assert entry["exact_runs"] <= entry["exact_cubes"]
        assert all(entry["greedy"][e] <= entry["upper"][e] for e in entry["upper"])
    storage = {name: (price["page"], price["round_trip"]) for name, price in found["profiles"].items()}
    assert storage == {DEFAULT: (0.0, 0.0), "disk": (90.0, 0.0)}
    for price in found["profiles"].values():
        assert price["covering"]["kdtree"]["probe"] == load_profile().covering["kdtree"]["probe"]


def test_the_profile_of_the_runs_comes_first(tmp_path):
    assert list(prices_beside("disk")) == ["disk", DEFAULT]
    assert prices_beside(None) == {}
    own = tmp_path / "mine.toml"
    own.write_text(f'base = "{DEFAULT}"\n[covering.scan]\ncheck = 7.0\nprobe = 1.0\ncovered = 1\ncovered_entry = 1\n')
    prices = prices_beside(str(own))
    assert list(prices) == [str(own), "disk"]
    assert all(price["covering"]["scan"] == {"check": 7.0, "probe": 1.0} for price in prices.values())


def test_a_sweep_that_was_cut_short_gets_its_bounds_from_its_experiment(plan, tmp_path):
    (tmp_path / "experiment.toml").write_text(to_toml(plan.data))
    write_missing_bounds(tmp_path)
    assert len(json.loads((tmp_path / "bounds.json").read_text())["families"]) == 7
    (tmp_path / "bounds.json").write_text("kept")
    write_missing_bounds(tmp_path)
    assert (tmp_path / "bounds.json").read_text() == "kept"
    write_missing_bounds(tmp_path / "nowhere")


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
