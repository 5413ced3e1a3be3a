"""When subscriptions have settled: their own messages, and those of every cover that stands for them, are processed."""

from __future__ import annotations

import simpy

from broker.network import Network
from broker.trace.schema import NOBODY
from sim.network.requests import Row


class Settling:
    """The events of SimPy that happen when subscriptions have settled."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._events: dict[Row, simpy.Event] = {}  # that somebody asked for
        self._unsettled: list[Row] = []  # of these
        network.on_finished = self._look_again

    def event_of(self, row: Row) -> simpy.Event:
        if row not in self._events:
            self._events[row] = self._network.env.event()
            self._unsettled.append(row)
            self._look_again()
        return self._events[row]

    def _look_again(self, _: int = 0) -> None:
        """Called whenever a request has spread."""
        for row in [row for row in self._unsettled if self._has_settled(row)]:
            self._unsettled.remove(row)
            self._events[row].succeed()

    def _has_settled(self, row: Row) -> bool:
        network, seen, todo = self._network, set[int](), [row.traced]
        if row.came is None:
            return False
        if network.settings.advertisements != "none" and network.under_way:
            return False  # an advertisement that is under way may wake it
        while todo:
            subscription = todo.pop()
            if subscription < NOBODY and network.under_way:
                return False  # a merger has no request of its own
            if subscription >= 0 and network.is_spreading(subscription):
                return False
            seen.add(subscription)
            todo += network.coverers(subscription) - seen
        return True
