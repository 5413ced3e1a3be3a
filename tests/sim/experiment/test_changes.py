"""Settings beside an experiment: sections merge, lists sweep, another method drops the options of the old one."""

from __future__ import annotations

import itertools
import shlex
from typing import Any

import pytest

import sim
from coverlay import CoverlayError
from sim.experiment.kinds import OPTIONS, options_by_kind, takes_list
from sim.experiment.plan import load, parse_setting, plan
from sim.experiment.sweep import Failure
from sim.experiment.toml_text import to_toml

OWN: dict[str, Any] = {
    "name": "own",
    "overlay": {"kind": "line", "brokers": 3, "latency": {"kind": "uniform", "low": 2.0, "high": 3.0}},
    "workload": {"kind": "zipf", "skew": 1.2, "attributes": 1, "subscriptions": 10, "events": 5},
    "covering": {"method": "budget", "budget": 64},
    "broker": {"service": {"kind": "work", "profile": "disk"}},
}
LISTS = (
    ("seeds", [1, 2]),
    ("notes", ["a", "b"]),
    ("covering.epsilon_per_level", [0.1, 0.2]),
    ("faults.window", [0.1, 0.2]),
    ("overlay.map.latitude", [36, 62]),
    ("schema.issue.categories", ["IBM", "SAP"]),
)


def points(made):
    return [run.point for run in made.runs if run.seed == made.runs[0].seed]


def parameters(made):
    (run,) = made.runs
    return run.experiment.parameters()


# ── sections merge, tables replace ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("settings", [{"workload": {"subscriptions": 70}}, {"workload.subscriptions": 70}])
def test_a_section_keeps_its_other_keys(settings):
    before, after = load("demo"), sim.load("demo", settings)
    assert len(after.runs) == len(before.runs)
    for one, other in zip(before.runs, after.runs, strict=True):
        changed = one.experiment.workload.model_copy(update={"subscriptions": 70})
        assert other.experiment.workload == changed
        assert other.experiment.overlay == one.experiment.overlay


def test_the_command_line_merges_a_section_too():
    key, value = parse_setting("workload={subscriptions=70}")
    assert sim.load("demo", {key: value}).runs == sim.load("demo", {"workload.subscriptions": 70}).runs


def test_tables_that_are_values_are_replaced():
    constant = {"kind": "constant", "value": 5.0}
    for settings in ({"overlay": {"latency": constant}}, {"overlay.latency": constant}):
        found = parameters(plan(OWN, settings=settings))["overlay"]
        assert found["latency"] == constant
        assert found["brokers"] == 3
    served = parameters(plan(OWN, settings={"broker": {"service": {"kind": "constant", "value": 1.0}}}))
    assert served["broker"]["service"] == {"kind": "constant", "value": 1.0}


def test_sweep_and_case_are_replaced():
    data = {**OWN, "sweep": {"overlay.brokers": [2, 3]}, "case": [{"workload.events": 1}]}
    assert points(plan(data, settings={"sweep": {"workload.events": [2, 3]}, "case": [{}]})) == [
        {"workload.events": 2},
        {"workload.events": 3},
    ]


# ── another method drops the options of the old one ────────────────────────────────────────────────────────

OTHER_KINDS = [
    ({"covering": {"method": "scan"}}, ["covering.budget"]),
    ({"covering.method": "kdtree", "covering.node_budget": 9}, ["covering.budget"]),
    ({"workload.kind": "uniform"}, ["workload.skew"]),
    ({"overlay.latency.kind": "constant"}, ["overlay.latency.high", "overlay.latency.low"]),
    ({"broker.service.kind": "constant", "broker.service.value": 1.0}, ["broker.service.profile"]),
    ({"matching.method": "scan"}, ["matching.cells"]),
]


@pytest.mark.parametrize(("settings", "dropped"), OTHER_KINDS)
def test_another_kind_drops_the_options_of_the_old_one_and_says_so(settings, dropped):
    made = plan({**OWN, "matching": {"method": "sci", "cells": 9}}, settings=settings)
    assert [note.partition(" is left out: ")[0] for note in made.notes] == dropped
    assert all(note.endswith("has no such option") for note in made.notes)
    assert plan(made.data).runs == made.runs


def test_a_file_drops_the_options_of_what_it_replaces(tmp_path):
    (tmp_path / "o.edges").write_text("a b 1\nb c 1\n")
    (tmp_path / "s.csv").write_text("a_lo,a_hi\n1,5\n")
    overlay = {"kind": "barabasi-albert", "brokers": 9, "links": 2}
    files = {"overlay": {"file": str(tmp_path / "o.edges")}, "workload.subscriptions_file": str(tmp_path / "s.csv")}
    made = plan({**OWN, "overlay": overlay}, settings=files)
    assert "overlay.links is left out: overlay.file is set" in made.notes
    assert "workload.skew is left out: workload.subscriptions_file is set" in made.notes
    assert [run.run_id for run in plan(made.data).runs] == [run.run_id for run in made.runs]


def test_the_options_of_the_old_method_are_dropped_from_sweeps_and_cases_too():
    whole = [{"method": "auto"}, {"method": "budget", "budget": 8}]
    case = {"workload.events": 3, "covering.method": "budget", "covering.budget": 4}
    for data in ({"sweep": {"covering": whole}}, {"case": [case]}, {"sweep": {"covering.budget": [1, 2]}}):
        made = plan({**OWN, **data}, settings={"covering.method": "scan"})
        assert {run.experiment.covering.method for run in made.runs} == {"scan"}
        assert len(made.runs) == 1
        assert "covering.budget is left out: covering.method = 'scan' has no such option" in made.notes


def test_where_methods_are_swept_each_has_its_own_options():
    made = plan(OWN, settings={"covering.method": ["scan", "budget"]})
    assert [run.experiment.covering.options for run in made.runs] == [{}, {"budget": 64}]
    assert "covering.budget has no effect in 1 of 2 points: covering.method = 'scan' has no such option" in made.notes
    with pytest.raises(CoverlayError, match=r"covering\.budget = 64 has no effect: .* 'scan' has no such option"):
        plan({**OWN, "sweep": {"covering.method": ["scan", "packed"]}})


def test_an_option_that_is_asked_for_with_a_method_that_has_none_is_refused():
    with pytest.raises(CoverlayError, match="scan has no option 'budget'"):
        plan(OWN, settings={"covering.method": "scan", "covering.budget": 3})
    with pytest.raises(CoverlayError, match="has no option 'budgte'"):
        plan({**OWN, "covering": {"budgte": 3}}, settings={"covering.method": "scan"})


# ── lists ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_on_a_swept_key_replaces_its_values():
    made = load("scale", ["workload.subscriptions=[1500, 15000]"])
    assert points(made) == [{"workload.subscriptions": 1500}, {"workload.subscriptions": 15000}]
    assert "set, so swept: workload.subscriptions = [1500, 15000]; this leaves 2 points" in made.notes


def test_a_list_on_another_key_sweeps_it_whatever_cases_and_their_sweeps_have():
    case = {"overlay.brokers": 5, "routing.strategy": "simple", "sweep": {"workload.events": [1, 2]}}
    data = {**OWN, "covering": {}, "case": [case], "sweep": {"workload.events": [7, 8], "workload.attributes": [1, 2]}}
    made = plan(data, settings={"overlay.brokers": [2, 3], "workload.events": [4], "seeds": [1]})
    assert list(made.data["sweep"]) == ["workload.events", "workload.attributes", "overlay.brokers"]
    found = {(p["workload.events"], p["workload.attributes"], p["overlay.brokers"]) for p in points(made)}
    assert found == {(4, attributes, brokers) for attributes in (1, 2) for brokers in (2, 3)}
    assert plan(made.data).runs == made.runs


def test_a_section_and_a_key_of_a_swept_section_can_be_listed():
    sections = [{"method": "zorder"}, {"method": "kdtree", "epsilon": 0.3}]
    made = plan({**OWN, "sweep": {"covering": sections}}, settings={"covering.epsilon": [0.1, 0.2]})
    assert [(p["covering.method"], p["covering.epsilon"]) for p in points(made)] == [
        *(("zorder", epsilon) for epsilon in (0.1, 0.2)),
        *(("kdtree", epsilon) for epsilon in (0.1, 0.2)),
    ]
    made = plan(OWN, settings={"covering": [{"method": "auto"}, {"method": "budget", "budget": 8}]})
    assert [run.experiment.covering.options for run in made.runs] == [{}, {"budget": 8}]


@pytest.mark.parametrize(("key", "value"), LISTS)
def test_a_key_that_takes_a_list_gets_it_and_is_swept_by_a_list_of_lists(key, value):
    assert takes_list(key, value, {})
    assert takes_list(key, [value, value], {}) == key.startswith("schema.")


@pytest.mark.parametrize(("kind", "value", "whole"), [("uniform", [0.1, 0.2], True), ("zipf", [0.1, 0.2], False)])
def test_what_an_option_takes_depends_on_the_kind(kind, value, whole):
    made = plan(OWN, settings={"workload": {"kind": kind, "width": value}})
    assert len(made.runs) == (1 if whole else 2)
    assert len(plan(OWN, settings={"workload": {"kind": "uniform", "width": ["narrow", "wide"]}}).runs) == 2


def test_an_empty_list_and_an_unknown_key_are_refused():
    with pytest.raises(CoverlayError, match="at least one value"):
        plan(OWN, settings={"workload.subscriptions": []})
    with pytest.raises(CoverlayError, match=r"no option 'subscription'.*did you mean 'subscriptions'"):
        plan(OWN, settings={"workload.subscription": [1, 2]})
    for key, said in (("seeds", "whole number"), ("name", "text")):
        with pytest.raises(CoverlayError, match=said):
            plan(OWN, settings={key: ["a"]})


@pytest.mark.parametrize("section", OPTIONS)
def test_the_options_of_kinds_are_those_that_the_experiment_accepts(section):
    if section in ("overlay.map", "broker.service", "overlay.latency"):
        return  # tables, which their own models check
    known = options_by_kind(section)
    model = {"overlay": {"brokers": 4}, "workload": {"attributes": 20, "subscriptions": 0, "events": 0}}
    chooser = {"covering": "method", "routing": "strategy"}.get(section, "kind")
    for kind in known:
        with pytest.raises(CoverlayError, match="has no option 'odd'; its options are:") as refused:
            plan({"name": "x", section: {**model.get(section, {}), chooser: kind, "odd": 1}})
        listed = str(refused.value).partition("its options are: ")[2].partition(";")[0].split(", ")
        assert set(listed) - {"none"} == known[kind], kind


# ── the command that repeats one run ───────────────────────────────────────────────────────────────────────

REPEATED: list[list[str]] = [
    ["workload.subscriptions=[3, 4]", "covering.epsilon=0.1"],
    ["covering={ method = 'kdtree', epsilon = 0.1, node_budget = 9 }"],
    ["covering.method=['scan', 'kdtree']", "covering={ epsilon = [0.0, 0.1] }", "overlay.latency.kind=constant"],
]


@pytest.mark.parametrize("settings", REPEATED)
def test_the_command_that_repeats_a_run_gives_that_run_whatever_was_set(settings, tmp_path):
    file = tmp_path / "mine.toml"
    case = {"routing.strategy": "simple"}
    sweep = {"overlay.brokers": [2, 3]}
    file.write_text(to_toml({**OWN, "covering": {"method": "zorder"}, "sweep": sweep, "case": [{}, case]}))
    for run in load(str(file), settings).runs:
        words = shlex.split(Failure(run, "", True).repeat_command(str(file), settings))
        chosen = [word for before, word in itertools.pairwise(words) if before == "--set"]
        assert [again.run_id for again in load(str(file), chosen).runs] == [run.run_id]


def test_a_run_of_a_case_that_sets_nothing_is_repeated_alone(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(to_toml({**OWN, "case": [{}, {"routing.strategy": "simple"}]}))
    first = load(str(file)).runs[0]
    words = shlex.split(Failure(first, "", True).repeat_command(str(file)))
    chosen = [word for before, word in itertools.pairwise(words) if before == "--set"]
    assert [again.run_id for again in load(str(file), chosen).runs] == [first.run_id]
