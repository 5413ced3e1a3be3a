"""The shipped scenarios tell what happened, and what they tell is in the trace and in the workload."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from broker.language import compile_subscription, parse_event, parse_subscription
from sim.experiment.build import workload_of
from sim.experiment.plan import load, plan
from sim.experiment.sweep import run_sweep
from sim.random_streams import streams
from sim.tell.run_trace import RunTrace
from sim.tell.stories import tell

SCENARIOS = ("stocks", "ads", "jobs", "sensors")
SMALL = ["workload.subscriptions=120", "workload.events=30", "overlay.brokers=8", "seeds=[1]"]
SAID = re.compile(r"subscription (\d+)(?: at \w+)?, (.*?)(?: \(elsewhere by .*\))?$")


@pytest.fixture(scope="module", params=SCENARIOS)
def told(request, tmp_path_factory):
    """A small run of each scenario with covering only: its plan, its folder, and the lines about three events."""
    whole = load(request.param, SMALL)
    data = {key: value for key, value in whole.data.items() if key not in ("sweep", "case")}
    small = plan(data)
    out = tmp_path_factory.mktemp(request.param)
    result = run_sweep(small, out)
    assert len(result.outcomes) == 1
    assert result.wrong == []
    return small, out, list(tell(small, out, 3))


def test_three_events_are_told_as_they_were_published(told):
    small, _, lines = told
    workload = workload_of(small.runs[0].experiment, streams(1))
    events = [re.fullmatch(r"Event (\d+), published at \w+: (.*)", line) for line in lines]
    events = [found for found in events if found]
    assert len(events) == 3
    for found in events:
        values = parse_event(found[2]).encode(workload.schema)
        np.testing.assert_array_equal(values, workload.events[int(found[1])])


def test_subscriptions_are_real_and_were_served_as_told(told):
    small, out, lines = told
    workload = workload_of(small.runs[0].experiment, streams(1))
    deliveries = RunTrace(out, None).read("deliveries")
    event, served = None, 0
    for line in lines:
        if line.startswith("Event "):
            event = int(line.split()[1].strip(","))
        found = SAID.search(line)
        if not found:
            continue
        subscription = int(found[1])
        filter_ = compile_subscription(workload.schema, parse_subscription(found[2]))
        np.testing.assert_array_equal(filter_.box[:, 0], workload.lo[subscription])
        np.testing.assert_array_equal(filter_.box[:, 1], workload.hi[subscription])
        if line.startswith("  Served at"):
            row = deliveries[(deliveries["event"] == event) & (deliveries["subscription"] == subscription)].iloc[0]
            hops = "no hop" if row.hops == 0 else f"{int(row.hops)} hop"
            assert f"as number {int(row['rank'])}, score {row.score:.4g}, after {hops}" in line
            served += 1
    assert served >= 3


def test_covers_that_are_named_do_cover(told):
    small, _, lines = told
    workload = workload_of(small.runs[0].experiment, streams(1))
    held = 0
    for before, line in pairwise(lines):
        if "held back on" in line:
            covered, cover = (int(SAID.search(text)[1]) for text in (before, line))
            assert (workload.lo[cover] <= workload.lo[covered]).all()
            assert (workload.hi[cover] >= workload.hi[covered]).all()
            held += 1
    # Relaxed wishes seldom cover each other, and of a ranked network only the best of each event is told in full.
    assert held or "interest" in workload.schema.names or small.runs[0].experiment.network_wide


def test_a_run_without_deliveries_says_so(tmp_path):
    small = plan({**load("stocks", SMALL).data, "sweep": {}, "workload": {"kind": "stocks", "subscriptions": 0}})
    run_sweep(small, tmp_path)
    assert list(tell(small, tmp_path, 3)) == ["No event reached anybody in this run."]


def test_a_sample_is_not_told_as_if_it_were_everything(tmp_path):
    small = plan({**load("stocks", [*SMALL, "run.sample_deliveries=0.5"]).data, "sweep": {}})
    assert list(tell(small, tmp_path, 3)) == ["No story: these runs keep a sample of decisions or deliveries only."]


def test_a_run_that_failed_is_not_told(tmp_path):
    small = plan({**load("stocks", SMALL).data, "sweep": {}, "seeds": [1, 2]})
    assert list(tell(small, tmp_path, 3)) == ["No story: every run failed."]
    run_sweep(plan({**small.data, "seeds": [2]}), tmp_path)
    assert len(list(tell(small, tmp_path, 3))) > 3


@pytest.mark.parametrize("rank", ["none", "cover", "skyband"])
def test_of_a_ranked_network_it_is_told_who_was_skipped_and_why(tmp_path, rank):
    """The openings that most seekers want; who matched and was not served lives somewhere, and ranks behind."""
    data = {key: value for key, value in load("jobs", SMALL).data.items() if key != "case"}
    small = plan({**data, "routing": {"rank": rank}})
    run_sweep(small, tmp_path)
    lines = list(tell(small, tmp_path, 20))
    assert f"rank {rank}; those that most subscriptions match" in lines[0]
    matched = [
        int(found[1]) for line in lines if (found := re.search(r"^  (\d+) of 120 subscriptions in force match", line))
    ]
    assert len(matched) == 20
    assert matched == sorted(matched, reverse=True)
    workload, trace = workload_of(small.runs[0].experiment, streams(1)), RunTrace(tmp_path, None)
    deliveries, ranked, told = trace.read("deliveries"), trace.read("ranked"), 0
    for before, line in pairwise(lines):
        if before.startswith("Event "):
            event, count = int(before.split()[1].strip(",")), int(line.split()[0])
        if not line.startswith("  Skipped: "):
            continue
        served = deliveries[deliveries["event"] == event]
        assert line.startswith(f"  Skipped: {count - len(served)} that match rank behind the 5 best: ")
        parts = [int(part.split()[0]) for part in line.partition("best: ")[2].split("; ")]
        assert sum(parts) == count - len(served), line
        over_links = ranked[(ranked["event"] == event) & (ranked["source"] >= 0)]
        assert rank != "skyband" or "query" not in set(over_links["kind"])
        told += 1
        following = lines[lines.index(line) + 1]
        score, best = re.search(r"with ([\d.e-]+): subscription (\d+)", following).groups()
        assert float(score) == pytest.approx(workload.scores[int(best)], rel=1e-3)
        assert workload.scores[int(best)] <= served["score"].min()
        assert int(best) not in set(served["subscription"])
    assert told
