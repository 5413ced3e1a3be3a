"""What the parts of a network may use of what is around them.

A network makes its brokers, a broker makes its part of every tree, and each refers back to what it belongs to. These
protocols say what it may use of that, so that imports point one way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import simpy

from broker.messages import Message, Publication, Reply
from broker.settings import Settings
from broker.tables import Floats, LinkTable, LocalTable, Looked
from broker.trace.recorder import Recorder
from broker.transport import Link
from routing.advertisements import AdvertTable
from routing.contract import Search
from routing.filter import Filter
from routing.ledger import Kind, LedgerMessage, LinkLedger
from routing.overlay.trees import Tree


class FaultsAround(Protocol):
    def record(self, kind: str, broker: int, neighbour: int, event: int = ...) -> None: ...


class NetworkAround(Protocol):
    """The network of a broker."""

    env: simpy.Environment
    settings: Settings
    stream: Callable[[str], np.random.Generator]
    recorder: Recorder
    trees: dict[int, Tree]
    loading: bool
    under_way: int

    @property
    def brokers(self) -> Sequence[BrokerAround]: ...
    @property
    def outages(self) -> FaultsAround: ...

    def new_merger(self) -> int: ...
    def new_operation(self, kind: str, subscription: int, broker: int) -> int: ...
    def operation_sends(self, operation: int) -> None: ...
    def operation_processed(self, operation: int) -> None: ...
    def event_sends(self, event: int) -> None: ...
    def event_lost(self, event: int) -> None: ...
    def event_processed(self, event: int) -> None: ...
    def opened(self, event: int, broker: int) -> None: ...
    def close_if_over(self, event: int) -> None: ...
    def clients_return(self, broker: int, asking: set[int]) -> None: ...


class BrokerAround(Protocol):
    """The broker of a part, and of the events that are under way at it."""

    number: int
    operation: int
    local: LocalTable
    nothing: Filter

    @property
    def network(self) -> NetworkAround: ...
    @property
    def links(self) -> Mapping[int, Link[Message]]: ...
    @property
    def parts(self) -> Mapping[int, PartAround]: ...
    @property
    def outgoing_bytes(self) -> int: ...
    @property
    def outgoing_events(self) -> int: ...

    def send(self, neighbour: int, message: Message) -> None: ...
    def charge(self, search: Search) -> float: ...
    def took(self) -> float: ...
    def record_ranked(self, message: Publication | Reply, kind: str, took: float) -> None: ...
    def record_publication(
        self,
        message: Publication,
        served: int,
        forwarded: int,
        counts: tuple[int, int, int, int, int],
        times: tuple[float, float, float],
    ) -> int: ...


class PartAround(Protocol):
    """A broker's part in one tree, for its recovery and for the same tree's part at a neighbour."""

    tree: Tree
    tables: dict[int, LinkTable]
    adverts: dict[int, AdvertTable]
    ledgers: dict[int, LinkLedger]
    advert_ledgers: dict[int, LinkLedger]
    gets_everything: set[int]
    neighbours: list[int]

    @property
    def broker(self) -> BrokerAround: ...

    def at(self, neighbour: int) -> PartAround: ...
    def takes_in(self, source: int, kind: Kind, subscription: int, filter: Filter) -> bool: ...
    def wants(self, source: int, values: Floats) -> tuple[list[int], Looked]: ...
    def send_control(self, neighbour: int, answers: list[LedgerMessage], operation: int, hop: int) -> None: ...
