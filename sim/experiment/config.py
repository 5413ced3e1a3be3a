"""Experiment files: what they may contain, checked in full before anything runs.

Sections hold the settings that every kind shares plus the options of the chosen kind (`overlay.degree`,
`covering.probe_cap`, …). Options are checked against the kind itself, so a misspelt or foreign one is
reported with its path like any other mistake. All mistakes come in one message.

A key that matters only together with others declares why it would not (`NoEffect`, see effects.py and reasons.py).
Defaults that brokers have too are read from their settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

import covering
from broker.network import Settings, searches_of
from broker.ranking import at_work, kind_of, make_ranking
from broker.transport import WORK, LinkModel, service_model
from broker.work import DEFAULT, load_profile
from coverlay import CoverlayError, did_you_mean, quoted, unknown_name
from routing.contract import RoutingOptions
from routing.options import reject_unknown
from routing.overlay.graph import overlay_options
from routing.overlay.latency import latency_model
from routing.overlay.map import read_map
from routing.strategies import STRATEGIES
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
    kind: Annotated[str, NoEffect(reasons.overlay_from_file)] = "random-tree"
    file: File = None
    latency_attribute: Annotated[str | None, NoEffect(reasons.overlay_generated)] = None
    brokers: Annotated[int, Field(ge=1, le=MOST_BROKERS), NoEffect(reasons.overlay_from_file)] = 50
    latency: dict[str, Any] = Field(default_factory=lambda: {"kind": "uniform", "low": 1.0, "high": 10.0})
    latency_floor: Annotated[float, Field(ge=0)] = 0.0  # milliseconds that every link takes at least
    map: dict[str, Any] | None = None  # where on the globe brokers are, see routing/overlay/map.py

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
    bandwidth: Annotated[float, Field(gt=0)] | None = LinkModel.bandwidth  # bytes per millisecond
    jitter: Annotated[float, Field(ge=0)] = LinkModel.jitter  # milliseconds
    loss: Annotated[float, Field(ge=0, lt=1)] = LinkModel.loss  # chance that a transmission has to be repeated
    # Milliseconds.
    retransmit_after: Annotated[float, Field(ge=0), NoEffect(reasons.nothing_lost)] = LinkModel.retransmit_after


class ServiceSection(OpenSection):
    """How long a broker serves a message: none, constant, exponential, linear, or what its work costs."""

    kind: str = "none"
    profile: Annotated[str | None, PROFILE] = (
        None  # of `work`: the name of a shipped profile, or a file; see broker/work.py
    )

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
    # Messages at a broker, the one in service included, before events find no room; absent: unbounded.
    queue: Annotated[Positive | None, NoEffect(reasons.no_service_time)] = None
    # What then happens to an event.
    overflow: Annotated[Literal["drop", "shed", "hold"], NoEffect(reasons.no_limited_queue)] = Settings.overflow

    @property
    def immediate(self) -> bool:
        return self.service.kind == "none"


class WorkloadSection(OpenSection):
    kind: Annotated[str, NoEffect(reasons.workload_from_files)] = "zipf"
    subscriptions_file: File = None
    events_file: File = None
    attributes: Annotated[int, Field(ge=1, le=MOST_ATTRIBUTES), NoEffect(reasons.workload_from_files)] = 2
    subscriptions: Annotated[Count, NoEffect(reasons.workload_from_files)] = 1000
    events: Annotated[Count, NoEffect(reasons.workload_from_files)] = 200

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
        "attach": None,
        "settle": NoEffect(reasons.all_timed),
        "": NoEffect(reasons.subscriptions_timed),
    }
    kind: Annotated[str, NoEffect(reasons.subscriptions_timed, unless="static")] = "static"

    @model_validator(mode="after")
    def _known(self) -> ArrivalsSection:
        self.reject_unknown(f'arrival process "{self.kind}"', arrivals.arrival_options(self.kind))
        arrivals.validate(self.kind, self.options)
        return self


class RoutingSection(Section):
    strategy: str = Settings.strategy
    # What becomes of entries that a later one covers: they stay, are retracted, or are pruned by who received them.
    mode: Annotated[Literal["lazy", "active", "prune"], NoEffect(reasons.no_search, unless="lazy")] = Settings.mode
    # union: several sent subscriptions that together cover one hold it back too.
    cover: Annotated[Literal["single", "union"], NoEffect(reasons.no_search, unless="single")] = RoutingOptions.cover
    advertisements: Literal["none", "simple", "covering"] = Settings.advertisements
    trees: Literal["spanning", "per-source"] = Settings.trees
    # Of `hierarchical` and of levels; absent: the middle of the tree.
    root: Annotated[Count | None, NoEffect(reasons.no_root)] = None
    # Share of a merger that nobody asked for.
    merge_waste: Annotated[Share, NoEffect(reasons.no_merging, unless=0.0)] = RoutingOptions.merge_waste

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
        return self


class CoveringSection(OpenSection):
    option_effects: ClassVar[dict[str, NoEffect | None]] = {"": NoEffect(reasons.no_search)}
    method: Annotated[str, NoEffect(reasons.no_search)] = RoutingOptions.method
    epsilon: Annotated[Share, NoEffect(reasons.epsilon_by_level, unless=0.0)] = RoutingOptions.epsilon
    # Beside an approximate search, ask what an exact one would have said.
    recall: Annotated[bool, NoEffect(reasons.nothing_missed)] = Settings.ask_exact
    # By distance from the root; the last holds for all below.
    epsilon_per_level: Annotated[list[Share], NoEffect(reasons.exact_search, unless=[])] = []
    # "3-7" = 0.1, both directions.
    epsilon_per_link: Annotated[dict[str, Share], NoEffect(reasons.exact_search, unless={})] = {}

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
    kind: str = Settings.kind  # what the k best are, see broker/ranking.py; unless given, what the method is for
    method: str = Settings.matcher
    semantics: Literal["exact", "relaxed"] = RoutingOptions.semantics
    k: Positive | None = Settings.k
    # Of places, in degrees; absent: the map's diagonal.
    max_distance: Annotated[Annotated[float, Field(gt=0)] | None, NoEffect(reasons.no_places)] = None

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
    file: File = None  # a CSV table of faults, see sim/experiment/faults.py
    # Of the brokers and of the links, once each.
    crash_fraction: Annotated[float, Field(ge=0, le=1), NoEffect(reasons.faults_from_file, unless=0.0)] = 0.0
    cut_fraction: Annotated[float, Field(ge=0, le=1), NoEffect(reasons.faults_from_file, unless=0.0)] = 0.0
    downtime: Annotated[float, Field(gt=0), NoEffect(reasons.no_drawn_faults)] = 200.0  # mean, in milliseconds
    # What a crash does to a broker's memory.
    state: Annotated[Literal["lost", "kept"], NoEffect(reasons.no_drawn_crashes)] = "lost"
    # Of the publishing period.
    window: Annotated[list[float], Field(min_length=2, max_length=2), NoEffect(reasons.no_drawn_faults)] = [0.0, 0.5]

    @model_validator(mode="after")
    def _known(self) -> FaultsSection:
        if not 0 <= self.window[0] <= self.window[1] <= 1:
            raise CoverlayError(f"window is {self.window}; it must be [start, end] with 0 ≤ start ≤ end ≤ 1")
        if self.file is not None:
            read_faults(self.file)
        return self


class RunSection(Section):
    engine: Literal["auto", "simpy", "compiled"] = "auto"  # by predicted size, see sim/experiment/engines.py
    samples: Count = 20  # how often table sizes are written down on the way
    # Shares of the subscriptions whose decisions, and of the events whose deliveries, are kept row by row; the others
    # are added up, so totals stay exact.
    sample_decisions: Annotated[float, Field(ge=0, le=1)] = 1.0
    sample_deliveries: Annotated[float, Field(ge=0, le=1)] = 1.0
    # Share of the events that the oracle judges; absent: all, or as many as take it seconds (oracle.JUDGED_PAIRS).
    sample_oracle: Annotated[float, Field(gt=0, le=1)] | None = None
    limit_bytes: Annotated[float, Field(gt=0)] = 4e9  # a run predicted to be larger is not begun unless forced
    force: bool = False  # begin it all the same


class Experiment(Section):
    """One point of a sweep, or a whole experiment before it is expanded."""

    name: str
    question: str = ""
    seeds: Annotated[list[Seed], Field(min_length=1)] = [1]
    tell: Count = 0  # events that `coverlay run` tells the story of, in words
    overlay: OverlaySection = Field(default_factory=OverlaySection)
    links: LinksSection = Field(default_factory=LinksSection)
    broker: BrokerSection = Field(default_factory=BrokerSection)
    workload: WorkloadSection = Field(default_factory=WorkloadSection)
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema"), NoEffect(reasons.workload_generated)] = None
    arrivals: ArrivalsSection = Field(default_factory=ArrivalsSection)
    routing: RoutingSection = Field(default_factory=RoutingSection)
    covering: CoveringSection = Field(default_factory=CoveringSection)
    matching: MatchingSection = Field(default_factory=MatchingSection)
    faults: FaultsSection = Field(default_factory=FaultsSection)
    run: RunSection = Field(default_factory=RunSection)

    @model_validator(mode="after")
    def _priced(self) -> Experiment:
        """A profile has the coefficients of everything that this experiment searches and matches by."""
        profile = self.broker.service.profile
        if profile is not None:
            routing = self.routing
            methods = searches_of(routing.strategy, routing.mode, self.covering.method, routing.advertisements)
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
