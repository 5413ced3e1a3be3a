"""Routing tables told from a trace are those that the brokers have, at the end and at any time before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from broker.trace.schema import CLIENT
from coverlay import CoverlayError
from routing.overlay.trees import Tree
from sim.cli.main import main
from sim.experiment.build import inputs_of, overlay_of, workload_of
from sim.experiment.config import parse
from sim.experiment.engines import Look, run_simpy
from sim.experiment.plan import plan
from sim.experiment.sweep import run_sweep
from sim.random_streams import streams
from sim.tell.knowledge import Knowledge
from sim.tell.run_trace import RunTrace
from sim.tell.tables import DORMANT, HELD, LEAVING, PRUNED, find, missing, of_network, of_trace
from sim.tell.tables_in_words import write
from sim.tell.versions import Version
from tests.sim.tell.own_files import NET, ran

ROUTINGS = [
    {"strategy": "simple"},
    {"strategy": "identity", "mode": "active"},
    {"strategy": "covering"},
    {"strategy": "covering", "mode": "active"},
    {"strategy": "covering", "cover": "union"},
    {"strategy": "covering", "cover": "union", "mode": "active"},
    {"strategy": "covering", "advertisements": "covering"},
    {"strategy": "covering", "trees": "per-source"},
    {"strategy": "merging", "merge_waste": 0.3},
    {"strategy": "merging", "merge_waste": 0.1, "advertisements": "simple"},
    {"strategy": "hierarchical", "mode": "active"},
    {"strategy": "flooding"},
    {"strategy": "covering", "rank": "cover"},
    {"strategy": "covering", "rank": "skyband"},
]
NETWORK_WIDE = {"scope": "network", "k": 2}
ARRIVALS = [
    {"kind": "churn", "lifetime": 15.0},
    {"kind": "static", "unsubscribe": 0.6, "settle": 5.0},
    {"kind": "bursty", "lifetime": 20.0, "burst": 8.0, "spread": 0.0},
]
FAULTS = [{}, {"cut_fraction": 0.4, "downtime": 10.0}, {"crash_fraction": 0.4, "downtime": 10.0, "state": "kept"}]


@st.composite
def experiments(draw: Any) -> dict[str, Any]:
    routing = draw(st.sampled_from(ROUTINGS))
    latency = draw(st.sampled_from([{"kind": "uniform", "low": 1.0, "high": 9.0}, {"kind": "constant", "value": 2.0}]))
    service = draw(st.sampled_from([{"kind": "none"}, {"kind": "constant", "value": 0.3}]))
    return {
        "name": "tables",
        "overlay": {"kind": draw(st.sampled_from(["random-tree", "ring"])), "brokers": 6, "latency": latency},
        "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 40, "events": 6},
        "arrivals": draw(st.sampled_from(ARRIVALS)),
        "routing": routing,
        "matching": NETWORK_WIDE if "rank" in routing else {},
        "broker": {"service": service},
        "faults": draw(st.sampled_from(FAULTS)),
        "run": {"samples": 0},
    }


def compare(known: Knowledge, trees: dict[int, Tree], rows: list[Any], step: int) -> None:
    """What is known at a step is what the brokers had then: tables, and the state of each subscription on each link."""
    tables: dict[Any, set[int]] = {}
    for number, (broker, neighbour, tree, subscription, state, because) in enumerate(rows):
        tables.setdefault((broker, neighbour, tree), set())
        if state in (HELD, LEAVING):
            tables[broker, neighbour, tree].add(subscription)
        link = neighbour, broker
        if neighbour != CLIENT and subscription >= 0 and state != LEAVING and number % 8 == 0:  # a sample: it is slow
            assert known.knows(link, Version(trees[tree], {}), subscription, step)
            outcome, coverers = known.decided(link, tree, subscription, step)
            assert (outcome == "dormant", coverers) == (state == DORMANT, because)
    for (broker, neighbour, tree), held in [*tables.items()][:: max(1, len(tables) // 10)]:
        assert known.table(broker, neighbour, tree, step) == held


MERGERS_MERGE = {  # few draws of `experiments` have mergers that go into others
    "name": "tables",
    "overlay": {"kind": "random-tree", "brokers": 6, "latency": {"kind": "constant", "value": 2.0}},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 40, "events": 6},
    "arrivals": ARRIVALS[0],
    "routing": {"strategy": "merging", "merge_waste": 0.3},
    "faults": {},
    "run": {"samples": 0},
}


# Without shrinking, which takes minutes: a run is small as it is.
@settings(
    max_examples=40,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@example(data=MERGERS_MERGE, seed=1, share=0.5)
@given(data=experiments(), seed=st.integers(1, 1000), share=st.floats(0.0, 1.0))
def test_a_trace_tells_the_tables_that_brokers_have_at_any_time_and_at_the_end(data, seed, share):
    experiment, stream = parse(data, "test"), streams(seed)
    assert missing(experiment.parameters(), crashed=True) is None or not data["faults"].get("crash_fraction")
    inputs = inputs_of(experiment, overlay_of(experiment, stream), workload_of(experiment, stream), stream)
    at, seen = share * float(inputs.timeline.time[-1]), []

    def see(network):
        seen.extend([network, list(of_network(network).rows())])

    ran = run_simpy(replace(inputs, look=Look(at, see)))
    control, decisions = ran.tables["control"], ran.tables["decisions"]
    assert list(of_trace(control, decisions, at).rows()) == seen[1]
    end = list(of_trace(control, decisions, ran.finished).rows())
    assert end == list(of_network(seen[0]).rows())
    known = Knowledge(control.to_pandas(), decisions.to_pandas(), {})
    steps = control.column("step").to_numpy()[control.column("time").to_numpy() <= at]
    compare(known, seen[0].trees, seen[1], int(steps.max(initial=-1)) + 1)
    compare(known, seen[0].trees, end, int(control.column("step").to_numpy().max(initial=-1)) + 1)
    sizes = Counter((b, n) for b, n, _, _, state, _ in end if state in (HELD, LEAVING))
    final = ran.tables["tables"].filter(ran.tables["tables"].column("final")).to_pylist()
    assert {(r["broker"], r["neighbour"]): r["entries"] for r in final if r["entries"]} == sizes
    assert sizes[0, CLIENT] <= ran.active
    assert not any(state == PRUNED for *_, state, _ in end)


BASE = {
    "name": "small",
    "overlay": {"kind": "line", "brokers": 4, "latency": {"kind": "constant", "value": 1.0}},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 60, "events": 10},
    "arrivals": {"kind": "static", "unsubscribe": 0.3},
}
NOT_IN_TRACE = {
    "preloaded": {"arrivals.kind": "preloaded", "arrivals.share": 0.7},
    "prune": {"routing.mode": "prune"},
    "sampled": {"run.sample_decisions": 0.2},
    "lost memory": {"faults.crash_fraction": 0.5, "faults.downtime": 3.0},
}


def kept(folder, settings_=None, base=BASE):
    result = run_sweep(plan(base, settings=settings_ or {}), folder)
    assert not result.failures
    return RunTrace(folder, None)


@pytest.mark.parametrize("what", NOT_IN_TRACE)
def test_what_a_trace_does_not_tell_is_simulated_again_and_its_hash_compared(what, tmp_path):
    trace = kept(tmp_path, NOT_IN_TRACE[what])
    found = find(trace, None)
    assert found.said.startswith(f"simulated again, with the recorded trace hash {trace.record['trace_hash']}")
    sizes = Counter((b, n) for b, n, _, _, state, _ in found.tables.rows() if state in (HELD, LEAVING))
    final = trace.read("tables").query("final and entries > 0")
    assert {(row.broker, row.neighbour): row.entries for row in final.itertuples()} == sizes
    pruned = sum(state == PRUNED for *_, state, _ in found.tables.rows())
    assert pruned == trace.read("tables").query("final")["pruned"].sum()
    assert (pruned > 0) == (what == "prune")
    assert list(find(trace, 2.0).tables.rows()) != list(found.tables.rows())


def test_a_run_that_comes_out_otherwise_is_not_told(tmp_path, monkeypatch):
    trace = kept(tmp_path, NOT_IN_TRACE["preloaded"])
    monkeypatch.setattr("sim.tell.tables.trace_hash", lambda tables: "other")
    with pytest.raises(CoverlayError, match="has the trace hash other instead of"):
        find(trace, None)


def test_a_run_whose_input_changed_is_not_told(tmp_path):
    (tmp_path / "net.gml").write_text(NET)
    settings_ = {"overlay": {"file": str(tmp_path / "net.gml")}, "arrivals.kind": "preloaded"}
    trace = kept(tmp_path / "out", settings_)
    assert find(trace, None).tables.local
    (tmp_path / "net.gml").write_text(NET.replace("hub", "pub"))
    with pytest.raises(CoverlayError, match="it or an input file has changed"):
        find(trace, None)
    (tmp_path / "out" / "experiment.toml").unlink()
    with pytest.raises(CoverlayError, match=r"an input file of run \S+ has changed"):
        find(trace, None)


SUBSCRIPTIONS = "broker,time,price_lo,price_hi\nhub,0,0,90\nhub,10,20,30\nfar,20,0,100\n"
WITH_IDS = "id,broker,time,price_lo,price_hi\nall,hub,0,0,90\nann,hub,10,20,30\n7,far,20,0,100\nann,,15,25,30\n"


def test_the_verb_names_brokers_and_says_why_a_subscription_is_not_somewhere(tmp_path, capsys):
    out = ran(tmp_path, SUBSCRIPTIONS)

    def told(*words):
        assert main(["tables", str(out), *words]) == 0
        return capsys.readouterr().out

    rows = [line.split() for line in told("--subscription", "1").splitlines()[3:]]
    assert rows == [
        ["hub", "its", "clients", "1", "held"],
        ["leaf", "hub", "1", "suppressed", "0"],
        ["far", "leaf", "1", "not", "told", "0"],
    ], "also brokers that are more than one hop behind who held it back"
    said = told("--subscription", "1", "--broker", "far")
    assert "subscription 1 of a client of hub: held by 1 of 3 brokers" in said
    assert "hub → leaf: 1 is not sent, because 0, which was sent, covers it" in said
    assert "far has 0, which covers it" in said
    assert "from its trace" in said
    rows = [line.split() for line in told("--broker", "leaf").splitlines()[2:]]
    assert ["leaf", "hub", "0", "held"] in rows
    assert ["leaf", "hub", "1", "suppressed", "0"] in rows
    assert ["leaf", "far", "2", "held"] in rows
    earlier = [line.split() for line in told("--broker", "1", "--at", "20.5").splitlines()]
    assert ["leaf", "far", "2", "under", "way"] in earlier
    assert told("--broker", "far", "--at", "0").splitlines()[1:] == ["nothing is held there at that time"]
    assert told().splitlines()[1].split() == ["broker", "from", "held", "suppressed"]
    for name, reader in (("t.csv", pd.read_csv), ("t.parquet", pd.read_parquet)):
        told("--out", str(tmp_path / name))
        frame = reader(tmp_path / name)
        assert set(frame["from"]) == {"its clients", "hub", "leaf", "far"}
        assert list(frame.query("state == 'suppressed'")["because of"].astype(int)) == [0]


def test_who_covers_only_a_part_is_said_to(tmp_path, capsys):
    out = ran(
        tmp_path, "broker,time,price_lo,price_hi\nhub,0,0,60\nhub,1,50,100\nhub,10,40,70\n", routing__cover="union"
    )
    assert main(["tables", str(out), "--subscription", "2", "--broker", "far"]) == 0
    said = capsys.readouterr().out
    assert "hub → leaf: 2 is not sent, because 0 and 1, which were sent, cover it" in said
    assert "far has 0, which covers part of it" in said


def test_subscriptions_are_called_as_in_the_users_file(tmp_path, capsys):
    out = ran(tmp_path, WITH_IDS, "time,broker,price\n100,far,27\n")

    def told(*words):
        assert main([words[0], str(out), *words[1:]]) == 0
        return capsys.readouterr().out

    assert "subscription ann #3 of a client of hub: held by 1 of 3" in told("tables", "--subscription", "ann")
    assert "subscription ann #1 of" in told("tables", "--subscription", "ann", "--at", "12")
    assert "subscription 7 #2 of" in told("tables", "--subscription", "7"), "an id counts before a number"
    assert "leaf: ann #3 is not sent, because all #0" in told("tables", "--subscription", "3", "--broker", "leaf")
    assert ["leaf", "hub", "3", "ann", "suppressed", "0"] in [
        line.split() for line in told("tables", "--broker", "leaf").splitlines()
    ]
    assert "delivered to all #0 (rank 1, score 1), ann #3 (rank 2, score 1)" in told("explain", "--event", "0")
    assert "subscription ann #3 lives at hub" in told("explain", "--event", "0", "--subscription", "ann")
    assert main(["explain", str(out), "--event", "0", "--subscription", "anne"]) == 2
    assert "or called by id, e.g. 'all'; did you mean 'ann'?" in capsys.readouterr().err
    (out.parent / "workload.subscriptions_file.csv").write_text(WITH_IDS.replace("ann", "eve"))
    assert "delivered to 0 (rank 1" in told("explain", "--event", "0"), "another file now, which would call it wrongly"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "none"], "there is no run 'none'"),
        (["--broker", "b9"], "there is no broker 'b9'; brokers are called by number, 0 to 3"),
        (["--at", "-1"], "--at -1 is outside of run"),
        (["--at", "nan"], "--at nan is outside of run"),
        (["--at", "1e9"], "--at 1e+09 is outside of run"),
        (["--subscription", "60"], "subscription 60 had not been made"),
        (["--out", "tables.xls"], "--out 'tables.xls' ends in none of: .csv, .parquet"),
    ],
)
def test_what_is_not_there_is_one_sentence(words, said, tmp_path, capsys):
    kept(tmp_path)
    assert main(["tables", str(tmp_path), *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(("event", "subscription"), [("-1", "0"), ("0", "-1")])
def test_a_negative_number_is_no_event_and_no_subscription(event, subscription, tmp_path, capsys):
    """Traces have -1 where a message is about none: the story of that one would be nonsense."""
    kept(tmp_path)
    assert main(["explain", str(tmp_path), "--event", event, "--subscription", subscription]) == 2
    assert "numbered from 0" in capsys.readouterr().err


def test_a_written_table_has_no_formulas_for_spreadsheets(tmp_path):
    names = ["=1+1", "+b", "-c", "@d", "\te", "plain", "a=b"]
    frame = pd.DataFrame({"broker": names, "entries": range(-3, 4)})
    write(frame, tmp_path / "tables.csv")
    written = pd.read_csv(tmp_path / "tables.csv")
    assert written["broker"].tolist() == ["'=1+1", "'+b", "'-c", "'@d", "'\te", "plain", "a=b"]
    assert written["entries"].tolist() == list(range(-3, 4))
    write(frame, tmp_path / "tables.parquet")
    assert pd.read_parquet(tmp_path / "tables.parquet")["broker"].tolist() == names
