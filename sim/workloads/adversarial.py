"""Adversarial boxes: large ones of one volume, none of which covers another, and small ones that one of them covers.

Every other subscription is *large*: widths of random proportions, their product always the same, so that no large box
covers another. Each of the others lies just inside an earlier large one and hardly ever in a second. So every search
has one cover to find among all boxes. Looking at the largest boxes first does not help. The maxima of a tree's nodes
rule out hardly anything. A box that covers a small one is not wide in every attribute, so the large cubes of a greedy
search are empty.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from coverlay import Key
from sim.random_streams import Stream
from sim.workloads.contract import Generator, Workload, boxes
from sim.workloads.options import Share

UNEVEN = 1.0  # how far proportions differ: the standard deviation of the logarithm of a width
INSIDE = 0.9  # width of a small box, as a share of the large box around it


def adversarial(
    *, width: Annotated[Share, Key("geometric mean of a large box's widths, as a fraction of the domain")] = 0.2
) -> Generator:
    """Where a width would exceed 1, the box becomes less uneven and keeps its volume."""

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        shape = (subscriptions, attributes)
        proportions = UNEVEN * stream("workload.widths").standard_normal(shape)
        proportions -= proportions.mean(axis=1, keepdims=True)
        # Where a width would leave the domain, all proportions of its row shrink; their product stays.
        most = np.maximum(proportions.max(axis=1, keepdims=True), 1e-9)
        wide = width * np.exp(proportions * np.minimum(1.0, -np.log(max(width, 1e-9)) / most))
        lo = (1.0 - wide) * stream("workload.centres").random(shape)
        rows = np.arange(subscriptions)
        around = 2 * np.floor(stream("workload.around").random(subscriptions) * ((rows + 1) // 2)).astype(np.int64)
        small = rows % 2 == 1
        lo[small] = lo[around[small]] + (1.0 - INSIDE) / 2.0 * wide[around[small]]
        wide[small] = INSIDE * wide[around[small]]
        lo, hi = np.maximum(lo, 0.0), np.minimum(lo + wide, 1.0)  # outside only by rounding
        return boxes(stream, lo, hi, stream("workload.events").random((events, attributes)))

    return draw
