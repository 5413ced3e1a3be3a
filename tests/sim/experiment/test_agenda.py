"""What happens from outside happens exactly at its time, before everything else of that moment."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from broker.transport import Clock
from sim.experiment.agenda import Agenda, Kind

TIMES = st.one_of(st.floats(0, 1e6), st.sampled_from([0.1, 0.3, 0.7, 1.4, 1.7, 2.0, 3.0]))


@example([(7.6, Kind.REQUEST), (23.7, Kind.REQUEST), (99.0, Kind.REPAIR)], [])  # 7.6 + (23.7 - 7.6) is more than 23.7
@given(st.lists(st.tuples(TIMES, st.sampled_from(Kind))), st.lists(TIMES, max_size=3))
def test_everything_on_the_agenda_happens_exactly_at_its_time(items, stops) -> None:
    env, done = Clock(), []
    agenda = Agenda(env)
    for number, (time, kind) in enumerate(items):
        agenda.add(time, kind, lambda item=(time, kind, number): done.append((env.now, *item)))
    for stop in sorted(stops):
        agenda.run(stop)
        assert env.now == stop
        assert [item for item in done if item[0] >= stop] == []
    agenda.run()
    assert [(time, number) for now, time, _, number in done if now != time] == []
    assert [item[1:] for item in done] == sorted((*item, number) for number, item in enumerate(items))


@given(TIMES, st.floats(0, 10), st.floats(0, 10))
def test_what_is_added_while_the_network_runs_happens_at_its_time(start, first, second) -> None:
    env, done = Clock(), []
    agenda = Agenda(env)
    agenda.add(2e6, Kind.REQUEST, lambda: done.append("last"))

    def client():
        yield env.timeout(start)
        for time in sorted({env.now + second, env.now + first}, reverse=True):
            agenda.add(time, Kind.REQUEST, lambda time=time: done.append((time, env.now)))

    env.process(client())
    agenda.run()
    *meanwhile, last = done
    assert last == "last"
    assert all(time == now for time, now in meanwhile)
    assert meanwhile == sorted(meanwhile)


def test_what_happens_at_the_end_of_a_run_is_left_for_the_next() -> None:
    env, done = Clock(), []
    agenda = Agenda(env)
    env.timeout(5).callbacks.append(lambda _: done.append("message"))
    agenda.add(5.0, Kind.REQUEST, lambda: done.append("request"))
    agenda.run(5.0)
    assert done == []
    agenda.run()
    assert done == ["request", "message"]


def test_what_has_no_time_waits_until_the_network_is_at_rest() -> None:
    env, done = Clock(), []
    agenda = Agenda(env)

    def request(name: str, *delays: float) -> None:
        done.append((name, env.now))
        if delays:
            env.after(delays[0], lambda _: request(f"message of {name}", *delays[1:]))

    agenda.wait(Kind.REQUEST, lambda: request("first", 2, 3))
    agenda.wait(Kind.FAILURE, lambda: request("second"))
    agenda.wait(Kind.REQUEST, lambda: request("third"))
    agenda.add(4.0, Kind.REQUEST, lambda: request("timed", 9))
    agenda.run()
    *before, second, third = done
    assert before == [
        ("first", 0.0),
        ("message of first", 2.0),
        ("timed", 4.0),
        ("message of message of first", 5.0),
        ("message of timed", 13.0),
    ]
    assert second[0] == "second"
    assert 13.0 < second[1] < 13.0001, "after all messages"
    assert third == ("third", second[1]), "nothing was under way"
    assert agenda.waiting == 0
