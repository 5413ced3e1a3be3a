"""The oracle against a slow twin, on runs of every kind, as they are and spoilt; and its samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from broker.trace.sampling import is_kept
from broker.trace.schema import BY_TIME, LOSSES
from sim.experiment import oracle, runner
from sim.experiment.plan import load, plan
from tests.sim.experiment import slow_oracle
from tests.sim.experiment.slow_oracle import USUAL

SMALL = {"seeds": [3], "workload.subscriptions": 60, "workload.events": 25, "overlay.brokers": 5}
COUNTS = ("missed", "duplicates", "spurious", *LOSSES, "due", "due_delivered", "undue", "unavoidable", *BY_TIME)
BASE = {
    "name": "drawn",
    "overlay": {"kind": "random-tree", "brokers": 5},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 2, "subscriptions": 60, "events": 25},
}
RUNS = {
    "boxes, exact, k": {**BASE, "matching": {"k": 3}},
    "boxes, relaxed, k": {**BASE, "matching": {"k": 3, "semantics": "relaxed"}},
    "boxes, exact, all, churn": {**BASE, "arrivals": {"kind": "churn", "lifetime": 20.0}},
    "boxes, merging": {**BASE, "routing": {"strategy": "merging", "merge_waste": 0.4}},
    "predicates": {**BASE, "matching": {"kind": "predicates", "k": 2}},
    "full queues": {
        **BASE,
        "broker": {"service": {"kind": "constant", "value": 3.0}, "queue": 1},
        "matching": {"k": 1},
    },
    "faults": {**BASE, "faults": {"crash_fraction": 0.4, "cut_fraction": 0.3}, "arrivals": {"publish_rate": 0.1}},
    "faults on a ring": {
        **BASE,
        "overlay": {"kind": "ring", "brokers": 6},
        "faults": {"crash_fraction": 0.4, "cut_fraction": 0.3, "downtime": 60.0},
        "arrivals": {"publish_rate": 0.1},
    },
    "residues": "stocks",
    "weights": "ads",
    "places": "sensors",
}


@pytest.fixture(scope="module", params=list(RUNS))
def asked(request):
    """What the oracle was asked at the end of a run, with equal scores among those it has to rank."""
    kind = RUNS[request.param]
    run = load(kind, SMALL).runs[0] if isinstance(kind, str) else plan(kind).runs[0]
    seen, drawn = {}, runner.workload_of

    def coarse(*args):
        workload = drawn(*args)
        return replace(workload, scores=workload.scores.round(1), weights=workload.weights.round(1))

    with pytest.MonkeyPatch.context() as patch:
        judge = oracle.judge
        patch.setattr(runner, "workload_of", coarse)
        patch.setattr(oracle, "judge", lambda *args, **named: seen.update(args=args) or judge(*args, **named))
        runner.simulate(run)
    return seen["args"]


def frames(tables, **changed):
    return {**tables, **{name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in changed.items()}}


def spoilt(tables):
    """The trace as it is, and with deliveries lost, repeated, in another order, to others; without some hops."""
    rng = np.random.default_rng(1)
    served, hops = tables["deliveries"].to_pandas(), tables["publications"].to_pandas()
    yield tables
    yield frames(tables, deliveries=served[rng.random(len(served)) < 0.9])
    yield frames(tables, deliveries=served.iloc[np.sort(rng.integers(0, len(served), len(served)))])
    yield frames(tables, deliveries=served.assign(rank=rng.permutation(served["rank"])))
    yield frames(tables, deliveries=served.assign(rank=served["rank"] + (served["event"] == 3)))
    yield frames(tables, deliveries=served.assign(score=served["score"] + (served["event"] == 5)))
    yield frames(tables, deliveries=served.assign(subscription=rng.permutation(served["subscription"])))
    yield frames(tables, publications=hops[rng.random(len(hops)) < 0.8])
    yield frames(tables, publications=hops.iloc[np.sort(rng.integers(0, len(hops), len(hops)))])


def test_the_oracle_agrees_with_its_slow_twin(asked):
    workload, tables, rules, _ = asked
    counted = []
    for trace in spoilt(tables):
        fast, slow = oracle.judge(workload, trace, rules), slow_oracle.judge(workload, trace, rules)
        assert {name: getattr(fast, name) for name in COUNTS} == {name: slow[name] for name in COUNTS}
        counted.append(sum(slow[name] for name in (*COUNTS[:8], "undue")))
        assert not fast.unaccounted
    assert sum(map(bool, counted[1:])) >= 5  # spoiling shows


def test_every_single_lost_delivery_is_missed():
    run = plan({**BASE, "matching": {"k": 3}}).runs[0]
    tables, _ = runner.simulate(run)
    workload = runner.workload_of(run.experiment, runner.streams(run.seed))
    served = tables["deliveries"].to_pandas()
    for lost in served.groupby("broker").head(1).index:
        assert oracle.judge(workload, frames(tables, deliveries=served.drop(lost)), replace(USUAL, k=3)).missed == 1


def test_a_sample_judges_its_events_in_full_and_says_its_share():
    run = plan({**BASE, "matching": {"k": 3}}).runs[0]
    tables, _ = runner.simulate(run)
    workload = runner.workload_of(run.experiment, runner.streams(run.seed))
    chosen = is_kept(np.arange(len(workload.events)), 0.4)
    assert 0 < chosen.sum() < len(chosen)
    served = tables["deliveries"].to_pandas()
    for event in served["event"].unique():
        lost = served.drop(served.index[served["event"] == event][0])
        verdict = oracle.judge(workload, frames(tables, deliveries=lost), replace(USUAL, k=3), share=0.4)
        assert (verdict.missed, verdict.judged_share) == (int(chosen[event]), chosen.mean())


def test_the_share_is_chosen_by_size_alone_unless_asked_for():
    assert oracle.judged_share(None, 1000, 1000) == 1.0
    assert oracle.judged_share(None, int(oracle.JUDGED_PAIRS), 4) == 0.25
    assert oracle.judged_share(0.5, 10, 10) == 0.5


def test_the_record_of_a_run_says_which_share_was_judged():
    run = plan({**BASE, "run": {"sample_oracle": 0.4}}).runs[0]
    record = runner.simulate(run)[0]["run"].to_pylist()[0]
    assert record["judged_share"] == is_kept(np.arange(25), 0.4).mean()
