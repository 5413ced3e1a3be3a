"""Faults by file and by fraction: what is refused, what is lost, and what repair costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from broker.network import Network
from broker.settings import Settings
from coverlay import CoverlayError
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import build_overlay
from sim.experiment.faults import read_faults
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.random_streams import streams

DATA = {
    "name": "faulty",
    "overlay": {"kind": "line", "brokers": 4},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 60, "events": 120},
    "arrivals": {"kind": "static", "publish_rate": 0.2},
}


def delivered(network, *columns):
    """These columns of the deliveries, a tuple per row."""
    table = network.tables()["deliveries"]
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def run_with(tmp_path, text, **sections):
    path = tmp_path / "faults.csv"
    path.write_text(text)
    tables, _ = simulate(plan({**DATA, **sections, "faults": {"file": str(path)}}).runs[0])
    return tables["run"].to_pylist()[0], tables


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("time,kind\n1,crash\n", "broker"),
        ("time,kind,broker,colour\n1,crash,0,red\n", "colour"),
        ("time,kind,broker\n1,explode,0\n", "explode"),
        ("time,kind,broker\nsoon,crash,0\n", "soon"),
        ("time,kind,broker\n-1,crash,0\n", "-1"),
        ("time,kind,broker\nnan,crash,0\n", "nan"),
        ("time,kind,broker\n1,crash,x\n", "'x'"),
        ("time,kind,broker\n1,crash,9\n", "broker '9'"),
        ("time,kind,broker,neighbour\n1,cut,0,3\n", "line 2: there is no link b0–b3; b0 has links to: b1$"),
        ("time,kind,broker,neighbour\n1,crash,0,3\n", "a crash affects one broker"),
        ("time,kind,broker\n1,cut,0\n", "neighbour"),
        ("time,kind,broker,until\n5,crash,0,4\n", "after"),
        ("time,kind,broker,until,state\n5,crash,0,9,frozen\n", "frozen"),
        ("time,kind,broker,until\n5,crash,0,9\n7,crash,0,12\n", "still down"),
    ],
)
def test_bad_fault_files_are_refused_in_a_sentence(tmp_path, text, mentions):
    with pytest.raises(CoverlayError, match=mentions):
        run_with(tmp_path, text)


def test_a_broker_may_fail_again_at_the_moment_it_is_back(tmp_path):
    _, tables = run_with(tmp_path, "time,kind,broker,until\n1200,crash,1,1250\n1250,crash,1,1300\n")
    faults = tables["faults"].to_pandas()
    assert faults[faults["kind"].isin(["crash", "restart"])]["time"].tolist() == [1200, 1250, 1250, 1300]


def test_a_fault_file_of_a_spreadsheet_is_read(tmp_path):
    text = "\ufefftime, kind ,broker,neighbour,until\r\n1200,crash , b1 ,,1300\r\n"
    record, _ = run_with(tmp_path, text)
    assert record["missed_fault"] > 0


RING = {"kind": "ring", "brokers": 4, "latency": {"kind": "constant", "value": 1}}


def test_a_cut_of_a_spare_link_costs_nothing_and_excuses_nothing(tmp_path):
    """Equal latencies go by broker numbers, so 2–3 is the spare one."""
    record, tables = run_with(tmp_path, "time,kind,broker,neighbour,until\n1,cut,b2,b3,1300\n", overlay=RING)
    assert record["due"] == record["due_delivered"] > 0
    assert (record["links"], record["spare_links"]) == (3, 1)
    faults = tables["faults"].to_pandas()
    assert faults["kind"].tolist() == ["cut", "converged", "heal", "converged"]
    assert faults["time"][1] < 60, "as soon as no request is under way"


def test_what_spare_links_would_have_saved_is_told_apart_from_what_is_unavoidable(tmp_path):
    """One broker of a ring is down: the others still have a way round, which a tree does not take."""
    text = "time,kind,broker,until,state\n1000,crash,1,,kept\n"
    record, _ = run_with(tmp_path, text, overlay=RING, routing={"strategy": "flooding"})
    line, _ = run_with(tmp_path, text, routing={"strategy": "flooding"})  # no way round
    lost, lost_on_line = (found["due"] - found["due_delivered"] for found in (record, line))
    assert 0 < record["unavoidable"] < lost
    assert 0 < line["unavoidable"] == lost_on_line


def test_a_missing_fault_file_is_named():
    with pytest.raises(CoverlayError, match="nowhere"):
        read_faults("nowhere.csv")


@pytest.mark.parametrize(
    "faults",
    [{"crash_fraction": 1.5}, {"cut_fraction": -0.1}, {"downtime": 0.0}, {"window": [0.5, 0.2]}, {"state": "frozen"}],
)
def test_impossible_rates_are_refused(faults):
    with pytest.raises(CoverlayError, match=next(iter(faults))):
        plan({**DATA, "faults": faults})


@pytest.mark.parametrize("state", ["lost", "kept"])
@pytest.mark.parametrize("strategy", ["simple", "covering", "merging", "hierarchical"])
def test_what_a_crash_costs_is_counted_apart_and_repaired(tmp_path, state, strategy):
    record, tables = run_with(
        tmp_path, f"time,kind,broker,until,state\n1200,crash,1,1350,{state}\n", routing={"strategy": strategy}
    )
    assert record["missed_fault"] > 0
    assert record["missed"] == record["duplicates"] == record["spurious"] == 0
    faults = tables["faults"].to_pandas()
    assert faults["kind"].tolist()[0] == "crash"
    assert "converged" in set(faults["kind"])


def test_reconnection_exchanges_summaries_not_everything(tmp_path):
    record, tables = run_with(
        tmp_path, "time,kind,broker,neighbour,until\n1200,cut,1,2,1300\n", routing={"strategy": "simple"}
    )
    control = tables["control"].to_pandas()
    after = control[(control["time"] > 1300) & (control["source"] >= 0)]
    # Nothing changed while the link was down: one summary each way, and they agree.
    assert sorted(after["kind"]) == ["summary", "summary"]
    assert record["missed"] == 0


def test_subscriptions_made_during_a_cut_cross_it_afterwards(tmp_path):
    record, tables = run_with(
        tmp_path,
        "time,kind,broker,neighbour,until\n20,cut,1,2,40\n",
        routing={"strategy": "simple"},
    )
    kinds = set(tables["control"].to_pandas()["kind"])
    assert {"summary", "differs", "done"} <= kinds
    final = tables["tables"].to_pandas()
    assert final[final["final"] & (final["neighbour"] >= 0)]["entries"].sum() == 60 * 3
    assert record["missed"] == record["missed_fault"] == 0


def line_of_three(**settings) -> Network:
    stream = streams(1)
    options = RoutingOptions(np.array([[0.0, 100.0]]))
    return Network(build_overlay("line", 3, stream("overlay")), Settings(options, **settings), stream)


@contextmanager
def link_down(network: Network) -> Iterator[None]:
    """What happens while the first link is cut; once it is mended everything must be right."""
    network.run()
    network.outages.cut(0, 1)
    yield
    network.run()
    network.outages.heal(0, 1)
    network.run()
    network.check()


def interval(low: float, high: float) -> Filter:
    return Filter.of_box(np.array([[low, high]]))


def two_clients(strategy: str) -> Network:
    """Both at the first of three brokers."""
    network = line_of_three(strategy=strategy)
    network.subscribe(0, 7, interval(10, 20))
    network.subscribe(0, 8, interval(90, 95))
    return network


@pytest.mark.parametrize("strategy", ["simple", "covering", "merging"])
def test_recovery_compares_filters_and_not_only_ids(strategy):
    """While the link is down a client leaves and comes back under the same id with another interest."""
    network = two_clients(strategy)
    with link_down(network):
        network.unsubscribe(7)
        network.subscribe(0, 7, interval(50, 60))
    for event, value in enumerate((55.0, 15.0)):
        network.publish(2, event, np.array([value]))
    network.run()
    reached = {(row["event"], row["target"]) for row in network.tables()["publications"].to_pylist()}
    assert delivered(network, "event", "subscription") == [(0, 7)]
    assert reached == {(0, 2), (0, 1), (0, 0), (1, 2)}, "nobody asks for 15 any more"


def test_check_notices_an_entry_that_is_not_what_was_sent():
    network = line_of_three(strategy="simple")
    network.subscribe(0, 7, interval(10, 20))
    network.run()
    table = network.brokers[1].parts[-1].tables[0]
    table.remove(7)
    table.add(7, interval(10, 21))
    with pytest.raises(AssertionError):
        network.check()


def test_advertisements_that_changed_during_a_cut_are_mended_too():
    network = line_of_three(strategy="simple", advertisements="simple")
    network.subscribe(2, 7, interval(50, 60))
    network.advertise(0, 1, interval(10, 20))
    with link_down(network):
        network.unadvertise(1)
        network.advertise(0, 1, interval(50, 60))
    network.publish(0, 0, np.array([55.0]))
    network.run()
    assert delivered(network, "subscription") == [(7,)]


@pytest.mark.parametrize("strategy", ["simple", "covering"])
def test_what_left_during_a_cut_is_forgotten_afterwards(strategy):
    network = two_clients(strategy)
    with link_down(network):
        network.unsubscribe(7)
    assert [len(network.brokers[b].parts[-1].tables[b - 1]) for b in (1, 2)] == [1, 1]


def test_every_link_of_a_broker_that_was_down_is_repaired():
    network = line_of_three(strategy="covering")
    network.subscribe(0, 7, interval(10, 20))
    network.subscribe(2, 8, interval(50, 60))
    network.run()
    network.outages.crash(1, keep_state=False)
    network.outages.restart(1)
    network.run()
    network.check()
    for event, (broker, value) in enumerate([(2, 15.0), (0, 55.0)]):
        network.publish(broker, event, np.array([value]))
    network.run()
    assert delivered(network, "subscription") == [(7,), (8,)]


def test_a_broker_without_memory_takes_nothing_back_that_it_has_not_heard_of_yet():
    network = line_of_three(strategy="covering")
    network.subscribe(0, 7, interval(10, 20))
    network.run()
    network.outages.crash(1, keep_state=False)
    network.outages.restart(1)
    network.run()
    kinds = [row[6] for row in network.recorder.rows["control"]]
    assert "unsubscribe" not in kinds, "broker 2 was told to forget what broker 0 still wants"


def test_a_cover_suppresses_nothing_towards_where_it_came_from():
    network = line_of_three(strategy="covering")
    network.subscribe(0, 7, interval(0, 100))
    network.run()
    network.subscribe(1, 8, interval(10, 20))
    network.run()
    network.check()
    network.publish(0, 0, np.array([15.0]))
    network.run()
    assert sorted(delivered(network, "subscription")) == [(7,), (8,)]


def test_the_latency_of_a_delivery_is_that_of_the_whole_way():
    network = line_of_three(strategy="covering")
    network.subscribe(0, 7, interval(10, 20))
    network.run()
    network.publish(2, 0, np.array([15.0]))
    network.run()
    way = network.overlay.latency(2, 1) + network.overlay.latency(1, 0)
    assert delivered(network, "latency") == [(pytest.approx(way),)]
