"""Routing strategies: when does something already sent over a link make sending a subscription needless?

Each strategy keeps the set of subscriptions sent over one link and answers two questions about it: which
entry covers a new filter, and which entries a new filter covers. The ledger (ledger.py) does the rest, so a
new strategy is one class here and one line in STRATEGIES.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import covering
from covering.filters import FilterIndex
from coverlay import unknown_name
from routing.filter import Filter


@dataclass(frozen=True, slots=True)
class Search:
    """The answer to one covering check and the work it took."""

    witness: int | None
    probes: int = 0
    cubes: int = 0
    runs: int = 0
    volume: float = 1.0
    capped: bool = False


@dataclass(frozen=True)
class RoutingOptions:
    """What a strategy needs to know; one object for the whole network."""

    domain: NDArray[np.float64]
    semantics: str = "exact"  # relaxed matching needs a narrower notion of covering, see _group
    method: str = "scan"
    epsilon: float = 0.0
    method_options: Mapping[str, Any] = field(default_factory=dict)


class LinkStrategy(ABC):
    """The subscriptions sent over one link, and what they make needless."""

    forwards_subscriptions: ClassVar[bool] = True
    approximate: bool = False  # may miss covers that exist

    def __init__(self, options: RoutingOptions) -> None:
        self.options = options

    @abstractmethod
    def add(self, subscription: int, filter: Filter) -> None: ...

    @abstractmethod
    def remove(self, subscription: int, filter: Filter) -> None: ...

    @abstractmethod
    def find_cover(self, filter: Filter) -> Search: ...

    def find_covered(self, filter: Filter) -> list[int]:
        """Entries that `filter` makes needless, ascending."""
        return []

    def check(self) -> None:  # noqa: B027 - strategies without a structure have nothing to verify
        """Raise AssertionError when an invariant is broken."""


class Simple(LinkStrategy):
    """Every subscription goes everywhere: the baseline that table reductions are measured against."""

    def add(self, subscription: int, filter: Filter) -> None:
        pass

    def remove(self, subscription: int, filter: Filter) -> None:
        pass

    def find_cover(self, filter: Filter) -> Search:
        return Search(None)


class Flooding(Simple):
    """Subscriptions stay at their broker and every event goes everywhere."""

    forwards_subscriptions = False


class Identity(LinkStrategy):
    """Equal subscriptions are sent once. The ledger never sends a second one while the first is there."""

    def __init__(self, options: RoutingOptions) -> None:
        super().__init__(options)
        self._by_key: dict[object, int] = {}

    def add(self, subscription: int, filter: Filter) -> None:
        self._by_key[self._key(filter)] = subscription

    def remove(self, subscription: int, filter: Filter) -> None:
        del self._by_key[self._key(filter)]

    def find_cover(self, filter: Filter) -> Search:
        return Search(self._by_key.get(self._key(filter)), probes=1)

    def _key(self, filter: Filter) -> object:
        return (filter.key, _group(self.options, filter))


class Covering(LinkStrategy):
    """Subscriptions that a sent one contains are held back (SIENA), found by any covering method."""

    def __init__(self, options: RoutingOptions) -> None:
        super().__init__(options)
        self.index = FilterIndex(options.method, options.domain, options.epsilon, **options.method_options)
        # A method with an ε may miss even at ε = 0: it has a probe cap.
        self.approximate = covering.METHODS[options.method].takes_epsilon

    def add(self, subscription: int, filter: Filter) -> None:
        self.index.add(subscription, filter.box, filter.residue, _group(self.options, filter))

    def remove(self, subscription: int, filter: Filter) -> None:
        self.index.remove(subscription)

    def find_cover(self, filter: Filter) -> Search:
        stats = self.index.stats
        before = (stats.probes, stats.cubes, stats.runs, stats.volume, stats.capped, stats.checks)
        witness = self.index.find_cover(filter.box, filter.residue, _group(self.options, filter))
        stats = self.index.stats
        # Several partitions may have been asked; the volume of the decision is their mean.
        checks = stats.checks - before[5]
        return Search(
            witness,
            stats.probes - before[0],
            stats.cubes - before[1],
            stats.runs - before[2],
            (stats.volume - before[3]) / checks if checks else 1.0,
            stats.capped > before[4],
        )

    def find_covered(self, filter: Filter) -> list[int]:
        return self.index.find_covered(filter.box, filter.residue, _group(self.options, filter))

    def check(self) -> None:
        self.index.check()


def _group(options: RoutingOptions, filter: Filter) -> object:
    """Subscriptions of different groups never cover each other.

    Exact matching: one group. Relaxed matching: a wider range on an attribute helps only if the cover has a
    predicate on that attribute at all, so covers are looked for among the same set of mentioned attributes.
    """
    return None if options.semantics == "exact" else filter.mentioned


STRATEGIES: dict[str, type[LinkStrategy]] = {
    "flooding": Flooding,
    "simple": Simple,
    "identity": Identity,
    "covering": Covering,
}


def strategy(name: str) -> type[LinkStrategy]:
    if name not in STRATEGIES:
        raise unknown_name("routing strategy", name, STRATEGIES)
    return STRATEGIES[name]
