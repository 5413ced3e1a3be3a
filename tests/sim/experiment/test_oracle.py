"""The oracle notices each kind of wrong delivery, in traces that are spoilt on purpose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from broker.language.schema import Schema
from broker.network import Network
from broker.settings import Settings
from broker.trace.schema import CRASH, NOBODY, QUEUE_FULL, SCHEMAS
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import LinkLedger
from routing.overlay.graph import build_overlay
from sim.experiment import oracle
from sim.experiment.build import workload_of
from sim.experiment.engines import ENGINES, RunInputs
from sim.experiment.oracle_paths import with_mergers
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.random_streams import streams
from sim.workloads.arrivals import PUBLISH, SUBSCRIBE, Timeline
from sim.workloads.contract import from_filters
from tests.sim.experiment.slow_oracle import USUAL

DATA = {
    "name": "small",
    "overlay": {"kind": "random-tree", "brokers": 5},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 40, "events": 20},
    "covering": {"method": "scan"},
    "matching": {"method": "scan", "k": 3},
}


@pytest.fixture(scope="module", params=["simpy", "compiled"])
def finished(request):
    run = plan({**DATA, "matching": {"k": 3}, "run": {"engine": request.param}}).runs[0]
    tables, _ = simulate(run)
    return workload_of(run.experiment, streams(run.seed)), tables


def judged(finished, **changed):
    workload, tables = finished
    return oracle.judge(workload, {**tables, **changed}, replace(USUAL, k=3))


def test_a_good_run_has_no_faults(finished):
    assert finished[1]["deliveries"].num_rows > 50
    verdict, made = judged(finished), finished[1]["deliveries"].num_rows
    assert verdict == oracle.Verdict(due=made, due_delivered=made)


def test_a_lost_delivery_is_missed(finished):
    assert judged(finished, deliveries=finished[1]["deliveries"].slice(1)).missed == 1


def test_a_repeated_delivery_is_a_duplicate(finished):
    deliveries = finished[1]["deliveries"]
    assert judged(finished, deliveries=pa.concat_tables([deliveries, deliveries.slice(0, 1)])).duplicates == 1


def test_a_delivery_to_the_wrong_subscription_is_spurious_and_missed(finished):
    deliveries = finished[1]["deliveries"].to_pandas()
    first = deliveries.iloc[0]
    at_broker = deliveries[(deliveries["event"] == first.event) & (deliveries["broker"] == first.broker)]
    homes = finished[1]["operations"].to_pandas().set_index("subscription")["broker"]
    others = set(homes[homes == first.broker].index) - set(at_broker["subscription"])
    deliveries.loc[0, "subscription"] = min(others)
    verdict = judged(finished, deliveries=pa.Table.from_pandas(deliveries))
    assert (verdict.missed, verdict.spurious) == (1, 1)


def test_an_event_that_never_reached_a_broker_is_missed_there(finished):
    _workload, tables = finished
    publications, deliveries = tables["publications"].to_pandas(), tables["deliveries"].to_pandas()
    last_hop = publications[(publications["served"] > 0) & (publications["hop"] > 0)].iloc[-1]
    at = (last_hop.event, last_hop.target)
    kept_hops = publications[[pair != at for pair in zip(publications.event, publications.target, strict=True)]]
    kept = deliveries[[pair != at for pair in zip(deliveries.event, deliveries.broker, strict=True)]]
    spoilt = {"publications": pa.Table.from_pandas(kept_hops), "deliveries": pa.Table.from_pandas(kept)}
    assert judged(finished, **spoilt).missed == last_hop.served
    # The same loss is explained where a queue dropped the event, and in doubt while the network settles.
    dropped = {"time": 0.0, "kind": QUEUE_FULL, "broker": at[1], "neighbour": NOBODY, "event": at[0]}
    faults = pa.Table.from_pylist([dropped], schema=SCHEMAS["faults"])
    verdict = judged(finished, **spoilt, faults=faults)
    assert (verdict.missed, verdict.missed_dropped) == (0, last_hop.served)
    control = tables["control"].to_pandas()
    control.loc[control["source"] >= 0, "step"] += 10**9
    verdict = judged(finished, **spoilt, control=pa.Table.from_pandas(control))
    assert verdict.missed == 0
    assert verdict.missed_transient >= last_hop.served


def test_same_seed_same_hash_and_another_seed_another():
    run, other = plan({**DATA, "seeds": [1, 2]}).runs
    hashes = [simulate(r)[0]["run"].column("trace_hash")[0].as_py() for r in (run, run, other)]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    "routing",
    [*({"strategy": name} for name in ("flooding", "simple", "identity")), {"strategy": "covering", "mode": "active"}],
)
def test_churn_loses_nothing_that_had_settled(routing):
    data = {
        **DATA,
        "covering": {},
        "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 300, "events": 200},
        "arrivals": {"kind": "churn", "lifetime": 60.0},
        "broker": {"service": {"kind": "exponential", "mean": 0.05}},
        "links": {"jitter": 3.0},
        "routing": routing,
    }
    tables, _ = simulate(plan(data).runs[0])
    record = tables["run"].to_pylist()[0]
    assert record["missed"] == record["duplicates"] == record["spurious"] == 0
    assert record["deliveries"] > 100


def test_a_full_queue_is_reported_apart():
    data = {
        **DATA,
        "broker": {"service": {"kind": "constant", "value": 2.0}, "queue": 1},
        "arrivals": {"kind": "static", "publish_rate": 2.0},
        "matching": {"method": "scan"},
    }
    tables, _ = simulate(plan(data).runs[0])
    record = tables["run"].to_pylist()[0]
    assert tables["faults"].num_rows > 0
    assert record["missed_dropped"] > 0
    assert record["missed"] == record["spurious"] == 0


def overloaded(overflow: str):
    data = {
        **DATA,
        "workload": {**DATA["workload"], "events": 60},
        "broker": {"service": {"kind": "constant", "value": 3.0}, "queue": 2, "overflow": overflow},
        "arrivals": {"kind": "static", "publish_rate": 1.0},
        "matching": {"method": "scan", "k": 1},
    }
    tables, _ = simulate(plan(data).runs[0])
    record = tables["run"].to_pylist()[0]
    assert record["missed"] == record["spurious"] == record["duplicates"] == 0
    return record, tables


def test_holding_events_loses_none_and_costs_latency():
    dropped, tables_when_dropping = overloaded("drop")
    held, tables_when_holding = overloaded("hold")
    assert dropped["missed_dropped"] > 0 == held["missed_dropped"]
    slow, fast = (t["deliveries"].to_pandas()["latency"].mean() for t in (tables_when_holding, tables_when_dropping))
    assert slow > fast


def test_shedding_by_rank_serves_better_subscriptions_than_dropping_the_last():
    score = {rule: overloaded(rule)[1]["deliveries"].to_pandas()["score"].mean() for rule in ("drop", "shed")}
    assert score["shed"] > score["drop"]


# ── settled: its own messages and those of every coverer, however late that one came ───────────────────

STAR = {(0, 1): 2.0, (0, 2): 1.0, (0, 3): 1.0, (0, 4): 10.0}


def overtaken(engine: str, published: float):
    """[20, 30] at broker 1; [0, 100] at broker 0 a moment later holds it back there, and itself travels on to 4."""
    overlay = build_overlay("star", 5, np.random.default_rng(1))
    for link, latency in STAR.items():
        overlay.graph.edges[link]["latency"] = latency
    filters = [Filter.of_box(np.array([box], dtype=float)) for box in ((20, 30), (0, 100))]
    workload = from_filters(Schema.uniform(1, 0.0, 100.0), filters, np.array([[25.0]]))
    timeline = Timeline(
        np.array([0.0, 1.0, published]),
        np.array([SUBSCRIBE, SUBSCRIBE, PUBLISH], dtype=np.int8),
        np.array([0, 1, 0]),
        np.array([1, 0, 4]),
    )
    experiment = plan({**DATA, "matching": {}}).runs[0].experiment
    settings = Settings(RoutingOptions(workload.schema.domain))
    ran = ENGINES[engine](RunInputs(experiment, overlay, workload, timeline, settings, streams(1)))
    return workload, ran.tables


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_subscription_is_not_settled_while_a_younger_coverer_travels(engine):
    workload, tables = overtaken(engine, published=5.0)
    assert tables["deliveries"].num_rows == 0
    verdict = oracle.judge(workload, tables, replace(USUAL, instant=True))
    assert verdict == oracle.Verdict(missed_transient=2, due=2)


def test_a_subscription_is_settled_once_its_coverer_has_arrived():
    workload, tables = overtaken("simpy", published=11.5)
    assert oracle.judge(workload, tables, replace(USUAL, instant=True)) == oracle.Verdict(due=2, due_delivered=2)
    lost = {name: tables[name].slice(0, 1 if name == "publications" else 0) for name in ("publications", "deliveries")}
    assert oracle.judge(workload, {**tables, **lost}, USUAL).missed == 2


def churn(seed: int, slowest: float, lifetime: float, **routing):
    return {
        "name": "churn",
        "seeds": [seed],
        "overlay": {"kind": "star", "brokers": 6, "latency": {"kind": "uniform", "low": 0.0, "high": slowest}},
        "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 60, "events": 60},
        "arrivals": {"kind": "churn", "lifetime": lifetime},
        "routing": routing,
        "run": {"engine": "simpy"},
    }


@pytest.mark.parametrize("mode", ["lazy", "active"])
@pytest.mark.parametrize("routing", [{"strategy": "covering"}, {"strategy": "merging", "merge_waste": 0.3}])
@pytest.mark.parametrize("seed", [5, 7, 11])  # the first three in which "every earlier request" raised false alarms
def test_overtaking_under_churn_raises_no_false_alarm(seed, routing, mode):
    tables, _ = simulate(plan(churn(seed, 60.0, 80.0, mode=mode, **routing)).runs[0])
    record = tables["run"].to_pylist()[0]
    assert [record[name] for name in ("missed", "duplicates", "spurious", "strays", "wrong_times")] == [0] * 5
    assert record["missed_transient"] > 0


def test_a_broker_that_forgets_dependants_is_caught_under_churn(monkeypatch):
    """What is excused as still on its way must not hide a real loss."""
    decide, leave = LinkLedger._decide, LinkLedger.unsubscribe

    def forgets(self, subscription, filter, outcome):
        return [] if outcome == "exposed" else decide(self, subscription, filter, outcome)

    def leaves(self, subscription):
        return leave(self, subscription) if subscription in self.known else []

    monkeypatch.setattr(LinkLedger, "_decide", forgets)
    monkeypatch.setattr(LinkLedger, "unsubscribe", leaves)
    for seed in (1, 2):
        tables, _ = simulate(plan(churn(seed, 10.0, 400.0, strategy="covering")).runs[0])
        assert tables["run"].to_pylist()[0]["missed"] > 0


# ── the way of events ──────────────────────────────────────────────────────────────────────────────────


def spoilt(table: pa.Table, column: str, row: int, value: float) -> pa.Table:
    frame = table.to_pandas()
    frame.loc[row, column] = value
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [
        ("deliveries", "latency", 1e-3),
        ("deliveries", "time", 1e-3),
        ("deliveries", "hops", 1),
        ("publications", "waited", 1e-3),
        ("publications", "sent", -1e-3),
        ("publications", "time", 1e-3),
        ("publications", "service", 1e-3),
    ],
)
def test_a_time_that_is_not_the_sum_of_its_parts_is_noticed(finished, table, column, change):
    rows = finished[1][table].to_pandas()
    far = int(np.flatnonzero(rows["hops" if table == "deliveries" else "hop"] == 2)[0])
    changed = spoilt(finished[1][table], column, far, rows[column][far] + change)
    assert judged(finished, **{table: changed}).wrong_times > 0


@pytest.mark.parametrize("table", ["control", "publications"])
def test_two_messages_that_are_served_at_a_time_are_noticed(finished, table):
    rows = finished[1][table].to_pandas()
    (twice,) = np.flatnonzero(rows["target"] == 1)[-2:-1]
    longer = float(rows["time"].max())  # than what follows takes to come; no message says when this one was left
    changed = {table: spoilt(finished[1][table], "service", twice, longer)}
    assert oracle.overlaps(finished[1]) == 0
    assert oracle.overlaps({**finished[1], **changed}) == 1
    assert judged(finished, **changed).wrong_times > 0
    crash = {"time": rows["time"][twice], "kind": CRASH, "broker": 1, "neighbour": NOBODY, "event": NOBODY}
    crashed = pa.Table.from_pylist([crash], schema=SCHEMAS["faults"])
    assert oracle.overlaps({**finished[1], **changed, "faults": crashed}) == 0, "which ended its service"
    elsewhere = pa.Table.from_pylist([{**crash, "broker": 2}], schema=SCHEMAS["faults"])
    assert oracle.overlaps({**finished[1], **changed, "faults": elsewhere}) == 1


def test_nothing_waits_where_nothing_can(finished):
    """A link that takes longer than it says: the recorded wait fits, and has no cause."""
    workload, tables = finished
    links = tables["links"].to_pandas()
    links["latency"] -= 0.5
    publications = tables["publications"].to_pandas()
    publications.loc[publications["hop"] > 0, "waited"] += 0.5
    slower = {"links": pa.Table.from_pandas(links), "publications": pa.Table.from_pandas(publications)}
    assert judged(finished, **slower).wrong_times == 0
    late = int((publications["hop"] > 0).sum())
    assert oracle.judge(workload, {**tables, **slower}, replace(USUAL, k=3, instant=True)).wrong_times == late


def test_an_event_that_went_where_no_entry_matched_is_a_stray(finished):
    """Without the message that told the subscription, the hop has no explanation."""
    _workload, tables = finished
    control = tables["control"].to_pandas()
    assert judged(finished).strays == 0
    without = control[(control["source"] < 0) | (control["kind"] != "subscribe")]
    hops = int((tables["publications"].column("source").to_numpy() >= 0).sum())
    assert judged(finished, control=pa.Table.from_pandas(without)).strays == hops > 0


def test_an_entry_that_came_after_the_event_explains_no_hop(finished):
    control = finished[1]["control"].to_pandas()
    control.loc[control["source"] >= 0, "step"] += 10**9
    hops = int((finished[1]["publications"].column("source").to_numpy() >= 0).sum())
    assert judged(finished, control=pa.Table.from_pandas(control)).strays == hops


def test_an_entry_that_had_left_before_the_event_explains_no_hop(finished):
    _workload, tables = finished
    control = tables["control"].to_pandas()
    told = control[control["source"] >= 0]
    left = told.assign(kind="unsubscribe", step=told["step"] + 0.5)  # right after it came
    both = pd.concat([control, left]).sort_values("step", kind="stable")
    both["step"] *= 2  # whole again, in the same order
    publications = tables["publications"].to_pandas()
    publications["step"] *= 2
    spoilt_tables = {"control": both.astype({"step": "int64"}), "publications": publications}
    arrow = {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in spoilt_tables.items()}
    assert judged(finished, **arrow).strays == int((publications["source"] >= 0).sum())


@pytest.mark.parametrize("strategy", ["flooding", "hierarchical"])
def test_hops_that_nobody_asked_for_are_explained_by_the_strategy_alone(strategy):
    data = {name: section for name, section in DATA.items() if name != "covering"}
    run = plan({**data, "routing": {"strategy": strategy}}).runs[0]
    tables, _ = simulate(run)
    workload = workload_of(run.experiment, streams(run.seed))
    assert tables["run"].to_pylist()[0]["strays"] == 0
    assert oracle.judge(workload, tables, replace(USUAL, k=3, sends_to="all")).strays > 0


def test_a_merger_explains_what_lies_in_its_hull_and_nothing_more():
    data = {
        **DATA,
        "workload": {"kind": "uniform", "width": [0.1, 0.3], "attributes": 2, "subscriptions": 60, "events": 200},
        "routing": {"strategy": "merging", "mode": "active", "merge_waste": 0.4},
        "matching": {},
    }
    run = plan(data).runs[0]
    tables, _ = simulate(run)
    workload = workload_of(run.experiment, streams(run.seed))
    assert tables["run"].to_pylist()[0]["strays"] == 0
    decisions = tables["decisions"].to_pandas()
    assert (decisions["outcome"] == "merged").any()
    unmerged = pa.Table.from_pandas(decisions[decisions["outcome"] != "retracted"])
    assert oracle.judge(workload, {**tables, "decisions": unmerged}, USUAL).strays > 0


def test_a_merger_is_the_hull_of_its_parts():
    """What the oracle works out from decisions is what the brokers sent."""
    rng, stream = np.random.default_rng(4), streams(4)
    corners = rng.integers(0, 12, (60, 2)).astype(float)
    filters = [Filter.of_box(np.column_stack([corner, corner + rng.integers(1, 5, 2)])) for corner in corners]
    workload = from_filters(Schema.uniform(2, 0.0, 16.0), filters, np.empty((0, 2)))
    options = RoutingOptions(workload.schema.domain, merge_waste=0.3)
    network = Network(build_overlay("line", 4, stream("overlay")), Settings(options, "merging"), stream)
    for number, filter in enumerate(filters):
        network.subscribe(number % 4, number, filter)
        network.run()
    found = with_mergers(workload, network.tables()["decisions"])
    ledgers = [ledger for broker in network.brokers for ledger in broker.parts[-1].ledgers.values()]
    sent = [(merger, ledger.sent[merger].box) for ledger in ledgers for merger in ledger.invented()]
    assert len(sent) > 4
    for merger, box in sent:
        row = len(filters) - 2 - merger
        assert np.array_equal(np.column_stack([found.lo[row], found.hi[row]]), box)
