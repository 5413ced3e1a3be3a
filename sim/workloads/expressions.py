"""The BEGen-like and the located generators as workloads of a broker experiment: kinds `begen` and `located`.

Expressions mention a handful of many attributes; brokers route on boxes, so here every row becomes a whole box with
infinite sides where it says nothing. Columns are dense, hence the limit; `coverlay bench topk` and the reproductions
use the sparse catalogues themselves. Options are the parameters of Begen and Located (begen.py, located.py), with
`attributes` for their dimensions. Weights are inverse frequencies over all rows, so another number of
subscriptions changes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from broker.language.schema import Schema, degrees, integer
from coverlay import CoverlayError, quoted
from routing.options import number, whole
from routing.overlay.map import span
from sim.random_streams import Stream
from sim.workloads.begen import DISTRIBUTIONS, Begen, begen
from sim.workloads.contract import Workload
from sim.workloads.located import USA, Located, located_workload
from topk.sparse import Event, SparseCatalogue

MOST_CELLS = 50_000_000  # subscriptions × attributes; 25 bytes each


def begen_boxes(
    stream: Stream,
    attributes: int,
    subscriptions: int,
    events: int,
    *,
    cardinality: int = 250_000_000,
    clusters: int | None = 4,
    cluster_size: int = 100,
    subscription_size: int | None = None,
    event_size: int | None = None,
    match_probability: float = 0.001,
    distribution: str = "uniform",
    skew: float = 1.0,
) -> Workload:
    """Boolean expressions over many attributes (Sadoghi & Jacobsen, ICDE 2012, Table III); events have weights."""
    _fits(subscriptions, attributes)
    p = Begen(
        subscriptions=subscriptions,
        events=events,
        dimensions=attributes,
        cardinality=whole("workload.cardinality", cardinality, 2, 2**53),
        clusters=None if clusters is None else whole("workload.clusters", clusters, 1),
        cluster_size=whole("workload.cluster_size", cluster_size, 1),
        subscription_size=_size("subscription_size", subscription_size, Begen.subscription_size, attributes),
        event_size=_size("event_size", event_size, Begen.event_size, attributes),
        match_probability=number("workload.match_probability", match_probability, 0.0, 0.25, above=True),
        distribution=_distribution(distribution),
        skew=number("workload.skew", skew, 0.0),
    )
    if p.subscription_size > p.event_size:
        raise CoverlayError(
            f"workload.event_size is {p.event_size}; it must be at least subscription_size, which is "
            f"{p.subscription_size}, or nothing matches"
        )
    made = begen(p, stream)
    schema = Schema(tuple(integer(f"a{j}", 0, p.cardinality - 1) for j in range(attributes)))
    return _dense(stream, schema, made.catalogue, list(made.events), weighted=True)


def located_boxes(
    stream: Stream,
    attributes: int,
    subscriptions: int,
    events: int,
    *,
    cardinality: int = 100,
    event_size: int | None = None,
    subscription_size: int | None = None,
    alpha: float | None = None,
    distribution: str = "uniform",
    skew: float = 1.0,
    latitude: Sequence[float] = USA[0],
    longitude: Sequence[float] = USA[1],
) -> Workload:
    """Expressions with a place (Hu et al., SSTD 2015, Table 4); the schema ends with latitude and longitude."""
    _fits(subscriptions, attributes)
    p = Located(
        subscriptions=subscriptions,
        events=events,
        dimensions=attributes,
        cardinality=whole("workload.cardinality", cardinality, 2, 2**53),
        event_size=_size("event_size", event_size, Located.event_size, attributes),
        subscription_size=_size("subscription_size", subscription_size, Located.subscription_size, attributes),
        alpha=None if alpha is None else number("workload.alpha", alpha, 0.0, 1.0),
        distribution=_distribution(distribution),
        skew=number("workload.skew", skew, 0.0),
        area=(_span("latitude", latitude, 90.0), _span("longitude", longitude, 180.0)),
    )
    made = located_workload(p, stream)
    numbers = [integer(f"a{j}", 0, p.cardinality - 1) for j in range(attributes)]
    place = [degrees(kind, kind, *bounds) for kind, bounds in zip(("latitude", "longitude"), p.area, strict=True)]
    events_alone = [e.event for e in made.events]
    workload = _dense(stream, Schema((*numbers, *place)), made.catalogue.expressions, events_alone)
    workload.events[:, attributes:] = np.array([e.place for e in made.events]).reshape(-1, 2)
    near = np.column_stack([made.catalogue.places, made.catalogue.alpha])
    return Workload(**{**vars(workload), "near": near})


def _dense(
    stream: Stream, schema: Schema, expressions: SparseCatalogue, events: Sequence[Event], weighted: bool = False
) -> Workload:
    shape, points = (len(expressions), len(schema)), (len(events), len(schema))
    at = np.repeat(np.arange(shape[0]), np.diff(expressions.offsets)), expressions.attributes
    lo, hi, weights = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape)
    mentioned = np.zeros(shape, dtype=np.bool_)
    lo[at], hi[at], weights[at], mentioned[at] = expressions.lo, expressions.hi, expressions.weights, True
    values, own = np.full(points, np.nan), np.ones(points)
    for row, event in enumerate(events):
        values[row, event.attributes], own[row, event.attributes] = event.lo, event.weights
    scores = 1.0 - stream("workload.scores").random(shape[0])  # for those who match by boxes
    return Workload(schema, lo, hi, mentioned, scores, weights, values, event_weights=own if weighted else None)


def _fits(subscriptions: int, attributes: int) -> None:
    if subscriptions * attributes > MOST_CELLS:
        raise CoverlayError(
            f"{subscriptions} subscriptions over {attributes} attributes are too many for a broker experiment, "
            f"which holds at most {MOST_CELLS} bounds; ask for fewer of either"
        )


def _size(what: str, given: int | None, usual: int, attributes: int) -> int:
    """A size as given; else the paper's, as far as there are attributes."""
    return min(usual, attributes) if given is None else whole(f"workload.{what}", given, 1, attributes)


def _distribution(name: str) -> str:
    if name not in DISTRIBUTIONS:
        raise CoverlayError(f"workload.distribution is {quoted(name)}; it must be one of: {', '.join(DISTRIBUTIONS)}")
    return name


def _span(what: str, given: Any, most: float) -> tuple[float, float]:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise CoverlayError(f"workload.{what} is {quoted(given)}; it must be [low, high] in degrees")
    return span(f"workload.{what}", given[0], given[1], most)
