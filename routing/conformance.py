"""What every routing strategy has to do on a link, as checks of drawn cases: ours and those of plug-ins pass the same.

A case is a ledger and what a broker hears. Its messages are applied, one by one, to what the neighbour then knows, and
judged by brute force: nothing is sent that is there, or taken back that is not; and after each message, every event of
a grid that some subscription of the broker matches is matched by something that the neighbour knows. In the end, when
all have left, the neighbour knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count, product

import numpy as np
from numpy.typing import NDArray

from coverlay import Broken, CoverlayError, smallest
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.ledger import Kind, LedgerMessage, LinkLedger
from routing.strategies import make_ledger, strategy

SIDE = 6  # whole numbers from 0 that an attribute may have: few, so that subscriptions contain each other
LONGEST = 12
Step = tuple[int, NDArray[np.float64] | None]  # a subscription comes with this box, or leaves


@dataclass(frozen=True)
class Heard:
    """What a broker hears, with a strategy on its link."""

    strategy: str
    attributes: int
    semantics: str
    active: bool
    steps: tuple[Step, ...]

    def ledger(self) -> LinkLedger:
        domain = np.array([[0.0, float(SIDE)]] * self.attributes)
        options = RoutingOptions(domain, semantics="relaxed" if self.semantics == "relaxed" else "exact")
        invented = count(-2, -1)
        return make_ledger(self.strategy, options, None, lambda: next(invented), active=self.active)

    def lines(self) -> list[str]:
        domain = [[0.0, float(SIDE)]] * self.attributes
        options = f'routing.RoutingOptions(np.array({domain}), semantics="{self.semantics}")'
        ids, active = "iter(range(-2, -99, -1)).__next__", ", active=True" if self.active else ""
        lines = [f'ledger = routing.strategies.make_ledger("{self.strategy}", {options}, None, {ids}{active})']
        for subscription, box in self.steps:
            if box is None:
                lines.append(f"ledger.unsubscribe({subscription})")
            else:
                lines.append(f"ledger.subscribe({subscription}, routing.Filter.of_box(np.array({box.tolist()})))")
        return [line.replace("inf", 'float("inf")') for line in lines]


# ── running it beside brute force ──────────────────────────────────────────────────────────────────────────


class _Link:
    """A ledger, what its broker knows from elsewhere, and what the neighbour knows from it."""

    def __init__(self, heard: Heard) -> None:
        self.ledger, self.relaxed = heard.ledger(), heard.semantics == "relaxed"
        self.known: dict[int, Filter] = {}
        self.there: dict[int, Filter] = {}
        grid = product(range(SIDE + 1), repeat=heard.attributes)
        self.events = [np.array(event, dtype=np.float64) for event in grid]

    def step(self, step: Step) -> None:
        subscription, box = step
        if box is None:
            del self.known[subscription]  # from now on nobody asks for it
            self._hear(self.ledger.unsubscribe(subscription), f"after {subscription} has left")
            return
        filter = Filter.of_box(box)
        self._hear(self.ledger.subscribe(subscription, filter), f"while {subscription} comes")
        self.known[subscription] = filter
        self._must_be_represented(f"after {subscription} came")

    def _hear(self, messages: Sequence[LedgerMessage], when: str) -> None:
        for kind, subscription, filter in messages:
            if kind is Kind.SUBSCRIBE:
                _require(subscription not in self.there, f"{subscription} is sent twice, {when}")
                self.there[subscription] = filter
            else:
                _require(subscription in self.there, f"{subscription} is taken back but was not sent, {when}")
                del self.there[subscription]
            self._must_be_represented(when)
        self._must_be_represented(when)

    def _must_be_represented(self, when: str) -> None:
        for event in self.events:
            asking = [s for s, filter in self.known.items() if self._matches(filter, event)]
            if asking and not any(self._matches(filter, event) for filter in self.there.values()):
                raise Broken(
                    f"the neighbour would keep the event {event.tolist()} from subscription {asking[0]}, {when}"
                )

    def _matches(self, filter: Filter, event: NDArray[np.float64]) -> bool:
        return filter.relaxed_score(event) is not None if self.relaxed else filter.matches(event)

    def check(self) -> None:
        try:
            self.ledger.check()
        except AssertionError as error:
            raise Broken(f"the ledger's check() fails: {error}") from error


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def _wrong(heard: Heard) -> tuple[int, str, Exception] | None:
    """The first step with a wrong answer, and what is wrong; None if all are right."""
    link = _Link(heard)
    for at, step in enumerate(heard.steps):
        try:
            link.step(step)
            link.check()
            if not link.known:
                _require(not link.there, f"{next(iter(link.there), None)} stays at the neighbour when all have left")
        except CoverlayError:
            raise
        except Broken as error:
            return at, error.what, error
        except Exception as error:
            return at, f"raised {type(error).__name__}: {error}", error
    return None


def _is_possible(steps: Sequence[Step]) -> bool:
    """Does everything leave after it came?"""
    there: set[int] = set()
    for subscription, box in steps:
        if box is None and subscription not in there:
            return False
        there ^= {subscription}
    return True


# ── the checks ─────────────────────────────────────────────────────────────────────────────────────────────


def contract(name: str, case: int) -> None:
    """Drawn subscriptions come and leave; nothing is sent twice, and no event is kept from who asked for it."""
    chosen = strategy(name)
    if chosen.sends_to == "nobody":
        return  # there are no ledgers
    rng = np.random.default_rng(case)
    active = chosen.searches and "active" in chosen.modes and bool(rng.random() < 0.5)
    semantics = "relaxed" if rng.random() < 0.3 else "exact"
    heard = Heard(name, int(rng.integers(1, 3)), semantics, active, ())
    heard = replace(heard, steps=tuple(_drawn(rng, heard.attributes)))
    found = _wrong(heard)
    if found is None:
        return

    def broken(steps: Sequence[Step]) -> bool:
        return _is_possible(steps) and _wrong(replace(heard, steps=tuple(steps))) is not None

    least = replace(heard, steps=tuple(smallest(heard.steps[: found[0] + 1], broken)))
    _, what, cause = _wrong(least) or found
    raise Broken(what, least.lines()) from cause


def _drawn(rng: np.random.Generator, attributes: int) -> list[Step]:
    steps: list[Step] = []
    there: list[int] = []
    for subscription in range(LONGEST):
        if there and rng.random() < 0.4:
            steps.append((there.pop(int(rng.integers(len(there)))), None))
        ends = np.sort(rng.integers(0, SIDE + 1, (attributes, 2)), axis=1).astype(np.float64)
        ends[rng.random(attributes) < 0.2] = -np.inf, np.inf
        steps.append((subscription, ends))
        there.append(subscription)
    return [*steps, *((subscription, None) for subscription in rng.permutation(there).tolist())]


CHECKS: dict[str, tuple[int, Callable[[str, int], None]]] = {"contract": (100, contract)}
