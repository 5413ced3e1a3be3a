"""Every sentence of `explain` and of the stories is true, in drawn runs with all that makes it hard to say why."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from sim.experiment.plan import EXPERIMENT, Plan, load, plan
from sim.experiment.sweep import run_sweep
from sim.tell.explain import Explainer
from sim.tell.run_trace import RunTrace
from sim.tell.stories import story_of
from tests.sim.tell.checker import Claims
from tests.sim.tell.own_files import ran

ROUTINGS: list[dict[str, Any]] = [
    {"strategy": "simple"},
    {"strategy": "covering"},
    {"strategy": "covering", "mode": "active"},
    {"strategy": "covering", "mode": "prune"},
    {"strategy": "covering", "cover": "union"},
    {"strategy": "covering", "advertisements": "covering"},
    {"strategy": "merging", "merge_waste": 0.3},
    {"strategy": "merging", "merge_waste": 0.1, "advertisements": "simple"},
    {"strategy": "hierarchical"},
    {"strategy": "flooding"},
    {"strategy": "covering", "rank": "cover"},
    {"strategy": "covering", "rank": "cover", "visit": "best-first"},
    {"strategy": "covering", "rank": "skyband"},
    {"strategy": "covering", "rank": "none"},
]
COVERING: list[dict[str, Any]] = [{}, {"method": "zorder-emulated", "epsilon": 0.4}]
MATCHING: list[dict[str, Any]] = [{}, {"k": 1}, {"k": 3}]
ARRIVALS: list[dict[str, Any]] = [
    {"kind": "churn", "lifetime": 15.0},
    {"kind": "static", "unsubscribe": 0.6, "settle": 5.0},
    {"kind": "bursty", "lifetime": 20.0, "burst": 8.0, "spread": 0.0},
]
FAULTS: list[dict[str, Any]] = [
    {},
    {"cut_fraction": 0.4, "downtime": 8.0},
    {"crash_fraction": 0.4, "downtime": 8.0, "state": "kept"},
    {"crash_fraction": 0.4, "downtime": 8.0, "state": "lost"},
]
SOON = {"heartbeat": 2.0, "detect_after": 4.0, "hold_down": 5.0}  # failures last 8 ms on average
FAILOVER: list[dict[str, Any]] = [
    {"failover": "replace", **SOON},
    {"failover": "recompute", "trees": "per-source", **SOON},
    {"failover": "recompute", "rejoin": "never", "heartbeat": 2.0, "detect_after": 2.0},
]
BROKERS: list[dict[str, Any]] = [
    {},
    {"service": {"kind": "constant", "value": 0.3}},
    {"service": {"kind": "constant", "value": 1.0}, "queue": 1},
]


@st.composite
def experiments(draw: Any) -> dict[str, Any]:
    routing = draw(st.sampled_from(ROUTINGS))
    searching = routing["strategy"] == "covering" and "rank" not in routing
    return {
        "name": "told",
        "seeds": [draw(st.integers(1, 10_000))],
        "overlay": {
            "kind": draw(st.sampled_from(["random-tree", "line", "star"])),
            "brokers": draw(st.integers(2, 6)),
            "latency": {"kind": "constant", "value": draw(st.sampled_from([1.0, 3.0]))},
        },
        "workload": {
            "kind": "uniform",
            "width": "wide",
            "attributes": draw(st.sampled_from([1, 2])),
            "subscriptions": draw(st.integers(5, 25)),
            "events": 12,
        },
        "arrivals": draw(st.sampled_from(ARRIVALS)),
        "routing": routing,
        "covering": draw(st.sampled_from(COVERING)) if searching else {},
        "matching": {"scope": "network", "k": 2} if "rank" in routing else draw(st.sampled_from(MATCHING)),
        "broker": draw(st.sampled_from(BROKERS)),
        "faults": draw(st.sampled_from(FAULTS)),
        "run": {"samples": 0},
    }


@st.composite
def switched(draw: Any) -> dict[str, Any]:
    """Trees take over from others; latencies are drawn, so that shortest paths are known without our order of ties."""
    routing = draw(st.sampled_from([r for r in ROUTINGS[:10] if "advertisements" not in r and r["strategy"][0] != "h"]))
    data = draw(experiments())
    return {
        **data,
        "overlay": {
            "kind": draw(st.sampled_from(["ring", "grid"])),
            "brokers": draw(st.integers(4, 7)),
            "latency": {"kind": "uniform", "low": 1.0, "high": 3.0},
        },
        "routing": {**routing, **draw(st.sampled_from(FAILOVER))},
        "covering": {},
        "matching": draw(st.sampled_from(MATCHING)),
        "faults": draw(st.sampled_from(FAULTS[1:])),
    }


@st.composite
def recordings(draw: Any) -> dict[str, Any]:
    """Own files in which all times are whole milliseconds, as those of the links are."""
    brokers, times, prices = st.sampled_from(["hub", "leaf", "far"]), st.integers(0, 12), st.integers(0, 9)
    rows = draw(st.lists(st.tuples(brokers, times, st.integers(1, 9), prices, prices), min_size=1, max_size=12))
    lines = [f"{b},{t},{t + stays if stays < 9 else ''},{min(p, q)},{max(p, q)}" for b, t, stays, p, q in rows]
    events = sorted(draw(st.lists(st.tuples(times, brokers, prices), min_size=1, max_size=8)))
    return {
        "subscriptions": "\n".join(["broker,time,until,price_lo,price_hi", *lines, ""]),
        "events": "\n".join(["time,broker,price", *(",".join(map(str, event)) for event in events), ""]),
        "faults": draw(st.sampled_from(["", "time,kind,broker,neighbour,until\n4,cut,hub,leaf,7\n", CRASH])),
        "routing": draw(st.sampled_from(ROUTINGS[:10])),
        "broker": draw(st.sampled_from([{}, {"service": {"kind": "constant", "value": 1.0}, "queue": 1}])),
    }


CRASH = "time,kind,broker,neighbour,until\n5,crash,leaf,,8\n"


def check(data: dict[str, Any], out: Path, pairs: int) -> None:
    """Run it, and check what is told of it."""
    planned = plan(data)
    result = run_sweep(planned, out)
    assert not result.failures, result.failures[0]
    check_told(planned, out, pairs)


def check_told(planned: Plan, out: Path, pairs: int) -> None:
    """Check stories, all events and some pairs of event and subscription."""
    (run,) = planned.runs
    claims = Claims(run, out)
    told = Explainer(RunTrace(out, None))
    required = sum(len(told.truth.due(event)) for event in claims.published)
    assert required == told.trace.record["due"] == sum(len(claims.due(event)) for event in claims.published)
    claims.check_story(list(story_of(told.truth).lines(4)))
    every = [(event, subscription) for event in claims.published for subscription in claims.homes]
    for event, subscription in random.Random(0).sample(every, min(pairs, len(every))):
        claims.check_pair(event, subscription, list(told.sentences(event, subscription))[1:])
    for event in claims.published if not run.experiment.network_wide else ():
        claims.check_event(event, list(told.sentences(event, None))[1:])


def one_of(routing: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """An experiment of which much can be told."""
    line = {"kind": "line", "brokers": 5, "latency": {"kind": "constant", "value": 1.0}}
    workload = {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 25, "events": 12}
    data = {
        "name": "told",
        "seeds": [1],
        "overlay": line,
        "workload": workload,
        "arrivals": ARRIVALS[0],
        "routing": routing,
    }
    return {**data, **sections}


COVERED = one_of({"strategy": "covering", "mode": "active"}, matching={"k": 1}, faults=FAULTS[1])
MERGED = one_of({"strategy": "merging", "merge_waste": 0.3, "advertisements": "simple"}, faults=FAULTS[3])
UNITED = one_of({"strategy": "covering", "cover": "union"}, broker=BROKERS[2], arrivals=ARRIVALS[1])
RANKED = one_of({"strategy": "covering", "rank": "cover"}, matching={"scope": "network", "k": 2}, faults=FAULTS[1])
RING = {"kind": "ring", "brokers": 6, "latency": {"kind": "uniform", "low": 1.0, "high": 3.0}}
SWITCHED = one_of({"strategy": "covering", **FAILOVER[0]}, overlay=RING, faults=FAULTS[3])
GRID = {"kind": "grid", "brokers": 4, "latency": {"kind": "uniform", "low": 1.0, "high": 3.0}}
RETIRED_WHILE_RESTARTING = one_of(
    {"strategy": "covering", **FAILOVER[2]},
    overlay=GRID,
    seeds=[1160],
    workload={"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 6, "events": 12},
    matching={"k": 1},
    broker=BROKERS[1],
    faults=FAULTS[3],
    run={"samples": 0},
)
DRAWN = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)  # a run is small as it is


@settings(DRAWN, max_examples=4)
@example(data=COVERED)
@example(data=MERGED)
@example(data=UNITED)
@example(data=RANKED)
@given(data=experiments())
def test_every_sentence_about_a_drawn_run_is_true(data):
    with TemporaryDirectory() as out:
        check(data, Path(out), pairs=25)


@settings(DRAWN, max_examples=4)
@example(data=SWITCHED)
@example(data=RETIRED_WHILE_RESTARTING)
@given(data=switched())
def test_every_sentence_about_a_drawn_switch_of_trees_is_true(data):
    with TemporaryDirectory() as out:
        check(data, Path(out), pairs=25)


@settings(DRAWN, max_examples=6)
@given(data=recordings())
def test_every_sentence_about_a_drawn_recording_is_true(data):
    with TemporaryDirectory() as folder:
        out = ran(Path(folder), **data)
        check_told(load(str(out / EXPERIMENT)), out, pairs=20)


@pytest.mark.slow
@settings(DRAWN, max_examples=400)
@given(data=recordings())
def test_every_sentence_about_many_drawn_recordings_is_true(data):
    with TemporaryDirectory() as folder:
        out = ran(Path(folder), **data)
        check_told(load(str(out / EXPERIMENT)), out, pairs=80)


@pytest.mark.slow
@settings(DRAWN, max_examples=400)
@given(data=switched())
def test_every_sentence_about_many_drawn_switches_of_trees_is_true(data):
    with TemporaryDirectory() as out:
        check(data, Path(out), pairs=80)


@pytest.mark.slow
@settings(DRAWN, max_examples=400)
@given(data=experiments())
def test_every_sentence_about_many_drawn_runs_is_true(data):
    with TemporaryDirectory() as out:
        check(data, Path(out), pairs=80)
