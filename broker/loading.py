"""Before time 0: how subscriptions spread that are there from the start, untraced and in no time.

The outcome is that of hop-by-hop arrival, each subscription spreading completely before the next. What is sent over a
link depends only on what its broker hears, and in which order, so the work is done link by link; then one link's index
stays in the CPU cache. The exception is merging: names of mergers are given in the order in which they are made in the
whole network, and where entries are alike their names decide, so each subscription spreads before the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, count
from operator import itemgetter

from broker.around import PartAround
from broker.node import Broker
from broker.trace.schema import CLIENT
from routing.ledger import LedgerMessage
from routing.overlay.trees import Tree

Heard = Sequence[list[tuple[int, LedgerMessage]]]  # of each broker: what its clients ask for, and the operation


def link_by_link(brokers: Sequence[Broker], tree: Tree, heard: Heard, at_once: bool) -> Iterator[int]:
    """Towards the root of a tree, then away from it; the operation of each message that is sent."""
    inbox = [{CLIENT: said} for said in heard]
    upwards = sorted(tree.parent.items(), key=lambda link: -tree.level[link[0]])
    for here, there in [*upwards, *((parent, child) for child, parent in reversed(upwards))]:
        part, other = brokers[here].parts[tree.name], brokers[there].parts[tree.name]
        if there not in part.ledgers:
            continue
        sources = (said for source, said in inbox[here].items() if source != there)
        in_order = sorted(chain.from_iterable(sources), key=itemgetter(0))
        inbox[there][here] = part.ledgers[there].load(in_order, at_once)
        for operation, message in inbox[there][here]:
            yield operation
            other.takes_in(here, *message)


def one_by_one(brokers: Sequence[Broker], heard: Heard) -> Iterator[int]:
    """One subscription after the other, hop by hop; the operation of each message that is sent."""
    asked = [(operation, broker, message) for broker, said in enumerate(heard) for operation, message in said]
    for operation, broker, message in sorted(asked, key=itemgetter(0)):
        for _ in _spread(list(brokers[broker].parts.values()), message):
            yield operation


def _spread(parts: Sequence[PartAround], message: LedgerMessage) -> Iterator[LedgerMessage]:
    """The messages that a request of a client leads to, in the order in which they are sent."""
    order = count()
    calendar: list[
        tuple[float, int, PartAround, int, LedgerMessage]
    ] = []  # arrival, order of sending, where, from whom

    def pass_on(part: PartAround, source: int, now: float, told: LedgerMessage) -> Iterator[LedgerMessage]:
        for neighbour, ledger in part.ledgers.items():
            if neighbour != source:
                for answer in ledger.tell(*told):
                    arrival = now + part.broker.links[neighbour].latency
                    heappush(calendar, (arrival, next(order), part.at(neighbour), part.broker.number, answer))
                    yield answer

    for part in parts:
        yield from pass_on(part, CLIENT, 0.0, message)
    while calendar:
        now, _, part, source, told = heappop(calendar)
        if part.takes_in(source, *told):
            yield from pass_on(part, source, now, told)
