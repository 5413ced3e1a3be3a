"""Work becomes time: what is charged, by whose coefficients, and which profiles are refused."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import covering
from broker.work import DEFAULT, PROFILES, load_profile, search_keys, shipped_profiles
from coverlay import CoverlayError
from sim.calibrate import in_words, to_profile
from sim.calibrate.fit import fit, predicted
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

COSTS = """
[message]
control = 1000.0
event = 2000.0
byte = 1.0
result = 7.0
[tables]
table = 30.0
entry = 5.0
[storage]
page = 400.0
round_trip = 900.0
[covering.scan]
check = 10.0
probe = 3.0
covered = 50.0
covered_entry = 2.0
[covering.kdtree]
check = 11.0
probe = 4.0
covered = 60.0
covered_entry = 6.0
[covering.packed]
check = 12.0
probe = 0.0
covered = 0.0
covered_entry = 0.0
[covering.budget]
check = 13.0
probe = 0.0
covered = 0.0
covered_entry = 0.0
[covering.kdtree-epsilon]
check = 14.0
probe = 8.0
covered = 0.0
covered_entry = 0.0
[matching.boxes.auto]
query = 100.0
entry = 8.0
node = 9.0
"""


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "costs.toml"
    path.write_text(COSTS)
    return path


def traced(profile, **sections):
    data = {
        "name": "priced",
        "overlay": {"kind": "line", "brokers": 3, "latency": {"kind": "constant", "value": 1.0}},
        "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 40, "events": 20},
        "broker": {"service": {"kind": "work", "profile": str(profile)}},
        "arrivals": {"kind": "static", "unsubscribe": 0.3},
        "covering": {"method": "scan"},
        "matching": {"k": 3},
        **sections,
    }
    tables, _ = simulate(plan(data).runs[0])
    return {name: table.to_pandas() for name, table in tables.items()}


def test_an_event_takes_what_its_work_costs(profile):
    hops = traced(profile)["publications"]
    tables = (30.0 * hops["tables_asked"] + 5.0 * hops["compared"]) / 1000
    matching = (100.0 + 8.0 * hops["matcher_entries"] + 9.0 * hops["matcher_nodes"]) / 1000
    sent = hops["forwarded"] * (32 + 2 * 8)
    assert np.allclose(hops["on_tables"], tables)
    assert np.allclose(hops["on_matching"], matching)
    assert np.allclose(hops["service"], 2.0 + tables + matching + (7.0 * hops["served"] + sent) / 1000)
    assert (hops["served"] > 0).any()
    assert (hops["compared"] > hops["tables_asked"]).any()
    assert not hops[["sliced", "blocks", "matcher_nodes"]].any(axis=None)


@pytest.mark.parametrize("mode", ["lazy", "active"])
def test_a_subscription_takes_what_its_searches_cost(profile, mode):
    trace = traced(profile, routing={"mode": mode})
    decisions, control = trace["decisions"], trace["control"]
    asked = decisions[decisions["probes"] > 0]
    lazy = (10.0 + 3.0 * asked["probes"] + 400.0 * asked["pages"] + 900.0 * asked["round_trips"]) / 1000
    if mode == "lazy":
        assert np.allclose(asked["took"], lazy)
    else:
        sent = asked["outcome"].isin(["forwarded", "exposed"])
        assert np.allclose(asked["took"][~sent], lazy[~sent])
        assert (asked["took"][sent] >= lazy[sent] + (50.0 + 400.0 + 900.0) / 1000 - 1e-9).all()
    # Each message's searches, from the decisions at its broker at its time.
    spent = decisions.groupby(["broker", "time"])["took"].sum()
    found = [spent.get((row.target, row.time), 0.0) for row in control.itertuples()]
    assert np.allclose(control["on_covering"], found)
    left = control[control["source"] >= 0].groupby(["source", "sent"])
    size = left["kind"].agg(lambda kinds: sum(64 if kind == "subscribe" else 32 for kind in kinds))
    sent = [size.get((row.target, row.time + row.service), 0) for row in control.itertuples()]
    assert np.allclose(control["service"], 1.0 + control["on_covering"] + np.array(sent) / 1000)


def test_a_search_costs_by_the_method_that_did_it(profile):
    exact = traced(profile, covering={"method": "auto"})["decisions"]
    roughly = traced(profile, covering={"method": "kdtree", "epsilon": 0.1})["decisions"]
    for rows, check, probe in ((exact, 11.0, 4.0), (roughly, 14.0, 8.0)):
        rows = rows[rows["probes"] > 0]
        beyond = rows["took"] * 1000 - 400.0 * rows["pages"] - 900.0 * rows["round_trips"]
        assert np.allclose(beyond, check + probe * rows["probes"])


def test_pages_and_round_trips_follow_the_way_a_method_reads():
    rng = np.random.default_rng(1)
    boxes = np.sort(rng.random((3000, 2, 2)), axis=2)
    for method, per_page, apart in (("scan", 128, False), ("packed", 512, False), ("kdtree", 64, True)):
        from covering.filters import FilterIndex

        index = FilterIndex(method, [[0, 1]] * 2)
        for number, box in enumerate(boxes):
            index.add(number, box)
        index.find_cover(np.array([[0.0, 1.0]] * 2))
        ((at_work, probes, pages, trips, *_),) = index.asked
        assert at_work == method
        assert probes > 0
        assert pages == -(-probes // per_page)
        assert trips == (pages if apart else 1)
        assert (index.stats.pages, index.stats.round_trips) == (pages, trips)


def test_shipped_profiles_have_every_search_and_the_others_build_on_the_first():
    assert {DEFAULT, "disk", "remote"} == set(shipped_profiles())
    usual, disk, remote = (load_profile(name) for name in (DEFAULT, "disk", "remote"))
    assert set(usual.covering) == set(search_keys()) >= set(covering.methods()) - {"auto"}
    assert usual.covering == disk.covering == remote.covering
    assert usual.flat["page"] == usual.flat["round_trip"] == 0.0
    assert disk.flat["page"] > 0
    assert remote.flat["round_trip"] > 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("control = 1000.0\n", "", "lacks the coefficient control"),
        ("entry = 5.0\n", "", "[tables] lacks the coefficient entry"),
        ("entry = 5.0\n", "entry = 5.0\nblock = 6.0\n", "[tables] has 'block'; it takes: table, entry"),
        ("probe = 3.0", "probe = -3.0", "probe is -3.0"),
        ("probe = 3.0", "probe = nan", "probe is nan"),
        ("probe = 3.0", "probe = inf", "probe is inf"),
        ("probe = 3.0", 'probe = "3"', "probe is '3'"),
        ("probe = 3.0", "probes = 3.0", "probes"),
        ("[covering.scan]", "[covering.scam]", "did you mean 'scan'"),
        ("[matching.boxes.auto]", "[matching.boxen.auto]", "boxen"),
        ("[storage]", "[covering]\nposet = 3\n[storage]", "[covering.poset] is 3; it must be a table"),
        ("[matching.boxes.auto]", "[matching]\npredicates = 3\n[matching.boxes.auto]", "[matching.predicates] is 3"),
        ("[matching.boxes.auto]", "[matching.boxes.autos]", "autos"),
        ("[message]", "[massage]", "massage"),
        ("[message]", "[message", "not a TOML file"),
        ("[covering.scan]", "[covering.poset]", "no coefficients for covering method 'scan'"),
    ],
)
def test_bad_profiles_are_refused_in_one_sentence(profile, old, new, told):
    assert COSTS.count(old) == 1 or old.startswith("probe") or old == "[covering.scan]"
    profile.write_text(COSTS.replace(old, new, 1))
    with pytest.raises(CoverlayError) as refusal:
        traced(profile)
    assert told in str(refusal.value).replace('"', "'")


@pytest.mark.parametrize("named", ["warp", "nowhere.toml"])
def test_a_profile_that_is_not_there_is_named(named):
    with pytest.raises(CoverlayError, match=named):
        plan({"name": "x", "broker": {"service": {"kind": "work", "profile": named}}})


def test_the_content_of_a_profile_belongs_to_the_run(profile):
    data = {"name": "x", "broker": {"service": {"kind": "work", "profile": str(profile)}}}
    before = plan(data).runs[0]
    profile.write_text(COSTS.replace("byte = 1.0", "byte = 2.0"))
    assert list(before.inputs) == ["broker.service.profile"]
    assert before.run_id != plan(data).runs[0].run_id
    assert plan({"name": "x", "broker": {"service": {"kind": "work"}}}).runs[0].inputs == {}


def test_fitting_finds_the_coefficients_and_keeps_them_from_falling_below_zero():
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 1000, (30, 2)).astype(float)
    samples = [((a, b), 0.4 + 0.0011 * a + 0.02 * b) for a, b in counts.tolist()]
    values, error = fit(samples)
    assert np.allclose(values, (0.4, 0.0011, 0.02))
    assert error < 1e-9
    assert predicted(values, samples) == pytest.approx(1.0)
    falling, _ = fit([((a, b), 10.0 + 0.01 * a - 0.0001 * b) for a, b in counts.tolist()])
    assert min(falling) == 0.0


def test_a_profile_that_is_written_can_be_read_and_said():
    from sim.calibrate.fit import Fitted

    found = [
        Fitted("message", (0.6, 0.6, 0.00005, 0.5), 0.01, float("nan")),
        Fitted("tables", (0.3, 0.004), 0.1, 1.0),
        Fitted("covering.kdtree", (0.4, 0.0011, 2.0, 0.001), 0.1, 1.1),
        Fitted("matching.boxes.scan", (6.0, 0.0018, 0.0), 0.1, 0.9),
    ]
    assert in_words(found[2]) == "covering.kdtree: 0.4 µs + 1.1 ns per probe"
    assert in_words(found[1]) == "tables: 0.3 µs per table asked + 4 ns per entry compared"
    data = tomllib.loads(to_profile(found))
    assert data["covering"]["kdtree"] == {"check": 0.4, "probe": 0.0011, "covered": 2.0, "covered_entry": 0.001}
    assert data["matching"]["boxes"]["scan"]["entry"] == 0.0018
    assert (PROFILES / f"{DEFAULT}.toml").read_text().count("[covering.") == len(search_keys())
