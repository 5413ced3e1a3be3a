"""Experiments with graphs and frames in place of files."""

from __future__ import annotations

import shutil

import networkx as nx
import pandas as pd
import pytest

import sim
from coverlay import CoverlayError
from sim.experiment.plan import load as load_file
from sim.experiment.runner import simulate
from sim.workloads import WORKLOADS

ASKED = pd.DataFrame({"broker": ["a", "b"], "price_lo": [0.0, 5.0], "price_hi": [9.0, 6.0]})
EVENTS = pd.DataFrame({"broker": "a", "price": [5.5, 8.0], "time": [2000.0, 2001.0]})


def hashes(plan) -> list[str]:
    return [simulate(run)[0]["run"]["trace_hash"][0].as_py() for run in plan.runs]


def test_graphs_and_frames_are_written_and_the_experiment_can_be_repeated(tmp_path) -> None:
    tree = nx.relabel_nodes(nx.path_graph(4), dict(enumerate("abcd")))
    ring = nx.relabel_nodes(nx.cycle_graph(4), dict(enumerate("abcd")))
    data = {
        "name": "mine",
        "seeds": range(2),
        "schema": {"price": (0, 10)},
        "workload": {"subscriptions_file": ASKED, "events_file": EVENTS},
    }
    changes = {"overlay.file": {"tree": tree, "ring": ring}, "routing.strategy": ["simple", "covering"]}
    plan = sim.load(data, changes, out=tmp_path / "mine")
    before = hashes(plan)[:2]
    assert repr(plan) == "Plan mine: 8 runs, 4 points × 2 seeds"
    names = sorted(path.name for path in (tmp_path / "mine" / "inputs").glob("*/*"))
    assert names == ["events_file.parquet", "ring.graphml", "subscriptions_file.parquet", "tree.graphml"]
    again = load_file(str(plan.save(tmp_path / "again" / "mine.toml")))
    shutil.rmtree(tmp_path / "mine")  # all that it reads is beside the file
    assert [run.run_id for run in again.runs] == [run.run_id for run in plan.runs]
    assert hashes(again)[:2] == before
    deliveries = simulate(again.runs[0])[0]["deliveries"].to_pandas()
    assert sorted(deliveries[["event", "subscription"]].to_numpy().tolist()) == [[0, 0], [0, 1], [1, 0]]


def test_a_network_is_an_experiment(tmp_path) -> None:
    net = sim.Network(nx.path_graph(3), schema={"price": (0, 10)})
    net.subscribe(at=2)
    net.subscribe(at=2, where="price < 5")
    net.publish(at=0, event={"price": 1})
    net.run()
    assert hashes(sim.load(net, out=tmp_path)) == [net.trace_hash]
    swept = sim.load(net, {"routing.strategy": ["simple", "covering"]}, out=tmp_path)
    assert len(set(hashes(swept))) == 2
    assert net.trace_hash in hashes(swept)


def test_notebooks_show_the_sentence_of_an_error(monkeypatch) -> None:
    error = CoverlayError("price is high")
    assert error._render_traceback_() == ["CoverlayError: price is high"]
    monkeypatch.setenv("COVERLAY_TRACEBACK", "1")
    with pytest.raises(CoverlayError) as raised:
        sim.Network(7, schema={})
    assert "overlay_from" in "".join(raised.value._render_traceback_())


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        ({"overlay": {"file": {"tree": nx.path_graph(2), "ring": nx.cycle_graph(3)}}}, {}),
        ({"overlay.file": {"tree": nx.path_graph(2), "ring": nx.cycle_graph(3)}}, {}),
        ({"overlay": {"file": [nx.path_graph(2), nx.cycle_graph(3)]}}, {}),
        ({}, {"overlay": {"file": {"tree": nx.path_graph(2), "ring": nx.cycle_graph(3)}}}),
        ({"sweep": {"overlay.file": {"tree": nx.path_graph(2), "ring": nx.cycle_graph(3)}}}, {}),
        ({"overlay.brokers": range(2, 4), "sweep": {}}, {}),
        ({"overlay": {"brokers": range(2, 4)}}, {}),
        ({}, {"overlay.brokers": range(2, 4), "sweep": {}}),
    ],
)
def test_a_list_where_a_key_takes_none_is_swept(data, settings, tmp_path) -> None:
    plan = sim.load({"name": "swept", **data}, settings, out=tmp_path)
    assert len(plan.runs) == 2
    assert plan._repr_html_().startswith("<p>Plan swept: 2 runs, 2 points × 1 seeds</p><table>")


def test_one_graph_is_the_overlay_and_a_frame_gives_the_schema(tmp_path) -> None:
    workload = {"subscriptions_file": ASKED, "events_file": EVENTS}
    graph = nx.relabel_nodes(nx.path_graph(4), dict(enumerate("abcd")))
    for overlay in ({"overlay": {"file": graph}}, {"overlay.file": graph}):
        plan = sim.load({"name": "one", "schema": EVENTS, "workload": workload, **overlay}, out=tmp_path)
        assert plan.data["schema"] == {"price": {"kind": "continuous", "low": 5.5, "high": 8.0}}
        assert plan.notes == ("the schema was guessed from a frame: price is continuous; check kinds and bounds",)
        assert len(plan.runs) == 1


def test_a_function_is_a_workload(tmp_path, monkeypatch) -> None:
    (tmp_path / "of_mine.py").write_text(
        "import pandas as pd, sim.workloads\n"
        "@sim.workloads.register(schema={'price': (0, 1)})\n"
        "def all_day(stream, subscriptions, events):\n"
        "    return pd.DataFrame({'price_lo': [0.5] * subscriptions}), pd.DataFrame({'price': [0.7] * events})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from of_mine import all_day

    try:
        for _ in range(2):  # the second time, the plug-in has registered it too
            plan = sim.load({"name": "day", "workload.kind": all_day}, out=tmp_path)
            assert [plugin.name for plugin in plan.plugins] == ["of_mine.py"]
            assert plan.runs[0].experiment.workload.kind == "all-day"
            assert plan.runs[0].local == ()
    finally:
        WORKLOADS.pop("all-day"), WORKLOADS.written.pop("all-day")
    with pytest.raises(CoverlayError, match=r"workload.kind is the function unregistered; write @sim.workloads.reg"):
        sim.load({"workload.kind": unregistered}, out=tmp_path)
    with pytest.raises(CoverlayError, match=r"only workload.kind takes a function"):
        sim.load({"routing.strategy": unregistered}, out=tmp_path)
    with pytest.raises(CoverlayError, match=r"mine.py' cannot be read"):
        sim.load("demo", plugins="mine.py")


def unregistered(stream, subscriptions, events):
    return None
