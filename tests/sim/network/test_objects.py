"""Experiments with graphs and frames in place of files."""

from __future__ import annotations

import networkx as nx
import pandas as pd
import pytest

import sim
from coverlay import CoverlayError
from sim.experiment.plan import load as load_file
from sim.experiment.runner import simulate
from sim.experiment.toml_text import to_toml

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
    assert repr(plan) == "Plan mine: 8 runs, 4 points × 2 seeds"
    names = sorted(path.name for path in (tmp_path / "mine" / "inputs").iterdir())
    assert names == ["events_file.parquet", "ring.graphml", "subscriptions_file.parquet", "tree.graphml"]
    (tmp_path / "again.toml").write_text(to_toml(plan.data))
    again = load_file(str(tmp_path / "again.toml"))
    assert [run.run_id for run in again.runs] == [run.run_id for run in plan.runs]
    assert hashes(again)[:2] == hashes(plan)[:2]
    deliveries = simulate(plan.runs[0])[0]["deliveries"].to_pandas()
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
