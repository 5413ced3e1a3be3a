"""Subscriptions that exist before time 0: route by route or hop by hop, the same tables and the same ledgers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from broker.network import Network
from sim.compiled.engine import Engine
from sim.compiled.records import SENT
from sim.experiment.build import overlay_of, settings_of, workload_of
from sim.experiment.plan import plan
from sim.random_streams import streams
from sim.workloads.arrivals import schedule
from sim.workloads.contract import filter_of


def built(data: dict[str, Any]) -> tuple[Engine, Network]:
    run = plan(data).runs[0]
    experiment, stream = run.experiment, streams(run.seed)
    overlay, workload = overlay_of(experiment, stream), workload_of(experiment, stream)
    timeline = schedule(experiment.arrivals.kind, stream, workload, overlay.brokers, **experiment.arrivals.options)
    timeline.check()
    settings = settings_of(experiment, workload)
    network = Network(overlay, settings, stream)
    homes = timeline.preloaded.tolist()
    network.preload(homes, [filter_of(workload, row) for row in range(len(homes))])
    network.check()
    return Engine(overlay, settings, workload, timeline, 0, stream), network


def in_table(engine: Engine, number: int) -> list[int]:
    """The subscriptions in a table."""
    table = engine.arrays.tables[number]
    entries = engine.growing.entries[table["first"] : table["first"] + table["used"]]
    assert (np.diff(entries) > 0).all(), "in the order of filters"
    found: list[int] = engine.arrays.filters["subscription"][entries].tolist()
    return found


def experiment(strategy: str, mode: str, trees: str = "spanning", **covering: Any) -> dict[str, Any]:
    return {
        "name": "bulk",
        "overlay": {"kind": "watts-strogatz" if trees == "per-source" else "random-tree", "brokers": 9},
        "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 300, "events": 0},
        "arrivals": {"kind": "preloaded"},
        "routing": {"strategy": strategy, "mode": mode, "trees": trees},
        "covering": covering,
    }


CASES = [
    experiment("simple", "lazy"),
    experiment("identity", "lazy"),
    experiment("covering", "lazy"),
    experiment("covering", "active"),
    experiment("covering", "active", method="zorder-emulated", epsilon=0.3),
    experiment("covering", "lazy", method="kdtree", epsilon=0.1),
    experiment("covering", "lazy", trees="per-source"),
    experiment("hierarchical", "active"),
]


@pytest.mark.parametrize("data", CASES, ids=lambda d: f"{d['routing']['strategy']}-{d['routing']['mode']}")
def test_tables_and_ledgers_are_those_of_hop_by_hop(data: dict[str, Any]) -> None:
    engine, network = built(data)
    nodes = engine.growing.nodes[: engine.arrays.run["nodes"][0]].copy()
    if data["routing"]["strategy"] == "simple":  # everything is sent, and nothing is noted down about it
        nodes["coverer"] = SENT
    for route, row in enumerate(engine.arrays.routes):
        part = network.brokers[row["source"]].parts[int(row["tree"])]
        ledger = part.ledgers[int(row["target"])]
        on_route = nodes["route"] == route
        mine = nodes[on_route]
        coverer_of = mine["coverer"]
        sent = mine[coverer_of == SENT]["subscription"]
        assert sorted(ledger.sent) == sorted(sent.tolist())
        held = mine[coverer_of >= 0]
        coverers = nodes[coverer_of[coverer_of >= 0]]["subscription"]
        suppressed = dict(zip(held["subscription"].tolist(), coverers.tolist(), strict=True))
        assert {s: coverer for s, (_, (coverer,)) in ledger.suppressed.items()} == suppressed
        table = part.at(int(row["target"])).tables[int(row["source"])]
        assert sorted(table.filters) == sorted(in_table(engine, len(network.brokers) + route))
        for coverer, dependants in ledger._dependants.items():
            at = mine["first"][mine["subscription"] == coverer][0]
            chain = []
            while at >= 0:
                chain.append(int(nodes[at]["subscription"]))
                at = nodes[at]["next"]
            assert chain == list(dependants), "in order of arrival: departures depend on it"
    assert [len(b.local) for b in network.brokers] == engine.arrays.brokers["local"].tolist()
    for number, broker in enumerate(network.brokers):
        assert sorted(broker.local.filters) == sorted(in_table(engine, number))
    messages = [operation.messages for operation in network._operations]
    assert engine.arrays.operations["messages"].tolist() == messages
    assert sum(messages) > 0
    assert np.array_equal(engine.homes, engine.timeline.preloaded)
