"""The messages that travel over links.

There is one object per hop; copies of an event that leave a broker at the same time share one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.filter import Filter
from routing.ledger import Kind

Key = tuple[float, int]  # (−score, subscription): the smaller one ranks higher
Winner = tuple[int, Key]  # (rank in the network, 0 while unknown; key)
HEADER_BYTES = 32  # ids, kind, sequence number; only matters where links have a bandwidth or bytes a price
RESULT_BYTES = 16  # a subscription and its score


@dataclass(slots=True)
class Control:
    """What a client asked for or announced, see Kind; `subscription` may name an advertisement."""

    kind: Kind
    subscription: int
    filter: Filter
    operation: int  # the client request that caused it
    source: int
    sent: float
    sequence: int
    hop: int
    tree: int  # the routing tree it travels on

    @property
    def size(self) -> int:
        if self.kind is Kind.RERANK:
            return HEADER_BYTES + 8 + self.filter.weights.nbytes
        return HEADER_BYTES + (self.filter.box.nbytes if self.kind in (Kind.SUBSCRIBE, Kind.ADVERTISE) else 0)


@dataclass(slots=True)
class Sync:
    """A step of the exchange by which two brokers agree again after a link was down (see recovery.py)."""

    kind: str  # start | summary | differs | done
    channel: str  # subscriptions | advertisements
    payload: tuple[int, ...]  # digests by bucket, or the number of buckets followed by pairs of id and filter's digest
    buckets: tuple[int, ...]  # the buckets that differ
    operation: int
    source: int
    sent: float
    sequence: int
    tree: int

    @property
    def size(self) -> int:
        return HEADER_BYTES + 8 * (len(self.payload) + len(self.buckets))


@dataclass(slots=True)
class Publication:
    """An event on its way."""

    event: int
    values: NDArray[np.float64]
    published: float
    source: int
    sent: float
    hop: int
    parent: int  # trace row of the hop before, −1 at the publisher
    tree: int
    weights: NDArray[np.float64] | None = None  # how much each attribute counts, where the event says so
    # Where the k best of the whole network are served, see ranked_visit.py.
    asks: bool = True  # the receiver must answer with the best behind it
    limit: Key | None = None  # the k-th best known so far
    winners: tuple[Winner, ...] = ()  # at the receiver or behind it

    @property
    def size(self) -> int:
        return HEADER_BYTES + self.values.nbytes + RESULT_BYTES * ((self.limit is not None) + len(self.winners))


@dataclass(slots=True)
class Reply:
    """About an event that the receiver already has: the best behind the sender, or winners behind the receiver."""

    kind: str  # answer | award
    event: int
    found: tuple[Winner, ...]
    source: int
    sent: float
    tree: int

    @property
    def size(self) -> int:
        return HEADER_BYTES + RESULT_BYTES * len(self.found)


Message = Control | Sync | Publication | Reply
ABOUT_EVENTS = (Publication, Reply)
