"""What the calls of a network return: subscriptions, events, advertisements; and what a subscription gets."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import simpy

from broker.language.schema import Value
from coverlay import CoverlayError, quoted
from sim.network.around import NetworkAround
from sim.network.requests import Published, Row
from sim.tell.as_text import filter_in_words


@dataclass(frozen=True, repr=False)
class Event:
    """An event that was published, or will be."""

    _network: NetworkAround
    _published: Published

    @property
    def number(self) -> int | None:
        """Its number in the trace, in the order of publication; None before it is published."""
        return self._published.number

    @property
    def at(self) -> Hashable:
        """The broker at which it is published."""
        return self._network.brokers[self._published.broker]

    @property
    def time(self) -> float | None:
        """When it was published, in ms; None: not yet."""
        return self._published.time

    @property
    def values(self) -> dict[str, Value]:
        """Its attributes."""
        return self._network.schema.decode(self._published.values)

    @property
    def deliveries(self) -> pd.DataFrame:
        """Who got it so far."""
        frame = self._network.deliveries
        return frame[frame["event"] == (-1 if self.number is None else self.number)]

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value!r}" for name, value in self.values.items())
        if self.number is None:
            return f"Event at {self.at!r}, not published yet: {values}"
        return f"Event {self.number}, published at {self.at!r} at {self.time:g} ms: {values}"


@dataclass(frozen=True)
class Delivery:
    """What a subscription's `inbox` holds: `event`, and how it came: `time`, `hops`, `latency`, `rank`, `score`."""

    event: Event
    time: float  # ms
    hops: int
    latency: float  # ms
    rank: int
    score: float


class Subscription:
    """A subscription: what `net.subscribe` returns. After a change it is the new version.

    >>> import networkx as nx, sim
    >>> net = sim.Network(nx.path_graph(3), schema={"price": (0, 1000)})
    >>> cheap = net.subscribe(at=2, where="price < 50", id="ann")
    >>> net.run(until=cheap.settled)
    >>> cheap.change(where="price < 10")
    >>> event = net.publish(at=0, event={"price": 5})
    >>> net.run()
    >>> cheap.where, cheap.number, len(cheap.inbox.items)
    ('price < 10.0', 1, 1)
    """

    def __init__(self, network: NetworkAround, row: Row) -> None:
        self._network, self._row = network, row
        self._asked = row  # the version that was asked for last
        self._leaves_at: float | None = None  # when it was asked to leave; inf: as soon as the network is at rest
        self._received: list[Delivery] = []  # before anybody looked into the inbox
        self._inbox: simpy.Store | None = None

    @property
    def number(self) -> int:
        """Its number in the trace."""
        return self._row.traced

    @property
    def id(self) -> str | None:
        """What you call it."""
        return self._row.id

    @property
    def at(self) -> Hashable:
        """The broker of its client."""
        return self._network.brokers[self._row.broker]

    @property
    def where(self) -> str:
        """What it asks for, in the subscription language."""
        return filter_in_words(self._network.schema, self._row.filter)

    @property
    def score(self) -> float:
        """How it ranks among the k best."""
        return self._row.filter.score

    @property
    def in_force(self) -> bool:
        """Its client has asked for it, and has not left."""
        return self._row.in_force

    @property
    def deliveries(self) -> pd.DataFrame:
        """What it got so far; of the present version, where a change gave it another number."""
        frame = self._network.deliveries
        return frame[frame["subscription"] == self.number]

    @property
    def inbox(self) -> simpy.Store:
        """What it got and nobody has taken out yet: `delivery = yield subscription.inbox.get()` in a process."""
        if self._inbox is None:
            self._inbox = simpy.Store(self._network.env)
            self._inbox.items.extend(self._received)
            self._received.clear()
        return self._inbox

    def receive(self, delivery: Delivery) -> None:
        """Called when an event is delivered."""
        if self._inbox is None:
            self._received.append(delivery)
        else:
            self._inbox.put(delivery)

    @property
    def settled(self) -> simpy.Event:
        """An event of SimPy: the subscription has spread, and so has every cover that stands for it."""
        return self._network.settling.event_of(self._row)

    def leave(self, *, time: float | None = None) -> None:
        """Take it back."""
        self._refuse_gone("leave")
        last = self._asked

        def leave() -> None:
            self._network.acts.leave(last)

        self._network.schedule(leave, time)
        self._leaves_at = math.inf if time is None else time

    def change(
        self,
        *,
        where: str | Mapping[str, Any] | None = None,
        score: float | None = None,
        at: Hashable | None = None,
        time: float | None = None,
    ) -> None:
        """Ask for something else, with another score, or at another broker; what is not given stays.

        The new version joins and the old one leaves at one moment. With `scope="network"`, a change of the score alone
        is one request, and the number stays.
        """
        self._refuse_gone("change")
        network, before = self._network, self._asked
        filter = network.filter_of(where, score, before.filter)
        broker = before.broker if at is None else network.brokers.number(at)
        same = filter.key == before.filter.key and broker == before.broker
        of_rank = same and network.settings.network_wide
        network.schedule_check(time)
        row = network.requests.new_row(broker, filter, before.id, before if of_rank else None)
        self._asked = row

        def change() -> None:
            if of_rank:
                network.acts.rerank(row)
            else:
                network.acts.replace(before, row)
            self._row = row
            network.handles[row.traced] = self

        network.schedule(change, time)

    def move(self, to: Hashable, how: str = "cold", *, time: float | None = None) -> None:
        """Its client goes to another broker: it joins there, and leaves here at the same moment.

        `how` is "cold": nothing is kept for it on the way.
        """
        if how != "cold":
            raise CoverlayError(f'how is {quoted(how)}; it must be "cold": nothing is kept for a client on its way')
        self.change(at=to, time=time)

    def _refuse_gone(self, what: str) -> None:
        if self._row.left < math.inf and self._asked is self._row:
            raise CoverlayError(f"{self._called} has left at {self._row.left:g} ms, so it cannot {what}")
        if self._leaves_at is not None:
            when = "when the network is at rest" if self._leaves_at == math.inf else f"at {self._leaves_at:g} ms"
            raise CoverlayError(f"{self._called} will leave {when}, so it cannot {what}")

    @property
    def _called(self) -> str:
        return f"subscription {self.number}" + (f" ({self.id})" if self.id else "")

    def __repr__(self) -> str:
        came, left = self._row.came, self._row.left
        when = "not yet in force" if came is None else f"since {came:g} ms"
        gone = f", left at {left:g} ms" if left < math.inf else ""
        return f"Subscription {self.number} at {self.at!r}, {when}{gone}: {self.where}"


class Advertisement:
    """An advertisement: what `net.advertise` returns."""

    def __init__(self, network: NetworkAround, number: int) -> None:
        self._network, self.number = network, number
        self._ended = False

    def leave(self, *, time: float | None = None) -> None:
        """End it."""
        if self._ended:
            raise CoverlayError(f"advertisement {self.number} has been ended already")
        self._network.schedule(lambda: self._network.acts.unadvertise(self.number), time)
        self._ended = True

    def __repr__(self) -> str:
        return f"Advertisement {self.number}{', ended' if self._ended else ''}"
