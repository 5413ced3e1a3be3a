"""What is predicted about a run, against what the run then does."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from broker import trace
from sim.experiment import predict as predicting
from sim.experiment.plan import load, plan
from sim.experiment.predict import predict
from sim.experiment.runner import simulate

SMALL = {
    "name": "predicted",
    "overlay": {"kind": "random-tree", "brokers": 20},
    "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 400, "events": 150},
    "arrivals": {"kind": "static", "unsubscribe": 0.1},
}


def run(**sections):
    experiment = plan({**SMALL, **sections}).runs[0]
    tables, _ = simulate(experiment)
    return predict(experiment.experiment, experiment.seed), tables, tables["run"].to_pylist()[0]


@pytest.mark.parametrize("strategy", ["simple", "flooding"])
def test_without_covering_control_traffic_is_exact(strategy):
    predicted, tables, record = run(routing={"strategy": strategy}, arrivals={"kind": "static"})
    assert predicted.control_messages == pytest.approx(record["control_messages"], rel=1e-9)
    assert predicted.rows["decisions"] == pytest.approx(tables["decisions"].num_rows, rel=1e-9)
    if strategy == "flooding":
        assert predicted.event_messages == pytest.approx(record["event_messages"])


@pytest.mark.parametrize(
    ("routing", "covering"),
    [
        ({"strategy": "simple"}, {}),
        ({"strategy": "covering"}, {}),
        ({"strategy": "covering"}, {"method": "zorder-emulated", "epsilon": 0.3}),
        ({"strategy": "covering", "mode": "active"}, {}),
        ({"strategy": "hierarchical"}, {}),
        ({"strategy": "covering", "trees": "per-source"}, {}),
    ],
)
def test_estimates_are_near(routing, covering):
    """Not exact: the curve is counted on one order of the subscriptions, and homes are not quite even."""
    predicted, tables, record = run(routing=routing, covering=covering)
    assert predicted.control_messages == pytest.approx(record["control_messages"], rel=0.35)
    assert predicted.event_messages == pytest.approx(record["event_messages"], rel=0.35)
    for name, count in predicted.rows.items():
        assert count == pytest.approx(tables[name].num_rows, rel=0.35), name


def test_bytes_are_of_the_right_size(tmp_path):
    larger = {"workload": {**SMALL["workload"], "subscriptions": 1500}, "routing": {"strategy": "simple"}}
    runs = plan({**SMALL, **larger}).runs
    tables, _ = simulate(runs[0])
    trace.write_run(tmp_path / "run=a", tables)
    written = sum(path.stat().st_size for path in (tmp_path / "run=a").iterdir())
    predicted = predict(runs[0].experiment, runs[0].seed)
    assert written / 2 < predicted.nbytes < written * 2
    memory = sum(tables[name].nbytes for name in predicted.rows)
    assert memory / 1.5 < predicted.memory < memory * 1.5


def test_sampling_is_predicted():
    whole = predict(plan(SMALL).runs[0].experiment)
    sampled = predict(plan({**SMALL, "run": {"sample_decisions": 0.1, "sample_deliveries": 0.5}}).runs[0].experiment)
    assert sampled.rows["decisions"] == pytest.approx(0.1 * whole.rows["decisions"])
    assert sampled.rows["deliveries"] == pytest.approx(0.5 * whole.rows["deliveries"])
    assert sampled.messages == whole.messages
    assert sampled.nbytes < whole.nbytes
    assert sampled.memory == whole.memory


def test_a_million_subscriptions_are_predicted_from_a_few_thousand(monkeypatch):
    """Simple routing on 1,000 brokers: 999 million messages, known without generating the workload."""
    largest = 0
    generate = predicting.sample

    def watched(experiment, stream):
        nonlocal largest
        found = generate(experiment, stream)
        largest = len(found[0].lo)
        return found

    monkeypatch.setattr(predicting, "sample", watched)
    settings = ["overlay.brokers=1000", "workload.subscriptions=1000000", "seeds=[1]", 'routing.strategy="simple"']
    huge = predict(plan({**load("demo", settings).data, "sweep": {}, "case": [{}]}).runs[0].experiment)
    assert largest <= predicting.SAMPLE
    assert huge.control_messages == pytest.approx(999e6)
    assert huge.nbytes > 10e9
    assert "million messages" in str(huge)
    assert "GB on disk" in str(huge)


def test_nothing_costs_nothing():
    empty = predict(plan({**SMALL, "workload": {"subscriptions": 0, "events": 0}}).runs[0].experiment)
    assert empty.messages == 0
    assert empty.rows["deliveries"] == 0


def test_time_is_what_the_counted_work_costs():
    size = predicting.Prediction(1e6, 2e6, {}, 0.0, 0.0, 0.0, searches=3e6, pairs=1e9)
    assert size.seconds("compiled") == pytest.approx(1.0 + 3 * 3.0 + 2 * 3.5 + 13.0)
    assert size.seconds("simpy") > 5 * size.seconds("compiled")
    said = [predicting.about(seconds) for seconds in (0.2, 19.6, 119.0, 130.0, 8000.0)]
    assert said == ["less than a second", "about 20 s", "about 119 s", "about 2 minutes", "about 2 hours"]


@pytest.mark.parametrize("matching", [{"semantics": "relaxed"}, {"k": 3}, {"k": 3, "scope": "network"}], ids=str)
def test_deliveries_are_predicted_by_what_matches_and_whose_k_best_are_served(matching):
    predicted, tables, _ = run(matching=matching)
    assert predicted.rows["deliveries"] == pytest.approx(tables["deliveries"].num_rows, rel=0.35)


@pytest.mark.parametrize("rank", ["none", "cover", "skyband"])
@pytest.mark.parametrize("k", [1, 3])
def test_answers_and_awards_are_predicted_where_the_network_ranks(rank, k):
    predicted, tables, record = run(matching={"k": k, "scope": "network"}, routing={"rank": rank})
    hops = pc.sum(pc.greater_equal(tables["ranked"].column("source"), 0)).as_py()
    assert predicted.event_messages + predicted.answers_and_awards == pytest.approx(hops, rel=0.3)
    assert predicted.messages == pytest.approx(hops + record["control_messages"], rel=0.15)
    assert predicted.rows["ranked"] == pytest.approx(tables["ranked"].num_rows, rel=0.3)


def test_clients_at_the_nearest_broker_are_predicted_too():
    first = load("sensors").runs[0]
    assert predict(first.experiment, first.seed).messages > 0
