"""What a sweep keeps for its page: the losses are the oracle's, the notes those of the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.report.costs import BOUNDS_FILE
from analysis.report.told import Loss, read_told
from broker.trace.schema import LOSSES
from sim.experiment.plan import plan
from sim.experiment.sweep import run_sweep
from sim.tell.keep import MOST_BROKERS, keep

CRASHES = {
    "name": "crashes",
    "overlay": {"kind": "line", "brokers": 6},
    "workload": {"kind": "uniform", "width": "wide", "subscriptions": 40, "events": 60},
    "arrivals": {"publish_rate": 0.5},
    "matching": {"k": 1},
    "faults": {"crash_fraction": 0.4, "downtime": 40.0},
    "tell": 1,
}


def test_losses_notes_and_stories_are_kept(tmp_path: Path) -> None:
    planned = plan(CRASHES, settings={"covering.epsilon": 0.0})
    result = run_sweep(planned, tmp_path)
    stories = keep(planned, tmp_path, result)
    told = read_told(tmp_path)
    assert told.stories == tuple(stories)
    assert stories
    assert told.notes == tuple(dict.fromkeys([*planned.notes, *result.warnings]))
    (loss,) = told.losses
    record = result.outcomes[0].record
    lost = sum(count for _, _, count in loss.times)
    assert lost == sum(count for _, count in loss.brokers) == sum(record[name] for name in LOSSES) > 0
    assert sum(required for _, required, _ in loss.times) == record["due"] == lost + record["due_delivered"]
    assert {mark["kind"] for mark in loss.marks} >= {"crash", "restart"}


def test_a_sweep_without_losses_has_none(tmp_path: Path) -> None:
    quiet = {**CRASHES, "faults": {}, "tell": 0}
    planned = plan(quiet)
    keep(planned, tmp_path, run_sweep(planned, tmp_path))
    assert read_told(tmp_path).losses == ()


def test_a_study_has_its_bounds_and_prices_whoever_ran_it(tmp_path: Path) -> None:
    quiet = {**CRASHES, "faults": {}, "tell": 0, "broker": {"service": {"kind": "work"}}}
    searches = [{"method": "zorder-emulated", "epsilon": e} for e in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    planned = plan({**quiet, "sweep": {"covering": searches}})
    keep(planned, tmp_path, run_sweep(planned, tmp_path))
    found = json.loads((tmp_path / BOUNDS_FILE).read_text())
    assert len(found["families"]) == 1
    assert len(found["profiles"]) > 1


def test_shares_of_brokers_are_of_all_that_was_lost_not_of_what_those_named_lost():
    many = tuple((f"b{i}", 10) for i in range(MOST_BROKERS))  # of a network in which 20 brokers lost as much each
    loss = Loss("r", ((0.0, 500, 200),), many, ())
    assert loss.in_words() == "200 deliveries lost, of which clients of b0 5.0 %, b1 5.0 % and b2 5.0 %."
    assert (
        Loss("r", ((0.0, 5, 5),), (("b1", 5),), ()).in_words() == "5 deliveries lost, of which clients of b1 100.0 %."
    )
    assert Loss("r", ((0.0, 5, 0),), (), ()).in_words() == "0 deliveries lost."
