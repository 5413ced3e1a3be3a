"""Settings are heard or named: what is set wins over the file, what has no effect is said, inputs count by content."""

from __future__ import annotations

import itertools
import re
import shlex
from typing import Any

import pytest

from coverlay import CoverlayError
from sim.cli.main import main
from sim.experiment.config import Experiment, parse
from sim.experiment.config_base import OpenSection
from sim.experiment.effects import NoEffect, idle
from sim.experiment.plan import load, plan
from sim.experiment.runner import simulate
from sim.experiment.sweep import Failure, SweepOptions, run_sweep

TINY: dict[str, Any] = {
    "name": "tiny",
    "overlay": {"kind": "line", "brokers": 3},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 10, "events": 5},
}
NETWORK = {"k": 3, "scope": "network"}
CURVE = {"covering.method": "zorder-emulated"}


def points(made):
    return [run.point for run in made.runs if run.seed == made.runs[0].seed]


# ── what is set wins ───────────────────────────────────────────────────────────────────────────────────────


def test_a_setting_wins_over_the_sweep_and_stays_a_column():
    made = load("scale", ["workload.subscriptions=1000000"])
    assert points(made) == [{"workload.subscriptions": 1_000_000}]
    assert made.runs[0].experiment.workload.subscriptions == 1_000_000
    assert any("workload.subscriptions = 1000000" in note for note in made.notes)


def test_a_setting_wins_over_cases_and_equal_points_collapse():
    made = load("strategies", ["routing.strategy=simple"])
    assert points(made) == [
        {"routing.strategy": "simple"},
        {"routing.strategy": "simple", "routing.advertisements": "covering"},
    ]
    assert any("routing.strategy = 'simple'" in note for note in made.notes)


def test_a_setting_wins_inside_and_around_a_swept_table():
    latencies = [{"kind": "uniform", "low": 1.0, "high": 2.0}, {"kind": "uniform", "low": 1.0, "high": 9.0}]
    data = {**TINY, "sweep": {"overlay.latency": latencies}}
    inside = plan(data, settings={"overlay.latency.high": 5.0})
    assert points(inside) == [{"overlay.latency": {"kind": "uniform", "low": 1.0, "high": 5.0}}]
    data = {**TINY, "sweep": {"overlay.latency.high": [2.0, 9.0]}}
    around = plan(data, settings={"overlay.latency": {"kind": "constant", "value": 3.0}})
    assert points(around) == [{}]
    assert around.runs[0].experiment.overlay.latency == {"kind": "constant", "value": 3.0}


def test_the_record_that_the_report_shows_has_the_notes(tmp_path):
    data = {**TINY, "sweep": {"routing.strategy": ["simple", "covering"]}}
    made = plan(data, settings={"routing.strategy": "simple"})
    run_sweep(made, tmp_path)
    (note,) = made.notes
    assert f"# note: {note}\n" in (tmp_path / "experiment.toml").read_text()
    assert [run.run_id for run in load(str(tmp_path / "experiment.toml")).runs] == [run.run_id for run in made.runs]


def test_what_is_written_for_the_record_gives_the_same_plan_again():
    made = load("strategies", ["routing.strategy=simple", "overlay.brokers=7"])
    assert [run.run_id for run in plan(made.data, settings={"seeds": [1, 2, 3]}).runs] == [r.run_id for r in made.runs]


# ── what has no effect is named ────────────────────────────────────────────────────────────────────────────

FILES = {"workload": {"subscriptions_file": "s.csv", "events_file": "e.csv"}}
TIMED = {"workload": {"subscriptions_file": "t.csv", "events_file": "e.csv"}}
# Key, a value that asks for something, and sections in which it has no effect.
WITHOUT_EFFECT: list[tuple[str, Any, dict[str, Any]]] = [
    ("overlay.kind", "star", {"overlay": {"file": "o.edges"}}),
    ("overlay.latency_attribute", "delay", {}),
    ("overlay.brokers", 9, {"overlay": {"file": "o.edges"}}),
    ("links.retransmit_after", 9.0, {}),
    ("broker.queue", 5, {}),
    ("broker.overflow", "shed", {"broker": {"service": {"kind": "constant", "value": 1.0}}}),
    ("workload.kind", "zipf", FILES),
    ("workload.attributes", 1, FILES),
    ("workload.time_unit", "s", {}),
    ("workload.repeat", 2, {}),
    ("workload.subscriptions", 5, FILES),
    ("workload.events", 5, FILES),
    ("workload.skew", 2.0, {"workload": {"kind": "begen", "attributes": 20, "subscriptions": 5, "events": 5}}),
    ("schema", {"a": {"kind": "continuous"}}, {}),
    ("arrivals.home_skew", 1.0, FILES),
    ("arrivals.publisher_skew", 1.0, FILES),
    ("arrivals.home_skew", 1.0, {"arrivals": {"attach": "interest"}}),
    ("arrivals.publisher_skew", 1.0, {"arrivals": {"attach": "interest"}}),
    ("arrivals.attach", "interest", FILES),
    ("arrivals.publish_rate", 2.0, FILES),
    ("arrivals.burst_factor", 3.0, {}),
    ("arrivals.burst_length", 9.0, {"arrivals": {"publishing": "poisson"}}),
    ("arrivals.kind", "churn", TIMED),
    ("arrivals.settle", 5.0, TIMED),
    ("arrivals", {"kind": "churn", "lifetime": 9.0}, TIMED),
    ("routing.mode", "active", {"routing": {"strategy": "identity"}}),
    ("routing.cover", "union", {"routing": {"strategy": "identity"}}),
    ("routing.failover", "replace", {}),
    ("routing.heartbeat", 50.0, {}),
    ("routing.detect_after", 500.0, {}),
    ("routing.rejoin", "never", {}),
    ("routing.hold_down", 9.0, {}),
    ("routing.rank", "cover", {"matching": {"k": 3}}),
    ("routing.visit", "best-first", {"routing": {"rank": "skyband"}, "matching": NETWORK}),
    ("routing.wave", 3, {"routing": {"rank": "cover", "visit": "best-first"}, "matching": NETWORK}),
    ("routing.threshold", False, {"matching": NETWORK}),
    ("matching.scope", "network", {}),
    ("covering.method", "scan", {"routing": {"rank": "skyband"}, "matching": NETWORK}),
    ("routing.root", 1, {}),
    ("routing.merge_waste", 0.1, {}),
    ("covering.method", "scan", {"routing": {"strategy": "simple"}}),
    ("covering.epsilon", 0.1, {}),
    ("covering.epsilon", 0.1, {"covering": {"method": "scan"}}),
    ("covering.epsilon", 0.1, {"covering": {"method": "poset"}}),
    ("covering.epsilon", 0.1, {"routing": {"strategy": "simple"}}),
    ("covering.epsilon", 0.1, {"covering": {"method": "zorder", "epsilon_per_level": [0.2]}}),
    ("covering.recall", False, {"covering": {"method": "zorder"}}),
    ("covering.finish", False, {"covering": {"method": "zorder", "epsilon": 0.1}}),
    ("covering.finish", False, {"covering": {"method": "hilbert", "epsilon_per_level": [0.1, 0.2]}}),
    ("covering.node_cap", 9, {"covering": {"method": "kdtree", "node_budget": 5}}),
    ("covering.epsilon_per_level", [0.1], {}),
    ("covering.epsilon_per_link", {"0-1": 0.1}, {}),
    ("covering", {"method": "zorder", "probe_cap": 5}, {"routing": {"strategy": "simple"}}),
    ("matching.metric", "degrees", {}),
    ("matching.max_distance", 2.0, {}),
    ("faults.crash_fraction", 0.1, {"faults": {"file": "f.csv"}}),
    ("faults.cut_fraction", 0.1, {"faults": {"file": "f.csv"}}),
    ("faults.downtime", 9.0, {}),
    ("faults.state", "kept", {"faults": {"cut_fraction": 0.5}}),
    ("faults.window", [0.0, 1.0], {}),
]


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "o.edges").write_text("a b 1\nb c 1\n")
    (tmp_path / "s.csv").write_text("a_lo,a_hi,broker\n1,5,0\n2,8,1\n")
    (tmp_path / "t.csv").write_text("a_lo,a_hi,time\n1,5,0\n2,8,1\n")
    (tmp_path / "e.csv").write_text("a,broker,time\n3,0,1\n7,1,2\n")
    (tmp_path / "f.csv").write_text("time,kind,broker\n1,crash,0\n")
    return tmp_path


def declared(model: Any = Experiment, prefix: str = "") -> set[str]:
    """Every key that is declared with what leaves it without effect; options as `section.*` or by name."""
    found = set()
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, parse.__globals__["Section"]):
            found |= declared(field.annotation, f"{name}.")
        elif any(isinstance(item, NoEffect) for item in field.metadata):
            found.add(prefix + (field.alias or name))
    if issubclass(model, OpenSection):
        found |= {f"{prefix}{option or '*'}" for option, effect in model.option_effects.items() if effect}
    return found


def test_every_declared_key_is_tried_below():
    tried = {key for key, _, _ in WITHOUT_EFFECT}
    assert {key for key in declared() if not key.endswith("*")} <= tried
    assert {"arrivals", "covering"} <= tried, "options of the sections that have some"


@pytest.mark.parametrize(("key", "value", "sections"), WITHOUT_EFFECT)
def test_a_setting_that_no_point_uses_is_an_error(key, value, sections, inputs):
    data = {name: section for name, section in TINY.items() if name not in sections}
    with pytest.raises(CoverlayError, match="has no effect") as refused:
        plan({**data, **sections}, settings={key: value}, folder=inputs)
    keys = [key] if "." in key or key == "schema" else [f"{key}.{option}" for option in value]
    assert all(f"{one} = " in str(refused.value) for one in keys)
    assert plan({**data, **sections}, folder=inputs).notes == ()


def test_it_is_as_wrong_in_the_file_and_in_the_sweep():
    for data in ({"covering": {"epsilon": 0.1}}, {"sweep": {"covering.epsilon": [0.0, 0.1]}}):
        with pytest.raises(CoverlayError, match=r"covering\.epsilon = 0\.1 has no effect.*'auto' takes no ε"):
            plan({**TINY, **data})


def test_where_some_point_uses_it_the_others_are_noted_and_run_once():
    sweep = {"routing.strategy": ["simple", "covering"], "covering.epsilon": [0.0, 0.1], "covering.method": ["zorder"]}
    made = plan({**TINY, "sweep": sweep})
    assert points(made) == [
        {"routing.strategy": "simple"},
        {"routing.strategy": "covering", "covering.epsilon": 0.0, "covering.method": "zorder"},
        {"routing.strategy": "covering", "covering.epsilon": 0.1, "covering.method": "zorder"},
    ]
    assert any(note.startswith("covering.epsilon has no effect in 1 of 4 points") for note in made.notes)
    assert made.runs[0].experiment.covering.epsilon == 0, "the record does not claim what did not happen"


def test_a_value_that_asks_for_nothing_misleads_nobody():
    data = {**TINY, "covering": {"epsilon": 0.0, "method": "scan"}, "routing": {"merge_waste": 0.0}}
    assert plan(data).notes == ()


def test_a_setting_may_leave_keys_of_the_file_without_effect():
    data = {**TINY, "covering": {"method": "zorder", "epsilon": 0.1}}
    made = plan(data, settings={"routing.strategy": "simple"})
    assert {note.split()[0] for note in made.notes} == {"covering.method", "covering.epsilon"}
    with pytest.raises(CoverlayError, match="has no effect"):
        plan({**data, "routing": {"strategy": "simple"}}, settings={"seeds": [1, 2]})


def test_a_run_keeps_its_name_whatever_was_given_without_effect():
    plain = plan({**TINY, "routing": {"strategy": "simple"}}).runs[0].run_id
    base = {**TINY, "routing": {"strategy": "simple"}, "covering": {"method": "zorder", "epsilon": 0.2}}
    run = plan(base, settings={"overlay.brokers": 3}).runs[0]
    assert run.ignored == ("covering.method", "covering.epsilon")
    assert run.run_id == plain


def test_the_command_that_repeats_a_run_gives_that_run(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[overlay]\nbrokers = 3\n[sweep]\n"routing.strategy" = ["simple", "covering"]\n')
    settings = ["covering.method=zorder", "covering.epsilon=0.1"]
    for run in load(str(file), settings).runs:
        words = shlex.split(Failure(run, "", True).repeat_command(str(file), settings))
        chosen = [word for before, word in itertools.pairwise(words) if before == "--set"]
        assert [again.run_id for again in load(str(file), chosen).runs] == [run.run_id]


def test_the_command_line_says_notes_before_it_runs(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text('[overlay]\nfile = "nowhere.gml"\n[sweep]\n"covering.epsilon" = [0.0, 0.1]\n')
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 2
    assert "covering.epsilon = 0.1 has no effect" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "said"), [("none", True), ("work", False)])
def test_that_latencies_contain_no_processing_is_said_before_simulating(kind, said, tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise CoverlayError("stopped before the first run")

    monkeypatch.setattr("sim.experiment.sweep.run_sweep", stop)
    file = tmp_path / "mine.toml"
    file.write_text(f'[broker]\nservice = {{ kind = "{kind}" }}\n')
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "stopped before the first run" in told
    assert ("latencies contain no processing" in told) == said


def test_overlays_with_latencies_of_different_origins_are_told(tmp_path):
    (tmp_path / "timed.edges").write_text("a b 2\nb c 3\n")
    (tmp_path / "bare.edges").write_text("a b\nb c\n")
    here = "".join(f"node [ id {i} Longitude {i}.5 Latitude 50.0 ]\n" for i in range(3))
    (tmp_path / "map.gml").write_text(f"graph [\n{here}edge [ source 0 target 1 ]\nedge [ source 1 target 2 ]\n]\n")
    files = ["timed.edges", "bare.edges", "map.gml"]
    data = {"name": "x", "sweep": {"overlay.file": files}}
    (note,) = plan(data, folder=tmp_path).notes
    assert "latencies of the overlays have different origins" in note
    for said in ("timed.edges: those in the file", "bare.edges: 1 ms per link, the default", "map.gml: its kilometres"):
        assert said in note
    alike = {"kind": "constant", "value": 2.0}
    assert plan({**data, "overlay": {"latency": alike}}, folder=tmp_path).notes == ()
    assert plan({"name": "x", "sweep": {"overlay.file": files[:1]}}, folder=tmp_path).notes == ()
    mixed = plan({"name": "x", "case": [{"overlay.file": "map.gml"}, {"overlay.kind": "star"}]}, folder=tmp_path)
    assert "generated (star): drawn from 1 to 10 ms, the default" in mixed.notes[0]


# ── input files count by content ───────────────────────────────────────────────────────────────────────────

MINE = '[overlay]\nfile = "o.edges"\n[workload]\nsubscriptions_file = "s.csv"\nevents_file = "e.csv"\n'


@pytest.fixture
def mine(inputs):
    file = inputs / "mine.toml"
    file.write_text(MINE)
    return file


@pytest.mark.parametrize("name", ["o.edges", "s.csv", "e.csv"])
def test_a_changed_input_file_is_another_run(name, mine, tmp_path):
    before = load(str(mine))
    run_sweep(before, tmp_path / "out")
    (record,) = simulate(before.runs[0])[0]["run"].to_pylist()
    assert set(before.runs[0].inputs) == {"overlay.file", "workload.subscriptions_file", "workload.events_file"}
    assert all(digest in record["inputs"] for digest in before.runs[0].inputs.values())
    assert run_sweep(load(str(mine)), tmp_path / "out", SweepOptions(resume=True)).kept == 1
    file = mine.parent / name
    file.write_text(file.read_text().replace("1", "2"))
    after = load(str(mine))
    assert after.runs[0].run_id != before.runs[0].run_id
    with pytest.raises(CoverlayError, match="input files as they were before"):
        run_sweep(after, tmp_path / "out", SweepOptions(resume=True))
    with pytest.raises(CoverlayError, match="changed after the sweep began"):
        simulate(before.runs[0])


def test_a_run_keeps_its_name_where_its_files_are_moved(mine, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in mine.parent.glob("*.*"):
        (moved / file.name).write_bytes(file.read_bytes())
    assert load(str(moved / "mine.toml")).runs[0].run_id == load(str(mine)).runs[0].run_id


def test_files_of_sweeps_and_cases_lie_beside_the_experiment(mine):
    mine.write_text(MINE + '[sweep]\n"overlay.file" = ["o.edges"]\n[[case]]\n"faults.file" = "f.csv"\n')
    (run,) = load(str(mine)).runs
    assert run.point == {"faults.file": str(mine.parent / "f.csv"), "overlay.file": str(mine.parent / "o.edges")}


@pytest.mark.parametrize(
    ("name", "content", "mentions"),
    [
        ("bad.edges", "a b fast\n", "overlay.file"),
        ("bad.csv", "a_lo,a_hi,broker\n1,5,7\n", "bad.csv, line 2, column broker: there is no broker '7'"),
        ("bad.csv", "a_lo,a_hi\n1,1e309\n", "'1e309' is beyond the largest number"),
        ("bad.csv", "a_lo,a_hi\n9,1\n", "can never match"),
    ],
)
def test_mistakes_in_files_are_found_before_the_first_run(name, content, mentions, mine, tmp_path):
    (mine.parent / name).write_text(content)
    key, good = ("overlay.file", "o.edges") if name == "bad.edges" else ("workload.subscriptions_file", "s.csv")
    mine.write_text(MINE + f'[sweep]\n"{key}" = ["{good}", "{name}"]\n')
    with pytest.raises(CoverlayError, match=re.escape(mentions)):
        run_sweep(load(str(mine)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_fault_on_a_broker_that_is_not_there_is_found_before_the_first_run(tmp_path):
    (tmp_path / "f.csv").write_text("time,kind,broker\n1,crash,9\n")
    workload = {**TINY["workload"], "subscriptions": 10**9}  # none is generated to find it
    data = {**TINY, "workload": workload, "faults": {"file": str(tmp_path / "f.csv")}}
    with pytest.raises(CoverlayError, match="line 2, column broker: there is no broker '9'"):
        run_sweep(plan(data), tmp_path / "out")


def test_where_epsilon_is_varied_it_is_noted_that_bits_follow_the_entries():
    """Rows that are compared over ε are to have the same bits: never silently others."""

    def noted(method, epsilons, **options):
        data = {"covering": {"method": method, **options}, "sweep": {"covering.epsilon": epsilons}}
        return [note for note in plan(data).notes if "covering.bits gives all the same" in note]

    (note,) = noted("zorder-emulated", [0.0, 0.1])
    assert "zorder-emulated takes as many bits as its entries ask for" in note
    assert noted("zorder-emulated", [0.0, 0.1], bits=2) == noted("zorder", [0.1]) == noted("density", [0.0, 0.1]) == []


def test_what_is_odd_in_files_is_noted(mine):
    (mine.parent / "s.csv").write_text("a_lo,a_hi\n")
    (mine.parent / "f.csv").write_text("time,kind,broker\n1,crash,0\n99999,crash,0\n".replace("1,crash,0\n", "", 1))
    mine.write_text(MINE + '[faults]\nfile = "f.csv"\n')
    _, notes = simulate(load(str(mine)).runs[0])
    assert any("s.csv has column names but no rows: nobody subscribes" in note for note in notes)
    assert any("1 of 1 faults in" in note and "begin after the last action" in note for note in notes)


def test_defaults_are_not_given():
    assert idle(parse({"name": "empty"}, "here")) == []


def test_an_empty_file_is_an_experiment_of_defaults_and_says_so(tmp_path):
    (tmp_path / "empty.toml").write_text("# nothing yet\n")
    (note,) = load(str(tmp_path / "empty.toml"), {"overlay.brokers": 3}).notes
    assert "empty.toml is empty" in note


def test_a_file_is_beside_the_experiment_that_names_it_and_where_one_is_if_set(inputs, tmp_path, monkeypatch):
    """`coverlay run strategies --set overlay.file=mine.edges` is about the user's folder, not the installed package."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.edges").write_text("x y 1\n")
    (here / "own.toml").write_text('base = "disk"\n')
    monkeypatch.chdir(here)
    mine = str(here / "mine.edges")
    for key in ("overlay.file", "sweep.overlay.file"):
        value = "mine.edges" if key == "overlay.file" else ["mine.edges"]
        made = load("strategies", {key: value})
        assert {run.experiment.overlay.file for run in made.runs} == {mine}
    whole = load("strategies", {"broker.service": {"kind": "work", "profile": "own.toml"}})
    assert {run.experiment.broker.service.profile for run in whole.runs} == {str(here / "own.toml")}
    (inputs / "x.toml").write_text('[sweep]\noverlay = [{ file = "o.edges" }]\n')
    assert load(str(inputs / "x.toml")).runs[0].experiment.overlay.file == str(inputs / "o.edges")
    assert load(str(inputs / "x.toml"), {"overlay.file": "mine.edges"}).runs[0].experiment.overlay.file == mine


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_times_beyond_what_a_double_tells_apart_are_noted_and_beyond_all_numbers_refused(engine):
    """Epoch milliseconds leave a quarter of a microsecond; a run that ended at infinity had no latencies at all."""

    def told(**arrivals):
        data = {**TINY, "arrivals": arrivals, "run": {"engine": engine}}
        return [note for note in simulate(plan(data).runs[0])[1] if "latencies are precise only to" in note]

    assert told(settle=1.7e12)
    assert not told(settle=1e9)
    for far in ({"settle": 1e308, "publish_rate": 1e-308}, {"publish_rate": 1e-308}):
        with pytest.raises(CoverlayError, match="beyond the largest number"):
            told(**far)
