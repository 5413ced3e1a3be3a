"""Anisotropic boxes: narrow in the first attributes, wide in the others, as on a map with a free time axis.

The case in which ε by volume is weakest: the wide sides make up the searched volume, the narrow ones decide
whether a box covers another.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from coverlay import Key
from routing.options import whole
from sim.random_streams import Stream
from sim.workloads.contract import Generator, Workload, boxes
from sim.workloads.options import Share

SPREAD = 0.5  # widths vary by this fraction around their mean


def anisotropic(
    *,
    narrow: Annotated[Share, Key("mean width in narrow attributes, as a fraction of the domain")] = 0.02,
    wide: Annotated[Share, Key("mean width in the others")] = 0.6,
    narrow_attributes: Annotated[
        int | None, Key("how many attributes, the first ones, are narrow; absent: half of all, rounded up")
    ] = None,
) -> Generator:

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        wanted = (attributes + 1) // 2 if narrow_attributes is None else narrow_attributes
        first = whole("workload.narrow_attributes", wanted, 0, attributes)
        mean = np.where(np.arange(attributes) < first, narrow, wide)
        shape = (subscriptions, attributes)
        factor = 1.0 + SPREAD * (2.0 * stream("workload.widths").random(shape) - 1.0)
        width = np.minimum(mean * factor, 1.0)
        lo = (1.0 - width) * stream("workload.centres").random(shape)
        return boxes(stream, lo, lo + width, stream("workload.events").random((events, attributes)))

    return draw
