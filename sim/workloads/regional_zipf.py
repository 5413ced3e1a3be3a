"""The subscriptions and events of "Scalable Ranked Publish/Subscribe" (VLDB 2008), section 4.

A subscription is [x − ℓ, x + ℓ] in each dimension around a point of the regional Zipf generator
(points_in_regions.py), ℓ Zipf-distributed; its weight in a dimension is 1 − ℓ, its score the sum of the weights.
Events are further points from the same regions. Defaults are those of the paper's Table 1. As in the paper,
intervals are not cut at the edge of the domain [0, 1).
"""

from __future__ import annotations

from typing import Annotated, Any

from coverlay import CoverlayError, Key
from sim.random_streams import Stream
from sim.workloads.contract import Floats, Generator, Workload, boxes, in_blocks
from sim.workloads.options import Count, NotNegative, Range, Several
from sim.workloads.points_in_regions import (
    CELLS,
    REGIONS,
    SKEW_ACROSS,
    SKEW_LENGTH,
    SKEW_WITHIN,
    draw_points,
    draw_regions,
    zipf_lengths,
)

Volume = Annotated[float, Range(1)] | None


def regional_zipf(
    *,
    regions: Annotated[Count, Key("regions that interests and events come from")] = REGIONS,
    cells: Annotated[Several, Key("cells per dimension")] = CELLS,
    v_min: Annotated[Volume, Key("size of the smallest region; absent: a twentieth of all", "cells")] = None,
    v_max: Annotated[Volume, Key("size of the largest region; absent: a twentieth of all", "cells")] = None,
    skew_across: Annotated[NotNegative, Key("Zipf parameter of the regions' popularity")] = SKEW_ACROSS,
    skew_within: Annotated[NotNegative, Key("Zipf parameter of the cells within a region")] = SKEW_WITHIN,
    skew_length: Annotated[NotNegative, Key("Zipf parameter of the lengths of intervals")] = SKEW_LENGTH,
) -> Generator:
    if v_min is not None and v_max is not None and v_min > v_max:
        raise CoverlayError(f"workload.v_min is {v_min:g}; it must be at most v_max, which is {v_max:g}")
    shape: dict[str, Any] = {
        "regions": regions,
        "cells": cells,
        "v_min": v_min,
        "v_max": v_max,
        "skew_across": skew_across,
    }

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        places = draw_regions(stream("workload.regions"), attributes, **shape)

        def points(what: str, count: int) -> Floats:
            rng = stream(f"workload.{what}")
            return in_blocks(count, lambda n: draw_points(rng, n, places, skew_within=skew_within), attributes)

        middle = points("centres", subscriptions)
        rng = stream("workload.widths")
        length = in_blocks(subscriptions, lambda n: zipf_lengths(rng, n, attributes, skew_length), attributes)
        weights = 1.0 - length
        ranked = weights, weights.sum(axis=1)
        return boxes(stream, middle - length, middle + length, points("events", events), ranked)

    return draw
