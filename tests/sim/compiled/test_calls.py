"""What a call of a kernel costs: numba sees the types of arguments at once, or searches for them in Python."""

from __future__ import annotations

from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from sim.experiment.plan import plan
from sim.experiment.runner import simulate


@pytest.mark.parametrize("mode", ["lazy", "active"])
def test_types_of_arguments_are_not_searched_for_message_by_message(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {
        "overlay": {"brokers": 5},
        "workload": {"subscriptions": 100, "events": 5},
        "routing": {"strategy": "covering", "mode": mode},
        "run": {"engine": "compiled"},
    }
    (run,) = plan(data).runs
    simulate(run)
    searched: list[Any] = []
    look = Dispatcher.typeof_pyval

    def counted(self: Any, value: Any) -> Any:
        searched.append(value)
        return look(self, value)

    monkeypatch.setattr(Dispatcher, "typeof_pyval", counted)
    simulate(run)
    assert len(searched) < 100, "fewer than there are subscriptions; a search takes 100 µs"
