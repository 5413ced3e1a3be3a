"""Timelines: in order, complete, with the shares and laws asked for, and common random numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coverlay import CoverlayError
from sim.random_streams import streams
from sim.workloads import generate
from sim.workloads.arrivals import ARRIVALS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, schedule, validate


def workload(subscriptions=200, events=80, seed=1):
    return generate("uniform", streams(seed), attributes=1, subscriptions=subscriptions, events=events)


def plan(kind="static", subscriptions=200, events=80, brokers=10, seed=1, **options):
    return schedule(kind, streams(seed), workload(subscriptions, events), brokers, **options)


def of(timeline, kind):
    chosen = timeline.kind == kind
    return timeline.time[chosen], timeline.index[chosen], timeline.broker[chosen]


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(ARRIVALS)),
    st.integers(0, 60),
    st.integers(0, 30),
    st.integers(1, 20),
    st.integers(0, 99),
    st.floats(0, 1),
)
def test_every_timeline_is_sound(kind, subscriptions, events, brokers, seed, share):
    known = {"static": {"unsubscribe": share}, "storm": {"share": share}}
    known |= {"preloaded": {"share": share, "unsubscribe": 1 - share}, "growing": {}}
    options = known.get(kind, {"lifetime": 1 + 100 * share})
    timeline = plan(kind, subscriptions, events, brokers, seed, **options)
    timeline.check()
    there = len(timeline.preloaded)
    assert there == (round(share * subscriptions) if kind == "preloaded" else 0)
    assert sorted(of(timeline, SUBSCRIBE)[1]) == list(range(there, subscriptions))
    assert len(timeline) == 0 or timeline.time[0] >= 0
    assert sorted(of(timeline, PUBLISH)[1]) == list(range(events))
    assert len(timeline) == 0 or 0 <= timeline.broker.min() <= timeline.broker.max() < brokers


def test_static_phases_are_apart():
    timeline = plan(unsubscribe=0.4, settle=300.0)
    came, left, published = (of(timeline, kind)[0] for kind in (SUBSCRIBE, UNSUBSCRIBE, PUBLISH))
    assert left.min() >= came.max() + 300
    assert published.min() >= left.max() + 300
    assert len(left) == pytest.approx(80, abs=25)


def test_rates():
    timeline = plan(subscriptions=4000, events=4000, subscribe_rate=2.0, publish_rate=0.5, settle=0.0)
    came, published = of(timeline, SUBSCRIBE)[0], of(timeline, PUBLISH)[0]
    assert np.diff(came).mean() == pytest.approx(0.5, rel=0.1)
    assert np.diff(published).mean() == pytest.approx(2.0, rel=0.1)


def test_growing_is_churn_in_which_nobody_leaves():
    growing, churn = plan("growing"), plan("churn")
    assert not len(of(growing, UNSUBSCRIBE)[0])
    for kind in (SUBSCRIBE, PUBLISH):
        assert of(growing, kind)[0].tolist() == of(churn, kind)[0].tolist()


def test_churn_interleaves_and_lifetimes_are_exponential():
    timeline = plan("churn", subscriptions=5000, events=500, lifetime=100.0)
    came, who, _ = of(timeline, SUBSCRIBE)
    left, leaver, _ = of(timeline, UNSUBSCRIBE)
    published = of(timeline, PUBLISH)[0]
    assert published.min() < came[100]
    assert published.max() > came[-100]
    arrival = np.empty(5000)
    arrival[who] = came
    lived = left - arrival[leaver]
    assert lived.mean() == pytest.approx(100, rel=0.1)
    assert lived.std() == pytest.approx(100, rel=0.15)
    assert left.max() <= came.max()


def test_more_events_change_no_subscription():
    few, many = plan(events=10), plan(events=70)
    for kind in (SUBSCRIBE, UNSUBSCRIBE):
        for a, b in zip(of(few, kind), of(many, kind), strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(of(few, PUBLISH), of(many, PUBLISH), strict=True):
        np.testing.assert_array_equal(a, b[:10])


def test_a_larger_share_of_leavers_keeps_the_earlier_ones():
    few, many = (of(plan(unsubscribe=share), UNSUBSCRIBE)[1] for share in (0.2, 0.6))
    assert len(few) < len(many)
    np.testing.assert_array_equal(few, many[: len(few)])


def test_all_and_none_leave():
    assert len(of(plan(unsubscribe=1.0), UNSUBSCRIBE)[0]) == 200
    assert len(of(plan(unsubscribe=0.0), UNSUBSCRIBE)[0]) == 0


def test_homes_are_uniform_or_skewed():
    even = np.bincount(of(plan(subscriptions=10_000), SUBSCRIBE)[2], minlength=10)
    assert even.min() > 850
    skewed = np.sort(np.bincount(of(plan(subscriptions=10_000, home_skew=1.0), SUBSCRIBE)[2], minlength=10))
    share = 1 / (1 / np.arange(1, 11)).sum()
    assert skewed[-1] / 10_000 == pytest.approx(share, abs=0.03)
    published = np.bincount(of(plan(events=5000, publisher_skew=3.0), PUBLISH)[2], minlength=10)
    assert published.max() > 3500
    busiest = {int(np.bincount(of(plan(seed=s, home_skew=3.0), SUBSCRIBE)[2]).argmax()) for s in range(8)}
    assert len(busiest) > 1, "which broker is popular is drawn too"


def test_brokers_and_times_of_the_data_win():
    made = workload(3, 2)
    given_places = made.__class__(
        **{
            **vars(made),
            "homes": np.array([2, 0, 1]),
            "publishers": np.array([1, 1]),
            "times": np.array([5.0, 6.5]),
        }
    )
    timeline = schedule("static", streams(1), given_places, 3, settle=100.0)
    assert of(timeline, SUBSCRIBE)[2].tolist() == [2, 0, 1]
    assert of(timeline, PUBLISH)[2].tolist() == [1, 1]
    assert of(timeline, PUBLISH)[0] == pytest.approx(timeline.time[2] + 100 + np.array([5.0, 6.5]))
    assert of(schedule("churn", streams(1), given_places, 3), PUBLISH)[0].tolist() == [5.0, 6.5]
    with pytest.raises(CoverlayError, match="subscription 0 is at broker 2, but the overlay has brokers 0 to 1"):
        schedule("static", streams(1), given_places, 2)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("burst", {}, "unknown arrival process 'burst'; there are: bursty, churn, growing, preloaded, static, storm"),
        ("static", {"lifetime": 3}, "no option 'lifetime'"),
        ("static", {"subscribe_rate": 0}, "arrivals.subscribe_rate is 0"),
        ("static", {"publish_rate": float("inf")}, "arrivals.publish_rate is inf"),
        ("static", {"unsubscribe": 1.2}, "arrivals.unsubscribe is 1.2"),
        ("static", {"settle": -1}, "arrivals.settle is -1"),
        ("static", {"home_skew": -1}, "arrivals.home_skew is -1"),
        (
            "static",
            {"publishing": "sometimes"},
            "arrivals.publishing is 'sometimes'; it must be one of: poisson, bursty",
        ),
        ("static", {"publishing": "bursty", "burst_factor": 0.5}, "arrivals.burst_factor is 0.5"),
        ("static", {"publishing": "bursty", "burst_length": 0}, "arrivals.burst_length is 0"),
        ("churn", {"publishing": "bursty"}, "no option 'publishing'"),
        ("churn", {"lifetime": 0}, "arrivals.lifetime is 0"),
        ("churn", {"publisher_skew": "x"}, "arrivals.publisher_skew is 'x'"),
    ],
)
def test_mistakes_are_sentences(kind, options, message):
    with pytest.raises(CoverlayError) as caught:
        validate(kind, options)
    assert message in str(caught.value)


def arrival_gaps(kind: str, **options):
    workload = generate("uniform", streams(1), attributes=1, subscriptions=3000, events=50)
    timeline = schedule(kind, streams(1), workload, 4, **options)
    timeline.check()
    came = timeline.time[timeline.kind == SUBSCRIBE]
    return came, np.diff(came)


def test_bursts_keep_the_rate_and_crowd_the_arrivals():
    smooth, smooth_gaps = arrival_gaps("churn")
    bursty, bursty_gaps = arrival_gaps("bursty", burst=30.0)
    assert bursty[-1] == pytest.approx(smooth[-1], rel=0.3)
    assert np.median(bursty_gaps) < np.median(smooth_gaps) / 5


def test_a_storm_comes_all_at_once():
    came, _ = arrival_gaps("storm", share=0.4, width=2.0)
    assert np.ptp(came[-1200:]) <= 2.0
    assert came[-1200] - came[-1201] > 100


def test_interests_are_local_and_more_clients_move_nobody():
    brokers = 9
    spots = np.array([(x, y) for x in range(3) for y in range(3)], dtype=float)

    def at_home(subscriptions):
        offered = generate("zipf", streams(1), attributes=2, subscriptions=subscriptions, events=300)
        timeline = schedule("static", streams(1), offered, brokers, attach="interest", spots=spots)
        homes = timeline.homes(subscriptions)
        return offered, homes, timeline.broker[timeline.kind == PUBLISH]

    offered, homes, publishers = at_home(900)
    assert (at_home(400)[1] == homes[:400]).all()
    assert np.bincount(homes, minlength=brokers).max() < 450, "no broker has most of the clients"
    centres = (offered.lo + offered.hi) / 2
    middle = np.array([centres[homes == broker].mean(axis=0) for broker in sorted(set(homes))])
    column = np.array([spots[broker, 0] for broker in sorted(set(homes))])
    assert np.corrcoef(middle[:, 0], column)[0, 1] > 0.8, "similar interests are at brokers near each other"
    near = [
        ((offered.lo[homes == b] <= e).all(1) & (e <= offered.hi[homes == b]).all(1)).mean()
        for b, e in zip(publishers, offered.events, strict=True)
        if (homes == b).any()
    ]
    everywhere = [((offered.lo <= e).all(1) & (e <= offered.hi).all(1)).mean() for e in offered.events]
    assert np.mean(near) > 2 * np.mean(everywhere), "who publishes is among those who want it"


# ── how events follow each other ───────────────────────────────────────────────────────────────────────────


def published(events=4000, **options):
    times = of(plan(subscriptions=1, events=events, **options), PUBLISH)[0]
    return times - times[0]


@pytest.mark.parametrize("kind", ["static", "preloaded", "storm"])
def test_bursts_of_events_keep_the_mean_rate_and_are_as_long_and_as_fast_as_asked(kind):
    factor, length, rate = 8.0, 10.0, 2.0
    times = published(
        60_000, kind=kind, publishing="bursty", burst_factor=factor, burst_length=length, publish_rate=rate
    )
    assert len(times) / times[-1] == pytest.approx(rate, rel=0.15)
    gaps = np.diff(times)
    silent = gaps > 1.0  # within a burst that would be 16 mean gaps
    assert np.median(gaps) == pytest.approx(np.log(2) / (rate * factor), rel=0.05), "in a burst they come so fast"
    assert gaps[silent].mean() == pytest.approx(length * (factor - 1), rel=0.15), "and then nobody speaks"
    assert len(times) / (silent.sum() + 1) == pytest.approx(length * rate * factor, rel=0.15)


def test_bursts_of_factor_one_are_no_bursts():
    np.testing.assert_allclose(published(publishing="bursty", burst_factor=1.0), published(publishing="poisson"))


@pytest.mark.parametrize("options", [{}, {"publishing": "poisson"}, {"publishing": "bursty"}])
def test_more_events_change_no_earlier_one_however_they_follow_each_other(options):
    np.testing.assert_array_equal(published(500, **options), published(4000, **options)[:500])


@pytest.mark.parametrize("options", [{}, {"publishing": "poisson"}])
def test_a_higher_rate_squeezes_the_same_draw(options):
    np.testing.assert_allclose(published(publish_rate=4.0, **options), published(publish_rate=1.0, **options) / 4)


def recorded(**changes):
    made = workload(3, 3)
    return made.__class__(**{**vars(made), "times": np.array([5.0, 7.0, 11.0]), **changes})


def test_recorded_times_are_scaled_to_the_rate_and_keep_their_proportions():
    def times(of_data, **options):
        return of(schedule("static", streams(1), of_data, 3, **options), PUBLISH)[0]

    fast = times(recorded(), publishing="scaled", publish_rate=0.5)
    np.testing.assert_allclose(np.diff(fast), [4.0 / 3, 8.0 / 3])
    assert 2 / (fast[-1] - fast[0]) == pytest.approx(0.5), "two gaps at half an event per ms"
    np.testing.assert_allclose(np.diff(times(recorded(), publish_rate=0.5)), [2.0, 4.0])
    drawn = times(recorded(), publishing="poisson")
    assert not np.allclose(np.diff(drawn), [2.0, 4.0]), "other times than recorded, where that is asked for"
    # A recording of subscriptions too is played faster as a whole.
    whole = recorded(came=np.array([0.0, 4.0, 8.0]), left=np.array([np.inf, 6.0, np.inf]))
    timeline = schedule("static", streams(1), whole, 3, publishing="scaled", publish_rate=1.0)
    assert timeline.time.tolist() == pytest.approx([t / 3 for t in (0, 4, 5, 6, 7, 8, 11)])


@pytest.mark.parametrize("times", [None, np.array([5.0, 5.0, 5.0])])
def test_only_different_times_can_be_scaled(times):
    with pytest.raises(CoverlayError, match="needs events at different times"):
        schedule("static", streams(1), recorded(times=times), 3, publishing="scaled")
