"""The subscriptions and events of "Scalable Ranked Publish/Subscribe" (VLDB 2008), section 4.

A subscription is [x − ℓ, x + ℓ] in each dimension around a point of the regional Zipf generator
(regional_zipf.py), ℓ Zipf-distributed; its weight in a dimension is 1 − ℓ, its score the sum of the weights.
Events are further points from the same regions. Defaults are those of the paper's Table 1. As in the paper
intervals are not cut at the edge of the domain [0, 1).
"""

from __future__ import annotations

from routing.options import number, whole
from sim.random_streams import Stream
from sim.workloads.contract import Floats, Workload, boxes, in_blocks
from sim.workloads.regional_zipf import draw_points, draw_regions, zipf_lengths


def regional(
    stream: Stream,
    attributes: int,
    subscriptions: int,
    events: int,
    *,
    regions: int = 10,
    cells: int = 100,
    volume: float | None = None,
    skew_across: float = 0.0,
    skew_within: float = 1.0,
    skew_length: float = 0.75,
) -> Workload:
    """`volume` is the size of a region in cells, by default a twentieth of all."""
    regions = whole("workload.regions", regions, 1)
    cells = whole("workload.cells", cells, 2)
    if volume is not None:
        volume = number("workload.volume", volume, 1.0)
    skew_across = number("workload.skew_across", skew_across, 0.0)
    skew_within = number("workload.skew_within", skew_within, 0.0)
    skew_length = number("workload.skew_length", skew_length, 0.0)
    places = draw_regions(
        stream("workload.regions"),
        attributes,
        regions=regions,
        cells=cells,
        volume=volume,
        skew_across=skew_across,
    )

    def points(what: str, count: int) -> Floats:
        rng = stream(f"workload.{what}")
        return in_blocks(count, lambda n: draw_points(rng, n, places, skew_within=skew_within), attributes)

    middle = points("centres", subscriptions)
    rng = stream("workload.widths")
    length = in_blocks(subscriptions, lambda n: zipf_lengths(rng, n, attributes, skew_length), attributes)
    weights = 1.0 - length
    return boxes(
        stream,
        middle - length,
        middle + length,
        points("events", events),
        weights=weights,
        scores=weights.sum(axis=1),
    )
