"""Uniform boxes: widths uniform between two fractions of the domain, positions uniform where they fit.

Events are uniform too. `width` is a fraction of the domain, a pair [low, high] of them, or a name: "narrow"
boxes rarely cover each other, "wide" ones often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from coverlay import CoverlayError, Key, quoted
from routing.options import number
from sim.random_streams import Stream
from sim.workloads.contract import Generator, Workload, boxes

WIDTHS = {"narrow": (0.0, 0.05), "wide": (0.0, 1.0)}


Width = Annotated[
    float | tuple[float, float] | str, Key("of boxes: a fraction of the domain, [low, high], narrow or wide")
]


def uniform(*, width: Width = "narrow") -> Generator:
    low, high = width_range(width)

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        shape = (subscriptions, attributes)
        wide = low + (high - low) * stream("workload.widths").random(shape)
        lo = (1.0 - wide) * stream("workload.centres").random(shape)
        return boxes(stream, lo, lo + wide, stream("workload.events").random((events, attributes)))

    return draw


def width_range(width: Any) -> tuple[float, float]:
    """The narrowest and the widest box, as fractions of the domain."""
    if isinstance(width, str):
        if width not in WIDTHS:
            raise CoverlayError(
                f"workload.width is {quoted(width)}; it is a fraction, [low, high] or one of: {', '.join(WIDTHS)}"
            )
        return WIDTHS[width]
    if isinstance(width, Sequence):
        if len(width) != 2:
            raise CoverlayError(f"workload.width is {quoted(width)}; a list has two fractions, [low, high]")
        low, high = (number("workload.width", part, 0.0, 1.0) for part in width)
        if low > high:
            raise CoverlayError(f"workload.width is {quoted(width)}; the first fraction must not exceed the second")
        return low, high
    both = number("workload.width", width, 0.0, 1.0)
    return both, both
