"""What the parts of a network may use of it, so that imports point one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import pandas as pd
import simpy

from broker import network as reference
from broker.language.schema import Schema
from routing.filter import Filter
from routing.overlay.graph import Overlay
from sim.experiment.config import Experiment
from sim.network.acts import Acts
from sim.network.parts import Brokers
from sim.network.requests import Done, Requests
from sim.network.settling import Settling


class NetworkAround(Protocol):
    """The network of a subscription, or of files."""

    overlay: Overlay
    brokers: Brokers
    settings: Experiment
    schema: Schema
    seed: int
    requests: Requests
    reference: reference.Network
    acts: Acts
    settling: Settling
    handles: dict[int, Any]

    @property
    def env(self) -> simpy.Environment: ...
    @property
    def now(self) -> float: ...
    @property
    def deliveries(self) -> pd.DataFrame: ...
    @property
    def trace_hash(self) -> str: ...

    def trace(self, table: str) -> pd.DataFrame: ...
    def filter_of(self, where: Any, score: float | None, before: Filter | None = None) -> Filter: ...
    def schedule(self, act: Callable[[], object], time: float | None) -> None: ...
    def schedule_check(self, time: float | None) -> None: ...
    def plan(self, steps: Iterable[Done]) -> None: ...
    def plan_at_rest(self, steps: Iterable[Done]) -> None: ...
