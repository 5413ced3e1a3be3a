"""Subscriptions and events with a place: every parameter of Table 4 of Hu, Cheng, Wu & Jin (SSTD 2015).

Expressions are BEGen-like, but without correlation, which relaxed matching does not need: attributes are chosen
uniformly or by a Zipf law, a predicate is a range of about ten of the `cardinality` whole values, so the more values,
the fewer predicates hold (Figure 7). Ranges begin at any value, all as likely, and end at the last one at the latest:
with C values and at most W of them, w are allowed with probability ((C − w + 1) + (W − w)) / (W·C), 9.4 on average for
W = 19 and C = 100. The paper takes locations from unpublished geotagged tweets in the USA; we draw them from a mixture
of 60 Zipf-sized cities over latitudes 25 to 49 and longitudes −124 to −67 (or another area), with a tenth anywhere.
Weights are inverse frequencies as in both papers, scaled to sum to 1 per subscription (Definition 1). α is N(mean,
0.05), cut to [0, 1], or uniform.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, Key
from sim.random_streams import Stream, streams
from sim.workloads.begen import (
    Cardinality,
    EventSize,
    Population,
    SubscriptionSize,
    catalogue_of,
    distinct,
    sizes_around,
    some_of,
)
from sim.workloads.options import Count, Share
from sim.workloads.zipf_law import zipf_probabilities
from topk.places import PlacedCatalogue, PlacedEvent, located
from topk.places.distance import DEGREES
from topk.sparse import Event, SparseCatalogue

Floats = NDArray[np.float64]

_CITIES = 60
_SCATTERED = 0.1  # share of places outside cities
_CITY_SPREAD = 0.3  # degrees
USA = ((25.0, 49.0), (-124.0, -67.0))
_ALPHA_SPREAD = 0.05


@dataclass(frozen=True)
class Located(Population):
    """One column of Table 4; the defaults are its bold values, at a tenth of the subscriptions."""

    subscriptions: int = 200_000
    _: KW_ONLY
    cardinality: Cardinality = 100
    event_size: EventSize = 10
    subscription_size: SubscriptionSize = 4
    widest_range: Annotated[
        Count, Key("a predicate allows 1 to this many whole values, all as likely, less those beyond the last value")
    ] = 19
    alpha: Annotated[Share | None, Key("mean weight of the place against the text; absent: uniform in 0..1")] = None
    latitude: Annotated[tuple[float, float], Key("[south, north] of the area with clients", "degrees")] = USA[0]
    longitude: Annotated[tuple[float, float], Key("[west, east] of it", "degrees")] = USA[1]

    @property
    def widest_subscription(self) -> int:
        return min(self.subscription_size + self.subscription_size // 2, self.dimensions)

    @property
    def widest_event(self) -> int:
        return min(self.event_size + 2, self.dimensions)


@dataclass(frozen=True)
class LocatedWorkload:
    catalogue: PlacedCatalogue
    events: list[PlacedEvent]


def located_workload(p: Located, stream: Stream | None = None) -> LocatedWorkload:
    """Equal parameters give equal arrays. A `stream` replaces the seed."""
    widest = max(p.subscription_size, p.event_size)
    if widest > p.dimensions:
        raise CoverlayError(f"dimensions must be at least {widest} for these sizes, not {p.dimensions}")
    stream = stream or streams(p.seed)
    law, cities = p.law, _cities(p, stream)
    places = _places(p, cities, stream("located.places"), p.subscriptions)
    expressions = _expressions(p, law, stream)
    random = stream("located.alpha")
    if p.alpha is None:
        alpha = random.random(p.subscriptions)
    else:
        alpha = np.clip(random.normal(p.alpha, _ALPHA_SPREAD, p.subscriptions), 0.0, 1.0)
    catalogue = located(expressions, places, alpha, metric=DEGREES)  # Eq. 4 is Euclidean
    return LocatedWorkload(catalogue, _events(p, law, cities, stream))


def located_events(p: Located) -> list[PlacedEvent]:
    """The events of `located_workload` alone."""
    stream = streams(p.seed)
    return _events(p, p.law, _cities(p, stream), stream)


def _cities(p: Located, stream: Stream) -> Floats:
    low, high = np.array((p.latitude, p.longitude)).T
    return stream("located.cities").uniform(low, high, (_CITIES, 2))


def _places(p: Located, cities: Floats, random: np.random.Generator, count: int) -> Floats:
    low, high = np.array((p.latitude, p.longitude)).T
    chosen = random.choice(_CITIES, count, p=zipf_probabilities(_CITIES, 1.0))
    near = cities[chosen] + random.normal(0.0, _CITY_SPREAD, (count, 2))
    anywhere = random.uniform(low, high, (count, 2))
    return np.clip(np.where(random.random((count, 1)) < _SCATTERED, anywhere, near), low, high)


def _expressions(p: Located, law: Floats, stream: Stream) -> SparseCatalogue:
    n = p.subscriptions
    random = stream("located.expressions")
    widest = p.widest_subscription
    sizes = sizes_around(stream("located.sizes"), p.subscription_size, widest, n)
    named = distinct(random, law, n, widest)
    used = some_of(random, named.shape, sizes)
    width = random.integers(1, p.widest_range + 1, named.shape)
    lo = random.integers(0, p.cardinality, named.shape)
    hi = np.minimum(lo + width - 1, p.cardinality - 1)
    made = catalogue_of(stream("located.weights"), p.dimensions, sizes, named[used], lo[used], hi[used])
    sums = np.add.reduceat(made.weights, made.offsets[:-1]) if n else np.empty(0)
    return replace(made, weights=made.weights / np.repeat(sums, sizes))


def _events(p: Located, law: Floats, cities: Floats, stream: Stream) -> list[PlacedEvent]:
    random = stream("located.events")
    widest = p.widest_event
    sizes = sizes_around(random, p.event_size, widest, p.events)
    named = distinct(random, law, p.events, widest)
    values = random.integers(0, p.cardinality, (p.events, widest)).astype(np.float64)
    places = _places(p, cities, stream("located.event-places"), p.events)
    made = []
    for i in range(p.events):
        chosen = np.sort(random.permutation(widest)[: sizes[i]])
        here = values[i, chosen]
        event = Event(named[i, chosen].astype(np.int32), here, here, np.ones(len(chosen)))
        made.append(PlacedEvent(event, (float(places[i, 0]), float(places[i, 1]))))
    return made
