"""The search for the highest rate: near the true one whatever the curve, and the criterion of a queue that grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coverlay import CoverlayError
from sim.capacity.load import Load
from sim.capacity.search import LOWEST, MOST, NARROW, Search
from sim.capacity.sentences import few, hasty, rates, row, sentence

LIMIT = 40.0


def load(p99: float = 10.0, load: float = 0.5, **changes: Any) -> Load:
    known: dict[str, Any] = {"where": "b7", "shares": {}, "messages": 2.0, "took": 0.25, "dropped": 0, "period": 900.0}
    known |= {"events": 2000, "rate": 0.0, "deliveries": 5000}
    return Load(p99 / 2, p99, load, **{**known, **changes})


def searched(measure: Any, limit: float = LIMIT, seeds: int = 1, drawn: float = 1.0) -> Search:
    search = Search(limit)
    for _ in range(60):
        rates = search.ask()
        if not rates:
            return search
        for rate in rates:
            search.tell(rate, [replace(measure(rate, seed), rate=drawn * rate) for seed in range(seeds)])
    raise AssertionError("it never ends")


@settings(max_examples=200)
@given(st.floats(2.0, 1e7), st.floats(0.05, 3.0))
def test_the_rate_is_found_whichever_limit_is_met_first(full: float, beyond: float) -> None:
    """A queue is full at `full`; latency reaches the limit at `beyond` times that rate."""
    search = searched(lambda rate, _: load(LIMIT * rate / (full * beyond), rate / full))
    true = full * min(beyond, 1.0)
    if true <= LOWEST:
        assert search.rate is None
        return
    assert search.rate is not None
    assert search.too_high is not None
    assert search.rate <= true <= search.too_high * (1 + 1e-12)
    assert search.too_high - search.rate <= 1.1 * NARROW * search.rate, "narrow, but for the digits of a rate"
    assert len(search.found) < 40


def test_a_rate_holds_if_it_does_with_every_seed() -> None:
    search = searched(lambda rate, seed: load(load=rate / (1000 - 300 * seed)), seeds=2)
    assert search.rate == pytest.approx(700, rel=NARROW)


def test_a_dip_beyond_a_failing_rate_is_not_the_answer() -> None:
    search = searched(lambda rate, _: load(LIMIT if 500 <= rate < 600 else 1.0, rate / 1000))
    assert any(search.holds(rate) for rate in search.rates if rate > 600), "one that holds was tried"
    assert search.rate == pytest.approx(500, rel=NARROW)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (load(p99=LIMIT), "--p99 40 is not above the latency of this network when it has nothing to do"),
        (load(load=1.0), "no rate is held: even at 1 event/s b7 then has work for 100 % of the time"),
        (load(dropped=3), "no rate is held: even at 1 event/s 3 copies of events then find a queue full"),
    ],
)
def test_where_no_rate_holds_it_says_why(found: Load, words: str) -> None:
    search = searched(lambda rate, _: found)
    assert search.rate is None
    assert words in sentence(search)
    assert row(search) == ("–",) * 10
    with pytest.raises(CoverlayError, match=words[:20]):
        rates({"{}": search})


def test_what_nothing_limits_is_said() -> None:
    search = searched(lambda rate, _: load(load=0.0))
    assert search.rate is not None
    assert search.rate > MOST / 5
    with pytest.raises(CoverlayError, match="no limit was found up to"):
        rates({"{}": search})


@pytest.mark.parametrize(("measured", "holds"), [(0.999, True), (1.0, False), (1.2, False)])
def test_a_queue_with_as_much_work_as_time_grows_however_short_the_latency(measured: float, holds: bool) -> None:
    assert load(p99=1.0, load=measured).holds(LIMIT) is holds


def test_the_answer_in_words() -> None:
    shares = {"covering": 0.0, "tables": 0.2, "matching": 0.5, "serving": 0.3}
    search = searched(lambda rate, _: load(load=rate / 1000, shares=shares))
    assert sentence(search) == (
        "988 events/s are held: half of the deliveries take at most 5 ms, 99 % at most 10 ms. 1,000 events/s are not: "
        "b7 then has work for 100 % of the time, so that its queue grows as long as events come. b7 saturates first, "
        "at 1,000 events/s: it serves 2 messages for each event, in 250 µs each; of that time 50.0 % goes into "
        "matching, 30.0 % into serving, 20.0 % into tables. This rests on 2,000 events within 900 ms."
    )
    assert rates({'{"a": 1}': search, '{"a": 2}': search})[1].text == sentence(search)
    assert row(search)[:2] == ("988", "1,000")


def test_the_rates_that_are_named_are_those_that_were_drawn() -> None:
    """A broker that takes 1 ms for an event holds 1,000 per second, however fast the drawn events come."""
    search = searched(lambda rate, _: load(load=1.04 * rate / 1000, period=4.0), drawn=1.04)
    said = sentence(search)
    assert search.rate == pytest.approx(950, rel=NARROW)
    named = [float(word.replace(",", "")) for word in (said.split()[0], row(search)[0])]
    assert named == pytest.approx([990, 990], rel=NARROW)
    assert "saturates first, at 1,000 events/s" in said
    assert f"drawn where {search.rate:g} and {search.too_high:g} events/s were asked for" in said
    assert "This rests on 2,000 events within 4 ms" in said


def test_where_events_are_lost_the_work_is_known_from_a_lower_rate() -> None:
    """At 550 events/s, a tenth above what is held, the broker that drops seems to have little more to do."""
    search = Search(LIMIT, {500.0: (load(load=0.5, rate=500.0),), 550.0: (load(load=0.51, rate=550.0, dropped=9),)})
    assert "saturates first, at 1,000 events/s" in sentence(search)


def test_events_that_are_over_at_once_are_noted() -> None:
    search = searched(lambda rate, _: load(load=rate / 1000, period=2e5 / rate))
    assert "use 4,000 events (workload.events)" in hasty({"{}": search}, recorded=False)[0]
    assert "repeat the recording: --set workload.repeat=2" in hasty({"{}": search}, recorded=True)[0]
    assert not hasty({"{}": searched(lambda rate, _: load(load=rate / 1000, period=1e6 / rate))}, recorded=False)


def test_a_percentile_of_few_deliveries_is_noted() -> None:
    """Three events of one's own hold half a million events per second, says a search that says no more."""
    search = searched(lambda rate, _: load(load=rate / 1000, deliveries=3))
    assert "has only 3 deliveries" in few({"{}": search})[0]
    assert not few({"{}": searched(lambda rate, _: load(load=rate / 1000))})


def test_large_numbers_are_written_as_people_do_and_no_work_saturates_nobody() -> None:
    fast = searched(lambda rate, _: load(load=rate / 2e6))
    assert row(fast)[0] == "1,980,000"
    assert "1,980,000 events/s are held" in sentence(fast)
    assert "57,090 % of the time" in load(load=570.9).why_not(LIMIT)
    idle = searched(lambda rate, _: load(p99=LIMIT if rate > 1e6 else 10.0, load=0.0))
    assert "nothing takes time" in sentence(idle)
