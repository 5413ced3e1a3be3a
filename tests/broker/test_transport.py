"""Links keep their order, servers keep their pace, full queues drop only what may be dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.transport import Clock, Link, LinkModel, Server, Work, service_model
from coverlay import CoverlayError
from sim.bench import transport


@dataclass
class Parcel:
    number: int
    size: int = 10


def server(env, done, service, *options, **more):
    """A server that notes when a service begins, and in `done` the numbers whose service ended, with the time."""
    return Server(env, service, lambda parcel: done.append((parcel.number, env.now)), False, *options, **more)


def numbers(done):
    return [number for number, _ in done]


def sent_through(gaps, latency, seed=0, **model):
    """(number, time) of every parcel at the far end, sent with the given gaps between them."""
    env, arrived = Clock(), []
    rng = np.random.default_rng(seed)
    link = Link(env, lambda parcel: arrived.append((parcel.number, env.now)), latency, LinkModel(**model), rng)

    def sender():
        for number, gap in enumerate(gaps):
            yield env.timeout(gap)
            link.send(Parcel(number))

    env.process(sender())
    env.run()
    return arrived


@given(
    gaps=st.lists(st.floats(0, 3), max_size=30),
    jitter=st.floats(0, 20),
    loss=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 99),
)
def test_neither_jitter_nor_retransmission_reorders_or_loses(gaps, jitter, loss, seed):
    arrived = sent_through(gaps, 1.0, seed, jitter=jitter, loss=loss, retransmit_after=7.0)
    assert [number for number, _ in arrived] == list(range(len(gaps)))
    assert [time for _, time in arrived] == sorted(time for _, time in arrived)


def test_bandwidth_spaces_parcels_by_their_transmission_time():
    arrived = sent_through([0.0, 0.0, 0.0], 5.0, bandwidth=10.0)
    assert arrived == [(0, 6.0), (1, 7.0), (2, 8.0)]


def test_a_server_does_one_thing_at_a_time():
    env, done = Clock(), []
    serving = server(env, done, lambda parcel: 2.0)
    for number in range(3):
        serving.arrive(Parcel(number))
    env.run()
    assert done == [(0, 2.0), (1, 4.0), (2, 6.0)]


def test_a_full_queue_drops_only_droppable_messages():
    env, done, dropped = Clock(), [], []
    serving = server(env, done, lambda p: 1.0, 2, lambda p: p.number % 2 == 0, lambda p: dropped.append(p.number))
    for number in range(6):
        serving.arrive(Parcel(number))
    env.run()
    assert dropped == [2, 4]
    assert numbers(done) == [0, 1, 3, 5]


def test_a_message_is_processed_at_the_begin_of_its_service_and_what_it_causes_leaves_at_the_end():
    env, begun, done = Clock(), [], []

    def begin(parcel):
        begun.append((parcel.number, env.now))
        return 2.0 + parcel.number

    serving = server(env, done, begin)
    for number in range(3):
        serving.arrive(Parcel(number))
    assert begun == [(0, 0.0)]
    env.run()
    assert begun == [(0, 0.0), (1, 2.0), (2, 5.0)]
    assert done == [(0, 2.0), (1, 5.0), (2, 9.0)]


def test_what_a_crash_takes_is_never_sent_and_the_next_service_takes_its_own_time():
    env, done = Clock(), []
    serving = server(env, done, lambda parcel: 10.0 - parcel.number)

    def story():
        serving.arrive(Parcel(0))
        serving.arrive(Parcel(1))
        yield env.timeout(1)
        assert [parcel.number for parcel in serving.clear()] == [0, 1]
        serving.arrive(Parcel(8))  # ends before the lost one would have
        serving.arrive(Parcel(-90))  # and this one long after

    env.process(story())
    env.run()
    assert done == [(8, 3.0), (-90, 103.0)]


def test_linear_service_grows_with_the_table():
    entries = 10
    service = service_model({"kind": "linear", "base": 1.0, "per_entry": 0.5}, np.random.default_rng(0))
    work = Work("event", 80, 0.0, lambda: entries)
    assert service(work) == 6.0
    entries = 20
    assert service(work) == 11.0


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "warp"},
        {"kind": "constant"},
        {"kind": "constant", "value": -1},
        {"kind": "constant", "value": True},
        {"kind": "linear", "base": 1.0},
        {"kind": "constant", "value": float("nan")},
        {"kind": "none", "value": 1.0},
    ],
)
def test_bad_service_models_are_refused(spec):
    with pytest.raises(CoverlayError):
        service_model(spec, np.random.default_rng(0))


@pytest.mark.parametrize("service", [0.0, transport.SERVICE])
def test_the_fast_transport_does_what_the_naive_pipeline_does(service):
    processed, finished = transport.ours(20, 30, service)
    assert (processed, finished) == pytest.approx(transport.naive(20, 30, service))
    assert processed == 20 * 31


def test_a_cut_link_loses_what_is_in_flight_and_nothing_later():
    env, arrived, lost = Clock(), [], []
    link = Link(env, lambda p: arrived.append((p.number, env.now)), 5.0, lose=lambda p: lost.append(p.number))

    def story():
        link.send(Parcel(0))
        yield env.timeout(3)
        link.send(Parcel(1))
        link.cut()
        link.send(Parcel(2))
        yield env.timeout(1)
        link.up = True
        link.send(Parcel(3))

    env.process(story())
    env.run()
    assert lost == [0, 1, 2]
    assert arrived == [(3, 9.0)]


def test_shedding_drops_the_event_that_is_worth_least():
    env, done, dropped = Clock(), [], []
    drop, worth = (lambda p: dropped.append(p.number)), (lambda p: p.number % 10)
    serving = server(env, done, lambda p: 1.0, 3, lambda p: True, drop, "shed", worth)
    for number in (1, 5, 7, 3, 9, 17):
        serving.arrive(Parcel(number))
    env.run()
    assert dropped == [3, 5, 17]  # 17 is worth as much as 7, which came first
    assert numbers(done) == [1, 7, 9]  # 1 is worth least and was in service


@given(senders=st.lists(st.integers(0, 2), min_size=1, max_size=40), service=st.sampled_from([0.5, 2.0]))
def test_holding_loses_nothing_and_keeps_every_link_in_order(senders, service):
    env, done = Clock(), []
    serving = server(env, done, lambda p: service, 2, lambda p: True, overflow="hold")
    links = [Link(env, serving.arrive, 1.0 + n, wait=serving.wait) for n in range(3)]

    def story():
        for step, link in enumerate(senders):
            links[link].send(Parcel(10 * step + link))
            yield env.timeout(0.3)

    env.process(story())
    env.run()
    assert len(done) == len(senders)
    for link in range(3):
        mine = [number for number in numbers(done) if number % 10 == link]
        assert mine == sorted(mine)
