"""A network and its files: what was done in Python is an experiment, with the same trace."""

from __future__ import annotations

import math

import networkx as nx
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import sim
from coverlay import CoverlayError
from sim.experiment.plan import load
from sim.experiment.runner import simulate

SCHEMA = {
    "price": (0, 10),
    "year": range(5),
    "kind": ["bond", " share "],
    "symbol": str,
    "lat": "latitude",
    "lon": "longitude",
}
GRAPH = nx.relabel_nodes(nx.cycle_graph(5), {0: "a", 1: ("b", 2), 2: 30, 3: "30", 4: 4.5})
NODES = list(GRAPH)


def hash_of(path) -> str:
    """Of the run of an experiment, as `coverlay run` makes it."""
    tables, _ = simulate(load(str(path)).runs[0])
    return tables["run"]["trace_hash"][0].as_py()


NODE = st.sampled_from(NODES)
TIME = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 7.0]), st.floats(0, 9))
WHERE = st.one_of(
    st.sampled_from(
        [
            "true",
            "price < 5 score 3",
            'kind = " share " and year != 3',
            'symbol prefix "ab" weight 0.25',
            "near (48.1, 11.6) alpha 0.3 and price >= 1",
            "lat between 40 and 50",
        ]
    ),
    st.tuples(st.floats(0, 10), st.floats(0, 10)).map(lambda pair: {"price": (min(pair), max(pair))}),
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "price": st.floats(0, 10),
        "year": st.integers(0, 4),
        "kind": st.sampled_from(SCHEMA["kind"]),
        "symbol": st.sampled_from(["", "ab", " abc", "abcdefgh"]),
        "lat": st.floats(-90, 90),
    },
)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), NODE, WHERE, TIME, st.sampled_from([None, None, 12.0])),
        st.tuples(st.just("publish"), NODE, VALUES, TIME, st.sampled_from([None, None, {"price": 2.0}])),
        st.tuples(st.just("leave"), st.integers(0, 5), TIME),
        st.tuples(st.just("change"), st.integers(0, 5), WHERE | st.none(), NODE | st.none(), TIME),
        st.tuples(st.just("crash"), NODE, st.sampled_from(["lost", "kept"]), TIME, st.sampled_from([None, 9.5])),
        st.tuples(st.just("cut"), st.integers(0, 4), TIME, st.sampled_from([None, 11.0])),
        st.tuples(st.just("restart"), NODE, TIME),
        st.tuples(st.just("run"), st.floats(0, 3)),
    ),
    max_size=14,
)
KEYS = st.sampled_from(
    [
        {},
        {"strategy": "simple", "links": {"jitter": 2.0}},
        {"mode": "active", "broker": {"service": {"kind": "exponential", "mean": 0.5}, "queue": 3}},
        {"strategy": "covering", "covering": {"method": "zorder-emulated"}, "epsilon": 0.2},
        {"k": 2, "scope": "network"},
        {"k": 1, "semantics": "relaxed", "trees": "per-source"},
        {"strategy": "hierarchical", "root": 30},
    ]
)


CRASH = ("crash", "a", "lost", None, None)


def do(net, calls) -> None:
    """Make calls; those that are refused change nothing."""
    handles = []
    for call in calls:
        try:
            match call:
                case ("subscribe", node, where, time, until):
                    handles.append(net.subscribe(node, where, time=_from(net, time), until=until))
                case ("publish", node, values, time, weights):
                    net.publish(node, values, time=_from(net, time), weights=weights)
                case ("leave", which, time):
                    if which < len(handles):
                        handles[which].leave(time=_from(net, time))
                case ("change", which, where, at, time):
                    if which < len(handles):
                        handles[which].change(where=where, at=at, score=2.0, time=_from(net, time))
                case ("crash", node, state, time, until):
                    net.crash(node, state=state, time=_from(net, time), until=until)
                case ("cut", which, time, until):
                    net.cut(NODES[which], NODES[(which + 1) % 5], time=_from(net, time), until=until)
                case ("restart", node, time):
                    net.restart(node, time=_from(net, time))
                case ("run", span):
                    net.run(until=net.now + span)
        except CoverlayError:
            pass
    while True:
        try:
            net.run()
            break
        except CoverlayError:
            continue


def _from(net, time):
    return None if time is None else max(net.now, time)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(  # an event that nobody else gets: the network is at rest at once, and the crash must come after it
    [("subscribe", "a", "true", None, None), ("publish", "a", {}, None, None), ("crash", "a", "lost", None, None)],
    {},
    0,
)
@given(CALLS, KEYS, st.integers(0, 3))
def test_what_was_done_in_python_has_the_same_trace_from_a_file(tmp_path_factory, calls, keys, seed) -> None:
    net = sim.Network(GRAPH, schema=SCHEMA, seed=seed, **keys)
    do(net, calls)
    net.check()
    path = net.save(tmp_path_factory.mktemp("mine"))
    assert hash_of(path) == net.trace_hash
    loaded = sim.Network.load(path)
    loaded.run()
    assert loaded.trace_hash == net.trace_hash
    assert loaded.check() == net.check()


def test_requests_of_one_moment_keep_their_order(tmp_path) -> None:
    net = sim.Network(nx.path_graph(2), schema={"price": (0, 9)})
    net.publish(0, {"price": 1}, time=3)
    first = net.subscribe(0, time=3, until=8)
    net.publish(0, {"price": 2}, time=3)
    net.publish(0, {"price": 3}, time=8)
    net.subscribe(0, time=8)
    net.publish(0, {"price": 4}, time=8)
    net.run()
    assert first.deliveries["event"].tolist() == [1], "its end was asked for before event 2"
    path = net.save(tmp_path / "mine")
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "events.parquet",
        "experiment.toml",
        "overlay.graphml",
        "subscriptions.parquet",
    ]
    assert hash_of(path) == net.trace_hash


def test_what_a_file_cannot_say_is_refused(tmp_path) -> None:
    net = sim.Network(nx.path_graph(3), schema={"price": (0, 9)})
    net.subscribe(0)
    with pytest.raises(CoverlayError, match="run\\(\\) first"):
        net.save(tmp_path)

    def client(net):
        yield net.env.timeout(1.0)  # when the subscription comes to broker 1, or is just about to
        net.publish(1, {"price": 1})

    net.run(until=1.0)
    net.env.process(client(net))
    net.run(until=2.0)
    net.run()
    assert net.save(tmp_path / "before"), "it acted first"

    def late(net):
        yield net.subscribe(2).settled
        net.publish(2, {"price": 1})

    net.env.process(late(net))
    net.run()
    with pytest.raises(CoverlayError, match=r"a file cannot say publish at 5 ms: messages of that moment"):
        net.save(tmp_path / "after")
    assert not (tmp_path / "after").exists()
    offering = sim.Network(nx.path_graph(3), schema={"price": (0, 9)}, advertisements="simple")
    with pytest.raises(CoverlayError, match="advertisements of its own"):
        offering.save(tmp_path)


def test_a_shipped_experiment_can_be_stepped_through() -> None:
    given = {"routing.strategy": "simple", "workload.subscriptions": 20, "workload.events": 5, "overlay.brokers": 6}
    with pytest.raises(CoverlayError, match="points; settings must leave one"):
        sim.Network.load("demo")
    small = {**given, "sweep": {}, "case": [{}]}
    net = sim.Network.load("demo", small, seed=2)
    net.run(until=100)
    mine = net.subscribe(at=3, where="true")
    net.run()
    assert len(mine.deliveries) == 5
    assert net.seed == 2
    assert net.check().missed == 0


def test_tables_are_played() -> None:
    net = sim.Network(nx.path_graph(["a", "b", "c"]), schema={"price": (0, 9)})
    subscriptions = pd.DataFrame(
        {
            "id": ["ann", "bob", "ann"],
            "broker": ["c", "b", "c"],
            "time": [0, 0, 20.0],
            "text": ["true", "price < 3", "price > 8"],
        }
    )
    events = pd.DataFrame({"broker": "a", "price": [1.0, 5.0]})
    faults = pd.DataFrame({"time": [40.0], "kind": ["cut"], "broker": ["a"], "neighbour": ["b"], "until": [50.0]})
    net.play(subscriptions, events, faults)
    assert net.waiting == 2
    net.run()
    assert net.deliveries[["event", "broker"]].to_numpy().tolist() == [[0, "b"], [0, "c"], [1, "c"]]
    assert net.subscription("ann").number == 2
    assert net.trace("faults")["kind"].tolist() == ["cut", "heal", "converged"]
    again = sim.Network(nx.path_graph(["a", "b", "c"]), schema={"price": (0, 9)})
    again.play(subscriptions.drop(columns="time").iloc[:2], events.assign(time=[100.0, 101.0]))
    again.run()
    assert again.deliveries["event"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"subscriptions": pd.DataFrame({"text": ["true"]})}, "no column 'broker'"),
        ({"subscriptions": pd.DataFrame({"text": ["true"], "broker": ["z"]})}, "there is no broker 'z'"),
        (
            {"events": pd.DataFrame({"price": [1.0, 2.0], "broker": "a", "time": [3.0, math.nan]})},
            "others? rows have a time",
        ),
        ({"events": pd.DataFrame({"price": [1.0], "broker": "a", "time": [0.5]})}, "past"),
        ({"faults": pd.DataFrame({"time": [9], "kind": ["cut"], "broker": ["a"], "neighbour": ["c"]})}, "no link"),
        ({"subscriptions": 3}, "a file or a frame"),
    ],
)
def test_a_mistake_in_a_table_changes_nothing(tables, message) -> None:
    net = sim.Network(nx.path_graph(["a", "b", "c"]), schema={"price": (0, 9)})
    net.run(until=1.0)
    with pytest.raises(CoverlayError, match=message):
        net.play(**{"subscriptions": pd.DataFrame({"text": ["true"], "broker": ["a"]}), **tables})
    assert len(net.subscriptions) == net.waiting == 0


def test_a_folder_is_loaded_as_its_experiment(tmp_path) -> None:
    net = sim.Network(nx.path_graph(3), schema={"price": (0, 9)})
    net.subscribe(2)
    net.publish(0, {"price": 1})
    net.run()
    net.save(tmp_path / "mine")
    again = sim.Network.load(tmp_path / "mine")
    again.run()
    assert again.trace_hash == net.trace_hash
