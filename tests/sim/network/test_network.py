"""A network used from Python: when calls happen, what they return, what they refuse."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import pandas as pd
import pytest
import simpy

import sim
from coverlay import BrokenGuarantee, CoverlayError
from sim.network.parts import BARE, SECTIONS, Keys

SCHEMA = {"price": (0, 1000), "symbol": str}


def network(**keys):
    return sim.Network(nx.balanced_tree(2, 3), schema=SCHEMA, **keys)


def test_the_example_of_the_readme() -> None:
    net = network(strategy="covering")
    ibm = net.subscribe(at=4, where="symbol = 'IBM' and price < 50")
    net.publish(at=0, event={"symbol": "IBM", "price": 42})
    assert net.deliveries.empty
    net.run()
    row = net.deliveries.iloc[0]
    assert (row["event"], row["subscription"], row["broker"], row["hops"]) == (0, 0, 4, 2)
    assert (row["time"], row["latency"]) == (pytest.approx(7.0), pytest.approx(2.0))
    assert net.check().due_delivered == 1
    assert "delivered" in net.explain(event=0, subscription=ibm)
    assert set(net.tables["state"]) == {"held"}
    assert net.tables.loc[net.tables["broker"] == 4, "neighbour"].tolist() == [None]
    assert (net.decisions["outcome"] == "forwarded").all()
    ibm.leave()
    net.run()
    assert net.tables.empty
    assert not ibm.in_force
    assert repr(net) == "Network: 15 brokers, covering, 12 ms; 0 subscriptions, 1 event, 1 delivery; nothing waits"


def test_calls_without_a_time_wait_for_rest_and_calls_with_one_do_not() -> None:
    net = network()
    net.subscribe(at=4)
    late = net.publish(at=0, event={"price": 1})
    early = net.publish(at=0, event={"price": 2}, time=1.0)
    assert net.waiting == 2
    assert (early.number, early.time) == (None, None)
    net.run(until=1.0)
    assert (net.now, net.waiting, net.quiet) == (1.0, 1, False)
    assert early.number is None, "run(until=1) stops before what happens at 1"
    net.run()
    assert [early.number, late.number] == [0, 1], "events are numbered in the order of publication"
    assert early.time == 1.0
    assert 5.0 < late.time < 5.0001, "after the last message of the subscription"
    assert net.deliveries["event"].tolist() == [1], "the other one met empty tables"
    verdict = net.check()
    assert (verdict.due, verdict.missed, verdict.missed_transient) == (2, 0, 1)


def test_a_process_of_simpy_is_a_client() -> None:
    def trader(net, desk):
        cheap = net.subscribe(at=desk, where="price < 50")  # at once
        assert cheap.in_force
        yield cheap.settled
        told.append(net.now)
        while True:
            got = yield cheap.inbox.get()
            told.append((got.event.values["price"], got.time, got.hops))
            yield net.env.timeout(5)
            net.publish(at=desk, event={"price": got.event.values["price"] + 100})

    net, told = network(), []
    net.subscribe(at=8, where="price > 100")
    net.env.process(trader(net, 4))
    net.publish(at=0, event={"price": 42}, time=50)
    net.run(until=net.env.timeout(100))
    assert net.now == 100
    assert told == [5.0, (42.0, 52.0, 2)]
    assert net.deliveries["time"].tolist() == [52.0, 60.0]
    assert net.check().missed == 0


def test_a_subscription_has_settled_when_its_cover_has() -> None:
    """The wide one holds the narrow one back at broker 1, and still travels when all messages of that are over."""
    graph = nx.path_graph(6)
    net = sim.Network(graph, schema={"price": (0, 100)}, latency=1.0)
    wide = net.subscribe(at=0, where="price < 90", time=0.0)
    narrow = net.subscribe(at=1, where="price < 50", time=2.5)
    net.run(until=narrow.settled)
    assert net.now == wide_settled(net, wide) == 5.0
    assert narrow.settled.triggered


def wide_settled(net, wide):
    net.run(until=wide.settled)
    return net.now


def test_a_change_replaces_and_a_move_takes_along() -> None:
    net = network()
    ann = net.subscribe(at=4, where="price < 50", id="ann")
    ann.change(where="price < 10")
    ann.move(8)
    net.publish(at=0, event={"price": 30})
    net.publish(at=0, event={"price": 5})
    net.run()
    assert (ann.number, ann.at, ann.where, ann.id) == (2, 8, "price < 10.0", "ann")
    assert net.deliveries[["event", "broker", "subscription"]].to_numpy().tolist() == [[1, 8, 2]]
    assert len(ann.inbox.items) == 1
    assert net.subscriptions["left"].notna().all()
    assert net.subscription("ann") is ann
    net.check()


def test_the_k_best_of_the_network_change_rank_in_one_request() -> None:
    net = network(k=1, scope="network")
    one, other = net.subscribe(at=4, score=1.0), net.subscribe(at=8, score=2.0)
    net.publish(at=0, event={"price": 1})
    one.change(score=3.0)
    net.publish(at=0, event={"price": 1})
    net.run()
    assert net.deliveries["subscription"].tolist() == [other.number, one.number]
    assert (one.number, one.score) == (0, 3.0)
    assert (net.trace("operations")["kind"] == "rerank").sum() == 1
    net.check()


def test_links_and_brokers_fail_and_return() -> None:
    net = network()
    four = net.subscribe(at=4)
    net.cut(1, 4)
    net.publish(at=0, event={"price": 1})
    net.heal(1, 4)
    net.publish(at=0, event={"price": 2})
    net.crash(1, until=100)
    net.publish(at=0, event={"price": 3})
    net.publish(at=0, event={"price": 4}, time=200)
    net.run()
    assert four.deliveries["event"].tolist() == [1, 3]
    verdict = net.check()
    assert (verdict.due, verdict.missed_fault) == (4, 2)
    assert "lost" in net.explain(0, four)


def test_the_memory_that_a_broker_lost_comes_back_and_what_it_served_is_not_in_the_inbox() -> None:
    net = network(broker={"service": {"kind": "constant", "value": 10.0}})
    four = net.subscribe(at=4)
    net.run()
    start = net.now
    net.publish(at=4, event={"price": 1})
    net.crash(4, time=start + 5, until=start + 7)
    net.publish(at=4, event={"price": 2}, time=start + 100)
    net.run()
    assert [got.event.number for got in four.inbox.items] == four.deliveries["event"].tolist() == [1]
    net.check()


def held(net):
    return set(net.tables.loc[net.tables["state"] == "held", "broker"])


def test_advertisements_of_ones_own() -> None:
    net = network(advertisements="simple")
    four = net.subscribe(at=4, where="price < 50")
    net.run()
    assert held(net) == {4}, "nobody has advertised anything"
    offer = net.advertise(at=0, where="price < 100")
    net.publish(at=0, event={"price": 1})
    offer.leave()
    net.run()
    assert len(four.deliveries) == 1
    assert held(net) == {4}
    with pytest.raises(CoverlayError, match="ended already"):
        offer.leave()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: net.subscribe(at=99), "there is no broker 99"),
        (lambda net: net.subscribe(at="4"), "there is no broker '4'"),
        (lambda net: net.subscribe(at=[4]), r"there is no broker \[4\]"),
        (lambda net: net.subscribe(at=4, where="prize < 3"), "prize"),
        (lambda net: net.subscribe(at=4, where={"price": (1, 2, 3)}), "bounds are"),
        (lambda net: net.subscribe(at=4, where=7), "it must be a text"),
        (lambda net: net.subscribe(at=4, id="ann"), "id of another subscription"),
        (lambda net: net.subscribe(at=4, time=0.5), "past"),
        (lambda net: net.subscribe(at=4, time=99, until=99), "not after"),
        (lambda net: net.subscribe(at=4, until=float("nan")), "not a number"),
        (lambda net: net.subscribe(at=4, score="high"), "it must be a number"),
        (lambda net: net.publish(at=4, event={"price": 1001}), "outside its bounds"),
        (lambda net: net.publish(at=4, event={"prize": 1}), "prize"),
        (lambda net: net.publish(at=4, event={"price": 1}, weights={"prize": 1}), "prize"),
        (lambda net: net.publish(at=4, event={"price": 1}, weights={"price": "x"}), "weight of price is 'x'"),
        (lambda net: net.publish(at=4, event={"price": 1}, weights={"price": -2}), "at least 0"),
        (lambda net: net.publish(at=4, event={"price": 1}, weights=[2]), "must be a mapping"),
        (lambda net: net.subscribe(at=4, where={"symbol": {1, "a"}}), "a set has numbers, or texts"),
        (lambda net: net.ann.move(5, how="warm"), 'it must be "cold"'),
        (lambda net: net.explain(0, subscription="nobody"), "^event 0 was not"),
        (copy.deepcopy, "cannot be copied or pickled"),
        (pickle.dumps, "cannot be copied or pickled"),
        (lambda net: net.advertise(at=4, where="price < 5"), "advertisements"),
        (lambda net: net.cut(0, 14), "there is no link 0–14"),
        (lambda net: net.crash(4, state="gone"), "lost"),
        (lambda net: net.run(until=0.5), "past"),
        (lambda net: net.gone.leave(), "has left"),
        (lambda net: net.leaving.leave(), "will leave"),
        (lambda net: net.leaving.change(score=2.0), "will leave"),
        (lambda net: net.trace("tabels"), "no table"),
        (lambda net: net.explain(99), "not published"),
    ],
)
def test_a_mistake_is_told_at_the_call_and_changes_nothing(call, message) -> None:
    def made():
        net = network()
        net.ann = net.subscribe(at=4, id="ann")
        net.gone, net.leaving = net.subscribe(at=5), net.subscribe(at=6)
        net.gone.leave()
        net.run()
        net.leaving.leave()
        net.publish(at=0, event={"price": 3}, time=50)
        return net

    net, as_it_was = made(), made()
    with pytest.raises(CoverlayError, match=message):
        call(net)
    assert net.waiting == as_it_was.waiting == 1
    assert len(net.subscriptions) == 3
    for each in (net, as_it_was):
        each.subscribe(at=7)
        each.run()
    assert net.trace_hash == as_it_was.trace_hash


def test_what_only_time_can_tell_is_told_by_the_run_and_the_network_goes_on() -> None:
    net = network()
    net.cut(0, 1, time=1)
    net.cut(0, 1, time=2)
    net.heal(0, 1, time=3)
    with pytest.raises(CoverlayError, match="cut at 2 ms: already cut"):
        net.run()
    net.run()
    assert net.trace("faults")["kind"].tolist() == ["cut", "heal", "converged"]
    net.subscribe(at=14)
    net.crash(3, until=net.now + 1)
    with pytest.raises(CoverlayError, match="give the call a time"):
        net.run()


def test_an_exception_in_a_process_leaves_the_run_and_ends_it() -> None:
    def faulty(net):
        yield net.env.timeout(1)
        raise ZeroDivisionError("mine")

    net = network()
    net.subscribe(at=4)
    net.env.process(faulty(net))
    with pytest.raises(ZeroDivisionError, match="mine"):
        net.run()
    assert len(net.subscriptions) == 1
    with pytest.raises(CoverlayError, match="interrupted by ZeroDivisionError"):
        net.run()


def test_endless_processes_do_not_keep_a_network_from_settling() -> None:
    def clock(net):
        while True:
            yield net.env.timeout(0.75)

    net = network()
    net.env.process(clock(net))
    net.subscribe(at=4)
    net.publish(at=0, event={"price": 3})
    net.settle()
    assert net.waiting == 0
    assert net.quiet
    assert len(net.deliveries) == 1


def test_nodes_are_those_of_the_graph() -> None:
    graph = nx.Graph()
    graph.add_edge("b", ("a", 1), latency=3.0, weight=7.0)
    graph.add_edge("b", 4, latency=2.0, weight=8.0)
    net = sim.Network(graph, schema={"price": (0, 10)})
    net.subscribe(at=("a", 1))
    net.publish(at=4, event={"price": 5})
    net.run()
    assert net.deliveries["broker"].tolist() == [("a", 1)]
    assert net.deliveries["latency"].tolist() == [5.0]
    assert net.graph.edges["b", 4] == {"latency": 2.0, "routed": True}
    with pytest.raises(CoverlayError, match="there is no broker 0"):
        net.subscribe(at=0)
    weighted = sim.Network(graph, schema={"price": (0, 10)}, latency="weight")
    assert weighted.graph.edges["b", 4]["latency"] == 8.0
    assert graph.edges["b", 4] == {"latency": 2.0, "weight": 8.0}


def test_graphs_are_tidied_as_files_are() -> None:
    graph = nx.MultiDiGraph([(2, 10), (10, 2), (2, 2), (33, 34), (10, 11)])
    net = sim.Network(graph, schema={"price": (0, 10)})
    assert list(net.graph) == [2, 10, 11]
    assert [note.split(":")[0] for note in net.notes] == [
        "the graph has directed links",
        "the graph has 1 link from a broker to itself",
        "the graph has 2 components",
        "the graph has neither latencies nor coordinates",
    ]
    with pytest.raises(CoverlayError, match="the graph holds no brokers"):
        sim.Network(nx.Graph(), schema={"price": (0, 10)})
    with pytest.raises(CoverlayError, match="it must be a NetworkX graph"):
        sim.Network(7, schema={"price": (0, 10)})


def test_an_overlay_table_is_a_graph_too() -> None:
    net = sim.Network({"kind": "ring", "brokers": 5}, schema={"price": (0, 10)}, latency=2.0)
    net.subscribe(at=4)
    net.publish(at=0, event={"price": 5})
    net.run()
    assert net.deliveries["latency"].tolist() == [2.0]


def test_every_form_of_a_schema() -> None:
    frame = pd.DataFrame({"price": [1.0, 9.5], "kind": ["bond", "share"]})
    given = {
        "price": (0, 9),
        "year": range(1990, 2031),
        "kind": ["bond", "share"],
        "symbol": str,
        "lat": "latitude",
        "lon": "longitude",
        "size": {"kind": "integer", "low": 0, "high": 3},
    }
    net = sim.Network(nx.path_graph(2), schema=given)
    kinds = ["continuous", "integer", "categorical", "text", "latitude", "longitude", "integer"]
    assert [attribute.kind for attribute in net.schema.attributes] == kinds
    assert net.schema["year"].domain == (1990.0, 2030.0)
    wanted = {"kind": {"share", "bond"}, "price": (None, 5), "symbol": "IBM", "year": (2000, 2010)}
    assert net.subscribe(0, wanted).where == (
        'price <= 5.0 and year between 2000 and 2010 and kind in {"bond", "share"} and symbol = "IBM"'
    )
    guess = sim.Network(nx.path_graph(2), schema=frame)
    assert [a.kind for a in guess.schema.attributes] == ["continuous", "categorical"]
    assert "guessed" in guess.notes[-1]
    for bad in ({"price": 3}, {"price": (1,)}, 7, {}):
        with pytest.raises(CoverlayError, match="schema"):
            sim.Network(nx.path_graph(2), schema=bad)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"method": "zorder"}, "covering=.*matching="),
        ({"workload": {}}, "use subscribe, publish or play"),
        ({"run": {"engine": "compiled"}}, "sim.run"),
        ({"stratagy": "covering"}, "did you mean"),
        ({"strategy": "simple", "epsilon": 0.1}, "no effect"),
        ({"root": 3}, "no effect"),
        ({"strategy": "hierarchical", "root": "3"}, "there is no broker '3'"),
        ({"k": 2, "scope": "network", "routing": {"rank": "cover"}}, "is for experiments"),
        ({"covering": 3}, "it must be a table"),
        ({"seed": -1}, "seed is -1"),
        ({"latency": None}, "latency is None; it must be ms"),
        ({"latency": [1]}, r"latency is \[1\]; it must be ms"),
        ({"plugins": "mine.py"}, "mine.py' cannot be read"),
        ({"plugins": 7}, "plugins is 7; it must be a list"),
        ({"routing": {"heartbeat": 5.0}}, 'routing.failover is "none"'),
    ],
)
def test_keys_are_those_of_files_and_mistakes_are_told(keys, message) -> None:
    with pytest.raises(CoverlayError, match=message):
        network(**keys)


def test_bare_names_are_keys_of_the_model() -> None:
    from sim.experiment.config import Experiment

    assert set(Keys.__annotations__) == {*SECTIONS, "latency", *BARE}
    for key in BARE.values():
        section, _, name = key.partition(".")
        assert name in Experiment.model_fields[section].annotation.model_fields


def test_brokers_in_settings_are_nodes() -> None:
    graph = nx.path_graph(["x", "y", "z"])
    keys = {"covering": {"method": "zorder", "epsilon_per_link": {("z", "y"): 0.1}}}
    net = sim.Network(graph, schema=SCHEMA, **keys)
    assert net.settings.covering.links() == {(1, 2): 0.1}
    rooted = sim.Network(graph, schema=SCHEMA, strategy="hierarchical", root="z")
    assert rooted.settings.routing.root == 2


def test_looking_changes_nothing_and_calls_can_be_replayed() -> None:
    def made(look):
        net = network(links={"jitter": 3.0}, seed=7)
        four = net.subscribe(at=4, where="price < 500", until=300)
        for price in (1, 600, 30):
            net.publish(at=0, event={"price": price})
            net.crash(2, time=net.now + 10, until=net.now + 30)
            net.run(until=net.now + 40)
            if look:
                _ = net.deliveries, net.tables, net.trace_hash, net.explain(0, four), repr(net), net.subscriptions
        four.change(where="price < 20", time=250)
        net.run()
        return net

    seen, unseen = made(True), made(False)
    assert seen.trace_hash == unseen.trace_hash
    again = seen.replay()
    again.run()
    assert again.trace_hash == seen.trace_hash
    other = seen.replay(strategy="flooding")
    other.run()
    assert other.trace_hash != seen.trace_hash
    assert other.check().missed == 0


def test_random_numbers_of_processes_come_from_the_seed() -> None:
    drawn = [network(seed=seed).rng(name).random() for seed, name in ((1, "a"), (1, "a"), (1, "b"), (2, "a"))]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3
    net = network()
    assert net.rng("a") is net.rng("a")


def test_a_broken_guarantee_is_no_mistake_of_the_user(monkeypatch) -> None:
    """A strategy that sends nothing and says nothing covers it."""
    net = network(strategy="simple")
    monkeypatch.setattr("broker.tree_part.TreePart.wants", lambda self, source, values: ([], (0, 0, 0)))
    net.subscribe(at=4)
    net.publish(at=0, event={"price": 1})
    net.run()
    with pytest.raises(BrokenGuarantee, match="missed 1"):
        net.check()


def test_check_needs_rest() -> None:
    net = network()
    net.subscribe(at=4)
    net.run(until=2)
    with pytest.raises(CoverlayError, match="under way"):
        net.check()


def test_the_environment_is_that_of_simpy() -> None:
    assert isinstance(network().env, simpy.Environment)


def test_fail_over_notices_what_calls_cut(tmp_path) -> None:
    """What is noticed, and when, is as in the same experiment from a file: the traces are equal."""
    net = sim.Network(nx.cycle_graph(6), schema=SCHEMA, failover="replace", latency=1.0)
    net.subscribe(at=3)
    net.run()
    net.save(tmp_path / "whole")  # nothing has failed yet, so its file does not say failover
    net.cut(0, 1, time=120, until=1500)
    net.crash(5, time=2000, until=2020)  # too short to be noticed
    net.cut(0, 1, time=3000)
    net.heal(0, 1, time=3700)
    net.cut(0, 1, time=3750)  # while it is held back
    for time in range(150, 5000, 100):
        net.publish(at=0, event={"price": 1}, time=time)
    net.run()
    found = net.trace("faults")
    notices = found[found["kind"].isin(["detected", "rejoined"])]
    assert notices["kind"].tolist() == ["detected", "rejoined", "detected", "detected"]
    assert net.check().missed == 0
    net.save(tmp_path / "failing")  # raises if the trace of the file is another one
    assert net.replay(failover="none").settings.routing.failover == "none"


def test_nobody_is_told_of_options_of_the_command_line() -> None:
    net = network()
    net.publish(at=0, event={"price": 1})
    net.run()
    with pytest.raises(CoverlayError, match=r"^subscription is 'nobody'"):
        net.explain(0, subscription="nobody")


def test_a_notebook_shows_the_line_and_a_table() -> None:
    net = network()
    net.subscribe(at=4, where="symbol = '<b>'")
    before = net.now
    shown = net._repr_html_()
    assert shown.startswith("<p>Network: 15 brokers, covering, 0 ms;")
    assert "<table" in shown
    assert "<b>" not in shown
    assert net.now == before
    assert net.waiting == 1
