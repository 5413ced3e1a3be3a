"""What is told is what brokers knew at that moment: each test has one thing that was told wrongly before."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.report.told import read_told
from sim.experiment.plan import EXPERIMENT, load
from sim.experiment.sweep import SweepResult
from sim.tell.explain import explain
from sim.tell.keep import keep
from sim.tell.stories import tell
from tests.sim.tell.own_files import ran

COLUMNS = "broker,time,until,price_lo,price_hi\n"
AT_FAR = "time,broker,price\n100,far,25\n"
AT_LEAF = "time,broker,price\n100,leaf,25\n"


def told(out: Path, subscription: int | None, event: int = 0) -> str:
    return "\n".join(explain(out, event, subscription))


def story(out: Path) -> str:
    return "\n".join(tell(load(str(out / EXPERIMENT)), out, 3))


def test_what_an_event_is_sent_on_for_matches_it_and_is_in_the_table(tmp_path):
    out = ran(tmp_path, COLUMNS + "hub,0,,0,90\nhub,10,,20,30\nhub,20,,40,50\n", AT_FAR)
    assert told(out, 0).count("sent on, for the subscription itself") == 2
    assert told(out, 1).count("sent on, for 0, which covers it") == 2
    assert told(out, 2).count("sent on, for 0; this one does not match") == 2
    assert "hub: not delivered, it does not match the event" in told(out, 2)


def test_a_cover_that_comes_after_the_event_does_not_count(tmp_path):
    out = ran(tmp_path, COLUMNS + "hub,0,,20,30\nhub,140,,0,90\n", AT_FAR, routing__mode="active")
    assert told(out, 0).count("sent on, for the subscription itself") == 2
    assert "hub: not delivered, its broker had not taken it in yet" in told(out, 1)
    assert "held back" not in story(out)
    later = ran(tmp_path, COLUMNS + "hub,0,,20,30\nhub,40,,0,90\n", AT_FAR, routing__mode="active")
    assert told(later, 0).count("sent on, for 1, which covers it") == 2
    assert "held back on the one link it had come to, covered by subscription 1, " in story(later)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("hub,99.5,,20,30", "far ✗ leaf: not sent on, 0 had not come from hub to leaf"),
        ("hub,98.5,,20,30", "far ✗ leaf: not sent on, 0 had not come from leaf to far"),
        ("hub,0,90,20,30", "far ✗ leaf: not sent on, it had left"),
        ("hub,150,,20,30", "far ✗ leaf: not sent on, its broker had not taken it in yet"),
        ("hub,0,,40,50", "far ✗ leaf: not sent on, it does not match the event"),
    ],
)
def test_why_an_event_was_not_sent_on(row, why, tmp_path):
    assert why in told(ran(tmp_path, COLUMNS + row + "\n", AT_FAR), 0)


def test_who_is_sent_in_its_place_may_be_under_way(tmp_path):
    out = ran(tmp_path, COLUMNS + "hub,98.5,,0,90\nhub,99,,20,30\n", AT_FAR)
    assert "far ✗ leaf: not sent on, 0 had not come from leaf to far" in told(out, 1)


def test_who_left_while_it_was_under_way_ranks_below_nobody(tmp_path):
    out = ran(tmp_path, COLUMNS + "hub,0,100.5,20,30\nhub,0,,20,30\n", AT_FAR)
    assert "hub: not delivered, it had left" in told(out, 0)
    said = told(out, None)
    assert "2 subscriptions in force match it; served: 1 of them" in said
    assert "1 had left when it came: 0" in said
    assert "None" not in said


def test_a_newcomer_that_is_served_does_not_hide_one_that_is_not(tmp_path):
    out = ran(tmp_path, COLUMNS + "hub,0,,20,30\nfar,99.5,,20,30\nhub,100.5,,20,30\n", AT_LEAF)
    assert "2 of 2 subscriptions in force match, 1 of these was served and 1 that came later." in story(out)
    assert "Due and not served: 1, such as subscription 1 at far" in story(out)
    assert "leaf ✗ far: not sent on, 1 had not come from far to leaf" in story(out)
    assert "served: 1 of them, and 1 that came later" in told(out, None)


def test_what_a_cut_lost_was_not_beaten(tmp_path):
    cut = "time,kind,broker,neighbour,until\n90,cut,hub,leaf,200\n"
    subscriptions = COLUMNS + "hub,0,,20,30\nfar,0,,20,30\nfar,1,,20,30\n"
    out = ran(tmp_path, subscriptions, AT_LEAF, cut, matching__k=1)
    assert "Matched but beaten: 1, such as subscription 2 at far" in story(out)
    assert "Due and not served: 1, such as subscription 0 at hub" in story(out)
    assert "leaf ✗ hub: lost: the link to hub was down" in story(out)
    assert "far: not delivered, 1 others of its broker rank before it, and 1 are served" in told(out, 2)


def test_the_number_of_an_advertisement_is_not_that_of_a_subscription(tmp_path):
    """Broker 0 advertises as 0, and subscription 0 lives elsewhere."""
    cut = "time,kind,broker,neighbour,until\n90,cut,far,leaf,200\n"
    events = "time,broker,price\n50,hub,25\n100,hub,25\n"
    out = ran(tmp_path, COLUMNS + "far,10,,20,30\n", events, cut, routing__advertisements="covering")
    assert "subscription 0 lives at far" in told(out, 0)
    assert "far: delivered, rank 1" in told(out, 0)
    assert "leaf ✗ far: lost: the link to far was down" in told(out, 0, event=1)
    keep(load(str(out / EXPERIMENT)), out, SweepResult())
    (loss,) = read_told(out).losses
    assert loss.in_words().endswith("lost, of which clients of far 100.0 %.")


def test_an_event_that_its_broker_did_not_take_in_was_published_all_the_same(tmp_path):
    events = "time,broker,price\n" + "".join(f"{100 + i},far,25\n" for i in range(3))
    service = {"kind": "constant", "value": 10.0}
    out = ran(tmp_path, COLUMNS + "hub,0,,20,30\n", events, broker__queue=1, broker__service=service)
    said = told(out, None, event=2)
    assert "event 2 published at far at 102.000 ms" in said
    assert "far: dropped: the queue of far was full" in said
    assert "1 at hub did not get it, the event did not reach the broker: 0" in said
    assert "far: dropped: the queue of far was full" in told(out, 0, event=2)


def test_events_are_sent_towards_the_root_only_upwards(tmp_path):
    out = ran(tmp_path, COLUMNS + "hub,0,,20,30\n", AT_FAR, routing__strategy="hierarchical")
    assert "far → leaf: sent on, as every event is, towards the root" in told(out, 0)
    assert "leaf → hub: sent on, for the subscription itself" in told(out, 0)


def test_a_broker_that_forgot_is_not_told_as_if_it_remembered(tmp_path):
    crash = "time,kind,broker,neighbour,until,state\n95,crash,leaf,,99,{}\n"
    for state, why in (
        ("lost", "leaf ✗ hub: not sent on, 0 had not come from hub to leaf"),
        ("kept", "leaf → hub: sent on, for the subscription itself"),
    ):
        out = ran(tmp_path, COLUMNS + "hub,0,,20,30\n", AT_LEAF, crash.format(state))
        assert why in told(out, 0)


def test_of_a_ranked_network_nothing_is_said_of_bounds_behind_a_link_that_was_down(tmp_path):
    subscriptions = "broker,time,price_lo,price_hi,score\nhub,0,20,30,0.9\nfar,50,20,30,0.5\n"
    ranked = {"matching__k": 1, "matching__scope": "network", "routing__rank": "cover"}
    whole = ran(tmp_path, subscriptions, AT_LEAF, **ranked)
    assert "its broker was not asked: the best entry on the way to it does not beat that" in told(whole, 1)
    out = ran(tmp_path, subscriptions, AT_LEAF, "time,kind,broker,neighbour,until\n40,cut,far,leaf,200\n", **ranked)
    assert told(out, 1).endswith("its broker was not asked")
    assert "1 at brokers that were not asked" in story(out)
