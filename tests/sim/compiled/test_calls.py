"""What a call of a kernel costs: numba sees the types of arguments at once, or searches for them in Python."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from sim.experiment.plan import plan
from sim.experiment.runner import simulate


@pytest.mark.parametrize("mode", ["lazy", "active"])
def test_types_of_arguments_are_not_searched_for_message_by_message(mode: str) -> None:
    data = {
        "overlay": {"brokers": 5},
        "workload": {"subscriptions": 100, "events": 5},
        "routing": {"strategy": "covering", "mode": mode},
        "run": {"engine": "compiled"},
    }
    (run,) = plan(data).runs
    simulate(run)
    searched: list[Any] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "typeof_pyval":  # numba's slow way to find a type
            searched.append(frame.f_locals)

    sys.setprofile(watch)
    try:
        simulate(run)
    finally:
        sys.setprofile(None)
    assert len(searched) < 100, "fewer than there are subscriptions; a search takes 100 µs"
