"""Experiment files: what they may contain, checked in full before anything runs.

Sections hold the settings that every kind shares plus the options of the chosen kind (`overlay.degree`,
`covering.probe_cap`, …). Options are checked against the kind itself, so a misspelt or foreign one is
reported with its path like any other mistake. All mistakes come in one message.

Each key says what it means (`Key`; keys.py shows them all). One that matters only together with others declares why it
would not (`NoEffect`, see effects.py and reasons.py). Defaults that brokers have too are read from their settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

import covering
from broker.network import Settings, searches_of
from broker.ranked_visit import RankedRouting
from broker.ranking import at_work, kind_of, make_ranking
from broker.transport import WORK, LinkModel, service_model
from broker.work import DEFAULT, load_profile
from coverlay import CoverlayError, Key, did_you_mean, quoted, unknown_name
from routing.contract import RoutingOptions
from routing.options import reject_unknown
from routing.overlay.graph import overlay_options
from routing.overlay.latency import latency_model
from routing.overlay.map import read_map
from routing.strategies import STRATEGIES
from routing.strategies.ranked import EXACT_SCAN
from sim import workloads
from sim.experiment import reasons
from sim.experiment.effects import INPUT_FILE, PROFILE, NoEffect
from sim.experiment.faults import read_faults
from sim.workloads import arrivals

SMALL = np.array([[0.0, 1.0], [0.0, 1.0]])  # a domain to try the options of indexes on
LARGEST = 2**31 - 1  # of counts: traces number brokers with 32 bits, and more of anything fits no machine
MOST_BROKERS = 1_000_000  # NetworkX needs about a kilobyte for each, before a message is sent
MOST_ATTRIBUTES = 10_000  # boxes are dense: every subscription has bounds for each
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]  # as traces keep it
File = Annotated[str | None, INPUT_FILE]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class OpenSection(Section):
    """A section that also holds the options of whatever it names."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, strict=True)

    option_effects: ClassVar[dict[str, NoEffect | None]] = {}  # by name; "" holds for those that are not listed

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def option_metadata(self, name: str) -> tuple[NoEffect, ...]:
        effect = self.option_effects.get(name, self.option_effects.get(""))
        return (effect,) if effect else ()

    def reject_unknown(self, what: str, known: tuple[str, ...]) -> None:
        reject_unknown(what, self.options, known, beside=type(self).model_fields)


class OverlaySection(OpenSection):
    kind: Annotated[
        str, NoEffect(reasons.overlay_from_file), Key("the generated overlay; coverlay list topologies has them")
    ] = "random-tree"
    file: Annotated[File, Key("your own overlay instead: GraphML, GML or an edge list")] = None
    latency_attribute: Annotated[
        str | None, NoEffect(reasons.overlay_generated), Key("the file's edge attribute that has the latency, in ms")
    ] = None
    brokers: Annotated[
        int, Field(ge=1, le=MOST_BROKERS), NoEffect(reasons.overlay_from_file), Key("brokers in the overlay")
    ] = 50
    latency: Annotated[
        dict[str, Any],
        Key("kind = constant, uniform, distance or great-circle; unless given, a file's own are used"),
    ] = Field(default_factory=lambda: {"kind": "uniform", "low": 1.0, "high": 10.0})
    latency_floor: Annotated[float, Field(ge=0), Key("every link takes at least this", "ms")] = 0.0
    map: Annotated[dict[str, Any] | None, Key("puts generated brokers on the globe; absent: in the plane")] = None

    @model_validator(mode="after")
    def _known(self) -> OverlaySection:
        if self.file is None:
            self.reject_unknown(f'overlay kind "{self.kind}"', overlay_options(self.kind))
        else:
            self.reject_unknown("an overlay from a file", ())
        latency_model(self.latency)
        if self.map is not None:
            read_map(self.map)
        return self


class LinksSection(Section):
    """Links stay in order and reliable whatever these say."""

    bandwidth: Annotated[
        Annotated[float, Field(gt=0)] | None, Key("what a link carries; absent: unlimited", "bytes/ms")
    ] = LinkModel.bandwidth
    jitter: Annotated[float, Field(ge=0), Key("up to this much more latency per message, at random", "ms")] = (
        LinkModel.jitter
    )
    loss: Annotated[float, Field(ge=0, lt=1), Key("chance that a transmission has to be repeated")] = LinkModel.loss
    retransmit_after: Annotated[
        float, Field(ge=0), NoEffect(reasons.nothing_lost), Key("time after which it is repeated", "ms")
    ] = LinkModel.retransmit_after


class ServiceSection(OpenSection):
    """How long a broker serves a message: none, constant, exponential, linear, or what its work costs."""

    kind: Annotated[str, Key("how long a message is served: none, constant, exponential, linear or work")] = "none"
    profile: Annotated[
        str | None, PROFILE, Key("of work: a shipped profile of what work costs, or a file of coverlay calibrate")
    ] = None

    @model_validator(mode="after")
    def _known(self) -> ServiceSection:
        if self.kind == WORK and self.profile is None:
            self.profile = DEFAULT
        service_model(self.spec, lambda: 0, np.random.default_rng(0))
        return self

    @property
    def spec(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class BrokerSection(Section):
    service: ServiceSection = Field(default_factory=ServiceSection)
    queue: Annotated[
        Positive | None,
        NoEffect(reasons.no_service_time),
        Key("messages at a broker, the one in service included, before events find no room; absent: unbounded"),
    ] = None
    overflow: Annotated[
        Literal["drop", "shed", "hold"],
        NoEffect(reasons.no_limited_queue),
        Key("an event without room is dropped, or the lowest in rank is, or its sender holds it"),
    ] = Settings.overflow

    @property
    def immediate(self) -> bool:
        return self.service.kind == "none"


class WorkloadSection(OpenSection):
    kind: Annotated[
        str, NoEffect(reasons.workload_from_files), Key("the generated workload; coverlay list workloads has them")
    ] = "zipf"
    subscriptions_file: Annotated[File, Key("your own subscriptions: CSV, Parquet or JSON lines")] = None
    events_file: Annotated[File, Key("your own events: CSV, Parquet or JSON lines")] = None
    attributes: Annotated[
        int, Field(ge=1, le=MOST_ATTRIBUTES), NoEffect(reasons.workload_from_files), Key("attributes of an event")
    ] = 2
    subscriptions: Annotated[Count, NoEffect(reasons.workload_from_files), Key("subscriptions that are made")] = 1000
    events: Annotated[Count, NoEffect(reasons.workload_from_files), Key("events that are published")] = 200

    @property
    def from_files(self) -> bool:
        return self.subscriptions_file is not None or self.events_file is not None

    @model_validator(mode="after")
    def _known(self) -> WorkloadSection:
        if self.from_files:
            self.reject_unknown("a workload from files", ())
        else:
            self.reject_unknown(f'workload kind "{self.kind}"', workloads.workload_options(self.kind))
            workloads.validate(self.kind, self.attributes, self.options)
        return self


class ArrivalsSection(OpenSection):
    option_effects: ClassVar[dict[str, NoEffect | None]] = {
        "home_skew": NoEffect(reasons.homes_in_file, unless=0.0),
        "publisher_skew": NoEffect(reasons.publishers_in_file, unless=0.0),
        "publish_rate": NoEffect(reasons.times_in_file),
        "publishing": None,
        "burst_factor": NoEffect(reasons.no_bursts),
        "burst_length": NoEffect(reasons.no_bursts),
        "attach": None,
        "settle": NoEffect(reasons.all_timed),
        "": NoEffect(reasons.subscriptions_timed),
    }
    kind: Annotated[
        str,
        NoEffect(reasons.subscriptions_timed, unless="static"),
        Key("when subscriptions come and leave: static, growing, churn, bursty, storm or preloaded"),
    ] = "static"

    @model_validator(mode="after")
    def _known(self) -> ArrivalsSection:
        self.reject_unknown(f'arrival process "{self.kind}"', arrivals.arrival_options(self.kind))
        arrivals.validate(self.kind, self.options)
        return self

    @property
    def publishing(self) -> str | None:
        """How events follow each other, see sim/workloads/publishing.py; None: as recorded, else Poisson."""
        asked: str | None = self.options.get("publishing")
        return asked


class RoutingSection(Section):
    strategy: Annotated[
        str, Key("flooding, simple, identity, covering (SIENA), merging (REBECA) or hierarchical (JEDI)")
    ] = Settings.strategy
    mode: Annotated[
        Literal["lazy", "active", "prune"],
        NoEffect(reasons.no_search, unless="lazy"),
        Key("entries that a later one covers stay, are retracted by a message, or are pruned by who received them"),
    ] = Settings.mode
    cover: Annotated[
        Literal["single", "union"],
        NoEffect(reasons.no_search, unless="single"),
        Key("a subscription is held back by one that was sent, or also by several together (SimPy only)"),
    ] = RoutingOptions.cover
    advertisements: Annotated[
        Literal["none", "simple", "covering"], Key("subscriptions travel only towards advertisements, routed this way")
    ] = Settings.advertisements
    trees: Annotated[
        Literal["spanning", "per-source"], Key("one tree of least latency, or shortest paths per publishing broker")
    ] = Settings.trees
    root: Annotated[
        Count | None, NoEffect(reasons.no_root), Key("broker at the root of the hierarchy; absent: the tree's middle")
    ] = None
    rank: Annotated[
        Literal["none", "cover", "skyband"],
        NoEffect(reasons.ranked_by_broker, unless="none"),
        Key("of scope network: tables tell nothing of scores, bound what is behind, or have all possible winners"),
    ] = RankedRouting.rank
    visit: Annotated[
        Literal["parallel", "best-first", "waves"],
        NoEffect(reasons.nothing_asked),
        Key("of rank cover: ask all neighbours that may hide a winner at once, one by one, or in waves"),
    ] = "parallel"
    wave: Annotated[Positive, NoEffect(reasons.no_waves), Key("neighbours that are asked at a time")] = 2
    threshold: Annotated[
        bool,
        NoEffect(reasons.nothing_asked, unless=True),
        Key("of rank cover: skip neighbours whose bound does not beat the k-th best known"),
    ] = RankedRouting.threshold
    merge_waste: Annotated[
        Share, NoEffect(reasons.no_merging, unless=0.0), Key("share of a merger that nobody may have asked for")
    ] = RoutingOptions.merge_waste

    @field_validator("strategy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in STRATEGIES:
            raise unknown_name("routing strategy", name, STRATEGIES)
        return name

    @model_validator(mode="after")
    def _fits(self) -> RoutingSection:
        if self.cover == "union" and self.strategy == "merging":
            raise CoverlayError('cover = "union" is for covering and hierarchical: merging unites by mergers')
        if self.mode == "prune" and self.strategy == "merging":
            raise CoverlayError('mode = "prune" is for covering and hierarchical: mergers are retracted, not pruned')
        if self.trees == "per-source" and self.strategy == "hierarchical":
            raise CoverlayError('trees = "per-source" has one root per source: it cannot be combined with hierarchical')
        if self.rank != "none":
            self._rank_fits()
        return self

    def _rank_fits(self) -> None:
        """Ranks are for strategies that send subscriptions as they are, everywhere."""
        modes = {"cover": ("lazy", "active"), "skyband": ("lazy",)}[self.rank]
        allowed = {
            "strategy": ("simple", "covering"),
            "mode": modes,
            "cover": ("single",),
            "advertisements": ("none",),
        }
        for key, values in allowed.items():
            if (given := getattr(self, key)) not in values:
                listed = " or ".join(f'"{value}"' for value in values)
                raise CoverlayError(f'rank = "{self.rank}" goes with {key} = {listed}, not with "{given}"')

    @property
    def at_a_time(self) -> int | None:
        """Neighbours that an event asks at a time; None: all at once."""
        return {"parallel": None, "best-first": 1, "waves": self.wave}[self.visit]


class CoveringSection(OpenSection):
    option_effects: ClassVar[dict[str, NoEffect | None]] = {"": NoEffect(reasons.no_method)}
    method: Annotated[
        str, NoEffect(reasons.no_method), Key("how a cover is searched; coverlay list covering has the methods")
    ] = RoutingOptions.method
    epsilon: Annotated[
        Share,
        NoEffect(reasons.epsilon_by_level, unless=0.0),
        Key("ε: part of the space that a search may skip; it may miss covers then, never events"),
    ] = RoutingOptions.epsilon
    recall: Annotated[
        bool, NoEffect(reasons.nothing_missed), Key("beside an approximate search, ask what an exact one would say")
    ] = Settings.ask_exact
    epsilon_per_level: Annotated[
        list[Share],
        NoEffect(reasons.exact_search, unless=[]),
        Key("ε by distance from the root; the last holds for all below"),
    ] = []
    epsilon_per_link: Annotated[
        dict[str, Share], NoEffect(reasons.exact_search, unless={}), Key('ε by link, both directions: { "3-7" = 0.1 }')
    ] = {}

    @model_validator(mode="after")
    def _known(self) -> CoveringSection:
        if self.method in covering.METHODS:
            self.reject_unknown(f"covering method {self.method}", tuple(covering.options_of(self.method)))
        covering.create(self.method, np.array([[0.0, 1.0]]), **self.options)
        self.links()
        return self

    @property
    def approximate(self) -> bool:
        """Covers may be missed: by an ε, or by an option that gives up early."""
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
    kind: Annotated[str, Key("what is ranked: boxes, predicates or places; absent: what the method is for")] = (
        Settings.kind
    )
    method: Annotated[str, Key("how the best are found; coverlay list matchers has the methods")] = Settings.matcher
    semantics: Annotated[
        Literal["exact", "relaxed"], Key("all predicates hold, or one of them and the others add to the score")
    ] = RoutingOptions.semantics
    k: Annotated[Positive | None, Key("each broker serves its k best; absent: all that match")] = Settings.k
    scope: Annotated[
        Literal["broker", "network"],
        NoEffect(reasons.no_k, unless="broker"),
        Key("whose k best are served: of each broker, or of the whole network (SimPy only; docs/ranked.md)"),
    ] = "broker"
    max_distance: Annotated[
        Annotated[float, Field(gt=0)] | None,
        NoEffect(reasons.no_places),
        Key("of places: where nearness ends; absent: the map's diagonal", "degrees"),
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
        make_ranking(self.kind, self.method, SMALL, self.semantics, self.options, place, furthest)
        return self


class FaultsSection(Section):
    file: Annotated[File, Key("a CSV table of faults: time, kind, broker, neighbour, until, state")] = None
    crash_fraction: Annotated[
        float,
        Field(ge=0, le=1),
        NoEffect(reasons.faults_from_file, unless=0.0),
        Key("share of brokers that crash"),
    ] = 0.0
    cut_fraction: Annotated[
        float,
        Field(ge=0, le=1),
        NoEffect(reasons.faults_from_file, unless=0.0),
        Key("share of links that are cut"),
    ] = 0.0
    downtime: Annotated[
        float, Field(gt=0), NoEffect(reasons.no_drawn_faults), Key("mean time that they are down", "ms")
    ] = 200.0
    state: Annotated[
        Literal["lost", "kept"], NoEffect(reasons.no_drawn_crashes), Key("what a crash does to a broker's memory")
    ] = "lost"
    window: Annotated[
        list[float],
        Field(min_length=2, max_length=2),
        NoEffect(reasons.no_drawn_faults),
        Key("when they fail: [start, end] as shares of the time in which events are published"),
    ] = [0.0, 0.5]

    @model_validator(mode="after")
    def _known(self) -> FaultsSection:
        if not 0 <= self.window[0] <= self.window[1] <= 1:
            raise CoverlayError(f"window is {self.window}; it must be [start, end] with 0 ≤ start ≤ end ≤ 1")
        if self.file is not None:
            read_faults(self.file)
        return self


class RunSection(Section):
    engine: Annotated[
        Literal["auto", "simpy", "compiled"], Key("by predicted size, the reference, or the compiled one")
    ] = "auto"
    samples: Annotated[Count, Key("how often table sizes are written down on the way")] = 20
    sample_decisions: Annotated[
        float, Field(ge=0, le=1), Key("share of the subscriptions whose decisions the trace keeps; totals stay exact")
    ] = 1.0
    sample_deliveries: Annotated[
        float, Field(ge=0, le=1), Key("share of the events whose deliveries the trace keeps; totals stay exact")
    ] = 1.0
    sample_oracle: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Key("share of the events that the oracle judges; absent: all, or as many as take it seconds"),
    ] = None
    limit_bytes: Annotated[
        float, Field(gt=0), Key("a run predicted to need more memory is not begun unless forced", "bytes")
    ] = 4e9
    force: Annotated[bool, Key("begin it all the same")] = False


class Experiment(Section):
    """One point of a sweep, or a whole experiment before it is expanded."""

    name: Annotated[str, Key("what it is called in reports; absent: the file's name")]
    question: Annotated[str, Key("what it is to answer; the report repeats it")] = ""
    seeds: Annotated[list[Seed], Field(min_length=1), Key("one run of every point each; with three, intervals")] = [1]
    tell: Annotated[Count, Key("events that coverlay run tells the story of, in words")] = 0
    overlay: OverlaySection = Field(default_factory=OverlaySection)
    links: LinksSection = Field(default_factory=LinksSection)
    broker: BrokerSection = Field(default_factory=BrokerSection)
    workload: WorkloadSection = Field(default_factory=WorkloadSection)
    schema_: Annotated[
        dict[str, Any] | None,
        Field(alias="schema"),
        NoEffect(reasons.workload_generated),
        Key('attributes of your own files: { price = { kind = "continuous", low = 0, high = 100 } }'),
    ] = None
    arrivals: ArrivalsSection = Field(default_factory=ArrivalsSection)
    routing: RoutingSection = Field(default_factory=RoutingSection)
    covering: CoveringSection = Field(default_factory=CoveringSection)
    matching: MatchingSection = Field(default_factory=MatchingSection)
    faults: FaultsSection = Field(default_factory=FaultsSection)
    run: RunSection = Field(default_factory=RunSection)

    @property
    def network_wide(self) -> bool:
        """The k best of the whole network are served."""
        return self.matching.scope == "network" and self.matching.k is not None

    @model_validator(mode="after")
    def _priced(self) -> Experiment:
        """A profile has the coefficients of everything that this experiment searches and matches by."""
        profile = self.broker.service.profile
        if profile is not None:
            routing = self.routing
            method = EXACT_SCAN if self.network_wide and routing.rank == "skyband" else self.covering.method
            methods = searches_of(routing.strategy, routing.mode, method, routing.advertisements)
            load_profile(profile).prices(methods, self.matching.kind, at_work(self.matching.kind, self.matching.method))
        return self

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise CoverlayError(f"seeds {quoted(seeds)} repeat; each seed is one run")
        return seeds

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the outcome of a run but the seed, defaults included; both engines have the same."""
        others: Any = dict.fromkeys(("seeds", "name", "question", "tell"), True)
        others["run"] = {"limit_bytes", "force", "engine"}
        return self.model_dump(by_alias=True, exclude=others, exclude_none=True)


def parse(data: dict[str, Any], where: str) -> Experiment:
    """`data` as an experiment, or one CoverlayError that lists every mistake with its path."""
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        lines = [_sentence(item) for item in error.errors()]
        raise CoverlayError(f"{where}: " + "; ".join(lines)) from None


def _keys(path: Iterable[Any]) -> list[str]:
    """The keys of the section at this path."""
    section: Any = Experiment
    for name in path:
        section = section.model_fields[name].annotation
    return [field.alias or name for name, field in section.model_fields.items()]


def _sentence(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        return f"{path}: there is no such key{did_you_mean(item['loc'][-1], _keys(item['loc'][:-1]))}"
    if item["type"] in ("value_error", "missing"):
        return f"{path}: {message}"
    return f"{path} = {quoted(item['input'])}: {message[0].lower()}{message[1:]}"
