"""How every broker and link of a network behaves, in one frozen object that both engines read.

Each setting has one default, here. What follows from several of them (prices, the options of one link) is worked out
here too, so that both engines get the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import covering
import topk
from broker.ranking import Ranking, make_ranking
from broker.transport import OVERFLOW, WORK, LinkModel, Overflow
from broker.work import Prices, load_profile
from coverlay import CoverlayError
from routing.contract import Mode, RoutingOptions
from routing.overlay.trees import Tree
from routing.strategies import STRATEGIES
from routing.strategies.skyband import EXACT_SCAN

PRUNES_BY = RoutingOptions.method  # how a receiver finds covers among what one neighbour sent it


@dataclass(frozen=True)
class RankedRouting:
    """How a network finds its k best."""

    k: int
    rank: Literal["none", "cover", "skyband"] = "none"  # what tables tell about scores
    visit: Literal["parallel", "best-first", "waves"] = "parallel"  # how many neighbours are asked at a time
    wave: int = 2  # neighbours in a wave
    threshold: bool = True  # skip neighbours whose bound does not beat the k-th best known

    @property
    def at_a_time(self) -> int | None:
        """Neighbours that are asked at a time, the best bounds first; None: all at once."""
        return {"parallel": None, "best-first": 1, "waves": self.wave}[self.visit]


@dataclass(frozen=True)
class Failover:
    """How a network finds out what is down and routes around it; see failover.py."""

    how: Literal["replace", "recompute"] = "replace"  # as few links of a tree as possible, or all if that is shorter
    heartbeat: float = 100.0  # ms between two messages by which neighbours show that they are up
    detect_after: float = 300.0  # ms without any after which something counts as down
    rejoin: Literal["at-once", "hold-down", "never"] = "at-once"  # when what is back is used again
    hold_down: float = 1000.0  # ms; doubled whenever the same fails again


@dataclass(frozen=True)
class Settings:
    """How every broker and link of a network behaves."""

    routing: RoutingOptions
    strategy: str = "covering"
    mode: Mode = "lazy"  # what becomes of entries that a later one covers
    advertisements: Literal["none", "simple", "covering"] = "none"  # how advertisements themselves are routed
    ask_exact: bool = True  # beside an approximate search, record what an exact one would have said
    kind: str = "boxes"  # what "the k best" means and the family of the matcher, see ranking.py
    matcher: str = topk.AUTO
    matcher_options: Mapping[str, Any] = field(default_factory=dict)
    place: tuple[int, int] | None = None  # the columns of latitude and longitude, where events have a place
    metric: Literal["great-circle", "degrees"] = "great-circle"  # of distances between places
    max_distance: float | None = None  # where nearness ends, in the metric's unit; None: the largest on the map
    k: int | None = None
    ranked: RankedRouting | None = None  # the k best of the whole network are served; None: of each broker
    service: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"})
    queue_capacity: int | None = None
    overflow: Overflow = OVERFLOW  # what a full queue does to events
    links: LinkModel = field(default_factory=LinkModel)
    trees: Literal["spanning", "per-source"] = "spanning"
    failover: Failover | None = None  # None: a tree that is cut stays cut until it is mended
    root: int | None = None  # of the hierarchy and of levels; None: the middle of the tree
    epsilon_per_level: tuple[float, ...] = ()  # by distance from the root; the last one holds for all below
    epsilon_per_link: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @cached_property
    def ranking(self) -> Ranking:
        semantics, options, where = self.routing.semantics, self.matcher_options, (self.place, self.max_distance)
        return make_ranking(self.kind, self.matcher, self.routing.domain, semantics, options, *where, self.metric)

    @cached_property
    def prices(self) -> Prices | None:
        """What work costs; None unless service times follow from work."""
        if self.service.get("kind", "none") != WORK:
            return None
        method = self.routing.method if self.routing.skyband is None else EXACT_SCAN
        methods = searches_of(self.strategy, self.mode, method, self.advertisements)
        return load_profile(self.service["profile"]).prices(methods, self.kind, self.ranking.method)

    @property
    def instant(self) -> bool:
        """Nothing ever waits: brokers take no time, and links no more than their latency."""
        return self.service.get("kind", "none") == "none" and self.links.only_latency

    @property
    def exact_routing(self) -> RoutingOptions:
        return replace(self.routing, method=EXACT_SCAN, epsilon=0.0, method_options={})

    @property
    def pruning(self) -> RoutingOptions:
        """How a receiver finds covers among what one neighbour sent it: exactly."""
        return replace(self.exact_routing, method=PRUNES_BY, cover="single")

    def routing_on(self, tree: Tree, broker: int, neighbour: int) -> RoutingOptions:
        """The routing options of one link: ε may differ by link, or by distance from the root."""
        levels = self.epsilon_per_level
        epsilon = self.routing.epsilon
        if levels:
            level = min(tree.level[broker], tree.level[neighbour])
            epsilon = levels[min(level, len(levels) - 1)]
        epsilon = self.epsilon_per_link.get((min(broker, neighbour), max(broker, neighbour)), epsilon)
        return replace(self.routing, epsilon=epsilon)

    def check_links(self, links: list[tuple[int, int]]) -> None:
        """Refuse an ε for a link that does not exist."""
        for a, b in self.epsilon_per_link:
            if (a, b) not in links:
                raise CoverlayError(f"covering.epsilon_per_link names {a}-{b}, which is not a link that routing uses")

    def check_failover(self) -> None:
        if self.failover is not None:
            refuse_failover(
                self.failover.how,
                self.strategy,
                self.advertisements,
                self.ranked is not None,
                bool(self.epsilon_per_level),
            )


def refuse_failover(how: str, strategy: str, advertisements: str, network_wide: bool, by_level: bool) -> None:
    """Refuse what does not go with switching from one tree to another."""
    root = STRATEGIES[strategy].sends_to == "root"
    others = (
        (root, f'routing.strategy = "{strategy}"', "all events go to one broker, which may be what is down"),
        (advertisements != "none", f'routing.advertisements = "{advertisements}"', "they would have to switch too"),
        (network_wide, 'matching.scope = "network"', "its questions are answered within one tree"),
        (by_level, "covering.epsilon_per_level", "levels change with the tree"),
    )
    for given, setting, why in others:
        if given:
            raise CoverlayError(f'routing.failover = "{how}" does not go with {setting}: {why}')


def searches_of(strategy: str, mode: str, method: str, advertisements: str) -> list[str]:
    """The methods by which a network searches, under the names that profiles use."""
    chosen = STRATEGIES[strategy]
    methods = [method] if chosen.searches else []
    if mode == "prune":
        methods.append(PRUNES_BY)
    if advertisements == "covering":
        methods.append(EXACT_SCAN)
    return [*(name for method in methods for name in covering.METHODS[method].charged_as()), *chosen.charged_as]
