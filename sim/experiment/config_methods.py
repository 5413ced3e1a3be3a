"""Sections of an experiment file that choose algorithms: routing, covering, matching."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

import covering
from broker.ranking import kind_of, make_ranking
from broker.settings import Failover, RankedRouting, Settings
from coverlay import CoverlayError, Key, unknown_name
from routing.contract import Cover, Mode, RoutingOptions
from routing.options import accepted
from routing.strategies import STRATEGIES
from sim.experiment import reasons
from sim.experiment.config_base import Count, OpenSection, Positive, Share
from sim.experiment.effects import NoEffect

SMALL = np.array([[0.0, 1.0], [0.0, 1.0]])  # a domain for checking the options of indexes


class RoutingSection(OpenSection):
    strategy: Annotated[
        str, Key("flooding, simple, identity, covering (SIENA), merging (REBECA) or hierarchical (JEDI)")
    ] = Settings.strategy
    mode: Annotated[
        Mode,
        NoEffect(reasons.no_search, unless="lazy"),
        Key("entries that a later one covers are kept, retracted by a message, or pruned by the receiver"),
    ] = Settings.mode
    cover: Annotated[
        Cover,
        NoEffect(reasons.no_search, unless="single"),
        Key("a subscription is held back by a single sent one, or also by several together (SimPy only)"),
    ] = RoutingOptions.cover
    advertisements: Annotated[
        Literal["none", "simple", "covering"],
        Key("subscriptions travel only towards advertisements, which are routed this way"),
    ] = Settings.advertisements
    trees: Annotated[
        Literal["spanning", "per-source"], Key("one tree of least latency, or shortest paths per publishing broker")
    ] = Settings.trees
    root: Annotated[
        Count | None, NoEffect(reasons.no_root), Key("broker at the root of the hierarchy; absent: the tree's middle")
    ] = None
    failover: Annotated[
        Literal["none", "replace", "recompute"],
        NoEffect(reasons.no_faults, unless="none"),
        Key(
            "when something is down: route on what is left, replace links of the trees, or make new trees (SimPy only)"
        ),
    ] = "none"
    heartbeat: Annotated[
        Annotated[float, Field(gt=0)],
        NoEffect(reasons.no_failover),
        Key("neighbours show so often that they are up", "ms"),
    ] = Failover.heartbeat
    detect_after: Annotated[
        Annotated[float, Field(gt=0)],
        NoEffect(reasons.no_failover),
        Key("without a heartbeat for so long a link counts as down; at least routing.heartbeat", "ms"),
    ] = Failover.detect_after
    rejoin: Annotated[
        Literal["at-once", "hold-down", "never"],
        NoEffect(reasons.no_failover),
        Key("when what is back is used again; never: where no other link reaches a broker"),
    ] = Failover.rejoin
    hold_down: Annotated[
        Annotated[float, Field(gt=0)],
        NoEffect(reasons.no_hold_down),
        Key("what is back waits so long; twice as long each time it has failed again", "ms"),
    ] = Failover.hold_down
    rank: Annotated[
        Literal["none", "cover", "skyband"],
        NoEffect(reasons.ranked_by_broker, unless="none"),
        Key("with scope network: tables ignore scores, bound those behind a link, or hold all possible winners"),
    ] = RankedRouting.rank
    visit: Annotated[
        Literal["parallel", "best-first", "waves"],
        NoEffect(reasons.nothing_asked),
        Key("with rank cover: ask neighbours that may have a winner all at once, one by one, or in waves"),
    ] = RankedRouting.visit
    wave: Annotated[Positive, NoEffect(reasons.no_waves), Key("neighbours asked at a time")] = RankedRouting.wave
    threshold: Annotated[
        bool,
        NoEffect(reasons.nothing_asked, unless=True),
        Key("with rank cover: skip neighbours whose bound does not beat the k-th best known"),
    ] = RankedRouting.threshold
    merge_waste: Annotated[
        Share, NoEffect(reasons.no_merging, unless=0.0), Key("largest share of a merger that no subscription asked for")
    ] = RoutingOptions.merge_waste

    @field_validator("strategy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in STRATEGIES:
            raise unknown_name("routing strategy", name, STRATEGIES)
        return name

    @model_validator(mode="after")
    def _fits(self) -> RoutingSection:
        chosen = STRATEGIES[self.strategy]
        self.reject_unknown(f"routing strategy {self.strategy}", accepted(chosen))
        STRATEGIES.check_options("routing", self.strategy, self.options)
        self._goes_with(f'strategy = "{self.strategy}"', mode=chosen.modes, cover=chosen.covers)
        if self.trees == "per-source" and chosen.sends_to == "root":
            raise CoverlayError(
                f'trees = "per-source" has one root per source: it does not go with strategy = "{self.strategy}"'
            )
        if self.failover != "none" and self.detect_after < self.heartbeat:
            raise CoverlayError(
                f"detect_after is {self.detect_after:g} ms; it must be at least heartbeat, {self.heartbeat:g} ms"
            )
        if self.rank != "none":
            modes = {"cover": ("lazy", "active"), "skyband": ("lazy",)}[self.rank]
            strategies = tuple(name for name, other in STRATEGIES.items() if other.keeps_ranks)
            rank, others = f'rank = "{self.rank}"', {"cover": ("single",), "advertisements": ("none",)}
            self._goes_with(rank, strategy=strategies, mode=modes, **others)
        return self

    def _goes_with(self, setting: str, **allowed: tuple[str, ...]) -> None:
        """Refuse the first key that has none of the values that go with a setting."""
        for key, values in allowed.items():
            if (given := getattr(self, key)) not in values:
                listed = " or ".join(f'"{value}"' for value in values)
                raise CoverlayError(f'{setting} goes with {key} = {listed}, not with "{given}"')


class CoveringSection(OpenSection):
    option_effects: ClassVar[dict[str, NoEffect | None]] = {
        "finish": NoEffect(reasons.nothing_to_finish),
        "node_cap": NoEffect(reasons.node_budget_ends),
        "": NoEffect(reasons.no_method),
    }
    method: Annotated[
        str, NoEffect(reasons.no_method), Key("how covers are searched for; coverlay list covering shows the methods")
    ] = RoutingOptions.method
    epsilon: Annotated[
        Share,
        NoEffect(reasons.epsilon_by_level, unless=0.0),
        Key("ε: share of the search region's volume left out, or (density) of covers missed; events are never missed"),
    ] = RoutingOptions.epsilon
    recall: Annotated[
        bool, NoEffect(reasons.nothing_missed), Key("with an approximate search, also ask what an exact one would find")
    ] = Settings.ask_exact
    epsilon_per_level: Annotated[
        list[Share],
        NoEffect(reasons.exact_search, unless=[]),
        Key("covering.epsilon by distance from the root; the last one is for all levels below"),
    ] = Field(default_factory=list)
    epsilon_per_link: Annotated[
        dict[str, Share],
        NoEffect(reasons.exact_search, unless={}),
        Key('covering.epsilon by link, both directions: { "3-7" = 0.1 }'),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known(self) -> CoveringSection:
        if self.method in covering.METHODS:
            self.reject_unknown(f"covering method {self.method}", tuple(covering.options_of(self.method)))
        covering.create(self.method, np.array([[0.0, 1.0]]), **self.options)
        self.links()
        return self

    @property
    def approximate(self) -> bool:
        """Covers may be missed: because of ε, or of an option that ends a search early."""
        epsilons = (self.epsilon, *self.epsilon_per_level, *self.epsilon_per_link.values())
        return covering.may_miss(self.method, max(epsilons), self.options)

    def links(self) -> dict[tuple[int, int], float]:
        """`epsilon_per_link` with the brokers of each link as numbers, the smaller first."""
        links = {}
        for name, epsilon in self.epsilon_per_link.items():
            ends = name.split("-")
            if len(ends) != 2 or not all(end.isdecimal() for end in ends):
                raise CoverlayError(f'epsilon_per_link names {name!r}; a link is two broker numbers, like "3-7"')
            links[min(map(int, ends)), max(map(int, ends))] = epsilon
        return links


class MatchingSection(OpenSection):
    kind: Annotated[str, Key("what is ranked: boxes, predicates or places; absent: what the method ranks")] = (
        Settings.kind
    )
    method: Annotated[str, Key("how the best are found; coverlay list matchers shows the methods")] = Settings.matcher
    semantics: Annotated[
        Literal["exact", "relaxed"], Key("all predicates must hold, or at least one, and the others add to the score")
    ] = RoutingOptions.semantics
    k: Annotated[Positive | None, Key("each broker serves its k best; absent: all that match")] = Settings.k
    scope: Annotated[
        Literal["broker", "network"],
        NoEffect(reasons.no_k, unless="broker"),
        Key("serve the k best of each broker, or of the whole network (SimPy only; docs/ranked.md)"),
    ] = "broker"
    metric: Annotated[
        Literal["great-circle", "degrees"],
        NoEffect(reasons.no_places, unless=Settings.metric),
        Key("for places: distances in km on the globe, or in degrees on a plane, as in Hu et al. (SSTD 2015)"),
    ] = Settings.metric
    max_distance: Annotated[
        Annotated[float, Field(gt=0)] | None,
        NoEffect(reasons.no_places),
        Key("for places: where nearness is 0; absent: the largest distance on the map", "km, or degrees"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _infer_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and "kind" not in data and isinstance(data.get("method", ""), str):
            return {**data, "kind": kind_of(data.get("method", Settings.matcher))}
        return data

    @model_validator(mode="after")
    def _known(self) -> MatchingSection:
        place, furthest = ((0, 1), self.max_distance) if self.kind == "places" else (None, None)
        make_ranking(self.kind, self.method, SMALL, self.semantics, self.options, place, furthest, self.metric)
        return self
