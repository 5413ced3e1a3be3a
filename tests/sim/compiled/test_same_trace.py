"""Two engines, one meaning: the compiled engine gives the trace of the reference, bit by bit, or refuses by name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering.curve.resolution import greedy_bits
from coverlay import CoverlayError
from sim.compiled.covers_emulated import WIDEST
from sim.compiled.engine import FIRST_ROWS
from sim.experiment.build import workload_of
from sim.experiment.engines import FEW_MESSAGES, engine_for
from sim.experiment.plan import PlannedRun, load, plan, shipped
from sim.experiment.runner import simulate
from sim.random_streams import streams
from tests.sim.compiled.both_engines import assert_same, with_engine

SMALL = {
    "sweep.overlay.brokers": [8],
    "sweep.workload.subscriptions": [60],
    "workload.events": 25,
    "run.samples": 3,
    "seeds": [1],
}
MOST_RUNS = 8  # of one shipped experiment; a sweep has many that differ little


def refused(run: PlannedRun) -> str | None:
    """What the refusal of a run must name, None for a run that must not be refused."""
    experiment = run.experiment
    if experiment.routing.strategy == "merging":
        return "routing.strategy = 'merging'"
    if experiment.routing.advertisements != "none":
        return "routing.advertisements"
    if experiment.routing.failover != "none":
        return "routing.failover"
    if experiment.faults.crash_fraction or experiment.faults.cut_fraction:
        return "faults"
    if experiment.matching.kind != "boxes":
        return "matching.kind"
    if experiment.matching.method not in ("scan", "auto"):
        return "matching.method"
    if experiment.matching.scope == "network":
        return "matching.scope = 'network'"
    if experiment.routing.strategy in ("flooding", "simple"):
        return None
    search = experiment.covering
    if search.method in ("hilbert", "zorder", "density", "bigmin"):
        return f"covering.method = '{search.method}'"
    dimensions = 2 * experiment.workload.attributes
    if (
        search.method == "zorder-emulated"
        and dimensions * greedy_bits(experiment.workload.subscriptions, dimensions) > WIDEST
    ):
        return "zorder-emulated with"
    return None


@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_experiments_have_the_same_trace_or_are_refused_by_name(name: str) -> None:
    own = load(name).runs[0].experiment.overlay.file is not None
    runs = load(name, {key: value for key, value in SMALL.items() if not (own and key == "sweep.overlay.brokers")}).runs
    for run in runs[:: max(1, len(runs) // MOST_RUNS)]:
        what = refused(run)
        if what is None:
            assert_same(run)
            continue
        with pytest.raises(CoverlayError, match=f'run.engine = "compiled" does not support .*{re.escape(what)}'):
            simulate(with_engine(run, "compiled"))
        tables, _ = simulate(with_engine(run, "auto"))
        assert tables["run"].to_pylist()[0]["engine"] == "simpy"


LATENCIES = st.sampled_from(
    [
        {"kind": "constant", "value": 1.0},
        {"kind": "constant", "value": 0.0},
        {"kind": "uniform", "low": 1.0, "high": 9.0},
    ]
)
SERVICES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"kind": "none"},
        {"kind": "constant", "value": 0.5},
        {"kind": "exponential", "mean": 0.3},
        {"kind": "linear", "base": 0.1, "per_entry": 0.01},
        {"kind": "work"},
        {"kind": "work", "profile": "disk"},
        {"kind": "work", "profile": "remote"},
    ]
)
ARRIVALS = st.sampled_from(
    [
        {"kind": "static", "unsubscribe": 0.3, "subscribe_rate": 2.0},
        {"kind": "churn", "lifetime": 30.0},
        {"kind": "bursty", "lifetime": 40.0, "spread": 0.0},
        {"kind": "storm", "width": 0.0},
        {"kind": "preloaded", "share": 1.0},
        {"kind": "preloaded", "publishing": "bursty", "burst_factor": 4.0, "publish_rate": 20.0},
        {"kind": "preloaded", "share": 0.5, "unsubscribe": 0.4},
    ]
)
METHODS = st.sampled_from(
    [
        {"method": "scan"},
        {"method": "packed"},
        {"method": "kdtree"},
        {"method": "kdtree", "epsilon": 0.1},
        {"method": "auto"},
        {"method": "kdtree", "epsilon": 0.05, "recall": False},
        {"method": "kdtree", "node_budget": 1},
        {"method": "budget", "budget": 3},
        {"method": "budget", "budget": 70, "recall": False},
        {"method": "zorder-emulated", "epsilon": 0.2},
        {"method": "zorder-emulated", "epsilon": 0.01, "probe_cap": 7},
        {"method": "zorder-emulated", "epsilon_per_level": [0.0, 0.3]},
    ]
)
LINKS = st.sampled_from([{}, {}, {"bandwidth": 40.0}, {"jitter": 3.0}, {"bandwidth": 90.0, "jitter": 0.5}])


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["random-tree", "line", "star", "watts-strogatz"]))
    service = draw(SERVICES)
    broker: dict[str, Any] = {"service": service}
    if service["kind"] != "none" and draw(st.booleans()):
        broker["queue"] = draw(st.integers(1, 6))
    trees = draw(st.sampled_from(["spanning", "per-source"])) if kind == "watts-strogatz" else "spanning"
    strategies = ["flooding", "simple", "identity", "covering", "covering", "covering"]
    strategy = draw(st.sampled_from([*strategies, *(["hierarchical"] if trees == "spanning" else [])]))
    searches = strategy in ("covering", "hierarchical")
    mode, search = draw(st.sampled_from(["lazy", "active", "prune"])), draw(METHODS)
    return {
        "name": "drawn",
        "seeds": [draw(st.integers(0, 2**20))],
        "overlay": {"kind": kind, "brokers": draw(st.integers(6, 9)), "latency": draw(LATENCIES)},
        "links": draw(LINKS),
        "broker": broker,
        "workload": {
            **draw(st.sampled_from([{"kind": "zipf"}, {"kind": "mixture"}, {"kind": "stocks"}, {"kind": "uniform"}])),
            "attributes": draw(st.integers(2, 3)),
            "subscriptions": draw(st.integers(0, 80)),
            "events": draw(st.integers(0, 25)),
        },
        "arrivals": draw(ARRIVALS),
        "routing": {"strategy": strategy, "trees": trees, **({"mode": mode} if searches else {})},
        "covering": search if searches else {},
        "matching": {
            "method": draw(st.sampled_from(["auto", "auto", "scan"])),
            "semantics": draw(st.sampled_from(["exact", "exact", "relaxed"])),
            **draw(st.sampled_from([{}, {"k": 1}, {"k": 7}])),
        },
        "run": {"samples": draw(st.integers(0, 4))},
    }


@settings(max_examples=60)
@given(experiments())
def test_drawn_experiments_have_the_same_trace(data: dict[str, Any]) -> None:
    for run in plan(data).runs:
        assert_same(run)


@pytest.mark.parametrize(
    "search",
    [
        {"method": "packed"},
        {"method": "kdtree"},
        {"method": "kdtree", "node_budget": 2},
        {"method": "auto"},
        {"method": "budget", "budget": 1500},
    ],
)
def test_same_trace_where_indexes_are_rebuilt(search: dict[str, Any]) -> None:
    """Large enough that static parts are built, die and are built again, and boxes wait for larger ones to leave."""
    data = {
        "name": "rebuilt",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"kind": "uniform", "attributes": 4, "width": "narrow", "subscriptions": 4000, "events": 20},
        "arrivals": {"kind": "static", "unsubscribe": 0.7, "subscribe_rate": 50.0},
        "covering": search,
    }
    tables = assert_same(plan(data).runs[0])
    probes = tables["decisions"].column("probes").to_numpy()
    assert probes.max() > 1024, "no index ever had a static part"
    assert not np.isnan(tables["decisions"].column("volume").to_numpy()).any()


@pytest.mark.parametrize(("profile", "width", "given"), [("disk", "wide", {"bits": 3}), ("remote", "narrow", {})])
def test_same_trace_where_subscriptions_on_the_curve_come_and_go(
    profile: str, width: str, given: dict[str, int]
) -> None:
    """Candidates that fail take pages and round trips, and those take time; bits are those given, or of the entries."""
    data = {
        "name": "on the curve",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"kind": "uniform", "attributes": 2, "width": width, "subscriptions": 800, "events": 5},
        "arrivals": {"kind": "static", "unsubscribe": 0.9, "subscribe_rate": 50.0},
        "broker": {"service": {"kind": "work", "profile": profile}},
        "covering": {"method": "zorder-emulated", "epsilon": 0.1, **given},
    }
    decisions = assert_same(plan(data).runs[0])["decisions"].to_pandas()
    asked = decisions[decisions["probes"] > 0]
    assert (asked["candidates"] > 0).any()
    assert sorted(asked["bits"].unique()) == ([3] if given else [1, 2])
    assert (asked["round_trips"] == asked["probes"] + asked["candidates"] - (asked["witness"] >= 0)).all()


def test_same_trace_where_those_that_wait_take_the_places_of_large_boxes_that_leave() -> None:
    """Others come while they leave, so that which one takes the place is seen in what their searches look at."""
    data = {
        "name": "waiting",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"kind": "uniform", "attributes": 3, "width": "wide", "subscriptions": 600, "events": 5},
        "arrivals": {"kind": "churn", "lifetime": 100.0},
        "covering": {"method": "budget", "budget": 20},
    }
    assert_same(plan(data).runs[0])


def test_the_engine_changes_neither_the_name_of_a_run_nor_its_trace() -> None:
    run = plan({"name": "small", "overlay": {"brokers": 4}, "workload": {"subscriptions": 20, "events": 5}}).runs[0]
    asked = [with_engine(run, engine) for engine in ("simpy", "compiled", "auto")]
    records = [simulate(one)[0]["run"].to_pylist()[0] for one in asked]
    assert [record["engine"] for record in records] == ["simpy", "compiled", "simpy"]
    for name in ("trace_hash", "run_id", "parameters"):
        assert len({record[name] for record in records}) == 1
    with pytest.raises(CoverlayError, match=r"'run.engine' cannot be swept"):
        plan({"name": "both", "sweep": {"run.engine": ["simpy", "compiled"]}})


def test_auto_chooses_by_predicted_counts_and_says_why() -> None:
    def chosen(messages: float | None, at_most: float = 1e9, **sections: Any) -> tuple[str, str]:
        def predicted() -> float:
            assert messages is not None, "a small run needs no prediction"
            return messages

        data = {"name": "sized", "overlay": {"brokers": 50}, "workload": {"subscriptions": 9, "events": 5}}
        run = plan({**data, **sections}).runs[0]
        return engine_for(run.experiment, workload_of(run.experiment, streams(1)), at_most, predicted)

    assert chosen(FEW_MESSAGES) == ("simpy", "at most 1,000,000 messages are predicted, which take seconds")
    assert chosen(FEW_MESSAGES + 1) == ("compiled", "more than 1,000,000 messages are predicted")
    reason = "the compiled engine does not support routing.strategy = 'merging'"
    assert chosen(1e9, routing={"strategy": "merging"}) == ("simpy", reason)
    assert chosen(None, at_most=FEW_MESSAGES)[0] == "simpy"
    assert chosen(None, run={"engine": "compiled"}) == ("compiled", 'run.engine = "compiled"')
    preferred = {"engine": "prefer-compiled"}
    assert chosen(None, run=preferred) == ("compiled", 'run.engine = "prefer-compiled"')
    assert chosen(None, run=preferred, routing={"strategy": "merging"}) == ("simpy", reason)


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"links": {"loss": 0.1}}, "links.loss = 0.1"),
        ({"broker": {"service": {"kind": "constant", "value": 1}, "queue": 3, "overflow": "shed"}}, "broker.overflow"),
        ({"matching": {"method": "slices"}}, "matching.method = 'slices'"),
        ({"matching": {"method": "auto", "buffer": 9}}, "matching.buffer = 9"),
        ({"covering": {"method": "poset"}}, "covering.method = 'poset'"),
        ({"covering": {"method": "kdtree", "node_cap": 5}}, "covering.node_cap = 5"),
        ({"covering": {"method": "zorder-emulated", "bits": 20}}, "zorder-emulated with 4 × 20 bits"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(section: dict[str, Any], named: str) -> None:
    data = {"name": "refused", "workload": {"subscriptions": 5, "events": 1}, "run": {"engine": "compiled"}, **section}
    with pytest.raises(CoverlayError, match=re.escape(named)):
        simulate(plan(data).runs[0])


@pytest.mark.parametrize(
    "arrivals", [{"kind": "churn", "lifetime": 60.0}, {"kind": "preloaded"}], ids=["churn", "still"]
)
@pytest.mark.parametrize("semantics", ["exact", "relaxed"])
def test_tables_with_residues_leave_the_same_trace(semantics: str, arrivals: dict[str, Any]) -> None:
    """The planted faults of tables are held against it."""
    data = {
        "name": "tables",
        "overlay": {"kind": "line", "brokers": 4, "latency": {"kind": "constant", "value": 1.0}},
        "workload": {"kind": "mixture", "attributes": 2, "subscriptions": 200, "events": 80, "different": 0.4},
        "arrivals": arrivals,
        "routing": {"strategy": "simple"},
        "matching": {"semantics": semantics, "k": 3},
    }
    work = assert_same(plan(data).runs[0])["publications"].to_pandas()
    assert (work.compared > work.tables_asked).any(), "not always the first entry"
    assert (work.matcher_entries > work.served).any()


@pytest.mark.parametrize("mode", ["lazy", "active", "prune"])
def test_subscriptions_that_come_and_go_leave_the_same_trace(mode: str) -> None:
    """Few draws of everything that goes wrong easily; the planted faults of the compiled engine are held against it."""
    data = {
        "name": "coming and going",
        "overlay": {"kind": "random-tree", "brokers": 9, "latency": {"kind": "constant", "value": 1.0}},
        "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 150, "events": 60},
        "arrivals": {"kind": "churn", "lifetime": 40.0},
        "routing": {"mode": mode},
        "matching": {"k": 1},
    }
    tables = assert_same(plan(data).runs[0])
    outcomes = set(tables["decisions"].column("outcome").to_pylist())
    assert {"forwarded", "suppressed", "exposed"} <= outcomes
    assert ("retracted" in outcomes) == (mode == "active")
    assert (tables["tables"].column("pruned").to_numpy().sum() > 0) == (mode == "prune")


def test_pruning_what_is_there_before_time_0_takes_no_time() -> None:
    data = {
        "name": "pruned before",
        "overlay": {"brokers": 9},
        "broker": {"service": {"kind": "work"}},
        "workload": {"subscriptions": 150, "events": 20},
        "arrivals": {"kind": "preloaded", "share": 0.7, "unsubscribe": 0.4},
        "routing": {"mode": "prune"},
    }
    tables = assert_same(plan(data).runs[0])
    control = tables["control"].to_pandas()
    before = control["operation"] < 100
    assert (control["on_covering"][before & (control["kind"] == "subscribe")] == 0.0).all()
    assert (control["on_covering"][~before] > 0.0).any()
    assert tables["tables"].column("pruned").to_numpy().any()


def test_a_fine_epsilon_of_another_method_than_the_curves_is_supported() -> None:
    """1 − ε as a fraction of whole numbers is for `zorder-emulated`; 1e-5 has a denominator of 2^69."""
    data = {
        "name": "fine",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"subscriptions": 20, "events": 2},
        "covering": {"method": "kdtree", "epsilon": 1e-5},
    }
    assert_same(plan(data).runs[0])


def test_more_messages_under_way_than_there_is_room_for_at_first() -> None:
    """The hub of a star sends a copy to each leaf at once, and the rows of messages are moved meanwhile."""
    data = {
        "name": "crowded",
        "overlay": {"kind": "star", "brokers": FIRST_ROWS + 50},
        "workload": {"subscriptions": 0, "events": 2},
        "routing": {"strategy": "flooding"},
        "run": {"samples": 0},
    }
    assert assert_same(plan(data).runs[0])["publications"].num_rows == 2 * (FIRST_ROWS + 50)


@pytest.mark.parametrize("judged", [1.0, 0.4])
def test_deliveries_added_up_on_the_way_leave_the_same_trace(judged: float) -> None:
    """Whatever the oracle needs meanwhile, and with as many blocks of rows as it takes."""
    data = {
        "name": "sampled",
        "overlay": {"brokers": 6},
        "workload": {"subscriptions": 300, "events": 60},
        "arrivals": {"kind": "preloaded"},
        "run": {"sample_deliveries": 0.2, "sample_oracle": judged},
    }
    tables = assert_same(plan(data).runs[0])
    whole, _ = simulate(plan({**data, "run": {}}).runs[0])
    assert tables["run"].column("deliveries") == whole["run"].column("deliveries")
    assert tables["deliveries"].num_rows < tables["run"].to_pylist()[0]["deliveries"]
