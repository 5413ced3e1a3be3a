"""What is told of an event is what happened: nothing is guessed where a trace is silent."""

from __future__ import annotations

import pytest

from sim.experiment.plan import EXPERIMENT, plan
from sim.experiment.sweep import run_sweep
from sim.tell.contents import contents
from sim.tell.explain import explain
from sim.tell.run_trace import RunTrace
from sim.tell.truth import Truth

BASE = {
    "name": "small",
    "overlay": {"kind": "line", "brokers": 4, "latency": {"kind": "constant", "value": 1.0}},
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 30, "events": 40},
}


def ran(folder, **settings):
    assert not run_sweep(plan(BASE, settings=settings), folder).failures
    return RunTrace(folder, None)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"arrivals.kind": "preloaded"},
            "for an entry that the trace does not tell; `coverlay tables {folder} --subscription {number}`",
        ),
        ({"routing.strategy": "flooding"}, "as every event is"),
        ({"routing.strategy": "simple"}, "for the subscription itself"),
    ],
)
def test_why_a_delivered_event_was_sent_on(settings, why, tmp_path):
    deliveries = ran(tmp_path, **settings).read("deliveries")
    event, number = map(int, deliveries.loc[deliveries["hops"] == 3, ["event", "subscription"]].iloc[0])
    words = list(explain(tmp_path, event, number))
    assert sum(why.format(folder=tmp_path, number=number) in line for line in words) == 3, words
    assert "delivered, rank" in words[-1]


def test_who_comes_again_after_a_crash_has_not_left_and_a_loss_names_its_link(tmp_path):
    settings = {"faults.crash_fraction": 0.25, "faults.downtime": 15.0, "faults.state": "lost"}
    trace = ran(tmp_path, **settings)
    operations, faults = trace.read("operations"), trace.read("faults")
    again = int(operations.loc[operations["kind"] == "resubscribe", "subscription"].iloc[0])
    event = int(trace.read("publications").iloc[0].event)
    assert not any("it left" in line for line in explain(tmp_path, event, again))
    lost = faults[faults["kind"] == "link-down"].iloc[0]
    here, there = trace.names[lost.broker], trace.names[lost.neighbour]
    assert any(
        f"{here}: lost: the link to {there} was down" in line for line in explain(tmp_path, int(lost.event), None)
    )


def test_who_did_not_get_an_event_is_named_with_the_reason(tmp_path):
    settings = {"faults.crash_fraction": 0.25, "faults.downtime": 15.0, "matching.k": 2}
    trace = ran(tmp_path, **settings)
    lost = trace.read("faults")
    event = int(lost.loc[lost["kind"] == "link-down", "event"].iloc[0])
    words = list(explain(tmp_path, event, None))
    (counted,) = [line for line in words if "subscriptions in force match it" in line]
    matching, served = int(counted.split()[0]), int(counted.split()[-3])
    deliveries = trace.read("deliveries")
    assert served == int((deliveries["event"] == event).sum())
    missed = [line.split() for line in words if "did not get it, the event did not reach the broker" in line]
    below = [int(line.split()[0]) for line in words if "rank below the 2 best" in line]
    assert missed
    assert matching - served == sum(int(line[0]) for line in missed) + sum(below)
    stranger = int(missed[0][-1])
    assert any(" ✗ " in line for line in explain(tmp_path, event, stranger)), "it stopped on the way"


def test_without_its_files_a_run_still_tells_what_its_trace_has(tmp_path):
    asked = tmp_path / "subs.csv"
    asked.write_text("price_lo,price_hi\n" + "0,9\n" * 30)
    (tmp_path / "events.csv").write_text("price\n1\n2\n")
    files = {"subscriptions_file": str(asked), "events_file": str(tmp_path / "events.csv")}
    own = {**BASE, "workload": files}
    assert not run_sweep(plan(own), tmp_path).failures
    asked.write_text("price_lo,price_hi\n0,1\n")
    words = list(explain(tmp_path, 0, None))
    assert any("from its publisher" in line for line in words)
    assert "has changed since" in words[-1]


def test_a_page_says_what_events_and_subscriptions_say_and_nothing_where_an_input_has_changed(tmp_path):
    trace = ran(tmp_path)
    said = contents(tmp_path)(trace.run_id)
    truth = Truth(trace.planned(), trace)
    assert said("event", 3) == truth.event_words(3)
    assert said("subscription", 5) == truth.words(5)
    experiment = tmp_path / EXPERIMENT
    experiment.write_text(experiment.read_text().replace("events = 40", "events = 41"))
    assert contents(tmp_path)(trace.run_id) is None
