"""Sections of an experiment file that describe the world: overlay, links, brokers, workload, arrivals, faults."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from broker.settings import Settings
from broker.transport import WORK, LinkModel, Overflow, service_model
from broker.work import DEFAULT
from coverlay import CoverlayError, Key
from routing.overlay.graph import OVERLAYS, overlay_options
from routing.overlay.latency import Uniform, latency_model
from routing.overlay.map import read_map
from sim import workloads
from sim.experiment import reasons
from sim.experiment.config_base import Count, File, OpenSection, Positive, Section
from sim.experiment.effects import PROFILE, NoEffect
from sim.experiment.faults import read_faults
from sim.workloads import arrivals
from sim.workloads.times import Unit

MOST_BROKERS = 1_000_000  # NetworkX needs about a kilobyte for each, before a message is sent
MOST_ATTRIBUTES = 10_000  # boxes are dense: every subscription has bounds for each


class OverlaySection(OpenSection):
    kind: Annotated[
        str, NoEffect(reasons.overlay_from_file), Key("kind of generated overlay; coverlay list topologies shows all")
    ] = "random-tree"
    file: Annotated[
        File,
        Key("your own overlay instead (GraphML, GML, an edge list), or topologies/abilene.gml, aarnet or cogentco"),
    ] = None
    latency_attribute: Annotated[
        str | None, NoEffect(reasons.overlay_generated), Key("the file's edge attribute with the latency, in ms")
    ] = None
    brokers: Annotated[
        int, Field(ge=1, le=MOST_BROKERS), NoEffect(reasons.overlay_from_file), Key("brokers in the overlay")
    ] = 50
    latency: Annotated[
        dict[str, Any], Key("kind = constant, uniform, distance or great-circle; if absent, a file's own are used")
    ] = Field(default_factory=lambda: {"kind": "uniform", "low": Uniform.low, "high": Uniform.high})
    latency_floor: Annotated[float, Field(ge=0), Key("every link takes at least this long", "ms")] = 0.0
    map: Annotated[dict[str, Any] | None, Key("puts generated brokers on the globe; absent: in the plane")] = None

    @model_validator(mode="after")
    def _known(self) -> OverlaySection:
        if self.file is None:
            self.reject_unknown(f'overlay kind "{self.kind}"', overlay_options(self.kind))
            OVERLAYS.check_options("overlay", self.kind, self.options)
        else:
            self.reject_unknown("an overlay from a file", ())
        latency_model(self.latency)
        if self.map is not None:
            read_map(self.map)
        return self


class LinksSection(Section):
    """Whatever these settings, links are reliable and keep messages in order."""

    bandwidth: Annotated[
        Annotated[float, Field(gt=0)] | None, Key("what a link carries; absent: unlimited", "bytes/ms")
    ] = LinkModel.bandwidth
    jitter: Annotated[float, Field(ge=0), Key("largest random extra latency of a message", "ms")] = LinkModel.jitter
    loss: Annotated[float, Field(ge=0, lt=1), Key("chance that a transmission has to be repeated")] = LinkModel.loss
    retransmit_after: Annotated[
        float, Field(ge=0), NoEffect(reasons.nothing_lost), Key("time after which a transmission is repeated", "ms")
    ] = LinkModel.retransmit_after


class ServiceSection(OpenSection):
    """How long a broker takes to serve a message: none, constant, exponential, linear, or what its work costs."""

    kind: Annotated[str, Key("how long serving a message takes: none, constant, exponential, linear or work")] = "none"
    profile: Annotated[
        str | None, PROFILE, Key("for work: a shipped profile of what work costs, or a file from coverlay calibrate")
    ] = None

    @model_validator(mode="after")
    def _known(self) -> ServiceSection:
        if self.kind == WORK and self.profile is None:
            self.profile = DEFAULT
        service_model(self.spec, np.random.default_rng(0))
        return self

    @property
    def spec(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class BrokerSection(Section):
    service: ServiceSection = Field(default_factory=ServiceSection)
    queue: Annotated[
        Positive | None,
        NoEffect(reasons.no_service_time),
        Key("messages at a broker, the one in service included, at which it is full for events; absent: unbounded"),
    ] = None
    overflow: Annotated[
        Overflow,
        NoEffect(reasons.no_limited_queue),
        Key("if the queue is full: drop the new event, drop the lowest in rank, or let the sender hold it"),
    ] = Settings.overflow

    @property
    def immediate(self) -> bool:
        return self.service.kind == "none"


class WorkloadSection(OpenSection):
    option_effects: ClassVar[dict[str, NoEffect | None]] = {"skew": NoEffect(reasons.attributes_alike)}
    kind: Annotated[
        str, NoEffect(reasons.workload_from_files), Key("kind of generated workload; coverlay list workloads shows all")
    ] = "zipf"
    subscriptions_file: Annotated[File, Key("your own subscriptions: CSV, Parquet or JSON lines")] = None
    events_file: Annotated[File, Key("your own events: CSV, Parquet or JSON lines")] = None
    time_unit: Annotated[
        Unit, NoEffect(reasons.no_recorded_times, unless="ms"), Key("unit of the times in your own files")
    ] = "ms"
    repeat: Annotated[
        Positive,
        NoEffect(reasons.no_events_file, unless=1),
        Key("times that your own events are published, one recording after the other"),
    ] = 1
    attributes: Annotated[
        int, Field(ge=1, le=MOST_ATTRIBUTES), NoEffect(reasons.own_attributes), Key("attributes of an event")
    ] = 2
    subscriptions: Annotated[Count, NoEffect(reasons.workload_from_files), Key("number of subscriptions")] = 1000
    events: Annotated[Count, NoEffect(reasons.workload_from_files), Key("number of events")] = 200

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
        "home_skew": NoEffect(reasons.homes_not_drawn, unless=0.0),
        "publisher_skew": NoEffect(reasons.publishers_not_drawn, unless=0.0),
        "publish_rate": NoEffect(reasons.times_in_file),
        "publishing": None,
        "burst_factor": NoEffect(reasons.no_bursts),
        "burst_length": NoEffect(reasons.no_bursts),
        "attach": NoEffect(reasons.clients_in_files, unless=arrivals.RANDOM),
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


_DrawnShare = Annotated[float, Field(ge=0, le=1), NoEffect(reasons.faults_from_file, unless=0.0)]


class FaultsSection(Section):
    file: Annotated[File, Key("a table of faults: time, kind, broker, neighbour, until, state")] = None
    crash_fraction: Annotated[_DrawnShare, Key("share of brokers that crash")] = 0.0
    cut_fraction: Annotated[_DrawnShare, Key("share of links that are cut")] = 0.0
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
    ] = Field(default_factory=lambda: [0.0, 0.5])

    @model_validator(mode="after")
    def _known(self) -> FaultsSection:
        if not 0 <= self.window[0] <= self.window[1] <= 1:
            raise CoverlayError(f"window is {self.window}; it must be [start, end] with 0 ≤ start ≤ end ≤ 1")
        if self.file is not None:
            read_faults(self.file)
        return self
