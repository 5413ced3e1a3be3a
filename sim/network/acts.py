"""What can be done to a network, at the present simulated time; each act is noted in `requests`."""

from __future__ import annotations

from collections import Counter

from broker import network as reference
from broker.trace.schema import CRASH, CUT
from coverlay import CoverlayError
from routing.filter import Filter
from sim.experiment.agenda import Kind
from sim.network.noticing import Noticing
from sim.network.requests import Done, Published, Requests, Row


class Acts:
    """Acts on one network. An act that is not possible raises and changes nothing."""

    def __init__(self, network: reference.Network, requests: Requests, noticing: Noticing) -> None:
        self._network, self._requests, self._noticing = network, requests, noticing
        self.crashes: Counter[int] = Counter()  # by broker

    def do(self, act: str, *given: object) -> None:
        getattr(self, act)(*given)

    def _note(self, kind: Kind, act: str, *given: object) -> int:
        """Returns the place of the act among all that was done."""
        done = Done(self._network.env.now, kind, act, given, self._network.recorder.steps)
        self._requests.done.append(done)
        return len(self._requests.done) - 1

    def preload(self, rows: list[Row]) -> None:
        """Subscriptions that exist before time 0."""
        self._note(Kind.REQUEST, "preload", rows)
        for row in rows:
            row.came = self._network.env.now
        self._network.preload([row.broker for row in rows], [row.filter for row in rows])

    def join(self, row: Row) -> None:
        row.came_order = self._note(Kind.REQUEST, "join", row)
        row.came = self._network.env.now
        self._network.subscribe(row.broker, row.number, row.filter)

    def leave(self, row: Row) -> None:
        self._must_be_there(row)
        row.left_order = self._note(Kind.REQUEST, "leave", row)
        row.left = self._network.env.now
        self._network.unsubscribe(row.traced)

    def replace(self, before: Row, row: Row) -> None:
        """The client asks for something else: the new version joins, and the old one leaves."""
        self._must_be_there(before)
        self.join(row)
        self.leave(before)

    def rerank(self, row: Row) -> None:
        assert row.changes is not None
        self._must_be_there(row.changes)
        row.came_order = self._note(Kind.REQUEST, "rerank", row)
        row.came = row.changes.left = self._network.env.now
        self._network.rerank(row.traced, row.filter)

    def _must_be_there(self, row: Row) -> None:
        if not row.in_force:
            when = "has not come yet" if row.came is None else f"has left at {row.left:g} ms"
            raise CoverlayError(f"subscription {row.traced} {when}, so it cannot leave or change now")

    def publish(self, event: Published) -> None:
        event.order = self._note(Kind.REQUEST, "publish", event)
        event.number, event.time = len(self._requests.events), self._network.env.now
        self._requests.events.append(event)
        self._network.publish(event.broker, event.number, event.values, event.weights)

    def advertise(self, number: int, broker: int, filter: Filter) -> None:
        self._network.advertise(broker, number, filter)
        self._note(Kind.REQUEST, "advertise", number, broker, filter)

    def unadvertise(self, number: int) -> None:
        self._network.unadvertise(number)
        self._note(Kind.REQUEST, "unadvertise", number)

    def crash(self, broker: int, keep_state: bool) -> None:
        self._network.outages.crash(broker, keep_state)
        self._note(Kind.FAILURE, "crash", broker, keep_state)
        self.crashes[broker] += 1
        self._noticing.failed(self._requests.failed(self._network.env.now, CRASH, broker, keep_state=keep_state))

    def restart(self, broker: int) -> None:
        self._network.outages.restart(broker)
        order = self._note(Kind.REPAIR, "restart", broker)
        self._noticing.repaired(self._requests.repaired(self._network.env.now, order, broker).target)

    def cut(self, broker: int, neighbour: int) -> None:
        self._network.outages.cut(broker, neighbour)
        self._note(Kind.FAILURE, "cut", broker, neighbour)
        self._noticing.failed(self._requests.failed(self._network.env.now, CUT, broker, neighbour))

    def heal(self, broker: int, neighbour: int) -> None:
        self._network.outages.heal(broker, neighbour)
        order = self._note(Kind.REPAIR, "heal", broker, neighbour)
        self._noticing.repaired(self._requests.repaired(self._network.env.now, order, broker, neighbour).target)
