"""Shipped experiments run; sweeps expand, resume, and survive a run that fails; the command line ends to end."""

from __future__ import annotations

import json
import shutil
import tomllib
from functools import cache

import pytest

from broker.trace.schema import MUST_BE_ZERO
from coverlay import CoverlayError, __version__
from sim.cli import verbs
from sim.cli.main import main
from sim.experiment import oracle, runner
from sim.experiment.plan import Plan, load, parse_setting, plan, shipped
from sim.experiment.runner import simulate
from sim.experiment.sweep import SweepOptions, left_of, run_sweep
from sim.experiment.toml_text import to_toml

SMALL = ["workload.subscriptions=25", "workload.events=10", "overlay.brokers=7", "seeds=[1]"]
TINY = {
    "name": "tiny",
    "overlay": {"kind": "line", "brokers": 3},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 10, "events": 5},
}


@cache
def small(name: str) -> Plan:
    """A shipped experiment on the reference engine; tests/sim/compiled holds the other one against it."""
    own = load(name).runs[0].experiment.overlay.file is not None  # it has as many brokers as it has
    return load(name, [*(s for s in SMALL if not (own and s.startswith("overlay"))), 'run.engine="simpy"'])


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_experiment_runs_small_and_loses_nothing(name):
    runs = small(name).runs
    step = max(1, len(runs) // 8)  # a spread of the points; all of them take minutes
    for run in runs[::step]:
        tables, _ = simulate(run)
        record = tables["run"].to_pylist()[0]
        assert not any(record[name] for name in MUST_BE_ZERO), run.point


def test_cases_and_sweep_are_crossed_and_settings_win():
    data = {**TINY, "seeds": [1, 2], "case": [{"routing.strategy": "simple"}, {"routing.strategy": "covering"}]}
    runs = plan({**data, "sweep": {"overlay.brokers": [2, 3, 4]}}).runs
    assert len(runs) == 2 * 3 * 2
    assert len({run.run_id for run in runs}) == len(runs)
    assert {run.experiment.overlay.brokers for run in runs} == {2, 3, 4}


def test_a_case_may_have_a_sweep_of_its_own_whose_keys_win():
    small = {"overlay.brokers": 2, "sweep": {"covering": [{"method": "scan"}, {"method": "packed"}]}}
    data = {**TINY, "notes": ["what is left out"], "case": [small, {"overlay.brokers": 4}]}
    data["sweep"] = {"covering": [{"method": "kdtree"}], "workload.attributes": [1, 2]}
    found = plan(data)
    chosen = [(r.experiment.overlay.brokers, r.experiment.covering.method) for r in found.runs]
    assert chosen == [(2, "scan"), (2, "scan"), (2, "packed"), (2, "packed"), (4, "kdtree"), (4, "kdtree")]
    assert found.notes == ("what is left out",)
    assert plan(tomllib.loads(to_toml(found.data))).runs == found.runs
    fixed = plan(data, settings={"covering.method": "auto", "workload.attributes": 3})
    assert [run.experiment.covering.method for run in fixed.runs] == ["auto", "auto"]
    assert {run.experiment.workload.attributes for run in fixed.runs} == {3}
    for wrong in ({"covering": []}, "many", {"seeds": [1]}):
        with pytest.raises(CoverlayError, match=r"\[sweep\] takes key|cannot be swept"):
            plan({**TINY, "case": [{"sweep": wrong}]})


def test_a_shipped_graph_is_used_by_its_name_unless_there_is_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("[overlay]\nfile = 'topologies/aarnet.gml'\n")
    brought = shipped()["failover"].parent / "topologies"
    for name, settings, graph in (
        ("mine.toml", {}, "aarnet.gml"),
        ("failover", {"overlay.file": "topologies/abilene.gml"}, "abilene.gml"),
    ):
        assert {run.experiment.overlay.file for run in load(name, settings).runs} == {str(brought / graph)}
    own = tmp_path / "topologies" / "aarnet.gml"
    own.parent.mkdir()
    own.write_text((brought / "abilene.gml").read_text())
    (run,) = load("mine.toml").runs
    assert run.experiment.overlay.file == str(own)


def test_runs_go_seed_by_seed_and_what_is_left_is_told(tmp_path):
    sweep = plan({**TINY, "seeds": [2, 1], "sweep": {"overlay.brokers": [2, 3]}})
    seeds = [outcome.record["seed"] for outcome in run_sweep(sweep, tmp_path).outcomes]
    assert seeds == [2, 2, 1, 1]
    assert left_of(tmp_path) == ()
    shutil.rmtree(tmp_path / "runs" / f"run={sweep.runs[1].run_id}")
    assert left_of(tmp_path) == ("1 of 4 runs of this experiment were not run: 1 of 2 of seed 1",)
    (tmp_path / "runs" / "run=of-an-earlier-version").mkdir()
    assert left_of(tmp_path) == ()
    assert left_of(tmp_path / "nowhere") == ()


def test_a_swept_section_is_its_keys_one_by_one():
    sections = [{"method": "auto"}, {"method": "budget", "budget": 8}]
    runs = plan({**TINY, "covering": {"recall": True}, "sweep": {"covering": sections}}).runs
    assert [run.point for run in runs] == [
        {"covering.method": "auto"},
        {"covering.method": "budget", "covering.budget": 8},
    ]
    assert runs[1].experiment.covering.options == {"budget": 8}
    same = plan({**TINY, "covering": {"recall": True}, "case": [run.point for run in runs]}).runs
    assert [run.run_id for run in same] == [run.run_id for run in runs]


def test_a_run_keeps_its_name_when_the_sweep_grows():
    few = {run.run_id for run in plan({**TINY, "sweep": {"overlay.brokers": [2, 3]}}).runs}
    more = {run.run_id for run in plan({**TINY, "sweep": {"overlay.brokers": [1, 2, 3, 4]}}).runs}
    assert few < more


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_written_experiment_file_says_the_same(name):
    data = small(name).data
    assert tomllib.loads(to_toml(data)) == data


def test_common_random_numbers_across_a_swept_value():
    runs = plan({**TINY, "sweep": {"routing.strategy": ["simple", "flooding"]}}).runs
    events = [simulate(run)[0]["deliveries"].to_pandas().sort_values(["event", "subscription"]) for run in runs]
    columns = ["event", "subscription", "broker"]
    assert events[0][columns].to_numpy().tolist() == events[1][columns].to_numpy().tolist()


def test_resume_repeats_only_what_is_missing_and_gives_the_same(tmp_path):
    sweep = plan({**TINY, "seeds": [1, 2, 3]})
    first = run_sweep(sweep, tmp_path)
    hashes = {o.run_id: o.record["trace_hash"] for o in first.outcomes}
    lost = sorted(hashes)[1]
    shutil.rmtree(tmp_path / "runs" / f"run={lost}")
    again = run_sweep(sweep, tmp_path, SweepOptions(resume=True))
    assert again.kept == 2
    assert {o.run_id: o.record["trace_hash"] for o in again.outcomes} == {lost: hashes[lost]}


def test_a_resumed_sweep_says_which_version_made_what_it_keeps(tmp_path, monkeypatch, capsys):
    sweep = plan({**TINY, "seeds": [1, 2]})
    monkeypatch.setattr(runner, "__version__", "0.0.7")
    run_sweep(plan({**TINY, "seeds": [1]}), tmp_path)
    monkeypatch.undo()
    run_sweep(sweep, tmp_path, SweepOptions(resume=True))
    again = run_sweep(sweep, tmp_path, SweepOptions(resume=True))
    assert again.kept_by == {"0.0.7": 1, __version__: 1}
    assert any(f"(1 by 0.0.7; this is {__version__})" in note for note in again.warnings)
    verbs._say_what_ran(again, 0.0, tmp_path)
    assert f"2 kept from before (made by coverlay 0.0.7 and {__version__})" in capsys.readouterr().out
    assert not any("other versions" in note for note in run_sweep(sweep, tmp_path).warnings)


def test_a_broken_guarantee_is_not_forgotten_by_resuming(tmp_path, monkeypatch):
    sweep = plan(TINY)
    monkeypatch.setattr(runner.oracle, "judge", lambda *given: oracle.Verdict(missed=3))
    assert [o.broken for o in run_sweep(sweep, tmp_path).wrong] == ["missed 3"]
    monkeypatch.undo()
    again = run_sweep(sweep, tmp_path, SweepOptions(resume=True))
    assert (again.kept, [o.broken for o in again.wrong]) == (1, ["missed 3"])


@pytest.mark.parametrize("setting", ["overlay.brokers=5", 'sweep."overlay.brokers"=[5]'])
def test_a_sweep_that_is_no_table_is_refused_whatever_else_is_set(setting):
    with pytest.raises(CoverlayError, match="sweep"):
        plan({**TINY, "sweep": 3}, settings=dict([parse_setting(setting)]))


def test_two_jobs_give_the_same_runs_as_one(tmp_path):
    sweep = plan({**TINY, "seeds": [1, 2, 3, 4]})
    one, two = (run_sweep(sweep, tmp_path / str(jobs), SweepOptions(jobs=jobs)) for jobs in (1, 2))
    assert {o.run_id: o.record["trace_hash"] for o in one.outcomes} == {
        o.run_id: o.record["trace_hash"] for o in two.outcomes
    }


def test_a_failing_run_does_not_take_the_sweep_down(tmp_path):
    sweep = plan({**TINY, "routing": {"strategy": "hierarchical"}, "sweep": {"routing.root": [0, 9]}})
    result = run_sweep(sweep, tmp_path)
    assert len(result.outcomes) == len(result.failures) == 1
    assert "routing.root is 9" in str(result.failures[0])


def test_runs_of_another_experiment_are_not_mixed_in(tmp_path):
    run_sweep(plan(TINY), tmp_path)
    with pytest.raises(CoverlayError, match="another experiment"):
        run_sweep(plan({**TINY, "overlay": {"kind": "star", "brokers": 3}}), tmp_path)


def test_a_folder_that_another_experiment_left_without_runs_is_taken_over_and_that_is_said(tmp_path):
    assert run_sweep(plan(TINY), tmp_path).replaced == ""
    assert run_sweep(plan(TINY), tmp_path).replaced == ""
    shutil.rmtree(tmp_path / "runs")
    (told,) = run_sweep(plan({**TINY, "overlay": {"kind": "star", "brokers": 3}}), tmp_path).warnings
    assert "was the folder of another experiment" in told
    assert told.endswith("which has no runs there: it is now the folder of this one")


@pytest.mark.parametrize("what", ["topologies", "strategies", "covering", "matchers", "workloads", "experiments"])
def test_list(what, capsys):
    assert main(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{what}:"
    assert len(lines) > 3


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, small, through the real command line and Spark."""
    out = tmp_path_factory.mktemp("demo")
    arguments = [word for setting in SMALL[:2] for word in ("--set", setting)]
    assert main(["demo", "--out", str(out), "--jobs", "1", "--set", "seeds=[1, 2]", *arguments]) == 0
    return out


@pytest.mark.spark
def test_demo_ends_in_a_table_and_a_report(demo, capsys):
    assert main(["analyze", str(demo)]) == 0
    table = capsys.readouterr().out
    assert table.count("covering") >= 4
    assert main(["report", str(demo)]) == 0
    capsys.readouterr()
    assert main(["report", str(demo), "--keeps", "0.5"]) == 2
    assert "--keeps has no effect" in capsys.readouterr().err
    page = (demo / "report.html").read_text()
    assert "What do covering and an approximate search for covers save" in page


@pytest.mark.spark
def test_exact_covering_needs_no_more_entries_than_any_epsilon_and_none_more_than_simple(demo):
    import pandas as pd

    frame = pd.read_parquet(demo / "results" / "run_metrics.parquet")
    points = frame["point"].map(json.loads)
    frame["strategy"] = points.map(lambda point: point["routing.strategy"])
    frame["epsilon"] = points.map(lambda point: point.get("covering.epsilon", 0.0))
    other_mode = points.map(lambda point: point.get("routing.mode") == "prune")
    budget = points.map(lambda point: point.get("covering.method") == "budget")
    mean = frame[~other_mode & ~budget].groupby(["strategy", "epsilon"])["entries"].mean()
    # Where searching takes time another search is another order of messages, and with it a few entries more or less.
    assert all(mean["covering", 0.0] <= 1.03 * size for size in mean["covering"])
    assert all(size <= mean["simple", 0.0] for size in mean["covering"])


@pytest.mark.spark
def test_pruning_has_the_messages_of_lazy_covering_and_smaller_tables(demo):
    import pandas as pd

    frame = pd.read_parquet(demo / "results" / "run_metrics.parquet")
    points = frame["point"].map(json.loads)
    frame["mode"] = points.map(lambda point: point.get("routing.mode", "lazy"))
    searched = points.map(lambda point: point.get("covering.method") == "auto")
    by = {mode: part.sort_values("seed") for mode, part in frame[searched].groupby("mode")}
    assert by["prune"]["control_messages"].tolist() == by["lazy"]["control_messages"].tolist()
    both = by["prune"]["entries"] + by["prune"]["pruned"]
    assert both.tolist() == by["lazy"]["entries"].tolist()
    assert (by["prune"]["pruned"] > 0).all()
    budget = points.map(lambda point: point.get("covering.method") == "budget")
    assert frame[budget]["epsilon"].isna().all(), "an ε of 0 does not make a budget exact"
    assert (frame[["missed", "duplicates"]] == 0).all(axis=None)


@pytest.mark.spark
def test_explain_tells_each_hop(demo, capsys):
    assert main(["explain", str(demo), "--event", "0"]) == 0
    assert "published at" in capsys.readouterr().out
    assert main(["explain", str(demo), "--event", "0", "--subscription", "3"]) == 0
    assert "subscription 3 lives at" in capsys.readouterr().out
    assert main(["explain", str(demo), "--event", "999"]) == 2
    assert "event 999 was not published" in capsys.readouterr().err
