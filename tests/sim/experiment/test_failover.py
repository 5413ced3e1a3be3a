"""Fail-over: when failures are noticed, which trees take over, what a switch-over sends, and what is refused."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

from broker.network import Network
from broker.settings import Failover, Settings
from broker.trace.schema import CRASH, CUT
from coverlay import CoverlayError
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.failover import alike, named, tree_around
from routing.overlay.graph import Overlay, build_overlay, spanning_tree
from routing.overlay.trees import SHARED, spanning, trees_of
from sim.experiment import oracle
from sim.experiment.build import rules_of, settings_of, workload_of
from sim.experiment.detection import noticed, waits
from sim.experiment.faults import Fault
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.experiment.sweep import run_sweep
from sim.random_streams import streams
from sim.tell.explain import explain
from sim.tell.run_trace import RunTrace
from sim.tell.stories import tell
from sim.tell.tables import HELD, LEAVING, find

RING: dict[str, Any] = {
    "name": "ring of six",
    "overlay": {"kind": "ring", "brokers": 6, "latency": {"kind": "constant", "value": 2.0}},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 30, "events": 100},
    "arrivals": {"kind": "static", "publish_rate": 0.1},
}
SOON = {"heartbeat": 10.0, "detect_after": 30.0}


def run(faults: str, routing: dict[str, Any], tmp_path: Any, **sections: Any) -> tuple[dict[str, Any], Any]:
    file = tmp_path / "faults.csv"
    file.write_text(faults)
    data = {**RING, **sections, "routing": routing, "faults": {"file": str(file)}}
    tables, _ = simulate(plan(data).runs[0])
    return tables["run"].to_pylist()[0], tables


def overlay_of(links: list[tuple[int, int, float]]) -> Overlay:
    graph: Any = nx.Graph()
    for broker in range(1 + max(max(a, b) for a, b, _ in links)):
        graph.add_node(broker, name=f"b{broker}", x=0.0, y=0.0)
    graph.add_weighted_edges_from(links, weight="latency")
    return Overlay(graph, spanning_tree(graph), "made")


# ── when ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "at"),
    [
        (Fault(1000.0, CUT, 0, 1, 2000.0, False), 1202.0),  # the beat of 900 was heard at 902
        (Fault(1003.0, CUT, 0, 1, 2000.0, False), 1302.0),  # that of 1000 at 1002
        (Fault(1002.0, CUT, 0, 1, 2000.0, False), 1202.0),  # it arrives as the link fails
        (Fault(1010.0, CRASH, 1, -1, 2000.0, False), 1305.0),  # the neighbour at 5 ms notices last
        (Fault(1.0, CUT, 0, 1, 2000.0, False), 300.0),  # nothing was heard yet
    ],
)
def test_a_failure_is_noticed_when_the_last_one_concerned_has_missed_heartbeats_for_long_enough(
    fault: Fault, at: float
) -> None:
    assert noticed(overlay_of([(0, 1, 2.0), (1, 2, 5.0)]), Failover(), fault) == at


def test_what_comes_and_goes_waits_longer_each_time() -> None:
    at_once, held, never = (Failover(rejoin=name, hold_down=10.0) for name in ("at-once", "hold-down", "never"))  # type: ignore[arg-type]
    assert [waits(at_once, n) for n in (1, 2, 3, 4)] == [0, 10, 20, 40]
    assert [waits(held, n) for n in (1, 2, 3)] == [10, 20, 40]
    assert waits(never, 1) == float("inf")


def test_what_was_down_for_less_than_it_takes_to_notice_changes_no_tree(tmp_path: Any) -> None:
    record, _ = run("time,kind,broker,until\n500,crash,2,520\n", {"failover": "replace", **SOON}, tmp_path)
    assert record["detections"] == record["switchovers"] == record["switchover_messages"] == 0
    # Six brokers of two links send at 10, 20, …; the one that is down does not at 500 and 510.
    assert record["heartbeats"] == 12 * int(record["finished"] // 10) - 2 * 2


# ── which ──────────────────────────────────────────────────────────────────────────────────────────────────

# Two squares that share the link 1–4; the longest link of either is spare.
SQUARES = [(0, 1, 1.0), (1, 2, 1.0), (0, 3, 1.0), (3, 4, 3.0), (1, 4, 1.0), (2, 5, 1.0), (4, 5, 2.0)]


def test_a_replacement_is_the_shortest_that_keeps_a_tree_and_other_links_keep_their_tables() -> None:
    overlay = overlay_of(SQUARES)
    first = spanning(overlay, None)

    def avoid(a: int, b: int) -> int:
        return 2 * ({a, b} == {1, 4})

    tree = tree_around(overlay, "replace", first, first, -2, avoid)
    assert {*tree.graph.edges} == {*first.graph.edges} - {(1, 4)} | {(4, 5)}
    assert (tree.name, tree.shared, tree.root) == (-2, True, first.root)
    assert alike(first, tree) == {(0, 1), (1, 0), (0, 3), (3, 0)}, "1–2–5–4 is the cycle"
    back = tree_around(overlay, "replace", first, tree, -3, lambda a, b: 0)
    assert {*back.graph.edges} == {*first.graph.edges}


def test_a_dead_broker_hangs_on_one_of_its_links_until_it_is_back() -> None:
    overlay = overlay_of(SQUARES)
    first = spanning(overlay, None)
    tree = tree_around(overlay, "recompute", first, first, -2, lambda a, b: 2 * (1 in (a, b)))
    assert tree.graph.degree[1] == 1
    assert nx.is_tree(tree.graph)


def test_shortest_paths_are_made_anew_or_repaired_with_few_links() -> None:
    overlay = overlay_of(SQUARES)
    first = trees_of(overlay, "per-source", None)[3]

    def avoid(a: int, b: int) -> int:
        return 2 * ({a, b} == {0, 1})

    anew = tree_around(overlay, "recompute", first, first, named(3, 1, 6), avoid)
    assert (anew.name, anew.root, anew.shared) == (9, 3, False)
    assert anew.level == {3: 0, 0: 1, 4: 1, 1: 2, 5: 2, 2: 3}
    repaired = tree_around(overlay, "replace", first, first, 9, avoid)
    assert len({*first.graph.edges} - {*repaired.graph.edges}) == 1


@pytest.mark.parametrize("how", ["replace", "recompute"])
@pytest.mark.parametrize("trees", ["spanning", "per-source"])
def test_a_long_way_of_links_that_are_held_is_better_than_one_that_is_down(how: str, trees: str) -> None:
    overlay = overlay_of([(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0), (4, 5, 1.0), (5, 0, 1.0)])
    first = trees_of(overlay, trees, None)[{"spanning": SHARED, "per-source": 0}[trees]]
    tree = tree_around(overlay, how, first, first, 6, lambda a, b: 2 if {a, b} == {0, 5} else 1)
    assert {*tree.graph.edges} == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)}


def test_versions_have_names_of_their_own() -> None:
    names = [named(base, version, 6) for base in (SHARED,) for version in range(3)]
    assert names == [-1, -2, -3]
    assert [named(base, version, 6) for version in (0, 1) for base in (0, 5)] == [0, 5, 6, 11]


# ── what it does ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["replace", "recompute"])
@pytest.mark.parametrize("trees", ["spanning", "per-source"])
def test_on_a_ring_only_what_was_under_way_until_a_failure_was_noticed_is_lost_beyond_the_floor(
    tmp_path: Any, how: str, trees: str
) -> None:
    faults = "time,kind,broker,until,state\n1500,crash,2,,kept\n"
    none, before = run(faults, {"trees": trees}, tmp_path)
    record, tables = run(faults, {"trees": trees, "failover": how, **SOON}, tmp_path)
    lost, lost_before = (found["due"] - found["due_delivered"] for found in (record, none))
    assert record["unavoidable"] == none["unavoidable"] < lost < lost_before
    assert record["missed"] == record["duplicates"] == record["unaccounted"] == 0
    times = tables["faults"].to_pandas().set_index("kind")["time"]
    assert 1500 < times["detected"] < times["switched"] <= times["converged"] < 1560
    # Whoever publishes later reaches as many as there would be without the dead one's clients.
    assert deliveries_after(tables, 1560) > deliveries_after(before, 1560)
    assert record["switchover_messages"] > 0


def test_a_switch_over_takes_as_long_as_from_the_notice_that_called_for_it(tmp_path: Any) -> None:
    """Broker 5, the end of a tail, is known to be down long before a cut calls for another tree."""
    faults = "time,kind,broker,neighbour\n500,crash,5,\n900,cut,1,2\n"
    record, _ = run(faults, {"failover": "replace", **SOON}, tmp_path, overlay=tailed(tmp_path))
    assert (record["detections"], record["switchovers"]) == (2, 1)
    assert 0 < record["switching"] < 100


def deliveries_after(tables: Any, time: float) -> int:
    return int((tables["deliveries"].to_pandas()["time"] > time).sum())


def test_once_all_know_what_is_down_only_pairs_without_a_way_are_excused(tmp_path: Any) -> None:
    """Copies for the dead broker, a leaf, are still lost, which excuses no other loss of the same event."""
    file = tmp_path / "faults.csv"
    file.write_text("time,kind,broker,until,state\n1500,crash,4,,kept\n")
    planned = plan({**RING, "routing": {"failover": "replace", **SOON}, "faults": {"file": str(file)}}).runs[0]
    tables, _ = simulate(planned)
    stream = streams(planned.seed)
    workload = workload_of(planned.experiment, stream)
    rules = rules_of(settings_of(planned.experiment, workload))
    assert oracle.judge(workload, tables, rules).missed == 0
    deliveries, faults = tables["deliveries"].to_pandas(), tables["faults"].to_pandas()
    whole = faults.loc[faults["kind"] == "converged", "time"].min()
    lost = set(faults.loc[(faults["kind"] == "link-down") & (faults["time"] > whole), "event"])
    late = deliveries[deliveries["event"].isin(lost) & (deliveries["time"] > whole + 50)].index
    assert len(late)
    spoilt = pa.Table.from_pandas(deliveries.drop(late[0]), preserve_index=False)
    assert oracle.judge(workload, {**tables, "deliveries": spoilt}, rules).missed == 1


def tailed(tmp_path: Any) -> dict[str, str]:
    """A ring of four with a tail: brokers 4 and 5."""
    graph = tmp_path / "tail.edges"
    graph.write_text("0 1 1\n1 2 1\n2 3 1\n3 0 9\n3 4 1\n4 5 1\n")
    return {"file": str(graph)}


def test_links_off_the_cycle_send_nothing_when_trees_switch(tmp_path: Any) -> None:
    """Brokers 4 and 5 learn nothing new from each other."""
    faults = "time,kind,broker,neighbour\n500,cut,1,2\n"
    _, tables = run(faults, {"strategy": "simple", "failover": "replace", **SOON}, tmp_path, overlay=tailed(tmp_path))
    control = tables["control"].to_pandas()
    new = control[(control["time"] > 500) & (control["source"] >= 0)]
    assert {frozenset(link) for link in new[["source", "target"]].itertuples(index=False)} == {
        frozenset(link) for link in [(0, 1), (0, 3), (2, 3)]
    }
    assert set(new["kind"]) == {"subscribe"}, "nobody has to take anything back"


def ring_with_a_tail(strategy: str = "simple", **settings: Any) -> Network:
    """Brokers 0 to 3 on a ring whose spare link is 0–3; broker 4 hangs on broker 0, so the ledger for it is kept."""
    overlay = overlay_of([(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (0, 3, 9.0), (0, 4, 1.0)])
    options = RoutingOptions(np.array([[0.0, 100.0]]))
    return Network(overlay, Settings(options, strategy=strategy, failover=Failover(), **settings), streams(1))


def interval(low: float, high: float) -> Filter:
    return Filter.of_box(np.array([[low, high]]))


def cut(network: Network, a: int, b: int) -> None:
    """It is noticed at once."""
    assert network.versions is not None
    network.outages.cut(a, b)
    network.versions.detect((a, b))


def delivered(network: Network) -> list[dict[str, int]]:
    return list(network.recorder.tables()["deliveries"].select(["event", "subscription"]).to_pylist())


@pytest.mark.parametrize("subscription", [0, 7])
def test_every_subscription_of_the_lost_side_is_told_again_and_stays_after_the_old_tree_is_retired(
    subscription: int,
) -> None:
    """Broker 4 hears of it once more from broker 0, which forgets that it had heard of it from broker 1."""
    network = ring_with_a_tail()
    network.subscribe(2, subscription, interval(10, 20))
    network.run()
    cut(network, 0, 1)
    network.run()
    network.check()
    for event, publisher in enumerate((0, 4)):
        network.publish(publisher, event, np.array([15.0]))
        network.run()
    assert delivered(network) == [{"event": event, "subscription": subscription} for event in (0, 1)]


def test_what_only_the_old_tree_asked_for_is_taken_back_when_it_is_retired() -> None:
    """The client leaves while its broker cannot be reached on the old tree, and the new one never hears of it."""
    network = ring_with_a_tail()
    network.subscribe(1, 7, interval(10, 20))
    network.run()
    cut(network, 0, 1)
    network.unsubscribe(7)
    network.run()
    network.check()
    tables = [table for broker in network.brokers for part in broker.parts.values() for table in part.tables.values()]
    assert not any(table.filters for table in tables)


def test_a_client_that_changes_its_mind_while_trees_switch_is_not_taken_for_its_former_self() -> None:
    """It leaves and comes back under the same id while broker 0 still knows its old interest from the lost side."""
    network = ring_with_a_tail()
    network.subscribe(1, 7, interval(10, 20))
    network.run()
    cut(network, 0, 1)
    network.unsubscribe(7)
    network.subscribe(1, 7, interval(50, 60))
    network.run()
    network.check()
    for event, value in enumerate((55.0, 15.0)):
        network.publish(4, event, np.array([value]))
        network.run()
    assert delivered(network) == [{"event": 0, "subscription": 7}]


def ring_of_six(strategy: str) -> tuple[Network, tuple[int, int]]:
    """A network on a ring, and the spare link, which is not 0–5."""
    stream = streams(1)
    overlay = build_overlay("ring", 6, stream("overlay"), {"kind": "constant", "value": 5.0})
    options = RoutingOptions(np.array([[0.0, 100.0]]))
    network = Network(overlay, Settings(options, strategy=strategy, failover=Failover()), stream)
    (spare,) = {(min(link), max(link)) for link in overlay.graph.edges} - {
        (min(link), max(link)) for link in overlay.tree.edges
    }
    assert spare != (0, 5)
    return network, spare


def test_an_event_on_its_way_does_not_change_to_a_tree_that_has_taken_over_since() -> None:
    """It goes from 0 to 5 the long way round; meanwhile their link is back, and a tree has it and lacks the spare."""
    network, _ = ring_of_six("flooding")
    assert network.versions is not None
    network.subscribe(5, 7, interval(10, 20))
    network.run()
    cut(network, 0, 5)
    network.run()
    network.publish(0, 0, np.array([15.0]))
    network.outages.heal(0, 5)
    network.versions.rejoin((0, 5))
    network.run()
    network.check()
    assert network.recorder.tables()["deliveries"].num_rows == 1


def test_an_event_that_has_gone_both_ways_round_is_not_delivered_twice() -> None:
    """It has passed 0–5 when that is cut. The tree that takes over closes the ring where its two ways end."""
    network, spare = ring_of_six("flooding")
    assert network.versions is not None
    for number, end in enumerate(spare):
        network.subscribe(end, number, interval(10, 20))
    network.run()
    network.publish(0, 0, np.array([15.0]))
    network.env.run(until=network.env.now + 6.0)
    cut(network, 0, 5)
    network.run()
    network.check()
    assert sorted(network.recorder.tables()["deliveries"]["subscription"].to_pylist()) == [0, 1]


def test_events_follow_the_old_tree_until_the_tables_for_the_new_one_are_filled() -> None:
    """They are published just then, next to the subscriber, on a link that both trees have."""
    network, spare = ring_of_six("simple")
    assert network.versions is not None
    here, there = next(link for link in [(1, 2), (3, 4)] if link != spare)
    network.subscribe(there, 7, interval(10, 20))
    network.run()
    cut(network, 0, 5)
    network.publish(here, 0, np.array([15.0]))
    network.run()
    network.check()
    assert network.recorder.tables()["deliveries"].num_rows == 1


def test_an_event_follows_its_version_to_the_end_though_another_has_taken_over() -> None:
    """Flooding needs no tables, so the new tree serves at once, while the event is on its way round the old one."""
    stream = streams(1)
    overlay = build_overlay("ring", 6, stream("overlay"), {"kind": "constant", "value": 5.0})
    options = RoutingOptions(np.array([[0.0, 100.0]]))
    network = Network(overlay, Settings(options, strategy="flooding", failover=Failover()), stream)
    versions = network.versions
    assert versions is not None
    network.subscribe(3, 7, Filter.of_box(np.array([[10.0, 20.0]])))
    network.run()
    network.publish(0, 0, np.array([15.0]))
    network.outages.cut(0, 5)
    versions.detect((0, 5))
    network.run()
    network.check()
    assert network.recorder.tables()["deliveries"].num_rows == 1
    (name,) = network.trees
    assert name == -2, "the old version was retired afterwards"
    retired = weakref.ref(network.trees[name])
    network.outages.heal(0, 5)
    versions.rejoin((0, 5))
    network.run()
    gc.collect()
    assert retired() is None, "nothing is left of a version but what the trace has of it"
    assert [row[0] for row in versions.rows()] == [-2, -2, -3, -3]


def test_a_broker_that_is_down_while_versions_come_and_go_finds_out_when_it_is_back() -> None:
    stream = streams(1)
    overlay = build_overlay("ring", 5, stream("overlay"), {"kind": "constant", "value": 1.0})
    settings = Settings(RoutingOptions(np.array([[0.0, 100.0]])), strategy="simple", trees="per-source")
    network = Network(overlay, replace(settings, failover=Failover()), stream)
    versions = network.versions
    assert versions is not None
    network.subscribe(4, 7, Filter.of_box(np.array([[10.0, 20.0]])))
    network.run()
    network.outages.crash(4, keep_state=True)
    versions.detect((4, -1))
    network.run()
    for link in ((0, 1), (2, 3)):
        network.outages.cut(*link)
        versions.detect(link)
        network.run()
    for link in ((0, 1), (2, 3)):
        network.outages.heal(*link)
        versions.rejoin(link)
        network.run()
    network.outages.restart(4)  # its links may not be used elsewhere yet, so no other version follows
    versions.hold((4, -1))
    network.run()
    network.check()
    network.publish(0, 0, np.array([15.0]))
    network.run()
    assert network.recorder.tables()["deliveries"].num_rows == 1


def test_a_broker_that_is_back_as_a_version_is_retired_forgets_it_once() -> None:
    """It serves a client's request first; so it finds out when it starts, and the marker waits behind that."""
    network = ring_with_a_tail("flooding", service={"kind": "constant", "value": 0.5})
    network.outages.crash(4, keep_state=True)
    network.subscribe(4, 7, interval(10, 20))
    network.run()
    cut(network, 0, 1)
    assert network.versions is not None
    while network.versions.current(0) == -1:
        network.env.step()
    network.outages.restart(4)
    network.run()
    network.check()
    assert [*network.brokers[4].parts] == [*network.trees] == [-2]


def test_what_is_told_of_a_run_that_switched_over_is_what_its_trace_has(tmp_path: Any) -> None:
    file = tmp_path / "faults.csv"
    file.write_text("time,kind,broker,until,state\n1500,crash,2,,kept\n")
    data = {**RING, "routing": {"failover": "replace", **SOON}, "faults": {"file": str(file)}}
    assert not run_sweep(plan(data), tmp_path / "out").failures
    trace = RunTrace(tmp_path / "out", None)
    deliveries = trace.read("deliveries")
    early, late = (deliveries.sort_values("time").iloc[place] for place in (0, -1))
    for row, switched in ((early, False), (late, True)):
        words = list(explain(tmp_path / "out", int(row["event"]), int(row["subscription"])))
        assert any("it follows the tree that took over" in line for line in words) == switched
        assert "delivered" in words[-1]
    found = find(trace, None)
    assert "simulated again" in found.said
    sizes = Counter((b, n) for b, n, _, _, state, _ in found.tables.rows() if state in (HELD, LEAVING))
    final = trace.read("tables").query(
        "final and entries > 0 and broker != 2"
    )  # what is down has not heard of the switch
    sizes = Counter({place: size for place, size in sizes.items() if place[0] != 2})
    assert {(row.broker, row.neighbour): row.entries for row in final.itertuples()} == sizes
    assert "in words" in next(tell(plan(data), tmp_path / "out", 1))


# ── what is refused ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"routing": {"advertisements": "simple"}}, "advertisements"),
        ({"routing": {"strategy": "hierarchical"}}, 'strategy = "hierarchical"'),
        (
            {"routing": {"heartbeat": 100.0, "detect_after": 50.0}},
            "detect_after is 50 ms; it must be at least heartbeat, 100 ms",
        ),
        ({"matching": {"k": 3, "scope": "network"}}, 'matching.scope = "network"'),
        ({"covering": {"method": "zorder", "epsilon_per_level": [0.1]}}, "covering.epsilon_per_level"),
        ({"run": {"engine": "compiled"}}, "does not support routing.failover = 'replace'"),
    ],
)
def test_what_does_not_go_with_failover_is_refused_by_name(sections: dict[str, Any], says: str) -> None:
    routing = {"failover": "replace", **sections.get("routing", {})}
    with pytest.raises(CoverlayError, match=says):
        simulate(plan({**RING, "faults": {"crash_fraction": 0.2}, **sections, "routing": routing}).runs[0])


def test_without_faults_failover_has_no_effect_and_says_so() -> None:
    with pytest.raises(
        CoverlayError, match=r"routing.failover = 'replace' has no effect: nothing fails: see \[faults\]"
    ):
        plan({**RING, "routing": {"failover": "replace"}})
