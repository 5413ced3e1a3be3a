"""Clustered boxes: centres around Zipf-popular places, Zipf widths (many narrow, few wide).

Events come from the same places, so popular regions are both asked for and written about. Centres scatter
normally around their place; what would lie outside the domain is cut at its edge.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from coverlay import Key
from sim.random_streams import Stream
from sim.workloads.contract import Floats, Generator, Workload, boxes
from sim.workloads.options import Count, NotNegative, Share
from sim.workloads.zipf_law import zipf_probabilities

WIDTH_STEPS = 100  # the Zipf law over widths has this many ranks; within a rank widths are uniform


def zipf(
    *,
    clusters: Annotated[Count, Key("places that interests and events gather around")] = 20,
    skew: Annotated[NotNegative, Key("Zipf parameter of the places' popularity; 0: all alike")] = 1.0,
    spread: Annotated[NotNegative, Key("scatter around a place, as a fraction of the domain")] = 0.05,
    width: Annotated[Share, Key("the widest box, as a fraction of the domain")] = 0.5,
    width_skew: Annotated[NotNegative, Key("Zipf parameter of the widths: the larger, the fewer wide boxes")] = 1.0,
) -> Generator:
    popularity = np.cumsum(zipf_probabilities(clusters, skew))
    widths = np.cumsum(zipf_probabilities(WIDTH_STEPS, width_skew))

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        places = stream("workload.clusters").random((clusters, attributes))

        def around(what: str, count: int) -> Floats:
            chosen = rank(popularity, stream(f"workload.{what}.cluster").random(count))
            scatter = stream(f"workload.{what}").standard_normal((count, attributes))
            return np.clip(places[chosen] + spread * scatter, 0.0, 1.0)

        centre = around("centres", subscriptions)
        step = rank(widths, stream("workload.widths").random((subscriptions, attributes)))
        within = stream("workload.widths.within").random((subscriptions, attributes))
        half = width / 2.0 * (step + within) / WIDTH_STEPS
        lo, hi = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
        return boxes(stream, lo, hi, around("events", events))

    return draw


def rank(cumulative: Floats, uniform: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Invert a cumulative law: uniform numbers to ranks from 0."""
    found = np.searchsorted(cumulative, uniform, side="right").astype(np.int64)
    return np.minimum(found, len(cumulative) - 1)  # the last sum may round to just below 1
