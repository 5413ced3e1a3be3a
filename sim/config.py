"""Experiment files: what may stand in them, checked in full before anything runs.

Sections hold the settings that every kind shares plus the options of the chosen kind (`overlay.degree`,
`covering.probe_cap`, …). Options are checked against the kind itself, so a misspelt or foreign one is
reported with its path like any other mistake. All mistakes come in one message.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

import covering
from broker.ranking import kind_of, make_ranking
from broker.transport import SERVICE_OPTIONS, service_model
from coverlay import CoverlayError, quoted, unknown_name
from routing.latency import latency_model
from routing.map import read_map
from routing.options import reject_unknown
from routing.overlay import overlay_options
from routing.strategies import STRATEGIES
from sim import workloads
from sim.faults import read_faults
from sim.workloads import arrivals

SMALL = np.array([[0.0, 1.0], [0.0, 1.0]])  # a domain to try the options of indexes on
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class OpenSection(Section):
    """A section that also holds the options of whatever it names."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, strict=True)

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class OverlaySection(OpenSection):
    kind: str = "random-tree"
    file: str | None = None
    latency_attribute: str | None = None
    brokers: Positive = 50
    latency: dict[str, Any] = Field(default_factory=lambda: {"kind": "uniform", "low": 1.0, "high": 10.0})
    map: dict[str, Any] | None = None  # where on the globe brokers are, see routing/map.py

    @model_validator(mode="after")
    def _known(self) -> OverlaySection:
        if self.file is None:
            if self.latency_attribute is not None:
                raise CoverlayError("latency_attribute goes with file = …; generated overlays have none")
            reject_unknown(f'overlay kind "{self.kind}"', self.options, overlay_options(self.kind))
        elif self.options:
            reject_unknown("an overlay from a file", self.options, ())
        latency_model(self.latency)
        if self.map is not None:
            read_map(self.map)
        return self


class LinksSection(Section):
    bandwidth: Annotated[float, Field(gt=0)] | None = None  # bytes per millisecond
    jitter: Annotated[float, Field(ge=0)] = 0.0  # milliseconds
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0  # chance that a transmission has to be repeated
    retransmit_after: Annotated[float, Field(ge=0)] = 50.0  # milliseconds


class BrokerSection(Section):
    service: dict[str, Any] = Field(default_factory=lambda: {"kind": "none"})
    queue: Positive | None = None  # messages waiting before events find no room; absent: unbounded
    overflow: Literal["drop", "shed", "hold"] = "drop"  # what then happens to an event

    @model_validator(mode="after")
    def _known(self) -> BrokerSection:
        service_model(self.service, lambda: 0, np.random.default_rng(0))
        if self.queue is not None and self.service.get("kind", "none") == "none":
            others = ", ".join(kind for kind in SERVICE_OPTIONS if kind != "none")
            raise CoverlayError(
                f"queue = {self.queue} needs a service time, or nothing ever queues: {others}"
            )
        return self


class WorkloadSection(OpenSection):
    kind: str = "zipf"
    subscriptions_file: str | None = None
    events_file: str | None = None
    attributes: Positive = 2
    subscriptions: Count = 1000
    events: Count = 200

    @model_validator(mode="after")
    def _known(self) -> WorkloadSection:
        if self.subscriptions_file is not None or self.events_file is not None:
            reject_unknown("a workload from files", self.options, ())
        else:
            workloads.validate(self.kind, self.attributes, self.options)
        return self


class ArrivalsSection(OpenSection):
    kind: str = "static"

    @model_validator(mode="after")
    def _known(self) -> ArrivalsSection:
        arrivals.validate(self.kind, self.options)
        return self


class RoutingSection(Section):
    strategy: str = "covering"
    mode: Literal["lazy", "active"] = "lazy"
    advertisements: Literal["none", "simple", "covering"] = "none"
    trees: Literal["spanning", "per-source"] = "spanning"
    root: Count | None = None  # of `hierarchical` and of levels; absent: the middle of the tree
    merge_waste: Annotated[float, Field(ge=0, lt=1)] = 0.0  # share of a merger that nobody asked for

    @field_validator("strategy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in STRATEGIES:
            raise unknown_name("routing strategy", name, STRATEGIES)
        return name

    @model_validator(mode="after")
    def _fits(self) -> RoutingSection:
        if self.trees == "per-source" and (self.strategy == "hierarchical" or self.root is not None):
            raise CoverlayError('trees = "per-source" has one root per source: no root and no hierarchical beside it')
        return self


class CoveringSection(OpenSection):
    method: str = "auto"
    epsilon: float = 0.0
    recall: bool = True  # beside an approximate search, ask what an exact one would have said
    epsilon_per_level: list[float] = []  # by distance from the root; the last holds for all below
    epsilon_per_link: dict[str, float] = {}  # "3-7" = 0.1, both directions

    @model_validator(mode="after")
    def _known(self) -> CoveringSection:
        for epsilon in (self.epsilon, *self.epsilon_per_level, *self.epsilon_per_link.values()):
            covering.create(self.method, np.array([[0.0, 1.0]]), epsilon, **self.options)
        self.links()
        return self

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
    kind: str = "boxes"  # what the k best are, see broker/ranking.py; unless given, what the method is for
    method: str = "auto"
    semantics: Literal["exact", "relaxed"] = "exact"
    k: Positive | None = None
    max_distance: Annotated[float, Field(gt=0)] | None = None  # of places, in degrees; absent: the map's diagonal

    @model_validator(mode="before")
    @classmethod
    def _infer_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and "kind" not in data and isinstance(data.get("method", ""), str):
            return {**data, "kind": kind_of(data.get("method", "auto"))}
        return data

    @model_validator(mode="after")
    def _known(self) -> MatchingSection:
        place = (0, 1) if self.kind == "places" else None
        make_ranking(self.kind, self.method, SMALL, self.semantics, self.options, place, self.max_distance)
        return self


class FaultsSection(Section):
    file: str | None = None  # a CSV table of faults, see sim/faults.py
    crash_fraction: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the brokers, once each
    cut_fraction: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the links, once each
    downtime: Annotated[float, Field(gt=0)] = 200.0  # mean, in milliseconds
    state: Literal["lost", "kept"] = "lost"  # what a crash does to a broker's memory
    window: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 0.5]  # of the publishing period

    @model_validator(mode="after")
    def _known(self) -> FaultsSection:
        if not 0 <= self.window[0] <= self.window[1] <= 1:
            raise CoverlayError(f"window is {self.window}; it must be [start, end] with 0 ≤ start ≤ end ≤ 1")
        if self.file is not None and (self.crash_fraction or self.cut_fraction):
            raise CoverlayError("faults come from a file or from fractions, not from both")
        if self.file is not None:
            read_faults(self.file)
        return self


class RunSection(Section):
    engine: Literal["simpy", "compiled", "auto"] = "simpy"  # auto: compiled wherever it can, see sim/engines.py
    samples: Count = 20  # how often table sizes are written down on the way
    # Shares of the subscriptions whose decisions, and of the events whose deliveries, are kept row by row; the others
    # are added up, so totals stay exact.
    sample_decisions: Annotated[float, Field(ge=0, le=1)] = 1.0
    sample_deliveries: Annotated[float, Field(ge=0, le=1)] = 1.0
    limit_bytes: Annotated[float, Field(gt=0)] = 4e9  # a run predicted to be larger is not begun unless forced
    force: bool = False  # begin it all the same


class Experiment(Section):
    """One point of a sweep, or a whole experiment before it is expanded."""

    name: str
    question: str = ""
    seeds: Annotated[list[Count], Field(min_length=1)] = [1]
    tell: Count = 0  # events that `coverlay run` tells the story of, in words
    overlay: OverlaySection = Field(default_factory=OverlaySection)
    links: LinksSection = Field(default_factory=LinksSection)
    broker: BrokerSection = Field(default_factory=BrokerSection)
    workload: WorkloadSection = Field(default_factory=WorkloadSection)
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    arrivals: ArrivalsSection = Field(default_factory=ArrivalsSection)
    routing: RoutingSection = Field(default_factory=RoutingSection)
    covering: CoveringSection = Field(default_factory=CoveringSection)
    matching: MatchingSection = Field(default_factory=MatchingSection)
    faults: FaultsSection = Field(default_factory=FaultsSection)
    run: RunSection = Field(default_factory=RunSection)

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise CoverlayError(f"seeds {seeds} repeat; each seed is one run")
        return seeds

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the outcome of a run but the seed, defaults included."""
        beside: Any = {"seeds": True, "name": True, "question": True, "tell": True, "run": {"limit_bytes", "force"}}
        return self.model_dump(by_alias=True, exclude=beside, exclude_none=True)


def parse(data: dict[str, Any], where: str) -> Experiment:
    """`data` as an experiment, or one CoverlayError that lists every mistake with its path."""
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        lines = [_sentence(item) for item in error.errors()]
        raise CoverlayError(f"{where}: " + "; ".join(lines)) from None


def _sentence(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        return f"{path}: there is no such key"
    if item["type"] in ("value_error", "missing"):
        return f"{path}: {message}"
    return f"{path} = {quoted(item['input'])}: {message[0].lower()}{message[1:]}"
