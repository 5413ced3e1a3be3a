"""Crashes and cuts: what goes down, what is lost with it, and when the network is whole again.

A link is usable while it is not cut and both its brokers are up. When it becomes unusable, what is in flight on
it is lost; when it becomes usable again, both ends bring each other up to date (recovery.py). A broker that crashes
loses its queue, what the message in service would have sent, and its memory unless it keeps that on disk. Its clients
notice, and repeat their requests when it is back.

From the first fault until nothing is down and every exchange has ended, losses are blamed on the faults. The end of
such a period is recorded as `converged`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.around import NetworkAround
from broker.messages import Control, Message, Sync
from broker.node import Broker
from broker.recovery import start_marker
from broker.trace.schema import CLIENT, CONVERGED, CRASH, CRASHED, CUT, HEAL, LINK_DOWN, NOBODY, RESTART
from coverlay import CoverlayError
from routing.ledger import Kind


class FailingNetwork(NetworkAround, Protocol):
    """The network of the faults, which reach into its brokers."""

    @property
    def brokers(self) -> Sequence[Broker]: ...


class Outages:
    """The faults of one network, at the present simulated time."""

    def __init__(self, network: FailingNetwork) -> None:
        self.network = network
        self.crashed: dict[int, bool] = {}  # broker → whether it keeps its memory
        self._half_recovered: set[int] = set()  # crashed again before every neighbour had told it what it wants
        self.cuts: set[tuple[int, int]] = set()
        self._repeat: dict[int, list[Control]] = {}  # requests that clients of a crashed broker will repeat
        self._unsettled = False  # something went wrong and the network has not converged since

    # ── faults ─────────────────────────────────────────────────────────────────────────────────────────

    def crash(self, broker: int, keep_state: bool) -> None:
        self.must_exist(broker)
        if broker in self.crashed:
            raise CoverlayError(f"broker {broker} cannot crash at {self.network.env.now:g} ms: it is down already")
        self._unsettled = True
        self.record(CRASH, broker, NOBODY)
        self.crashed[broker] = keep_state
        node = self.network.brokers[broker]
        if not all(part.recovery.complete for part in node.parts.values()):
            self._half_recovered.add(broker)
        open_events = list(node.visits.open) if node.visits is not None else []
        lost = node.crash()  # before the links go down: it must not serve what it waited for
        self._refresh_links_of(broker)
        node.server.dismiss()  # after that: it must not serve what they held for it
        for message in lost:
            self._lost_in_crash(broker, message)
        self._close(open_events)

    def restart(self, broker: int) -> None:
        self.must_exist(broker)
        if broker not in self.crashed:
            raise CoverlayError(f"broker {broker} cannot restart at {self.network.env.now:g} ms: it is not down")
        self._unsettled = True
        kept = self.crashed.pop(broker)
        network, node = self.network, self.network.brokers[broker]
        self.record(RESTART, broker, NOBODY)
        operation = network.new_operation("restart", NOBODY, broker)
        repeated = self._repeat.pop(broker, [])
        amnesia = not kept or broker in self._half_recovered
        self._half_recovered.discard(broker)
        network.operation_sends(operation)  # the start marker: until it is processed nothing counts as converged
        if not kept:
            node.forget()
        if amnesia:
            for part in node.parts.values():
                part.recovery.begin()
        self._refresh_links_of(broker, amnesia)
        if not kept:
            network.clients_return(broker, {m.subscription for m in repeated if m.kind is Kind.SUBSCRIBE})
        for message in repeated:
            network.wait(message.operation, 1)
            node.server.arrive(message)
        node.server.arrive(start_marker(operation, network.env.now))

    def cut(self, broker: int, neighbour: int) -> None:
        link = self.must_be_linked(broker, neighbour)
        if link in self.cuts:
            raise CoverlayError(f"link {link[0]}-{link[1]} cannot be cut at {self.network.env.now:g} ms: already cut")
        self._unsettled = True
        self.record(CUT, *link)
        self.cuts.add(link)
        self._close(self._refresh(*link))
        self._note_if_quiet()

    def heal(self, broker: int, neighbour: int) -> None:
        link = self.must_be_linked(broker, neighbour)
        if link not in self.cuts:
            raise CoverlayError(f"link {link[0]}-{link[1]} cannot heal at {self.network.env.now:g} ms: it is not cut")
        self._unsettled = True
        self.cuts.remove(link)
        self.record(HEAL, *link)
        self._refresh(*link)
        self._note_if_quiet()

    # ── consequences ───────────────────────────────────────────────────────────────────────────────────

    @property
    def down(self) -> set[tuple[int, int]]:
        """The brokers (with NOBODY) and links that are down."""
        return self.cuts | {(broker, NOBODY) for broker in self.crashed}

    def is_up(self, broker: int) -> bool:
        return broker not in self.crashed

    def repeat_later(self, broker: int, message: Control) -> None:
        """A client could not reach its broker; it tries again when the broker is back."""
        self._repeat.setdefault(broker, []).append(message)
        self.network.wait(message.operation, -1)

    def lost_on_link(self, broker: int, neighbour: int, message: Message) -> None:
        if isinstance(message, Control | Sync):
            self.network.operation_processed(message.operation)
        else:
            self.record(LINK_DOWN, broker, neighbour, message.event)
            self.network.event_lost(message)

    def note_progress(self) -> None:
        """The last message under way was processed: if trees avoid all that is down, the network has converged."""
        versions = self.network.versions
        if versions is None:
            whole = not self.crashed and self.cuts.isdisjoint(self.network.links)
        else:
            whole = versions.avoids(self.down)
        if self._unsettled and whole:
            self._unsettled = False
            self.record(CONVERGED, NOBODY, NOBODY)

    def _note_if_quiet(self) -> None:
        if not self.network.under_way:
            self.note_progress()

    def _lost_in_crash(self, broker: int, message: Message) -> None:
        if not isinstance(message, Control | Sync):
            self.record(CRASHED, broker, message.source, message.event)
            self.network.event_processed(message)
        elif isinstance(message, Control) and message.source == CLIENT:
            self.repeat_later(broker, message)
        else:
            self.network.operation_processed(message.operation)

    def _refresh_links_of(self, broker: int, amnesia: bool = False) -> None:
        over = []
        for neighbour in self.network.brokers[broker].links:
            over += self._refresh(broker, neighbour, amnesia)
        self._close(over)  # after all links: over one that is still up a broker may wait for an answer
        self._tell(broker)
        self._note_if_quiet()

    def _close(self, events: list[int]) -> None:
        for event in events:
            self.network.close_if_over(event)

    def _refresh(self, broker: int, neighbour: int, amnesia: bool = False) -> list[int]:
        """Bring both directions of a link to the state that cuts and crashes imply; events that may be over now."""
        network = self.network
        here, there = network.brokers[broker], network.brokers[neighbour]
        both = (here.links[neighbour], there.links[broker])
        link = (min(broker, neighbour), max(broker, neighbour))
        usable = link not in self.cuts and self.is_up(broker) and self.is_up(neighbour)
        if usable == both[0].up:
            return []
        shared = [name for name, tree in network.trees.items() if tree.graph.has_edge(broker, neighbour)]
        if not usable:
            for direction in both:
                direction.cut()
            for name in shared:
                here.parts[name].recovery.link_down(neighbour)
                there.parts[name].recovery.link_down(broker)
            without = [(end.visits, other) for end, other in ((here, neighbour), (there, broker)) if end.visits]
            over = [event for visits, other in without for event in visits.link_down(other)]
            self._tell(broker)  # summaries that waited for the lost neighbour can be sent
            self._tell(neighbour)
            return over
        for direction in both:
            direction.up = True
        if not shared:
            return []  # a spare link
        operation = network.new_operation("reconnect", NOBODY, broker)
        for name in shared:
            here.parts[name].recovery.link_up(neighbour, operation, amnesia)
            there.parts[name].recovery.link_up(broker, operation, False)
        self._tell(neighbour)
        if not amnesia:
            self._tell(broker)
            self._note_if_quiet()
        return []

    def _tell(self, broker: int) -> None:
        if self.is_up(broker):
            for part in self.network.brokers[broker].parts.values():
                part.recovery.tell()

    # ── checks and records ─────────────────────────────────────────────────────────────────────────────

    def record(self, kind: str, broker: int, neighbour: int, event: int = NOBODY) -> None:
        env = self.network.env
        env.acted = env.now
        self.network.recorder.rows["faults"].append((env.now, kind, broker, neighbour, event))

    def must_exist(self, broker: int) -> None:
        if not 0 <= broker < len(self.network.brokers):
            last = len(self.network.brokers) - 1
            raise CoverlayError(f"a fault names broker {broker}; there are brokers 0 to {last}")

    def must_be_linked(self, broker: int, neighbour: int) -> tuple[int, int]:
        self.must_exist(broker)
        self.must_exist(neighbour)
        if neighbour not in self.network.brokers[broker].links:
            raise CoverlayError(f"a fault names link {broker}-{neighbour}, which is not a link of the overlay")
        return min(broker, neighbour), max(broker, neighbour)
