"""Add, remove and find in any order, one machine per method, invariants checked after every step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import covering
from tests.covering.oracles import covered, covers
from tests.covering.strategies import boxes, exact

pytestmark = pytest.mark.usefixtures("small_limits")


class Machine(RuleBasedStateMachine):
    name = "scan"

    def __init__(self) -> None:
        super().__init__()
        self.index = exact(self.name, 2)
        self.stored: dict[object, np.ndarray] = {}
        self.next = 0

    @rule(box=boxes(2))
    def add(self, box: np.ndarray) -> None:
        self.index.add(self.next, box)
        self.stored[self.next] = box
        self.next += 1

    @rule(held=st.lists(boxes(2), min_size=1, max_size=6))
    def add_many(self, held: list[np.ndarray]) -> None:
        ids = list(range(self.next, self.next + len(held)))
        self.index.add_many(ids, np.array(held))
        self.stored.update(zip(ids, held, strict=True))
        self.next += len(held)

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def add_again(self, data: st.DataObject) -> None:
        self.add(data.draw(st.sampled_from(sorted(self.stored)).map(self.stored.__getitem__)))

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.stored)))
        self.index.remove(id)
        del self.stored[id]

    @rule(box=boxes(2))
    def find(self, box: np.ndarray) -> None:
        truth = covers(self.stored, box)
        found = self.index.find_cover(box)
        assert found in truth if truth else found is None
        assert self.index.find_covered(box) == covered(self.stored, box)

    @invariant()
    def sound(self) -> None:
        self.index.check()
        assert len(self.index) == len(self.stored)
        assert sorted(self.index.ids()) == sorted(self.stored)


@pytest.mark.parametrize("name", covering.methods())
def test_any_order_of_operations(name):
    machine = type("Machine", (Machine,), {"name": name})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=12, stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )
