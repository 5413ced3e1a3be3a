"""How benches take times, on a clock that the test moves."""

from __future__ import annotations

import pytest

from sim.bench import timing


class Clock:
    """Reading it takes a tenth of a microsecond, an event as many microseconds as its value says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.asked: list[float] = []
        monkeypatch.setattr(timing.time, "perf_counter", self.read)

    def read(self) -> float:
        self.now += 1e-7
        return self.now

    def answer(self, event: float) -> None:
        self.asked.append(event)
        self.now += event * 1e-6


def test_quick_answers_are_not_charged_for_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [0.5, 1.0, 1.5] * 20
    clock = Clock(monkeypatch)
    assert timing.mean_least({"ours": clock.answer}, events, 3)["ours"] == pytest.approx(1e-6, rel=0.02)
    assert clock.asked == events * 3


def test_an_interruption_spoils_one_round_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    rounds = 0

    def interrupted(event: float) -> None:
        nonlocal rounds
        rounds += event == 30.0
        clock.answer(event)
        clock.now += 1.0 if rounds == 2 else 0.0

    times = timing.mean_least({"slow": interrupted}, [30.0, 50.0], 3)
    assert times["slow"] == pytest.approx(40e-6, rel=0.01), "each event on its own, and the least of each"


def test_warming_up_takes_a_while_and_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    others = [999.0] * 50
    times = timing.mean_least({"ours": clock.answer}, [100.0], 2, warm_up=others)
    assert times["ours"] == pytest.approx(1e-4, rel=0.01)
    warm = clock.asked.index(100.0)
    assert 0.019 < warm * 999e-6 < 0.022, "for twenty milliseconds, then it stops"
    assert clock.asked == ([999.0] * warm + [100.0]) * 2
