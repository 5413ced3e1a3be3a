"""How brokers agree again after a link was down or a broker lost its memory: summaries, not everything.

Per direction of a link and channel (advertisements, subscriptions), the sender A has a ledger of what the receiver B
should know. When the link is usable again:

    A → B  summary   a digest of the ledger's sent ids and filters, in about 4√n buckets by hash of the id
    B → A  differs   what B has in the buckets whose digests differ, as ids and digests of filters (not sent if none do)
    A → B  subscribe for what B lacks; unsubscribe and subscribe for an id whose filter changed meanwhile; then
           unsubscribe for what B should not have: make before break
    A → B  done

Ordinary messages may cross these; receiving something known or removing something unknown changes nothing, and
links are FIFO, so B ends with A's ledger.

A broker that lost its memory must not tell B that nothing is left just because it has not heard from the others
yet. So it sends a summary to B only after everybody else has told it what they want: advertisements first, then
subscriptions, which depend on them. In a tree these waits form no cycle.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.around import PartAround
from broker.messages import Sync
from broker.trace.sampling import mixed
from broker.trace.schema import CLIENT
from routing.filter import Filter
from routing.ledger import Kind, LinkLedger
from routing.overlay.trees import SHARED

ADVERTS, SUBSCRIPTIONS = "advertisements", "subscriptions"
Words = tuple[int, ...]


def digests(filters: Mapping[int, Filter], buckets: int) -> Words:
    """Per bucket, a number that is equal for different sets of ids and filters with a chance of only about 2⁻⁶³."""
    sums = [0] * buckets
    for identity, filter in filters.items():
        value = mixed(identity)
        sums[value % buckets] ^= mixed(value ^ filter.digest)
    return tuple(total >> 1 for total in sums)  # fits a signed word


class Recovery:
    """One broker's side of the exchange, in one tree."""

    def __init__(self, part: PartAround) -> None:
        self.part = part
        self._untold: dict[tuple[str, int], int] = {}  # (channel, neighbour) to summarise → operation
        self._waiting: set[tuple[str, int]] = set()  # (channel, neighbour) that we have not heard from yet
        self._started = True  # False after a loss of memory, until our own clients are back

    @property
    def complete(self) -> bool:
        """Every neighbour that we waited for has told us what it wants."""
        return self._started and not self._waiting

    def begin(self) -> None:
        """The broker's memory is empty or incomplete: nobody is told anything before `start` has been processed."""
        self._started = False
        self._waiting.clear()
        self._untold.clear()

    def link_up(self, neighbour: int, operation: int, amnesia: bool) -> None:
        """A link is usable again. `amnesia`: we lack memory, so we wait for what the neighbour knows."""
        here, there = self.part, self.part.at(neighbour)
        advertised = here.broker.network.settings.advertisements != "none"
        for channel in (ADVERTS, SUBSCRIPTIONS) if advertised else (SUBSCRIPTIONS,):
            if neighbour in _ledgers(here, channel):
                self._untold[channel, neighbour] = operation
            if amnesia and here.broker.number in _ledgers(there, channel):
                self._waiting.add((channel, neighbour))

    def link_down(self, neighbour: int) -> None:
        """Stop waiting for a neighbour that can send nothing for now."""
        for channel in (ADVERTS, SUBSCRIPTIONS):
            self._waiting.discard((channel, neighbour))
            self._untold.pop((channel, neighbour), None)

    def tell(self) -> None:
        """Send the summaries that can be sent now."""
        if not self._started:
            return
        for channel, neighbour in list(self._untold):
            awaited = self._waiting - {(channel, neighbour)}
            if not any(channel == SUBSCRIPTIONS or c == ADVERTS for c, _ in awaited):
                operation = self._untold.pop((channel, neighbour))
                sent = _ledgers(self.part, channel)[neighbour].sent
                buckets = 1 << (len(sent).bit_length() // 2 + 2)  # about 4√n
                self._send("summary", channel, neighbour, operation, digests(sent, buckets))

    def start(self) -> None:
        """Our own clients are back."""
        self._started = True
        self.tell()

    def receive(self, message: Sync) -> None:
        if message.kind == "summary":
            self._compare(message)
        elif message.kind == "differs":
            self._mend(message)
        else:
            self._waiting.discard((message.channel, message.source))
        self.tell()

    def _compare(self, message: Sync) -> None:
        own = (self.part.adverts if message.channel == ADVERTS else self.part.tables)[message.source].filters
        buckets = len(message.payload)
        ours = digests(own, buckets)
        differing = tuple(b for b in range(buckets) if ours[b] != message.payload[b])
        if not differing:
            self._waiting.discard((message.channel, message.source))
            return
        asked = set(differing)
        listed = [word for i in sorted(own) if mixed(i) % buckets in asked for word in (i, own[i].digest)]
        self._send("differs", message.channel, message.source, message.operation, (buckets, *listed), differing)

    def _mend(self, message: Sync) -> None:
        buckets, words = message.payload[0], message.payload[1:]
        listed = dict(zip(words[::2], words[1::2], strict=True))
        ledger = _ledgers(self.part, message.channel)[message.source]
        asked = set(message.buckets)
        should = {i: f for i, f in ledger.sent.items() if mixed(i) % buckets in asked}
        of_adverts, nothing = message.channel == ADVERTS, self.part.broker.nothing
        joins = Kind.ADVERTISE if of_adverts else Kind.SUBSCRIBE
        leaves = Kind.UNADVERTISE if of_adverts else Kind.UNSUBSCRIBE
        answers = [(joins, i, f) for i, f in should.items() if i not in listed]
        changed = ((i, f) for i, f in should.items() if i in listed and listed[i] != f.digest)
        answers += [step for i, f in changed for step in ((leaves, i, nothing), (joins, i, f))]
        answers += [(leaves, i, nothing) for i in sorted(listed.keys() - should.keys())]
        self.part.send_control(message.source, answers, message.operation, 0)
        self._send("done", message.channel, message.source, message.operation, ())

    def _send(self, kind: str, channel: str, to: int, operation: int, payload: Words, buckets: Words = ()) -> None:
        broker, tree = self.part.broker, self.part.tree.name
        now = broker.network.env.now
        broker.send(to, Sync(kind, channel, payload, buckets, operation, broker.number, now, 0, tree))

    def check(self) -> None:
        assert not self._waiting, "still waiting for a neighbour although nothing is under way"
        assert not self._untold, "a neighbour was never told"
        assert self._started


def _ledgers(part: PartAround, channel: str) -> dict[int, LinkLedger]:
    return part.advert_ledgers if channel == ADVERTS else part.ledgers


def start_marker(operation: int, now: float) -> Sync:
    """Queued behind the clients' own requests after a restart; it concerns all trees."""
    return Sync("start", SUBSCRIPTIONS, (), (), operation, CLIENT, now, 0, SHARED)
