"""Drawn stories of fail-over: brokers crash, links are cut, clients come, leave and publish, on graphs with cycles.

The oracle judges every delivery: with fail-over it excuses, once the network has converged, only what no way through
the graph could have delivered. At the end everything is back; then every broker is consistent, versions that nobody
follows are retired, and tables are those of a network that has never seen anything else than the final tree.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language.schema import Schema
from broker.network import Network
from broker.trace.schema import LOSSES, MUST_BE_ZERO
from routing.overlay.trees import SHARED
from sim.experiment import oracle
from sim.experiment.build import inputs_of, overlay_of, rules_of
from sim.experiment.config import parse
from sim.experiment.engines import Look, run_simpy
from sim.random_streams import streams
from sim.workloads import Workload
from sim.workloads.contract import filter_of

LASTS = 400  # ms in which events are published; afterwards everything is back, or has a rest of its time
ALIKE = ({"strategy": "simple"}, {"strategy": "identity"}, {"strategy": "covering", "mode": "active"})
ROUTING = (
    *ALIKE,
    {"strategy": "flooding"},
    {"strategy": "covering"},
    {"strategy": "covering", "mode": "prune"},
    {"strategy": "covering", "cover": "union"},
    {"strategy": "merging"},
    {"strategy": "merging", "merge_waste": 0.5},
)
TIME = st.integers(0, LASTS).map(float)
LEVEL = st.integers(0, 4).map(lambda number: number / 4)
SIDES = st.tuples(LEVEL, LEVEL).map(sorted)


@st.composite
def workloads(draw: Any, brokers: int) -> Workload:
    home = st.integers(0, brokers - 1)
    stays = st.one_of(st.just(math.inf), st.integers(1, LASTS).map(float))
    lives = draw(st.lists(st.tuples(TIME, stays, home, SIDES, SIDES), min_size=2, max_size=12))
    events = draw(st.lists(st.tuples(TIME, home, LEVEL, LEVEL), min_size=5, max_size=25))
    came, lasts, homes, *sides = zip(*lives, strict=True)
    times, publishers, *values = zip(*sorted(events), strict=True)
    lo, hi = (np.array([[side[end] for side in row] for row in zip(*sides, strict=True)]) for end in (0, 1))
    return Workload(
        Schema.uniform(2),
        lo,
        hi,
        np.ones(lo.shape, bool),
        np.arange(1.0, 1.0 + len(lo)),
        np.ones(lo.shape),
        np.array(values).T,
        homes=np.array(homes),
        publishers=np.array(publishers),
        times=np.array(times),
        came=np.array(came),
        left=np.array(came) + np.array(lasts),
    )


@st.composite
def stories(draw: Any) -> tuple[dict[str, Any], Workload, list[tuple[Any, ...]]]:
    brokers, routing = draw(st.integers(3, 7)), dict(draw(st.sampled_from(ROUTING)))
    routing["trees"] = draw(st.sampled_from(["spanning", "per-source"]))
    routing["failover"] = draw(st.sampled_from(["replace", "recompute"]))
    routing["rejoin"] = draw(st.sampled_from(["at-once", "at-once", "hold-down", "never"]))
    routing |= {"heartbeat": 5.0, "detect_after": draw(st.sampled_from([5.0, 20.0])), "hold_down": 15.0}
    latencies = [{"kind": "uniform", "low": 0.0, "high": 6.0}, {"kind": "constant", "value": 1.0}]
    overlay = {
        "kind": draw(st.sampled_from(["ring", "watts-strogatz", "barabasi-albert", "grid"])),
        "brokers": brokers,
        "latency": draw(st.sampled_from(latencies)),
    }
    data = {
        "name": "story",
        "overlay": overlay,
        "routing": routing,
        "broker": {"service": draw(st.sampled_from([{"kind": "none"}, {"kind": "constant", "value": 0.5}]))},
        "links": {"jitter": draw(st.sampled_from([0.0, 3.0]))},
    }
    graph = overlay_of(parse(data, "it"), streams(1)).graph
    targets = [("crash", broker, "") for broker in graph] + [("cut", *link) for link in graph.edges]
    faults: list[tuple[Any, ...]] = []
    for target in draw(st.lists(st.sampled_from(targets), max_size=4, unique=True)):
        ends = sorted(draw(st.lists(TIME, min_size=1, max_size=4, unique=True)))
        state = draw(st.sampled_from(["lost", "kept"])) if target[0] == "crash" else ""
        faults += [
            (begin, *target, end, state) for begin, end in zip(ends[::2], [*ends[1::2], LASTS + 50.0], strict=False)
        ]
    return data, draw(workloads(brokers)), faults


def play(data: dict[str, Any], workload: Workload, faults: list[tuple[Any, ...]]) -> tuple[Network, oracle.Verdict]:
    """The network after a story, and what the oracle says about it."""
    with tempfile.TemporaryDirectory() as folder:
        file, seen = Path(folder) / "faults.csv", list[Network]()
        rows = (",".join(map(str, fault)) for fault in faults)
        file.write_text("\n".join(["time,kind,broker,neighbour,until,state", *rows]))
        given = {**data, "faults": {"file": str(file)}} if faults else data
        parsed, stream = parse(given, "it"), streams(1)
        inputs = inputs_of(parsed, overlay_of(parsed, stream), workload, stream)
        tables = run_simpy(replace(inputs, look=Look(None, seen.append))).tables
    verdict = oracle.judge(workload, tables, rules_of(inputs.settings))
    assert not any(getattr(verdict, name) for name in MUST_BE_ZERO), verdict
    assert verdict.due == verdict.due_delivered + sum(getattr(verdict, name) for name in LOSSES)
    assert verdict.unavoidable <= verdict.due - verdict.due_delivered
    return seen[0], verdict


def entries(network: Network) -> dict[tuple[int, int, int], list[bytes]]:
    """What every table asks for, by broker, neighbour and source of the tree."""
    return {
        (broker.number, neighbour, SHARED if tree.shared else tree.root): sorted(
            filter.box.tobytes() for filter in part.tables[neighbour].filters.values()
        )
        for broker in network.brokers
        for tree, part in ((part.tree, part) for part in broker.parts.values())
        for neighbour in part.tables
    }


def fresh(network: Network, workload: Workload) -> Network:
    """The same subscriptions on the same final trees, made one by one where nothing ever fails."""
    overlay = network.overlay
    if network.settings.trees == "spanning":
        (tree,) = network.trees.values()
        overlay = replace(overlay, tree=tree.graph)
    other = Network(overlay, replace(network.settings, failover=None), streams(1))
    for number, home in enumerate(workload.homes.tolist()):
        if workload.left[number] == math.inf:
            other.subscribe(home, number, filter_of(workload, number))
            other.run()
    return other


def tell(story: tuple[dict[str, Any], Workload, list[tuple[Any, ...]]]) -> None:
    data, workload, _ = story
    network, _ = play(*story)
    network.check()
    versions = network.versions
    assert versions is not None
    assert not versions.followed, "an event counts as under way that is over"
    assert versions.repairing == network.under_way == 0
    routing = data["routing"]
    assert len(network.trees) == (1 if routing["trees"] == "spanning" else len(network.brokers))
    alike = {key: routing[key] for key in ("strategy", "mode") if key in routing} in ALIKE
    if alike and (routing["trees"] == "spanning" or routing["rejoin"] == "at-once"):
        assert entries(network) == entries(fresh(network, workload))


@settings(max_examples=100, deadline=None)
@given(stories())
def test_nothing_is_lost_after_convergence_nor_delivered_twice(story: Any) -> None:
    tell(story)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(stories())
def test_two_thousand_stories(story: Any) -> None:
    tell(story)
