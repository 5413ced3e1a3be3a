"""Who does what when: home brokers, and a time-ordered list of subscribe, unsubscribe and publish.

`static`: all subscriptions arrive (a Poisson process), a share of them leaves again, the network settles,
then events are published. No delivery is in doubt, so runs can be compared.
`growing`: subscriptions arrive while events are published over the same period; some deliveries are in doubt because
their subscription is still on its way. `churn`: the same, but subscriptions live for exponential times.
`bursty`: churn, in bursts.
`storm`: as static, but a share of the subscriptions comes all at once while events are published.
`preloaded`: as static, but a share of the subscriptions exists before time 0 and has spread through the network.

Where the data says when subscriptions come and leave, none of these is used: all times are those of the data. If the
data has no times for events, they follow at `publish_rate` once the network has settled. `publishing` (publishing.py)
says how events follow each other; unless it is given, recorded times are kept and others are Poisson.

Columns are drawn whole, in row order, from one stream per concern. The timeline is sorted by time; equal
times keep the order that the data gives them, else subscribe, unsubscribe, publish, then row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, Key, unknown_name
from routing.options import accepted, number, reject_unknown, whole
from routing.overlay.latency import globe_distances
from sim.random_streams import Stream, streams
from sim.workloads.contract import Floats, Workload
from sim.workloads.options import NotNegative, Positive, Range, Share, checked
from sim.workloads.publishing import BURSTY, PUBLISHING, SCALED, bursty, poisson, squeeze
from sim.workloads.uniform import uniform
from sim.workloads.zipf import rank
from sim.workloads.zipf_law import zipf_probabilities

SUBSCRIBE, UNSUBSCRIBE, PUBLISH, RERANK = 0, 1, 2, 3
BEFORE = -np.inf  # arrival time of a subscription that exists from the start
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Timeline:
    """What clients do, in order: at `time` ms, at `broker`, action `kind` with subscription or event `index`.

    RERANK: from now on a subscription ranks as row `index` of the workload says, a later row with the same id.
    """

    time: Floats
    kind: NDArray[np.int8]
    index: Integers
    broker: Integers
    preloaded: Integers = field(default_factory=lambda: np.empty(0, np.int64))  # brokers of the first rows

    def __len__(self) -> int:
        return len(self.time)

    def homes(self, count: int) -> Integers:
        """The broker of each of `count` subscriptions, −1 for one that never comes."""
        homes = np.full(count, -1, np.int64)
        homes[: len(self.preloaded)] = self.preloaded
        coming = self.kind == SUBSCRIBE
        homes[self.index[coming]] = self.broker[coming]
        return homes

    def sample_times(self, count: int) -> list[float]:
        """So many even intervals up to the last action; rounding puts none beyond it, where a run may have ended."""
        if not len(self):
            return []
        last = float(self.time[-1])
        return [min(last * (number + 1) / count, last) for number in range(count)]

    def check(self) -> None:
        """Raise AssertionError unless times are in order and a subscription comes once and leaves later, if at all."""
        assert (np.diff(self.time) >= 0).all(), "in order of time"
        assert np.isfinite(self.time).all(), "at finite times"
        came = {int(i): place for place, i in enumerate(self.index) if self.kind[place] == SUBSCRIBE}
        assert len(came) == (self.kind == SUBSCRIBE).sum(), "every subscription comes once"
        assert all(i >= len(self.preloaded) for i in came), "a preloaded subscription does not come"
        left = np.flatnonzero(self.kind == UNSUBSCRIBE)
        assert len(set(self.index[left].tolist())) == len(left), "every subscription leaves at most once"
        for place in left:
            if self.index[place] < len(self.preloaded):
                assert self.preloaded[self.index[place]] == self.broker[place], "it leaves where it is"
                continue
            assert came[int(self.index[place])] < place, "it leaves after it came"
            assert self.broker[came[int(self.index[place])]] == self.broker[place], "it leaves where it came"


SubscribeRate = Annotated[Positive, Key("subscriptions that come in the whole network", "per ms")]
# When subscriptions come, when they leave (inf: never), when events are published.
Times = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, kw_only=True)
class Settling:
    """Subscriptions come, the network comes to rest, events are published."""

    subscribe_rate: SubscribeRate = 1.0
    publish_rate: Annotated[Positive, Key("events that are published in the whole network", "per ms")] = 1.0
    publishing: Annotated[
        Annotated[str, PUBLISHING] | None, Key("how events follow each other; absent: as recorded, else poisson")
    ] = None
    burst_factor: Annotated[float, Range(1), Key("how many times faster than on average a burst publishes")] = 5.0
    burst_length: Annotated[Positive, Key("of a burst, the mean", "ms")] = 10.0
    settle: Annotated[NotNegative, Key("time to come to rest before events are published", "ms")] = 1000.0

    def times(self, stream: Stream, workload: Workload, unsubscribe: float = 0.0) -> Times:
        count = len(workload.lo)
        came = poisson(stream("arrivals.subscribe"), count, self.subscribe_rate)
        ready = _last(came) + self.settle
        # The lower the number, the earlier it leaves: a larger share adds leavers and keeps the others.
        luck = stream("arrivals.leavers").random(count)
        leavers = np.flatnonzero(luck < unsubscribe)
        leavers = leavers[np.argsort(luck[leavers], kind="stable")]
        left = np.full(count, np.inf)
        if len(leavers):
            left[leavers] = ready + poisson(stream("arrivals.unsubscribe"), len(leavers), self.subscribe_rate)
            ready = _last(left[leavers]) + self.settle
        with np.errstate(over="ignore"):  # a run that ends at infinity is refused
            return came, left, ready + self.published(stream, workload)

    def published(self, stream: Stream, workload: Workload) -> Floats:
        """When events are published, from 0 on."""
        count, times = len(workload.events), workload.times
        if self.publishing is None and times is not None:
            return times
        if self.publishing == SCALED and count:
            factor = squeeze(times, self.publish_rate)
            assert times is not None
            return times * factor
        if self.publishing == BURSTY:
            return bursty(stream, count, self.publish_rate, self.burst_factor, self.burst_length)
        return poisson(stream("arrivals.publish"), count, self.publish_rate)


@dataclass(frozen=True, kw_only=True)
class Static(Settling):
    """Some subscriptions leave again before events are published."""

    unsubscribe: Annotated[Share, Key("share of the subscriptions that leaves before events are published")] = 0.0

    def __call__(self, stream: Stream, workload: Workload) -> Times:
        return self.times(stream, workload, self.unsubscribe)


@dataclass(frozen=True, kw_only=True)
class Preloaded(Static):
    """Static, but the first `share` of the subscriptions exists before time 0."""

    share: Annotated[Share, Key("share of the subscriptions that is there before time 0")] = 1.0

    def __call__(self, stream: Stream, workload: Workload) -> Times:
        there = round(self.share * len(workload.lo))
        came, left, published = super().__call__(stream, workload)
        waited = float(came[there - 1]) if there else 0.0  # the time that they would have taken to come
        came, left, published = came - waited, left - waited, published - waited
        came[:there] = BEFORE
        return came, left, published


@dataclass(frozen=True, kw_only=True)
class Storm(Settling):
    """Static, but the last `share` of the subscriptions comes within `width` ms, half way through the events."""

    share: Annotated[Share, Key("share of the subscriptions that comes all at once")] = 0.5
    width: Annotated[NotNegative, Key("time within which they come", "ms")] = 1.0

    def __call__(self, stream: Stream, workload: Workload) -> Times:
        came, left, published = self.times(stream, workload)
        late = len(came) - round(self.share * len(came))
        middle = (published[0] + published[-1]) / 2 if len(published) else _last(came) + self.settle
        came[late:] = middle + self.width * stream("arrivals.storm").random(len(came) - late)
        return came, left, published


@dataclass(frozen=True, kw_only=True)
class Growing:
    """Events over the whole period in which subscriptions arrive; nobody leaves."""

    subscribe_rate: SubscribeRate = 1.0

    def came(self, stream: Stream, count: int) -> Floats:
        return poisson(stream("arrivals.subscribe"), count, self.subscribe_rate)

    def __call__(self, stream: Stream, workload: Workload) -> Times:
        count, events = len(workload.lo), len(workload.events)
        came, stays = self.came(stream, count), np.full(count, np.inf)
        if workload.times is not None:
            return came, stays, workload.times
        end = _last(came) if count else events / self.subscribe_rate
        return came, stays, np.sort(stream("arrivals.publish").random(events)) * end


@dataclass(frozen=True, kw_only=True)
class Churn(Growing):
    """As growing, but subscriptions leave; one that would leave after the last arrival stays."""

    lifetime: Annotated[Positive, Key("mean time that a subscription stays", "ms")] = 500.0

    def __call__(self, stream: Stream, workload: Workload) -> Times:
        came, _, published = super().__call__(stream, workload)
        left = came + self.lifetime * stream("arrivals.lifetimes").standard_exponential(len(came))
        left[left > _last(came)] = np.inf
        return came, left, published


@dataclass(frozen=True, kw_only=True)
class Bursty(Churn):
    """Like churn at the same mean rate, but in bursts of geometric size, mean `burst`, within `spread` ms."""

    burst: Annotated[float, Range(1), Key("mean number of subscriptions that come together")] = 20.0
    spread: Annotated[NotNegative, Key("time within which a burst comes", "ms")] = 1.0

    def came(self, stream: Stream, count: int) -> Floats:
        first_of_burst = stream("arrivals.bursts").random(count) < 1.0 / self.burst
        starts = poisson(stream("arrivals.subscribe"), count, self.subscribe_rate / self.burst)
        came = starts[np.cumsum(first_of_burst)[:count] - first_of_burst[:1].sum()] if count else starts
        return came + self.spread * stream("arrivals.spread").random(count)


ARRIVALS: dict[str, type[Static | Storm | Growing]] = {
    "static": Static,
    "growing": Growing,
    "churn": Churn,
    "bursty": Bursty,
    "storm": Storm,
    "preloaded": Preloaded,
}
CLIENTS = ("home_skew", "publisher_skew", "attach")  # options of every process: who is at which broker
RANDOM, NEAREST, INTEREST = ATTACH = ("random", "nearest", "interest")
FIRST = 200  # ranks of interests are those among this many
PARTS = 64  # distances are computed in this many parts: a million clients at once would take gigabytes


def arrival_options(kind: str) -> tuple[str, ...]:
    """The options that `schedule` takes for this kind."""
    if kind not in ARRIVALS:
        raise unknown_name("arrival process", kind, ARRIVALS)
    return (*accepted(ARRIVALS[kind]), *CLIENTS)


def schedule(
    kind: str,
    stream: Stream,
    workload: Workload,
    brokers: int,
    *,
    home_skew: Annotated[float, Key("Zipf parameter of how many subscribers a broker has; 0: all alike")] = 0.0,
    publisher_skew: Annotated[float, Key("the same for publishers")] = 0.0,
    attach: Annotated[
        str, Key("where clients are: random, nearest on the map, or interest (similar ones near)")
    ] = RANDOM,
    map: Floats | None = None,
    spots: Floats | None = None,
    reranks: bool = False,
    **options: Any,
) -> Timeline:
    """The timeline of a run. Skews are Zipf parameters over brokers, 0 for uniform; brokers named by the data win.

    `attach = "nearest"` puts clients that have a place at the nearest broker of the `map` (latitude and longitude per
    broker), the others at a random one. `attach = "interest"` makes interests local: clients that ask for or publish
    similar values of the first two attributes are at brokers near each other in the overlay's picture (`spots`).
    `reranks`: a row that changes only how a subscription ranks is one request (RERANK), not a join and a leave.
    """
    reject_unknown(f'arrival process "{kind}"', options, arrival_options(kind))
    process = ARRIVALS[kind](**checked("arrivals", ARRIVALS[kind], options))
    brokers = whole("brokers", brokers, 1)
    count, events = len(workload.lo), len(workload.events)
    homes = _places(stream, "homes", count, brokers, number("arrivals.home_skew", home_skew, 0.0))
    skew = number("arrivals.publisher_skew", publisher_skew, 0.0)
    publishers = _places(stream, "publishers", events, brokers, skew)
    if attach not in ATTACH:
        raise unknown_name("arrivals.attach", attach, ATTACH)
    if attach == NEAREST and count + events:
        homes, publishers = _nearest(workload, map, homes, publishers)
    if attach == INTEREST and count:
        homes, publishers = _by_interest(workload, np.zeros((brokers, 2)) if spots is None else spots)
    if workload.homes is not None:
        homes = _given("subscription", workload.homes, brokers)
    if workload.publishers is not None:
        publishers = _given("event", workload.publishers, brokers)
    came, left, published = process(stream, workload) if workload.came is None else _recorded(process, stream, workload)
    there = int((came == BEFORE).sum())  # always the first rows
    coming, first = np.full(count, SUBSCRIBE, np.int8), np.arange(count)
    if reranks and workload.reranks is not None:
        changing = workload.reranks >= 0
        coming[changing], first = RERANK, workload.first_rows
        left = left.copy()
        left[workload.reranks[changing]] = np.inf
        homes = homes[first]
    leaving = np.flatnonzero(np.isfinite(left))
    time = np.concatenate([came[there:], left[leaving], published])
    others = np.repeat(np.array([UNSUBSCRIBE, PUBLISH], np.int8), [len(leaving), events])
    kinds = np.concatenate([coming[there:], others])
    index = np.concatenate([np.arange(there, count), first[leaving], np.arange(events)]).astype(np.int64)
    broker = np.concatenate([homes[there:], homes[leaving], publishers]).astype(np.int64)
    orders = [_order(workload.came_order, count)[there:], _order(workload.left_order, count)[leaving]]
    order = np.lexsort((np.concatenate([*orders, _order(workload.published_order, events)]), time))
    return Timeline(time[order], kinds[order], index[order], broker[order], homes[:there].astype(np.int64))


def validate(kind: str, options: Mapping[str, Any]) -> None:
    """Raise what `schedule` would raise for these options."""
    empty = uniform()(streams(0), attributes=1, subscriptions=0, events=0)
    schedule(kind, streams(0), empty, 1, **options)


def _recorded(process: Any, stream: Stream, workload: Workload) -> Times:
    """The times of the data; where it has none for events, they follow when the network has settled."""
    came, left = workload.came, workload.left
    assert came is not None
    assert left is not None
    settling = process if isinstance(process, Settling) else Settling()
    published = settling.published(stream, workload)
    if workload.times is not None and settling.publishing is None:
        return came, left, published
    if settling.publishing == SCALED and len(published):  # the whole recording is played faster or slower
        factor = squeeze(workload.times, settling.publish_rate)
        return came * factor, left * factor, published
    ready = max(_last(came), _last(left[np.isfinite(left)])) + settling.settle
    return came, left, ready + published


def _order(given: Floats | None, count: int) -> Floats:
    """Where the data does not say what comes first, the order of the columns does."""
    return np.zeros(count) if given is None else given


def _last(times: Floats) -> float:
    return float(times.max()) if len(times) else 0.0


def _places(stream: Stream, who: str, count: int, brokers: int, skew: float) -> Integers:
    """Brokers drawn by a Zipf law; which broker is the most popular is random, not broker 0."""
    popular = stream(f"arrivals.{who}.order").permutation(brokers)
    law = np.cumsum(zipf_probabilities(brokers, skew))
    return popular[rank(law, stream(f"arrivals.{who}").random(count))]


def _nearest(
    workload: Workload, map: Floats | None, homes: Integers, publishers: Integers
) -> tuple[Integers, Integers]:
    """The brokers nearest to the places of subscriptions and events, on the globe."""
    if map is None:
        raise CoverlayError('arrivals.attach = "nearest" needs brokers on a map: overlay.map, or a file with places')
    if workload.schema.place is None:
        raise CoverlayError(
            'arrivals.attach = "nearest" needs clients with a place: attributes of the kinds latitude and longitude'
        )
    found = []
    wanted = np.full((len(homes), 2), np.nan) if workload.near is None else workload.near[:, :2]
    for places, otherwise in ((wanted, homes), (workload.events[:, workload.schema.place], publishers)):
        known = ~np.isnan(places).any(axis=1)
        chosen = otherwise.copy()
        parts = np.array_split(places[known], PARTS)
        chosen[known] = np.concatenate([globe_distances(part, map).argmin(axis=1) for part in parts])
        found.append(chosen)
    return found[0], found[1]


def _by_interest(workload: Workload, spots: Floats) -> tuple[Integers, Integers]:
    """For each client, the broker whose place among the brokers is nearest to its interest's place among interests.

    Both places are ranks from 0 to 1 along each of two axes, so that every broker has about as many clients, however
    interests cluster. Ranks are those among the FIRST interests: more subscriptions move no earlier client. An
    unbounded or missing value counts as the middle of its domain.
    """
    low, high = workload.schema.domain.T
    centres = (np.clip(workload.lo, low, high) + np.clip(workload.hi, low, high))[:, :2] / 2.0
    points = np.where(np.isnan(workload.events), (low + high) / 2.0, workload.events)[:, :2]
    axes = range(centres.shape[1])
    at = np.stack([_ranks(spots[:, axis], spots[:, axis]) for axis in axes], axis=1)

    def nearest(wanted: Floats) -> Integers:
        ranks = np.stack([_ranks(centres[:FIRST, axis], wanted[:, axis]) for axis in axes], axis=1)
        rows = (((part[:, None, :] - at) ** 2).sum(axis=2).argmin(axis=1) for part in np.array_split(ranks, PARTS))
        return np.concatenate(list(rows))

    return nearest(centres), nearest(points)


def _ranks(among: Floats, values: Floats) -> Floats:
    """The share of `among` that is smaller than each value; equal ones count half."""
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    shares: Floats = below / (2.0 * len(among))
    return shares


def _given(what: str, places: Integers, brokers: int) -> Integers:
    beyond = np.flatnonzero(places >= brokers)
    if len(beyond):
        row = int(beyond[0])
        raise CoverlayError(f"{what} {row} is at broker {places[row]}, but the overlay has brokers 0 to {brokers - 1}")
    return places
