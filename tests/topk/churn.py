"""What the state machines of sparse and located matchers share: leave in any order, agree with a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test


class Churn(RuleBasedStateMachine):
    """A machine that derives from it makes `index` and `known` in an initial rule, adds to both, and asks."""

    index: Any = None
    known: dict[int, Any]
    next: int  # the id of who comes next

    def __init__(self) -> None:
        super().__init__()
        self.known = {}

    def come(self, more: list[Any], add: Callable[[int, Any], None]) -> None:
        for one in more:
            add(self.next, one)
            self.known[self.next] = one
            self.next += 1

    @precondition(lambda self: self.known)
    @rule(share=st.floats(0.05, 0.9), order=st.randoms(use_true_random=False))
    def remove(self, share: float, order: Any) -> None:
        for id in order.sample(sorted(self.known), max(1, int(share * len(self.known)))):
            self.index.remove(id)
            del self.known[id]

    @invariant()
    def sound(self) -> None:
        if self.index is not None:
            assert len(self.index) == len(self.known)
            self.index.check()


def survives(machine: type[Churn], histories: int, steps: int) -> None:
    # A failing history is short already; shrinking it takes minutes.
    plan = settings(max_examples=histories, stateful_step_count=steps, phases=[Phase.generate])
    run_state_machine_as_test(machine, settings=plan)
