"""A message is processed when its service begins, what it causes leaves when the service ends, a crash loses that."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from broker.network import Network
from broker.settings import Settings
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import Overlay
from sim.random_streams import streams

DOMAIN = np.array([[0.0, 10.0]])
WIDE, NARROW = (Filter.of_box(np.array([[low, 9.0]])) for low in (0.0, 4.0))
TOOK = {"kind": "constant", "value": 3.0}


def line(brokers: int = 3, service: dict[str, object] = TOOK, **settings: object) -> Network:
    """Brokers in a line, 1 ms apart, each serving for 3 ms."""
    graph = nx.path_graph(brokers)
    nx.set_edge_attributes(graph, 1.0, "latency")
    for broker in graph:
        graph.nodes[broker].update(name=f"b{broker}", x=0.0, y=0.0)
    return Network(
        Overlay(graph, graph, "line"), Settings(RoutingOptions(DOMAIN), service=service, **settings), streams(1)
    )


def rows(network: Network, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = network.tables()[table].to_pylist()
    return found


def test_copies_and_deliveries_leave_when_the_service_ends():
    network = line()
    network.subscribe(2, 7, WIDE)
    network.run()
    assert network.env.now == 3 + 1 + 3 + 1 + 3
    network.publish(0, 0, np.array([5.0]))
    network.run()
    hops = rows(network, "publications")
    assert [(hop["time"], hop["sent"], hop["waited"], hop["service"]) for hop in hops] == [
        (11.0, 11.0, 0.0, 3.0),
        (15.0, 14.0, 0.0, 3.0),
        (19.0, 18.0, 0.0, 3.0),
    ]
    assert [(got["time"], got["latency"]) for got in rows(network, "deliveries")] == [(22.0, 11.0)]
    told = [(row["time"], row["sent"], row["waited"], row["service"]) for row in rows(network, "control")]
    assert told == [(0.0, 0.0, 0.0, 3.0), (4.0, 3.0, 0.0, 3.0), (8.0, 7.0, 0.0, 3.0)]
    assert rows(network, "operations")[0]["finished"] == 11.0


def test_a_table_changes_when_the_service_begins():
    network = line()
    network.subscribe(2, 7, WIDE)
    network.run(until=1.0)
    assert len(network.brokers[2].local) == 1
    assert network.under_way == 1, "the request is not finished before what it causes has left"


@pytest.mark.parametrize("kept", [True, False])
def test_a_crash_in_the_middle_of_a_service_loses_what_would_have_left(kept):
    network = line()
    network.subscribe(1, 7, WIDE)
    network.subscribe(2, 8, WIDE)
    network.run()
    network.publish(0, 0, np.array([5.0]))
    network.run(until=network.env.now + 5.0)  # in the middle of the service at broker 1
    network.outages.crash(1, kept)
    network.run(until=network.env.now + 50.0)
    assert rows(network, "deliveries") == []
    assert [
        (hop["target"], hop["served"], hop["forwarded"], hop["useful"]) for hop in rows(network, "publications")
    ] == [
        (0, 0, 1, False),
        (1, 0, 0, False),
    ]
    assert [(fault["kind"], fault["event"]) for fault in rows(network, "faults")] == [("crash", -1), ("crashed", 0)]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("after", [1.0, 5.0])
@pytest.mark.parametrize("leaves", [True, False])
def test_requests_that_a_crash_caught_in_service_reach_everybody_in_the_end(kept, after, leaves):
    """The ledger believes that it told its neighbours; the comparison after the restart finds out that it did not."""
    network = line()
    network.subscribe(1, 7, NARROW)
    network.run()
    if leaves:
        network.unsubscribe(7)
    else:
        network.subscribe(1, 8, WIDE)
    network.run(until=network.env.now + after)  # 1: at the subscriber's broker, 5: at its neighbour
    network.outages.crash(1 if after < 3 else 2, kept)
    network.run(until=network.env.now + 20.0)
    network.outages.restart(1 if after < 3 else 2)
    network.run()
    network.check()
    assert network.under_way == 0
    assert [len(broker.parts[-1].tables[1]) for broker in (network.brokers[0], network.brokers[2])] == (
        [0, 0] if leaves else [2, 2]
    )


def test_the_next_message_begins_when_the_one_before_has_left():
    network = line()
    network.subscribe(1, 7, WIDE)
    network.run()
    for event in range(3):
        network.publish(0, event, np.array([5.0]))
    network.run()
    at_publisher = [hop for hop in rows(network, "publications") if hop["target"] == 0]
    assert [hop["waited"] for hop in at_publisher] == [0.0, 3.0, 6.0]
    assert [got["latency"] for got in rows(network, "deliveries")] == [7.0, 10.0, 13.0]


def test_a_service_that_a_crash_ended_lasted_until_then():
    network = line(service={"kind": "work", "profile": "disk"}, strategy="simple")
    network.subscribe(1, 7, WIDE)
    network.run(until=1.0)
    network.publish(1, 0, np.array([5.0]))
    (whole,) = rows(network, "publications")
    assert min(whole["on_tables"] + whole["service"], whole["on_matching"]) > 0
    network.run(until=1.0 + whole["service"] / 4)
    network.outages.crash(1, True)
    for took in ("service", "on_tables", "on_matching"):
        assert rows(network, "publications")[0][took] == pytest.approx(whole[took] / 4)
    assert rows(network, "publications")[0]["served"] == 0
    network.outages.restart(1)
    network.run()
    network.publish(1, 1, np.array([5.0]))
    network.run()
    assert rows(network, "publications")[1]["service"] == pytest.approx(whole["service"]), "the next one is whole"


def test_a_process_of_ones_own_runs_beside_the_brokers():
    """As docs/engines.md has it, and one that only watches."""
    network, seen = line(service={"kind": "none"}), []

    def publisher():
        for event, value in enumerate((5.0, 9.5, 6.0)):
            yield network.env.timeout(5.0)
            network.publish(0, event, np.array([value]))

    def watcher():
        for _ in range(4):
            yield network.env.timeout(4.5)
            seen.append(len(rows(network, "deliveries")))

    network.subscribe(2, 7, WIDE)
    network.env.process(publisher())
    network.env.process(watcher())
    network.run()
    assert [(got["event"], got["time"]) for got in rows(network, "deliveries")] == [(0, 7.0), (2, 17.0)]
    assert seen == [0, 1, 1, 2]
