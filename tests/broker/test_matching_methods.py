"""Every matcher of every kind in a network of brokers, judged by the oracle: nothing missed, nothing twice.

The traces of all methods of a kind are the same to the byte: whoever ranks, the same subscriptions are served in the
same order with the same scores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import topk
from coverlay import CoverlayError
from sim.experiment import oracle
from sim.experiment.build import rules_of, settings_of, workload_of
from sim.experiment.plan import load, plan
from sim.experiment.runner import simulate
from sim.random_streams import streams
from topk.places.distance import DEGREES, GREAT_CIRCLE, furthest

BASE: dict[str, dict[str, Any]] = {
    "overlay": {"kind": "random-tree", "brokers": 5},
    "arrivals": {"kind": "static", "unsubscribe": 0.2},
    "run": {"samples": 0},
}
SPARSE = {
    "kind": "begen",
    "attributes": 40,
    "subscriptions": 120,
    "events": 25,
    "match_probability": 0.05,
    "cardinality": 1000,
    "subscription_size": 4,
    "event_size": 10,
}
LOCATED = {"kind": "located", "attributes": 16, "subscriptions": 120, "events": 25, "cardinality": 10}
CASES = [
    *(("boxes", name, SPARSE, "exact") for name in ("scan", "auto", "slices")),
    *(("predicates", name, SPARSE, "exact") for name in topk.methods("predicates")),
    *(("places", name, LOCATED, "relaxed") for name in topk.methods("places")),
    *(("places", name, {**LOCATED, "subscription_size": 1}, "exact") for name in topk.methods("places")),
]


def run(workload: dict[str, Any], **sections: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    data = {"name": "test", **{**BASE, **sections}, "workload": workload}
    tables, _ = simulate(plan(data).runs[0])
    return tables, tables["run"].to_pylist()[0]


@pytest.fixture(scope="module")
def served() -> dict[Any, Any]:
    """The deliveries of the first method of each kind, for the others to compare with."""
    return {}


@pytest.mark.parametrize(("kind", "method", "workload", "semantics"), CASES)
def test_every_method_serves_the_same(kind, method, workload, semantics, served) -> None:
    matching = {"kind": kind, "method": method, "semantics": semantics, "k": 3}
    tables, record = run(workload, matching=matching)
    assert (record["missed"], record["duplicates"], record["spurious"]) == (0, 0, 0)
    assert record["deliveries"] > 20
    first = served.setdefault((kind, semantics), tables["deliveries"])
    assert tables["deliveries"].equals(first)


def test_both_metrics_are_judged() -> None:
    """Distances by either metric, with and without an event's place, are those of the oracle; ranks differ."""
    orders = []
    for metric in ("great-circle", "degrees"):
        tables, record = run(LOCATED, matching={"method": "ri-tree", "semantics": "relaxed", "metric": metric, "k": 3})
        assert (record["missed"], record["duplicates"], record["spurious"]) == (0, 0, 0)
        orders.append(tables["deliveries"].to_pandas()[["event", "subscription", "rank"]].to_numpy().tolist())
    assert orders[0] != orders[1]


@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "merging"])
@pytest.mark.parametrize("method", ["pivot", "ri-tree"])
def test_every_strategy_is_safe_with_them(strategy, method) -> None:
    sparse = method == "pivot"
    matching = {"method": method, "semantics": "exact" if sparse else "relaxed", "k": 2}
    _, record = run(SPARSE if sparse else LOCATED, matching=matching, routing={"strategy": strategy})
    assert (record["missed"], record["duplicates"], record["spurious"]) == (0, 0, 0)
    assert record["deliveries"] > 20


def test_hundreds_of_attributes() -> None:
    workload = {**SPARSE, "attributes": 400}
    _, record = run(workload, matching={"method": "be-star", "k": 5}, covering={"method": "poset"})
    assert (record["missed"], record["duplicates"], record["spurious"]) == (0, 0, 0)
    with pytest.raises(CoverlayError, match="400 attributes are too many for zorder"):
        run(workload, matching={"method": "be-star"}, covering={"method": "zorder"})


def test_brokers_and_clients_on_a_map() -> None:
    area = {"latitude": [25.0, 49.0], "longitude": [-124.0, -67.0]}
    overlay = {"kind": "waxman", "brokers": 8, "map": area, "latency": {"kind": "great-circle"}}
    data = {
        "name": "map",
        "overlay": overlay,
        "workload": LOCATED,
        "run": {"samples": 0},
        "matching": {"method": "ri-tree", "semantics": "relaxed", "k": 3},
        "arrivals": {"kind": "static", "attach": "nearest"},
    }
    one = plan(data).runs[0]
    tables, _ = simulate(one)
    record, brokers = tables["run"].to_pylist()[0], tables["brokers"].to_pandas().set_index("broker")
    assert (record["missed"], record["duplicates"], record["spurious"]) == (0, 0, 0)
    assert brokers["x"].between(-124, -67).all()
    assert brokers["y"].between(25, 49).all()
    links = tables["links"].to_pandas()
    for link in links.itertuples():  # light in glass takes 5 µs per km, and no link is longer than its coordinates say
        ends = brokers.loc[[link.broker, link.neighbour]]
        degrees = np.hypot(*np.ptp(ends[["x", "y"]].to_numpy(), axis=0))
        assert 0.6 * 111.2 * 0.005 * degrees < link.latency < 1.01 * 111.2 * 0.005 * degrees
    near = workload_of(one.experiment, streams(1)).near
    homes = tables["operations"].to_pandas().set_index("subscription")["broker"]
    for subscription, home in homes.items():  # on an almost square map the nearest is never far from the nearest by eye
        there = brokers.loc[home, ["y", "x"]].to_numpy()
        gap = np.hypot(*(brokers[["y", "x"]].to_numpy() - near[subscription, :2]).T)
        assert np.hypot(*(there - near[subscription, :2])) <= 1.7 * gap.min()


@pytest.mark.parametrize(
    ("matching", "workload", "message"),
    [
        ({"method": "nonsense"}, SPARSE, "nonsense.*be-star.*ri-tree"),
        ({"kind": "nonsense"}, SPARSE, "kind of matching.*boxes, places, predicates"),
        ({"kind": "places", "method": "pivot"}, LOCATED, "pivot.*ri-tree"),
        (
            {"method": "pivot", "semantics": "relaxed"},
            SPARSE,
            "pivot is exact; relaxed.*by method = .scan",
        ),
        ({"method": "pivot", "max_distance": 3.0}, SPARSE, "max_distance.*no effect.*predicates"),
        ({"method": "pivot", "metric": "degrees"}, SPARSE, "metric.*no effect.*predicates"),
        ({"method": "ri-tree", "metric": "miles"}, LOCATED, "matching.metric.*great-circle"),
        ({"method": "ri-tree"}, SPARSE, "latitude and longitude"),
        ({"method": "ri-tree", "nodes": 3}, LOCATED, "no option 'nodes'"),
        ({}, {**SPARSE, "attributes": 2}, "subscription_size is 4; it must be a whole number from 1 to 2"),
        ({}, {**SPARSE, "subscription_size": 20}, "event_size is 10; it must be at least subscription_size"),
        ({}, {**SPARSE, "subscriptions": 10_000_000}, "too many for a broker experiment"),
        ({}, {**LOCATED, "latitude": [50, 40]}, r"workload.latitude is \[50, 40\]"),
        ({}, {**LOCATED, "alpha": 2.0}, "workload.alpha"),
    ],
)
def test_mistakes_are_said_in_a_sentence(matching, workload, message) -> None:
    with pytest.raises(CoverlayError, match=message):
        run(workload, matching=matching)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"arrivals": {"attach": "nearest"}}, "needs brokers on a map"),
        ({"arrivals": {"attach": "somewhere"}}, "nearest, random"),
        ({"overlay": {"latency": {"kind": "great-circle"}}}, "on no map"),
        ({"overlay": {"map": {"latitude": [0, 1]}}}, "overlay.map.longitude"),
        ({"overlay": {"map": {"latitude": [0, 100], "longitude": [0, 1]}}}, "overlay.map.latitude is 100"),
        ({"overlay": {"map": {"latitude": [0, 1], "longitude": [0, 1], "zoom": 3}}}, "no option 'zoom'"),
    ],
)
def test_mistakes_about_maps(sections, message) -> None:
    with pytest.raises(CoverlayError, match=message):
        run(LOCATED, **sections)


def test_text_files_with_places(tmp_path) -> None:
    """Subscriptions and events as people write them, ranked by ψ; the arithmetic is in the comments."""
    (tmp_path / "subscriptions.csv").write_text(
        "text,broker\n"
        '"price < 10 and near (48, 11) alpha 0.5",0\n'  # .5 · 1 + .5 · (1 − 1/5) = .9
        '"price < 10 and near (48, 14) alpha 0.25",0\n'  # .75 · 1 + .25 · (1 − 4/5) = .8
        '"price < 10 weight 3 and kind = ""bar"" weight 1",0\n'  # relaxed: 3/4, near nowhere
        '"price > 20 and near (48, 10) alpha 1",0\n'  # no predicate holds
    )
    (tmp_path / "events.csv").write_text("price,kind,lat,lon,broker\n9,cafe,48,10,1\n9,,,,1\n")
    (tmp_path / "x.toml").write_text(
        'overlay = { kind = "line", brokers = 2 }\n'
        'workload = { subscriptions_file = "subscriptions.csv", events_file = "events.csv" }\n'
        'matching = { method = "ri-tree", semantics = "relaxed", metric = "degrees" }\n'
        "[schema]\nprice = { kind = 'continuous', low = 0, high = 100 }\n"
        "kind = { kind = 'categorical', categories = ['cafe', 'bar'] }\n"
        "lat = { kind = 'latitude', low = 46, high = 50 }\nlon = { kind = 'longitude', low = 8, high = 11 }\n"
    )
    tables, _ = simulate(load(str(tmp_path / "x.toml")).runs[0])
    rows = [(d["event"], d["subscription"], d["score"]) for d in tables["deliveries"].to_pylist()]
    assert rows == [
        (0, 0, pytest.approx(0.9)), (0, 1, pytest.approx(0.8)), (0, 2, pytest.approx(0.75)),
        (1, 1, pytest.approx(0.75)), (1, 2, pytest.approx(0.75)), (1, 0, pytest.approx(0.5)),
    ]  # fmt: skip
    record = tables["run"].to_pylist()[0]
    assert (record["missed"], record["duplicates"], record["spurious"]) == (0, 0, 0)


def test_the_oracle_sees_a_wrong_rank() -> None:
    """A truth that measures distance differently must find fault with the order: it can fail."""
    data = {"name": "test", **BASE, "workload": LOCATED, "matching": {"method": "ri-tree", "semantics": "relaxed"}}
    one = plan(data).runs[0]
    tables, _ = simulate(one)
    workload = workload_of(one.experiment, streams(1))
    far = furthest(np.array([25.0, -124.0]), np.array([49.0, -67.0]), GREAT_CIRCLE)

    rules = rules_of(settings_of(one.experiment, workload))

    def judged(**changed: Any) -> oracle.Verdict:
        return oracle.judge(workload, tables, replace(rules, **changed))

    assert (rules.max_distance, rules.metric) == (far, GREAT_CIRCLE)
    assert judged().spurious == 0
    assert judged(max_distance=far / 20).spurious > 0
    assert judged(max_distance=float(np.hypot(24, 57)), metric=DEGREES).spurious > 0
    assert judged(kind="boxes").spurious > 0
