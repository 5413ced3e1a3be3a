"""The work that an index reports: counters that add up over calls, partitions and brokers.

Pages and round trips say what a search would cost if the index were on disk or on another machine. They follow from
its probes, and from what the method says that a probe touches (`CoveringIndex.touches`):

| touches | what lies on a page of 4 KB               | round trips                                   |
|---------|-------------------------------------------|-----------------------------------------------|
| boxes   | boxes, 16 bytes per attribute             | one: the pages are consecutive                |
| words   | 512 words of 8 bytes, one per entry       | one                                           |
| nodes   | the 64 words of a node or a bucket        | one per page: a node says which one is next   |
| keys    | a run looked up, a row that is jumped to  | one per page                                  |

A search for covered entries (active mode) is one pass over all boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

Touches = Literal["boxes", "words", "nodes", "keys"]

PAGE = 4096  # bytes
_BUCKET = 64  # words that a k-d tree looks at together
_WORD = 8  # bytes


def boxes_per_page(attributes: int) -> int:
    return max(1, PAGE // (16 * attributes))


def footprint(touches: Touches, attributes: int) -> tuple[int, bool]:
    """(probes that share a page, whether each page is another round trip)."""
    return {
        "boxes": (boxes_per_page(attributes), False),
        "words": (PAGE // _WORD, False),
        "nodes": (_BUCKET, True),
        "keys": (1, True),
    }[touches]


def pages_and_trips(probes: int, per_page: int, apart: bool) -> tuple[int, int]:
    pages = (probes + per_page - 1) // per_page
    return pages, pages if apart else min(pages, 1)


@dataclass
class Stats:
    """The work of `find_cover` calls since the index was made (or since `reset`); plain sums.

    `volume / checks` is the mean fraction of the search region that was searched. What one probe is depends
    on the method: a stored entry compared for exact methods, a key range looked up for the curve methods.
    """

    checks: int = 0  # find_cover calls, each box of a batch counted
    hits: int = 0  # of these, how many found a cover
    probes: int = 0
    cubes: int = 0  # standard cubes searched (curve methods)
    runs: int = 0  # key ranges after merging neighbouring cubes (curve methods)
    volume: float = 0.0  # sum over checks of the fraction of the search region searched; 1 for an exact check
    capped: int = 0  # checks that a cap or budget ended early, with neither a hit nor the volume asked for
    pages: int = 0  # see above; counted by `FilterIndex`, check by check
    round_trips: int = 0

    def copy(self) -> Stats:
        return replace(self)

    def since(self, before: Stats) -> Stats:
        """What was counted after the copy `before` was taken."""
        return Stats(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]
