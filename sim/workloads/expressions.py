"""The BEGen-like and the located generators as workloads of a broker experiment: kinds `begen` and `located`.

Expressions mention a handful of many attributes. Brokers route on boxes, so every row becomes a whole box here, with
infinite sides where it mentions nothing. Columns are dense, hence the limit; `coverlay bench topk` and reproductions
use the sparse catalogues themselves. Options are the parameters of Begen and Located (begen.py, located.py), with
`attributes` for their dimensions. Rows are drawn and weighted together, so another number of subscriptions changes
all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from broker.language.schema import Schema, degrees, integer
from coverlay import CoverlayError, quoted
from routing.options import whole
from routing.overlay.map import span
from sim.random_streams import Stream
from sim.workloads.begen import Begen, begen
from sim.workloads.contract import Generator, Workload
from sim.workloads.located import Located, located_workload
from topk.sparse import Event, SparseCatalogue

MOST_CELLS = 50_000_000  # subscriptions × attributes; 25 bytes each


def begen_boxes(**options: Any) -> Generator:
    """Boolean expressions over many attributes (Sadoghi & Jacobsen, ICDE 2012, Table III); events have weights."""

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        _fits(subscriptions, events, attributes)
        p = Begen(subscriptions, events, attributes, **{**options, **_sizes(Begen, options, attributes)})
        if p.subscription_size > p.event_size:
            raise CoverlayError(
                f"workload.event_size is {p.event_size}; it must be at least subscription_size, which is "
                f"{p.subscription_size}, or nothing matches"
            )
        made = begen(p, stream)
        schema = Schema(tuple(integer(f"a{j}", 0, p.cardinality - 1) for j in range(attributes)))
        return _dense(stream, schema, made.catalogue, list(made.events), weighted=True)

    return draw


def located_boxes(**options: Any) -> Generator:
    """Expressions with a place (Hu et al., SSTD 2015, Table 4); the schema ends with latitude and longitude."""

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        _fits(subscriptions, events, attributes)
        for name, most in (("latitude", 90.0), ("longitude", 180.0)):
            if name in options:
                options[name] = _span(name, options[name], most)
        p = Located(subscriptions, events, attributes, **{**options, **_sizes(Located, options, attributes)})
        made = located_workload(p, stream)
        numbers = [integer(f"a{j}", 0, p.cardinality - 1) for j in range(attributes)]
        place = [degrees("latitude", "latitude", *p.latitude), degrees("longitude", "longitude", *p.longitude)]
        events_alone = [e.event for e in made.events]
        workload = _dense(stream, Schema((*numbers, *place)), made.catalogue.expressions, events_alone)
        workload.events[:, attributes:] = np.array([e.place for e in made.events]).reshape(-1, 2)
        return replace(workload, near=np.column_stack([made.catalogue.places, made.catalogue.alpha]))

    return draw


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
    scores = 1.0 - stream("workload.scores").random(shape[0])  # used where boxes are matched
    return Workload(schema, lo, hi, mentioned, scores, weights, values, event_weights=own if weighted else None)


def _fits(subscriptions: int, events: int, attributes: int) -> None:
    for count, what in ((subscriptions, "subscriptions"), (events, "events")):
        if count * attributes > MOST_CELLS:
            raise CoverlayError(
                f"{count} {what} over {attributes} attributes are too many for a broker experiment, "
                f"which holds at most {MOST_CELLS} values of either; ask for fewer {what} or attributes"
            )


def _sizes(parameters: type[Begen | Located], options: dict[str, Any], attributes: int) -> dict[str, Any]:
    """Both sizes: as given, else the paper's, but not above the number of attributes."""
    sizes = {}
    for name in ("subscription_size", "event_size"):
        usual = min(getattr(parameters, name), attributes)
        sizes[name] = whole(f"workload.{name}", options.get(name, usual), 1, attributes)
    return sizes


def _span(what: str, given: Any, most: float) -> tuple[float, float]:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise CoverlayError(f"workload.{what} is {quoted(given)}; it must be [low, high] in degrees")
    return span(f"workload.{what}", given[0], given[1], most)
